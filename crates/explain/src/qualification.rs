//! Whether a stick would help as a cache: its figures beside the lines of ReadyBoost and beside the
//! disk that it would help.
//!
//! Each rule gives an answer with a sentence: yes, no, unproven. One "no" decides; without one, any
//! "unproven" leaves the whole unproven. A figure counts only if its interval is on one side of the
//! line, and if the device itself served it.

use model::bytes::{show_rate, three_digits};
use model::duration::show_ns;
use model::probe::SERVED_BY_DEVICE;
use model::qualification::{
    CapacityOutcome, Qualification, QualificationVerdict, READ_LINE_BYTES_PER_S, RequestFigures,
    Suitability, WRITE_LINE_BYTES_PER_S,
};
use model::{Estimate, Latency};

/// What one rule concludes.
struct Conclusion {
    answer: Suitability,
    sentence: String,
}

/// The verdict from the figures.
#[must_use]
pub fn judge(result: &Qualification) -> QualificationVerdict {
    let rules = [
        ended_early,
        capacity,
        beside_disk,
        random_read,
        random_write,
        sustained_write,
        not_proved,
    ];
    let mut all: Vec<Conclusion> = rules.iter().filter_map(|rule| rule(result)).collect();
    let first = |answer| all.iter().position(|conclusion| conclusion.answer == answer);
    let decisive = first(Suitability::No)
        .or_else(|| first(Suitability::Unproven))
        .or_else(|| all.iter().position(|conclusion| conclusion.answer == Suitability::Yes));
    let Some(decisive) = decisive else {
        return QualificationVerdict {
            sentence: "Unproven: nothing was measured.".to_owned(),
            ..QualificationVerdict::default()
        };
    };
    let Conclusion { answer, sentence } = all.remove(decisive);
    let begin = match answer {
        Suitability::Yes => "Yes",
        Suitability::No => "No",
        Suitability::Unproven => "Unproven",
    };
    QualificationVerdict {
        answer,
        sentence: format!("{begin}: {sentence}."),
        reasons: all.into_iter().map(|conclusion| conclusion.sentence).collect(),
    }
}

fn ended_early(result: &Qualification) -> Option<Conclusion> {
    let failure = result.failure.as_ref()?;
    unproven(format!("it ended early: {failure}"))
}

fn capacity(result: &Qualification) -> Option<Conclusion> {
    let capacity = &result.capacity;
    if capacity.outcome != CapacityOutcome::Refused {
        return None;
    }
    let claimed = capacity
        .claimed_bytes
        .map_or_else(|| "it".to_owned(), |bytes| format!("it claims {} and", gigabytes(bytes)));
    let reason = capacity.reason.as_deref().unwrap_or("what was read is not what was written");
    no(format!("{claimed} does not hold what is written to it: {reason}"))
}

/// Without one byte proved it may hold nothing. A device is not written to at all.
fn not_proved(result: &Qualification) -> Option<Conclusion> {
    let capacity = &result.capacity;
    if capacity.outcome != CapacityOutcome::NotTried || result.target.is_block_device {
        return None;
    }
    let reason = capacity.reason.as_deref().unwrap_or("nothing was read back");
    unproven(format!("none of its capacity is proved: {reason}"))
}

/// Its reads beside those of the disk.
fn beside_disk(result: &Qualification) -> Option<Conclusion> {
    if result.capacity.outcome == CapacityOutcome::Refused {
        return None;
    }
    let stick = service(result.random_read.as_ref());
    let Some(disk) = &result.disk else {
        let reason = result.disk_unseen.as_deref().unwrap_or("it was not asked");
        return unproven(format!("your disk was not measured: {reason}"));
    };
    let name = disk.disk.as_deref().unwrap_or("disk");
    let (stick, other) = match (stick, service(Some(&disk.random_read))) {
        (Ok(stick), Ok(other)) => (stick, other),
        (Err(reason), _) => return unproven(format!("its reads do not count: {reason}")),
        (_, Err(reason)) => return unproven(format!("the reads of {name} do not count: {reason}")),
    };
    let (stick_ns, disk_ns) = (show_ns(stick.median), show_ns(other.median));
    let ends = |latency: &Latency| Some((latency.low?, latency.high?));
    let (Some((stick_low, stick_high)), Some((disk_low, disk_high))) = (ends(stick), ends(other))
    else {
        return unproven(format!(
            "too few reads: your disk ({name}) answered in {disk_ns}, the stick in {stick_ns}"
        ));
    };
    if stick_low > disk_high {
        no(format!("your disk ({name}) answers in {disk_ns}, the stick in {stick_ns}"))
    } else if stick_high < disk_low {
        let times = three_digits(other.median / stick.median);
        yes(format!(
            "the stick answers in {stick_ns}, your disk ({name}) in {disk_ns}: {times} times sooner"
        ))
    } else {
        unproven(format!("the stick and your disk ({name}) both answer in about {disk_ns}"))
    }
}

fn random_read(result: &Qualification) -> Option<Conclusion> {
    let figures = result.random_read.as_ref()?;
    if service(Some(figures)).is_err() {
        return None;
    }
    line("reads of 4 KiB", figures.bytes_per_s.as_ref()?, READ_LINE_BYTES_PER_S)
}

fn random_write(result: &Qualification) -> Option<Conclusion> {
    if result.target.is_block_device {
        return unproven("a device is not written to: name a directory on it");
    }
    let Some(figures) = result.random_write.as_ref() else {
        let is_known = result.capacity.outcome == CapacityOutcome::Refused;
        return if is_known { None } else { unproven("its writes were not measured") };
    };
    if let Err(reason) = service(Some(figures)) {
        return unproven(format!("its writes do not count: {reason}"));
    }
    line("writes of 512 KiB", figures.bytes_per_s.as_ref()?, WRITE_LINE_BYTES_PER_S)
}

/// After a burst only the rate that lasts counts.
fn sustained_write(result: &Qualification) -> Option<Conclusion> {
    let burst = result.burst.as_ref()?;
    let transfer = result.sequential_write.as_ref()?;
    if let Err(reason) = from_device(&transfer.served_by, &transfer.served_reason) {
        return unproven(format!("its writes in sequence do not count: {reason}"));
    }
    let what = format!("writes after the first {}", gigabytes(burst.bytes));
    line(&what, result.sustained_write.as_ref()?, WRITE_LINE_BYTES_PER_S)
}

/// A rate beside the line that it must reach.
fn line(what: &str, rate: &Estimate, line_bytes_per_s: f64) -> Option<Conclusion> {
    let (shown, line) = (show_rate(rate.median), show_rate(line_bytes_per_s));
    match (rate.low, rate.high) {
        (Some(low), _) if low >= line_bytes_per_s => {
            yes(format!("{what}: {shown}, at least {line}"))
        }
        (_, Some(high)) if high < line_bytes_per_s => {
            no(format!("{what}: {shown}, less than {line}"))
        }
        _ => unproven(format!("{what}: {shown}, which is too near to {line} or too few")),
    }
}

/// The time of one request, if the device served it; the error says why it does not count.
fn service(figures: Option<&RequestFigures>) -> Result<&Latency, String> {
    let figures = figures.ok_or("they were not measured")?;
    from_device(&figures.served_by, &figures.served_reason)?;
    figures.service_ns.as_ref().ok_or_else(|| "none ended in the time".to_owned())
}

/// The error says what answered instead.
fn from_device(served_by: &str, reason: &str) -> Result<(), String> {
    if served_by == SERVED_BY_DEVICE {
        return Ok(());
    }
    let by = if served_by.is_empty() { "no counter says what" } else { "a cache" };
    Err(format!("{by} answered ({reason})"))
}

/// A size as devices are sold.
fn gigabytes(bytes: u64) -> String {
    let (unit, name) = if bytes >= 1_000_000_000 { (1e9, "GB") } else { (1e6, "MB") };
    format!("{} {name}", three_digits(bytes as f64 / unit))
}

fn conclude(answer: Suitability, sentence: impl Into<String>) -> Option<Conclusion> {
    Some(Conclusion { answer, sentence: sentence.into() })
}

fn yes(sentence: String) -> Option<Conclusion> {
    conclude(Suitability::Yes, sentence)
}

fn no(sentence: String) -> Option<Conclusion> {
    conclude(Suitability::No, sentence)
}

fn unproven(sentence: impl Into<String>) -> Option<Conclusion> {
    conclude(Suitability::Unproven, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::estimate::{Better, Covers};
    use model::qualification::{
        CapacityCheck, ComparedDisk, EraseBlock, QualifiedTarget, TransferFigures, WriteBurst,
    };

    fn around(value: f64) -> Option<Estimate> {
        let values: Vec<f64> = (0..11).map(|i| value * (1.0 + f64::from(i - 5) / 500.0)).collect();
        Estimate::from_values(&values, Better::Higher, 0)
    }

    fn figures(ns: f64, block_bytes: u64) -> Option<RequestFigures> {
        let service_ns = Latency {
            median: ns,
            p50: Some(ns),
            p99: Some(ns),
            low: Some(ns * 0.98),
            high: Some(ns * 1.02),
            trials: 100,
            discarded: 0,
            covers: Covers::WithinRun,
        };
        Some(RequestFigures {
            block_bytes,
            requests: 100,
            bytes_per_s: around(block_bytes as f64 * 1e9 / ns),
            service_ns: Some(service_ns),
            mean_ns: Some(ns),
            served_by: SERVED_BY_DEVICE.to_owned(),
            served_reason: "100 % of the bytes went through the block device".to_owned(),
        })
    }

    /// A stick of 64 GB that reads in `read_ns` beside a disk that reads in `disk_ns`.
    fn stick(read_ns: f64, disk_ns: f64) -> Qualification {
        Qualification {
            target: QualifiedTarget {
                path: "/media/stick".into(),
                is_block_device: false,
                file_system: None,
                disk: Some("sda".to_owned()),
                partition: None,
                model: None,
                claimed_bytes: Some(64_000_000_000),
            },
            file_bytes: Some(1 << 30),
            random_read: figures(read_ns, 4096),
            random_write: figures(80e6, 512 << 10),
            read_while_writing: None,
            sequential_read: None,
            sequential_write: Some(TransferFigures {
                bytes: 1 << 30,
                wall_s: 150.0,
                bytes_per_s: around(7e6),
                series: Vec::new(),
                served_by: SERVED_BY_DEVICE.to_owned(),
                served_reason: String::new(),
            }),
            burst: None,
            sustained_write: around(7e6),
            capacity: CapacityCheck {
                outcome: CapacityOutcome::Proved,
                proved_bytes: 1 << 30,
                reason: None,
                ..CapacityCheck::not_tried(Some(64_000_000_000), "")
            },
            link: None,
            link_unseen: None,
            erase_block: EraseBlock::default(),
            disk: Some(ComparedDisk {
                path: "/dev/vda".into(),
                disk: Some("vda".to_owned()),
                why: "it holds the root file system".to_owned(),
                random_read: figures(disk_ns, 4096).unwrap(),
            }),
            disk_unseen: None,
            verdict: QualificationVerdict::default(),
            written_bytes: 1 << 30,
            notes: Vec::new(),
            failure: None,
            is_cut_short: false,
        }
    }

    fn sentence(result: &Qualification, answer: Suitability) -> String {
        let verdict = judge(result);
        assert_eq!(verdict.answer, answer, "{verdict:?}");
        verdict.sentence
    }

    #[test]
    fn the_disk_decides_first() {
        assert_eq!(
            sentence(&stick(900e3, 42e3), Suitability::No),
            "No: your disk (vda) answers in 42 us, the stick in 900 us."
        );
        assert_eq!(
            sentence(&stick(900e3, 12.6e6), Suitability::Yes),
            "Yes: the stick answers in 900 us, your disk (vda) in 12.6 ms: 14 times sooner."
        );
        let reasons = judge(&stick(900e3, 12.6e6)).reasons;
        assert_eq!(reasons.len(), 2, "{reasons:?}");
        sentence(&stick(900e3, 910e3), Suitability::Unproven);
    }

    #[test]
    fn a_slow_stick_is_refused_beside_any_disk() {
        let slow = stick(2e6, 12.6e6);
        assert!(sentence(&slow, Suitability::No).starts_with("No: reads of 4 KiB: 2.05 MB/s"));
        let near = stick(4096.0 * 1e9 / 2.5e6, 12.6e6);
        assert!(sentence(&near, Suitability::Unproven).contains("too near"));
        let writes = Qualification { random_write: figures(400e6, 512 << 10), ..stick(9e5, 1e7) };
        assert!(sentence(&writes, Suitability::No).contains("writes of 512 KiB: 1.31 MB/s"));
    }

    #[test]
    fn after_a_burst_the_rate_that_lasts_counts() {
        let burst = Some(WriteBurst { bytes: 200_000_000, bytes_per_s: around(40e6).unwrap() });
        let bursting = |rate| Qualification {
            burst: burst.clone(),
            sustained_write: around(rate),
            ..stick(9e5, 1e7)
        };
        let refused = sentence(&bursting(0.5e6), Suitability::No);
        assert!(refused.contains("after the first 200 MB: 500 kB/s"), "{refused}");
        sentence(&bursting(7e6), Suitability::Yes);
        let mut cached = bursting(7e6);
        cached.sequential_write.as_mut().unwrap().served_by = "page cache".to_owned();
        assert!(sentence(&cached, Suitability::Unproven).contains("in sequence do not count"));
    }

    #[test]
    fn a_fake_is_refused_however_fast() {
        let mut fake = stick(9e4, 1e7);
        fake.capacity.outcome = CapacityOutcome::Refused;
        fake.capacity.reason = Some("the first block is not there".to_owned());
        fake.disk = None;
        fake.random_write = None;
        assert_eq!(
            sentence(&fake, Suitability::No),
            "No: it claims 64 GB and does not hold what is written to it: the first block is not \
             there."
        );
    }

    #[test]
    fn what_was_not_seen_proves_nothing() {
        let mut unseen = stick(9e5, 1e7);
        unseen.disk = None;
        unseen.disk_unseen = Some("reading /dev/vda needs root".to_owned());
        assert!(sentence(&unseen, Suitability::Unproven).contains("needs root"));
        let mut cached = stick(900.0, 1e7);
        cached.random_read.as_mut().unwrap().served_by = "page cache".to_owned();
        assert!(sentence(&cached, Suitability::Unproven).contains("a cache answered"));
        let mut cached = stick(9e5, 1e7);
        cached.random_write.as_mut().unwrap().served_by = "page cache".to_owned();
        assert!(sentence(&cached, Suitability::Unproven).contains("its writes do not count"));
        let mut unread = stick(9e5, 1e7);
        unread.capacity = CapacityCheck::not_tried(None, "it came from a cache");
        assert!(sentence(&unread, Suitability::Unproven).contains("proved: it came from a cache"));
        let device = Qualification { random_write: None, ..stick(9e5, 1e7) };
        let target = QualifiedTarget { is_block_device: true, ..device.target.clone() };
        sentence(&Qualification { target, ..device }, Suitability::Unproven);
        let pulled = Qualification { failure: Some("cannot read".to_owned()), ..stick(9e5, 1e7) };
        assert!(sentence(&pulled, Suitability::Unproven).contains("ended early: cannot read"));
    }
}

//! How a copy went that counted itself (`copy.*`): what it was bound by, how soon the disk wrote at
//! full speed, which side throttled the other, when it said done and when it was, and whether the
//! cache was turned over.
//!
//! Everything is of the time from its first byte to the last change of its counters. What another
//! program did to the disks and the cache meanwhile is in their figures; each sentence names what
//! it was read from.

use super::view::View;
use crate::transfer::{
    KnownRate, RateSource, TransferLimit, TransferSide, TransferVerdict, TransferWindow,
    transfer_limit,
};
use crate::wording::{long_time, percent};
use model::Bytes;
use model::explanation::{CopyReport, Interval};
use model::recording::Series;

/// A disk writes at full speed where it does so for this long, or for a twentieth of the copy.
const STEADY_NS: u64 = 500_000_000;
/// The part of the copy for which it has to.
const STEADY_PARTS: u64 = 20;
/// A copy that is shorter than so many of these has no course to speak of.
const LEAST_PARTS: u64 = 4;
/// Full speed is what a fifth of all such stretches reach. Picked: the best alone may be a burst.
const FULL_RANK: f64 = 0.8;
/// So much of it is full speed.
const NEARLY_FULL: f64 = 0.9;
/// The disk has to have written this part of what the copy wrote, else another one holds it.
const LEAST_WRITTEN: f64 = 0.5;
/// The cache was kept where less than this of it was dropped.
const KEPT_BELOW: f64 = 0.05;
/// It was turned over where this much of it was.
const TURNED_OVER_FROM: f64 = 0.5;
/// Below this a wait of one side for the other is not worth a sentence.
const LEAST_WAIT_SHARE: f64 = 0.05;

/// What the recording says of its copy; `None` if it is of none.
pub(super) fn report(view: &View) -> Option<CopyReport> {
    let (first, last) = active(view)?;
    let (from_ns, to_ns) = (view.at_ns(first)?, view.at_ns(last)?);
    let copy = view.during(Interval { from_ns, to_ns });
    let verdict = limit(&copy);
    let mut report = CopyReport {
        limit: id_of(&verdict),
        ns: to_ns - from_ns,
        read_bytes: copy.growth("copy.read_bytes").unwrap_or(0),
        written_bytes: copy.growth("copy.written_bytes").unwrap_or(0),
        durable_bytes: copy.growth("copy.durable_bytes").unwrap_or(0),
        files: copy.growth("copy.files_done"),
        readers_waited_ns: copy.growth("copy.readers_waited_ns"),
        writers_waited_ns: copy.growth("copy.writers_waited_ns"),
        done_ns: said_done(view, from_ns),
        cache_dropped_bytes: dropped_bytes(&copy),
        cache_before_bytes: cached_bytes(&copy),
        ..CopyReport::default()
    };
    report.durable_ns = durable_at(&copy, &report, (first, last), from_ns);
    let disk = written_disk(&copy, report.written_bytes);
    report.full_speed_ns = disk.and_then(|disk| full_speed_at(&copy, disk, (first, last)));
    report.lines = lines(&report, &verdict, disk, view);
    Some(report)
}

/// From the sample before the first byte to the sample of the last change.
fn active(view: &View) -> Option<(u32, u32)> {
    let (from, to) = view.samples();
    let names = ["copy.read_bytes", "copy.written_bytes", "copy.durable_bytes", "copy.files_done"];
    let series = names.iter().filter_map(|name| view.series(name));
    let changes = series.flat_map(|series| {
        let grows =
            series.within(from, to).filter(|step| step.value.is_some_and(|value| value > 0));
        grows.map(|step| step.sample)
    });
    let (first, last) =
        changes.fold((u32::MAX, 0), |(first, last), at| (at.min(first), at.max(last)));
    (first <= last).then(|| (first.saturating_sub(1).max(from), last))
}

fn limit(copy: &View) -> TransferVerdict {
    let side = |[bytes, waited, depth, limit]: [&str; 4]| TransferSide {
        bytes: copy.growth(bytes).unwrap_or(0),
        waited_ns: copy.growth(waited),
        depth: mean(copy, depth),
        depth_limit: copy.latest(limit).and_then(|value| u64::try_from(value).ok()),
        known: best_second(copy, bytes),
    };
    transfer_limit(&TransferWindow {
        ns: copy.wall_ns(),
        read: side([
            "copy.read_bytes",
            "copy.readers_waited_ns",
            "copy.read_depth",
            "copy.read_depth_limit",
        ]),
        write: side([
            "copy.written_bytes",
            "copy.writers_waited_ns",
            "copy.write_depth",
            "copy.write_depth_limit",
        ]),
        files: copy.growth("copy.files_done"),
        cpu_ns: copy.growth("copy.cpu_ns"),
        threads: 0,
        held_back_ns: copy.growth("copy.held_back_ns"),
        rate_limit: copy.latest("copy.rate_limit").map(|value| value as f64),
        is_one_device: false,
    })
}

fn id_of(verdict: &TransferVerdict) -> String {
    let mut id = String::new();
    for letter in format!("{:?}", verdict.limit).chars() {
        if letter.is_uppercase() && !id.is_empty() {
            id.push('_');
        }
        id.extend(letter.to_lowercase());
    }
    id
}

/// The mean of a level over the samples.
fn mean(copy: &View, name: &str) -> Option<f64> {
    let series = copy.series(name)?;
    let (first, last) = copy.samples();
    let values: Vec<f64> =
        (first..=last).filter_map(|sample| series.at(sample)).map(|value| value as f64).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The rate of a counter in its best second; `None` where there are less than three.
fn best_second(copy: &View, name: &str) -> Option<KnownRate> {
    const SECOND_NS: u64 = 1_000_000_000;
    if copy.wall_ns() < 3 * SECOND_NS {
        return None;
    }
    let rates = stretches(copy, copy.series(name)?, SECOND_NS);
    let bytes_per_s = rates.into_iter().map(|(_, rate)| rate).max_by(f64::total_cmp)?;
    Some(KnownRate { bytes_per_s, source: RateSource::BestSeconds })
}

/// The rates of a counter over stretches of at least `ns`, each with the sample that it begins at.
fn stretches(copy: &View, series: &Series, ns: u64) -> Vec<(u32, f64)> {
    let (first, last) = copy.samples();
    let at = |sample: u32| copy.at_ns(sample).unwrap_or(0);
    let mut rates = Vec::new();
    let mut end = first;
    for start in first..last {
        while end < last && at(end) - at(start) < ns {
            end += 1;
        }
        let long = at(end) - at(start);
        if long < ns {
            break;
        }
        let grown = series.growth(start, end).unwrap_or(0);
        rates.push((start, grown as f64 / (long as f64 / 1e9)));
    }
    rates
}

/// When it said that it was done.
fn said_done(view: &View, from_ns: u64) -> Option<u64> {
    let mut marks = view.recording().spans.iter().filter(|span| span.kind == "mark");
    let done = marks.find(|mark| mark.text == "done" && mark.start_ns >= from_ns)?;
    Some(done.start_ns - from_ns)
}

/// When all that was written was safe on the disk.
fn durable_at(copy: &View, report: &CopyReport, samples: (u32, u32), from_ns: u64) -> Option<u64> {
    if report.durable_bytes == 0 || report.durable_bytes < report.written_bytes {
        return None;
    }
    let series = copy.series("copy.durable_bytes")?;
    let at = series.within(samples.0, samples.1).last()?.sample;
    Some(copy.at_ns(at)?.saturating_sub(from_ns))
}

/// The disk that was written most, if it was written about as much as the copy wrote.
fn written_disk<'a>(copy: &View<'a>, written_bytes: u64) -> Option<&'a Series> {
    let disks = copy.between("disk.", ".write_bytes");
    let grown = |series: &&'a Series| copy.growth(&series.schema.name).unwrap_or(0);
    let most = disks.max_by_key(grown)?;
    (written_bytes > 0 && grown(&most) as f64 >= written_bytes as f64 * LEAST_WRITTEN)
        .then_some(most)
}

/// When a disk reached the speed that it wrote most of the time at.
fn full_speed_at(copy: &View, disk: &Series, (first, _): (u32, u32)) -> Option<u64> {
    let steady_ns = (copy.wall_ns() / STEADY_PARTS).max(STEADY_NS);
    if copy.wall_ns() < steady_ns * LEAST_PARTS {
        return None;
    }
    let rates = stretches(copy, disk, steady_ns);
    let full = full_speed(&rates)?;
    let (at, _) = rates.iter().find(|(_, rate)| *rate >= full * NEARLY_FULL)?;
    Some(copy.at_ns(*at)?.saturating_sub(copy.at_ns(first)?))
}

/// The speed that a fifth of all stretches reach.
fn full_speed(rates: &[(u32, f64)]) -> Option<f64> {
    let mut sorted: Vec<f64> = rates.iter().map(|(_, rate)| *rate).collect();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len().checked_sub(1)? as f64 * FULL_RANK) as usize;
    sorted.get(rank).copied().filter(|rate| *rate > 0.0)
}

fn dropped_bytes(copy: &View) -> Option<u64> {
    let page_bytes = match copy.facts().page_bytes {
        0 => 4096,
        bytes => bytes,
    };
    copy.growth("vmstat.pgsteal_file").map(|pages| pages.saturating_mul(page_bytes))
}

fn cached_bytes(copy: &View) -> Option<u64> {
    let level = |name| copy.at_start(name).and_then(|value| u64::try_from(value).ok());
    Some(level("meminfo.Active_file")?.saturating_add(level("meminfo.Inactive_file")?))
}

fn lines(
    report: &CopyReport,
    verdict: &TransferVerdict,
    disk: Option<&Series>,
    view: &View,
) -> Vec<String> {
    let mut lines = vec![format!("{}.", capital(&verdict.sentence))];
    lines.extend(full_speed_line(report, disk));
    lines.extend(throttled_line(report, verdict.limit));
    lines.push(durable_line(report, view));
    lines.extend(cache_line(report));
    lines
}

/// `vdb wrote at full speed after 0.3 s.`
fn full_speed_line(report: &CopyReport, disk: Option<&Series>) -> Option<String> {
    let name = disk?.schema.name.strip_prefix("disk.")?.strip_suffix(".write_bytes")?;
    let ns = report.full_speed_ns?;
    Some(match ns {
        0 => format!("{name} wrote at full speed from the first sample on."),
        _ => format!("{name} wrote at full speed after {}.", long_time(ns as f64)),
    })
}

/// `The target throttled the source: reads waited 2.1 s for writes, writes 0.2 s for reads.`
fn throttled_line(report: &CopyReport, limit: TransferLimit) -> Option<String> {
    let (reads, writes) = (report.readers_waited_ns?, report.writers_waited_ns?);
    if reads.max(writes) < (report.ns as f64 * LEAST_WAIT_SHARE) as u64 {
        return Some("Neither side waited for the other.".to_owned());
    }
    let waits = format!(
        "reads waited {} for writes, writes {} for reads",
        long_time(reads as f64),
        long_time(writes as f64)
    );
    if limit == TransferLimit::Unproven {
        // Both waits are too short to say which side held the other up.
        return Some(format!("{}.", capital(&waits)));
    }
    let who = if reads >= writes.saturating_mul(2) {
        "The target throttled the source"
    } else if writes >= reads.saturating_mul(2) {
        "The source throttled the target"
    } else {
        "Both sides throttled each other"
    };
    Some(format!("{who}: {waits}."))
}

/// When it said done, and when all was on the disk.
fn durable_line(report: &CopyReport, view: &View) -> String {
    let said = report.done_ns.map(|ns| format!("It said done after {}", long_time(ns as f64)));
    let safe = match report.durable_ns {
        Some(ns) => format!("all was on the disk after {}", long_time(ns as f64)),
        None if view.series("copy.durable_bytes").is_none() => {
            "when it was on the disk was not counted".to_owned()
        }
        None => {
            let left = report.written_bytes.saturating_sub(report.durable_bytes);
            format!("{} were not seen to reach the disk", Bytes(left))
        }
    };
    match said {
        Some(said) => format!("{said}; {safe}."),
        None => format!("{}.", capital(&safe)),
    }
}

/// `The cache was kept: 0 B of 2.1 GiB dropped.`
fn cache_line(report: &CopyReport) -> Option<String> {
    let (dropped, before) = (report.cache_dropped_bytes?, report.cache_before_bytes?);
    if before == 0 {
        return None;
    }
    let share = dropped as f64 / before as f64;
    let what = if share < KEPT_BELOW {
        "The cache was kept"
    } else if share < TURNED_OVER_FROM {
        "A part of the cache was dropped"
    } else {
        "The cache was turned over"
    };
    let of = format!("{} of file pages were taken back", Bytes(dropped));
    let cached = Bytes(before);
    Some(if share > 1.0 {
        format!("{what}: {of}, more than was cached before ({cached}), so what it copied too.")
    } else {
        format!("{what}: {of}, {} of what was cached ({cached}).", percent(share))
    })
}

fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

#[cfg(test)]
mod tests;

//! "Is it the disk?": the sentence that every verdict has where a disk could be involved.
//!
//! The device that took most time for requests is looked at: how long the subject waited, for what
//! share of the time the device was occupied, and its median and 99th percentile beside those of
//! the newest kept survey of this machine. Those were measured with small random reads, one at a
//! time, so only small requests of a device that is not occupied are compared with them.

use super::device::{self, Direction, Traffic};
use super::{LEAST_SHARE, RunView};
use crate::recording::who::quantity::Quantity;
use crate::recording::witness;
use crate::wording::{long_time, percent, survey_path};
use model::duration::show_ns;
use model::explanation::{Cause, DiskState, DiskVerdict, TimeSlice};
use model::recording::{ProcessFigure as Figure, SurveyedDevice};
use model::{Bytes, Evidence};
use std::collections::BTreeMap;

/// Occupied for this share of the time it is busy. Picked: a request then mostly meets another.
const BUSY_SHARE: f64 = 0.8;

/// Slower than this many times the survey's latency is slow. Picked: the median of one healthy disk
/// was seen at 1.3 times its survey under load.
const SLOW_TIMES: f64 = 3.0;

/// Larger requests spend their time in transfer. Picked.
const SMALL_BYTES: f64 = 65_536.0;

/// The finding of limits that hold requests back before they reach the device.
const LIMIT: &str = "io_limit";

/// What all threads of a machine waited.
const MACHINE_WAIT: &str = "trace.sched.block_io_ns";

/// The answer; `None` where nothing waited and no device was recorded.
pub(super) fn verdict(run: &RunView, findings: &[Cause]) -> Option<DiskVerdict> {
    let waited_ns = waited_ns(run);
    let Some(device) = busiest(run) else {
        return without_device(run, waited_ns);
    };
    let occupied = occupied_share(run, &device);
    let waited = waited_words(waited_ns);
    let traffic: Vec<(Direction, Traffic)> = [Direction::Read, Direction::Write]
        .into_iter()
        .filter_map(|way| Some((way, device::traffic(run, &device, way)?)))
        .collect();
    let place = traffic.iter().find_map(|(_, traffic)| traffic.mount);
    let name = place.map_or(device.clone(), |mount| format!("{device} ({mount})"));
    let requests = requests(&traffic);
    let use_words = occupied.map_or(requests.clone(), |share| {
        format!("occupied {} of the time, {requests}", percent(share))
    });
    let mut evidence = evidence(run, &device, occupied, &traffic);
    let is_used = occupied.is_some_and(|share| share >= BUSY_SHARE);
    let is_waited_for = waited_ns.is_some_and(|ns| run.hurts(ns));
    let is_involved = is_waited_for || (waited_ns.is_none() && is_used);
    if !is_involved {
        let is_watched = witness::watched(run, "reads_from_device", None).is_ok();
        let (state, answer) = if is_watched {
            (DiskState::NotInvolved, "Not the disk")
        } else {
            (DiskState::Unseen, "Whether it is the disk was not seen all the time")
        };
        return Some(said(
            state,
            device,
            format!("{answer}: {waited}; {name} was {use_words}"),
            evidence,
        ));
    }
    let surveyed = run.facts().surveyed_devices.iter().find(|known| known.name == device);
    evidence.extend(surveyed.into_iter().flat_map(survey_evidence));
    let is_limited = findings.iter().any(|cause| cause.finding.id == LIMIT);
    let (state, judgement) = judged(&traffic, surveyed, is_used, is_limited, place);
    let mut text = format!("The disk: {waited}; {name} was {use_words}; {judgement}");
    text.push_str(&user(run).unwrap_or_default());
    Some(said(state, device, text, evidence))
}

fn said(state: DiskState, device: String, text: String, evidence: Vec<Evidence>) -> DiskVerdict {
    DiskVerdict { state, device, text, evidence }
}

fn without_device(run: &RunView, waited_ns: Option<u64>) -> Option<DiskVerdict> {
    let ns = waited_ns?;
    let is_recorded = run.starting_with("disk.").next().is_some();
    let (state, text) = if is_recorded {
        (DiskState::NotInvolved, "Not the disk: no request reached one".to_owned())
    } else if run.hurts(ns) {
        let waited = waited_words(waited_ns);
        (
            DiskState::Unseen,
            format!("Whether it is the disk was not seen: {waited}, and no device was recorded"),
        )
    } else {
        return None;
    };
    Some(said(state, String::new(), text, vec![wait_evidence(run, ns)]))
}

/// How long the subject waited for block I/O, if that is known.
fn waited_ns(run: &RunView) -> Option<u64> {
    if run.is_machine() {
        return run.sum(MACHINE_WAIT);
    }
    let mut slices = run.accounts.bars.thread.iter();
    slices.find(|slice| slice.name == TimeSlice::BlockIo).map(|slice| slice.ns)
}

fn waited_words(ns: Option<u64>) -> String {
    match ns {
        None => "how long threads waited is not known".to_owned(),
        Some(0) => "no thread waited for it".to_owned(),
        Some(ns) => format!("threads waited {} for block I/O", long_time(ns as f64)),
    }
}

fn wait_evidence(run: &RunView, ns: u64) -> Evidence {
    Evidence::time("waited for block I/O", ns, "accounting")
        .seen_in(run.slice_series(TimeSlice::BlockIo))
}

/// The device whose requests took most time; the one with a mount, of two of which one is below.
fn busiest(run: &RunView) -> Option<String> {
    let traffic =
        [Direction::Read, Direction::Write].into_iter().filter_map(|way| device::busiest(run, way));
    let taken = |t: &Traffic| t.mean_ns.unwrap_or(0.0) * t.requests as f64;
    let most = traffic.max_by(|a, b| taken(a).total_cmp(&taken(b)))?;
    Some(most.name)
}

/// The share of the time with a request in flight.
fn occupied_share(run: &RunView, device: &str) -> Option<f64> {
    let ns = run.growth(&format!("disk.{device}.io_ns"))?;
    let wall = run.wall_ns();
    (wall > 0).then(|| (ns as f64 / wall as f64).min(1.0))
}

/// `131,995 reads, p50 110 us, p99 410 us, and 5 writes`.
fn requests(traffic: &[(Direction, Traffic)]) -> String {
    let parts: Vec<String> = traffic
        .iter()
        .map(|(way, traffic)| {
            let noun = if *way == Direction::Read { "reads" } else { "writes" };
            let last = traffic.p99_ns.map(|ns| format!(", p99 {}", show_ns(ns)));
            format!("{}{}", traffic.description(noun), last.unwrap_or_default())
        })
        .collect();
    if parts.is_empty() { "no request".to_owned() } else { parts.join(", and ") }
}

fn evidence(
    run: &RunView,
    device: &str,
    occupied: Option<f64>,
    traffic: &[(Direction, Traffic)],
) -> Vec<Evidence> {
    let mut evidence: Vec<Evidence> =
        waited_ns(run).map(|ns| wait_evidence(run, ns)).into_iter().collect();
    let series = format!("disk.{device}.io_ns");
    evidence.extend(occupied.map(|share| {
        Evidence::new("occupied", share, "ratio", "/proc/diskstats").seen_in([series])
    }));
    for (_, traffic) in traffic {
        evidence.extend(traffic.evidence.iter().cloned());
    }
    evidence
}

fn survey_evidence(kept: &SurveyedDevice) -> Vec<Evidence> {
    let p50 = Evidence::new("surveyed p50", kept.p50_ns, "ns", "terrace survey");
    let p99 = kept.p99_ns.map(|ns| Evidence::new("surveyed p99", ns, "ns", "terrace survey"));
    std::iter::once(p50).chain(p99).collect()
}

/// What the device was, and why, as a clause.
fn judged(
    traffic: &[(Direction, Traffic)],
    surveyed: Option<&SurveyedDevice>,
    is_used: bool,
    is_limited: bool,
    place: Option<&str>,
) -> (DiskState, String) {
    if is_used {
        return (DiskState::Busy, "it is busy: requests wait for each other".to_owned());
    }
    if is_limited {
        let why =
            "it was not saturated: a limit of a group held requests back before they reached it";
        return (DiskState::Healthy, why.to_owned());
    }
    let read = traffic.iter().find(|(way, _)| *way == Direction::Read).map(|(_, read)| read);
    let Some((kept, read)) = surveyed.zip(read) else {
        let path = place.map_or("terrace survey".to_owned(), survey_path);
        let why = format!(
            "it was not saturated; what it does when idle is not kept ({path} measures it)"
        );
        return (DiskState::Uncompared, why);
    };
    let is_comparable = read.request_bytes() <= SMALL_BYTES && kept.p50_ns > 0.0;
    let Some(latency) = read.p50_ns.or(read.mean_ns).filter(|_| is_comparable) else {
        let size = Bytes(read.request_bytes() as u64);
        let why =
            format!("it was not saturated; reads of {size} are not compared with the survey's");
        return (DiskState::Uncompared, why);
    };
    let beside = format!("beside {} in the kept survey", kept_words(kept));
    if latency > kept.p50_ns * SLOW_TIMES {
        (DiskState::Slow, format!("it is slow, {beside}"))
    } else {
        (DiskState::Healthy, format!("it is healthy, {beside}"))
    }
}

/// `p50 52 us, p99 310 us`.
fn kept_words(kept: &SurveyedDevice) -> String {
    let last = kept.p99_ns.map(|ns| format!(", p99 {}", show_ns(ns)));
    format!("p50 {}{}", show_ns(kept.p50_ns), last.unwrap_or_default())
}

/// `; postgres had 94 % of the bytes read`: the program whose processes used devices most.
fn user(run: &RunView) -> Option<String> {
    let of = |quantity: Quantity| {
        let mut used: BTreeMap<&str, u64> = BTreeMap::new();
        for sum in run.process_sums().iter().filter(|sum| !sum.process.is_kernel) {
            let own = used.entry(&sum.process.name).or_default();
            *own = own.saturating_add(quantity.of(sum).value);
        }
        let all = used.values().fold(0, |sum: u64, value| sum.saturating_add(*value));
        let (name, most) = used.into_iter().max_by_key(|(_, value)| *value)?;
        (all > 0).then(|| (most as f64 / all as f64, name.to_owned(), quantity))
    };
    let ways = [Quantity::Figure(Figure::ReadBytes), Quantity::Figure(Figure::WrittenBytes)];
    let (share, name, quantity) = ways.into_iter().find_map(of)?;
    let whole = quantity.whole_in_words();
    (share >= LEAST_SHARE).then(|| format!("; {name} had {} of {whole}", percent(share)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_latency_is_said_with_its_tail() {
        let kept = SurveyedDevice {
            name: "vda".to_owned(),
            p50_ns: 52_000.0,
            p99_ns: Some(310_000.0),
            surveyed_unix_s: 0,
        };
        assert_eq!(kept_words(&kept), "p50 52 us, p99 310 us");
    }
}

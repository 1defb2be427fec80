//! Parts by kernel events: what threads slept for by the stack at the switch, and how long
//! reclaim and its kind took from their begin to their end.

use super::{Part, Parts};
use crate::recording::accounting::bar::{count, time};
use crate::recording::accounting::threads::TASKSTATS;
use model::explanation::{TimePart, TimeSlice};
use model::{Evidence, Grade};

/// Waits in block I/O by what the stack says: part, and the class in the series' name.
const BLOCK_IO: [(TimePart, &str); 7] = [
    (TimePart::BlockRead, "read"),
    (TimePart::BlockWrite, "write"),
    (TimePart::DirtyThrottle, "dirty"),
    (TimePart::Flush, "flush"),
    (TimePart::SwapIn, "swap_in"),
    (TimePart::DirectIo, "direct"),
    (TimePart::BlockOther, "other"),
];

/// Other sleep in the same way; `flush` and `reclaim_throttle` have waits elsewhere too
/// and are told with those.
const SLEEP: [(TimePart, &str); 11] = [
    (TimePart::Timer, "timer"),
    (TimePart::Lock, "lock"),
    (TimePart::Pipe, "pipe"),
    (TimePart::Socket, "socket"),
    (TimePart::Poll, "poll"),
    (TimePart::Signal, "signal"),
    (TimePart::FileLock, "file_lock"),
    (TimePart::FileSystem, "file"),
    (TimePart::Fault, "fault"),
    (TimePart::KernelWait, "kernel"),
    (TimePart::OtherWait, "unknown"),
];

/// What the waits for block I/O were for.
pub(super) fn block_io(parts: &mut Parts) {
    let grade = grade(parts);
    for (name, class) in BLOCK_IO {
        let mut within = TimeSlice::BlockIo;
        let series = format!("trace.block_io.{class}_ns");
        let Some(mut ns) = parts.view.sum(&series) else {
            continue;
        };
        let mut evidence = vec![time_evidence(parts, &series, ns)];
        // A flush waits for the device, and for the journal, which waits for the device.
        let journal = parts.view.sum("trace.sleep.flush_ns").unwrap_or(0);
        if class == "flush" && journal > 0 && parts.slice(TimeSlice::Sleep).is_some() {
            evidence.push(time_evidence(parts, "trace.sleep.flush_ns", journal));
            within = if journal > ns { TimeSlice::Sleep } else { within };
            ns = ns.saturating_add(journal);
        }
        let waits = match class {
            "dirty" => parts.view.sum(DIRTY_WAITS),
            "swap_in" => parts.swap_ins(),
            _ => None,
        };
        evidence.extend(waits.map(|waits| {
            let (series, source) = match class {
                "dirty" => (DIRTY_WAITS, parts.view.source(DIRTY_WAITS)),
                _ => ("vmstat.pswpin", TASKSTATS),
            };
            count("waits", waits, source).seen_in([series])
        }));
        parts.add(Part { name, within, ns, count: waits, grade, evidence });
    }
}

const DIRTY_WAITS: &str = "trace.writeback.dirty_waits";

/// What threads did for memory: each is timed by its own pair of events, which are open or
/// not whatever the switch events are.
pub(super) fn memory(parts: &mut Parts) {
    for (name, within, sum, times) in [
        (
            TimePart::DirectReclaim,
            TimeSlice::Run,
            "trace.vmscan.direct_reclaim_ns",
            "trace.vmscan.direct_reclaims",
        ),
        (
            TimePart::ReclaimThrottle,
            TimeSlice::Sleep,
            "trace.vmscan.throttled_ns",
            "trace.vmscan.throttles",
        ),
        (
            TimePart::Compaction,
            TimeSlice::Run,
            "trace.vmscan.compaction_ns",
            "trace.vmscan.compactions",
        ),
        (TimePart::DirtyThrottle, TimeSlice::BlockIo, "trace.writeback.dirty_wait_ns", DIRTY_WAITS),
    ] {
        let Some(ns) = parts.view.sum(sum) else {
            continue;
        };
        let count = parts.view.sum(times);
        let mut evidence = vec![time_evidence(parts, sum, ns)];
        evidence.extend(count.map(|times_seen| count_evidence(parts, times, times_seen)));
        let grade = grade(parts);
        parts.add(Part { name, within, ns, count, grade, evidence });
    }
}

/// What the other sleep was for.
pub(super) fn sleep(parts: &mut Parts) {
    let grade = grade(parts);
    let reclaim = [(TimePart::ReclaimThrottle, "reclaim"), (TimePart::Flush, "flush")];
    for (name, class) in SLEEP.into_iter().chain(reclaim) {
        let series = format!("trace.sleep.{class}_ns");
        let Some(ns) = parts.view.sum(&series) else {
            continue;
        };
        let evidence = vec![time_evidence(parts, &series, ns)];
        parts.add(Part { name, within: TimeSlice::Sleep, ns, count: None, grade, evidence });
    }
}

fn grade(parts: &Parts) -> Grade {
    if parts.sources.events_lost { Grade::Inferred } else { Grade::Measured }
}

fn time_evidence(parts: &Parts, name: &str, ns: u64) -> Evidence {
    time(name, ns, parts.view.source(name))
}

fn count_evidence(parts: &Parts, name: &str, seen: u64) -> Evidence {
    count(name, seen, parts.view.source(name))
}

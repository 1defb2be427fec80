//! Parts by kernel events: what threads slept for by the stack at the switch, and how long
//! reclaim and its kind took from their begin to their end.

use super::{Part, Parts};
use crate::recording::accounting::threads::TASKSTATS;
use model::explanation::{TimePart, TimeSlice};
use model::{Evidence, Grade};

/// Waits in block I/O by what the stack says: part, and the class in the series' name.
const BLOCK_IO: [(TimePart, &str); 11] = [
    (TimePart::BlockRead, "read"),
    (TimePart::BlockWrite, "write"),
    (TimePart::DirtyThrottle, "dirty"),
    (TimePart::Flush, "flush"),
    (TimePart::SwapIn, "swap_in"),
    (TimePart::DirectIo, "direct"),
    (TimePart::BlockMetadata, "metadata"),
    (TimePart::BlockJournal, "journal"),
    (TimePart::WritebackWait, "writeback"),
    (TimePart::LowerDevice, "lower"),
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

const DIRTY_WAITS: &str = "trace.writeback.dirty_waits";
const JOURNAL_FLUSH: &str = "trace.sleep.flush_ns";

/// What threads did for memory: part, where most of it lies, its time, and how many times.
const MEMORY: [(TimePart, TimeSlice, [&str; 2]); 4] = [
    (
        TimePart::DirectReclaim,
        TimeSlice::Run,
        ["trace.vmscan.direct_reclaim_ns", "trace.vmscan.direct_reclaims"],
    ),
    (
        TimePart::ReclaimThrottle,
        TimeSlice::Sleep,
        ["trace.vmscan.throttled_ns", "trace.vmscan.throttles"],
    ),
    (
        TimePart::Compaction,
        TimeSlice::Run,
        ["trace.vmscan.compaction_ns", "trace.vmscan.compactions"],
    ),
    (TimePart::DirtyThrottle, TimeSlice::BlockIo, ["trace.writeback.dirty_wait_ns", DIRTY_WAITS]),
];

/// From this share of all waits on whose class is a sample, a class is a conclusion. Picked:
/// half of them.
const MOSTLY_SAMPLED: f64 = 0.5;

/// How the classes of waits are known, and what to say where a part of them is a sample: only
/// one in several short waits of a thread is looked at, and the others count as that one.
fn classes(parts: &Parts) -> (Grade, Option<Evidence>) {
    const SAMPLED: &str = "trace.sched.sampled_ns";
    let (view, grade) = (parts.view, parts.sources.events_grade());
    let sum = |name: &str| view.sum(name).unwrap_or(0);
    let waits = sum("trace.sched.block_io_ns").saturating_add(sum("trace.sched.sleep_ns"));
    let sampled = sum(SAMPLED);
    if sampled == 0 || waits == 0 {
        return (grade, None);
    }
    let share = (sampled as f64 / waits as f64).min(1.0);
    let grade = if share > MOSTLY_SAMPLED { Grade::Inferred } else { grade };
    let name = "of all waits, short ones whose class is a sample";
    let evidence = Evidence::new(name, share, "ratio", view.source(SAMPLED)).seen_in([SAMPLED]);
    (grade, Some(evidence))
}

/// What the waits for block I/O were for.
pub(super) fn block_io(parts: &mut Parts) {
    let (view, (grade, sampled)) = (parts.view, classes(parts));
    for (name, class) in BLOCK_IO {
        let series = format!("trace.block_io.{class}_ns");
        let Some(mut ns) = view.sum(&series) else {
            continue;
        };
        let mut within = TimeSlice::BlockIo;
        let mut evidence = vec![Evidence::time(&series, ns, view.source(&series))];
        let mut waits = None;
        match name {
            // A flush waits for the device, and for the journal, which waits for the device.
            TimePart::Flush => {
                let journal = view.sum(JOURNAL_FLUSH).unwrap_or(0);
                if journal > 0 && parts.slice(TimeSlice::Sleep).is_some() {
                    let source = view.source(JOURNAL_FLUSH);
                    evidence.push(Evidence::time(JOURNAL_FLUSH, journal, source));
                    within = if journal > ns { TimeSlice::Sleep } else { within };
                    ns = ns.saturating_add(journal);
                }
            }
            TimePart::DirtyThrottle => {
                waits = view.sum(DIRTY_WAITS);
                let source = view.source(DIRTY_WAITS);
                let counted = waits.map(|waits| Evidence::count("waits", waits, source));
                evidence.extend(counted.map(|counted| counted.seen_in([DIRTY_WAITS])));
            }
            // How many pages were read back from swap is known by the rows.
            TimePart::SwapIn => {
                let charged = parts.sources.rows.as_ref().and_then(|rows| rows.swap_in);
                waits = charged.map(|charged| charged.count);
                let counted = waits.map(|waits| Evidence::count("waits", waits, TASKSTATS));
                evidence.extend(counted.map(|counted| counted.seen_in(["vmstat.pswpin"])));
            }
            _ => {}
        }
        evidence.extend(sampled.clone());
        parts.add(Part::new(name, within, ns, grade, evidence).counted(waits));
    }
}

/// What threads did for memory: each is timed by its own pair of events, which are open or
/// not whatever the switch events are.
pub(super) fn memory(parts: &mut Parts) {
    let (view, grade) = (parts.view, parts.sources.events_grade());
    for (name, within, [time, times]) in MEMORY {
        let Some(ns) = view.sum(time) else {
            continue;
        };
        let count = view.sum(times);
        let mut evidence = vec![Evidence::time(time, ns, view.source(time))];
        evidence.extend(count.map(|count| Evidence::count(times, count, view.source(times))));
        parts.add(Part::new(name, within, ns, grade, evidence).counted(count));
    }
}

/// What the other sleep was for.
pub(super) fn sleep(parts: &mut Parts) {
    let (view, (grade, sampled)) = (parts.view, classes(parts));
    let elsewhere_too = [(TimePart::ReclaimThrottle, "reclaim"), (TimePart::Flush, "flush")];
    for (name, class) in SLEEP.into_iter().chain(elsewhere_too) {
        let series = format!("trace.sleep.{class}_ns");
        if let Some(ns) = view.sum(&series) {
            let mut evidence = vec![Evidence::time(&series, ns, view.source(&series))];
            evidence.extend(sampled.clone());
            parts.add(Part::new(name, TimeSlice::Sleep, ns, grade, evidence));
        }
    }
}

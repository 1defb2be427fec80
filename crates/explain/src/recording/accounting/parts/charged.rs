//! Parts by the rows of delay accounting: memory work that the kernel charged to threads.
//! Waits for devices are not here: the rows have one number for all of them.

use super::{Part, Parts};
use crate::recording::accounting::rows::{Charged, Rows};
use crate::recording::accounting::threads::TASKSTATS;
use model::explanation::{TimePart, TimeSlice};
use model::{Evidence, Grade};

/// The series that moves with whatever a fault without I/O is charged for.
const FAULTS: [&str; 1] = ["tree.minor_faults"];

/// What the rows say of memory. Swap-in here is the time to submit the reads, their wait
/// lies in block I/O; thrashing knows only some refaults, so it is a lower bound.
pub(super) fn memory(parts: &mut Parts) {
    let Some(rows) = &parts.sources.rows else {
        return;
    };
    for (name, within, what, series, charged, grade) in [
        (
            TimePart::DirectReclaim,
            TimeSlice::Run,
            "freepages_delay_total",
            &["vmstat.pgscan_direct"][..],
            rows.reclaim,
            Grade::Measured,
        ),
        (
            TimePart::Compaction,
            TimeSlice::Run,
            "compact_delay_total",
            &["vmstat.compact_stall"],
            rows.compact,
            Grade::Measured,
        ),
        (
            TimePart::CopyOnWrite,
            TimeSlice::Run,
            "wpcopy_delay_total",
            &FAULTS,
            rows.copy_on_write,
            Grade::Measured,
        ),
        (
            TimePart::Interrupts,
            TimeSlice::Run,
            "irq_delay_total",
            &["stat.cpu.irq_ns", "stat.cpu.softirq_ns"],
            rows.interrupts,
            Grade::Measured,
        ),
        (
            TimePart::SwapIn,
            TimeSlice::Run,
            "swapin_delay_total (submission; the wait is in block I/O)",
            &["vmstat.pswpin"],
            rows.swap_in,
            Grade::Inferred,
        ),
        (
            TimePart::Refault,
            TimeSlice::BlockIo,
            "thrashing_delay_total (a lower bound)",
            &["vmstat.workingset_refault_file", "vmstat.workingset_refault_anon"],
            rows.thrash,
            Grade::Inferred,
        ),
    ] {
        let Some(charged) = charged else { continue };
        if name == TimePart::CopyOnWrite && count_sampled(parts, name, charged) {
            continue;
        }
        parts.add(
            Part::new(name, within, charged.ns, grade, evidence_of(what, charged, series))
                .counted(Some(charged.count)),
        );
    }
    first_touch(parts, rows);
}

/// Gives a part whose time was sampled the number of times that the rows know. Returns whether
/// there is such a part.
fn count_sampled(parts: &mut Parts, name: TimePart, charged: Charged) -> bool {
    let Some(part) = parts.parts.iter_mut().find(|part| part.name == name) else {
        return false;
    };
    part.count = Some(charged.count);
    let copies = Evidence::count("write-protect copies", charged.count, TASKSTATS);
    part.evidence.push(copies.seen_in(FAULTS));
    true
}

fn evidence_of(what: &str, charged: Charged, series: &[&str]) -> Vec<Evidence> {
    vec![
        Evidence::time(what, charged.ns, TASKSTATS).seen_in(series),
        Evidence::count("waits", charged.count, TASKSTATS).seen_in(series),
    ]
}

/// Faults without I/O: how many is counted, the time of first touches among them only where
/// processors were sampled.
fn first_touch(parts: &mut Parts, rows: &Rows) {
    let faults = Evidence::count("minor faults", rows.minor_faults, TASKSTATS).seen_in(FAULTS);
    let counted = Some(rows.minor_faults);
    let mut known = parts.parts.iter_mut();
    if let Some(sampled) = known.find(|part| part.name == TimePart::FirstTouch) {
        sampled.count = counted;
        sampled.evidence.push(faults);
        return;
    }
    parts.add(
        Part::new(TimePart::FirstTouch, TimeSlice::Run, 0, Grade::Inferred, [faults])
            .counted(counted),
    );
}

//! Parts by the rows of delay accounting: memory work that the kernel charged to threads.
//! Waits for devices are not here: the rows have one number for all of them.

use super::{Part, Parts};
use crate::recording::accounting::rows::{Charged, Rows};
use crate::recording::accounting::threads::TASKSTATS;
use model::explanation::{TimePart, TimeSlice};
use model::{Evidence, Grade};

/// Copies below this number give no mean that other faults may be judged by.
const ENOUGH_COPIES: u64 = 100;

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
        parts.add(
            Part::new(name, within, charged.ns, grade, evidence_of(what, charged, series))
                .counted(Some(charged.count)),
        );
    }
    first_touch(parts, rows);
}

fn evidence_of(what: &str, charged: Charged, series: &[&str]) -> Vec<Evidence> {
    vec![
        Evidence::time(what, charged.ns, TASKSTATS).seen_in(series),
        Evidence::count("waits", charged.count, TASKSTATS).seen_in(series),
    ]
}

/// Faults without I/O: how many is counted. Their time is not; where enough pages were
/// copied at a known cost, it is guessed that the others cost as much.
fn first_touch(parts: &mut Parts, rows: &Rows) {
    let copies = rows.copy_on_write.unwrap_or_default();
    let others = rows.minor_faults.saturating_sub(copies.count);
    let faults = Evidence::count("minor faults", rows.minor_faults, TASKSTATS);
    let mut evidence = vec![faults.seen_in(FAULTS)];
    let mut ns = 0;
    if copies.count >= ENOUGH_COPIES {
        let each = u128::from(copies.ns) * u128::from(others) / u128::from(copies.count);
        let kernel = parts.parts.iter().find(|part| part.name == TimePart::Kernel);
        let kernel_ns = kernel.map_or(u64::MAX, |part| part.ns);
        ns = u64::try_from(each).unwrap_or(u64::MAX).min(kernel_ns);
        evidence.push(Evidence::time("wpcopy_delay_total", copies.ns, TASKSTATS).seen_in(FAULTS));
        let copied = Evidence::count("write-protect copies", copies.count, TASKSTATS);
        evidence.push(copied.seen_in(FAULTS));
    }
    parts.add(
        Part::new(TimePart::FirstTouch, TimeSlice::Run, ns, Grade::Inferred, evidence)
            .counted(Some(rows.minor_faults)),
    );
}

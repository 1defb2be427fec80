//! What page faults on new memory may have cost: the kernel time of the subject beside its
//! count of faults.
//!
//! Nothing counts this time directly without an event for each fault, so it is an estimate
//! from what a fault usually costs, never more than the kernel time that was measured.

use super::RunView;
use model::Evidence;
use model::explanation::TimePart;

/// What a fault usually costs. Picked: 0.3 us on bare metal, 1 to 3 us in a guest.
pub(super) const USUAL_FAULT_NS: u64 = 1_000;

/// What a huge page's fault usually costs: clearing 2 MiB at 20 to 40 GB/s.
pub(super) const USUAL_HUGE_FAULT_NS: u64 = 60_000;

/// A guess beyond this many times the usual price is not believed. Picked.
const MOST_TIMES_USUAL: u64 = 2;

/// The faults of a subject and the kernel time that they may be part of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touched {
    /// Faults without I/O.
    pub(super) faults: u64,
    /// Kernel time, all of it.
    pub(super) kernel_ns: u64,
    /// The estimate.
    pub(super) ns: u64,
}

impl Touched {
    /// The faults as evidence.
    pub(super) fn evidence(&self) -> Evidence {
        let faults = self.faults as f64;
        Evidence::new("minor faults", faults, "count", "/proc/PID/stat")
            .seen_in(["tree.minor_faults"])
    }
}

/// The faults of the subject; `None` where they or the kernel time are not known.
pub(super) fn touched(run: &RunView) -> Option<Touched> {
    let faults = run.minor_faults()?;
    let kernel_ns = run.kernel_ns()?;
    let huge = run.growth("vmstat.thp_fault_alloc").unwrap_or(0).min(faults);
    let small = faults - huge;
    let usual = small
        .saturating_mul(USUAL_FAULT_NS)
        .saturating_add(huge.saturating_mul(USUAL_HUGE_FAULT_NS));
    // Guessed from the faults that copy, which wait for a processor now and then.
    let part_ns = run
        .part_ns(TimePart::FirstTouch)
        .filter(|ns| *ns > 0)
        .map(|ns| ns.min(usual.saturating_mul(MOST_TIMES_USUAL)));
    Some(Touched { faults, kernel_ns, ns: part_ns.unwrap_or(usual).min(kernel_ns) })
}

/// How much more memory the subject held than at its start, at the most that was seen.
pub(super) fn grown_bytes(run: &RunView) -> u64 {
    let rise = |name: &str| {
        let start = run.at_start(name).unwrap_or(0);
        let most = run.max(name).unwrap_or(start);
        u64::try_from(most.saturating_sub(start)).unwrap_or(0)
    };
    let largest = run.usage().map_or(0, |usage| usage.max_rss_bytes);
    rise("tree.rss_bytes").max(largest)
}

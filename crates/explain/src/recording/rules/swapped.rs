//! How many pages went to swap and came back, with zero pages apart, and what share of
//! the memory that was freed went there.
//!
//! Pages of zeros never reach the device on kernels from 6.12 on; they have counters of
//! their own and are not among `pswpin` and `pswpout`.

use super::RunView;
use super::run_view::ratio;
use model::Evidence;
use model::explanation::TimePart;

/// Pages by where they went.
#[derive(Clone, Debug, Default)]
pub(super) struct Swapped {
    /// Read from swap.
    pub(super) ins: u64,
    /// Written to swap.
    pub(super) outs: u64,
    /// Zeros that came back without I/O.
    pub(super) zero_ins: u64,
    /// Zeros that went without I/O.
    pub(super) zero_outs: u64,
    /// The counters that moved.
    pub(super) evidence: Vec<Evidence>,
    /// The counter that clears, moved or not.
    pub(super) clearing: Option<Evidence>,
}

impl Swapped {
    /// The share of zeros in what came back, 0 to 1.
    pub(super) fn zeros_in(&self) -> f64 {
        ratio(self.zero_ins as f64, self.zero_ins.saturating_add(self.ins) as f64)
    }
}

/// The counts of the subject's group where it has them, else of the machine.
pub(super) fn swapped(run: &RunView) -> Option<Swapped> {
    let of_group = "group0.memory.stat.";
    let has_group = !run.is_machine()
        && run.growth(&format!("{of_group}pswpin")).is_some()
        && run.growth(&format!("{of_group}pswpout")).is_some();
    let base = if has_group { of_group } else { "vmstat." };
    let named = |what: &str| format!("{base}{what}");
    // Zero pages have no counters in older groups; the machine's are the nearest.
    let zero = |what: &str| {
        let own = named(what);
        if run.growth(&own).is_some() { own } else { format!("vmstat.{what}") }
    };
    let (ins, outs) = (named("pswpin"), named("pswpout"));
    let (zero_ins, zero_outs) = (zero("swpin_zero"), zero("swpout_zero"));
    let grown = |name: &str| run.growth(name).unwrap_or(0);
    run.growth(&ins).or(run.growth(&outs))?;
    Some(Swapped {
        ins: grown(&ins),
        outs: grown(&outs),
        zero_ins: grown(&zero_ins),
        zero_outs: grown(&zero_outs),
        evidence: run.all_grown(&[&ins, &outs, &zero_ins, &zero_outs]),
        clearing: run.grown(&outs).or_else(|| run.grown(&ins)),
    })
}

/// The share of the freed pages that were anonymous, thus swapped rather than dropped.
pub(super) fn anonymous_share(run: &RunView) -> f64 {
    let own = "group0.memory.stat.";
    let anonymous = run.growth("vmstat.pgsteal_anon");
    let file = run.growth("vmstat.pgsteal_file");
    let of_own = |name: &str| {
        let is_own = !run.is_machine();
        is_own.then(|| run.growth(&format!("{own}{name}"))).flatten()
    };
    let anonymous = of_own("pgsteal_anon").or(anonymous);
    let file = of_own("pgsteal_file").or(file);
    match (anonymous, file) {
        (Some(anonymous), Some(file)) => {
            ratio(anonymous as f64, anonymous.saturating_add(file) as f64)
        }
        // Nothing says what else was freed.
        _ => 1.0,
    }
}

/// The waits of threads that freed memory for themselves: reclaim, its throttling in it.
pub(super) fn reclaim_ns(run: &RunView) -> Option<u64> {
    let direct = run.part_ns(TimePart::DirectReclaim);
    direct.max(run.part_ns(TimePart::ReclaimThrottle))
}

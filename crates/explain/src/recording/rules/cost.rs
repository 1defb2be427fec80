//! What a suspect cost at most that is cleared by a count: so many swapped pages are innocent only
//! because they were back soon.

use super::refaults::refaults;
use super::swapped::swapped;
use super::{RunView, cpu_limit, swapping};
use model::explanation::TimePart;

/// The time that the count of this rule stands for, if it is known.
pub(super) fn cost_ns(run: &RunView, rule: &str) -> Option<u64> {
    match rule {
        "swapping" => {
            // Without it the wait is not known, and not nothing.
            run.part_ns(TimePart::SwapIn)?;
            Some(swapping::wait(run, &swapped(run)?).0)
        }
        "cache_too_small" | "cache_evicted_by_stream" => Some(refaults(run)?.ns),
        "reclaim_direct" => run.part_ns(TimePart::DirectReclaim),
        "compaction" => run.part_ns(TimePart::Compaction),
        "cpu_limit" if !run.is_machine() => Some(cpu_limit::stopped_ns(run, "group0.cpu")),
        _ => None,
    }
}

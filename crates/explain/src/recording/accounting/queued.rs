//! How long threads can have waited for a processor at most, by what the machine did meanwhile.
//!
//! A thread is in the queue only while some processor works and others could use it. The time
//! that the kernel charges for it is counted from a stamp of when the thread became ready, and
//! that stamp can be wrong: one that slept for a second on an idle machine was charged 999 ms.

use super::sampled::SampleStep;
use crate::recording::View;

/// What a reading may miss: two of the ticks of 10 ms in which /proc/stat tells idle time.
const COARSE_NS: u64 = 20_000_000;

/// The most time that all threads of a step together can have been in the queue.
pub(super) fn most_ns(view: &View, step: &SampleStep) -> u64 {
    contended_ns(view, step).saturating_mul(step.threads)
}

/// The same of one thread and all of the view.
pub(super) fn longest_ns(view: &View) -> u64 {
    let (first, last) = view.samples();
    let whole = SampleStep { first, last, length_ns: view.wall_ns(), threads: 1 };
    contended_ns(view, &whole)
}

/// For how long there can have been a queue anywhere. No bound if the idle time was not
/// counted, or a limit of a group held threads in the queue.
fn contended_ns(view: &View, step: &SampleStep) -> u64 {
    let counted = (!is_limited(view)).then(|| counted_ns(view, step));
    counted.flatten().unwrap_or(u64::MAX)
}

fn counted_ns(view: &View, step: &SampleStep) -> Option<u64> {
    let processors = view.facts().machine.as_ref()?.online_cpus;
    let capacity_ns = step.length_ns.saturating_mul(processors.into());
    let grew = |name: &str| view.series(name)?.growth(step.first, step.last);
    let working_ns = grew("stat.cpu.idle_ns").map(|idle| {
        let waiting = grew("stat.cpu.iowait_ns").unwrap_or(0);
        capacity_ns.saturating_sub(idle.saturating_add(waiting))
    });
    // The kernel weighs the queue of each processor by the time that it worked, which is no less
    // than its queue and, for all of them, no more than the capacity.
    let pressed_ns =
        grew("pressure.cpu.some_ns").map(|some| (some as f64 * capacity_ns as f64).sqrt() as u64);
    let least = [working_ns, pressed_ns].into_iter().flatten().min()?;
    Some(least.saturating_add(COARSE_NS))
}

fn is_limited(view: &View) -> bool {
    let groups = view.starting_with("group");
    let mut throttled = groups.filter(|series| series.schema.name.ends_with(".cpu.throttled_ns"));
    throttled.any(|series| view.growth(&series.schema.name) > Some(0))
}

//! What the command waited for while all of its threads were asleep.
//!
//! The wall bar says how long that was, the classes of the stacks say on what the threads
//! slept; a class has the share of that time which it has of all sleep. A pool of idle
//! threads beside one that works is thus no cause: nobody was kept from working.

use super::run_view::{needs_events, part_of, ratio};
use super::{RunVerdict, RunView};
use crate::verdict::NoFinding;
use crate::wording::{long_time, percent};
use model::Evidence;
use model::explanation::{Cause, TimePart, TimeSlice};

/// The classes of sleep among the parts of the bars.
const CLASSES: [TimePart; 12] = [
    TimePart::Timer,
    TimePart::Socket,
    TimePart::Pipe,
    TimePart::Poll,
    TimePart::Lock,
    TimePart::FileLock,
    TimePart::FileSystem,
    TimePart::Signal,
    TimePart::ReclaimThrottle,
    TimePart::Fault,
    TimePart::KernelWait,
    TimePart::OtherWait,
];

/// What to look at where a timer is the cause.
const TIMER_REMEDY: &str = "Look for sleeps and for polling with pauses. \
                            Risk: without its pauses it may load what it polls.";

/// Finds the class as a cause if it kept the command from running: `All threads slept 3 s` and
/// `on` (`on a timer`).
pub(super) fn judge(run: &RunView, class: TimePart, on: &str) -> RunVerdict {
    if run.is_machine() {
        // Threads of a whole machine sleep nearly always, and keep nothing from running.
        return Err(NoFinding::Nothing);
    }
    let Some(class_ns) = run.part_ns(class) else {
        return unseen_or_silent(run);
    };
    let ns = match class {
        TimePart::Pipe => asleep_in_pipes_ns(run, class_ns),
        _ => asleep_ns(run, class_ns),
    };
    if !run.hurts_asleep(ns) {
        let evidence = Evidence::time(format!("all asleep {on}"), ns, "events");
        return Err(NoFinding::Cleared(evidence.seen_in(run.part_series(class))));
    }
    let asleep_ns = run.accounts.wall(TimeSlice::Sleep);
    let asleep =
        Evidence::time("all threads asleep", asleep_ns, "events").seen_in(["trace.wall.asleep_ns"]);
    let claim = format!(
        "All threads slept {} {on} ({} of the time)",
        long_time(ns as f64),
        percent(ratio(ns as f64, run.wall_ns() as f64)),
    );
    let mut finding = run.part_finding(class, claim).and([asleep]);
    if class == TimePart::Timer {
        finding = finding.remedy(TIMER_REMEDY);
    }
    Ok(Cause::new(Some(ns), finding))
}

/// The class's share of the time in which all slept; never more than it slept itself.
pub(in crate::recording) fn asleep_ns(run: &RunView, class_ns: u64) -> u64 {
    share_of_asleep(run, class_ns, derived_ns(run))
}

/// The same for pipes, less what they only pass on.
fn asleep_in_pipes_ns(run: &RunView, pipe_ns: u64) -> u64 {
    let derived = derived_ns(run).min(pipe_ns);
    share_of_asleep(run, pipe_ns - derived, derived)
}

fn share_of_asleep(run: &RunView, class_ns: u64, derived_ns: u64) -> u64 {
    let all = CLASSES
        .iter()
        .filter_map(|class| run.part_ns(*class))
        .fold(0u64, u64::saturating_add)
        .max(run.accounts.thread(TimeSlice::Sleep))
        .saturating_sub(derived_ns);
    let share = ratio(class_ns as f64, all as f64);
    part_of(run.accounts.wall(TimeSlice::Sleep), share).min(class_ns)
}

/// Waits in pipes for a process of the subject that itself slept on something from outside:
/// in `sleep 3 | cat` both sleep, and the timer is the cause.
fn derived_ns(run: &RunView) -> u64 {
    let outside = [TimePart::Timer, TimePart::Socket, TimePart::FileLock]
        .iter()
        .filter_map(|class| run.part_ns(*class))
        .fold(0u64, u64::saturating_add);
    let pipe = run.part_ns(TimePart::Pipe).unwrap_or(0);
    let left = run.accounts.wall(TimeSlice::Sleep).saturating_sub(outside);
    pipe.saturating_sub(left)
}

/// Without events sleep has no name: that is worth telling only where there was much.
pub(super) fn unseen_or_silent(run: &RunView) -> RunVerdict {
    let accounts = run.accounts;
    let nameless =
        accounts.wall(TimeSlice::Unexplained).saturating_add(accounts.wall(TimeSlice::Sleep));
    if run.facts().sight("events.sched").is_open() || !run.hurts_asleep(nameless) {
        return Err(NoFinding::Nothing);
    }
    needs_events(run, "only events say what threads slept on")
}

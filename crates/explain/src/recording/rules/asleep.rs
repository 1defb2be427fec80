//! What the command waited for while all of its threads were asleep.
//!
//! The wall bar says how long that was, the classes of the stacks say on what the threads
//! slept; a class has the share of that time which it has of all sleep. A pool of idle
//! threads beside one that works is thus no cause: nobody was kept from working.

use super::cause::CauseBuilder;
use super::run_view::{clear, needs_events, part_of, ratio};
use super::{Rank, Rule, RunView, Verdict};
use crate::wording::{long_time, percent};
use model::Evidence;
use model::explanation::{TimePart, TimeSlice};

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

/// One class of sleep as a rule judges it.
#[derive(Clone, Copy, Debug)]
struct Class {
    /// The rule's id.
    id: &'static str,
    /// The part of the bars.
    part: TimePart,
    /// `All threads slept 3 s` goes on with this: `on a timer`.
    on: &'static str,
}

/// A rule of one row of the table below.
macro_rules! rule {
    ($id:literal, $suspect:literal, $part:expr, $on:literal $(, within $within:expr)?) => {{
        const CLASS: Class = Class {
            id: $id,
            part: $part,
            on: $on,
        };
        Rule {
            id: $id,
            suspect: $suspect,
            $(within: $within,)?
            check: |run| judge(run, &CLASS),
            ..DEFAULTS
        }
    }};
}

const DEFAULTS: Rule =
    Rule { id: "", suspect: "", within: &[], rank: Rank::Timed, check: |_| Verdict::Silent };

/// The command slept on purpose; a wait with a time limit counts where it waited.
pub(super) const TIMER_SLEEP: Rule = rule!("timer_sleep", "timers", TimePart::Timer, "on a timer");

/// The peer or the network between is slow; which one cannot be seen from here.
pub(super) const SOCKET_WAIT: Rule =
    rule!("socket_wait", "sockets", TimePart::Socket, "on a socket");

/// The process at the other end of a pipe is slow; its own findings say why.
pub(super) const PIPE_WAIT: Rule = rule!("pipe_wait", "pipes", TimePart::Pipe, "on a pipe");

/// poll, select or epoll; the stack does not say on which descriptor.
pub(super) const POLL_WAIT: Rule =
    rule!("poll_wait", "polling", TimePart::Poll, "in poll or epoll");

/// Another process held the lock; /proc/locks names it while it lasts, a recording does
/// not.
pub(super) const FILE_LOCK_WAIT: Rule =
    rule!("file_lock_wait", "file locks", TimePart::FileLock, "on a file lock");

/// The locks of the file system, room in its journal, or the server behind it. The cause
/// is mostly a write of another task; block I/O of the command itself is counted apart.
pub(super) const FILE_SYSTEM_WAIT: Rule = rule!(
    "file_system_wait",
    "the file system",
    TimePart::FileSystem,
    "inside the file system",
    within & ["dirty_throttle", "small_sync_writes", "writes_to_device"]
);

/// What to look at where a timer is the cause.
const TIMER_REMEDY: &str = "Look for sleeps and for polling with pauses. \
                            Risk: without its pauses it may load what it polls.";

/// Finds the class as a cause if it kept the command from running.
fn judge(run: &RunView, class: &Class) -> Verdict {
    if run.is_machine() {
        // Threads of a whole machine sleep nearly always, and keep nothing from running.
        return Verdict::Silent;
    }
    let Some(class_ns) = run.part_ns(class.part) else {
        return unseen_or_silent(run);
    };
    let ns = if class.part == TimePart::Pipe {
        asleep_in_pipes_ns(run, class_ns)
    } else {
        asleep_ns(run, class_ns)
    };
    if !run.hurts_asleep(ns) {
        let evidence = Evidence::new(format!("all asleep {}", class.on), ns as f64, "ns", "events")
            .seen_in(run.part_series(class.part));
        return clear(Some(evidence));
    }
    let wall = run.view.wall_ns();
    let mut evidence: Vec<Evidence> = run.part_evidence(class.part).into_iter().collect();
    let asleep = run.accounts.wall(TimeSlice::Sleep) as f64;
    let asleep = Evidence::new("all threads asleep", asleep, "ns", "events");
    evidence.push(asleep.seen_in(["trace.wall.asleep_ns"]));
    let claim = format!(
        "All threads slept {} {} ({} of the time)",
        long_time(ns as f64),
        class.on,
        percent(ratio(ns as f64, wall as f64)),
    );
    let grade = run.part_grade(class.part);
    let cause = CauseBuilder::new(class.id, Some(ns), grade, claim, evidence);
    if class.part == TimePart::Timer {
        return cause.remedy(TIMER_REMEDY).found();
    }
    cause.found()
}

/// The class's share of the time in which all slept; never more than it slept itself.
pub(super) fn asleep_ns(run: &RunView, class_ns: u64) -> u64 {
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
    let outside = [TimePart::Timer, TimePart::Socket, TimePart::FileLock];
    let outside = outside.iter().filter_map(|class| run.part_ns(*class));
    let outside = outside.fold(0u64, u64::saturating_add);
    let pipe = run.part_ns(TimePart::Pipe).unwrap_or(0);
    let left = run.accounts.wall(TimeSlice::Sleep).saturating_sub(outside);
    pipe.saturating_sub(left)
}

/// Without events sleep has no name: that is worth telling only where there was much.
pub(super) fn unseen_or_silent(run: &RunView) -> Verdict {
    let accounts = run.accounts;
    let nameless =
        accounts.wall(TimeSlice::Unexplained).saturating_add(accounts.wall(TimeSlice::Sleep));
    if run.view.facts().sight("events.sched").is_open() || !run.hurts_asleep(nameless) {
        return Verdict::Silent;
    }
    needs_events("what threads slept on is told by events only")
}

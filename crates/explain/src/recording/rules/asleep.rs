//! What the command waited for while all of its threads were asleep.
//!
//! The wall bar says how long that was, the classes of the stacks say on what the threads
//! slept; a class has the share of that time which it has of all sleep. A pool of idle
//! threads beside one that works is thus no cause: nobody was kept from working.

use super::accused::Accused;
use super::case::{clear, needs_events, part_of, ratio};
use super::{Case, Verdict};
use crate::wording::{long_time, percent};
use model::Evidence;

/// The classes of sleep among the parts of the bars.
const CLASSES: [&str; 12] = [
    "timer",
    "socket",
    "pipe",
    "poll",
    "lock",
    "file_lock",
    "file_system",
    "signal",
    "reclaim_throttle",
    "fault",
    "kernel_wait",
    "other_wait",
];

/// One class of sleep as a rule judges it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleeper {
    /// The rule's id.
    pub(super) id: &'static str,
    /// The part of the bars.
    pub(super) part: &'static str,
    /// `Slept 3 s ` goes on with this: `on a timer`.
    pub(super) on: &'static str,
    /// What to look at, with its risk.
    pub(super) remedy: Option<&'static str>,
}

/// Blames the class where it kept the command from running.
pub(super) fn judge(case: &Case, sleeper: &Sleeper) -> Verdict {
    if case.is_machine() {
        // Threads of a whole machine sleep nearly always, and keep nothing from running.
        return Verdict::Silent;
    }
    let Some(class_ns) = case.part_ns(sleeper.part) else {
        return unseen_or_silent(case);
    };
    let ns = if sleeper.part == "pipe" {
        asleep_in_pipes_ns(case, class_ns)
    } else {
        asleep_ns(case, class_ns)
    };
    if !case.hurts_asleep(ns) {
        let evidence = Evidence::new(
            format!("all asleep {}", sleeper.on),
            ns as f64,
            "ns",
            "events",
        )
        .seen_in(case.part_series(sleeper.part));
        return clear(Some(evidence));
    }
    let wall = case.view.wall_ns();
    let mut evidence: Vec<Evidence> = case.part_evidence(sleeper.part).into_iter().collect();
    let asleep = case.accounts.wall("sleep") as f64;
    let asleep = Evidence::new("all threads asleep", asleep, "ns", "events");
    evidence.push(asleep.seen_in(["trace.wall.asleep_ns"]));
    let claim = format!(
        "All threads slept {} {} ({} of the time)",
        long_time(ns as f64),
        sleeper.on,
        percent(ratio(ns as f64, wall as f64)),
    );
    let grade = case.part_grade(sleeper.part);
    let accused = Accused::new(sleeper.id, Some(ns), grade, claim, evidence);
    match sleeper.remedy {
        Some(remedy) => accused.remedy(remedy).blame(),
        None => accused.blame(),
    }
}

/// The class's share of the time in which all slept; never more than it slept itself.
pub(super) fn asleep_ns(case: &Case, class_ns: u64) -> u64 {
    share_of_asleep(case, class_ns, derived_ns(case))
}

/// The same for pipes, less what they only pass on.
fn asleep_in_pipes_ns(case: &Case, pipe_ns: u64) -> u64 {
    let derived = derived_ns(case).min(pipe_ns);
    share_of_asleep(case, pipe_ns - derived, derived)
}

fn share_of_asleep(case: &Case, class_ns: u64, derived_ns: u64) -> u64 {
    let all = CLASSES
        .iter()
        .filter_map(|class| case.part_ns(class))
        .fold(0u64, u64::saturating_add)
        .max(case.accounts.thread("sleep"))
        .saturating_sub(derived_ns);
    let share = ratio(class_ns as f64, all as f64);
    part_of(case.accounts.wall("sleep"), share).min(class_ns)
}

/// Waits in pipes for a process of the subject that itself slept on something from outside:
/// in `sleep 3 | cat` both sleep, and the timer is the cause.
fn derived_ns(case: &Case) -> u64 {
    let outside = ["timer", "socket", "file_lock"];
    let outside = outside.iter().filter_map(|class| case.part_ns(class));
    let outside = outside.fold(0u64, u64::saturating_add);
    let pipe = case.part_ns("pipe").unwrap_or(0);
    let left = case.accounts.wall("sleep").saturating_sub(outside);
    pipe.saturating_sub(left)
}

/// Without events sleep has no name: that is worth telling only where there was much.
pub(super) fn unseen_or_silent(case: &Case) -> Verdict {
    let accounts = case.accounts;
    let nameless = accounts
        .wall("unexplained")
        .saturating_add(accounts.wall("sleep"));
    if case.view.facts().sight("events.sched").is_open() || !case.hurts_asleep(nameless) {
        return Verdict::Silent;
    }
    needs_events("what threads slept on is told by events only")
}

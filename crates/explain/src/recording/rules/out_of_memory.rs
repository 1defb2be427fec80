//! The kernel killed the command, or a process beside it in its group, for want of memory.
//!
//! It comes before everything that is counted in time.

use super::limits::group_path;
use super::{RunVerdict, RunView};
use crate::recording::limited::{self, LimitedGroup};
use crate::verdict::clear_count;
use crate::wording::count;
use model::explanation::Cause;
use model::recording::Ending;
use model::{Evidence, Finding, Grade};

const OF_GROUP: &str = "group0.memory.events.oom_kill";
const KILLS: &str = "memory.events.oom_kill";
/// What the kernel counts when a group reaches its limit.
const REACHED: [&str; 3] = ["memory.failcnt", "memory.events.oom", "memory.events.max"];
const OF_MACHINE: &str = "vmstat.oom_kill";

pub(super) fn check(run: &RunView) -> RunVerdict {
    let outcome = run.recording().outcome.as_ref();
    let ending = outcome.map(|outcome| &outcome.ending);
    let mut evidence = run.all_grown(&[OF_GROUP, OF_MACHINE]);
    let claim = match ending {
        Some(Ending::Killed { signal, out_of_memory: Some(limit) }) => {
            let signal = f64::from(*signal);
            let killed = Evidence::new("killed by signal", signal, "count", "wait4");
            evidence.push(killed.seen_in([OF_GROUP, OF_MACHINE]));
            format!("Killed for want of memory: {limit}")
        }
        _ => match others_killed(run) {
            Some((claim, of_group)) => {
                evidence.extend(of_group);
                claim
            }
            None => {
                let own = (!run.is_machine()).then(|| run.grown(OF_GROUP)).flatten();
                return clear_count(own.or_else(|| run.grown(OF_MACHINE)), "kills");
            }
        },
    };
    let finding = Finding::new(Grade::Measured, claim, evidence).remedy(
        "More memory for it: a higher limit, or swap. Risk: what it gets is missing \
         elsewhere; swap makes slow what would have been killed.",
    );
    Ok(Cause::new(None, finding))
}

/// The claim that processes other than the command were killed, and the number of the group at
/// whose limit that was.
fn others_killed(run: &RunView) -> Option<(String, Option<Evidence>)> {
    let grew = |name| run.growth(name).filter(|killed| *killed > 0);
    if run.is_machine() {
        let killed = grew(OF_MACHINE)?;
        return Some(match at_limit(run, killed) {
            Some(group) => {
                let claim = format!(
                    "The kernel killed {} in {} for want of memory: it is at its own limit",
                    processes(killed),
                    group.name()
                );
                (claim, run.grown(&group.series(KILLS)))
            }
            None => (format!("The kernel killed {} for want of memory", processes(killed)), None),
        });
    }
    let killed = grew(OF_GROUP)?;
    let claim = format!(
        "The kernel killed {} in {} for want of memory",
        processes(killed),
        group_path(run, 0, &["memory", "unified"]),
    );
    Some((claim, None))
}

/// The innermost group in which as many were killed, if it reached its limit: where all memory is
/// used up, the kernel counts a kill in the group of the process as well.
fn at_limit<'a>(run: &RunView<'a>, killed: u64) -> Option<LimitedGroup<'a>> {
    let grown = |group: &LimitedGroup, rest| group.growth(run, rest).unwrap_or(0);
    let is_reached = |group: &LimitedGroup| {
        REACHED.iter().any(|rest| grown(group, rest) > 0) && grown(group, KILLS) >= killed
    };
    limited::groups(run).into_iter().filter(is_reached).max_by_key(|group| group.path.len())
}

fn processes(killed: u64) -> String {
    if killed == 1 { "a process".to_owned() } else { format!("{} processes", count(killed)) }
}

//! The kernel killed the command, or a process beside it in its group, for want of memory.
//!
//! It comes before everything that is counted in time.

use super::limits::group_path;
use super::{RunVerdict, RunView};
use crate::recording::limited;
use crate::verdict::clear_count;
use crate::wording::count;
use model::explanation::Cause;
use model::recording::Ending;
use model::{Evidence, Finding, Grade};

const OF_GROUP: &str = "group0.memory.events.oom_kill";
const KILLS: &str = "memory.events.oom_kill";
const OF_MACHINE: &str = "vmstat.oom_kill";

pub(super) fn check(run: &RunView) -> RunVerdict {
    let outcome = run.recording().outcome.as_ref();
    let ending = outcome.map(|outcome| &outcome.ending);
    let mut evidence = run.all_grown(&[OF_GROUP, OF_MACHINE]);
    if run.is_machine() {
        let names = limited::groups(run).into_iter().map(|group| group.series(KILLS));
        evidence.extend(names.filter_map(|name| run.grown(&name)).filter(|one| one.value > 0.0));
    }
    let claim = match ending {
        Some(Ending::Killed { signal, out_of_memory: Some(limit) }) => {
            let signal = f64::from(*signal);
            let killed = Evidence::new("killed by signal", signal, "count", "wait4");
            evidence.push(killed.seen_in([OF_GROUP, OF_MACHINE]));
            format!("Killed for want of memory: {limit}")
        }
        _ => match others_killed(run) {
            Some(claim) => claim,
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

fn others_killed(run: &RunView) -> Option<String> {
    let grew = |name| run.growth(name).filter(|killed| *killed > 0);
    if run.is_machine() {
        let killed = grew(OF_MACHINE)?;
        let at_limit = limited::groups(run).into_iter().find_map(|group| {
            let own = group.growth(run, KILLS).filter(|killed| *killed > 0)?;
            Some((own, group.name()))
        });
        return Some(match at_limit {
            Some((own, group)) if own >= killed => format!(
                "The kernel killed {} in {group} for want of memory: it is at its own limit",
                processes(killed)
            ),
            _ => format!("The kernel killed {} for want of memory", processes(killed)),
        });
    }
    let killed = grew(OF_GROUP)?;
    Some(format!(
        "The kernel killed {} in {} for want of memory",
        processes(killed),
        group_path(run, 0, &["memory", "unified"]),
    ))
}

fn processes(killed: u64) -> String {
    if killed == 1 { "a process".to_owned() } else { format!("{} processes", count(killed)) }
}

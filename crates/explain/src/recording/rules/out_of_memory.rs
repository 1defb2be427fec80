//! The kernel killed the command, or a process beside it in its group, for want of memory.
//!
//! It comes before everything that is counted in time.

use super::cause::CauseBuilder;
use super::limits::group_path;
use super::run_view::clear_count;
use super::{Rank, Rule, RunView, Verdict};
use crate::wording::count;
use model::recording::Ending;
use model::{Evidence, Grade};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: "out_of_memory",
    suspect: "out of memory",
    within: &[],
    rank: Rank::Decisive,
    check,
};

const OF_GROUP: &str = "group0.memory.events.oom_kill";
const OF_MACHINE: &str = "vmstat.oom_kill";

fn check(run: &RunView) -> Verdict {
    let outcome = run.view.recording().outcome.as_ref();
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
            Some(claim) => claim,
            None => {
                let own = (!run.is_machine()).then(|| run.grown(OF_GROUP)).flatten();
                return clear_count(own.or_else(|| run.grown(OF_MACHINE)), "kills");
            }
        },
    };
    CauseBuilder::new(RULE.id, None, Grade::Measured, claim, evidence)
        .remedy(
            "More memory for it: a higher limit, or swap. Risk: what it gets is missing \
             elsewhere; swap makes slow what would have been killed.",
        )
        .found()
}

fn others_killed(run: &RunView) -> Option<String> {
    let grew = |name| run.grew(name).filter(|killed| *killed > 0);
    if run.is_machine() {
        let killed = grew(OF_MACHINE)?;
        return Some(format!("The kernel killed {} for want of memory", processes(killed)));
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

//! The driver of `recovery-2012`: an application, two hogs, and the clock that runs until it is
//! as fast as before, once for each way and run, in turn.

mod application;
mod described;
mod disk_watch;
mod plan;
pub mod summary;
mod trial;
pub(crate) mod workplace;

pub use plan::{RecoveryOptions, RecoveryPlan};
pub use trial::Trial;

use crate::description::Experiment;
use crate::host::Host;
use crate::{Error, Result};
use application::Running;
use described::Application;
use machine::Root;
use measure::pressure::HogGroup;
use serde::Serialize;
use summary::{Clocks, Summary};
use trial::{Bench, RecoveryMethod};
use workplace::Workplace;

/// What came of it.
#[derive(Debug, Default, Serialize)]
pub struct RecoveryOutcome {
    /// The experiment's name.
    pub experiment: String,
    /// What the application and the hogs had together.
    pub memory_bytes: u64,
    /// Whether memory was short on the whole machine, and not in a group.
    pub whole_machine: bool,
    /// What the application had in use.
    pub working_set_bytes: u64,
    /// Of each of the two hogs.
    pub hog_bytes: u64,
    /// How often they were launched.
    pub rounds: u32,
    /// The number of the device under the swap file and the databases.
    pub disk: Option<String>,
    /// One for each way and application.
    pub summaries: Vec<Summary>,
    /// Every run.
    pub trials: Vec<Trial>,
    /// Applications that are not installed and were left out, with the reason.
    pub skipped: Vec<String>,
    /// Applications that could not be tried to the end, with the reason.
    pub failed: Vec<String>,
}

/// Carries out the plan. `progress` is given each step's name.
///
/// # Errors
/// When not one trial could be ended, Ctrl-C included.
pub fn run(
    host: &Host,
    experiment: &Experiment,
    plan: &RecoveryPlan,
    progress: &mut dyn FnMut(&str),
) -> Result<RecoveryOutcome> {
    let root = &Root::system();
    let ways = ways(experiment)?;
    progress("making the swap file");
    // Dropped in the other order: the processes, the group, the swap.
    let workplace = Workplace::make(host, &plan.disk, plan.swap_bytes(), plan.database_bytes())?;
    let group =
        if plan.options.whole_machine { None } else { Some(HogGroup::make(root, plan.memory)?) };
    let bench = Bench::new(host, root, plan, &workplace, group.as_ref());
    let mut outcome = plan.outcome(experiment, bench.disk());
    for described in &plan.applications {
        if let Some(why) = application::missing(root, described) {
            outcome.skipped.push(format!("{}: {why}", described.id));
            continue;
        }
        let done = of_application(&bench, described, &ways, &mut outcome.trials, progress);
        if sys::interrupt::requested() {
            break;
        }
        // What was found with one is not lost with another.
        outcome.failed.extend(done.err().map(|error| error.text));
    }
    if outcome.trials.is_empty() {
        return Err(nothing_tried(&outcome));
    }
    outcome.summaries = summaries(&plan.applications, &ways, &outcome.trials);
    Ok(outcome)
}

/// Why there is no result at all.
fn nothing_tried(outcome: &RecoveryOutcome) -> Error {
    if sys::interrupt::requested() {
        return Error::failed("interrupted before anything was measured");
    }
    match outcome.failed.first() {
        Some(why) => Error::failed(why.as_str()),
        None => Error::impossible(outcome.skipped.join("; ")),
    }
}

/// All runs of one application, the ways in an order that rotates.
fn of_application(
    bench: &Bench,
    described: &Application,
    ways: &[RecoveryMethod],
    trials: &mut Vec<Trial>,
    progress: &mut dyn FnMut(&str),
) -> Result<()> {
    progress(&format!("{}: filling its working set", described.id));
    let files = bench.files(described)?;
    let place = application::ApplicationHome {
        group: bench.group(),
        directory: &files.directory,
        log: &files.log,
    };
    let mut running =
        Running::start(bench.host, bench.root, described, place, bench.plan.working_set.0)?;
    for run in 0..bench.plan.options.runs {
        for index in 0..ways.len() {
            let way = ways[(index + run as usize) % ways.len()];
            let named = format!("{}, {}, run {}", described.id, way.id(), run + 1);
            let mut step = |what: &str| progress(&format!("{named}: {what}"));
            trials.push(bench.trial(&mut running, &described.id, way, run, &mut step)?);
        }
    }
    Ok(())
}

fn ways(experiment: &Experiment) -> Result<Vec<RecoveryMethod>> {
    let named = experiment.items("ways").iter().map(|way| RecoveryMethod::named(&way.id));
    let ways: Option<Vec<RecoveryMethod>> = named.collect();
    ways.ok_or_else(|| Error::usage("the experiment names a way that nothing does"))
}

fn summaries(
    applications: &[Application],
    ways: &[RecoveryMethod],
    trials: &[Trial],
) -> Vec<Summary> {
    let clocks = |application: &str, way: RecoveryMethod| -> Vec<Clocks> {
        let own =
            trials.iter().filter(|trial| trial.application == application && trial.way == way.id());
        own.map(|trial| (trial.recovered_ns, trial.normal_disk_ns())).collect()
    };
    let mut all = Vec::new();
    for application in applications {
        let nothing = clocks(&application.id, RecoveryMethod::Nothing);
        for way in ways {
            let runs = clocks(&application.id, *way);
            let beside = (*way != RecoveryMethod::Nothing).then_some(nothing.as_slice());
            if !runs.is_empty() {
                all.push(summary::of(&application.id, way.id(), &runs, beside));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description;

    #[test]
    fn every_way_of_the_description_is_done_by_something() {
        let experiment = description::named("recovery-2012").unwrap();
        assert_eq!(
            ways(&experiment).unwrap(),
            [RecoveryMethod::Nothing, RecoveryMethod::Swapoff, RecoveryMethod::Restore]
        );
    }
}

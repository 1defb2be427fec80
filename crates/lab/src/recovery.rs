//! The driver of `recovery-2012`: an application, two hogs, and the clock that runs until it is
//! as fast as before, once for each way and run, in turn.

mod application;
mod described;
mod disk_watch;
mod plan;
pub mod summary;
mod trial;
pub(crate) mod volume;
pub(crate) mod workplace;

pub use plan::{RecoveryOptions, RecoveryPlan};
pub use trial::Trial;

use crate::description::Experiment;
use crate::host::Host;
use crate::{Error, Result};
use described::Application;
use machine::Root;
use measure::pressure::HogGroup;
use serde::Serialize;
use std::ffi::OsString;
use summary::{Clocks, Summary};
use sys::directory::Directory;
use trial::{Bench, Named, RecoveryMethod};
use volume::Volume;
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
    /// The device of the flash cache, where one was tried.
    pub flash: Option<String>,
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
    check_disks(plan)?;
    progress("making the swap file");
    let workplace = Workplace::make(host, plan)?;
    let outcome = try_all(host, experiment, plan, &workplace, progress);
    let ended = workplace.end();
    let mut outcome = outcome?;
    outcome.failed.extend(ended.err().map(|error| error.text));
    Ok(outcome)
}

/// Refuses flash on the disk that is tried: it could not be any faster.
fn check_disks(plan: &RecoveryPlan) -> Result<()> {
    let root = &Root::system();
    let Some(flash) = &plan.flash else { return Ok(()) };
    let disk = trial::disk_of(root, &plan.disk);
    match trial::disk_of(root, &flash.directory) {
        Some(name) if disk.as_ref() == Some(&name) => {
            let text =
                format!("--flash: {} is on the disk that is tried", flash.directory.display());
            Err(Error::impossible(format!("{text} ({name})")))
        }
        _ => Ok(()),
    }
}

/// All trials of all applications, in a workplace.
fn try_all(
    host: &Host,
    experiment: &Experiment,
    plan: &RecoveryPlan,
    workplace: &Workplace,
    progress: &mut dyn FnMut(&str),
) -> Result<RecoveryOutcome> {
    let root = &Root::system();
    // The processes that are in it end before.
    let group =
        if plan.options.whole_machine { None } else { Some(HogGroup::make(root, plan.memory)?) };
    let flash = plan.flash.as_ref();
    let volume = flash.map(|flash| Volume::make(host, workplace, flash)).transpose()?;
    let bench = Bench::new(host, root, plan, workplace, group.as_ref());
    let mut outcome = plan.outcome(experiment, bench.disk());
    outcome.flash = flash.and_then(|flash| trial::disk_of(root, &flash.directory));
    for described in &plan.applications {
        let missing = application::missing(root, described);
        let ways = plan.ways_of(described);
        let why = missing.or_else(|| {
            ways.is_empty().then(|| "it has no files that a flash cache could hold".to_owned())
        });
        if let Some(why) = why {
            outcome.skipped.push(format!("{}: {why}", described.id));
            continue;
        }
        let volume = volume.as_ref().filter(|_| described.sql.is_some());
        let done = match volume {
            Some(volume) => on_volume(&bench, described, volume, &mut outcome.trials, progress),
            None => in_directory(&bench, described, &mut outcome.trials, progress),
        };
        if sys::interrupt::requested() {
            break;
        }
        // What was found with one is not lost with another.
        outcome.failed.extend(done.err().map(|error| error.text));
    }
    if outcome.trials.is_empty() {
        return Err(nothing_tried(&outcome));
    }
    outcome.summaries = summaries(&plan.applications, &plan.ways, &outcome.trials);
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

/// All runs of one application that goes on through all of them.
fn in_directory(
    bench: &Bench,
    described: &Application,
    trials: &mut Vec<Trial>,
    progress: &mut dyn FnMut(&str),
) -> Result<()> {
    progress(&format!("{}: filling its working set", described.id));
    let (directory, log) = (bench.directory(described)?, bench.log(described)?);
    let mut running = bench.start(described, &directory, &log, false)?;
    for (run, way) in in_turn(bench.plan, described) {
        let named = Named { application: &described.id, way, run };
        trials.push(bench.trial(&mut running, &named, None, progress)?);
    }
    Ok(())
}

/// All runs of one application that is started anew for each, on the volume as the way needs it.
fn on_volume(
    bench: &Bench,
    described: &Application,
    volume: &Volume,
    trials: &mut Vec<Trial>,
    progress: &mut dyn FnMut(&str),
) -> Result<()> {
    progress(&format!("{}: filling its working set", described.id));
    let log = bench.log(described)?;
    let name = OsString::from(&described.id);
    volume.mount(false)?;
    let directory = Directory::open(&volume.point())?.create_subdirectory(&name, 0o700)?;
    drop(bench.start(described, &directory, &log, false)?);
    drop(directory);
    for (run, way) in in_turn(bench.plan, described) {
        let named = Named { application: &described.id, way, run };
        progress(&format!("{named}: reading its working set"));
        volume.mount(way.needs_flash())?;
        let directory = Directory::open(&volume.point())?.subdirectory(&name)?;
        let mut running = bench.start(described, &directory, &log, true)?;
        let cache = way.needs_flash().then_some(volume);
        trials.push(bench.trial(&mut running, &named, cache, progress)?);
    }
    Ok(())
}

/// Each run of each way, in an order that rotates.
fn in_turn(
    plan: &RecoveryPlan,
    described: &Application,
) -> impl Iterator<Item = (u32, RecoveryMethod)> {
    let ways = plan.ways_of(described);
    let count = ways.len();
    let turns = (0..plan.options.runs).flat_map(move |run| (0..count).map(move |at| (run, at)));
    turns.map(move |(run, at)| (run, ways[(at + run as usize) % count]))
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
            let is_compared = *way != RecoveryMethod::Nothing && !nothing.is_empty();
            let compared = is_compared.then_some(nothing.as_slice());
            if !runs.is_empty() {
                all.push(summary::of(&application.id, way.id(), &runs, compared));
            }
        }
    }
    all
}

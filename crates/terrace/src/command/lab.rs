//! `terrace lab`: repeats published experiments on this machine, beside their figures. The crate
//! `lab` runs them; this file makes its options and delivers its results.

use super::deliver::Delivery;
use super::survey::plan::ram_bytes;
use super::warm;
use super::{hog, machine_facts, page, ramdisk};
use crate::args::When;
use crate::args::lab::{Experiment as Typed, Lab, LabProcess};
use crate::args::shared::FormArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::lab::{ExperimentResult, OutcomePage};
use crate::output::{self, OutputTarget, Page};
use ::lab::description::{self, Experiment};
use ::lab::file_copy::FileCopyOutcome;
use ::lab::{
    Host, Programs, file_copy, memory_copy, output_directory, ramdisk_puzzle, recovery, working_set,
};
use machine::Root;
use place::background::Limits;
use place::workingset::restore::RestoreRequest;
use place::workingset::targets::Selection;
use serde::Serialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use sys::file::{Durability, FileMode, replace};
use sys::helper::HiddenCommand;

/// The page of all recordings over each other.
const PAGE: &str = "page.html";
/// It takes three.
const LEAST_OVERLAID: usize = 3;

/// Lists, describes or runs experiments.
///
/// # Errors
/// When the experiment was refused, or failed before there was a result.
pub fn lab(action: &Lab, color: When) -> Result<Exit> {
    let target = OutputTarget::standard();
    let page = Page::of(&target, color);
    let text = match action {
        Lab::List => output::lab::list(&description::all()?, page),
        Lab::Show { name } => output::lab::describe(&description::named(name)?, page),
        Lab::Run { experiment } => return run(experiment, color),
    };
    target.write(&text)?;
    Ok(Exit::Done)
}

/// Runs a helper process of the lab.
///
/// # Errors
/// Why it ended early; the lab reads it.
pub fn process(process: &LabProcess) -> Result<Exit> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    sys::process::take_own_name()?;
    match process {
        LabProcess::Member { group, user, words } => {
            return Err(::lab::process::become_member(group.as_deref(), *user, words).into());
        }
        LabProcess::Workplace { directory, bytes, flash } => {
            let (flash, boost) = (flash.as_deref(), boost());
            let streams = (&mut input, &mut output);
            ::lab::process::keep_workplace(directory, *bytes, flash, &boost, streams)?
        }
        LabProcess::Directory { directory } => {
            ::lab::process::keep_directory(directory, &mut input, &mut output)?;
        }
        LabProcess::WorkingSet { bytes, layout } => {
            working_set::serve(*bytes, *layout, input, output)?;
        }
    }
    Ok(Exit::Done)
}

fn run(typed: &Typed, color: When) -> Result<Exit> {
    let root = Root::system();
    let host = host(&root)?;
    match typed {
        Typed::FileCopy2008(args) => {
            let experiment = description::named("file-copy-2008")?;
            let plan = file_copy::FileCopyPlan::of(args.options(), &experiment)?;
            let (out, stated) = (Some(plan.out.as_path()), plan.announcement());
            deliver(&experiment, args.json, out, &stated, color, |progress| {
                let mut outcome = file_copy::run(&host, &experiment, &plan, progress)?;
                outcome.page = write_page(&plan.out, &outcome)?;
                Ok(outcome)
            })
        }
        Typed::MemoryCopy2001(args) => {
            let experiment = description::named("memory-copy-2001")?;
            let largest = ram_bytes(&root, &machine::cpu::read(&root).caches);
            let (out, budget) = (args.out.clone(), args.budget);
            let plan = memory_copy::MemoryCopyPlan::new(out, budget, largest, &root)?;
            let out = plan.out.as_deref();
            let stated = plan.announcement();
            deliver(&experiment, args.json, out, &stated, color, |progress| {
                memory_copy::run(&host, &experiment, &plan, progress)
            })
        }
        Typed::RamdiskPuzzle(args) => {
            let experiment = description::named("ramdisk-puzzle")?;
            let plan =
                ramdisk_puzzle::RamDiskPuzzlePlan::of(args.options(), &experiment, &host, &root)?;
            let out = plan.options.out.as_deref();
            let stated = plan.announcement();
            deliver(&experiment, args.json, out, &stated, color, |progress| {
                ramdisk_puzzle::run(&host, &experiment, &plan, progress)
            })
        }
        Typed::Recovery2012(args) => {
            let experiment = description::named("recovery-2012")?;
            let plan = recovery::RecoveryPlan::of(args.options(), &experiment, &root)?;
            let (out, stated) = (Some(plan.out.as_path()), plan.announcement());
            deliver(&experiment, args.json, out, &stated, color, |progress| {
                recovery::run(&host, &experiment, &plan, progress)
            })
        }
    }
}

/// Lays the recordings of all copies over each other, in a page beside them; its name.
fn write_page(out: &Path, outcome: &FileCopyOutcome) -> ::lab::Result<Option<String>> {
    let recordings: Vec<PathBuf> =
        outcome.copies.iter().map(|copy| out.join(&copy.recording)).collect();
    let names = outcome.copies.iter().map(|copy| copy.name().to_owned());
    let files: Vec<(String, &Path)> = names.zip(recordings.iter().map(PathBuf::as_path)).collect();
    // A page of fewer is another one; `terrace view` makes it.
    if files.len() < LEAST_OVERLAID {
        return Ok(None);
    }
    let page = page::of_many_recordings(&files, false)
        .map_err(|error| ::lab::Error::failed(error.to_string()))?;
    let directory = output_directory::open(out)?;
    let (mode, durability) = (FileMode::OwnerOnly, Durability::Synced);
    replace(&directory, OsStr::new(PAGE), page.as_bytes(), mode, durability)?;
    Ok(Some(PAGE.to_owned()))
}

/// What the experiments take from this program.
fn host(root: &Root) -> Result<Host> {
    let limits = Limits::usual(root);
    Ok(Host {
        programs: Programs {
            hog: HiddenCommand::new([hog::HELPER]),
            page_writer: HiddenCommand::new([ramdisk::HELPER]),
            lab: HiddenCommand::new(["lab-process"]),
            boost: boost(),
        },
        machine: machine_facts::read(root),
        restore: RestoreRequest {
            helper: Some(HiddenCommand::new([warm::READER])),
            ..RestoreRequest::new(Selection::All, limits)
        },
    })
}

fn boost() -> HiddenCommand {
    HiddenCommand::new(["boost"])
}

/// Runs a driver whose plan is checked, stores its outcome in `out` and shows it.
///
/// # Errors
/// When the driver fails, or the outcome cannot be stored or shown.
fn deliver<O: OutcomePage + Serialize>(
    experiment: &Experiment,
    json: bool,
    out: Option<&Path>,
    announcement: &str,
    color: When,
    driver: impl FnOnce(&mut dyn FnMut(&str)) -> ::lab::Result<O>,
) -> Result<Exit> {
    let form = FormArgs { json, output: None, host_name: false, record: None };
    Delivery::of(&form, color)?.carry_out(&Root::system(), |activity| {
        output::announce("lab", announcement);
        out.map_or(Ok(()), output_directory::make)?;
        let outcome = driver(&mut |step| activity.display(step))?;
        Ok::<_, ::lab::Error>(ExperimentResult { experiment, directory: out, outcome })
    })
}

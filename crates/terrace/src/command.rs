//! The commands: each makes a plan of its options, carries it out and delivers the result.
//!
//! Everything that can be checked without touching the machine is checked before anything is
//! measured.

mod advise;
mod attempt;
mod boost;
mod classic;
mod compare;
mod convert;
mod copy;
mod deliver;
mod doctor;
mod explain;
mod helper;
mod hog;
mod kept;
pub mod lab;
mod list;
mod machine_facts;
mod manual;
mod measure;
mod moments;
mod page;
mod proof;
mod ramdisk;
mod random;
mod record;
mod record_options;
mod recorder_ring;
mod run;
mod survey;
mod systemd;
mod top;
mod traces;
mod undo;
mod view;
mod warm;

use crate::args::survey::SurveyArgs;
use crate::args::{Cli, Command, Probe, When};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output;
use crate::output::survey::Detail;
use deliver::{Activity, Delivery};
use machine::Root;
use model::progress::Control;
use model::recording::Recording;
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// Why it ended before it had a result.
pub fn run(cli: &Cli) -> Result<Exit> {
    // Ctrl-C belongs to the command that `run` starts; every other command ends by it.
    if !matches!(cli.command, Command::Run(_)) {
        sys::interrupt::install()?;
    }
    let color = cli.color;
    let (name, outcome) = match &cli.command {
        Command::Survey(args) => ("survey", survey(args, color)),
        Command::Run(args) => ("run", run::run(args, color).map_err(Error::of_run)),
        Command::Record(args) => ("record", record::record(args, color)),
        Command::Explain(args) => ("explain", explain::explain(args, color)),
        Command::Advise(args) => ("advise", advise::advise(args, color)),
        Command::View(args) => ("view", view::view(args)),
        Command::Top(args) => ("top", top::top(args, color)),
        Command::Compare(args) => ("compare", compare::compare(args, color)),
        Command::Proof(args) => ("proof", proof::proof(args)),
        Command::Mark(args) => ("mark", record::mark(args)),
        Command::Export(args) => ("export", convert::export(args)),
        Command::Import(args) => ("import", convert::import(args)),
        Command::Doctor(args) => ("doctor", doctor::doctor(args, color)),
        Command::Undo(args) => ("undo", undo::undo(args)),
        Command::Hog(args) => ("hog", hog::hog(args, color)),
        Command::HogProcess => ("hog-process", hog::process()),
        Command::Copy(args) => ("copy", copy::copy(args, color)),
        Command::Warm { action } => (warm::name(action), warm::act(action, color)),
        Command::WarmReader => ("warm-reader", warm::reader()),
        Command::Boost { action } => (action.name(), boost::boost(action, color)),
        Command::BoostProcess(args) => ("boost-process", boost::process(args)),
        Command::Ramdisk { action } => (action.name(), ramdisk::run(action, color)),
        Command::RamdiskProcess => ("ramdisk-process", ramdisk::process()),
        Command::Lab { action } => ("lab", lab::lab(action, color)),
        Command::LabProcess { process } => ("lab-process", lab::process(process)),
        Command::Measure { probe } => (probe_name(probe), measure::probe(probe, color)),
        Command::MeasureProcess { words } => ("measure-process", measure::process(words)),
        Command::Manual(args) => ("manual", manual::manual(args)),
        Command::Completions { shell } => ("completions", manual::print_completions(*shell)),
    };
    outcome.map_err(|error| if_interrupted(error).during(name))
}

fn survey(args: &SurveyArgs, color: When) -> Result<Exit> {
    let delivery = Delivery::of(&args.form, color)?;
    let page = survey::PageFile::of(args)?;
    let activity = Activity::start("survey", args.form.record.as_deref())?;
    let survey = survey::survey(args, &Root::system(), &mut |progress| {
        activity.begin(progress.step);
        Control::Continue
    });
    let recorded = activity.finish();
    let survey = survey?;
    recorded?;
    if let Some(page) = page {
        page.write(&survey)?;
    }
    let kept = (!args.no_keep && !survey.interrupted).then(|| survey.clone());
    let delivered = delivery.survey(survey, Detail::of(args.details))?;
    if let Some(said) = kept.and_then(|survey| kept::keep(&survey)) {
        output::announce("survey", &said);
    }
    Ok(delivered)
}

/// Replaces the error of a probe that Ctrl-C ended before its first result.
fn if_interrupted(error: Error) -> Error {
    if sys::interrupt::requested() && error.exit != Exit::Usage {
        return Error::new(Exit::Partial, "interrupted before anything was measured");
    }
    error
}

/// Refuses a path that cannot be opened, before anything is done.
fn must_exist(path: &Path) -> Result<()> {
    sys::file::examine_input(path).map(drop).map_err(|error| {
        let reason = sys::plain_reason(&error.source);
        if error.kind == sys::ErrorKind::Interrupted {
            let text = format!("interrupted while {} was opened", path.display());
            return Error::new(Exit::Partial, text);
        }
        Error::usage(format!("cannot open {}: {reason}", path.display()))
    })
}

/// Reads the recording at `path`.
///
/// # Errors
/// When it cannot be read or is no recording. One that is cut or damaged opens with what is
/// whole, and says so.
fn open_recording(path: &Path) -> Result<Recording> {
    open_recording_of(path, 1)
}

/// As [`open_recording`], for one of `count` recordings that are in memory at the same time.
///
/// # Errors
/// As [`open_recording`].
fn open_recording_of(path: &Path, count: usize) -> Result<Recording> {
    must_exist(path)?;
    Ok(::record::file::open_one_of(path, count)?)
}

/// The name of a recording: the last part of its path.
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn probe_name(probe: &Probe) -> &'static str {
    match probe {
        Probe::Memcpy(_) => "measure memcpy",
        Probe::Memlat(_) => "measure memlat",
        Probe::Faults(_) => "measure faults",
        Probe::Compute(_) => "measure compute",
        Probe::Iolat(_) => "measure iolat",
        Probe::Seqio(_) => "measure seqio",
    }
}

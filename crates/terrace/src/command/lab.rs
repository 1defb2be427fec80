//! `terrace lab`: published experiments, repeated on this machine beside their figures. What an
//! experiment is stands in a file of `lab/experiments`; a driver does it.

pub mod description;
mod process;
pub mod recovery;

pub use process::be;

use super::cost::Meter;
use super::deliver::Delivery;
use crate::args::When;
use crate::args::form::FormArgs;
use crate::args::lab::{Lab, RunArgs};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::progress::Progress;
use crate::output::{self, Page, Target};
use machine::Root;

/// Does what `lab` was told.
///
/// # Errors
/// What it was refused for, or what went wrong before there was a result.
pub fn lab(action: &Lab, color: When) -> Result<Exit> {
    let target = Target::standard();
    let page = Page::of(&target, color);
    let text = match action {
        Lab::List => output::lab::list(&description::all()?, page),
        Lab::Show { name } => output::lab::describe(&description::named(name)?, page),
        Lab::Run(args) => return run(args, color),
    };
    target.write(&text)?;
    Ok(Exit::Done)
}

fn run(args: &RunArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    let experiment = description::named(&args.name)?;
    let plan = recovery::Plan::of(args, &experiment, &root)?;
    let form = FormArgs {
        json: args.json,
        output: None,
        host_name: false,
        record: None,
    };
    let delivery = Delivery::of(&form, color)?;
    let meter = Meter::start();
    output::announce("lab", &plan.announcement());
    let progress = Progress::new();
    let mut step = |what: &str| progress.step(&format!("terrace lab: {what}"));
    let outcome = recovery::run(&root, &experiment, &plan, &mut step);
    drop(progress);
    delivery.lab(&experiment, &outcome?, &plan.out, meter, &root)
}

/// What of a result cannot stand as it is.
pub fn shortfall(outcome: &recovery::Outcome) -> Option<String> {
    let wrong: u64 = outcome.trials.iter().map(|trial| trial.wrong).sum();
    if wrong > 0 {
        return Some(format!(
            "{wrong} answers were not what was written: do not trust this memory or disk"
        ));
    }
    if let Some(why) = outcome.failed.first() {
        return Some(why.clone());
    }
    sys::interrupt::requested().then(|| "interrupted: this is what was done until then".to_owned())
}

/// A failure to keep what was found.
pub fn not_kept(path: &std::path::Path, error: &std::io::Error) -> Error {
    let reason = sys::plain_reason(error);
    Error::new(
        Exit::Partial,
        format!("cannot write {}: {reason}", path.display()),
    )
}

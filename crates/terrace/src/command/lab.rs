//! `terrace lab`: published experiments, repeated on this machine beside their figures. What an
//! experiment is stands in a file of `lab/experiments`; a driver does it.

pub mod description;
pub mod kept;
pub mod memory_copy;
mod process;
pub mod ramdisk_puzzle;
pub mod recovery;

pub use process::be;

use super::cost::Meter;
use super::deliver::Delivery;
use crate::args::When;
use crate::args::form::FormArgs;
use crate::args::lab::{self as typed, Lab};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::lab::Outcome;
use crate::output::progress::Progress;
use crate::output::{self, Page, Target};
use description::Experiment;
use machine::Root;
use std::path::Path;

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
        Lab::Run { experiment } => {
            return match experiment {
                typed::Experiment::MemoryCopy2001(args) => memory_copy::lab(args, color),
                typed::Experiment::RamdiskPuzzle(args) => ramdisk_puzzle::lab(args, color),
                typed::Experiment::Recovery2012(args) => recovery::lab(args, color),
            };
        }
    };
    target.write(&text)?;
    Ok(Exit::Done)
}

/// What an experiment was told of its result, and what it says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub json: bool,
    /// The directory in which the result is kept; none where it is only shown.
    pub out: Option<&'a Path>,
    /// What is said before anything is done.
    pub announcement: &'a str,
}

/// Does an experiment whose plan is checked, keeps what came of it and shows it. `driver` is given
/// what says how far it is.
///
/// # Errors
/// What the driver says, and where the result cannot be kept or shown.
pub fn carry_out<O: Outcome>(
    experiment: &Experiment,
    asked: Asked,
    color: When,
    driver: impl FnOnce(&mut dyn FnMut(&str)) -> Result<O>,
) -> Result<Exit> {
    let form = FormArgs {
        json: asked.json,
        output: None,
        host_name: false,
        record: None,
    };
    let delivery = Delivery::of(&form, color)?;
    let meter = Meter::start();
    output::announce("lab", asked.announcement);
    asked.out.map_or(Ok(()), kept::make)?;
    let progress = Progress::new();
    let outcome = driver(&mut |what| progress.step(&format!("terrace lab: {what}")));
    drop(progress);
    delivery.lab(experiment, &outcome?, asked.out, meter, &Root::system())
}

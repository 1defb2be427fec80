//! `terrace warm show`: who has how much where, and what a restore would read.
//! It needs no rights; what this user may not see is a note.

use super::super::cost::Meter;
use super::super::deliver::Delivery;
use super::super::watching;
use super::restore;
use crate::args::When;
use crate::args::warm::ShowArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::progress::Progress;
use crate::output::warm::Answer;
use ::record::capture::Background;
use machine::Root;
use place::workingset::restore::Request;
use place::workingset::show::{self, Shown};
use place::workingset::targets::Selection;

/// Looks, and says what was seen.
///
/// # Errors
/// For a process, group or name that is not there or is closed to this user.
pub fn show(args: &ShowArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    let selection = super::selection(&args.whose).unwrap_or(Selection::All);
    let limits = restore::usual_limits(&root);
    let request = Request {
        estimate: true,
        ..restore::request_of_all_kinds(selection, limits)
    };
    let delivery = Delivery::of(&args.form, color)?;
    let meter = Meter::start();
    let progress = Progress::new();
    progress.step("terrace warm show: looking where everything lies");
    let background = watching::beside(Shown::COMMAND, args.form.record.as_deref())?;
    let shown = show::show(&root, &request);
    drop(progress);
    let recorded = background.map_or(Ok(()), Background::finish);
    let shown = shown?;
    recorded?;
    delivery.warm(&shown, meter, &root)
}

//! `terrace warm show`: who has how much where, and what a restore would read.
//! It needs no rights; what this user may not see is a note.

use super::super::deliver::Delivery;
use super::restore;
use crate::args::When;
use crate::args::warm::ShowArgs;
use crate::error::Result;
use crate::exit::Exit;
use machine::Root;
use place::workingset::restore::RestoreRequest;
use place::workingset::show;
use place::workingset::targets::Selection;

/// Looks, and says what was seen.
///
/// # Errors
/// For a process, group or name that is not there or is closed to this user.
pub fn show(args: &ShowArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    let selection = super::selection(&args.whose).unwrap_or(Selection::All);
    let limits = restore::usual_limits(&root);
    let request =
        RestoreRequest { estimate: true, ..restore::request_of_all_kinds(selection, limits) };
    Delivery::of(&args.form, color)?.carry_out(&root, |activity| {
        activity.display("looking where everything lies");
        show::show(&root, &request)
    })
}

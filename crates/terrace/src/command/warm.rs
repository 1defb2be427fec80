//! `terrace warm ...`: shows what was evicted from memory, takes snapshots, restores, and evicts on
//! purpose.

mod evict;
pub mod restore;
mod show;
mod snapshot;

use super::helper;
use crate::args::When;
use crate::args::warm::{Warm, WhoseArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Report;
use crate::output::warm::Receipt;
use place::workingset::cgroup_reader;
use place::workingset::show::WorkingSetReport;
use place::workingset::targets::Selection;

/// What this program is called with to read from inside of a group.
pub const READER: &str = "warm-reader";

/// Does what was asked for.
///
/// # Errors
/// What was refused, or went wrong before there was a result.
pub fn act(action: &Warm, color: When) -> Result<Exit> {
    match action {
        Warm::Show(args) => show::show(args, color),
        Warm::Restore(args) => restore::restore(args, color),
        Warm::Snapshot(args) => snapshot::snapshot(args),
        Warm::Evict(args) => evict::evict(args),
    }
}

/// The name of the command, for complaints.
pub fn name(action: &Warm) -> &'static str {
    match action {
        Warm::Show(_) => WorkingSetReport::COMMAND,
        Warm::Restore(_) => Receipt::COMMAND,
        Warm::Snapshot(_) => "warm snapshot",
        Warm::Evict(_) => "warm evict",
    }
}

/// The whole life of the reader inside of a group.
///
/// # Errors
/// What its starter tells of it.
pub fn reader() -> Result<Exit> {
    cgroup_reader::serve(&mut helper::caller()?)?;
    Ok(Exit::Done)
}

/// Whose memory is meant; `None` if no process was named.
fn selection(whose: &WhoseArgs) -> Option<Selection> {
    if let Some(group) = &whose.cgroup {
        Some(Selection::Group(group.clone()))
    } else if let Some(name) = &whose.app {
        Some(Selection::Application(name.clone()))
    } else if whose.all {
        Some(Selection::All)
    } else {
        (!whose.pid.is_empty()).then(|| Selection::Processes(whose.pid.clone()))
    }
}

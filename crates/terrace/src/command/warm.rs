//! `terrace warm ...`: shows what was evicted from memory (which needs no rights; what this user
//! may not see is a note), takes snapshots, restores, and evicts on purpose. It does not ask for
//! confirmation: what was evicted is slow once and never lost.

pub mod restore;
pub mod watch;

use super::deliver::Delivery;
use super::helper;
use crate::args::When;
use crate::args::warm::{EvictArgs, ShowArgs, SnapshotArgs, Warm, WhoseArgs};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::progress::Progress;
use crate::output::warm::RestoreReceipt;
use crate::output::{self, Report};
use machine::Root;
use place::background::Limits;
use place::workingset::evict::{self, EvictTarget};
use place::workingset::restore::RestoreRequest;
use place::workingset::show::{self, WorkingSetReport};
use place::workingset::targets::Selection;
use place::workingset::{cgroup_reader, snapshot};
use std::path::Path;

/// What this program is called with to read from inside of a group.
pub const READER: &str = "warm-reader";

/// Does what was asked for.
///
/// # Errors
/// What was refused, or went wrong before there was a result.
pub fn act(action: &Warm, color: When) -> Result<Exit> {
    match action {
        Warm::Show(args) => show(args, color),
        Warm::Restore(args) => restore::restore(args, color),
        Warm::Watch(args) => watch::watch(args),
        Warm::Snapshot(args) => take_snapshot(args),
        Warm::Evict(args) => evict(args),
    }
}

/// The name of the command, for complaints.
pub fn name(action: &Warm) -> &'static str {
    match action {
        Warm::Show(_) => WorkingSetReport::COMMAND,
        Warm::Restore(_) => RestoreReceipt::COMMAND,
        Warm::Watch(_) => watch::COMMAND,
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

/// Shows who has how much where, and what a restore would read.
fn show(args: &ShowArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    let selection = selection(&args.whose).unwrap_or(Selection::All);
    let limits = Limits::usual(&root);
    let request = RestoreRequest { estimate: true, ..RestoreRequest::new(selection, limits) };
    Delivery::of(&args.form, color)?.carry_out(&root, |activity| {
        activity.display("looking where everything lies");
        show::show(&root, &request)
    })
}

/// Writes what is in memory now to a file, by name, and says how much of it could be listed.
fn take_snapshot(args: &SnapshotArgs) -> Result<Exit> {
    let selection = selection(&args.whose).unwrap_or(Selection::All);
    let progress = Progress::new();
    progress.step("terrace warm snapshot: looking at what is in memory");
    let taken = snapshot::take(&Root::system(), &selection, &args.tree)?;
    drop(progress);
    if sys::interrupt::requested() {
        let text = "interrupted: no snapshot was written";
        return Err(Error::new(Exit::Partial, text));
    }
    snapshot::write(&taken, &args.file)?;
    let file_bytes = std::fs::metadata(&args.file).ok().map(|file| file.len());
    Ok(output::show(&output::warm::snapshot_summary(&taken, &args.file, file_bytes)))
}

/// Evicts a file, a tree or a process, and says what stayed.
fn evict(args: &EvictArgs) -> Result<Exit> {
    let evicted = evict::evict(&Root::system(), &victim(&args.victim))?;
    let whose = args.victim.display().to_string();
    let shown = output::show(&output::warm::evicted(&evicted, &whose));
    if sys::interrupt::requested() {
        output::announce("warm evict", "interrupted: the rest is as it was");
        return Ok(Exit::Partial);
    }
    Ok(shown)
}

/// A number is a process; every other word is a path.
fn victim(word: &Path) -> EvictTarget {
    match word.to_str().and_then(|text| text.parse().ok()) {
        Some(pid) => EvictTarget::Process(pid),
        None => EvictTarget::Path(word.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_process_and_with_a_directory_it_is_a_file() {
        assert_eq!(victim(Path::new("12")), EvictTarget::Process(12));
        for path in ["./12", "12a", "-1", "99999999999"] {
            assert_eq!(victim(Path::new(path)), EvictTarget::Path(path.into()));
        }
    }
}

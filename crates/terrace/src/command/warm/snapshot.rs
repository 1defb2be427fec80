//! `terrace warm snapshot`: what is in memory now goes to a file, by name; one line says how
//! much of it could be listed.

use crate::args::warm::SnapshotArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output;
use crate::output::progress::Progress;
use machine::Root;
use place::workingset::snapshot;
use place::workingset::targets::Selection;

/// Notes, and says what was noted.
///
/// # Errors
/// When a process or tree is not there, or the file cannot be written.
pub fn snapshot(args: &SnapshotArgs) -> Result<Exit> {
    let selection = super::selection(&args.whose).unwrap_or(Selection::All);
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
    Ok(output::show(&output::warm::snapshot::summary(&taken, &args.file, file_bytes)))
}

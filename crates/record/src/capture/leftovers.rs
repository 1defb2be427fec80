//! What recorders that were killed have left beside their settings: the socket on which they
//! heard marks, and the control group of their command. The next recorder removes these as well;
//! `terrace undo` does not wait for it.

use super::{group, marks};
use crate::run_directory;
use std::path::PathBuf;

/// What recorders of this user that are gone have left; with `remove`, it is removed, and what
/// could not be is not named.
#[must_use]
pub fn leftovers(remove: bool) -> Vec<PathBuf> {
    let directory = run_directory::existing().ok().flatten();
    let mut found = directory.map_or_else(Vec::new, |held| marks::of_the_dead(&held, remove));
    found.extend(group::of_the_dead(remove));
    found
}

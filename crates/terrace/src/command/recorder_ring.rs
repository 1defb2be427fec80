//! Where the flight recorder of this machine, or of this user, has its ring: for `record --keep`
//! without a FILE, and for the commands that read it.
//!
//! The service of the packages records to [`OF_SERVICE`], as root does by hand. An ordinary user
//! has a ring of their own in their state directory (XDG Base Directory Specification).
//! `STATE_DIRECTORY` comes first: systemd sets it for a unit that has such a directory.

use super::kept;
use crate::error::{Error, Result};
use crate::exit::Exit;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The ring of `terrace-recorder.service`.
const OF_SERVICE: &str = "/var/lib/terrace/recorder";

/// How the service is started.
const START: &str = "name a recording, or start the recorder: systemctl enable --now \
                     terrace-recorder (or: terrace record --keep 24h)";

/// Where `record --keep` writes without a FILE.
///
/// # Errors
/// `Usage` for a user without a home directory.
pub(super) fn to_write() -> Result<PathBuf> {
    if let Some(directory) = of_unit() {
        return Ok(directory);
    }
    if sys::process::effective_uid() == 0 {
        return Ok(PathBuf::from(OF_SERVICE));
    }
    of_user().ok_or_else(|| Error::usage("--output FILE is missing, and HOME is not set"))
}

/// `file`, or the ring if none is named.
///
/// # Errors
/// As [`find`].
pub(super) fn named_or_found(file: Option<&Path>) -> Result<PathBuf> {
    file.map_or_else(find, |file| Ok(file.to_owned()))
}

/// The ring that is there: of this unit, of this user, or of the service.
///
/// # Errors
/// `Usage` if there is none, `Impossible` if this user cannot read it.
pub(super) fn find() -> Result<PathBuf> {
    let places = [of_unit(), of_user(), Some(PathBuf::from(OF_SERVICE))];
    let mut found = places.into_iter().flatten().filter(|place| is_there(place));
    let Some(ring) = found.next() else {
        let text = "FILE is missing, and no flight recorder has a ring here";
        return Err(Error::usage(text).hint(START));
    };
    match std::fs::read_dir(&ring) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let text = format!("this user cannot read the flight recorder's {}", ring.display());
            Err(Error::new(Exit::Impossible, text).hint("run it with sudo"))
        }
        _ => Ok(ring),
    }
}

/// Whether it is there; one that this user may not look at counts.
fn is_there(place: &Path) -> bool {
    match place.metadata() {
        Ok(about) => about.is_dir(),
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    }
}

/// The first directory of the unit that runs this program.
fn of_unit() -> Option<PathBuf> {
    let all = std::env::var_os("STATE_DIRECTORY")?;
    let first = std::env::split_paths(&all).next()?;
    first.is_absolute().then_some(first)
}

fn of_user() -> Option<PathBuf> {
    Some(kept::state()?.join("terrace/recorder"))
}

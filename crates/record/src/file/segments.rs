//! The directory of a ring: opening and locking it, and the segments in it.
//!
//! Another user must not be able to change it: a lock that any user can take would keep the
//! recorder from its work, and a file that any user can exchange would be read as a segment. So
//! the lock is on a file that only its owner can open, and nothing in it is followed as a link.

use super::chunk::{FILE_HEADER, FILE_HEADER_BYTES};
use super::reader::starts_with_magic;
use crate::error::at;
use crate::{Error, ErrorKind, Result};
use model::frame::FileHeader;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use sys::directory::Directory;

/// What a segment's name starts and ends with; between them its start in nanoseconds since
/// 1970, with as many digits as the largest number has, so that names sort by time.
const NAME_START: &str = "terrace-";
const NAME_END: &str = ".trec";
const NAME_DIGITS: usize = 20;

/// The file that a recorder locks, and its mode.
const LOCK: &str = "terrace.lock";
const LOCK_MODE: u32 = 0o600;
/// Only the owner may enter a directory that is made here.
const DIRECTORY_MODE: u32 = 0o700;

/// A segment that is no longer written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) name: OsString,
    pub(super) started_unix_ns: u64,
    pub(super) bytes: u64,
}

/// Opens the directory of a ring for reading.
pub(super) fn open_directory(path: &Path) -> Result<Directory> {
    Directory::open(path).map_err(|error| at("open", path, &error))
}

/// The error for a directory without a recording that can be read.
pub(super) fn nothing_in(directory: &Path, why: Option<String>) -> Error {
    let why = why.unwrap_or_else(|| "no recording is in it".to_owned());
    Error::new(ErrorKind::NotARecording, "read the recordings in", why).at(directory)
}

/// Opens the directory of a ring for writing; makes it if it is missing.
pub(super) fn open_for_writing(path: &Path) -> Result<Directory> {
    let directory = open_or_make(path).map_err(|error| at("create", path, &error))?;
    let about = directory.file().metadata().map_err(|error| Error::io("examine", path, error))?;
    let refusal = |why: &str| Err(Error::new(ErrorKind::Impossible, "record to", why).at(path));
    // Many systems give each user a group of the same number and let it write.
    let is_own_group = [0, sys::process::effective_gid()].contains(&about.gid());
    let others_write = about.mode() & 0o002 != 0 || (about.mode() & 0o020 != 0 && !is_own_group);
    if about.uid() != sys::process::effective_uid() {
        refusal("the directory belongs to another user")
    } else if others_write {
        refusal("others may write to the directory")
    } else {
        Ok(directory)
    }
}

fn open_or_make(path: &Path) -> sys::Result<Directory> {
    let opened = Directory::open(path);
    let (Err(error), Some(name)) = (&opened, path.file_name()) else {
        return opened;
    };
    if error.source.kind() != std::io::ErrorKind::NotFound {
        return opened;
    }
    let above = path.parent().filter(|above| *above != Path::new(""));
    let parent = open_or_make(above.unwrap_or(Path::new(".")))?;
    match parent.create_subdirectory(name, DIRECTORY_MODE) {
        Err(error) if error.source.kind() == std::io::ErrorKind::AlreadyExists => {
            parent.subdirectory(name)
        }
        made => made,
    }
}

/// Keeps other recorders out: two would remove each other's segments.
pub(super) fn lock(directory: &Directory, path: &Path) -> Result<std::fs::File> {
    let file = directory
        .open_or_create(OsStr::new(LOCK), LOCK_MODE)
        .map_err(|error| at("lock", &path.join(LOCK), &error))?;
    let free = sys::lock::try_take(&file, sys::lock::LockMode::Exclusive);
    // On a file system without locks the user has to take care.
    if free.unwrap_or(true) {
        // By it readers see that the ring is still written; without locks they cannot.
        let _ = sys::record_lock::mark_as_written(&file);
        return Ok(file);
    }
    let why = "another recorder writes to it";
    Err(Error::new(ErrorKind::Usage, "record to", why).at(path))
}

/// Whether a recorder writes to the ring in `directory`.
pub(super) fn is_ring_written(directory: &Directory) -> bool {
    let lock = directory.open_regular(OsStr::new(LOCK));
    lock.is_ok_and(|file| sys::record_lock::is_being_written(&file))
}

/// The name of a segment that starts then.
pub(super) fn segment_name(started_unix_ns: u64) -> OsString {
    format!("{NAME_START}{started_unix_ns:0NAME_DIGITS$}{NAME_END}").into()
}

/// The segments in `directory`, oldest first.
pub(super) fn segments(directory: &Directory) -> Result<Vec<Segment>> {
    let mut found = Vec::new();
    for name in directory.names()? {
        let Some(started_unix_ns) = name.to_str().and_then(start_in_name) else {
            continue;
        };
        if let Some(bytes) = segment_bytes(directory, &name) {
            found.push(Segment { name, started_unix_ns, bytes });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Refuses a ring of a newer version, whose segments this program would remove unread.
pub(super) fn refuse_newer(directory: &Directory, segments: &[Segment]) -> Result<()> {
    // A damaged header says nothing of its version.
    let any_version = FileHeader { major: u16::MAX, ..FILE_HEADER };
    for segment in segments {
        let mut header = [0; FILE_HEADER_BYTES];
        let file = directory.open_regular(&segment.name);
        if file.is_ok_and(|mut file| file.read_exact(&mut header).is_ok())
            && any_version.check(&header, "recording").is_ok()
            && let Err(why) = FILE_HEADER.check(&header, "recording")
        {
            let path = directory.path().join(&segment.name);
            return Err(Error::new(ErrorKind::Impossible, "record to the ring", why).at(path));
        }
    }
    Ok(())
}

/// Removes a segment. Anything else of that name stays; a missing one is not an error.
pub(super) fn remove(directory: &Directory, name: &OsStr) -> Result<()> {
    if segment_bytes(directory, name).is_none() {
        return Ok(());
    }
    match directory.remove(name) {
        Err(error) if error.kind != sys::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// The start time in a segment's name; `None` for any other name.
fn start_in_name(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(NAME_START)?.strip_suffix(NAME_END)?;
    let is_number = digits.len() == NAME_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// The length of a regular file that starts as recordings do; `None` for anything else.
fn segment_bytes(directory: &Directory, name: &OsStr) -> Option<u64> {
    let mut file = directory.open_regular(name).ok()?;
    let bytes = file.metadata().map_or(0, |about| about.len());
    starts_with_magic(&mut file).then_some(bytes)
}

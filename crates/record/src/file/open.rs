//! Opening a recording by its path: a file, or a directory that is a ring of files.
//!
//! The readers of both are below; [`Follower`](super::Follower) opens one that still grows.

use super::joined::read_closed;
use super::part::Outline;
use super::reader::{Limits, MAX_BYTES, not_a_recording, read_within};
use super::ring_outline::RingOutline;
use super::segments::{is_ring_written, open_directory, segments};
use super::tail;
use crate::{Error, Result};
use model::frame::Damage;
use model::recording::Recording;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;
use sys::directory::Directory;
use sys::record_lock::is_being_written;

/// A recorder takes a sample at least every tenth of a second, and writes by then.
const ROWS_LIMIT: Duration = Duration::from_millis(300);

/// Reads the recording at `path`: a file, or a directory that is a ring of them.
///
/// # Errors
/// As [`read`](super::read), and when it cannot be opened.
pub fn open(path: &Path) -> Result<Recording> {
    open_one_of(path, 1)
}

/// As [`open`], for one of `count` recordings that are in memory at the same time: each takes
/// its share of [`MAX_BYTES`].
///
/// # Errors
/// As [`open`].
pub fn open_one_of(path: &Path, count: usize) -> Result<Recording> {
    let limits = Limits { bytes: MAX_BYTES / count.max(1), ..Limits::default() };
    match open_path(path, || not_a_recording("it is no regular file".to_owned()))? {
        OpenRecording::Ring(directory) => {
            // Asked first: a recording that ends meanwhile is cut at no time.
            let is_growing = is_ring_written(&directory);
            let recording = read_closed(&directory, None, limits)?;
            Ok(still_growing(recording, is_growing))
        }
        OpenRecording::File(file) => {
            let is_growing = is_being_written(&file);
            let recording = read_within(BufReader::new(file), limits);
            Ok(still_growing(recording.map_err(|error| error.at(path))?, is_growing))
        }
    }
}

/// Makes the recorder of the recording at `path` write what it still holds in memory, if one runs:
/// up to ten seconds of samples. Waits for it, at most 0.3 s; without a recorder it does
/// nothing.
///
/// # Errors
/// As for opening it; an interrupt ends that too.
pub fn request_rows(path: &Path) -> Result<()> {
    let refusal = || not_a_recording("it is no regular file".to_owned());
    let file = match open_path(path, refusal)? {
        OpenRecording::File(file) => Some(file),
        OpenRecording::Ring(directory) if is_ring_written(&directory) => {
            let newest = segments(&directory).ok().and_then(|all| all.into_iter().last());
            newest.and_then(|segment| directory.open_regular(&segment.name).ok())
        }
        OpenRecording::Ring(_) => None,
    };
    if let Some(file) = file.filter(is_being_written) {
        tail::wait_for_rows(&file, ROWS_LIMIT);
    }
    Ok(())
}

/// Notes that the recorder still wrote to it: its end is not there yet, and what it writes at this
/// moment is not a damage.
fn still_growing(mut recording: Recording, is_growing: bool) -> Recording {
    recording.is_growing = is_growing && recording.outcome.is_none();
    if recording.is_growing {
        let cut: String = Damage::Cut.into();
        recording.damage.retain(|text| !text.contains(&cut));
    }
    recording
}

/// A recording of which only a part is to be read, a file or a ring.
#[derive(Debug)]
pub enum RecordingOutline {
    /// One file.
    File(Box<Outline<File>>),
    /// A directory of segments.
    Ring(Box<RingOutline>),
}

impl RecordingOutline {
    /// Everything but the samples of the recording at `path`; `None` for one that needs [`open`].
    #[must_use]
    pub fn open(path: &Path) -> Option<Self> {
        if path.is_dir() {
            return RingOutline::open(path).map(|ring| Self::Ring(Box::new(ring)));
        }
        Outline::open(path).map(|file| Self::File(Box::new(file)))
    }

    /// What is known without samples: facts, spans, how long it is, and the outcome.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        match self {
            Self::File(file) => file.recording(),
            Self::Ring(ring) => ring.recording(),
        }
    }

    /// The recording with its samples from the last one at or before `from_ns`, or an earlier one,
    /// to the first one at or after `to_ns`, or a later one; `None` if that cannot be read alone.
    #[must_use]
    pub fn part(self, from_ns: u64, to_ns: u64) -> Option<Recording> {
        match self {
            Self::File(file) => file.part(from_ns, to_ns),
            Self::Ring(ring) => ring.part(from_ns, to_ns),
        }
    }
}

/// What holds a recording.
pub(super) enum OpenRecording {
    File(File),
    /// A directory of segments.
    Ring(Directory),
}

/// Opens what is at `path`; anything but a file and a directory is refused.
pub(super) fn open_path(path: &Path, refusal: impl FnOnce() -> Error) -> Result<OpenRecording> {
    // The type is read before the file is opened: opening a pipe would block.
    let metadata = path.metadata().map_err(|error| Error::io("open", path, error))?;
    if metadata.is_dir() {
        return open_directory(path).map(OpenRecording::Ring);
    }
    if !metadata.is_file() {
        return Err(refusal().at(path));
    }
    let file = sys::file::open_input(path);
    file.map(OpenRecording::File).map_err(|error| Error::io("open", path, error.source))
}

//! A recording that is still being written: a file, or a ring, whose segments are joined and whose
//! newest one is read as far as it is whole.
//!
//! When the recorder begins another segment, the one before is read to its end first. Segments that
//! the recorder removes meanwhile stay in what was read.

use super::joined::{JoinedRecording, newest};
use super::open::{OpenRecording, open_path};
use super::reader::MAX_BYTES;
use super::segments::{nothing_in, segments};
use super::tail::Tail;
use crate::{Error, ErrorKind, Result};
use model::recording::Recording;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use sys::directory::Directory;

/// A recording that may grow.
#[derive(Debug)]
pub struct Follower {
    /// The file, or the newest segment of the ring.
    tail: Tail,
    ring: Option<RingPosition>,
}

/// Where a follower is in a ring.
#[derive(Debug)]
struct RingPosition {
    directory: Directory,
    /// The name of the newest segment.
    name: OsString,
    /// All segments so far.
    joined: JoinedRecording,
}

impl Follower {
    /// Opens the recording at `path`: of a file it reads nothing but its header, of a ring all
    /// segments but the newest.
    ///
    /// # Errors
    /// [`ErrorKind::NotARecording`] for anything else, and when it cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        let refusal = || {
            let why = "only a file can be followed, or the directory of a flight recorder";
            Error::new(ErrorKind::NotARecording, "follow the recording", why)
        };
        match open_path(path, refusal)? {
            OpenRecording::Ring(directory) => Self::open_ring(directory),
            OpenRecording::File(file) => {
                Ok(Self { tail: Tail::new(file, path, MAX_BYTES)?, ring: None })
            }
        }
    }

    fn open_ring(directory: Directory) -> Result<Self> {
        let all = segments(&directory)?;
        let Some((last, before)) = all.split_last() else {
            return Err(nothing_in(directory.path(), None));
        };
        let tail = tail(&directory, &last.name)?;
        let mut joined = JoinedRecording::new(MAX_BYTES / 2);
        let (parts, damage) = newest(&directory, before);
        for mut part in parts {
            joined.add(&mut part);
        }
        joined.next();
        // The outcome of an earlier run does not end the one that is followed.
        joined.recording.outcome = None;
        joined.recording.damage = damage;
        let name = last.name.clone();
        let ring = Some(RingPosition { directory, name, joined });
        Ok(Self { tail, ring })
    }

    /// Reads what was appended; whether there was anything.
    pub fn advance(&mut self) -> bool {
        let Self { tail, ring } = self;
        match ring {
            None => tail.advance(),
            Some(ring) => ring.advance(tail),
        }
    }

    /// What was read so far; spans in the order in which they came. Of a long recording rows of
    /// processes and files are merged with later ones, so their places change; their ends do not.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        match &self.ring {
            None => self.tail.recording(),
            Some(ring) => &ring.joined.recording,
        }
    }

    /// Whether nothing more will be read: the recording was ended, is damaged, or is more than a
    /// reader takes.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match &self.ring {
            None => self.tail.is_over(),
            Some(ring) => ring.is_over(),
        }
    }
}

impl RingPosition {
    fn advance(&mut self, tail: &mut Tail) -> bool {
        let before = self.joined.recording.ticks.len();
        while !self.is_over() {
            // Looked up first: a segment is at its end once there is another one.
            let next = self.next_segment();
            tail.advance();
            self.joined.advance(tail.recording_mut());
            let Some((next_name, next_tail)) = next else {
                break;
            };
            let damage = tail.recording().damage.iter().cloned();
            self.joined.recording.damage.extend(damage);
            self.joined.next();
            (self.name, *tail) = (next_name, next_tail);
        }
        self.joined.recording.ticks.len() > before || self.is_over()
    }

    fn is_over(&self) -> bool {
        self.joined.recording.outcome.is_some() || self.joined.is_full()
    }

    /// The segment after the one that is read, if its header is complete.
    fn next_segment(&self) -> Option<(OsString, Tail)> {
        // A directory that cannot be read any more has no next one.
        let all = segments(&self.directory).ok()?;
        let next = all.into_iter().find(|segment| segment.name > self.name)?;
        let tail = tail(&self.directory, &next.name).ok()?;
        Some((next.name, tail))
    }
}

fn tail(directory: &Directory, name: &OsStr) -> Result<Tail> {
    let path = directory.path().join(name);
    Tail::new(directory.open_regular(name)?, &path, MAX_BYTES / 4)
}

#[cfg(test)]
mod tests;

//! A recording that is still being written, read as far as it is whole.
//!
//! Looked at again and again; only what was appended is read. A chunk that is not whole yet is
//! waited for, one that is wrong ends the following, as it ends a reading. A follower shares
//! a lock on the file, by which the recorder knows that somebody waits for its rows.

use super::Writer;
use super::chunk::Chunks;
use super::reader::{self, Limits, MAX_BYTES, Reading};
use super::ring::RingFollower;
use crate::{Error, Kind, Result};
use model::recording::Recording;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use sys::lock::{Mode, release, try_take};

/// The most time that rows are held while somebody looks at them: a person waits no longer.
const FOLLOWED_HOLD_NS: u64 = 1_000_000_000;

/// Writes the rows that are held where a [`Follower`] waits for them.
pub(super) fn tell(writer: &mut Writer<File>) -> Result<()> {
    match writer.held_ns() >= FOLLOWED_HOLD_NS && is_followed(writer.sink()) {
        true => writer.flush(),
        false => Ok(()),
    }
}

/// Whether a [`Follower`] has this file open, too.
fn is_followed(file: &File) -> bool {
    match try_take(file, Mode::Exclusive) {
        Ok(is_alone) => {
            // The lock was only the question. A file that could be locked can be released.
            let _ = release(file);
            !is_alone
        }
        // Without locks nobody can tell; rows then come when they come.
        Err(_) => false,
    }
}

/// A recording that may grow: a file, or the directory of a flight recorder.
#[derive(Debug)]
pub enum Follower {
    /// A file.
    File(Box<Tail>),
    /// A directory.
    Ring(Box<RingFollower>),
}

impl Follower {
    /// Opens the recording at `path`: of a file it reads nothing but its header.
    ///
    /// # Errors
    /// [`Kind::NotARecording`](crate::Kind::NotARecording) for anything that is none, and when it
    /// cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        // Looked at before it is opened, which would wait for ever on a pipe.
        let about = path.metadata();
        let about = about.map_err(|error| Error::io("open", path, error))?;
        match about.is_dir() {
            true => Ok(Self::Ring(Box::new(RingFollower::open(path)?))),
            false => Ok(Self::File(Box::new(Tail::open(path, MAX_BYTES)?))),
        }
    }

    /// Reads what was appended; whether there was anything.
    pub fn advance(&mut self) -> bool {
        match self {
            Self::File(tail) => tail.advance(),
            Self::Ring(ring) => ring.advance(),
        }
    }

    /// What was read so far; spans in the order in which they came.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        match self {
            Self::File(tail) => tail.recording(),
            Self::Ring(ring) => ring.recording(),
        }
    }

    /// Whether nothing more will be read: the recorder wrote its last words, or what it wrote is
    /// damaged.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self {
            Self::File(tail) => tail.is_over(),
            Self::Ring(ring) => ring.is_over(),
        }
    }
}

/// A file that may grow.
#[derive(Debug)]
pub struct Tail {
    /// Asked for its length and locked; the chunks read it by a descriptor of the same place.
    file: File,
    /// Whether the recorder can see that it is followed, or never will.
    is_locked: bool,
    chunks: Chunks<BufReader<File>>,
    reading: Reading,
}

impl Tail {
    /// Opens the file at `path`, and reads nothing but its header. What is read of it takes at
    /// most `bytes` of memory.
    pub(super) fn open(path: &Path, bytes: usize) -> Result<Self> {
        // Looked at before it is opened, which would wait for ever on a pipe.
        let about = path.metadata();
        let about = about.map_err(|error| Error::io("open", path, error))?;
        if !about.is_file() {
            let why = "only a file can be followed, or the directory of a flight recorder";
            return Err(Error::new(Kind::NotARecording, "follow the recording", why).at(path));
        }
        let file =
            sys::file::open_input(path).map_err(|error| Error::io("open", path, error.source))?;
        Self::of(file, path, bytes)
    }

    /// As [`Tail::open`], of a regular file that is open, in so many bytes of memory.
    pub(super) fn of(file: File, path: &Path, bytes: usize) -> Result<Self> {
        let again = file.try_clone();
        let again = again.map_err(|error| Error::io("open", path, error))?;
        let chunks = reader::start(BufReader::new(again)).map_err(|error| error.at(path))?;
        Ok(Self {
            file,
            is_locked: false,
            chunks,
            reading: Reading::new(Limits {
                bytes,
                may_thin: false,
                ..Limits::default()
            }),
        })
    }

    /// Reads what was appended; whether there was anything.
    pub(super) fn advance(&mut self) -> bool {
        // The recorder may have been asking at this very moment: then the next time.
        self.is_locked = self.is_locked || try_take(&self.file, Mode::Shared).unwrap_or(true);
        let before = self.chunks.offset;
        while !self.is_over() {
            let offset = self.chunks.offset;
            let length = self.file.metadata().map_or(0, |about| about.len());
            let taken = match self.chunks.next_whole(length) {
                Ok(None) => break,
                Ok(Some((header, raw))) => self.reading.take(&header, raw),
                Err(why) => Err(why),
            };
            if let Err(why) = taken {
                self.reading.damaged(offset, &why);
                return true;
            }
        }
        self.chunks.offset > before
    }

    /// What was read so far; spans in the order in which they came.
    pub(super) fn recording(&self) -> &Recording {
        &self.reading.recording
    }

    /// Whether nothing more will be read: the recorder wrote its last words, or the file is
    /// damaged.
    pub(super) fn is_over(&self) -> bool {
        let recording = self.recording();
        recording.outcome.is_some() || !recording.damage.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Output, read};
    use crate::{Registry, Row};
    use model::recording::{Facts, Outcome, Span, Tick};
    use std::io::Write;
    use testkit::TempDir;

    /// A recording of 1,000 samples in ten chunks and more.
    fn bytes() -> Vec<u8> {
        let mut registry = Registry::new();
        let gauge = model::recording::Kind::Gauge;
        let id = registry.id("a", "count", gauge, "x").unwrap();
        let mut writer = Writer::new(Vec::new(), &Facts::default()).unwrap();
        let mut row = Row::default();
        for number in 0..1_000u64 {
            row.count(id, number * number);
            let tick = Tick {
                due_ns: number * 1_000,
                at_ns: number * 1_000,
            };
            writer.sample(tick, registry.schemas(), &row).unwrap();
            if number == 500 {
                let span = Span {
                    kind: "mark".to_owned(),
                    text: "half".to_owned(),
                    start_ns: 1,
                    end_ns: 2,
                };
                writer.span(&span).unwrap();
            }
        }
        writer
            .finish(&Facts::default(), &Outcome::default())
            .unwrap()
    }

    #[test]
    fn a_file_that_grows_by_any_step_is_read_as_it_is_whole() {
        let whole = bytes();
        for step in [1, 7, 4_096] {
            let path = TempDir::new();
            let path = path.join("x.trec");
            let mut file = File::create(&path).unwrap();
            file.write_all(&whole[..16]).unwrap();
            let mut follower = Follower::open(&path).unwrap();
            let mut samples = 0;
            for piece in whole[16..].chunks(step) {
                assert!(!follower.is_over());
                file.write_all(piece).unwrap();
                follower.advance();
                let now = follower.recording().ticks.len();
                assert!(now >= samples && follower.recording().damage.is_empty());
                samples = now;
            }
            assert!(follower.is_over() && !follower.advance());
            assert_eq!(*follower.recording(), read(&whole[..]).unwrap(), "{step}");
        }
    }

    /// Samples that a reader sees after three seconds at 10 Hz and nothing more.
    fn seen_after_three_seconds(is_followed: bool) -> usize {
        let mut registry = Registry::new();
        let gauge = model::recording::Kind::Gauge;
        let id = registry.id("a", "count", gauge, "x").unwrap();
        let directory = TempDir::new();
        let path = directory.join("x.trec");
        let mut output = Output::create(&path, false, &Facts::default()).unwrap();
        let mut follower = Follower::open(&path).unwrap();
        if is_followed {
            follower.advance();
        }
        for number in 0..=30u64 {
            let mut row = Row::default();
            row.count(id, number);
            let (due_ns, at_ns) = (number * 100_000_000, number * 100_000_000);
            let tick = Tick { due_ns, at_ns };
            output.sample(tick, registry.schemas(), &row).unwrap();
        }
        follower.advance();
        follower.recording().ticks.len()
    }

    #[test]
    fn rows_are_held_for_a_second_only_while_somebody_follows() {
        assert_eq!(seen_after_three_seconds(false), 0);
        assert!(seen_after_three_seconds(true) >= 20);
    }

    #[test]
    fn damage_and_a_cut_end_the_following() {
        let mut damaged = bytes();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        let directory = TempDir::new();
        let path = directory.join("x.trec");
        std::fs::write(&path, &damaged).unwrap();
        let mut follower = Follower::open(&path).unwrap();
        follower.advance();
        assert!(follower.is_over());
        assert_eq!(follower.recording().damage.len(), 1);

        std::fs::write(&path, &bytes()[..middle]).unwrap();
        let mut follower = Follower::open(&path).unwrap();
        assert!(follower.advance() && !follower.is_over());
        File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_len(20))
            .unwrap();
        follower.advance();
        assert!(follower.recording().damage[0].contains("cut"));
    }

    #[test]
    fn only_a_recording_is_followed() {
        let directory = TempDir::new();
        let error = Follower::open(directory.path()).unwrap_err();
        assert!(
            error.to_string().contains("no recording is in it"),
            "{error}"
        );
        let error = Follower::open(Path::new("/dev/null")).unwrap_err();
        assert!(error.to_string().contains("only a file"), "{error}");
        let path = directory.join("x");
        std::fs::write(&path, "no recording at all").unwrap();
        assert_eq!(Follower::open(&path).unwrap_err().kind, Kind::NotARecording);
    }
}

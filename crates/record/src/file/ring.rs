//! A flight recorder: a directory of recordings, the oldest of which goes when it is older
//! than asked for or when all together take more room than allowed.
//!
//! Each segment is a complete recording with its own series and times, so any of them can
//! be read alone, lost, or damaged without harm to the others; [`read_ring`] joins them.
//! Only regular files with a segment's name and a recording's first bytes are ever removed.
//! One recorder at a time may use a directory: it holds a lock on it.

mod followed;
mod joined;

pub(super) use followed::RingFollower;
pub use joined::read_ring;
pub(super) use joined::read_ring_within;

use super::output::{FILE_MODE, end_file, starts_with_magic};
use super::{Writer, follow};
use crate::registry::Row;
use crate::{Error, Kind, Result};
use model::recording::{Facts, Outcome, Recording, Schema, Span, Task, Tick};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How many segments the time and the room of a ring are cut into: one more than asked for
/// exists at most, so a ring holds at most 4 % too long.
pub const SEGMENTS: u64 = 24;

/// No segment is made to last less: each repeats the names of all series, about 15 KB.
const MIN_SEGMENT_NS: u64 = 1_000_000_000;

/// Less room would hold little but the names of the series.
pub const MIN_KEEP_BYTES: u64 = 256 << 10;

/// What a segment's name starts and ends with; between them its start in nanoseconds since
/// 1970, with as many digits as the largest number has, so that names sort by time.
const NAME_START: &str = "terrace-";
const NAME_END: &str = ".trec";
const NAME_DIGITS: usize = 20;

/// A segment that is no longer written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Segment {
    path: PathBuf,
    started_unix_ns: u64,
    bytes: u64,
}

/// A ring that is being written.
#[derive(Debug)]
pub struct Ring {
    directory: PathBuf,
    keep_ns: u64,
    keep_bytes: u64,
    facts: Facts,
    /// Oldest first, without the current one.
    closed: VecDeque<Segment>,
    writer: Writer<File>,
    current: PathBuf,
    /// What the current segment's times count from, since the start of this run.
    base_ns: u64,
    written_before: u64,
    /// The locked directory; the lock goes with it, however this process ends.
    _lock: File,
}

impl Ring {
    /// Starts a run in `directory`, which is made if it is not there; what earlier runs left
    /// there belongs to the ring.
    ///
    /// # Errors
    /// [`Kind::Usage`] for no time, less than [`MIN_KEEP_BYTES`], or a directory that another
    /// recorder uses; others when the directory cannot be used.
    pub fn open(directory: &Path, keep_ns: u64, keep_bytes: u64, facts: &Facts) -> Result<Self> {
        if keep_ns == 0 || keep_bytes < MIN_KEEP_BYTES {
            let least_kib = MIN_KEEP_BYTES >> 10;
            let why = format!("it needs time, and room of at least {least_kib} KiB");
            return Err(Error::new(Kind::Usage, "keep a flight recorder", why));
        }
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory);
        made.map_err(|error| Error::io("create", directory, error))?;
        let lock = locked(directory)?;
        let closed = segments(directory)?;
        let (current, writer) = start(directory, facts)?;
        let mut ring = Self {
            directory: directory.to_owned(),
            keep_ns,
            keep_bytes,
            facts: facts.clone(),
            closed: closed.into(),
            writer,
            current,
            base_ns: 0,
            written_before: 0,
            _lock: lock,
        };
        ring.remove_old(facts.started_unix_ns)?;
        Ok(ring)
    }

    /// Adds a sample; starts the next segment when it is time.
    ///
    /// # Errors
    /// As [`Writer::sample`], and when a segment can be neither made nor removed.
    pub fn sample(&mut self, tick: Tick, schemas: &[Schema], row: &Row) -> Result<()> {
        let segment_ns = (self.keep_ns / SEGMENTS).max(MIN_SEGMENT_NS);
        let is_long = tick.due_ns.saturating_sub(self.base_ns) >= segment_ns;
        if is_long || self.writer.bytes() >= self.keep_bytes / SEGMENTS {
            self.rotate(tick.due_ns)?;
        }
        let before = self.writer.bytes();
        let tick = Tick {
            due_ns: tick.due_ns.saturating_sub(self.base_ns),
            at_ns: tick.at_ns.saturating_sub(self.base_ns),
        };
        let written = self.writer.sample(tick, schemas, row);
        let written = written.and_then(|()| follow::tell(&mut self.writer));
        written.map_err(|error| error.at(&self.current))?;
        if self.writer.bytes() != before {
            let since_start_ns = self.base_ns.saturating_add(tick.at_ns);
            self.remove_old(self.facts.started_unix_ns.saturating_add(since_start_ns))?;
        }
        Ok(())
    }

    /// Adds a named instant or interval; one that began before the current segment begins
    /// with it.
    ///
    /// # Errors
    /// As [`Writer::sample`].
    pub fn span(&mut self, span: &Span) -> Result<()> {
        let span = Span {
            start_ns: span.start_ns.saturating_sub(self.base_ns),
            end_ns: span.end_ns.saturating_sub(self.base_ns),
            ..span.clone()
        };
        let written = self.writer.span(&span);
        written.map_err(|error| error.at(&self.current))
    }

    /// Adds rows of delay accounting.
    ///
    /// # Errors
    /// As [`Writer::sample`].
    pub fn tasks(&mut self, tasks: &[Task]) -> Result<()> {
        let written = self.writer.tasks(tasks);
        written.map_err(|error| error.at(&self.current))
    }

    /// Writes what is still held.
    ///
    /// # Errors
    /// As [`Writer::sample`].
    pub fn flush(&mut self) -> Result<()> {
        let written = self.writer.flush();
        written.map_err(|error| error.at(&self.current))
    }

    /// Bytes that this run has written.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.written_before + self.writer.bytes()
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Ends the run: whether its end could be written, and all that the ring holds.
    pub(super) fn finish(
        mut self,
        facts: &Facts,
        outcome: &Outcome,
    ) -> (Result<()>, Result<Recording>) {
        let facts = self.rebased(facts);
        let outcome = Outcome {
            ended_ns: outcome.ended_ns.saturating_sub(self.base_ns),
            ..outcome.clone()
        };
        let ended = end_file(&mut self.writer, &facts, &outcome);
        let ended = ended.map_err(|error| error.at(&self.current));
        (ended, read_ring(&self.directory))
    }

    /// `facts` for a segment that starts at the current base.
    fn rebased(&self, facts: &Facts) -> Facts {
        Facts {
            started_unix_ns: facts.started_unix_ns.saturating_add(self.base_ns),
            ..facts.clone()
        }
    }

    /// Ends the current segment and starts the next one at `base_ns` of this run.
    fn rotate(&mut self, base_ns: u64) -> Result<()> {
        self.flush()?;
        let started_unix_ns = self.facts.started_unix_ns.saturating_add(self.base_ns);
        self.base_ns = base_ns;
        let (path, writer) = start(&self.directory, &self.rebased(&self.facts))?;
        let before = std::mem::replace(&mut self.writer, writer);
        self.written_before += before.bytes();
        self.closed.push_back(Segment {
            path: std::mem::replace(&mut self.current, path),
            started_unix_ns,
            bytes: before.bytes(),
        });
        self.remove_old(self.facts.started_unix_ns.saturating_add(base_ns))
    }

    /// Removes segments from the oldest on, while they are too old or all are too large.
    fn remove_old(&mut self, now_unix_ns: u64) -> Result<()> {
        let horizon_ns = now_unix_ns.saturating_sub(self.keep_ns);
        let current_ns = self.facts.started_unix_ns.saturating_add(self.base_ns);
        while let Some(oldest) = self.closed.front() {
            let ended_ns = self
                .closed
                .get(1)
                .map_or(current_ns, |next| next.started_unix_ns);
            let all_bytes: u64 = self.closed.iter().map(|segment| segment.bytes).sum();
            let is_large = all_bytes + self.writer.bytes() > self.keep_bytes;
            if ended_ns > horizon_ns && !is_large {
                break;
            }
            if is_segment(&oldest.path) {
                let removed = std::fs::remove_file(&oldest.path);
                removed.map_err(|error| Error::io("remove", &oldest.path, error))?;
            }
            self.closed.pop_front();
        }
        Ok(())
    }
}

/// Keeps others out of `directory`: two recorders would remove each other's segments.
fn locked(directory: &Path) -> Result<File> {
    let opened = File::open(directory);
    let opened = opened.map_err(|error| Error::io("open", directory, error))?;
    let free = sys::lock::try_take(&opened, sys::lock::Mode::Exclusive);
    // A file system without locks holds a ring as well; then it is the user who takes care.
    if free.unwrap_or(true) {
        return Ok(opened);
    }
    let why = "another recorder writes to it";
    Err(Error::new(Kind::Usage, "record to", why).at(directory))
}

/// Makes the file of a segment that starts with `facts`.
fn start(directory: &Path, facts: &Facts) -> Result<(PathBuf, Writer<File>)> {
    let mut number = facts.started_unix_ns;
    loop {
        let name = format!("{NAME_START}{number:0NAME_DIGITS$}{NAME_END}");
        let path = directory.join(name);
        let made = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(&path);
        match made {
            Ok(file) => {
                let writer = Writer::new(file, facts).map_err(|error| error.at(&path))?;
                return Ok((path, writer));
            }
            // Two runs that began in the same nanosecond, or with a clock that stands still.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                number = number.wrapping_add(1);
            }
            Err(error) => return Err(Error::io("create", &path, error)),
        }
    }
}

/// The segments in `directory`, oldest first.
fn segments(directory: &Path) -> Result<Vec<Segment>> {
    let failed = |error| Error::io("read", directory, error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let Some(started_unix_ns) = name.to_str().and_then(start_in_name) else {
            continue;
        };
        let path = entry.path();
        if is_segment(&path) {
            // Gone since: then it takes no room.
            let bytes = entry.metadata().map_or(0, |about| about.len());
            found.push(Segment {
                path,
                started_unix_ns,
                bytes,
            });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The start that a segment's name tells; `None` for any other name.
fn start_in_name(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(NAME_START)?.strip_suffix(NAME_END)?;
    let is_number = digits.len() == NAME_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// Whether `path` is a regular file, not a link to one, that starts as recordings do.
fn is_segment(path: &Path) -> bool {
    let is_file = path.symlink_metadata().is_ok_and(|about| about.is_file());
    is_file && File::open(path).is_ok_and(|mut file| starts_with_magic(&mut file))
}

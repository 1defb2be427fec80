//! A flight recorder: a directory of recordings, the oldest of which goes when it is older
//! than asked for or when all together take more room than allowed.
//!
//! Each segment is a complete recording with its own series and times, so any of them can
//! be read alone, lost, or damaged without harm to the others; [`super::read_ring`] joins them.
//! The directory is opened once; from then on all is done through its descriptor. Only regular
//! files with a segment's name and a recording's first bytes are ever removed. One recorder at
//! a time may use a directory: it holds a lock on a file in it. `outage` says what becomes of a
//! ring that has no space.

mod outage;

use super::joined::read_closed;
use super::read_back::with_lost_end;
use super::reader::Limits;
use super::segments::{
    Segment, lock, open_for_writing, refuse_newer, remove, segment_name, segments,
};
use super::tail::flush_if_followed;
use super::writer::{FILE_MODE, Writer};
use crate::error::at;
use crate::known_identities::{KnownIdentities, PartIds};
use crate::registry::Row;
use crate::sink::RecordSink;
use crate::{Error, ErrorKind, Result};
use model::recording::{Facts, Recording, RecordingOutcome, Schema, Span, Task, Tick, Who};
use outage::Outages;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use sys::directory::Directory;

/// How many segments the time and the room of a ring are cut into: one more than asked for
/// exists at most, so a ring holds at most 4 % too long.
pub const SEGMENTS: u64 = 24;

/// No segment is made to last less: each repeats the names of all series, about 15 KB.
const MIN_SEGMENT_NS: u64 = 1_000_000_000;

/// The most time that rows of a ring are held: what happened just before the recorder was killed is
/// what it is there for.
const HOLD_NS: u64 = 800_000_000;

/// Less room would hold little but the names of the series.
pub const MIN_KEEP_BYTES: u64 = 256 << 10;

/// A ring that is being written.
#[derive(Debug)]
pub struct Ring {
    directory: Directory,
    path: PathBuf,
    keep_ns: u64,
    keep_bytes: u64,
    facts: Facts,
    /// Oldest first, without the current one.
    closed: VecDeque<Segment>,
    /// How many of these, the first ones, are of earlier runs.
    earlier: usize,
    /// The segment that is written; `None` while there is no space.
    current: Option<Current>,
    outages: Outages,
    /// Each segment names anew the processes and files of its rows.
    identities: KnownIdentities,
    /// What the current segment's times count from, since the start of this run.
    base_ns: u64,
    /// The lock goes with it, however this process ends.
    _lock: File,
}

/// The segment that is written.
#[derive(Debug)]
struct Current {
    name: OsString,
    writer: Writer<File>,
    ids: PartIds,
    /// What it had when it was made: its header and its facts.
    empty_bytes: u64,
}

impl Ring {
    /// Starts a run in `directory`, which is made if it is not there; what earlier runs left
    /// there belongs to the ring.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for no time, less than [`MIN_KEEP_BYTES`], or a directory that another
    /// recorder uses; [`ErrorKind::Impossible`] for one that another user can change, or of a newer
    /// version; others when the directory cannot be used.
    pub fn open(path: &Path, keep_ns: u64, keep_bytes: u64, facts: &Facts) -> Result<Self> {
        if keep_ns == 0 || keep_bytes < MIN_KEEP_BYTES {
            let least_kib = MIN_KEEP_BYTES >> 10;
            let why = format!("it needs time, and room of at least {least_kib} KiB");
            return Err(Error::new(ErrorKind::Usage, "keep a flight recorder", why));
        }
        let directory = open_for_writing(path)?;
        let lock = lock(&directory, path)?;
        let closed = segments(&directory)?;
        refuse_newer(&directory, &closed)?;
        let current = start(&directory, facts)?;
        let mut ring = Self {
            directory,
            path: path.to_owned(),
            keep_ns,
            keep_bytes,
            facts: facts.clone(),
            earlier: closed.len(),
            closed: closed.into(),
            current: Some(current),
            outages: Outages::default(),
            identities: KnownIdentities::default(),
            base_ns: 0,
            _lock: lock,
        };
        ring.remove_old(facts.started_unix_ns)?;
        Ok(ring)
    }

    fn write_sample(&mut self, tick: Tick, schemas: &[Schema], row: &Row) -> Result<()> {
        let segment_ns = (self.keep_ns / SEGMENTS).max(MIN_SEGMENT_NS);
        let is_long = tick.due_ns.saturating_sub(self.base_ns) >= segment_ns;
        if is_long || self.current_bytes() >= self.keep_bytes / SEGMENTS {
            self.rotate(tick.due_ns)?;
        }
        let base_ns = self.base_ns;
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        let before = current.writer.bytes();
        let since_start = tick;
        let tick = Tick {
            due_ns: tick.due_ns.saturating_sub(base_ns),
            at_ns: tick.at_ns.saturating_sub(base_ns),
        };
        let written = current
            .writer
            .sample(tick, schemas, row)
            .and_then(|()| flush_if_followed(&mut current.writer));
        written.map_err(|error| self.here(error))?;
        if self.current_bytes() != before {
            self.outages.has_gained();
            let now_ns = self.facts.started_unix_ns;
            self.remove_old(now_ns.saturating_add(since_start.at_ns))?;
            self.check_segment(since_start.due_ns)?;
        }
        Ok(())
    }

    /// Writes something other than a sample, which does not count as a lost one.
    fn write(
        &mut self,
        held: outage::PendingSamples,
        write: impl FnOnce(&mut Writer<File>) -> Result<()>,
    ) -> Result<()> {
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        let written = write(&mut current.writer).map_err(|error| self.here(error));
        match written {
            Err(error) if outage::is_no_space(&error) => {
                let now_ns = held.last_ns;
                let samples = held.samples.saturating_sub(1);
                self.lose(&error, outage::PendingSamples { samples, ..held }, now_ns)
            }
            written => written,
        }
    }

    fn current_bytes(&self) -> u64 {
        let current = self.current.as_ref();
        current.map_or(0, |current| current.writer.bytes())
    }

    /// `facts` for a segment that starts at the current base.
    fn rebased(&self, facts: &Facts) -> Facts {
        Facts {
            started_unix_ns: facts.started_unix_ns.saturating_add(self.base_ns),
            ..facts.clone()
        }
    }

    fn here(&self, error: Error) -> Error {
        match &self.current {
            Some(current) => error.at(self.path.join(&current.name)),
            None => error.at(&self.path),
        }
    }

    /// Ends the current segment and starts the next one at `base_ns` of this run.
    fn rotate(&mut self, base_ns: u64) -> Result<()> {
        if let Some(current) = &mut self.current {
            let flushed = current.writer.flush();
            flushed.map_err(|error| self.here(error))?;
        }
        self.close();
        self.base_ns = base_ns;
        self.current = Some(start(&self.directory, &self.rebased(&self.facts))?);
        self.remove_old(self.facts.started_unix_ns.saturating_add(base_ns))
    }

    /// Closes the current segment, of which nothing more is written; one without a sample goes.
    fn close(&mut self) {
        self.identities.end_part();
        let Some(Current { name, writer, .. }) = self.current.take() else {
            return;
        };
        self.closed.push_back(Segment {
            name,
            started_unix_ns: self.facts.started_unix_ns.saturating_add(self.base_ns),
            bytes: writer.bytes(),
        });
    }

    /// Begins another segment if the current one was removed.
    fn check_segment(&mut self, base_ns: u64) -> Result<()> {
        if let Some(why) = self.loss() {
            return Err(Error::new(ErrorKind::Failed, "record to", why).at(&self.path));
        }
        let current = self.current.as_ref();
        let about = current.and_then(|current| current.writer.sink().metadata().ok());
        match about {
            Some(about) if about.nlink() == 0 => {
                self.current = None;
                self.base_ns = base_ns;
                self.current = Some(start(&self.directory, &self.rebased(&self.facts))?);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Removes segments from the oldest on, while they are too old or all are too large.
    fn remove_old(&mut self, now_unix_ns: u64) -> Result<()> {
        let horizon_ns = now_unix_ns.saturating_sub(self.keep_ns);
        let current_ns = self.facts.started_unix_ns.saturating_add(self.base_ns);
        while !self.closed.is_empty() {
            let next = self.closed.get(1);
            let next_ns = next.map_or(current_ns, |next| next.started_unix_ns);
            // One of an earlier run ended before this run began, whatever its clock said.
            let ended_ns = match self.earlier {
                0 => next_ns,
                _ => next_ns.min(self.facts.started_unix_ns),
            };
            let all_bytes: u64 = self.closed.iter().map(|segment| segment.bytes).sum();
            let is_large = all_bytes + self.current_bytes() > self.keep_bytes;
            if ended_ns > horizon_ns && !is_large {
                break;
            }
            self.remove_oldest()?;
        }
        Ok(())
    }

    /// Removes the oldest segment that is closed; the bytes that it had.
    fn remove_oldest(&mut self) -> Result<u64> {
        let Some(oldest) = self.closed.front() else {
            return Ok(0);
        };
        remove(&self.directory, &oldest.name)?;
        let bytes = oldest.bytes;
        self.closed.pop_front();
        self.earlier = self.earlier.saturating_sub(1);
        Ok(bytes)
    }
}

impl RecordSink for Ring {
    fn started(&mut self, facts: &Facts) {
        self.facts = facts.clone();
        if let Some(current) = &mut self.current {
            current.writer.correct(facts);
        }
    }

    fn sample(&mut self, tick: Tick, schemas: &[Schema], row: &Row) -> Result<()> {
        if self.current.is_none() && !self.resume(tick.at_ns)? {
            return Ok(());
        }
        let held = self.held(tick.at_ns);
        match self.write_sample(tick, schemas, row) {
            Err(error) if outage::is_no_space(&error) => self.lose(&error, held, tick.at_ns),
            written => written,
        }
    }

    fn span(&mut self, span: &Span) -> Result<()> {
        let held = self.held(span.end_ns);
        let span = Span {
            start_ns: span.start_ns.saturating_sub(self.base_ns),
            end_ns: span.end_ns.saturating_sub(self.base_ns),
            ..span.clone()
        };
        self.write(held, |writer| writer.span(&span))
    }

    fn tasks(&mut self, tasks: &[Task]) -> Result<()> {
        let held = self.held(self.base_ns);
        self.write(held, |writer| writer.tasks(tasks))
    }

    /// While there is no space the rows are lost with the samples.
    fn who(&mut self, news: &Who) -> Result<()> {
        self.identities.learn(news);
        let held = self.held(self.base_ns);
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        let of_segment = self.identities.renumber(news, &mut current.ids, self.base_ns);
        self.write(held, |writer| writer.who(&of_segment))
    }

    fn flush(&mut self) -> Result<()> {
        let held = self.held(self.base_ns);
        self.write(held, Writer::flush)
    }

    fn loss(&self) -> Option<&'static str> {
        is_removed(&self.directory).then_some(REMOVED)
    }

    fn news(&mut self) -> Option<String> {
        self.outages.news()
    }

    fn finish(mut self, facts: &Facts, outcome: &RecordingOutcome) -> Result<Recording> {
        if self.current.is_none() {
            // The last chance; the outcome says what is missing.
            let _ = self.resume(outcome.ended_ns);
        }
        let (lost_samples, lost_ns) = self.outages.lost(outcome.ended_ns);
        let segment_facts = self.rebased(facts);
        let segment_outcome = RecordingOutcome {
            ended_ns: outcome.ended_ns.saturating_sub(self.base_ns),
            lost_samples,
            lost_ns,
            ..outcome.clone()
        };
        let (ended, own) = match self.current.take() {
            None => {
                let why = self.outages.why();
                let error = Error::new(ErrorKind::NoSpace, "write the recording", why);
                (Err(error.at(&self.path)), None)
            }
            Some(Current { name, mut writer, .. }) => {
                let ended = writer
                    .end_or_cut(&segment_facts, &segment_outcome)
                    .map_err(|error| error.at(self.path.join(&name)));
                (ended.map(drop), Some((name, writer.into_sink())))
            }
        };
        let recording = read_closed(&self.directory, own, Limits::default())?;
        Ok(with_lost_end(recording, ended, facts, outcome))
    }
}

/// What is said of a directory that is gone.
const REMOVED: &str = "the directory was removed";

fn is_removed(directory: &Directory) -> bool {
    directory.file().metadata().is_ok_and(|about| about.nlink() == 0)
}

/// Makes the file of a segment that starts with `facts`.
fn start(directory: &Directory, facts: &Facts) -> Result<Current> {
    let mut number = facts.started_unix_ns;
    loop {
        let name = segment_name(number);
        let path = directory.path().join(&name);
        match directory.create_new(&name, FILE_MODE) {
            Ok(file) => {
                return match Writer::new(file, facts) {
                    Ok(writer) => {
                        let writer = writer.holding(HOLD_NS);
                        let (ids, empty_bytes) = (PartIds::default(), writer.bytes());
                        Ok(Current { name, empty_bytes, ids, writer })
                    }
                    Err(error) => {
                        // Nothing is in it; what cannot be removed does no harm.
                        let _ = directory.remove(&name);
                        Err(error.at(path))
                    }
                };
            }
            // Two runs began in the same nanosecond, or the clock does not advance.
            Err(error) if error.source.kind() == std::io::ErrorKind::AlreadyExists => {
                number = number.wrapping_add(1);
            }
            Err(_) if is_removed(directory) => {
                let directory = directory.path();
                return Err(Error::new(ErrorKind::Failed, "record to", REMOVED).at(directory));
            }
            Err(error) => {
                let is_full = error.kind == sys::ErrorKind::NoSpace;
                let mut error = at("create", &path, &error);
                if is_full {
                    error.kind = ErrorKind::NoSpace;
                }
                return Err(error);
            }
        }
    }
}

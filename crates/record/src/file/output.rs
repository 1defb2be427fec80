//! Where a recording goes: into memory, a file, or a ring of files; the caller need not
//! know which.
//!
//! A file is made for this recording, or replaces an older recording where that was asked
//! for; any other file is left alone. As `perf.data` does, it belongs to its owner only:
//! it tells the command lines of everybody.

use super::chunk::MAGIC;
use super::{Ring, Writer, follow, open, read};
use crate::registry::Row;
use crate::{Error, Kind, Result};
use model::recording::{Facts, Outcome, Recording, Schema, Span, Task, Tick};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Owner only.
pub(super) const FILE_MODE: u32 = 0o600;

/// Where a recording goes. All its calls do what those of [`Writer`] do.
#[derive(Debug)]
pub enum Output {
    /// Into memory.
    Memory(Writer<Vec<u8>>),
    /// Into a file.
    File {
        /// Its writer.
        writer: Writer<File>,
        /// Where it is.
        path: PathBuf,
    },
    /// Into a directory of files that keeps the last hours.
    Ring(Box<Ring>),
}

/// Checks that a recording could be written to `path`, so that nothing is started in vain.
/// Makes nothing.
///
/// # Errors
/// As [`Output::create`].
pub fn check(path: &Path, force: bool) -> Result<()> {
    match path.symlink_metadata() {
        Ok(_) => replaceable(path, force).map(drop),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("write", path, error)),
    }
}

impl Output {
    /// Starts a recording in memory.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn memory(facts: &Facts) -> Result<Self> {
        Writer::new(Vec::new(), facts).map(Output::Memory)
    }

    /// Starts a recording in the file at `path`, which is made, or, with `force`, replaced
    /// if it is a recording (or empty).
    ///
    /// # Errors
    /// [`Kind::Usage`] for a file that exists and may not be replaced; others when the
    /// file cannot be made.
    pub fn create(path: &Path, force: bool, facts: &Facts) -> Result<Self> {
        let made = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(path);
        let file = match made {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let file = replaceable(path, force)?;
                let emptied = file.set_len(0).and_then(|()| (&file).rewind());
                emptied.map_err(|error| Error::io("replace", path, error))?;
                file
            }
            made => made.map_err(|error| Error::io("create", path, error))?,
        };
        let writer = Writer::new(file, facts).map_err(|error| error.at(path))?;
        let path = path.to_owned();
        Ok(Output::File { writer, path })
    }

    /// Starts or goes on with a ring of files in the directory `path`, see [`Ring::open`].
    ///
    /// # Errors
    /// As [`Ring::open`].
    pub fn ring(path: &Path, keep_ns: u64, keep_bytes: u64, facts: &Facts) -> Result<Self> {
        let ring = Ring::open(path, keep_ns, keep_bytes, facts)?;
        Ok(Output::Ring(Box::new(ring)))
    }

    /// Adds a sample.
    ///
    /// # Errors
    /// As [`Writer::sample`].
    pub fn sample(&mut self, tick: Tick, schemas: &[Schema], row: &Row) -> Result<()> {
        match self {
            Output::Memory(writer) => writer.sample(tick, schemas, row),
            Output::File { writer, path } => {
                let written = writer.sample(tick, schemas, row);
                let written = written.and_then(|()| follow::tell(writer));
                written.map_err(|error| error.at(&*path))
            }
            Output::Ring(ring) => ring.sample(tick, schemas, row),
        }
    }

    /// Adds a named instant or interval.
    ///
    /// # Errors
    /// As [`Writer::sample`].
    pub fn span(&mut self, span: &Span) -> Result<()> {
        match self {
            Output::Memory(writer) => writer.span(span),
            Output::File { writer, path } => writer.span(span).map_err(|error| error.at(&*path)),
            Output::Ring(ring) => ring.span(span),
        }
    }

    /// Adds rows of delay accounting.
    ///
    /// # Errors
    /// As [`Writer::sample`].
    pub fn tasks(&mut self, tasks: &[Task]) -> Result<()> {
        match self {
            Output::Memory(writer) => writer.tasks(tasks),
            Output::File { writer, path } => writer.tasks(tasks).map_err(|error| error.at(&*path)),
            Output::Ring(ring) => ring.tasks(tasks),
        }
    }

    /// Writes what is still held, so that a reader sees it.
    ///
    /// # Errors
    /// As [`Writer::sample`].
    pub fn flush(&mut self) -> Result<()> {
        match self {
            Output::Memory(writer) => writer.flush(),
            Output::File { writer, path } => writer.flush().map_err(|error| error.at(&*path)),
            Output::Ring(ring) => ring.flush(),
        }
    }

    /// Bytes written so far, in whole chunks.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Output::Memory(writer) => writer.bytes(),
            Output::File { writer, .. } => writer.bytes(),
            Output::Ring(ring) => ring.bytes(),
        }
    }

    /// The file or directory; `None` for memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Output::Memory(_) => None,
            Output::File { path, .. } => Some(path),
            Output::Ring(ring) => Some(ring.path()),
        }
    }

    /// Ends the recording and reads it back.
    ///
    /// Also after a failed write: then the end is tried again where the cut chunk was, and
    /// if that fails too the facts and the outcome are those given here, and the damage
    /// says what the file lacks.
    ///
    /// # Errors
    /// When nothing can be read back.
    pub fn finish(self, facts: &Facts, outcome: &Outcome) -> Result<Recording> {
        let (ended, recording) = match self {
            Output::Memory(mut writer) => {
                let ended = writer.end(facts, outcome);
                (ended, read(&*writer.into_sink()))
            }
            Output::File { mut writer, path } => {
                let ended = end_file(&mut writer, facts, outcome);
                (ended, open(&path))
            }
            Output::Ring(ring) => ring.finish(facts, outcome),
        };
        let mut recording = recording?;
        if let Err(error) = ended {
            recording.damage.push(error.to_string());
            let mut started_unix_ns = recording.facts.started_unix_ns;
            if started_unix_ns == 0 {
                // Not even the first chunk could be written.
                started_unix_ns = facts.started_unix_ns;
            }
            // A ring starts where its oldest segment does.
            let earlier_ns = facts.started_unix_ns.saturating_sub(started_unix_ns);
            recording.facts = Facts {
                started_unix_ns,
                ..facts.clone()
            };
            let outcome = recording.outcome.insert(outcome.clone());
            outcome.ended_ns = outcome.ended_ns.saturating_add(earlier_ns);
            outcome
                .stopped_early
                .get_or_insert(error.source.to_string());
        }
        Ok(recording)
    }
}

/// Ends the recording in a file; on a full disk behind its last whole chunk, where the
/// outcome then tells that rows are missing.
pub(super) fn end_file(writer: &mut Writer<File>, facts: &Facts, outcome: &Outcome) -> Result<()> {
    let first = writer.end(facts, outcome);
    let Err(error) = first else {
        return Ok(());
    };
    if writer.cut_to_whole().is_err() {
        return Err(error);
    }
    let mut outcome = outcome.clone();
    outcome
        .stopped_early
        .get_or_insert(error.source.to_string());
    writer.end(facts, &outcome)
}

/// Opens a file that may be replaced, checked on the open file so that nobody can swap it.
fn replaceable(path: &Path, force: bool) -> Result<File> {
    if path.is_dir() {
        return Err(refusal(path, "it is a directory; --keep records into one"));
    }
    if !force {
        return Err(refusal(
            path,
            "it exists already; --force replaces a recording",
        ));
    }
    let file = OpenOptions::new().read(true).write(true).open(path);
    let mut file = file.map_err(|error| Error::io("replace", path, error))?;
    let about = file.metadata();
    let about = about.map_err(|error| Error::io("replace", path, error))?;
    if !about.is_file() || (about.len() > 0 && !starts_with_magic(&mut file)) {
        return Err(refusal(path, "it is no recording, so it is left alone"));
    }
    Ok(file)
}

/// Whether a file starts as recordings do.
pub(super) fn starts_with_magic(file: &mut File) -> bool {
    let mut start = [0; MAGIC.len()];
    file.read_exact(&mut start).is_ok() && start == MAGIC
}

fn refusal(path: &Path, why: &str) -> Error {
    Error::new(Kind::Usage, "write", why).at(path)
}

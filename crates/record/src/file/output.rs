//! Where a recording goes: into memory, a file, or a ring of files; the caller need not
//! know which.
//!
//! A file is made for this recording, or replaces an older recording where that was asked
//! for; any other file is left alone. As `perf.data` does, it belongs to its owner only:
//! it tells the command lines of everybody.

use super::chunk::MAGIC;
use super::reader::{Limits, read_within};
use super::{Ring, Writer, follow, read};
use crate::registry::Row;
use crate::{Error, Kind, Result};
use model::recording::{Facts, Outcome, Recording, Schema, Span, Task, Tick};
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use sys::directory::FilePlace;

/// Owner only.
pub(super) const FILE_MODE: u32 = 0o600;

/// Where a recording goes. All its calls do what those of [`Writer`] do.
#[derive(Debug)]
pub enum Output {
    /// Into memory.
    Memory(Writer<Vec<u8>>),
    /// Into a file.
    File(FileOutput),
    /// Into a directory of files that keeps the last hours.
    Ring(Box<Ring>),
}

/// A recording that is written to one file, through its descriptor only.
#[derive(Debug)]
pub struct FileOutput {
    writer: Writer<File>,
    /// As it was asked for.
    path: PathBuf,
    place: FilePlace,
}

/// Checks that a recording could be written to `path`, so that nothing is started in vain.
/// Makes nothing.
///
/// # Errors
/// As [`Output::create`].
pub fn check(path: &Path, force: bool) -> Result<()> {
    let place = match FilePlace::of(path) {
        Err(error) if error.kind == sys::Kind::NotFound => return Ok(()),
        place => place.map_err(|error| at("write", path, &error))?,
    };
    match place.directory.metadata(&place.name) {
        Err(error) if error.kind == sys::Kind::NotFound => Ok(()),
        _ => replaceable(&place, path, force).map(drop),
    }
}

/// An error of the system about the file that was asked for as `path`.
pub(super) fn at(operation: &str, path: &Path, error: &sys::Error) -> Error {
    let mut reason = sys::plain_reason(&error.source);
    if let (sys::Kind::Denied, Some(fault)) = (error.kind, &error.path)
        && fault != path
    {
        reason = format!("{}: {reason}", fault.display());
    }
    let kind = match error.kind {
        // Refused by a rule of ours, not by the system: this user cannot do it here.
        sys::Kind::Denied if error.number().is_none() => Kind::Impossible,
        _ => Kind::Failed,
    };
    Error::new(kind, operation, reason).at(path)
}

impl FileOutput {
    fn create(path: &Path, force: bool, facts: &Facts) -> Result<Self> {
        let place = FilePlace::of(path).map_err(|error| at("create", path, &error))?;
        let (file, is_new) = match place.directory.create_new(&place.name, FILE_MODE) {
            Err(error) if error.source.kind() == std::io::ErrorKind::AlreadyExists => {
                let file = replaceable(&place, path, force)?;
                let emptied = file.set_len(0).and_then(|()| (&file).rewind());
                emptied.map_err(|error| Error::io("replace", path, error))?;
                (file, false)
            }
            made => (made.map_err(|error| at("create", path, &error))?, true),
        };
        let made = file.metadata().map(|about| about.ino());
        match Writer::new(file, facts) {
            Ok(writer) => Ok(Self {
                writer,
                path: path.to_owned(),
                place,
            }),
            Err(error) => {
                // Left there, it would be in the way of the next recording.
                if let (true, Ok(inode)) = (is_new, made) {
                    remove(&place, inode);
                }
                Err(error.at(path))
            }
        }
    }

    /// Why what is written cannot be found at its path any more; `None` where it can.
    fn loss(&self) -> Option<&'static str> {
        let about = self.writer.sink().metadata().ok()?;
        if about.nlink() == 0 {
            Some("the file was removed or replaced while it was written")
        } else if about.len() < self.writer.bytes() {
            Some("the file was cut while it was written")
        } else {
            None
        }
    }
}

/// Removes the file that this process made, unless its name has become another's.
fn remove(place: &FilePlace, inode: u64) {
    let now = place.directory.metadata(&place.name);
    if now.is_ok_and(|about| about.ino() == inode) {
        // What cannot be removed stays; nothing else is lost by it.
        let _ = place.directory.remove(&place.name);
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
        let output = FileOutput::create(path, force, facts)?;
        Ok(Output::File(output))
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
            Output::File(file) => {
                let written = file.writer.sample(tick, schemas, row);
                let written = written.and_then(|()| follow::tell(&mut file.writer));
                written.map_err(|error| error.at(&file.path))
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
            Output::File(file) => {
                let written = file.writer.span(span);
                written.map_err(|error| error.at(&file.path))
            }
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
            Output::File(file) => {
                let written = file.writer.tasks(tasks);
                written.map_err(|error| error.at(&file.path))
            }
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
            Output::File(file) => {
                let written = file.writer.flush();
                written.map_err(|error| error.at(&file.path))
            }
            Output::Ring(ring) => ring.flush(),
        }
    }

    /// Bytes written so far, in whole chunks.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Output::Memory(writer) => writer.bytes(),
            Output::File(file) => file.writer.bytes(),
            Output::Ring(ring) => ring.bytes(),
        }
    }

    /// The file or directory; `None` for memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Output::Memory(_) => None,
            Output::File(file) => Some(&file.path),
            Output::Ring(ring) => Some(ring.path()),
        }
    }

    /// Why what is written cannot be found any more, once that is so.
    #[must_use]
    pub fn loss(&self) -> Option<&'static str> {
        match self {
            Output::Memory(_) => None,
            Output::File(file) => file.loss(),
            Output::Ring(ring) => ring.loss(),
        }
    }

    /// What a person should know of it now; each is reported once.
    pub fn news(&mut self) -> Option<String> {
        match self {
            Output::Ring(ring) => ring.news(),
            Output::Memory(_) | Output::File(_) => None,
        }
    }

    /// Removes the file of a recording of nothing. A ring keeps what it has.
    pub fn discard(self) {
        if let Output::File(file) = self
            && let Ok(about) = file.writer.sink().metadata()
        {
            remove(&file.place, about.ino());
        }
    }

    /// Ends the recording and reads it back, a file through the descriptor that wrote it.
    ///
    /// Also after a failed write: then the end is tried again where the cut chunk was. The facts
    /// and the outcome are always those given here, never those that were read; the damage says
    /// what the file lacks.
    ///
    /// # Errors
    /// When nothing can be read back.
    pub fn finish(self, facts: &Facts, outcome: &Outcome) -> Result<Recording> {
        match self {
            Output::Memory(mut writer) => {
                let ended = writer.end(facts, outcome).map(|()| outcome.clone());
                let recording = read(&*writer.into_sink());
                recording.map(|recording| known(recording, ended, facts, outcome))
            }
            Output::File(mut file) => {
                let ended = end_file(&mut file.writer, facts, outcome);
                let loss = file.loss();
                let recording = read_back(file.writer.into_sink(), Limits::default());
                let mut recording = recording.map_err(|error| error.at(&file.path))?;
                let words = |why: &str| format!("{}: {why}", file.path.display());
                recording.damage.extend(loss.map(words));
                Ok(known(recording, ended, facts, outcome))
            }
            Output::Ring(ring) => {
                let (ended, recording) = ring.finish(facts, outcome);
                recording.map(|recording| completed(recording, ended, facts, outcome))
            }
        }
    }
}

/// Reads what was written to an open file, from its start.
pub(super) fn read_back(mut file: File, limits: Limits) -> Result<Recording> {
    let rewound = file.rewind();
    rewound.map_err(|error| {
        let reason = sys::plain_reason(&error);
        Error::new(Kind::Failed, "read the recording", reason)
    })?;
    read_within(BufReader::new(file), limits)
}

/// What was read back, with the facts and the outcome that are known without it.
fn known(
    recording: Recording,
    ended: Result<Outcome>,
    facts: &Facts,
    outcome: &Outcome,
) -> Recording {
    let (written, ended) = match ended {
        Ok(written) => (Some(written), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let mut recording = completed(recording, ended, facts, outcome);
    recording.facts = facts.clone();
    recording.outcome = written.or(recording.outcome);
    recording
}

/// What was read back, with what could not be written.
fn completed(
    mut recording: Recording,
    ended: Result<()>,
    facts: &Facts,
    outcome: &Outcome,
) -> Recording {
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
    recording
}

/// Ends the recording in a file; on a full disk behind its last whole chunk, where the
/// outcome then tells that rows are missing.
pub(super) fn end_file(
    writer: &mut Writer<File>,
    facts: &Facts,
    outcome: &Outcome,
) -> Result<Outcome> {
    let first = writer.end(facts, outcome);
    let Err(error) = first else {
        return Ok(outcome.clone());
    };
    if writer.cut_to_whole().is_err() {
        return Err(error);
    }
    let mut outcome = outcome.clone();
    outcome
        .stopped_early
        .get_or_insert(error.source.to_string());
    writer.end(facts, &outcome).map(|()| outcome)
}

/// Opens a file that may be replaced: a recording of this user, checked on the open file so that
/// nobody can exchange it. What is not a regular file is not opened.
fn replaceable(place: &FilePlace, path: &Path, force: bool) -> Result<File> {
    let failed = |error: sys::Error| at("replace", path, &error);
    let about = place.directory.metadata(&place.name).map_err(failed)?;
    if about.is_dir() {
        return Err(refusal(path, "it is a directory; --keep records into one"));
    }
    if !force {
        return Err(refusal(
            path,
            "it exists already; --force replaces a recording",
        ));
    }
    if !about.is_file() {
        return Err(refusal(path, "it is not a regular file"));
    }
    let mut file = place.directory.open_own(&place.name).map_err(failed)?;
    let about = file.metadata();
    let about = about.map_err(|error| Error::io("replace", path, error))?;
    if about.len() > 0 && !starts_with_magic(&mut file) {
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

//! A recording that is written to one file, through its descriptor only, or to memory: the same
//! [`Writer`] makes both, so both give the same recording.
//!
//! A file is made for this recording, or replaces an older recording if that was asked for; any
//! other file is left alone. As `perf.data` does, it belongs to its owner only: it contains the
//! command lines of all users.

use super::read_back::{read_back, with_end};
use super::reader::{Limits, read, starts_with_magic};
use super::tail::flush_if_followed;
use super::writer::{FILE_MODE, Writer};
use crate::accesses::AccessBatch;
use crate::error::at;
use crate::registry::Row;
use crate::sink::RecordSink;
use crate::{Error, ErrorKind, Result};
use model::recording::{Facts, Recording, RecordingOutcome, Schema, Span, Task, Tick, Who};
use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use sys::directory::FilePlace;

/// A recording that is written to one file.
#[derive(Debug)]
pub struct FileSink {
    writer: Writer<File>,
    /// As it was asked for.
    path: PathBuf,
    place: FilePlace,
}

impl FileSink {
    /// Starts a recording in the file at `path`, which is made, or, with `force`, replaced if it
    /// is a recording (or empty).
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a file that exists and may not be replaced; others when the file
    /// cannot be made.
    pub fn create(path: &Path, force: bool, facts: &Facts) -> Result<Self> {
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
        // By it readers see that the file is still written; without locks they cannot.
        let _ = sys::record_lock::mark_as_written(&file);
        let made = file.metadata().map(|about| about.ino());
        match Writer::new(file, facts) {
            Ok(writer) => Ok(Self { writer, path: path.to_owned(), place }),
            Err(error) => {
                // Left there, it would be in the way of the next recording.
                if let (true, Ok(inode)) = (is_new, made) {
                    remove(&place, inode);
                }
                Err(error.at(path))
            }
        }
    }
}

impl RecordSink for FileSink {
    fn started(&mut self, facts: &Facts) {
        self.writer.correct(facts);
    }

    fn sample(&mut self, tick: Tick, schemas: &[Schema], row: &Row) -> Result<()> {
        self.writer
            .sample(tick, schemas, row)
            .and_then(|()| flush_if_followed(&mut self.writer))
            .map_err(|error| error.at(&self.path))
    }

    fn span(&mut self, span: &Span) -> Result<()> {
        let written = self.writer.span(span);
        written.map_err(|error| error.at(&self.path))
    }

    fn tasks(&mut self, tasks: &[Task]) -> Result<()> {
        let written = self.writer.tasks(tasks);
        written.map_err(|error| error.at(&self.path))
    }

    fn who(&mut self, news: &Who) -> Result<()> {
        let written = self.writer.who(news);
        written.map_err(|error| error.at(&self.path))
    }

    fn accesses(&mut self, batch: &AccessBatch) -> Result<u64> {
        let written = self.writer.accesses(batch);
        written.map_err(|error| error.at(&self.path))
    }

    fn flush(&mut self) -> Result<()> {
        let written = self.writer.flush();
        written.map_err(|error| error.at(&self.path))
    }

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

    fn finish(mut self, facts: &Facts, outcome: &RecordingOutcome) -> Result<Recording> {
        let ended = self.writer.end_or_cut(facts, outcome);
        let loss = self.loss();
        let read = read_back(self.writer.into_sink(), Limits::default());
        let mut recording = read.map_err(|error| error.at(&self.path))?;
        let damage = loss.map(|why| format!("{}: {why}", self.path.display()));
        recording.damage.extend(damage);
        Ok(with_end(recording, ended, facts, outcome))
    }

    fn discard(self) {
        if let Ok(about) = self.writer.sink().metadata() {
            remove(&self.place, about.ino());
        }
    }
}

/// Where the bytes of a recording in memory are put when it is over.
pub type KeptBytes = Arc<OnceLock<Vec<u8>>>;

/// What a file would hold, in memory.
#[derive(Debug, Default)]
pub struct MemoryFile {
    bytes: Vec<u8>,
    kept: Option<KeptBytes>,
}

impl MemoryFile {
    /// An empty one, whose bytes are put into `kept` when the recording is over.
    #[must_use]
    pub fn new(kept: Option<KeptBytes>) -> Self {
        Self { bytes: Vec::new(), kept }
    }

    /// What was written.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Write for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A recording in memory: the bytes of its file, read back at its end.
impl RecordSink for Writer<MemoryFile> {
    fn sample(&mut self, tick: Tick, schemas: &[Schema], row: &Row) -> Result<()> {
        Writer::sample(self, tick, schemas, row)
    }

    fn span(&mut self, span: &Span) -> Result<()> {
        Writer::span(self, span)
    }

    fn tasks(&mut self, tasks: &[Task]) -> Result<()> {
        Writer::tasks(self, tasks)
    }

    fn who(&mut self, news: &Who) -> Result<()> {
        Writer::who(self, news)
    }

    fn accesses(&mut self, batch: &AccessBatch) -> Result<u64> {
        Writer::accesses(self, batch)
    }

    fn flush(&mut self) -> Result<()> {
        Writer::flush(self)
    }

    fn finish(mut self, facts: &Facts, outcome: &RecordingOutcome) -> Result<Recording> {
        let ended = self.end(facts, outcome).map(|()| outcome.clone());
        let MemoryFile { bytes, kept } = self.into_sink();
        let recording = read(&*bytes)?;
        // Only the first recording of an owner is kept.
        let _ = kept.map(|kept| kept.set(bytes));
        Ok(with_end(recording, ended, facts, outcome))
    }
}

/// Checks that a recording could be written to `path`, so that nothing is started in vain.
/// Makes nothing.
///
/// # Errors
/// As [`FileSink::create`].
pub fn check(path: &Path, force: bool) -> Result<()> {
    let place = match FilePlace::of(path) {
        Err(error) if error.kind == sys::ErrorKind::NotFound => return Ok(()),
        place => place.map_err(|error| at("write", path, &error))?,
    };
    match place.directory.metadata(&place.name) {
        Err(error) if error.kind == sys::ErrorKind::NotFound => Ok(()),
        _ => replaceable(&place, path, force).map(drop),
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

/// Opens a file that may be replaced: a recording of this user. It is checked on the open file, so
/// it cannot be exchanged in between. Only a regular file is opened.
fn replaceable(place: &FilePlace, path: &Path, force: bool) -> Result<File> {
    let failed = |error: sys::Error| at("replace", path, &error);
    let about = place.directory.metadata(&place.name).map_err(failed)?;
    if about.is_dir() {
        return Err(refusal(path, "it is a directory; --keep records into one"));
    }
    if !force {
        return Err(refusal(path, "it exists already; --force replaces a recording"));
    }
    if !about.is_file() {
        return Err(refusal(path, "it is not a regular file"));
    }
    let mut file = place.directory.open_own(&place.name).map_err(failed)?;
    let opened = file.metadata().map_err(|error| Error::io("replace", path, error))?;
    if opened.len() > 0 && !starts_with_magic(&mut file) {
        return Err(refusal(path, "it is no recording, so it is left alone"));
    }
    Ok(file)
}

fn refusal(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Usage, "write", why).at(path)
}

//! Where a result goes: standard output, or a file that is written whole or not at all.
//!
//! A file is checked before anything is measured, and written afterwards: to a temporary file in
//! the same directory, renamed over it when complete. The directory is opened at the check and
//! held. Devices, directories and pipes are refused: a measuring tool must never overwrite a disk
//! by a typing error.

use super::clean::{self, TerminalWriter, printable};
use crate::error::{Error, Result};
use crate::exit::Exit;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use sys::directory::{Directory, FilePlace};
use sys::file::{Durability, FileMode, TempFile};

/// The mode of a result that names processes, paths or hosts: for its owner only.
const PRIVATE_MODE: u32 = 0o600;
/// The mode of a result that is made to be passed on; the user's mask takes bits away.
const SHARED_MODE: u32 = 0o666;

#[derive(Debug)]
pub enum OutputTarget {
    Standard,
    /// A file in a directory that is held open.
    File(OutputFile),
}

/// The file of `-o`.
#[derive(Debug)]
pub struct OutputFile {
    place: FilePlace,
    /// Its mode if it does not exist yet.
    mode: u32,
}

/// What became of a written text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Whole,
    /// The reader closed the pipe: it has what it wanted, and nothing failed.
    ReaderGone,
}

impl OutputTarget {
    pub fn standard() -> Self {
        OutputTarget::Standard
    }

    /// The target of `-o`; `None`, `-` and `/dev/stdout` are standard output. A file that does not
    /// exist is made for its owner only; see [`OutputTarget::of_redacted`].
    ///
    /// # Errors
    /// When the file could not be written: it is no regular file, or its directory
    /// takes no new file. Nothing is created yet.
    pub fn of(output: Option<&Path>) -> Result<Self> {
        let Some(path) = output else {
            return Ok(OutputTarget::Standard);
        };
        if path == Path::new("-") || path == Path::new("/dev/stdout") {
            return Ok(OutputTarget::Standard);
        }
        let place = placed(path)?;
        // The only sure way to know that a directory takes a file is to make one; this one has
        // no name, so that nothing stays behind if the process dies here.
        sys::file::Scratch::create(&place.directory).map_err(|error| refused(path, error))?;
        Ok(OutputTarget::File(OutputFile { place, mode: PRIVATE_MODE }))
    }

    /// As [`OutputTarget::of`]. What `is_redacted` is made to be passed on: others may read its
    /// file, as far as the user's mask lets them.
    pub fn of_redacted(output: Option<&Path>, is_redacted: bool) -> Result<Self> {
        let mut target = Self::of(output)?;
        if let OutputTarget::File(file) = &mut target
            && is_redacted
        {
            file.mode = SHARED_MODE;
        }
        Ok(target)
    }

    /// The file `name` in a directory that is held open, for its owner only.
    pub fn in_directory(directory: Directory, name: &str) -> Self {
        let place = FilePlace { directory, name: name.into(), is_link: false };
        OutputTarget::File(OutputFile { place, mode: PRIVATE_MODE })
    }

    /// Writes the whole text of a page, printable: marks of colours become escape sequences, and
    /// no other character that a terminal obeys leaves.
    ///
    /// # Errors
    /// When it did not arrive whole; an existing file is then as it was.
    pub fn write(&self, text: &str) -> Result<Written> {
        self.put(&printable(text))
    }

    /// Writes the whole text as it is: for programs, such as a browser. A terminal gets it
    /// printable.
    pub fn write_data(&self, text: &str) -> Result<Written> {
        match self {
            OutputTarget::Standard if io::stdout().is_terminal() => self.put(&clean::data(text)),
            _ => self.put(text),
        }
    }

    fn put(&self, text: &str) -> Result<Written> {
        match self {
            OutputTarget::Standard => write_standard(text),
            OutputTarget::File(file) => {
                let FilePlace { directory, name, .. } = &file.place;
                let mode = file.file_mode();
                sys::file::replace(directory, name, text.as_bytes(), mode, Durability::Synced)
                    .map_err(|error| file.failed(error))?;
                Ok(Written::Whole)
            }
        }
    }

    /// Writes what `fill` gives, piece by piece, as [`OutputTarget::write_data`] does: for a text
    /// too long to be held.
    ///
    /// # Errors
    /// As [`OutputTarget::write`], and what `fill` reports.
    pub fn stream(&self, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<Written> {
        match self {
            OutputTarget::Standard => {
                let mut sink = Sink::new(io::stdout().lock());
                let filled = if io::stdout().is_terminal() {
                    let mut clean = TerminalWriter::new(&mut sink);
                    let error = |source| failed("standard output", &source);
                    fill(&mut clean).and_then(|()| clean.end().map_err(error))
                } else {
                    fill(&mut sink)
                };
                let written = filled.and_then(|()| sink.end("standard output"));
                if sink.reader_gone {
                    return Ok(Written::ReaderGone);
                }
                written.map(|()| Written::Whole)
            }
            OutputTarget::File(file) => {
                let part = file.part()?;
                let mut sink = Sink::new(part.file());
                fill(&mut sink).and_then(|()| sink.end(&file.name()))?;
                drop(sink);
                part.put().map_err(|error| file.failed(error))?;
                Ok(Written::Whole)
            }
        }
    }
}

impl OutputFile {
    fn name(&self) -> String {
        self.place.path().display().to_string()
    }

    /// The file that becomes this one when it is whole.
    fn part(&self) -> Result<TempFile<'_>> {
        let FilePlace { directory, name, .. } = &self.place;
        TempFile::create(directory, name, self.file_mode(), Durability::Synced)
            .map_err(|error| self.failed(error))
    }

    fn file_mode(&self) -> FileMode {
        FileMode::AsBefore { new: self.mode }
    }

    fn failed(&self, error: sys::Error) -> Error {
        failed(&self.name(), &error.source)
    }
}

/// A buffered writer that remembers that its reader has gone: the code that writes to it reports
/// a failure in words of its own.
struct Sink<W: Write> {
    buffer: io::BufWriter<W>,
    reader_gone: bool,
}

impl<W: Write> Sink<W> {
    fn new(inner: W) -> Self {
        Self { buffer: io::BufWriter::new(inner), reader_gone: false }
    }

    fn end(&mut self, name: &str) -> Result<()> {
        self.flush().map_err(|source| failed(name, &source))
    }

    fn noted<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        let gone = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        self.reader_gone |= result.as_ref().is_err_and(gone);
        result
    }
}

impl<W: Write> Write for Sink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.buffer.write(bytes);
        self.noted(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.buffer.flush();
        self.noted(flushed)
    }
}

fn write_standard(text: &str) -> Result<Written> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Written::Whole),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Written::ReaderGone),
        Err(error) => Err(failed("standard output", &error)),
    }
}

/// The place of the file `path`, if a regular file is there or can be put there.
fn placed(path: &Path) -> Result<FilePlace> {
    let refuse = |why: &str| {
        let text = format!("cannot write {}: {why}", path.display());
        Err(Error::usage(text).hint("-o takes the name of a regular file"))
    };
    let place = match FilePlace::of(path) {
        Ok(place) => place,
        Err(error) if error.kind == sys::ErrorKind::Invalid => {
            return refuse(if path.is_dir() {
                "it is a directory"
            } else {
                "it is not the name of a file"
            });
        }
        Err(error) => return Err(refused(path, error)),
    };
    match place.directory.metadata(&place.name) {
        Ok(about) if about.is_file() => Ok(place),
        Ok(about) if about.is_dir() => refuse("it is a directory"),
        Ok(_) => refuse("it is a device or a pipe"),
        Err(error) if error.kind != sys::ErrorKind::NotFound => Err(refused(path, error)),
        Err(_) if place.is_link => refuse("it is a symbolic link to nothing"),
        Err(_) => Ok(place),
    }
}

/// The directory of `path` takes no new file, or another user can change the way to it.
fn refused(path: &Path, error: sys::Error) -> Error {
    let missing = error.kind == sys::ErrorKind::NotFound;
    let by_system = error.number().is_some();
    let mut refusal = Error::from(error);
    // Terrace's own rules need no hint.
    if by_system {
        let path = path.display();
        refusal = refusal.hint(format!("-o {path} needs a directory that you can write"));
    }
    if missing {
        refusal.exit = Exit::Usage;
    }
    refusal
}

fn failed(what: &str, source: &io::Error) -> Error {
    // An io::Error cannot be cloned; its number, or else its kind, says the same.
    let again = match source.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::from(source.kind()),
    };
    let reason = sys::Error::new("write", again);
    Error::new(Exit::Partial, reason.at(what).to_string())
}

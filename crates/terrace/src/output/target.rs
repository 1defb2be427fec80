//! Where a result goes: standard output, or a file that is written whole or not at all.
//!
//! A file is checked before anything is measured, and written afterwards: to a file
//! without a usual name beside it, renamed over it when complete. Devices, directories
//! and pipes are refused: a measuring tool must never overwrite a disk by a typing error.

use super::clean::{self, TerminalWriter, printable};
use crate::error::{Error, Result};
use crate::exit::Exit;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Where a result goes.
#[derive(Debug)]
pub enum Target {
    /// Standard output.
    Standard,
    /// The file of this path, with symbolic links resolved.
    File(PathBuf),
}

/// What became of a written text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// All of it arrived.
    Whole,
    /// The reader closed the pipe: it has what it wanted, and nothing failed.
    ReaderGone,
}

impl Target {
    /// Standard output.
    pub fn standard() -> Self {
        Target::Standard
    }

    /// The target of `-o`; `None`, `-` and `/dev/stdout` are standard output.
    ///
    /// # Errors
    /// When the file could not be written: it is no regular file, or its directory
    /// takes no new file. Nothing is created yet.
    pub fn of(output: Option<&Path>) -> Result<Self> {
        let Some(path) = output else {
            return Ok(Target::Standard);
        };
        if path == Path::new("-") || path == Path::new("/dev/stdout") {
            return Ok(Target::Standard);
        }
        let path = resolved(path)?;
        // The only sure way to know that a directory takes a file is to make one; this one has
        // no name, so that nothing stays behind if the process dies here.
        sys::file::Scratch::create_in(directory_of(&path))
            .map_err(|error| refused(&path, error))?;
        Ok(Target::File(path))
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
    ///
    /// # Errors
    /// As [`Target::write`].
    pub fn write_data(&self, text: &str) -> Result<Written> {
        match self {
            Target::Standard if io::stdout().is_terminal() => self.put(&clean::data(text)),
            _ => self.put(text),
        }
    }

    fn put(&self, text: &str) -> Result<Written> {
        match self {
            Target::Standard => write_standard(text),
            Target::File(path) => replace(path, text)
                .map(|()| Written::Whole)
                .map_err(|source| failed(&path.display().to_string(), &source)),
        }
    }
}

impl Target {
    /// Writes what `fill` gives, piece by piece, as [`Target::write_data`] does: for a text too
    /// long to be held.
    ///
    /// # Errors
    /// As [`Target::write`], and what `fill` reports.
    pub fn stream(&self, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<Written> {
        match self {
            Target::Standard => {
                let mut sink = Sink::new(io::stdout().lock());
                let filled = match io::stdout().is_terminal() {
                    true => {
                        let mut clean = TerminalWriter::new(&mut sink);
                        let said = |source| failed("standard output", &source);
                        fill(&mut clean).and_then(|()| clean.end().map_err(said))
                    }
                    false => fill(&mut sink),
                };
                let filled = filled.and_then(|()| sink.end("standard output"));
                if sink.reader_gone {
                    return Ok(Written::ReaderGone);
                }
                filled.map(|()| Written::Whole)
            }
            Target::File(path) => {
                let name = path.display().to_string();
                let said = |source: io::Error| failed(&name, &source);
                let beside = Beside::create(path).map_err(said)?;
                let mut sink = Sink::new(&beside.file);
                fill(&mut sink).and_then(|()| sink.end(&name))?;
                drop(sink);
                beside.put_at(path).map_err(said)?;
                Ok(Written::Whole)
            }
        }
    }
}

/// A buffered writer that remembers that its reader has gone: whoever writes to it tells of
/// a failure in words of its own.
struct Sink<W: Write> {
    buffer: io::BufWriter<W>,
    reader_gone: bool,
}

impl<W: Write> Sink<W> {
    fn new(inner: W) -> Self {
        Self {
            buffer: io::BufWriter::new(inner),
            reader_gone: false,
        }
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

/// `path` with links resolved, if a regular file is there or can be put there.
fn resolved(path: &Path) -> Result<PathBuf> {
    let refuse = |why: &str| {
        let text = format!("cannot write {}: {why}", path.display());
        Err(Error::usage(text).hint("-o takes the name of a regular file"))
    };
    let Ok(link) = fs::symlink_metadata(path) else {
        return match path.file_name() {
            Some(_) => Ok(path.to_owned()),
            None => refuse("it is not the name of a file"),
        };
    };
    match (fs::metadata(path), path.canonicalize()) {
        (Ok(what), _) if what.is_dir() => refuse("it is a directory"),
        (Ok(what), Ok(whole)) if what.is_file() => Ok(whole),
        (Ok(_), _) => refuse("it is a device or a pipe"),
        (Err(_), _) if link.is_symlink() => refuse("it is a symbolic link to nothing"),
        (Err(source), _) => Err(failed(&path.display().to_string(), &source)),
    }
}

/// The directory of `path` takes no new file.
fn refused(path: &Path, error: sys::Error) -> Error {
    let missing = error.kind == sys::Kind::NotFound;
    let error = Error::from(error).hint(format!(
        "-o {} needs a directory that you can write",
        path.display()
    ));
    Error {
        exit: if missing { Exit::Usage } else { error.exit },
        ..error
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Puts `text` at `path`: written beside it, synced, renamed over it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let beside = Beside::create(path)?;
    (&beside.file).write_all(text.as_bytes())?;
    beside.put_at(path)
}

/// The file being written; removed again unless it was renamed.
struct Beside {
    file: File,
    path: Option<PathBuf>,
}

impl Beside {
    fn create(target: &Path) -> io::Result<Self> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = directory_of(target).join(format!(".{name}.{}.part", std::process::id()));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        Ok(Self {
            file,
            path: Some(path),
        })
    }

    /// Puts the file, whole and durable, in the place of `path`, with the mode of what was there.
    fn put_at(self, path: &Path) -> io::Result<()> {
        if let Ok(old) = fs::metadata(path) {
            self.file.set_permissions(old.permissions())?;
        }
        self.file.sync_data()?;
        self.rename_to(path)
    }

    fn rename_to(mut self, target: &Path) -> io::Result<()> {
        if let Some(path) = &self.path {
            fs::rename(path, target)?;
        }
        self.path = None;
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // The write has failed already and says so; a second complaint would hide it.
            let _ = fs::remove_file(path);
        }
    }
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

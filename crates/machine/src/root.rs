//! Where /proc and /sys are found: the real ones, or a fake tree below any directory.
//!
//! Readings are bounded and tolerate text that is not UTF-8, since mount points and
//! device names may hold any byte.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The most that is read of one file; /proc/self/smaps of a large process is a few MiB.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// The first buffer of a [`Rereader`]: most counters' files fit in a page.
const FIRST_BUFFER_BYTES: usize = 4096;

/// The directory that stands for `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    base: PathBuf,
}

impl Root {
    /// The machine itself.
    #[must_use]
    pub fn system() -> Self {
        Self::at("/")
    }

    /// A tree whose /proc, /sys and so on lie below `base`.
    #[must_use]
    pub fn at(base: impl Into<PathBuf>) -> Self {
        Self { base: base.into() }
    }

    /// Whether this is the machine itself, so that the processor may be asked as well.
    #[must_use]
    pub fn is_system(&self) -> bool {
        self.base == Path::new("/")
    }

    /// Where an absolute path lies in this tree.
    #[must_use]
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.base
            .join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// The text of a file, at most 64 MiB of it; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// `NotFound` and `Denied` are normal on other kernels and in containers.
    pub fn read(&self, absolute: impl AsRef<Path>) -> Result<String> {
        self.read_bytes(absolute)
            .map(|bytes| match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            })
    }

    /// As [`Root::read`], the bytes as they are.
    ///
    /// # Errors
    /// As [`Root::read`].
    pub fn read_bytes(&self, absolute: impl AsRef<Path>) -> Result<Vec<u8>> {
        let path = self.path(absolute);
        let mut bytes = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes))
            .map_err(|source| Error::new("read", &path, source))?;
        Ok(bytes)
    }

    /// The text without surrounding white space; `None` if it is absent or empty.
    pub(crate) fn word(&self, absolute: impl AsRef<Path>) -> Option<String> {
        let text = self.read(absolute).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// A file that holds one number.
    pub(crate) fn number<T: std::str::FromStr>(&self, absolute: impl AsRef<Path>) -> Option<T> {
        self.word(absolute)?.parse().ok()
    }

    /// The names in a directory, sorted; none if it cannot be read.
    pub(crate) fn names(&self, absolute: impl AsRef<Path>) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.path(absolute))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        names
    }

    /// Whether something is there.
    pub(crate) fn has(&self, absolute: impl AsRef<Path>) -> bool {
        self.path(absolute).exists()
    }

    /// The absolute path, within this tree, that a path leads to once links are followed.
    pub(crate) fn resolve(&self, absolute: impl AsRef<Path>) -> Option<PathBuf> {
        let target = self.path(absolute).canonicalize().ok()?;
        let base = self.base.canonicalize().ok()?;
        Some(Path::new("/").join(target.strip_prefix(base).ok()?))
    }
}

/// A counter file held open and read again and again from its start, into one buffer: a
/// reading costs one or two system calls and no allocation.
#[derive(Debug)]
pub struct Rereader {
    file: File,
    buffer: Vec<u8>,
}

impl Rereader {
    /// Opens the file; below /proc/self it stays with the process or thread that opened it.
    ///
    /// # Errors
    /// As [`Root::read`].
    pub fn open(root: &Root, absolute: impl AsRef<Path>) -> Result<Self> {
        let path = root.path(absolute);
        let file = File::open(&path).map_err(|source| Error::new("read", &path, source))?;
        Ok(Self {
            file,
            buffer: vec![0; FIRST_BUFFER_BYTES],
        })
    }

    /// The text at this moment; `None` if the file is gone or holds no UTF-8.
    pub fn text(&mut self) -> Option<&str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// The bytes at this moment, whatever they are; `None` if the file is gone.
    pub fn bytes(&mut self) -> Option<&[u8]> {
        let mut filled = 0;
        loop {
            if filled == self.buffer.len() {
                if self.buffer.len() as u64 >= MAX_FILE_BYTES {
                    return None;
                }
                self.buffer.resize(filled * 2, 0);
            }
            match self.file.read_at(&mut self.buffer[filled..], filled as u64) {
                Ok(0) => break,
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(&self.buffer[..filled])
    }
}

//! Where /proc and /sys are found: the real ones, or a fake tree below any directory.
//!
//! Readings are bounded and tolerate text that is not UTF-8, since mount points and
//! device names may hold any byte.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use sys::{Error, Result};

/// The most that is read of one file; /proc/self/smaps of a large process is a few MiB.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// The first buffer of any reading: most files fit in a page.
const FIRST_BUFFER_BYTES: usize = 4096;

/// The directory used as `/`.
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

    /// A tree with its /proc, /sys and so on below `base`.
    #[must_use]
    pub fn at(base: impl Into<PathBuf>) -> Self {
        Self { base: base.into() }
    }

    /// Whether this is the machine itself, so that the processor may be asked as well.
    #[must_use]
    pub fn is_system(&self) -> bool {
        self.base == Path::new("/")
    }

    /// An absolute path, inside this tree.
    #[must_use]
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.base.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// The text of a file, at most 64 MiB of it; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// `NotFound` and `Denied` are normal on other kernels and in containers.
    pub fn read(&self, absolute: impl AsRef<Path>) -> Result<String> {
        self.read_bytes(absolute).map(|bytes| match String::from_utf8(bytes) {
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
        // Room from the start: else the library feels its way with reads of 32 bytes.
        let mut bytes = Vec::with_capacity(FIRST_BUFFER_BYTES);
        File::open(&path)
            .and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes))
            .map_err(|source| Error::new("read", source).at(&path))?;
        Ok(bytes)
    }

    /// As [`Root::read_bytes`] for a file that fits in a page, into a buffer of the caller.
    ///
    /// # Errors
    /// As [`Root::read`].
    pub fn read_short(&self, absolute: impl AsRef<Path>, bytes: &mut Vec<u8>) -> Result<()> {
        let path = self.path(absolute);
        bytes.resize(FIRST_BUFFER_BYTES, 0);
        let read = File::open(&path).and_then(|mut file| file.read(bytes));
        bytes.truncate(*read.as_ref().unwrap_or(&0));
        read.map(|_| ()).map_err(|source| Error::new("read", source).at(&path))
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

/// A counter file of the kernel that is held open and read anew from its start, into one buffer: a
/// reading costs one or two system calls and no allocation.
#[derive(Debug)]
pub struct ProcFile {
    file: File,
    buffer: Vec<u8>,
}

impl ProcFile {
    /// Opens the file; below /proc/self it stays with the process or thread that opened it.
    ///
    /// # Errors
    /// As [`Root::read`].
    pub fn open(root: &Root, absolute: impl AsRef<Path>) -> Result<Self> {
        let path = root.path(absolute);
        let file = File::open(&path).map_err(|source| Error::new("read", source).at(&path))?;
        Ok(Self { file, buffer: vec![0; FIRST_BUFFER_BYTES] })
    }

    /// The text at this moment; `None` if the file is gone or holds no UTF-8.
    pub fn text(&mut self) -> Option<&str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// The bytes at this moment, whatever they are; `None` if the file is gone.
    pub fn bytes(&mut self) -> Option<&[u8]> {
        self.read(0)
    }

    /// As [`ProcFile::bytes`] for a file whose lines are short, which saves a system call.
    ///
    /// The kernel fills a page with as many whole records (a line, or all of the file) as fit.
    /// So where half a page is left, and no record is longer than that, there are no more.
    pub fn short_lines(&mut self) -> Option<&[u8]> {
        self.read(FIRST_BUFFER_BYTES / 2)
    }

    /// Reads until the end, or until a first reading gives fewer than `enough` bytes.
    fn read(&mut self, enough: usize) -> Option<&[u8]> {
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
                Ok(bytes) if filled == 0 && bytes < enough => {
                    filled = bytes;
                    break;
                }
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(&self.buffer[..filled])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lines_are_read_whole_whatever_the_length_of_the_file() {
        let line = "name 12345\n";
        for lines in [0, 1, 100, 186, 187, 400, 1000] {
            let text = line.repeat(lines);
            let tree = testkit::FakeRoot::bare().file("/proc/counters", text.clone());
            let mut reader = ProcFile::open(&Root::at(tree.path()), "/proc/counters").unwrap();
            for _ in 0..2 {
                assert_eq!(reader.short_lines(), Some(text.as_bytes()));
                assert_eq!(reader.bytes(), Some(text.as_bytes()));
            }
        }
    }

    #[test]
    fn files_of_the_kernel_read_the_same_both_ways() {
        let mut reader = ProcFile::open(&Root::system(), "/proc/version").unwrap();
        let whole = reader.bytes().map(<[u8]>::to_vec);
        assert_eq!(reader.short_lines().map(<[u8]>::to_vec), whole);
    }
}

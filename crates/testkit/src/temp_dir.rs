//! A directory of a test's own, removed with all that is in it when the test ends.
//!
//! Names hold process, count and time, so tests run side by side.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// How all names begin; the number of the process follows.
const PREFIX: &str = "terrace-test-";

/// Tells directories of one process apart.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The directory; `Drop` removes it.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    /// Makes a directory below the system's directory for temporary files.
    ///
    /// # Panics
    /// If that is not possible: no test can go on then.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it does I/O")]
    pub fn new() -> Self {
        Self::in_dir(&std::env::temp_dir())
    }

    /// Makes a directory below `parent`.
    ///
    /// # Panics
    /// If that is not possible.
    #[must_use]
    pub fn in_dir(parent: &Path) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{count}-{now:x}", std::process::id()));
        match std::fs::create_dir(&path) {
            Ok(()) => Self { path },
            Err(error) => panic!("cannot create {}: {error}", path.display()),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of something in it.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// The names in it, sorted, hidden ones included.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }
}

/// The process that made the directory at `path`, if its name is one of ours.
pub(crate) fn process_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    name.split('-').next()?.parse().ok()
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // A test that fails elsewhere must not fail again here.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::TempDir;

    #[test]
    fn nothing_is_left() {
        let first = TempDir::new();
        let second = TempDir::new();
        assert_ne!(first.path(), second.path());
        std::fs::create_dir_all(first.join("a/b")).unwrap();
        std::fs::write(first.join("a/b/c"), "x").unwrap();
        assert_eq!(first.names(), ["a"]);
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
    }
}

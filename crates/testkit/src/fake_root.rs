//! A fake tree of /proc and /sys, built file by file, below a directory of its own.
//!
//! Only the files: which ones make up a machine is in `trees`.

use crate::temp_dir::TempDir;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The tree; removed on drop.
#[derive(Debug)]
pub struct FakeRoot {
    directory: TempDir,
}

impl FakeRoot {
    /// A tree with nothing in it.
    ///
    /// # Panics
    /// If there is no place for temporary files.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it does I/O")]
    pub fn new() -> Self {
        Self { directory: TempDir::new() }
    }

    /// The directory that stands for `/`.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Adds a file, and the directories above it; replaces one that is there.
    ///
    /// # Panics
    /// If it cannot be written.
    #[must_use]
    pub fn file(self, absolute: &str, contents: impl AsRef<[u8]>) -> Self {
        let path = self.make_room(absolute);
        if let Err(error) = std::fs::write(&path, contents) {
            panic!("cannot write {}: {error}", path.display());
        }
        self
    }

    /// Adds files below one directory, as pairs of name and contents.
    ///
    /// # Panics
    /// If one cannot be written.
    #[must_use]
    pub fn files(self, directory: &str, files: &[(&str, &str)]) -> Self {
        files
            .iter()
            .fold(self, |root, (name, text)| root.file(&format!("{directory}/{name}"), text))
    }

    /// Adds an empty directory.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn dir(self, absolute: &str) -> Self {
        let path = self.place(absolute);
        if let Err(error) = std::fs::create_dir_all(&path) {
            panic!("cannot create {}: {error}", path.display());
        }
        self
    }

    /// Adds a symbolic link; `target` is taken as it is, and should be relative.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn link(self, absolute: &str, target: &str) -> Self {
        let path = self.make_room(absolute);
        if let Err(error) = symlink(target, &path) {
            panic!("cannot link {}: {error}", path.display());
        }
        self
    }

    /// Takes a file or directory away; nothing happens if it is not there.
    #[must_use]
    pub fn without(self, absolute: &str) -> Self {
        let path = self.place(absolute);
        let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        self
    }

    fn place(&self, absolute: &str) -> PathBuf {
        self.directory.join(absolute.trim_start_matches('/'))
    }

    fn make_room(&self, absolute: &str) -> PathBuf {
        let path = self.place(absolute);
        if let Some(parent) = path.parent()
            && let Err(error) = std::fs::create_dir_all(parent)
        {
            panic!("cannot create {}: {error}", parent.display());
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::FakeRoot;

    #[test]
    fn what_is_added_is_there() {
        let root = FakeRoot::new()
            .file("/proc/a", "1")
            .files("/sys/x", &[("b", "2"), ("c/d", "3")])
            .link("/sys/l", "x/c")
            .without("/proc/a");
        assert_eq!(std::fs::read_to_string(root.path().join("sys/l/d")).unwrap(), "3");
        assert!(!root.path().join("proc/a").exists());
    }
}

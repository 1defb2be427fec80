//! Where a machine keeps its files: images in the user's cache, disks without a name, sockets for a
//! moment.
//!
//! What a running guest uses has no name, so that nothing stays behind whatever ends this process.
//! The one folder with names lives until the guest has opened everything in it; a folder of a
//! process that is no more is removed by the next one.

use std::fs::{self, DirBuilder, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// What the names of all working folders begin with; the process number follows.
const PREFIX: &str = "terrace-vm-";

/// The folder of guest images: `$XDG_CACHE_HOME/terrace-vm`, else `~/.cache/terrace-vm`.
///
/// # Errors
/// When it cannot be made, or the environment says nothing about a home.
pub(super) fn cache() -> Result<PathBuf, Error> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")))
        .ok_or_else(|| Error::Failed("no cache folder: neither XDG_CACHE_HOME nor HOME".into()))?;
    let cache = base.join("terrace-vm");
    fs::create_dir_all(&cache).map_err(Error::io("make", &cache))?;
    Ok(cache)
}

/// A folder that only this user can look into, removed with all in it when dropped.
#[derive(Debug)]
pub(super) struct WorkFolder(PathBuf);

impl WorkFolder {
    /// Makes one in `parent`, after removing those of processes that are no more.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn new(parent: &Path) -> Result<Self, Error> {
        remove_stale(parent);
        let path = parent.join(format!("{PREFIX}{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path).map_err(Error::io("make", &path))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // Nothing better can be done with what does not go; the next run tries again.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file of `len_bytes` bytes without a name, empty at first; it takes room only for what is
/// written.
///
/// # Errors
/// When `folder` takes no such file.
pub(super) fn nameless(folder: &Path, len_bytes: u64) -> Result<File, Error> {
    let path = folder.join(format!("nameless-{}", std::process::id()));
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(true);
    let file = options.open(&path).map_err(Error::io("make", &path))?;
    fs::remove_file(&path).map_err(Error::io("remove", &path))?;
    file.set_len(len_bytes).map_err(Error::io("size", &path))?;
    Ok(file)
}

/// A path by which another process of this user opens a file that has none.
pub(super) fn path_of(file: &File) -> PathBuf {
    let process = std::process::id();
    PathBuf::from(format!("/proc/{process}/fd/{}", file.as_raw_fd()))
}

/// Removes this user's working folders whose process is gone; what resists is left alone.
fn remove_stale(parent: &Path) {
    let own_user = fs::metadata("/proc/self").map(|facts| facts.uid()).ok();
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let is_gone = process
            .and_then(|process| process.parse::<u32>().ok())
            .is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists());
        let is_own = || {
            let facts = fs::symlink_metadata(entry.path());
            facts.is_ok_and(|facts| facts.is_dir() && Some(facts.uid()) == own_user)
        };
        if is_gone && is_own() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

pub(super) fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io("make", path))
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).map_err(Error::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileExt, PermissionsExt};

    #[test]
    fn a_folder_is_private_and_goes_with_its_guard() {
        let parent = testkit::TempDir::new();
        let folder = WorkFolder::new(parent.path()).unwrap();
        let path = folder.path().to_owned();
        fs::write(path.join("x"), "x").unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn folders_of_processes_that_are_gone_are_removed_and_no_others() {
        let parent = testkit::TempDir::new();
        // Process numbers end at 4194304.
        let gone = parent.join("terrace-vm-4194305");
        let living = parent.join("terrace-vm-1");
        let other = parent.join("terrace-vm-image");
        for path in [&gone, &living, &other] {
            fs::create_dir(path).unwrap();
        }
        let _folder = WorkFolder::new(parent.path()).unwrap();
        assert!(!gone.exists());
        assert!(living.exists() && other.exists());
    }

    #[test]
    fn a_file_without_a_name_is_reached_by_another_path() {
        let folder = testkit::TempDir::new();
        let file = nameless(folder.path(), 1 << 40).unwrap();
        assert!(folder.names().is_empty());
        file.write_all_at(b"here", 0).unwrap();
        let again = File::open(path_of(&file)).unwrap();
        let mut bytes = [0; 4];
        again.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"here");
        assert_eq!(again.metadata().unwrap().len(), 1 << 40);
    }
}

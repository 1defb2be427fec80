//! Whether the disk has room for a whole run, and whether it was full during one.
//!
//! A full disk shows as failures that name everything else: a linker that crashes, a recording that
//! is cut. So what is free is asked before the first step, and watched until the last.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::error::Error;
use crate::workspace;

/// What a run from nothing leaves in the directory of the build: 3.4 GB without incremental state,
/// 5.6 GB with it.
const BUILT_BYTES: u64 = 6 << 30;

/// What tests write and remove again: swap files and disks of up to 1 GiB, two at a time.
const SCRATCH_BYTES: u64 = 2 << 30;

/// Less than this, and some write has failed or will.
const FULL_BYTES: u64 = 64 << 20;

/// How often what is free is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Looks at what is free until dropped.
pub(super) struct Watch {
    path: PathBuf,
    least_bytes: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Watch {
    /// Starts to watch the disk that cargo builds on for the workspace at `root`.
    ///
    /// # Errors
    /// [`Error::Failed`] with what is needed, if that is not free.
    pub(super) fn start(root: &Path) -> Result<Self, Error> {
        let path = workspace::target_directory(&workspace::metadata(root)?)?;
        std::fs::create_dir_all(&path).map_err(Error::io("make", &path))?;
        let free = free_bytes(&path);
        if let Some(why) = lacks(free, used_bytes(&path)) {
            return Err(Error::Failed(format!("test: {}: {why}", path.display())));
        }
        let least_bytes = Arc::new(AtomicU64::new(free));
        let is_over = Arc::new(AtomicBool::new(false));
        let (at, least, over) = (path.clone(), Arc::clone(&least_bytes), Arc::clone(&is_over));
        thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                least.fetch_min(free_bytes(&at), Ordering::Relaxed);
                thread::sleep(LOOK);
            }
        });
        Ok(Self { path, least_bytes, is_over })
    }

    /// That the disk was full, in words, if it was.
    pub(super) fn full(&self) -> Option<String> {
        let least = self.least_bytes.load(Ordering::Relaxed);
        let mib = least >> 20;
        (least < FULL_BYTES)
            .then(|| format!("the disk of {} was full: {mib} MiB left", self.path.display()))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// What is missing for a run, in words, where `used` bytes are built already.
fn lacks(free: u64, used: u64) -> Option<String> {
    let needed = BUILT_BYTES.saturating_sub(used) + SCRATCH_BYTES;
    let [needed_gib, free_gib] = [needed, free].map(|bytes| bytes as f64 / f64::from(1 << 30));
    (free < needed).then(|| format!("needs {needed_gib:.1} GiB free, has {free_gib:.1} GiB"))
}

/// Bytes that a user may still write below `path`; all there are if the system does not say.
fn free_bytes(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(u64::MAX, |facts| facts.f_bavail * facts.f_frsize)
}

/// Bytes of the files in `folder` and below; what cannot be read counts as none.
fn used_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(facts) if facts.is_dir() => used_bytes(&entry.path()),
            Ok(facts) => facts.len(),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_needs_room_for_what_is_not_built_yet() {
        assert_eq!(lacks(8 << 30, 0), None);
        assert_eq!(lacks(7 << 30, 0).unwrap(), "needs 8.0 GiB free, has 7.0 GiB");
        assert_eq!(lacks(2 << 30, 7 << 30), None);
        assert!(lacks(1 << 30, 7 << 30).is_some());
    }

    #[test]
    fn a_disk_that_was_full_is_said_in_a_line() {
        let watch = |least| Watch {
            path: "target".into(),
            least_bytes: Arc::new(AtomicU64::new(least)),
            is_over: Arc::default(),
        };
        assert_eq!(watch(1 << 30).full(), None);
        assert_eq!(watch(3 << 20).full().unwrap(), "the disk of target was full: 3 MiB left");
    }

    #[test]
    fn files_and_free_bytes_are_counted() {
        let folder = testkit::TempDir::new();
        std::fs::create_dir(folder.join("a")).unwrap();
        std::fs::write(folder.join("a/b"), [0; 300]).unwrap();
        std::fs::write(folder.join("c"), [0; 20]).unwrap();
        assert_eq!(used_bytes(folder.path()), 320);
        assert!(free_bytes(folder.path()) < u64::MAX);
    }
}

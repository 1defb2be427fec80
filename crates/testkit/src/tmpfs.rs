//! A small file system in memory, for tests of full disks. Needs root.
//!
//! Mounted in the test's own directory; a lazy unmount follows if something still holds it.

use crate::mounted::attach;
use crate::temp_dir::TempDir;
use std::path::Path;

/// The mounted file system; unmounted on drop.
#[derive(Debug)]
pub struct Tmpfs {
    directory: TempDir,
}

impl Tmpfs {
    /// Mounts one of `bytes` bytes.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn mount(bytes: u64) -> Result<Self, String> {
        if !crate::is_root() {
            return Err("root".to_owned());
        }
        let directory = TempDir::new();
        let size = bytes.to_string();
        let options = [("source", "terrace-test"), ("size", &size), ("mode", "755")];
        attach("tmpfs", &options, &[], directory.path())?;
        Ok(Self { directory })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Lazily if a file of the failing test is still open.
        if sys::mount::unmount(self.path()).is_err() {
            let _ = sys::mount::detach(self.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tmpfs;

    #[test]
    fn it_fills_up_and_goes_away() {
        let tmpfs = match Tmpfs::mount(1 << 20) {
            Ok(tmpfs) => tmpfs,
            Err(need) => return crate::skip(need),
        };
        let path = tmpfs.path().to_owned();
        let error = std::fs::write(path.join("big"), vec![1; 2 << 20]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        drop(tmpfs);
        assert!(!path.exists());
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(&*path.to_string_lossy()));
    }
}

//! Swap space of a test's own: a file on the disk of the temporary directory. Never on a
//! loop device or a tmpfs: memory that must be freed to free memory deadlocks a kernel.

use crate::{TempDir, is_root, run};
use std::path::{Path, PathBuf};

/// How much is written at once to make the file.
const CHUNK_BYTES: usize = 4 << 20;

/// An active swap file; switched off and removed on drop.
#[derive(Debug)]
pub struct SwapArea {
    directory: TempDir,
}

impl SwapArea {
    /// Switches `bytes` bytes of swap on.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn on(bytes: u64) -> Result<Self, String> {
        if !is_root() {
            return Err("root".to_owned());
        }
        let area = Self {
            directory: TempDir::new(),
        };
        let file = area.path();
        // A swap file must have no holes.
        write_zeros(&file, bytes).map_err(|error| format!("{bytes} bytes of disk: {error}"))?;
        run("chmod", &["600", &file.to_string_lossy()])?;
        run("mkswap", &[&file.to_string_lossy()])?;
        run("swapon", &[&file.to_string_lossy()])?;
        Ok(area)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.join("swap")
    }
}

fn write_zeros(path: &Path, bytes: u64) -> std::io::Result<()> {
    use std::io::Write;
    let mut file = std::fs::File::create(path)?;
    let zeros = vec![0; CHUNK_BYTES];
    let mut left = bytes;
    while left > 0 {
        let now = left.min(CHUNK_BYTES as u64);
        file.write_all(&zeros[..now as usize])?;
        left -= now;
    }
    file.sync_all()
}

impl Drop for SwapArea {
    fn drop(&mut self) {
        let _ = run("swapoff", &[&self.path().to_string_lossy()]);
    }
}

#[cfg(test)]
mod tests {
    use super::SwapArea;

    #[test]
    fn it_is_listed_while_it_lives() {
        let area = match SwapArea::on(8 << 20) {
            Ok(area) => area,
            Err(need) => return crate::skip(need),
        };
        let path = area.path().to_string_lossy().into_owned();
        let listed = || {
            std::fs::read_to_string("/proc/swaps")
                .unwrap()
                .contains(&path)
        };
        assert!(listed());
        drop(area);
        assert!(!listed());
    }
}

//! Swap space of a test's own: a file on the disk of the temporary directory, or a device that
//! is made to be swapped to. Never a loop device over a tmpfs: memory that must be freed to free
//! memory deadlocks a kernel.

use crate::{TempDir, is_root, run};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// How much is written at once to make the file.
const CHUNK_BYTES: usize = 4 << 20;

/// Areas of higher priority fill first; no system gives its own one this much.
const PRIORITY: i32 = 1000;

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
        // A swap file must have no holes.
        Self::made_by(|file| {
            write_zeros(file, bytes).map_err(|error| format!("{bytes} bytes of disk: {error}"))
        })
    }

    /// The same on a file that is reserved and not written, as many systems make theirs.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn reserved(bytes: u64) -> Result<Self, String> {
        let length = bytes.to_string();
        Self::made_by(|file| run("fallocate", &["-l", &length, &file.to_string_lossy()]).map(drop))
    }

    fn made_by(make: impl FnOnce(&Path) -> Result<(), String>) -> Result<Self, String> {
        if !is_root() {
            return Err("root".to_owned());
        }
        let area = Self { directory: TempDir::new() };
        let file = area.path();
        make(&file)?;
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

/// A whole device of a test's own as swap, which fills before all others; switched off on
/// drop, which reads back what somebody still needs.
#[derive(Debug)]
pub struct SwapDevice<'a> {
    path: PathBuf,
    _device: PhantomData<&'a ()>,
}

impl SwapDevice<'_> {
    /// Switches the device at `path` on, whose owner lives as long.
    pub(crate) fn on(path: &Path) -> Result<Self, String> {
        let areas = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
        if let Some(first) = areas.lines().find(|line| fills_first(line)) {
            return Err(format!("swap that fills before this: {first}"));
        }
        let device = path.to_string_lossy();
        run("mkswap", &[&device])?;
        run("swapon", &["--priority", &PRIORITY.to_string(), &device])?;
        Ok(Self { path: path.to_owned(), _device: PhantomData })
    }

    /// The area, as /proc/swaps names it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether a line of /proc/swaps tells of an area that fills no later than a device of ours.
fn fills_first(line: &str) -> bool {
    let priority = line.split_whitespace().last();
    priority.and_then(|word| word.parse().ok()) >= Some(PRIORITY)
}

impl Drop for SwapDevice<'_> {
    fn drop(&mut self) {
        let _ = run("swapoff", &[&self.path.to_string_lossy()]);
    }
}

#[cfg(test)]
mod tests {
    use super::{SwapArea, fills_first};

    #[test]
    fn only_an_area_of_this_priority_fills_as_soon() {
        assert!(fills_first("/swap file 371368 106808 32767"));
        assert!(fills_first("/dev/sda2 partition 1 1 1000"));
        assert!(!fills_first("/dev/zram0 partition 1 1 100"));
        assert!(!fills_first("/dev/sda2 partition 1 1 -2"));
        assert!(!fills_first("Filename Type Size Used Priority"));
    }

    #[test]
    fn it_is_listed_while_it_lives() {
        let area = match SwapArea::on(8 << 20) {
            Ok(area) => area,
            Err(need) => return crate::skip(need),
        };
        let path = area.path().to_string_lossy().into_owned();
        let listed = || std::fs::read_to_string("/proc/swaps").unwrap().contains(&path);
        assert!(listed());
        drop(area);
        assert!(!listed());
    }
}

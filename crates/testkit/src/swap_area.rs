//! Swap space of a test's own: a file on the disk of the temporary directory, or a device that
//! is made to be swapped to. Never a loop device over a tmpfs: memory that must be freed to free
//! memory deadlocks a kernel.

use crate::fuse_leftovers::is_gone;
use crate::{TempDir, is_root, run, temp_dir};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};

/// How much is written at once to make the file.
const CHUNK_BYTES: usize = 4 << 20;

/// The name of the file in its directory.
const FILE_NAME: &str = "swap";

/// Areas of higher priority fill first; no system gives its own one this much.
const PRIORITY: i32 = 1000;

/// The priority of the next file of this process: below that of a device of ours, above that of
/// the system's own areas. No two are equal, because the kernel takes turns between equals.
static FILE_PRIORITY: AtomicI32 = AtomicI32::new(PRIORITY - 1);

/// An active swap file, which fills before the system's own areas, and before those of the same
/// process that were made later; switched off and removed on drop.
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
        remove_leftovers();
        let area = Self { directory: TempDir::new() };
        let file = area.path();
        make(&file)?;
        run("chmod", &["600", &file.to_string_lossy()])?;
        run("mkswap", &[&file.to_string_lossy()])?;
        let priority = FILE_PRIORITY.fetch_sub(1, Ordering::Relaxed).to_string();
        run("swapon", &["--priority", &priority, &file.to_string_lossy()])?;
        Ok(area)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.join(FILE_NAME)
    }
}

/// Switches off and removes the swap files of tests that were killed: their directory names a
/// process that is gone. A test that fills swap of a known size cannot run beside them.
fn remove_leftovers() {
    let areas = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    for file in areas.lines().filter_map(orphaned) {
        let _ = run("swapoff", &[&file.to_string_lossy()]);
        if let Some(directory) = file.parent() {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

/// The file in a line of /proc/swaps, if it is one of ours and its process is gone.
fn orphaned(line: &str) -> Option<&Path> {
    let file = Path::new(line.split_whitespace().next()?);
    let process = temp_dir::process_of(file.parent()?)?;
    (file.file_name()? == FILE_NAME && is_gone(process)).then_some(file)
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
    use super::{SwapArea, fills_first, orphaned};
    use std::path::Path;

    #[test]
    fn only_a_file_of_a_test_that_is_gone_is_a_leftover() {
        let line = |process: u32| {
            format!("/any/terrace-test-{process}-9-18eb88dd080de562/swap file 786428 1836 -2")
        };
        let file = "/any/terrace-test-4294967295-9-18eb88dd080de562/swap";
        assert_eq!(orphaned(&line(u32::MAX)), Some(Path::new(file)));
        assert_eq!(orphaned(&line(std::process::id())), None);
        assert_eq!(orphaned("/swap file 371368 106808 -2"), None);
        assert_eq!(orphaned("Filename Type Size Used Priority"), None);
    }

    #[test]
    fn the_swap_of_a_killed_test_is_switched_off_by_the_next() {
        let area = match SwapArea::on(8 << 20) {
            Ok(area) => area,
            Err(need) => return crate::skip(need),
        };
        // As if a process that is gone had made it.
        let of_a_killed_test = area.directory.path().with_file_name("terrace-test-4294967295-0-0");
        drop(area);
        std::fs::create_dir(&of_a_killed_test).unwrap();
        let file = of_a_killed_test.join("swap");
        super::write_zeros(&file, 8 << 20).unwrap();
        for program in ["mkswap", "swapon"] {
            crate::run(program, &[&file.to_string_lossy()]).unwrap();
        }
        let next = SwapArea::on(8 << 20).unwrap();
        let areas = std::fs::read_to_string("/proc/swaps").unwrap();
        assert!(!areas.contains(&*file.to_string_lossy()), "{areas}");
        assert!(areas.contains(&*next.path().to_string_lossy()), "{areas}");
        assert!(!of_a_killed_test.exists());
    }

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

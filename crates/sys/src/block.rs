//! Facts about a block device through its own ioctls, and the discard of a range.
//!
//! The facts need no more than a descriptor open for reading. Settings of the device are in sysfs
//! and belong to `machine`.

use crate::error::{Error, Result, check, failed};
use rustix::fs::{ioctl_blksszget, major, minor};
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;

/// `BLKGETSIZE64`, from linux/fs.h.
const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
/// `BLKDISCARD`, from linux/fs.h.
const BLKDISCARD: libc::c_ulong = 0x1277;
/// `BLKZEROOUT`, from linux/fs.h.
const BLKZEROOUT: libc::c_ulong = 0x127f;

/// The device's size in bytes.
///
/// # Errors
/// `Unsupported` if `file` is not a block device.
pub fn size_bytes(file: &File) -> Result<u64> {
    let mut bytes = 0u64;
    // SAFETY: this ioctl stores one 64-bit number; `bytes` is live and writable.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64 as _, &raw mut bytes) };
    check("read the size of the block device", answer)?;
    Ok(bytes)
}

/// The smallest unit that the device addresses, in bytes.
///
/// # Errors
/// `Unsupported` if `file` is not a block device.
pub fn logical_block_bytes(file: &File) -> Result<u32> {
    ioctl_blksszget(file).map_err(failed("read the block size of the block device"))
}

/// Tells the device that the content of a range is not needed; what a read of it returns is
/// undefined until it is written. The range is in whole logical blocks.
///
/// # Errors
/// `Unsupported` if the device cannot; `Invalid` for a misaligned range.
pub fn discard(file: &File, range: Range<u64>) -> Result<()> {
    let range = [range.start, range.end.saturating_sub(range.start)];
    // SAFETY: this ioctl reads two 64-bit numbers; `range` is live.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), BLKDISCARD as _, range.as_ptr()) };
    check("discard", answer).map(drop)
}

/// Stores zeros in a range of whole logical blocks, by the device itself where it can.
///
/// # Errors
/// `Unsupported` if `file` is not a block device; `Invalid` for a misaligned range.
pub fn zero_out(file: &File, range: Range<u64>) -> Result<()> {
    let range = [range.start, range.end.saturating_sub(range.start)];
    // SAFETY: this ioctl reads two 64-bit numbers; `range` is live.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), BLKZEROOUT as _, range.as_ptr()) };
    check("store zeros", answer).map(drop)
}

/// Writes `content` over the block at `offset` of the device at `path`, past the page cache, but
/// only if that is the device `numbers` (major and minor) and the block holds exactly `expected` at
/// that moment; whether it was written. The only write to a device of others in this program: it
/// undoes a change that its own write to a file made elsewhere on a device that lies about its
/// size.
///
/// # Errors
/// `Denied` where the device may not be opened for writing; `Invalid` for lengths that differ and
/// for another device; `Device` if a request fails.
pub fn undo_change(
    path: &Path,
    numbers: (u32, u32),
    offset: u64,
    expected: &[u8],
    content: &[u8],
) -> Result<bool> {
    use std::os::unix::fs::FileExt;
    const OPERATION: &str = "restore a block of";
    let fail = |source| Error::new(OPERATION, source).at(path);
    if expected.len() != content.len() || expected == content {
        return Err(Error::invalid(OPERATION, "nothing that was changed").at(path));
    }
    let mut buffer = crate::memory::AlignedBuffer::new(content.len())?;
    let device = open_for_undo(path, numbers)?;
    device.read_exact_at(&mut buffer, offset).map_err(fail)?;
    if *buffer != *expected {
        return Ok(false);
    }
    buffer.copy_from_slice(content);
    device.write_all_at(&buffer, offset).map_err(fail)?;
    device.sync_data().map_err(fail)?;
    device.read_exact_at(&mut buffer, offset).map_err(fail)?;
    Ok(*buffer == *content)
}

/// Whether [`undo_change`] can open the device at `path` for writing; nothing is written.
///
/// # Errors
/// As [`undo_change`] before its first request.
pub fn check_undo(path: &Path, numbers: (u32, u32)) -> Result<()> {
    open_for_undo(path, numbers).map(drop)
}

/// The device at `path`, which must be `numbers`, for reading and writing past the page cache.
fn open_for_undo(path: &Path, numbers: (u32, u32)) -> Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    const OPERATION: &str = "open for writing";
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_DIRECT | libc::O_CLOEXEC);
    let opened = options.open(path);
    let device = opened.map_err(|source| Error::new(OPERATION, source).at(path))?;
    if numbers_of(&device).map_err(|error| error.at(path))? != Some(numbers) {
        return Err(Error::invalid(OPERATION, "not the block device that was meant").at(path));
    }
    Ok(device)
}

/// Whether something on this machine has the block device at `path` for itself: a mount in any
/// namespace, swap, a stack of devices. `None` if it cannot be opened.
#[must_use]
pub fn is_claimed(path: &Path) -> Option<bool> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    // Of a block device this flag alone means: fail if it is claimed.
    options.read(true).custom_flags(libc::O_EXCL | libc::O_CLOEXEC);
    match options.open(path) {
        Ok(_) => Some(false),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Some(true),
        Err(_) => None,
    }
}

/// The major and minor part of a device number as the standard library gives it
/// (`MetadataExt::dev`, `rdev`).
#[must_use]
pub fn device_numbers(device: u64) -> (u32, u32) {
    (major(device), minor(device))
}

/// The major and minor number of an opened block device; `None` for any other kind of file.
///
/// # Errors
/// None in practice; the descriptor is open.
pub fn numbers_of(file: &File) -> Result<Option<(u32, u32)>> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let metadata = file.metadata().map_err(|source| Error::new("examine", source))?;
    let is_block_device = metadata.file_type().is_block_device();
    Ok(is_block_device.then(|| device_numbers(metadata.rdev())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn device_numbers_are_the_ones_in_proc() {
        use std::os::unix::fs::MetadataExt;
        let device = std::fs::metadata("/dev/null").unwrap().rdev();
        assert_eq!(device_numbers(device), (1, 3));
        // The minor part has 20 bits in the kernel and is on both sides of the major one.
        assert_eq!(device_numbers(0x1230_fe67), (0xfe, 0x1_2367));
    }

    #[test]
    fn a_regular_file_is_no_block_device() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(size_bytes(&file).unwrap_err().kind, ErrorKind::Unsupported);
        assert_eq!(logical_block_bytes(&file).unwrap_err().kind, ErrorKind::Unsupported);
        assert_eq!(numbers_of(&file).unwrap(), None);
    }

    /// Only the device that was meant is written, and only over the block that is expected there.
    #[test]
    fn a_change_is_undone_only_on_the_device_that_was_meant() {
        let directory = testkit::TempDir::new();
        std::fs::write(directory.join("image"), vec![0; 1 << 20]).unwrap();
        let Ok(device) = testkit::LoopDevice::over(&directory.join("image")) else {
            return testkit::skip("root and loop devices");
        };
        let path = device.path();
        let numbers = numbers_of(&File::open(path).unwrap()).unwrap().unwrap();
        let (ours, before) = ([0; 4096], [7; 4096]);
        let undo = |numbers, expected: &[u8]| undo_change(path, numbers, 8192, expected, &before);
        let other = (numbers.0, numbers.1 + 1);
        assert_eq!(undo(other, &ours).unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(check_undo(path, other).unwrap_err().kind, ErrorKind::Invalid);
        check_undo(path, numbers).unwrap();
        assert!(!undo(numbers, &[1; 4096]).unwrap());
        assert!(undo(numbers, &ours).unwrap());
        assert!(!undo(numbers, &ours).unwrap(), "it holds what was before");
    }
}

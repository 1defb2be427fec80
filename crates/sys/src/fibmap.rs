//! Where one block of a file is stored on its disk, by the `FIBMAP` call, for file systems that
//! have no FIEMAP (FAT, exFAT). Needs `CAP_SYS_RAWIO`.

use crate::error::{Error, Result, check};
use std::fs::File;
use std::os::fd::AsRawFd;

/// `FIBMAP`, from linux/fs.h.
const FIBMAP: libc::c_ulong = 1;
/// `FIGETBSZ`, from linux/fs.h.
const FIGETBSZ: libc::c_ulong = 2;

/// Where the `bytes` bytes at `offset` of `file` begin on the device that holds its file system;
/// `None` where they have no place or are not in one piece. `offset` and `bytes` are multiples of
/// the file system's block.
///
/// # Errors
/// `Denied` without the right; `Unsupported` on file systems that do not say.
pub fn place(file: &File, offset: u64, bytes: u64) -> Result<Option<u64>> {
    const OPERATION: &str = "ask for the place of a block of the file";
    let mut block_bytes: libc::c_int = 0;
    // SAFETY: this ioctl stores one int; `block_bytes` is live and writable.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), FIGETBSZ as _, &raw mut block_bytes) };
    check(OPERATION, answer)?;
    let unit = u64::try_from(block_bytes).unwrap_or(0);
    if unit == 0 || !offset.is_multiple_of(unit) || !bytes.is_multiple_of(unit) || bytes == 0 {
        return Err(Error::invalid(OPERATION, "not whole blocks of the file system"));
    }
    let mut first = None;
    for index in 0..bytes / unit {
        let Some(number) = block_number(file, offset / unit + index)? else {
            return Ok(None);
        };
        let expected = *first.get_or_insert(number) + index;
        if number != expected {
            return Ok(None);
        }
    }
    Ok(first.map(|number| number * unit))
}

fn block_number(file: &File, index: u64) -> Result<Option<u64>> {
    const OPERATION: &str = "ask for the place of a block of the file";
    let too_far = || Error::invalid(OPERATION, "too far in the file");
    // The kernel takes and gives an int; it is read as unsigned.
    let mut number = u32::try_from(index).map_err(|_| too_far())?;
    // SAFETY: this ioctl reads and stores one int; `number` is live and writable.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), FIBMAP as _, &raw mut number) };
    check(OPERATION, answer)?;
    Ok((number != 0).then_some(u64::from(number)))
}

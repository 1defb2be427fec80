//! `/dev/fuse`: the connection between the kernel and the server of a file system in user space.
//!
//! Each descriptor has a list of its own of the requests that were read from it and not answered.
//! When the last copy of a descriptor is closed these requests end with an error; when the last
//! descriptor of a connection is, the file system ends. The bytes are not read here.

use crate::error::{Error, Result, check};
use std::fs::File;
use std::os::fd::AsRawFd;

const PATH: &str = "/dev/fuse";
/// `FUSE_DEV_IOC_CLONE` of linux/fuse.h.
const CLONE: libc::c_ulong = 0x8004_e500;

/// Opens a descriptor that belongs to no connection yet; mounting makes it one.
///
/// # Errors
/// `NotFound` without FUSE in the kernel, `Denied` where a container forbids it.
pub fn open() -> Result<File> {
    let opened = File::options().read(true).write(true).open(PATH);
    opened.map_err(|error| Error::new("open", error).at(PATH))
}

/// Another descriptor of the connection of `device`, for another thread.
///
/// # Errors
/// `Invalid` for a descriptor without connection, `Denied` on Linux 6.18.
pub fn clone_of(device: &File) -> Result<File> {
    let clone = open()?;
    let number = device.as_raw_fd();
    // SAFETY: this request reads one 32-bit number, which lives as long as the call.
    let answer = unsafe { libc::ioctl(clone.as_raw_fd(), CLONE as _, &raw const number) };
    check("clone the descriptor of", answer).map_err(|error| error.at(PATH))?;
    Ok(clone)
}

//! The server's half of FUSE as far as tests need it: requests as the kernel numbers them, answers,
//! mounting and unmounting.
//!
//! `/dev/fuse` is plain file I/O: each read gives one request, each write answers one
//! (`linux/fuse.h`, version 7.31). What a file system holds is not here: [`crate::fuse_file`] is
//! one file, [`crate::FaultyFiles`] a directory.

use crate::mounted::attach;
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

/// How the mounts of this program's tests are known, with the number of the process after it.
pub(crate) const SOURCE_PREFIX: &str = "terrace-test-";

/// The most bytes of one request: what the kernel allows at most.
const MOST_BYTES: usize = 1 << 20;
/// Room for the header of the largest request.
const HEADER_ROOM: usize = 4096;
/// Room for any request.
pub(crate) const REQUEST_ROOM: usize = HEADER_ROOM + MOST_BYTES;
/// `struct fuse_in_header`; the body of a request is behind it.
pub(crate) const HEADER_IN: usize = 40;
const HEADER_OUT: usize = 16;
/// Where the data of a write begins.
pub(crate) const WRITE_DATA: usize = HEADER_IN + 40;
/// How often an unmount is tried: a device that was just detached is released a little later.
const UNMOUNT_TRIES: u32 = 50;

/// Requests that are answered, as the kernel numbers them.
pub(crate) mod opcode {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const FORGET: u32 = 2;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const SETATTR: u32 = 4;
    pub(crate) const READLINK: u32 = 5;
    pub(crate) const SYMLINK: u32 = 6;
    pub(crate) const MKNOD: u32 = 8;
    pub(crate) const MKDIR: u32 = 9;
    pub(crate) const UNLINK: u32 = 10;
    pub(crate) const RMDIR: u32 = 11;
    pub(crate) const RENAME: u32 = 12;
    pub(crate) const LINK: u32 = 13;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const READ: u32 = 15;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FSYNC: u32 = 20;
    pub(crate) const FLUSH: u32 = 25;
    pub(crate) const INIT: u32 = 26;
    pub(crate) const OPENDIR: u32 = 27;
    pub(crate) const READDIR: u32 = 28;
    pub(crate) const RELEASEDIR: u32 = 29;
    pub(crate) const FSYNCDIR: u32 = 30;
    pub(crate) const CREATE: u32 = 35;
    pub(crate) const INTERRUPT: u32 = 36;
    pub(crate) const BATCH_FORGET: u32 = 42;
    pub(crate) const RENAME2: u32 = 45;
}

/// Error numbers of Linux.
pub(crate) mod errno {
    pub(crate) const EPERM: i32 = 1;
    pub(crate) const ENOENT: i32 = 2;
    pub(crate) const EIO: i32 = 5;
    pub(crate) const EEXIST: i32 = 17;
    pub(crate) const ENODEV: i32 = 19;
    pub(crate) const EINVAL: i32 = 22;
    pub(crate) const ENOSPC: i32 = 28;
    /// No such request is served; the kernel does without.
    pub(crate) const ENOSYS: i32 = 38;
}

/// The kernel may have several requests of direct I/O under way (`FUSE_ASYNC_DIO`), writes larger
/// than a page (`FUSE_BIG_WRITES`), and 256 pages in one (`FUSE_MAX_PAGES`). A file whose time
/// changed is read anew (`FUSE_AUTO_INVAL_DATA`).
const FLAGS: u32 = 1 << 15 | 1 << 5 | 1 << 22 | 1 << 12;
const MOST_PAGES: u16 = 256;
/// Nothing of an open file is kept in the page cache (`FOPEN_DIRECT_IO`).
pub(crate) const DIRECT: u32 = 1;

/// What is at the root of a mount: `rootmode` of the mount options.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RootKind {
    File,
    Directory,
}

/// Mounts the connection `device` at `path`.
pub(crate) fn mount(device: &File, path: &Path, root: RootKind) -> Result<(), String> {
    let mode = match root {
        RootKind::File => "100000",
        RootKind::Directory => "40000",
    };
    let source = format!("{SOURCE_PREFIX}{}", std::process::id());
    let connection = device.as_raw_fd().to_string();
    let options = [
        ("source", source.as_str()),
        ("fd", &connection),
        ("rootmode", mode),
        ("user_id", "0"),
        ("group_id", "0"),
    ];
    attach("fuse", &options, &[], path)
}

/// Whether nothing is mounted at `path` any more. By force if need be, which ends the connection
/// although a process holds a file of it.
pub(crate) fn unmount(path: &Path) -> bool {
    for _ in 0..UNMOUNT_TRIES {
        if sys::mount::unmount(path).is_ok() {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    sys::mount::abandon(path).is_ok()
}

/// Header and body go in one call, as the kernel demands. `error` is 0 or a negative error number.
pub(crate) fn reply(mut device: &File, unique: u64, error: i32, body: &[u8]) {
    let mut header = [0; HEADER_OUT];
    header[..4].copy_from_slice(&((HEADER_OUT + body.len()) as u32).to_ne_bytes());
    header[4..8].copy_from_slice(&error.to_ne_bytes());
    header[8..].copy_from_slice(&unique.to_ne_bytes());
    // It fails if the caller has gone meanwhile: the answer is not missed.
    let _: io::Result<usize> = device.write_vectored(&[IoSlice::new(&header), IoSlice::new(body)]);
}

/// `struct fuse_init_out`.
pub(crate) fn init_body(request: &[u8]) -> [u8; 64] {
    let mut body = [0; 64];
    let mut put = |at: usize, bytes: &[u8]| body[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &words(7, 31));
    // What the kernel asks for as read-ahead.
    put(8, &request[HEADER_IN + 8..HEADER_IN + 12]);
    put(12, &FLAGS.to_ne_bytes());
    put(20, &(MOST_BYTES as u32).to_ne_bytes());
    put(24, &1u32.to_ne_bytes());
    put(28, &MOST_PAGES.to_ne_bytes());
    body
}

pub(crate) fn words(first: u32, second: u32) -> [u8; 8] {
    let mut both = [0; 8];
    both[..4].copy_from_slice(&first.to_ne_bytes());
    both[4..].copy_from_slice(&second.to_ne_bytes());
    both
}

pub(crate) fn number32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].try_into().map(u32::from_ne_bytes).unwrap_or_default()
}

pub(crate) fn number64(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map(u64::from_ne_bytes).unwrap_or_default()
}

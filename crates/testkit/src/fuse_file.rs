//! A file of a test's own whose every read and write this process serves: the smallest file
//! system in user space, of one file, which is mounted over an ordinary file.
//!
//! The idea: a loop device over it is a disk whose requests, merged and ordered by the
//! kernel as those of any disk, arrive here one by one. `/dev/fuse` is plain file I/O: each
//! read gives one request, each write answers one (`linux/fuse.h`, version 7.31). Needs root.
//!
//! One thread answers, so one request is served at a time. It must not stand still for
//! memory that only its own answer can free: see [`crate::SlowDisk`].

use crate::{TempDir, run};
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

/// What the file is made of, and how long the kernel may keep an answer.
pub trait FileContent: Send + 'static {
    /// How many seconds attributes hold.
    const VALID_S: u64 = 3600;
    /// How the kernel is to treat an open file.
    const OPEN_FLAGS: u32 = DIRECT;

    /// Its length in bytes.
    fn bytes(&self) -> u64;
    /// The bytes from `offset`; within the file.
    fn read(&mut self, offset: u64, bytes: usize) -> &[u8];
    /// Puts `data` at `offset`; within the file.
    fn write(&mut self, offset: u64, data: &[u8]);
    /// All that was written is to be durable.
    fn flush(&mut self);
}

/// How the mounts of this program's tests are known, with the number of the process after it.
pub(crate) const SOURCE_PREFIX: &str = "terrace-test-";

/// The most bytes of one request: what the kernel allows at most.
const MOST_BYTES: usize = 1 << 20;
/// Room for the header of the largest request.
const HEADER_ROOM: usize = 4096;
const HEADER_IN: usize = 40;
const HEADER_OUT: usize = 16;
/// Where the data of a write begins.
const WRITE_DATA: usize = HEADER_IN + 40;
/// How often an unmount is tried: a device that was just detached lets go a little later.
const UNMOUNT_TRIES: u32 = 50;

/// Requests that are answered, as the kernel numbers them.
mod opcode {
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const WRITE: u32 = 16;
    pub const RELEASE: u32 = 18;
    pub const FSYNC: u32 = 20;
    pub const FLUSH: u32 = 25;
    pub const INIT: u32 = 26;
    pub const INTERRUPT: u32 = 36;
    pub const BATCH_FORGET: u32 = 42;
}

/// The kernel may have several requests of direct I/O under way (`FUSE_ASYNC_DIO`), writes
/// larger than a page (`FUSE_BIG_WRITES`), and 256 pages in one (`FUSE_MAX_PAGES`).
const FLAGS: u32 = 1 << 15 | 1 << 5 | 1 << 22;
const MOST_PAGES: u16 = 256;
/// Nothing of the file is kept in the page cache (`FOPEN_DIRECT_IO`).
const DIRECT: u32 = 1;
/// No such request is served (`ENOSYS`); the kernel does without.
const NOT_SERVED: i32 = -38;
/// Outside of the file (`EIO`).
const OUTSIDE: i32 = -5;

/// The mounted file; unmounted on drop.
#[derive(Debug)]
pub struct FuseFile {
    path: PathBuf,
    server: Option<JoinHandle<()>>,
    _directory: TempDir,
}

impl FuseFile {
    /// Mounts a file that holds `content`.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn mount(content: impl FileContent) -> Result<Self, String> {
        let directory = TempDir::new();
        let path = directory.join("disk");
        File::create(&path).map_err(|error| format!("a file to mount over: {error}"))?;
        let device = File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .map_err(|error| format!("/dev/fuse: {error}"))?;
        mount(&device, &path)?;
        let server = std::thread::Builder::new()
            .name("fuse-file".to_owned())
            .spawn(move || serve(&device, content))
            .map_err(|error| format!("a thread: {error}"))?;
        Ok(Self { path, server: Some(server), _directory: directory })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FuseFile {
    fn drop(&mut self) {
        if unmount(&self.path) {
            // The kernel has closed the connection, so the thread ends.
            let _ = self.server.take().map(JoinHandle::join);
        }
    }
}

/// Mounts by the program `mount`, which gets the connection as its standard input.
pub(crate) fn mount(device: &File, path: &Path) -> Result<(), String> {
    let connection = device.try_clone().map_err(|error| error.to_string())?;
    let output = Command::new("mount")
        .args(["--internal-only", "-t", "fuse"])
        // The root of this file system is a file: its type is S_IFREG.
        .args(["-o", "fd=0,rootmode=100000,user_id=0,group_id=0"])
        .arg(format!("{SOURCE_PREFIX}{}", std::process::id()))
        .arg(path)
        .stdin(Stdio::from(connection))
        .output()
        .map_err(|error| format!("the program mount ({error})"))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(format!("FUSE to be mounted: {}", why.trim()))
}

/// Whether nothing is mounted at `path` any more. By force if need be, which ends the
/// connection although somebody holds the file.
pub(crate) fn unmount(path: &Path) -> bool {
    let path = path.to_string_lossy();
    for _ in 0..UNMOUNT_TRIES {
        if run("umount", &[&path]).is_ok() {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    run("umount", &["--force", "--lazy", &path]).is_ok()
}

/// Answers until the file system is unmounted.
fn serve(mut device: &File, mut content: impl FileContent) {
    let mut request = vec![0; HEADER_ROOM + MOST_BYTES];
    loop {
        match device.read(&mut request) {
            Ok(bytes) if bytes >= HEADER_IN => answer(device, &mut content, &request[..bytes]),
            Ok(_) => return,
            // Taken back before it was read, or a signal came.
            Err(error) if matches!(error.raw_os_error(), Some(2 | 4 | 11)) => {}
            // Unmounted.
            Err(_) => return,
        }
    }
}

pub(crate) fn answer<C: FileContent>(device: &File, content: &mut C, request: &[u8]) {
    let unique = number64(request, 8);
    let ok = |body: &[u8]| reply(device, unique, 0, body);
    match number32(request, 4) {
        opcode::INIT => ok(&init_body(request)),
        opcode::GETATTR => ok(&attributes(content.bytes(), C::VALID_S)),
        opcode::OPEN => ok(&[0u64.to_ne_bytes(), words(C::OPEN_FLAGS, 0)].concat()),
        opcode::READ => match part(request, content.bytes()) {
            Some((offset, bytes)) => ok(content.read(offset, bytes)),
            None => reply(device, unique, OUTSIDE, &[]),
        },
        opcode::WRITE => match part(request, content.bytes()) {
            Some((offset, bytes)) if request.len() == WRITE_DATA + bytes => {
                content.write(offset, &request[WRITE_DATA..]);
                ok(&words(bytes as u32, 0));
            }
            _ => reply(device, unique, OUTSIDE, &[]),
        },
        opcode::FSYNC => {
            content.flush();
            ok(&[]);
        }
        opcode::RELEASE | opcode::FLUSH => ok(&[]),
        // These have no answer.
        opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT => {}
        _ => reply(device, unique, NOT_SERVED, &[]),
    }
}

/// The part that a read or a write is about, if it lies within the file.
fn part(request: &[u8], file_bytes: u64) -> Option<(u64, usize)> {
    let offset = number64(request, HEADER_IN + 8);
    let bytes = u64::from(number32(request, HEADER_IN + 16));
    let left = file_bytes.checked_sub(offset)?;
    (bytes <= left).then_some((offset, bytes as usize))
}

/// Header and body go in one call, as the kernel demands.
fn reply(mut device: &File, unique: u64, error: i32, body: &[u8]) {
    let mut header = [0; HEADER_OUT];
    header[..4].copy_from_slice(&((HEADER_OUT + body.len()) as u32).to_ne_bytes());
    header[4..8].copy_from_slice(&error.to_ne_bytes());
    header[8..].copy_from_slice(&unique.to_ne_bytes());
    // It fails if the asker has gone meanwhile: nobody misses the answer.
    let _: io::Result<usize> = device.write_vectored(&[IoSlice::new(&header), IoSlice::new(body)]);
}

/// `struct fuse_init_out`.
fn init_body(request: &[u8]) -> [u8; 64] {
    let mut body = [0; 64];
    let mut put = |at: usize, bytes: &[u8]| body[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &words(7, 31));
    // The kernel's own wish for read-ahead.
    put(8, &request[HEADER_IN + 8..HEADER_IN + 12]);
    put(12, &FLAGS.to_ne_bytes());
    put(20, &(MOST_BYTES as u32).to_ne_bytes());
    put(24, &1u32.to_ne_bytes());
    put(28, &MOST_PAGES.to_ne_bytes());
    body
}

/// `struct fuse_attr_out` of a regular file.
fn attributes(bytes: u64, valid_s: u64) -> [u8; 104] {
    let mut body = [0; 104];
    let mut put = |at: usize, bytes: &[u8]| body[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &valid_s.to_ne_bytes());
    put(16, &1u64.to_ne_bytes());
    put(24, &bytes.to_ne_bytes());
    put(32, &bytes.div_ceil(512).to_ne_bytes());
    put(76, &words(0o100_600, 1));
    put(96, &4096u32.to_ne_bytes());
    body
}

fn words(first: u32, second: u32) -> [u8; 8] {
    let mut both = [0; 8];
    both[..4].copy_from_slice(&first.to_ne_bytes());
    both[4..].copy_from_slice(&second.to_ne_bytes());
    both
}

fn number32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].try_into().map(u32::from_ne_bytes).unwrap_or_default()
}

fn number64(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map(u64::from_ne_bytes).unwrap_or_default()
}

//! A file of a test's own whose every read and write this process serves: the smallest file
//! system in user space, of one file, which is mounted over an ordinary file.
//!
//! The idea: a loop device over it is a disk whose requests, merged and ordered by the
//! kernel as those of any disk, arrive here one by one. Needs root.
//!
//! One thread answers, so one request is served at a time. It must not stand still for
//! memory that only its own answer can free: see [`crate::SlowDisk`].

use crate::TempDir;
use crate::fuse_protocol::{
    DIRECT, HEADER_IN, REQUEST_ROOM, RootKind, WRITE_DATA, errno, init_body, mount, number32,
    number64, opcode, reply, unmount, words,
};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
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
        mount(&device, &path, RootKind::File)?;
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

/// Answers until the file system is unmounted.
fn serve(mut device: &File, mut content: impl FileContent) {
    let mut request = vec![0; REQUEST_ROOM];
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
            None => reply(device, unique, -errno::EIO, &[]),
        },
        opcode::WRITE => match part(request, content.bytes()) {
            Some((offset, bytes)) if request.len() == WRITE_DATA + bytes => {
                content.write(offset, &request[WRITE_DATA..]);
                ok(&words(bytes as u32, 0));
            }
            _ => reply(device, unique, -errno::EIO, &[]),
        },
        opcode::FSYNC => {
            content.flush();
            ok(&[]);
        }
        opcode::RELEASE | opcode::FLUSH => ok(&[]),
        // These have no answer.
        opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT => {}
        _ => reply(device, unique, -errno::ENOSYS, &[]),
    }
}

/// The part that a read or a write is about, if it lies within the file.
fn part(request: &[u8], file_bytes: u64) -> Option<(u64, usize)> {
    let offset = number64(request, HEADER_IN + 8);
    let bytes = u64::from(number32(request, HEADER_IN + 16));
    let left = file_bytes.checked_sub(offset)?;
    (bytes <= left).then_some((offset, bytes as usize))
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

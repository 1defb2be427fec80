//! One descriptor of a FUSE connection: requests are read from it and answered by it.
//!
//! `/dev/fuse` is plain file I/O: each read gives one request, each write answers one. A request is
//! answered by the channel that it was read from. The channel does not end the connection: the last
//! process that holds a descriptor of it does, or an unmount.

use super::protocol::{
    FileRequest, FileRequestKind, REQUEST_ROOM, answer_header, error_number, parse, resend_message,
};
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use sys::mount::{DetachedMount, FileSystemOptions, MountRestrictions};
use sys::{Error, fuse_device};

/// A read that gives no request but is to be repeated: the request was taken back before it was
/// read, a signal came, or there is nothing to read without waiting.
const REPEATED: [i32; 3] = [2, 4, 11];

/// What is at the top of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// One descriptor of a connection.
#[derive(Debug)]
pub struct Channel {
    device: File,
}

/// Asks this kernel, by a mount that has no place in the tree and goes at once, whether it can send
/// requests again that a killed server did not answer (`FUSE_HAS_RESEND`, Linux 6.9).
///
/// # Errors
/// As [`Channel::open`] and [`Channel::mount`].
pub fn resend_is_offered() -> sys::Result<bool> {
    let channel = Channel::open()?;
    let _mount = channel.mount_detached(RootKind::File, "terrace-probe")?;
    // The first request is there when the mount is made; a signal may end the read.
    let mut room = vec![0; REQUEST_ROOM];
    loop {
        match channel.receive(&mut room) {
            Received::Nothing => {}
            Received::Ended => return Ok(false),
            Received::Request(request) => {
                let kind = parse(request).map(|FileRequest { kind, .. }| kind);
                return Ok(matches!(kind, Ok(FileRequestKind::Init(init)) if init.has_resend()));
            }
        }
    }
}

/// What a read gave.
#[derive(Debug)]
pub enum Received<'a> {
    /// A request.
    Request(&'a [u8]),
    /// Nothing; it is to be repeated.
    Nothing,
    /// The file system is unmounted, or its connection was ended.
    Ended,
}

impl Channel {
    /// Opens a descriptor that is not mounted yet.
    ///
    /// # Errors
    /// As [`fuse_device::open`].
    pub fn open() -> sys::Result<Self> {
        fuse_device::open().map(Self::of)
    }

    /// The channel of an open descriptor of `/dev/fuse`.
    #[must_use]
    pub fn of(device: File) -> Self {
        Self { device }
    }

    /// Mounts the connection at `point`, which is of the kind `root` and not a link; `source` names
    /// it in the table of mounts. Only root may use what is mounted.
    ///
    /// # Errors
    /// `Denied` without `CAP_SYS_ADMIN`; the kernel's word.
    pub fn mount(&self, point: &Path, root: RootKind, source: &str) -> sys::Result<()> {
        self.mount_detached(root, source)?.attach_at(point)
    }

    /// The mounted connection, without a place in the tree.
    fn mount_detached(&self, root: RootKind, source: &str) -> sys::Result<DetachedMount> {
        let mode = match root {
            RootKind::File => "100000",
            RootKind::Directory => "40000",
        };
        let options = FileSystemOptions::new("fuse")?;
        options.set("source", source)?;
        options.set("fd", &self.device.as_raw_fd().to_string())?;
        options.set("rootmode", mode)?;
        options.set("user_id", "0")?;
        options.set("group_id", "0")?;
        options.mount(MountRestrictions::default())
    }

    /// Whether the connection was ended, by an unmount or by a person: nothing comes any more.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        sys::poll::is_hung_up(self.device.as_fd())
    }

    /// Another channel of the same connection, for another thread.
    ///
    /// # Errors
    /// `Invalid` or `Denied` if it is not mounted, by the kernel's version.
    pub fn another(&self) -> sys::Result<Self> {
        fuse_device::clone_of(&self.device).map(Self::of)
    }

    /// Asks the kernel for every request of the connection that was read by any channel and not
    /// answered. A successor asks once, before its first read.
    ///
    /// # Errors
    /// `Unsupported` or `Invalid` before Linux 6.9.
    pub fn ask_resend(&self) -> sys::Result<()> {
        let written = (&self.device).write(&resend_message());
        written.map(drop).map_err(|error| Error::new("ask for unanswered requests", error))
    }

    /// Waits for a request, which is read into `room`.
    pub fn receive<'a>(&self, room: &'a mut [u8]) -> Received<'a> {
        match (&self.device).read(room) {
            Ok(0) => Received::Ended,
            Ok(bytes) => Received::Request(&room[..bytes]),
            Err(error) if error.raw_os_error().is_some_and(|it| REPEATED.contains(&it)) => {
                Received::Nothing
            }
            Err(_) => Received::Ended,
        }
    }

    /// Answers a request that was read from this channel. `error` is 0 or the number of an error,
    /// then without a body.
    pub fn answer(&self, unique: u64, error: i32, body: &[u8]) {
        let error = if error == 0 { 0 } else { error_number(error) };
        let header = answer_header(unique, error, body.len());
        // Both in one call, as the kernel demands. It fails if the caller has gone meanwhile: the
        // answer is not missed.
        let _: io::Result<usize> =
            (&self.device).write_vectored(&[IoSlice::new(&header), IoSlice::new(body)]);
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl From<OwnedFd> for Channel {
    fn from(descriptor: OwnedFd) -> Self {
        Self::of(descriptor.into())
    }
}

//! The other end of a Unix socket, from the kernel's socket diagnosis (`NETLINK_SOCK_DIAG`).
//!
//! /proc/net/unix has no peers. One question is one message; no right is needed.

use crate::error::{Result, check, count};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const OPERATION: &str = "ask for the other end of a socket";

/// The kernel's interface, by `linux/sock_diag.h` and `linux/unix_diag.h`.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const SHOW_NAME: u32 = 1;
const SHOW_PEER: u32 = 4;
const ATTRIBUTE_NAME: u16 = 0;
const ATTRIBUTE_PEER: u16 = 2;
const ANY_COOKIE: [u32; 2] = [u32::MAX; 2];

const NETLINK_HEADER_BYTES: usize = 16;
const MESSAGE_BYTES: usize = 16;
const REQUEST_BYTES: usize = NETLINK_HEADER_BYTES + 24;

/// More than one answer has.
const BUFFER_BYTES: usize = 4096;

/// What the kernel says of a Unix socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnixSocket {
    /// Its path, or its abstract name with an `@`; empty of an unnamed one.
    pub name: String,
    /// The inode of its other end; `None` if it is not connected.
    pub peer: Option<u32>,
}

/// A socket that speaks to the kernel about sockets.
#[derive(Debug)]
pub struct UnixDiag {
    socket: OwnedFd,
}

impl UnixDiag {
    /// Opens it.
    ///
    /// # Errors
    /// `Unsupported` or `Other` where the kernel lacks it or a filter forbids it.
    pub fn open() -> Result<Self> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: takes numbers; touches no memory of ours.
        let answer = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) };
        let number = check(OPERATION, answer)?;
        // SAFETY: the call succeeded, so it is open and has no other owner.
        Ok(Self { socket: unsafe { OwnedFd::from_raw_fd(number) } })
    }

    /// What is known of the socket with this inode; `None` if it is not there.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn ask(&self, inode: u32) -> Result<Option<UnixSocket>> {
        let request = request(inode);
        let number = self.socket.as_raw_fd();
        // SAFETY: `request` is readable for its length, and the descriptor is open.
        count(OPERATION, || unsafe {
            libc::send(number, request.as_ptr().cast(), request.len(), 0)
        })?;
        let mut answer = [0; BUFFER_BYTES];
        // The answer is there when `send` returns.
        let bytes = count(OPERATION, || {
            // SAFETY: `answer` is writable for its length, and the descriptor is open.
            unsafe { libc::recv(number, answer.as_mut_ptr().cast(), answer.len(), 0) }
        })?;
        Ok(parse(answer.get(..bytes).unwrap_or_default(), inode))
    }
}

fn request(inode: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(REQUEST_BYTES);
    bytes.extend((REQUEST_BYTES as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    // Sequence and sender.
    bytes.extend([0; 8]);
    // Family, protocol and padding; all states.
    bytes.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(inode.to_ne_bytes());
    bytes.extend((SHOW_NAME | SHOW_PEER).to_ne_bytes());
    ANY_COOKIE.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
    bytes
}

/// The answer about a socket; `None` for an error, or an answer about another one.
fn parse(bytes: &[u8], inode: u32) -> Option<UnixSocket> {
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let message = bytes.get(NETLINK_HEADER_BYTES..)?;
    let answered = number_at(message, 4)?;
    if kind != SOCK_DIAG_BY_FAMILY || answered != inode {
        return None;
    }
    let mut socket = UnixSocket::default();
    let mut rest = message.get(MESSAGE_BYTES..).unwrap_or_default();
    while let Some(length) = rest.get(..2).and_then(|two| two.try_into().ok()) {
        let length = usize::from(u16::from_ne_bytes(length));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
        let Some(value) = rest.get(4..length) else { break };
        match kind {
            ATTRIBUTE_NAME => socket.name = name(value),
            ATTRIBUTE_PEER => socket.peer = number_at(value, 0).filter(|peer| *peer != 0),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(socket)
}

/// An abstract name begins with a zero byte; a path may end with one.
fn name(bytes: &[u8]) -> String {
    match bytes.split_first() {
        Some((0, rest)) => format!("@{}", String::from_utf8_lossy(rest)),
        _ => String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned(),
    }
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{UnixListener, UnixStream};
    use testkit::TempDir;

    fn inode(socket: &impl AsRawFd) -> u32 {
        let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
        std::fs::metadata(path).unwrap().ino() as u32
    }

    #[test]
    fn both_ends_name_each_other() {
        let Ok(diag) = UnixDiag::open() else {
            return testkit::skip("the kernel's diagnosis of sockets");
        };
        let directory = TempDir::new();
        let path = directory.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let (server, _) = listener.accept().unwrap();
        let (ours, theirs) = (inode(&client), inode(&server));
        let Ok(Some(asked)) = diag.ask(ours) else {
            return testkit::skip("the kernel's diagnosis of Unix sockets");
        };
        assert_eq!(asked, UnixSocket { name: String::new(), peer: Some(theirs) });
        let name = path.to_string_lossy().into_owned();
        assert_eq!(diag.ask(theirs).unwrap(), Some(UnixSocket { name, peer: Some(ours) }));
        drop(server);
        assert_eq!(diag.ask(theirs).unwrap(), None);
    }

    #[test]
    fn what_is_cut_is_no_answer() {
        for length in 0..REQUEST_BYTES {
            assert_eq!(parse(&request(7)[..length], 7), None);
        }
    }
}

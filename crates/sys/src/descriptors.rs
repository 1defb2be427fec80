//! Open files that are passed from one process to another over a Unix socket (`SCM_RIGHTS`).
//!
//! The sockets keep the bounds of messages (`SOCK_SEQPACKET`), so a message and its descriptor
//! arrive together or not at all.

use crate::error::{Result, failed};
use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Two ends of a connection that keeps the bounds of messages.
///
/// # Errors
/// Without a free descriptor.
pub fn socket_pair() -> Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(failed("make a socket pair"))
}

/// Sends one message, with a descriptor if there is one.
///
/// # Errors
/// `Other` if the other end is closed.
pub fn send(
    socket: BorrowedFd<'_>,
    message: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> Result<()> {
    let held = descriptor.map(|descriptor| [descriptor]);
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut attached = SendAncillaryBuffer::new(&mut room);
    if let Some(held) = &held {
        attached.push(SendAncillaryMessage::ScmRights(held));
    }
    let parts = [IoSlice::new(message)];
    retry_on_intr(|| sendmsg(socket, &parts, &mut attached, SendFlags::NOSIGNAL))
        .map(drop)
        .map_err(failed("send a descriptor"))
}

/// Receives one message into `message`: its length, 0 when the other end is closed, and the
/// descriptor that came with it.
///
/// # Errors
/// The kernel's word.
pub fn receive(socket: BorrowedFd<'_>, message: &mut [u8]) -> Result<(usize, Option<OwnedFd>)> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut attached = RecvAncillaryBuffer::new(&mut room);
    let mut parts = [IoSliceMut::new(message)];
    let received =
        retry_on_intr(|| recvmsg(socket, &mut parts, &mut attached, RecvFlags::CMSG_CLOEXEC))
            .map_err(failed("receive a descriptor"))?;
    let descriptor = attached.drain().find_map(|part| match part {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok((received.bytes, descriptor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    #[test]
    fn a_file_goes_over_with_its_message() {
        let (one, other) = socket_pair().unwrap();
        let mut file = crate::shared_memory::file().unwrap();
        file.write_all(b"content").unwrap();
        send(one.as_fd(), b"first", Some(file.as_fd())).unwrap();
        send(one.as_fd(), b"second", None).unwrap();
        drop((one, file));
        let mut room = [0; 64];
        let (length, received) = receive(other.as_fd(), &mut room).unwrap();
        assert_eq!(&room[..length], b"first");
        let mut received = File::from(received.unwrap());
        let mut text = String::new();
        received.rewind().unwrap();
        received.read_to_string(&mut text).unwrap();
        assert_eq!(text, "content");
        let (length, none) = receive(other.as_fd(), &mut room).unwrap();
        assert_eq!((&room[..length], none.is_none()), (&b"second"[..], true));
        assert_eq!(receive(other.as_fd(), &mut room).unwrap().0, 0);
    }
}

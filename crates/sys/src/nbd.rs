//! The kernel's client of network block devices, set up over generic netlink (linux/nbd-netlink.h).
//!
//! The kernel gets one end of a pair of sockets, whose other end a server holds. When the server
//! dies, requests wait up to a time for a new connection ([`NbdClient::replace`]), then they fail.
//! Without that time they fail at once. A device has the identifier that its maker gave it (Linux
//! 5.14), by which another process finds it.

use crate::error::{Error, Result};
use crate::taskstats::{Connection, parse};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

const FAMILY: &[u8] = b"nbd\0";
const CONNECT: u8 = 1;
const DISCONNECT: u8 = 2;
const RECONFIGURE: u8 = 3;

const INDEX: u16 = 1;
const SIZE_BYTES: u16 = 2;
const BLOCK_BYTES: u16 = 3;
const TIMEOUT: u16 = 4;
const SERVER_FLAGS: u16 = 5;
const SOCKETS: u16 = 7;
const CLIENT_FLAGS: u16 = 6;
const DEAD_CONNECTION_TIMEOUT: u16 = 8;
const IDENTIFIER: u16 = 10;
const SOCKET_ITEM: u16 = 1;
const SOCKET_DESCRIPTOR: u16 = 1;
/// `NBD_CFLAG_DISCONNECT_ON_CLOSE` (Linux 4.18): the device ends when nothing has it open any more.
const END_WHEN_CLOSED: u64 = 1 << 1;
/// An attribute that holds others.
const NESTED: u16 = 1 << 15;

/// How a device is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NbdOptions {
    /// Its length in bytes.
    pub bytes: u64,
    /// Its logical block in bytes.
    pub block_bytes: u32,
    /// Transmission flags of the protocol: what the server understands.
    pub server_flags: u16,
    /// A request that is not answered for so long is sent again, and the connection that it was
    /// sent over counts as dead from then on; whole seconds. The end of a connection alone sends
    /// nothing again that had been sent over it (`nbd_xmit_timeout` of drivers/block/nbd.c).
    pub request_timeout: Duration,
    /// Requests wait for so long for a new connection when all are dead, then they fail; whole
    /// seconds.
    pub dead_connection_timeout: Duration,
}

/// Speaks to the kernel's client.
#[derive(Debug)]
pub struct NbdClient {
    connection: Connection,
}

impl NbdClient {
    /// Opens a netlink socket.
    ///
    /// # Errors
    /// `NotFound` without the module nbd.
    pub fn open() -> Result<Self> {
        Connection::of_family("use network block devices", FAMILY)
            .map(|connection| Self { connection })
    }

    /// Makes a device with this identifier over `sockets`: its number, as 0 of `/dev/nbd0`.
    ///
    /// # Errors
    /// `Denied` without `CAP_SYS_ADMIN`; the kernel's word.
    pub fn connect(
        &mut self,
        identifier: &str,
        options: NbdOptions,
        sockets: &[BorrowedFd<'_>],
    ) -> Result<u32> {
        const OPERATION: &str = "connect a network block device";
        let attributes = [
            parse::attribute(SIZE_BYTES, &options.bytes.to_ne_bytes()),
            parse::attribute(BLOCK_BYTES, &u64::from(options.block_bytes).to_ne_bytes()),
            parse::attribute(SERVER_FLAGS, &u64::from(options.server_flags).to_ne_bytes()),
            identified(identifier),
            timeouts(options),
            nested(sockets),
        ];
        let answer = self.connection.command(OPERATION, CONNECT, &attributes.concat())?;
        let found = answer.into_iter().find_map(|(kind, value)| match kind {
            INDEX => value.first_chunk().copied().map(u32::from_ne_bytes),
            _ => None,
        });
        found.ok_or_else(|| Error::new(OPERATION, io::Error::other("the kernel names no device")))
    }

    /// Gives the device other connections in place of those that are dead. If none is, the kernel
    /// closes `sockets` and reports no error: their other ends then show it.
    ///
    /// # Errors
    /// `NotFound` or `Invalid` if it is not connected, or has another identifier.
    pub fn replace(
        &mut self,
        number: u32,
        identifier: &str,
        options: NbdOptions,
        sockets: &[BorrowedFd<'_>],
    ) -> Result<()> {
        const OPERATION: &str = "reconnect a network block device";
        let index = parse::attribute(INDEX, &number.to_ne_bytes());
        let rest = [timeouts(options), nested(sockets)].concat();
        let attributes = [index, identified(identifier), rest].concat();
        self.connection.command(OPERATION, RECONFIGURE, &attributes).map(drop)
    }

    /// Has the device end when the last program that has it open closes it: who has it open can
    /// use it until then. It ends at once if it is opened and closed afterwards, and nothing else
    /// has it open.
    ///
    /// # Errors
    /// As [`Self::replace`].
    pub fn end_when_closed(&mut self, number: u32, identifier: &str) -> Result<()> {
        const OPERATION: &str = "end a network block device";
        let index = parse::attribute(INDEX, &number.to_ne_bytes());
        let flags = parse::attribute(CLIENT_FLAGS, &END_WHEN_CLOSED.to_ne_bytes());
        let attributes = [index, identified(identifier), flags].concat();
        self.connection.command(OPERATION, RECONFIGURE, &attributes).map(drop)
    }

    /// Disconnects the device: requests fail from then on.
    ///
    /// # Errors
    /// `NotFound` or `Invalid` if it is not connected.
    pub fn disconnect(&mut self, number: u32) -> Result<()> {
        const OPERATION: &str = "disconnect a network block device";
        let index = parse::attribute(INDEX, &number.to_ne_bytes());
        self.connection.command(OPERATION, DISCONNECT, &index).map(drop)
    }
}

/// The number of the device that has this identifier now.
///
/// # Errors
/// If /sys cannot be read.
pub fn find(identifier: &str) -> io::Result<Option<u32>> {
    for entry in std::fs::read_dir("/sys/block")? {
        let name = entry?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix("nbd"));
        let Some(number) = digits.and_then(|digits| digits.parse().ok()) else { continue };
        match std::fs::read_to_string(format!("/sys/block/nbd{number}/backend")) {
            Ok(backend) if backend.trim_end_matches('\n') == identifier => {
                return Ok(Some(number));
            }
            Ok(_) => {}
            // It has none, or lost it just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Opens the device with this number and closes it, so that one which is to end when it is closed
/// does.
///
/// # Errors
/// As for opening it; `Invalid` if its file is not that of a network block device.
pub fn open_and_close(number: u32) -> Result<()> {
    const OPERATION: &str = "open a network block device";
    /// `NBD_MAJOR`.
    const MAJOR: u32 = 43;
    let path = path(number);
    let failed = |source| Error::new(OPERATION, source).at(&path);
    let file = File::open(&path).map_err(failed)?;
    match crate::block::numbers_of(&file)? {
        Some((MAJOR, _)) => Ok(()),
        _ => Err(Error::invalid(OPERATION, "it is another device").at(&path)),
    }
}

/// The file of the device with this number.
#[must_use]
pub fn path(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/nbd{number}"))
}

/// The attribute of an identifier, which ends with a zero.
fn identified(identifier: &str) -> Vec<u8> {
    parse::attribute(IDENTIFIER, &[identifier.as_bytes(), &[0]].concat())
}

fn timeouts(options: NbdOptions) -> Vec<u8> {
    let seconds = |time: Duration| time.as_secs().to_ne_bytes();
    let request = parse::attribute(TIMEOUT, &seconds(options.request_timeout));
    let dead = seconds(options.dead_connection_timeout);
    [request, parse::attribute(DEAD_CONNECTION_TIMEOUT, &dead)].concat()
}

fn nested(sockets: &[BorrowedFd<'_>]) -> Vec<u8> {
    let item = |socket: &BorrowedFd<'_>| {
        let number = (socket.as_raw_fd() as u32).to_ne_bytes();
        parse::attribute(SOCKET_ITEM | NESTED, &parse::attribute(SOCKET_DESCRIPTOR, &number))
    };
    parse::attribute(SOCKETS | NESTED, &sockets.iter().flat_map(item).collect::<Vec<_>>())
}

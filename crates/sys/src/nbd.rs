//! The kernel's client of network block devices, set up over generic netlink (linux/nbd-netlink.h).
//!
//! The kernel gets one end of a pair of sockets, whose other end a server holds. When the server
//! dies, requests wait up to a time for a new connection ([`NbdClient::replace`]), then they fail.
//! Without that time they fail at once.

use crate::error::{Error, Result};
use crate::taskstats::{Connection, parse};
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
const DEAD_CONNECTION_TIMEOUT: u16 = 8;
const SOCKET_ITEM: u16 = 1;
const SOCKET_DESCRIPTOR: u16 = 1;
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
    /// A request that is not answered for so long is sent again over another connection; whole
    /// seconds.
    pub request_timeout: Duration,
    /// Requests wait for so long for a new connection when all are dead; whole seconds.
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

    /// Makes a device over `sockets`: its number, as 0 of `/dev/nbd0`.
    ///
    /// # Errors
    /// `Denied` without `CAP_SYS_ADMIN`; the kernel's word.
    pub fn connect(&mut self, options: NbdOptions, sockets: &[BorrowedFd<'_>]) -> Result<u32> {
        const OPERATION: &str = "connect a network block device";
        let attributes = [
            parse::attribute(SIZE_BYTES, &options.bytes.to_ne_bytes()),
            parse::attribute(BLOCK_BYTES, &u64::from(options.block_bytes).to_ne_bytes()),
            parse::attribute(SERVER_FLAGS, &u64::from(options.server_flags).to_ne_bytes()),
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

    /// Gives the device other connections in place of those that are dead.
    ///
    /// # Errors
    /// `NotFound` or `Invalid` if it is not connected, `NoSpace` if no connection is dead yet.
    pub fn replace(
        &mut self,
        number: u32,
        options: NbdOptions,
        sockets: &[BorrowedFd<'_>],
    ) -> Result<()> {
        const OPERATION: &str = "reconnect a network block device";
        let index = parse::attribute(INDEX, &number.to_ne_bytes());
        let attributes = [index, timeouts(options), nested(sockets)].concat();
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

/// The file of the device with this number.
#[must_use]
pub fn path(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/nbd{number}"))
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

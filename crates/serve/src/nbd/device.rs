//! The kernel's device over a server of this machine, which may be killed: requests wait until a
//! successor has made a new connection.
//!
//! The kernel holds one end of a pair of sockets, the server the other. The server's death closes
//! its end; the kernel then waits for [`KernelDevice::take_over`], and sends again what was not
//! answered. Nothing has to be held outside, unlike with FUSE.

use super::protocol::ExportFeatures;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use sys::nbd::{NbdClient, NbdOptions};
use sys::{Error, Result};

/// A request that was sent to a server that died is sent again after so long.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Requests wait for so long for a successor.
const SUCCESSOR_TIMEOUT: Duration = Duration::from_secs(30);
/// The kernel notices a dead connection a moment after its end.
const TAKE_OVER_TRIES: u32 = 250;
const TAKE_OVER_PAUSE: Duration = Duration::from_millis(20);

/// A device `/dev/nbdN`. It lives on when this is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelDevice {
    number: u32,
    options: NbdOptions,
}

impl KernelDevice {
    /// Makes a device of `bytes` bytes with `connections` connections to it: the server's ends, on
    /// which it answers without a handshake.
    ///
    /// # Errors
    /// `NotFound` without the module nbd, `Denied` without `CAP_SYS_ADMIN`.
    pub fn connect(
        bytes: u64,
        block_bytes: u32,
        features: ExportFeatures,
        connections: usize,
    ) -> Result<(Self, Vec<UnixStream>)> {
        /// Several connections see each other's writes and flushes.
        const MULTIPLE: u16 = 1 << 8;
        // The kernel speaks only simple replies.
        let features = ExportFeatures { structured: false, ..features };
        let options = NbdOptions {
            bytes,
            block_bytes,
            server_flags: features.flags() | MULTIPLE,
            request_timeout: REQUEST_TIMEOUT,
            dead_connection_timeout: SUCCESSOR_TIMEOUT,
        };
        let (kernel, server) = pairs(connections)?;
        let sockets: Vec<_> = kernel.iter().map(AsFd::as_fd).collect();
        let number = NbdClient::open()?.connect(options, &sockets)?;
        Ok((Self { number, options }, server))
    }

    /// A device that another process has made, to take it over or to disconnect it.
    ///
    /// # Errors
    /// None yet.
    #[must_use]
    pub fn existing(number: u32, bytes: u64, block_bytes: u32, features: ExportFeatures) -> Self {
        let options = NbdOptions {
            bytes,
            block_bytes,
            server_flags: features.flags(),
            request_timeout: REQUEST_TIMEOUT,
            dead_connection_timeout: SUCCESSOR_TIMEOUT,
        };
        Self { number, options }
    }

    /// Makes a connection in place of one of a server that died; call it once for each.
    ///
    /// # Errors
    /// `NotFound` or `Invalid` if the device is not connected; `NoSpace` if no connection died.
    pub fn take_over(&self) -> Result<UnixStream> {
        let (kernel, mut server) = pairs(1)?;
        let mut client = NbdClient::open()?;
        let mut tries = 0;
        loop {
            match client.replace(self.number, self.options, &[kernel[0].as_fd()]) {
                Err(error) if is_alive(&error) && tries < TAKE_OVER_TRIES => tries += 1,
                Err(error) => return Err(error),
                Ok(()) => return Ok(server.remove(0)),
            }
            std::thread::sleep(TAKE_OVER_PAUSE);
        }
    }

    /// Disconnects it: requests fail from then on.
    ///
    /// # Errors
    /// `NotFound` or `Invalid` if it is not connected.
    pub fn disconnect(&self) -> Result<()> {
        NbdClient::open()?.disconnect(self.number)
    }

    /// Its number, as 0 of `/dev/nbd0`.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        sys::nbd::path(self.number)
    }
}

/// Whether the kernel has no dead connection yet (`ENOSPC`).
fn is_alive(error: &Error) -> bool {
    error.number() == Some(28)
}

/// The kernel's ends of new connections, and the server's.
fn pairs(count: usize) -> Result<(Vec<OwnedFd>, Vec<UnixStream>)> {
    let (mut kernel, mut server) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let made = UnixStream::pair().map_err(|error| Error::new("make a socket pair", error))?;
        kernel.push(made.0.into());
        server.push(made.1);
    }
    Ok((kernel, server))
}

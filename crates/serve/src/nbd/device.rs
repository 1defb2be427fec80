//! The kernel's device over a server of this machine, which may be killed: requests wait until a
//! successor has made a new connection.
//!
//! The kernel holds one end of a pair of sockets, the server the other. The server's death closes
//! its end; the kernel then waits for [`KernelDevice::take_over`]. What the dead server had under
//! way is sent again when its time is over, and not before. Nothing has to be held outside, unlike
//! with FUSE: a successor finds the device by its identifier.

use super::protocol::ExportFeatures;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use sys::nbd::{NbdClient, NbdOptions};
use sys::{Error, Result};

/// After so long a request is sent again, and its connection counts as dead. The kernel cannot know
/// a slow disk from a dead server: this is longer than a disk takes for a request, its own retries
/// with it (a SCSI command has 30 s, and a second try). With 2 s each slow request ended a
/// connection of a server that was alive, and when none was left everything failed. The price is
/// that what was under way in a server that is killed waits for so long.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(90);
/// With all connections dead, requests wait for so long for a successor, then they fail. Longer
/// than any start of one takes: it waits a minute for what a dead one had under way, and more than
/// one may be needed.
const SUCCESSOR_TIMEOUT: Duration = Duration::from_secs(300);
/// The kernel notices a dead connection a moment after its end.
const TAKE_OVER_TRIES: u32 = 250;
const TAKE_OVER_PAUSE: Duration = Duration::from_millis(20);
/// Several connections see each other's writes and flushes.
const MULTIPLE: u16 = 1 << 8;

/// What a device is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSetup {
    /// A name that no other device has.
    pub identifier: String,
    /// The length in bytes.
    pub bytes: u64,
    /// The logical block in bytes.
    pub block_bytes: u32,
    /// What the server understands.
    pub features: ExportFeatures,
    /// A request is sent again after so long; [`REQUEST_TIMEOUT`] suits any disk.
    pub request_timeout: Duration,
}

impl DeviceSetup {
    fn options(&self) -> NbdOptions {
        // The kernel speaks only simple replies.
        let features = ExportFeatures { structured: false, ..self.features };
        NbdOptions {
            bytes: self.bytes,
            block_bytes: self.block_bytes,
            server_flags: features.flags() | MULTIPLE,
            request_timeout: self.request_timeout,
            dead_connection_timeout: SUCCESSOR_TIMEOUT,
        }
    }
}

/// A device `/dev/nbdN`. It lives on when this is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelDevice {
    number: u32,
    setup: DeviceSetup,
}

impl KernelDevice {
    /// Makes a device with so many connections to it: the server's ends, on which it answers
    /// without a handshake. Of one connection alone older kernels send nothing again.
    ///
    /// # Errors
    /// `NotFound` without the module nbd, `Denied` without `CAP_SYS_ADMIN`.
    pub fn connect(setup: DeviceSetup, connections: usize) -> Result<(Self, Vec<UnixStream>)> {
        let (kernel, server) = pairs(connections)?;
        let sockets: Vec<_> = kernel.iter().map(AsFd::as_fd).collect();
        let mut client = NbdClient::open()?;
        let number = client.connect(&setup.identifier, setup.options(), &sockets)?;
        Ok((Self { number, setup }, server))
    }

    /// The device that was made with the identifier of `setup`, to take it over or to end it.
    ///
    /// # Errors
    /// If that cannot be found out.
    pub fn find(setup: DeviceSetup) -> io::Result<Option<Self>> {
        let number = sys::nbd::find(&setup.identifier)?;
        Ok(number.map(|number| Self { number, setup }))
    }

    /// Makes a connection in place of one that is dead; call it once for each. When it returns the
    /// kernel uses the connection: it had noticed that the end of the one before hung up.
    ///
    /// # Errors
    /// `NotFound` or `Invalid` if the device is not connected; `Other` if no connection is dead.
    pub fn take_over(&self) -> Result<UnixStream> {
        const OPERATION: &str = "take over a network block device";
        let mut client = NbdClient::open()?;
        for _ in 0..TAKE_OVER_TRIES {
            let (kernel, mut server) = pairs(1)?;
            let sockets = [kernel[0].as_fd()];
            let identifier = &self.setup.identifier;
            client.replace(self.number, identifier, self.setup.options(), &sockets)?;
            drop(kernel);
            let server = server.remove(0);
            // A connection that the kernel has no use for it closes, and reports no error.
            if !sys::poll::is_hung_up(server.as_fd()) {
                return Ok(server);
            }
            std::thread::sleep(TAKE_OVER_PAUSE);
        }
        Err(Error::new(OPERATION, io::Error::other("all of its connections are alive")))
    }

    /// Ends it when the last program that has it open closes it; at once if none has.
    ///
    /// # Errors
    /// `NotFound` or `Invalid` if it is not connected.
    pub fn end_when_closed(&self) -> Result<()> {
        NbdClient::open()?.end_when_closed(self.number, &self.setup.identifier)?;
        // The kernel looks when it is closed.
        sys::nbd::open_and_close(self.number)
    }

    /// Disconnects it: requests fail from then on.
    ///
    /// # Errors
    /// `NotFound` or `Invalid` if it is not connected.
    pub fn disconnect(&self) -> Result<()> {
        NbdClient::open()?.disconnect(self.number)
    }

    /// Whether it is still connected; true also if that cannot be found out.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        sys::nbd::find(&self.setup.identifier).map_or(true, |found| found == Some(self.number))
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

//! How a served volume is given to the kernel: a file of FUSE under a loop device, or a network
//! block device. Which one is found out here, by what the kernel really offers; a successor takes
//! over either. The rest of a service does not care which it is.

use super::serve::loop_device_over;
use crate::args::boost::CacheArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use machine::{Root, block_use, kernel};
use place::boost::plan::{ExportChoice, ExportMethod};
use place::boost::volume::Volume as BackingVolume;
use serve::fuse::{FileOptions, FileServer, Session, resend_is_offered};
use serve::holder::HolderClient;
use serve::nbd::{DeviceServer, DeviceSetup, ExportFeatures, KernelDevice};
use serve::volume::Volume;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use sys::directory::Directory;
use sys::loop_device::{LoopDevice, LoopOptions};
use sys::nbd::NbdClient;

/// Threads that take requests from the kernel.
const CHANNELS: usize = 16;
/// Connections of a network block device, and requests of each at a time: as many in all.
const CONNECTIONS: usize = 4;
/// How long a kernel may take to begin a connection of FUSE that was mounted.
const BEGIN_WAIT: Duration = Duration::from_secs(5);
/// The first kernel that says which network block device is whose.
const IDENTIFIERS_SINCE: (u32, u32) = (5, 14);

/// Which way the disk is served here.
///
/// # Errors
/// `Impossible`, with what is missing.
pub(super) fn resolve(args: &CacheArgs) -> Result<ExportMethod> {
    let resolved =
        args.parts.export.resolve(fuse_is_there, nbd_is_there, resend_after(args).as_secs());
    resolved.map_err(|why| Error::new(Exit::Impossible, why))
}

/// The choice that leads to this method again.
pub(super) fn choice_of(method: ExportMethod) -> ExportChoice {
    match method {
        ExportMethod::FuseResend => ExportChoice::Fuse,
        ExportMethod::Nbd { .. } => ExportChoice::Nbd,
    }
}

/// The kernel counts whole seconds, and 0 is no limit.
fn resend_after(args: &CacheArgs) -> Duration {
    args.parts.resend_after.max(Duration::from_secs(1))
}

fn fuse_is_there() -> std::result::Result<(), String> {
    match resend_is_offered() {
        Ok(true) => Ok(()),
        Ok(false) => {
            let release = kernel::release(&Root::system()).unwrap_or_default();
            Err(format!(
                "FUSE of Linux {release} does not send requests again, as that of 6.9 does"
            ))
        }
        Err(error) => Err(format!("FUSE cannot be used: {error}")),
    }
}

fn nbd_is_there() -> std::result::Result<(), String> {
    let release = kernel::release(&Root::system()).unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= IDENTIFIERS_SINCE => {}
        _ => return Err(format!("Linux {release} does not say whose an NBD device is, 5.14 does")),
    }
    NbdClient::open().map_err(|_| "the kernel has no NBD (modprobe nbd)".to_owned())?;
    let is_there = sys::nbd::path(0).exists();
    is_there.then_some(()).ok_or_else(|| "/dev/nbd0 is missing".to_owned())
}

/// What a served cache is called as a network block device.
fn identifier(name: &str) -> String {
    format!("terrace-boost-{name}")
}

/// The block device of a cache, also of one that another process serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServedDevice {
    Loop(LoopDevice),
    Nbd { number: u32 },
}

impl ServedDevice {
    /// The one whose file is `point` or that is of the cache `name`.
    ///
    /// # Errors
    /// If that cannot be found out.
    pub(super) fn find(point: &Path, name: &str) -> io::Result<Option<Self>> {
        if let Some(device) = loop_device_over(point)? {
            return Ok(Some(Self::Loop(device)));
        }
        let number = sys::nbd::find(&identifier(name))?;
        Ok(number.map(|number| Self::Nbd { number }))
    }

    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::Loop(device) => device.path().to_owned(),
            Self::Nbd { number } => sys::nbd::path(*number),
        }
    }

    /// What uses it, in words.
    pub(super) fn use_of(&self) -> Option<String> {
        let root = Root::system();
        let name = match self {
            Self::Loop(device) => format!("loop{}", device.number()),
            Self::Nbd { number } => format!("nbd{number}"),
        };
        let text = root.read(format!("/sys/block/{name}/dev")).ok()?;
        let (major, minor) = text.trim_end().split_once(':')?;
        let (major, minor) = (major.parse().ok()?, minor.parse().ok()?);
        block_use::uses(&root, major, minor).first().map(ToString::to_string)
    }

    /// Ends it where its service is dead: what waits for it gets an error.
    pub(super) fn abandon(&self, point: &Path, name: &str) {
        match self {
            Self::Loop(device) => {
                // Without its mount the file has another path.
                let held = device.hold(point);
                // The dead file ends what still waits for it.
                let _ = sys::mount::abandon(point);
                if let Ok(Some(held)) = held {
                    let _ = held.detach();
                }
            }
            Self::Nbd { number } => {
                // Whose it is was just found out by its identifier.
                if matches!(sys::nbd::find(&identifier(name)), Ok(Some(it)) if it == *number) {
                    let _ = NbdClient::open().and_then(|mut client| client.disconnect(*number));
                }
            }
        }
    }
}

/// A volume that this process serves.
#[derive(Debug)]
pub(super) struct Export {
    served: ServedBy,
    pub(super) device: ServedDevice,
    point: PathBuf,
    name: String,
}

#[derive(Debug)]
enum ServedBy {
    Fuse(FileServer),
    Nbd { server: DeviceServer, device: KernelDevice },
}

/// What is served.
pub(super) struct Exported<'a> {
    pub(super) args: &'a CacheArgs,
    pub(super) volume: Arc<dyn Volume>,
    pub(super) backing: &'a BackingVolume,
    /// The volume's block.
    pub(super) block_bytes: u32,
    /// The directory of the cache while it is served.
    pub(super) directory: &'a Directory,
    /// The file in it that is served, by its path.
    pub(super) point: PathBuf,
}

impl Export {
    /// Begins to serve, in place of a process before if there was one.
    ///
    /// # Errors
    /// `Impossible` on a kernel that lacks what this way needs; what the kernel says.
    pub(super) fn begin(exported: &Exported<'_>, holder: &HolderClient<'_>) -> Result<Self> {
        let (served, device) = match exported.args.parts.export {
            ExportChoice::Nbd => by_nbd(exported)?,
            ExportChoice::Auto | ExportChoice::Fuse => by_fuse(exported, holder)?,
        };
        let (point, name) = (exported.point.clone(), exported.args.parts.name.clone());
        Ok(Self { served, device, point, name })
    }

    /// Whether the block device is still that of this service; true if that cannot be found out.
    pub(super) fn is_there(&self) -> bool {
        match ServedDevice::find(&self.point, &self.name) {
            Ok(found) => found.as_ref() == Some(&self.device),
            Err(_) => true,
        }
    }

    /// No new user comes to the device; the last one may still have it open.
    pub(super) fn begin_end(&self) {
        match (&self.served, &self.device) {
            (ServedBy::Fuse(_), ServedDevice::Loop(device)) => {
                let _ = device.detach_from(&self.point);
            }
            (ServedBy::Nbd { server, device }, _) => {
                server.let_end();
                let _ = device.end_when_closed();
            }
            (ServedBy::Fuse(_), ServedDevice::Nbd { .. }) => {}
        }
    }

    /// Ends what is behind the device, which is gone; whether nothing can write any more.
    pub(super) fn end(self, limit: Duration) -> bool {
        match self.served {
            ServedBy::Fuse(server) => {
                if sys::mount::unmount(&self.point).is_err() {
                    let _ = sys::mount::detach(&self.point);
                }
                // What has the file open, or a copy of the mount, could still write.
                server.join_within(limit)
            }
            ServedBy::Nbd { server, .. } => server.join_within(limit),
        }
    }
}

fn by_fuse(exported: &Exported<'_>, holder: &HolderClient<'_>) -> Result<(ServedBy, ServedDevice)> {
    let point = &exported.point;
    let session = Session::open(holder, point, &identifier(&exported.args.parts.name), CHANNELS)?;
    // A hole has to read as zeros.
    let has_holes = exported.backing.commands.write_zeroes;
    let options = FileOptions { has_holes, needs_resend: true, ..FileOptions::DISK };
    let server = FileServer::start(session.channels, Arc::clone(&exported.volume), options)?;
    if !session.is_successor && server.is_accepted(BEGIN_WAIT) == Some(false) {
        let _ = sys::mount::abandon(point);
        let text = "this kernel does not send requests of FUSE again when the service is killed: \
                    Linux 6.9 does";
        return Err(Error::new(Exit::Impossible, text).hint("`--export nbd` may do"));
    }
    let found = loop_device_over(point);
    let device = match found.map_err(|it| Error::new(Exit::Partial, sys::plain_reason(&it)))? {
        Some(device) => device,
        None => {
            let export = OsStr::new(super::control::EXPORT);
            let file = exported.directory.open_or_create(export, 0o600)?;
            let block_bytes = Some(exported.block_bytes);
            let options = LoopOptions { is_direct: true, is_read_only: false, block_bytes };
            LoopDevice::attach(&file, point, options)?
        }
    };
    Ok((ServedBy::Fuse(server), ServedDevice::Loop(device)))
}

fn by_nbd(exported: &Exported<'_>) -> Result<(ServedBy, ServedDevice)> {
    let commands = exported.backing.commands;
    let features = ExportFeatures {
        trim: commands.discard,
        write_zeroes: commands.write_zeroes,
        ..ExportFeatures::default()
    };
    let setup = DeviceSetup {
        identifier: identifier(&exported.args.parts.name),
        bytes: exported.volume.bytes(),
        block_bytes: exported.block_bytes,
        features,
        request_timeout: resend_after(exported.args),
    };
    let looked_for = KernelDevice::find(setup.clone());
    let found = looked_for.map_err(|it| Error::new(Exit::Partial, sys::plain_reason(&it)))?;
    let (device, streams) = match found {
        Some(device) => {
            let taken = (0..CONNECTIONS).map(|_| device.take_over());
            let streams = taken.collect::<sys::Result<Vec<_>>>()?;
            (device, streams)
        }
        None => KernelDevice::connect(setup, CONNECTIONS)?,
    };
    let each = CHANNELS / CONNECTIONS;
    let server = DeviceServer::start(&device, streams, &exported.volume, each)?;
    let number = device.number();
    Ok((ServedBy::Nbd { server, device }, ServedDevice::Nbd { number }))
}

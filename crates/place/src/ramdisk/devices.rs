//! The zram devices of RAM disks: a small file for each beside the records, `zramN`, from before
//! the device is added until it is removed.
//!
//! 1. Under the lock of the records the file is made, with the number that the device will get, and
//!    locked. The device is added, and its sequence number written to the file.
//! 2. While its maker lives it holds the lock of the file. Afterwards a record claims the device.
//! 3. A file that is neither locked nor claimed was left by a killed maker, or its RAM disk was
//!    unmounted: the device is removed, and then the file. A device that is in use is tried again.

use super::create::MAKE;
use super::record::RamdiskRecords;
use crate::{Error, ErrorKind, Result};
use machine::Root;
use model::Bytes;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use sys::directory::Directory;
use sys::lock::{self, LockMode};
use undo::zram::{self, ZramDevice};

/// What the names begin with.
const PREFIX: &str = "zram";
/// A number is shorter.
const LONGEST_TEXT: u64 = 32;

/// A device that is being filled. With this it goes, unless a record claims it by then.
#[derive(Debug)]
pub(super) struct ZramNote {
    device: ZramDevice,
    root: Root,
    /// Holds the lock.
    file: Option<File>,
}

impl ZramNote {
    /// The device.
    pub(super) fn device(&self) -> ZramDevice {
        self.device
    }
}

impl Drop for ZramNote {
    fn drop(&mut self) {
        self.file = None;
        // What cannot be removed now is removed by the next command that locks the records.
        let _ = RamdiskRecords::lock(&self.root);
    }
}

/// Adds a device. `place` is the locked directory of the records.
pub(super) fn add(root: &Root, place: &Directory, size: Bytes) -> Result<ZramNote> {
    let expected = zram::next_number();
    let mut file = locked(place, expected)?;
    let added = zram::add().map_err(|error| {
        let why = match error.kind {
            sys::ErrorKind::Unsupported => {
                "the kernel has no zram for --atomic (Linux 5.15); `modprobe zram num_devices=0` \
                 loads it, if it has it as a module"
                    .to_owned()
            }
            _ => format!("no zram device can be added: {}", sys::plain_reason(&error.source)),
        };
        Error::new(ErrorKind::Impossible, MAKE, why)
    });
    let device = match added {
        Ok(device) => device,
        Err(error) => {
            place.remove(&name(expected))?;
            return Err(error);
        }
    };
    if device.number != expected {
        // Another program added one at the same time.
        file = locked(place, device.number)?;
        place.remove(&name(expected))?;
    }
    let failed = |error| Error::io("note the device of the RAM disk in", place.path(), error);
    file.write_all(device.sequence.to_string().as_bytes()).map_err(failed)?;
    // On failure the lock of the file ends, and the next sweep removes the device.
    device.set_size(size.0).map_err(|error| {
        let why = format!("the size of {}: {}", device.name(), sys::plain_reason(&error.source));
        Error::new(ErrorKind::Failed, MAKE, why)
    })?;
    Ok(ZramNote { device, root: root.clone(), file: Some(file) })
}

/// Removes the devices that are neither being filled nor claimed.
pub(super) fn sweep(place: &Directory, is_claimed: impl Fn(ZramDevice) -> bool) -> Result<()> {
    for name in place.names()? {
        let Some(number) = number_of(&name) else { continue };
        let file = place.open_regular(&name)?;
        if !lock::try_take(&file, LockMode::Exclusive)? {
            continue;
        }
        let mut text = String::new();
        let _ = (&file).take(LONGEST_TEXT).read_to_string(&mut text);
        let is_gone = match text.trim().parse() {
            Ok(sequence) => {
                let device = ZramDevice { number, sequence };
                if is_claimed(device) {
                    continue;
                }
                device.remove().is_ok()
            }
            // Killed between both steps: it has no size, or it is not ours.
            Err(_) => zram::with_number(number)
                .filter(ZramDevice::is_unused)
                .is_none_or(|device| device.remove().is_ok()),
        };
        if is_gone {
            place.remove(&name)?;
        }
    }
    Ok(())
}

fn locked(place: &Directory, number: u32) -> Result<File> {
    let file = place.open_or_create(&name(number), 0o600)?;
    lock::try_take(&file, LockMode::Exclusive)?;
    file.set_len(0).map_err(|error| Error::io("use", place.path(), error))?;
    Ok(file)
}

fn name(number: u32) -> OsString {
    format!("{PREFIX}{number}").into()
}

fn number_of(name: &OsStr) -> Option<u32> {
    name.to_str()?.strip_prefix(PREFIX)?.parse().ok()
}

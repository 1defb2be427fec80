//! Compressed memory as a block device: one is added to the machine, and removed from it again.
//!
//! A device is known by its number and by the kernel's sequence number, which no other device of
//! this boot has: a number alone is given again. One that others added is never touched.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use sys::{Error, ErrorKind, Result};

const CONTROL: &str = "/sys/class/zram-control";
/// Programs that look at each new device have it open for a moment.
const ATTEMPTS: u32 = 25;
const PAUSE: Duration = Duration::from_millis(20);

/// A device, which may be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZramDevice {
    /// The N of `zramN`.
    pub number: u32,
    /// The kernel's sequence number of the device (Linux 5.15).
    pub sequence: u64,
}

/// The number that the next added device gets, unless another program adds one before.
#[must_use]
pub fn next_number() -> u32 {
    (0..).find(|number| !block(*number).exists()).unwrap_or(0)
}

/// Adds a device. It has no size yet.
///
/// # Errors
/// `Unsupported` where the kernel has no zram, or does not number its devices.
pub fn add() -> Result<ZramDevice> {
    let path = Path::new(CONTROL).join("hot_add");
    // Reading this file adds a device and returns its number.
    let text = fs::read_to_string(&path).map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::Unsupported,
            _ => ErrorKind::Other,
        };
        Error { kind, ..failed("add a zram device by", &path, error) }
    })?;
    let number = text.trim().parse().map_err(|_| {
        let why = std::io::Error::other("the kernel did not say which it is");
        failed("add a zram device by", &path, why)
    })?;
    match with_number(number) {
        Some(device) => Ok(device),
        None => {
            remove_number(number)?;
            let why = std::io::Error::other("the kernel does not number it (Linux 5.15)");
            Err(Error {
                kind: ErrorKind::Unsupported,
                ..failed("tell devices apart by", &path, why)
            })
        }
    }
}

/// The device that has this number now.
#[must_use]
pub fn with_number(number: u32) -> Option<ZramDevice> {
    let sequence = fs::read_to_string(block(number).join("diskseq")).ok()?.trim().parse().ok()?;
    Some(ZramDevice { number, sequence })
}

impl ZramDevice {
    /// Its name, as `zram1`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("zram{}", self.number)
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        Path::new("/dev").join(self.name())
    }

    /// Whether it is there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        with_number(self.number) == Some(*self)
    }

    /// Whether it has no size: it never held anything.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        let size = fs::read_to_string(block(self.number).join("disksize"));
        self.is_there() && size.is_ok_and(|size| size.trim() == "0")
    }

    /// Gives it its size, once. Memory is taken as it is written to.
    ///
    /// # Errors
    /// `Other` with `EBUSY` for one that has a size.
    pub fn set_size(&self, bytes: u64) -> Result<()> {
        let path = block(self.number).join("disksize");
        fs::write(&path, bytes.to_string()).map_err(|error| failed("give a size by", &path, error))
    }

    /// Removes it with all that is in it. Succeeds if it is gone already.
    ///
    /// # Errors
    /// `Other` with `EBUSY` while it is used.
    pub fn remove(&self) -> Result<()> {
        if self.is_there() { remove_number(self.number) } else { Ok(()) }
    }
}

fn remove_number(number: u32) -> Result<()> {
    let path = Path::new(CONTROL).join("hot_remove");
    let write = || fs::write(&path, number.to_string());
    let mut written = write();
    for _ in 1..ATTEMPTS {
        if written.is_ok() {
            break;
        }
        sleep(PAUSE);
        written = write();
    }
    written.map_err(|error| failed("remove a zram device by", &path, error))
}

fn block(number: u32) -> PathBuf {
    PathBuf::from(format!("/sys/block/zram{number}"))
}

fn failed(operation: &'static str, path: &Path, error: std::io::Error) -> Error {
    Error::new(operation, error).at(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_with_a_size_and_then_it_is_not() {
        if !testkit::is_root() || !Path::new(CONTROL).exists() {
            return testkit::skip("root and zram");
        }
        let device = add().unwrap();
        assert!(device.is_there() && device.is_unused());
        let other = ZramDevice { sequence: device.sequence + 1_000_000, ..device };
        other.remove().unwrap();
        assert!(device.is_there(), "it is another one that has the number now");
        device.set_size(1 << 20).unwrap();
        assert!(!device.is_unused() && device.set_size(2 << 20).is_err());
        device.remove().unwrap();
        assert!(!device.is_there());
        device.remove().unwrap();
    }
}

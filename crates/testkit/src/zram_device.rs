//! A compressed RAM disk of a test's own, added to the machine and removed from it again: a
//! device that was not there before. Needs root and a kernel with zram loaded.

use crate::SwapDevice;
use std::path::PathBuf;
use std::time::Duration;

const CONTROL: &str = "/sys/class/zram-control";

/// The device; removed on drop.
#[derive(Debug)]
pub struct ZramDevice {
    number: u32,
}

impl ZramDevice {
    /// Adds one that holds `bytes` bytes.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn add(bytes: u64) -> Result<Self, String> {
        if !crate::is_root() {
            return Err("root".to_owned());
        }
        // Reading this file adds a device and returns its number.
        let added = std::fs::read_to_string(format!("{CONTROL}/hot_add"))
            .map_err(|error| format!("zram to add devices: {error}"))?;
        let number =
            added.trim().parse().map_err(|error| format!("zram to report a number: {error}"))?;
        let device = Self { number };
        let size = format!("/sys/block/{}/disksize", device.name());
        std::fs::write(&size, bytes.to_string())
            .map_err(|error| format!("{size} to take {bytes}: {error}"))?;
        Ok(device)
    }

    /// Its name, as `zram1`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("zram{}", self.number)
    }

    /// The device itself.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/{}", self.name()))
    }

    /// Makes it a swap area that fills before all others.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn as_swap(&self) -> Result<SwapDevice<'_>, String> {
        SwapDevice::on(&self.path())
    }
}

impl Drop for ZramDevice {
    fn drop(&mut self) {
        // Whoever looks at new devices may have it open for a moment.
        for _ in 0..100 {
            let removed = std::fs::write(format!("{CONTROL}/hot_remove"), self.number.to_string());
            if removed.is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ZramDevice;

    #[test]
    fn it_is_there_and_then_it_is_not() {
        let device = match ZramDevice::add(1 << 20) {
            Ok(device) => device,
            Err(need) => return crate::skip(need),
        };
        let directory = std::path::PathBuf::from(format!("/sys/block/{}", device.name()));
        assert!(directory.exists());
        drop(device);
        assert!(!directory.exists());
    }
}

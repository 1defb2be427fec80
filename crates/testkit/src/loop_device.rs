//! A block device over a file. Needs root and a free loop device.
//!
//! Its cache is the page cache of both device and file: good for contents, not for timing.

use std::fs::File;
use std::path::Path;
use sys::loop_device::LoopOptions;

/// The attached device; detached on drop. The file stays the caller's.
#[derive(Debug)]
pub struct LoopDevice {
    device: sys::loop_device::LoopDevice,
    /// It was made for this, and is removed after it.
    is_own: bool,
}

impl LoopDevice {
    /// Attaches the first free loop device to `file`.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn over(file: &Path) -> Result<Self, String> {
        Self::attach(file, LoopOptions::default())
    }

    /// The same past the page cache of the file: requests of the device reach the file as
    /// they are.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn direct_over(file: &Path) -> Result<Self, String> {
        Self::attach(file, LoopOptions { is_direct: true, ..LoopOptions::default() })
    }

    fn attach(path: &Path, options: LoopOptions) -> Result<Self, String> {
        let file = open(path)?;
        let attached = sys::loop_device::LoopDevice::attach(&file, path, options);
        let device = attached.map_err(|error| error.to_string())?;
        Ok(Self { device, is_own: false })
    }

    /// Makes the loop device with this number, which is its minor number too, and attaches it;
    /// removed on drop.
    ///
    /// # Errors
    /// The words for [`crate::skip`]; also where there is such a device already.
    pub fn numbered(number: u32, path: &Path) -> Result<Self, String> {
        let file = open(path)?;
        let added = sys::loop_device::LoopDevice::add(number);
        // Removed whatever comes next.
        let own = Self { device: added.map_err(|error| error.to_string())?, is_own: true };
        let attached = own.device.configure(&file, path, LoopOptions::default());
        attached.map_err(|error| error.to_string()).map(|()| own)
    }

    /// The device, as `/dev/loop0`.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.device.path()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = self.device.detach();
        if self.is_own {
            let _ = self.device.remove();
        }
    }
}

/// The file of a device, for reading and writing.
fn open(path: &Path) -> Result<File, String> {
    if !crate::is_root() {
        return Err("root".to_owned());
    }
    let opened = File::options().read(true).write(true).open(path);
    opened.map_err(|error| format!("{} to be opened: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::LoopDevice;
    use crate::TempDir;

    #[test]
    fn the_file_is_seen_through_the_device() {
        let directory = TempDir::new();
        let file = directory.join("image");
        std::fs::write(&file, vec![7u8; 64 << 10]).unwrap();
        let device = match LoopDevice::over(&file) {
            Ok(device) => device,
            Err(need) => return crate::skip(need),
        };
        assert_eq!(std::fs::read(device.path()).unwrap(), vec![7u8; 64 << 10]);
    }
}

//! A block device over a file. Needs root and a free loop device.
//!
//! Its cache is the page cache of both device and file: good for contents, not for timing.

use crate::run;
use std::path::{Path, PathBuf};

/// The attached device; detached on drop. The file stays the caller's.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    /// Of one that the kernel made for it, and removes after it.
    own_number: Option<u32>,
}

/// Asks `/dev/loop-control` for a request about a device: the request, then its number.
const CONTROL: &str = "\
import fcntl, sys
with open('/dev/loop-control') as control:
    fcntl.ioctl(control, int(sys.argv[1], 16), int(sys.argv[2]))
";
/// `LOOP_CTL_ADD` and `LOOP_CTL_REMOVE` of linux/loop.h.
const ADD: &str = "4c80";
const REMOVE: &str = "4c81";

impl LoopDevice {
    /// Attaches the first free loop device to `file`.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn over(file: &Path) -> Result<Self, String> {
        Self::attach(&[], file)
    }

    /// The same past the page cache of the file: requests of the device reach the file as
    /// they are.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn direct_over(file: &Path) -> Result<Self, String> {
        Self::attach(&["--direct-io=on"], file)
    }

    fn attach(options: &[&str], file: &Path) -> Result<Self, String> {
        if !crate::is_root() {
            return Err("root".to_owned());
        }
        let file = file.to_string_lossy();
        let arguments = [options, &["--find", "--show", &file]].concat();
        let device = run("losetup", &arguments)?;
        Ok(Self { path: PathBuf::from(device), own_number: None })
    }

    /// Makes the loop device with this number, which is its minor number too, and attaches it;
    /// removed on drop. Needs Python as well.
    ///
    /// # Errors
    /// The words for [`crate::skip`]; also where there is such a device already.
    pub fn numbered(number: u32, file: &Path) -> Result<Self, String> {
        if !crate::is_root() {
            return Err("root".to_owned());
        }
        run("python3", &["-c", CONTROL, ADD, &number.to_string()])?;
        let path = PathBuf::from(format!("/dev/loop{number}"));
        // Removed whatever comes next.
        let device = Self { path, own_number: Some(number) };
        run("losetup", &[&device.path.to_string_lossy(), &file.to_string_lossy()])?;
        Ok(device)
    }

    /// The device, as `/dev/loop0`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = run("losetup", &["--detach", &self.path.to_string_lossy()]);
        if let Some(number) = self.own_number {
            let _ = run("python3", &["-c", CONTROL, REMOVE, &number.to_string()]);
        }
    }
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

//! A fresh ext4 file system on a loop device over a file in RAM: a whole device of
//! a test's own, whose queue settings and limits it may change. Needs root.

use crate::{LoopDevice, TempDir, run};
use std::path::{Path, PathBuf};

/// The mounted file system; unmounted, detached and removed on drop.
#[derive(Debug)]
pub struct Mounted {
    point: PathBuf,
    device: LoopDevice,
    // Dropped last: it holds the image and the mount point.
    _directory: TempDir,
}

impl Mounted {
    /// Makes and mounts a file system of `bytes` bytes.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn ext4(bytes: u64) -> Result<Self, String> {
        let directory = TempDir::in_dir(Path::new("/dev/shm"));
        let image = directory.join("image");
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(bytes).map_err(|error| error.to_string())?;
        let device = LoopDevice::over(&image)?;
        let path = device.path().to_string_lossy().into_owned();
        run("mkfs.ext4", &["-q", "-F", &path])?;
        let point = directory.join("mount");
        std::fs::create_dir(&point).map_err(|error| error.to_string())?;
        run("mount", &[&path, &point.to_string_lossy()])?;
        Ok(Self {
            point,
            device,
            _directory: directory,
        })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.point
    }

    /// The device's name in `/sys/block`, as `loop0`.
    #[must_use]
    pub fn device_name(&self) -> String {
        let name = self.device.path().file_name();
        name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// A setting of the device's queue, as `rotational`.
    #[must_use]
    pub fn queue_setting(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/sys/block/{}/queue/{name}", self.device_name()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = run("umount", &[&self.point.to_string_lossy()]);
    }
}

#[cfg(test)]
mod tests {
    use super::Mounted;

    #[test]
    fn it_holds_files_and_goes() {
        let mounted = match Mounted::ext4(16 << 20) {
            Ok(mounted) => mounted,
            Err(need) => return crate::skip(need),
        };
        std::fs::write(mounted.path().join("file"), b"here").unwrap();
        assert!(mounted.queue_setting("rotational").exists());
        let point = mounted.path().to_owned();
        drop(mounted);
        assert!(!point.exists());
    }
}

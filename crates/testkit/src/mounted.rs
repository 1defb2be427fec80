//! A fresh ext4 file system on a device of a test's own: a slow disk, or a loop device over a
//! file in RAM, whose queue settings and limits a test may change. Needs root.

use crate::{LoopDevice, SlowDisk, TempDir, run};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// A file system of a test's own; unmounted on drop.
#[derive(Debug)]
pub struct Mount<'a> {
    point: PathBuf,
    _device: PhantomData<&'a ()>,
}

impl Mount<'_> {
    /// Makes it on `device`, whose owner lives as long, and mounts it at `point`.
    pub(crate) fn ext4(device: &Path, point: PathBuf) -> Result<Self, String> {
        let device = device.to_string_lossy();
        run("mkfs.ext4", &["-q", "-F", &device])?;
        std::fs::create_dir(&point).map_err(|error| error.to_string())?;
        mount_ext4(&device, &point)?;
        Ok(Self { point, _device: PhantomData })
    }

    /// Mounts an overlay of what lies in `lower` at a new directory in `directory`, as
    /// containers have it; needs root.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn overlay(lower: &Path, directory: &Path) -> Result<Self, String> {
        let [upper, work, point] = ["upper", "work", "point"].map(|name| directory.join(name));
        for path in [&upper, &work, &point] {
            std::fs::create_dir(path).map_err(|error| error.to_string())?;
        }
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            lower.display(),
            upper.display(),
            work.display()
        );
        let here = point.to_string_lossy().into_owned();
        run("mount", &["-t", "overlay", "-o", &options, "overlay", &here])?;
        Ok(Self { point, _device: PhantomData })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.point
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = run("umount", &[&self.point.to_string_lossy()]);
    }
}

fn mount_ext4(device: &str, point: &Path) -> Result<(), String> {
    // The kernel would go on writing tables of inodes while a test measures.
    run("mount", &["-o", "noinit_itable", device, &point.to_string_lossy()]).map(drop)
}

/// One on a device of its own; detached and removed on drop as well.
#[derive(Debug)]
pub struct Mounted {
    // Before its device.
    mount: Mount<'static>,
    device: OwnDevice,
    // Dropped last: it holds the image and the mount point.
    _directory: TempDir,
}

/// The device of a [`Mounted`].
#[derive(Debug)]
enum OwnDevice {
    Memory(LoopDevice),
    SlowDisk(SlowDisk),
}

impl OwnDevice {
    fn path(&self) -> &Path {
        match self {
            Self::Memory(device) => device.path(),
            Self::SlowDisk(disk) => disk.path(),
        }
    }
}

impl Mounted {
    /// Makes and mounts a file system of `bytes` bytes in RAM.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn ext4(bytes: u64) -> Result<Self, String> {
        Self::over_memory(bytes, LoopDevice::over)
    }

    /// The same on the loop device with this number, as [`LoopDevice::numbered`].
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn ext4_numbered(bytes: u64, number: u32) -> Result<Self, String> {
        Self::over_memory(bytes, |image| LoopDevice::numbered(number, image))
    }

    fn over_memory(
        bytes: u64,
        attach: impl FnOnce(&Path) -> Result<LoopDevice, String>,
    ) -> Result<Self, String> {
        let directory = TempDir::in_dir(Path::new("/dev/shm"));
        let image = directory.join("image");
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(bytes).map_err(|error| error.to_string())?;
        Self::on(OwnDevice::Memory(attach(&image)?), directory)
    }

    /// Makes and mounts one on a [`SlowDisk::hdd`] of `bytes` bytes.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn on_hdd(bytes: u64) -> Result<Self, String> {
        let disk = SlowDisk::hdd(bytes)?;
        Self::on(OwnDevice::SlowDisk(disk), TempDir::new())
    }

    fn on(device: OwnDevice, directory: TempDir) -> Result<Self, String> {
        let mount = Mount::ext4(device.path(), directory.join("mount"))?;
        Ok(Self { mount, device, _directory: directory })
    }

    /// Unmounts it and mounts it again: everything that was cached of it is gone.
    ///
    /// # Errors
    /// The words for [`crate::skip`]; it is not mounted then.
    pub fn remount(&self) -> Result<(), String> {
        run("umount", &[&self.path().to_string_lossy()])?;
        mount_ext4(&self.device.path().to_string_lossy(), self.path())
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.mount.path()
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

#[cfg(test)]
mod tests {
    use super::Mounted;

    #[test]
    fn it_holds_files_and_goes() {
        let mounted = match Mounted::ext4(16 << 20) {
            Ok(mounted) => mounted,
            Err(need) => return crate::skip(need),
        };
        let file = mounted.path().join("file");
        std::fs::write(&file, b"here").unwrap();
        assert!(mounted.queue_setting("rotational").exists());
        mounted.remount().unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"here");
        let point = mounted.path().to_owned();
        drop(mounted);
        assert!(!point.exists());
    }
}

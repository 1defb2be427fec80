//! A fresh file system, mostly ext4, on a device of a test's own: a slow or faulty disk, or a
//! loop device over a file in RAM, whose queue settings and limits a test may change. Needs root.

use crate::fuse_mount::unmount;
use crate::{LoopDevice, SlowDisk, TempDir, run};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use sys::mount::{FileSystemOptions, MountRestrictions};

/// How a file system is made and mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// The usual one.
    Ext4,
    /// With a log as small as a large one permits; from 300 MiB on.
    Xfs,
    /// Any other, by its name and the options of its `mkfs`.
    Other(&'static str, &'static [&'static str]),
}

impl FileSystem {
    pub(crate) fn make(self, device: &str) -> Result<(), String> {
        match self {
            Self::Ext4 => run("mkfs.ext4", &["-q", "-F", device]),
            Self::Xfs => run("mkfs.xfs", &["-q", "-f", "-l", "size=64m", device]),
            Self::Other(name, options) => {
                run(&format!("mkfs.{name}"), &[options, [device].as_slice()].concat())
            }
        }
        .map(drop)
    }

    fn mount(self, device: &Path, point: &Path) -> Result<(), String> {
        let device = device.to_string_lossy();
        let source = ("source", device.as_ref());
        match self {
            // The kernel would go on writing tables of inodes while a test measures.
            Self::Ext4 => attach("ext4", &[source], &["noinit_itable"], point),
            Self::Xfs => attach("xfs", &[source], &[], point),
            Self::Other(name, _) => attach(name, &[source], &[], point),
        }
    }
}

/// Mounts a file system of this kind at `point`.
pub(crate) fn attach(
    kind: &str,
    options: &[(&str, &str)],
    flags: &[&str],
    point: &Path,
) -> Result<(), String> {
    let mounted = FileSystemOptions::new(kind).and_then(|all| {
        options.iter().try_for_each(|(key, value)| all.set(key, value))?;
        flags.iter().try_for_each(|flag| all.set_flag(flag))?;
        all.mount(MountRestrictions::default())?.attach_at(point)
    });
    mounted.map_err(|error| format!("{kind} to be mounted at {}: {error}", point.display()))
}

/// A file system of a test's own; unmounted on drop.
#[derive(Debug)]
pub struct Mount<'a> {
    point: PathBuf,
    _device: PhantomData<&'a ()>,
}

impl Mount<'_> {
    /// Makes it on `device`, whose owner lives as long, and mounts it at `point`.
    pub(crate) fn ext4(device: &Path, point: PathBuf) -> Result<Self, String> {
        Self::of(FileSystem::Ext4, device, point)
    }

    fn of(file_system: FileSystem, device: &Path, point: PathBuf) -> Result<Self, String> {
        file_system.make(&device.to_string_lossy())?;
        Self::existing(file_system, device, point)
    }

    /// Mounts what is on `device`, which must live as long, at `point`, which is made if absent.
    ///
    /// # Errors
    /// Why the kernel refuses it.
    pub fn existing(
        file_system: FileSystem,
        device: &Path,
        point: PathBuf,
    ) -> Result<Self, String> {
        std::fs::create_dir_all(&point).map_err(|error| error.to_string())?;
        file_system.mount(device, &point)?;
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
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let (lower, upper, work) = (text(lower), text(&upper), text(&work));
        let options =
            [("source", "overlay"), ("lowerdir", &lower), ("upperdir", &upper), ("workdir", &work)];
        attach("overlay", &options, &[], &point)?;
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
        unmount(&self.point);
    }
}

/// One on a device of its own; detached and removed on drop as well.
#[derive(Debug)]
pub struct Mounted {
    // Before its device.
    mount: Mount<'static>,
    device: OwnDevice,
    file_system: FileSystem,
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
        Self::over_memory(FileSystem::Ext4, bytes, LoopDevice::over)
    }

    /// The same on the loop device with this number, as [`LoopDevice::numbered`].
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn ext4_numbered(bytes: u64, number: u32) -> Result<Self, String> {
        Self::over_memory(FileSystem::Ext4, bytes, |image| LoopDevice::numbered(number, image))
    }

    /// An XFS file system that is so large that inode numbers need more than 32 bits: those of
    /// files in its third directory and later ones. It takes 64 MiB of memory.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn large_xfs() -> Result<Self, String> {
        Self::over_memory(FileSystem::Xfs, 12 << 40, LoopDevice::over)
    }

    /// A file system of this name, as `vfat`, made with these options of its `mkfs`, of `bytes`
    /// bytes in RAM.
    ///
    /// # Errors
    /// The words for [`crate::skip`], also where the kernel does not have it.
    pub fn made(
        name: &'static str,
        options: &'static [&'static str],
        bytes: u64,
    ) -> Result<Self, String> {
        Self::over_memory(FileSystem::Other(name, options), bytes, LoopDevice::over)
    }

    fn over_memory(
        file_system: FileSystem,
        bytes: u64,
        attach: impl FnOnce(&Path) -> Result<LoopDevice, String>,
    ) -> Result<Self, String> {
        let directory = TempDir::in_dir(Path::new("/dev/shm"));
        let image = directory.join("image");
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(bytes).map_err(|error| error.to_string())?;
        Self::on(file_system, OwnDevice::Memory(attach(&image)?), directory)
    }

    /// Makes and mounts one on a [`SlowDisk::hdd`] of `bytes` bytes.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn on_hdd(bytes: u64) -> Result<Self, String> {
        Self::modelled("hdd", bytes)
    }

    /// Makes and mounts one on a [`SlowDisk::modelled`] of `bytes` bytes.
    ///
    /// # Errors
    /// What is wrong with `timing`, or the words for [`crate::skip`].
    pub fn modelled(timing: &str, bytes: u64) -> Result<Self, String> {
        let disk = SlowDisk::modelled(timing, bytes)?;
        Self::on(FileSystem::Ext4, OwnDevice::SlowDisk(disk), TempDir::new())
    }

    fn on(file_system: FileSystem, device: OwnDevice, directory: TempDir) -> Result<Self, String> {
        let mount = Mount::of(file_system, device.path(), directory.join("mount"))?;
        Ok(Self { mount, device, file_system, _directory: directory })
    }

    /// Unmounts it and mounts it again: everything that was cached of it is gone.
    ///
    /// # Errors
    /// The words for [`crate::skip`]; it is not mounted then.
    pub fn remount(&self) -> Result<(), String> {
        sys::mount::unmount(self.path()).map_err(|error| error.to_string())?;
        self.file_system.mount(self.device.path(), self.path())
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

//! A new file system in a file, mounted: for targets that must not be used before, or that are
//! slow.

use super::disk::number_of;
use super::shell;
use crate::error::Error;

/// Where version 1 of control groups limits devices, for the whole machine: writes of the page
/// cache belong to no group there.
const WRITE_LIMITS: &str = "/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device";
/// All is written when it is made, and nothing while it is used.
const NOT_LAZY: &str = "lazy_itable_init=0,lazy_journal_init=0";

/// A file system in a file, mounted; unmounted on drop.
#[derive(Debug)]
pub(in crate::bench) struct MountedImage {
    file: String,
    pub(in crate::bench) point: String,
    /// The device's number, while its writes are limited.
    limited: Option<String>,
    /// Whether the file is read and written past the machine's page cache.
    is_direct: bool,
}

impl MountedImage {
    /// Makes a new ext4 of `bytes` in `directory`, with at least so many inodes, and mounts it.
    ///
    /// # Errors
    /// Where no loop device can be had.
    pub(in crate::bench) fn new(
        directory: &str,
        name: &str,
        bytes: u64,
        inodes: u64,
    ) -> Result<Self, Error> {
        Self::made(directory, name, bytes, inodes, false)
    }

    /// As [`MountedImage::new`], past the machine's page cache: its rates are those of the disk
    /// below, and no thread of the kernel copies what is written.
    ///
    /// # Errors
    /// As there.
    pub(in crate::bench) fn direct(
        directory: &str,
        name: &str,
        bytes: u64,
        inodes: u64,
    ) -> Result<Self, Error> {
        Self::made(directory, name, bytes, inodes, true)
    }

    fn made(
        directory: &str,
        name: &str,
        bytes: u64,
        inodes: u64,
        is_direct: bool,
    ) -> Result<Self, Error> {
        let image = Self {
            file: format!("{directory}/{name}.image"),
            point: format!("{directory}/{name}"),
            limited: None,
            is_direct,
        };
        let Self { file, point, .. } = &image;
        shell(&format!(
            "truncate -s {bytes} '{file}' && mkfs.ext4 -q -F -N {inodes} -E {NOT_LAZY} '{file}' && \
             mkdir -p '{point}'"
        ))?;
        image.mount()?;
        Ok(image)
    }

    /// Nothing of it is cached afterwards, but for its file.
    pub(in crate::bench) fn remount(&self) -> Result<(), Error> {
        shell(&format!("umount '{}'", self.point))?;
        self.mount()
    }

    /// Lets the device write at most so much a second.
    ///
    /// # Errors
    /// Without control groups of version 1.
    pub(in crate::bench) fn limit_writes(&mut self, bytes_per_s: u64) -> Result<(), Error> {
        let number = number_of(&self.point)?;
        shell(&format!(
            "sync -f '{}'; echo '{number} {bytes_per_s}' > {WRITE_LIMITS}",
            self.point
        ))?;
        self.limited = Some(number);
        Ok(())
    }

    fn mount(&self) -> Result<(), Error> {
        let Self { file, point, .. } = self;
        if !self.is_direct {
            return shell(&format!("mount -o loop '{file}' '{point}'"));
        }
        // The device goes when it is unmounted.
        shell(&format!(
            "device=$(losetup --find --show --direct-io=on '{file}') && \
             {{ mount \"$device\" '{point}'; mounted=$?; losetup -d \"$device\"; exit $mounted; }}"
        ))
    }
}

impl Drop for MountedImage {
    fn drop(&mut self) {
        let Self { file, point, limited, is_direct: _ } = self;
        // What stays is removed with the directory of the bench.
        if let Some(number) = limited {
            let _ = shell(&format!("echo '{number} 0' > {WRITE_LIMITS}"));
        }
        let _ = shell(&format!("umount '{point}'; rm -f '{file}'"));
    }
}

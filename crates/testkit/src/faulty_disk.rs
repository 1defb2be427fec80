//! A block device that fails by a plan: a loop device over the one file of a faulty directory, so
//! that an ordinary file system can be mounted on a disk that is broken, unplugged, or smaller than
//! it claims. Needs root, /dev/fuse and a free loop device.
//!
//! 1. Program, file system, scheduler and loop driver are those of any disk. What the driver sends
//!    arrives at the [`FaultPlan`] request by request, in bytes of the disk.
//!    A disk that is full (`full_from`) refuses a write as a whole.
//! 2. The bytes are in memory (`/dev/shm`), never on a file system that is mounted on this disk.
//! 3. Guards end in this order: mount, loop device, faulty directory. Requests that hang are
//!    served first, so that an unmount does not wait for them.

use crate::cut_disk::CutDisk;
use crate::disk_model::DiskRequest;
use crate::fault_plan::FaultPlan;
use crate::faulty_files::{Caching, FaultyFiles};
use crate::mounted::{FileSystem, Mount};
use crate::{LoopDevice, TempDir};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// The file of the faulty directory that the disk is made of.
const DISK_FILE: &str = "disk";

/// The disk; detached on drop.
#[derive(Debug)]
pub struct FaultyDisk {
    // In this order they are dropped.
    device: LoopDevice,
    files: FaultyFiles,
}

impl FaultyDisk {
    /// A disk that says that it has `bytes` bytes.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn new(bytes: u64, plan: FaultPlan) -> Result<Self, String> {
        let directory = TempDir::in_dir(Path::new("/dev/shm"));
        let real = directory.join("real");
        std::fs::create_dir(&real).map_err(|error| error.to_string())?;
        let file = File::create(real.join(DISK_FILE)).map_err(|error| error.to_string())?;
        file.set_len(bytes).map_err(|error| error.to_string())?;
        let plan_of_making = plan.only_true_size();
        let files = FaultyFiles::mount(directory, &real, plan_of_making, Caching::Never)?;
        let device = LoopDevice::direct_over(&files.path().join(DISK_FILE))?;
        files.set_plan(plan);
        Ok(Self { device, files })
    }

    /// The device, as `/dev/loop0`.
    #[must_use]
    pub fn device(&self) -> &Path {
        self.device.path()
    }

    /// Makes a file system and mounts it, both without a fault except that of a wrong size; numbers
    /// of requests count from there.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn mount(&self, file_system: FileSystem) -> Result<DiskMount<'_>, String> {
        let plan = self.files.set_plan(self.files.plan().only_true_size());
        let made = file_system.make(&self.device().to_string_lossy());
        let mount = made.and_then(|()| self.mount_again(file_system));
        self.files.set_plan(plan.restarted());
        mount
    }

    /// Mounts the file system that is there.
    ///
    /// # Errors
    /// Why the kernel refuses it.
    pub fn mount_again(&self, file_system: FileSystem) -> Result<DiskMount<'_>, String> {
        let point = self.files.beside("mount");
        let mount = Mount::existing(file_system, self.device(), point)?;
        Ok(DiskMount { disk: self, mount: Some(mount) })
    }

    /// Replaces the plan. Numbers of requests count from here.
    pub fn set_plan(&self, plan: FaultPlan) {
        self.files.set_plan(plan);
    }

    /// Keeps what the disk holds now, and from now on each write and flush.
    ///
    /// # Errors
    /// When its bytes cannot be read.
    pub fn record(&self) -> std::io::Result<CutDisk> {
        let bytes = std::fs::read(self.files.beside("real").join(DISK_FILE))?;
        self.files.record();
        Ok(CutDisk::new(bytes))
    }

    /// How many writes and flushes were kept so far.
    #[must_use]
    pub fn recorded_changes(&self) -> usize {
        self.files.recorded_changes()
    }

    /// Gives what was kept to `disk`, from [`Self::record`]; nothing is kept any more.
    pub fn end_record(&self, disk: &mut CutDisk) {
        disk.set_changes(self.files.take_recorded());
    }

    /// Pulls the disk out: every request fails from now on. The kernel keeps the device, as it does
    /// while a program uses it.
    pub fn unplug(&self) {
        self.files.unplug();
    }

    /// The disk is back, with all that it had taken.
    pub fn plug(&self) {
        self.files.plug();
    }

    /// Serves the requests that hang.
    pub fn release(&self) {
        self.files.release();
    }

    /// Waits up to `limit` until a request hangs; whether one does.
    #[must_use]
    pub fn wait_for_hang(&self, limit: Duration) -> bool {
        self.files.wait_for_hang(limit)
    }

    /// All requests since the plan was set, in their order, those that failed included.
    #[must_use]
    pub fn requests(&self) -> Vec<DiskRequest> {
        self.files.requests()
    }
}

/// A file system on a faulty disk; unmounted on drop, at worst detached from its path at once and
/// in fact when the last program has closed its files.
#[derive(Debug)]
pub struct DiskMount<'a> {
    disk: &'a FaultyDisk,
    mount: Option<Mount<'a>>,
}

impl DiskMount<'_> {
    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        // It is there until the drop.
        self.mount.as_ref().map_or(Path::new(""), Mount::path)
    }
}

impl Drop for DiskMount<'_> {
    fn drop(&mut self) {
        // An unmount writes, and would wait for a request that hangs.
        self.disk.files.may_hang(false);
        drop(self.mount.take());
        self.disk.files.may_hang(true);
    }
}

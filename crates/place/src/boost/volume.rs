//! The volume of a cache: a block device that nothing else uses, claimed for as long as it is held.
//!
//! It is opened component by component and claimed by the kernel before anything is read of it, so
//! that what was checked is what is used. The words say which mount, swap or device has it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use machine::{Root, block, block_use};
use model::device::BlockDevice;
use sys::device::FileDevice;
use sys::directory::FilePlace;

use super::content::{self, Content};
use crate::{Error, ErrorKind, Result};

const OPERATION: &str = "attach a cache to";

/// A claimed volume.
#[derive(Debug)]
pub struct Volume {
    /// The device, past the page cache; nothing else can mount or claim it meanwhile.
    pub device: Arc<FileDevice>,
    /// Its kernel name, as `sdb1`.
    pub name: String,
    /// Its number.
    pub numbers: (u32, u32),
    /// Its bytes.
    pub bytes: u64,
    /// The disks that it is on, by their kernel names.
    pub disks: Vec<String>,
    /// What its disk does by itself: an export offers nothing else, since a trim that becomes
    /// written zeros would write all of a disk.
    pub commands: block::RangeCommands,
    /// What it holds.
    pub content: Content,
    /// Names it: a hash of what identifies its disk and its place there, and of nothing that
    /// changes.
    pub id: [u8; 16],
}

impl Volume {
    /// Claims the block device that `path` leads to.
    ///
    /// # Errors
    /// `Usage` for what is not a block device; `Impossible` if it is mounted, swap, a part of
    /// another device, the root file system, or where a link of another user leads to it.
    pub fn claim(path: &Path, root: &Root) -> Result<Self> {
        let refused = |kind, reason: &str| Error::new(kind, OPERATION, reason.to_owned()).at(path);
        let place = FilePlace::of(path).map_err(|error| failed(path, error))?;
        if let Some(exposure) = place.directory.exposure() {
            let reason = format!("{}: {}", exposure.path.display(), exposure.why);
            return Err(refused(ErrorKind::Impossible, &reason));
        }
        let about = place.directory.metadata(&place.name).map_err(|error| failed(path, error))?;
        let numbers = {
            use std::os::unix::fs::{FileTypeExt, MetadataExt};
            let is_one = about.file_type().is_block_device();
            is_one.then(|| sys::block::device_numbers(about.rdev()))
        };
        let Some((major, minor)) = numbers else {
            return Err(refused(ErrorKind::Usage, "it is not a block device"));
        };
        if let Some(used) = block_use::uses(root, major, minor).first() {
            return Err(refused(ErrorKind::Impossible, &used.to_string()));
        }
        let file = place.directory.claim_block_device(&place.name).map_err(|error| {
            let is_busy = error.source.raw_os_error() == Some(BUSY);
            let words = "something else uses it, which this process does not see";
            if is_busy { refused(ErrorKind::Impossible, words) } else { failed(path, error) }
        })?;
        let volume = Self::of_claimed(file, path, root)?;
        if volume.numbers != (major, minor) {
            return Err(refused(ErrorKind::Impossible, "it was exchanged meanwhile"));
        }
        Ok(volume)
    }

    /// The volume of a device that another process claimed, whose claim goes on with `file`: what
    /// it holds is read anew. `path` is for messages.
    ///
    /// # Errors
    /// `Impossible` for what is not a block device of a known disk; `Failed` if it cannot be read.
    pub fn of_claimed(file: File, path: &Path, root: &Root) -> Result<Self> {
        let unread = Self::of_claimed_unread(file, path, root)?;
        let failed = |error| Error::new(ErrorKind::Failed, OPERATION, error).at(path);
        let content = content::read(&*unread.device).map_err(failed)?;
        Ok(Self { content, ..unread })
    }

    /// The same without a look at what it holds.
    ///
    /// # Errors
    /// As [`Self::of_claimed`].
    pub fn of_claimed_unread(file: File, path: &Path, root: &Root) -> Result<Self> {
        let refused =
            |reason: &str| Error::new(ErrorKind::Impossible, OPERATION, reason.to_owned()).at(path);
        let numbers = sys::block::numbers_of(&file).map_err(|error| failed(path, error))?;
        let (major, minor) = numbers.ok_or_else(|| refused("it is not a block device"))?;
        let disk = block::of_device(root, major, minor)
            .ok_or_else(|| refused("no disk is known for it"))?;
        let device = FileDevice::new(file).map_err(|error| failed(path, error))?;
        let unread = |error| Error::new(ErrorKind::Failed, OPERATION, error).at(path);
        Ok(Self {
            bytes: device.size_bytes().map_err(unread)?,
            content: Content::unknown(),
            name: disk.partition.clone().unwrap_or_else(|| disk.name.clone()),
            numbers: (major, minor),
            commands: block::range_commands(root, major, minor),
            disks: block::physical(root, &disk).into_iter().map(|disk| disk.name).collect(),
            id: identity(root, &disk, (major, minor)),
            device: Arc::new(device),
        })
    }
}

/// `EBUSY`.
const BUSY: i32 = 16;

pub(super) fn failed(path: &Path, error: sys::Error) -> Error {
    let kind = match error.kind {
        sys::ErrorKind::NotFound | sys::ErrorKind::Invalid => ErrorKind::Usage,
        sys::ErrorKind::Denied | sys::ErrorKind::Unsupported => ErrorKind::Impossible,
        _ => ErrorKind::Failed,
    };
    Error::new(kind, OPERATION, error).at(path)
}

/// A hash of what the disk calls itself, and of where the volume begins on it. A disk without any
/// such name gives one of its kind alone: only its content differs from that of another.
fn identity(root: &Root, disk: &block::Disk, (major, minor): (u32, u32)) -> [u8; 16] {
    let files =
        ["wwid", "device/wwid", "serial", "device/serial", "dm/uuid", "md/uuid", "device/cid"];
    let place = format!("/sys/dev/block/{}:{}", disk.major, disk.minor);
    let words = files.iter().map(|file| root.read(format!("{place}/{file}")).unwrap_or_default());
    let start = block::start_on_disk(root, major, minor);
    let transport = disk.transport.clone().unwrap_or_default();
    let model = disk.model.clone().unwrap_or_default();
    let text = words.chain([transport, model, start.to_string()]).collect::<Vec<_>>().join("\0");
    xxhash_rust::xxh3::xxh3_128(text.as_bytes()).to_le_bytes()
}

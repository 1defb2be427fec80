//! A block device that takes the time of a modelled disk (hard disk, stick, card) for each request,
//! over memory, and may claim more bytes than it has.
//!
//! The idea: the loop driver and the kernel's scheduler in front are those of any disk, so
//! requests are merged and ordered as for a real one; what arrives waits for its modelled
//! service time ([`DiskModel`]), one after another. Throttling by a control group would not
//! do: it counts requests before they are merged.
//!
//! The contents are in this process. So a swap area on it is for pressure **within a memory
//! group that this process is not in**: if the whole machine were short of memory, freeing
//! some could need the memory that a write to this disk takes. Needs root and /dev/fuse.

use crate::disk_model::{DiskModel, DiskRequest, RequestKind, Timing};
use crate::fuse_file::FuseFile;
use crate::fuse_leftovers::remove_leftovers;
use crate::{FileSystem, LoopDevice, Mount, SwapDevice, TrueSize};
use serve::volume::{Volume, VolumeResult};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A request that comes this soon after the last was served had waited in line: the disk
/// goes on from there, so that the time a thread takes to wake up is not added to each.
const IN_LINE: Duration = Duration::from_millis(1);

/// The device; detached on drop.
#[derive(Debug)]
pub struct SlowDisk {
    // Before the file that it lies on.
    device: LoopDevice,
    settings: Vec<(PathBuf, String)>,
    counters: Arc<Counters>,
    file: FuseFile,
}

/// What a disk has served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Read requests.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Write requests.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
    /// Requests that did not begin where the one before had ended.
    pub seeks: u64,
}

impl SlowDisk {
    /// A hard disk of 7200 turns a minute with `bytes` bytes.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn hdd(bytes: u64) -> Result<Self, String> {
        Self::over(DiskModel::hdd(bytes), bytes, None)
    }

    /// A disk with `bytes` bytes and the times that `timing` says, as
    /// `"usb,burst_bytes=16M,burst_bps=6e7"`.
    ///
    /// # Errors
    /// What is wrong with `timing`, or the words for [`crate::skip`].
    pub fn modelled(timing: &str, bytes: u64) -> Result<Self, String> {
        Self::over(DiskModel::new(timing.parse::<Timing>()?, bytes), bytes, None)
    }

    /// The same, of which there is only `true_size`. It takes no more memory than that.
    ///
    /// # Errors
    /// What is wrong with `timing`, or the words for [`crate::skip`].
    pub fn fake(timing: &str, bytes: u64, true_size: TrueSize) -> Result<Self, String> {
        Self::over(DiskModel::new(timing.parse::<Timing>()?, bytes), bytes, Some(true_size))
    }

    fn over(model: DiskModel, bytes: u64, true_size: Option<TrueSize>) -> Result<Self, String> {
        if !crate::is_root() {
            return Err("root".to_owned());
        }
        remove_leftovers();
        let counters = Arc::new(Counters::default());
        let is_rotational = model.timing().head.is_some();
        let platter = Platter {
            model,
            bytes: vec![0; true_size.map_or(bytes, |size| size.bytes.min(bytes)) as usize],
            true_size,
            free_at: Instant::now(),
            head: 0,
            counters: Arc::clone(&counters),
        };
        let file =
            FuseFile::mount(PlatterVolume { len_bytes: bytes, platter: Mutex::new(platter) })?;
        let device = LoopDevice::direct_over(file.path())?;
        let mut disk = Self { device, settings: Vec::new(), counters, file };
        // What the kernel sets for a real one.
        disk.set("rotational", if is_rotational { "1" } else { "0" })?;
        disk.set("scheduler", "mq-deadline")?;
        Ok(disk)
    }

    /// The device, as `/dev/loop0`.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.device.path()
    }

    /// What it has served until now.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let counters = &self.counters;
        Statistics {
            reads: counters.reads.load(Relaxed),
            read_bytes: counters.read_bytes.load(Relaxed),
            writes: counters.writes.load(Relaxed),
            written_bytes: counters.written_bytes.load(Relaxed),
            seeks: counters.seeks.load(Relaxed),
        }
    }

    /// Makes it a swap area that fills before all others.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn as_swap(&self) -> Result<SwapDevice<'_>, String> {
        SwapDevice::on(self.path())
    }

    /// Makes an ext4 file system on it and mounts that.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn as_ext4(&self) -> Result<Mount<'_>, String> {
        // Beside the file, so that it goes with it if this process is killed.
        Mount::ext4(self.path(), self.file.path().with_file_name("mount"))
    }

    /// Makes a file system on it and mounts that.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn mount(&self, file_system: FileSystem) -> Result<Mount<'_>, String> {
        file_system.make(&self.path().to_string_lossy())?;
        Mount::existing(file_system, self.path(), self.file.path().with_file_name("mount"))
    }

    /// Changes a setting of the device's queue, and keeps what was there for the next user
    /// of the loop device.
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let device = self.path().file_name().unwrap_or_default();
        let file = Path::new("/sys/block").join(device).join("queue").join(name);
        let words = |error| format!("{} to take {value}: {error}", file.display());
        let before = std::fs::read_to_string(&file).map_err(words)?;
        std::fs::write(&file, value).map_err(words)?;
        self.settings.push((file, selected(&before)));
        Ok(())
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        for (file, before) in &self.settings {
            let _ = std::fs::write(file, before);
        }
    }
}

/// The chosen one of "none [mq-deadline] bfq", or the only word.
fn selected(text: &str) -> String {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text, |(word, _)| word).trim().to_owned()
}

#[derive(Debug, Default)]
struct Counters {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    seeks: AtomicU64,
}

/// The disk behind the file.
struct Platter {
    model: DiskModel,
    /// What it has.
    bytes: Vec<u8>,
    true_size: Option<TrueSize>,
    /// When the last request was served.
    free_at: Instant,
    /// Where it ended.
    head: u64,
    counters: Arc<Counters>,
}

impl Platter {
    /// Returns when a real disk would.
    fn serve(&mut self, kind: RequestKind, offset: u64, len: u64) {
        let now = Instant::now();
        let waited = now.saturating_duration_since(self.free_at) < IN_LINE;
        let start = if waited { self.free_at } else { now };
        self.model.idle(start.saturating_duration_since(self.free_at).as_nanos() as u64);
        let request = DiskRequest { kind, offset, len };
        self.free_at = start + Duration::from_nanos(self.model.service_ns(request));
        if kind != RequestKind::Flush {
            self.counters.seeks.fetch_add(u64::from(offset != self.head), Relaxed);
            self.head = offset + len;
        }
        std::thread::sleep(self.free_at.saturating_duration_since(now));
    }

    /// Where a range is in the memory, as [`TrueSize::places`].
    fn places(&self, offset: u64, bytes: u64) -> Vec<(Option<u64>, u64)> {
        let whole = || vec![(Some(offset), bytes)];
        self.true_size.map_or_else(whole, |size| size.places(offset, bytes))
    }
}

/// The disk as it is served.
struct PlatterVolume {
    /// What it claims to have.
    len_bytes: u64,
    platter: Mutex<Platter>,
}

impl PlatterVolume {
    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.platter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Volume for PlatterVolume {
    fn bytes(&self) -> u64 {
        self.len_bytes
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> VolumeResult {
        let mut platter = self.platter();
        let bytes = buffer.len() as u64;
        platter.counters.reads.fetch_add(1, Relaxed);
        platter.counters.read_bytes.fetch_add(bytes, Relaxed);
        platter.serve(RequestKind::Read, offset, bytes);
        let mut rest = buffer;
        for (place, len) in platter.places(offset, bytes) {
            let (part, behind) = rest.split_at_mut(len as usize);
            rest = behind;
            match place {
                Some(at) => part.copy_from_slice(&platter.bytes[at as usize..(at + len) as usize]),
                None => part.fill(0),
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> VolumeResult {
        let mut platter = self.platter();
        let bytes = data.len() as u64;
        platter.counters.writes.fetch_add(1, Relaxed);
        platter.counters.written_bytes.fetch_add(bytes, Relaxed);
        platter.serve(RequestKind::Write, offset, bytes);
        let mut rest = data;
        for (place, len) in platter.places(offset, bytes) {
            let (part, behind) = rest.split_at(len as usize);
            rest = behind;
            if let Some(at) = place {
                platter.bytes[at as usize..(at + len) as usize].copy_from_slice(part);
            }
        }
        Ok(())
    }

    fn flush(&self) -> VolumeResult {
        self.platter().serve(RequestKind::Flush, 0, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_scheduler_is_in_brackets() {
        assert_eq!(selected("[none] mq-deadline\n"), "none");
        assert_eq!(selected("none [mq-deadline] bfq\n"), "mq-deadline");
        assert_eq!(selected("0\n"), "0");
    }
}

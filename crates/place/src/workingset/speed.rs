//! This device's own figures: a short trial of reads, so that a plan can say how long it will
//! take and the reader can be chosen. Reads only, for at most about 60 ms and 64 MiB of a device.
//!
//! Reads are direct, so the page cache neither answers nor changes. A single request that
//! hangs (a disk that spins up) is waited for.

use crate::{Error, ErrorKind, Result};
use machine::Root;
use machine::block;
use model::device::BlockDevice;
use serde::{Deserialize, Serialize};
use std::path::Path;
use sys::clock::now_ns;
use sys::device::FileDevice;
use sys::memory::AlignedBuffer;

const OPERATION: &str = "try the disk";
/// No read begins later but the one that brings the head to the work: on a hard disk three at
/// random places, that one among them, and one or two in order.
const LONGEST_NS: f64 = 60e6;
/// A trial takes a twentieth of the work that it is for, as a disk of 100 MB/s does that: ns for a
/// byte.
const NS_PER_BYTE: f64 = 0.5;
/// Of its time, for single reads; what is left is for the last of them.
const RANDOM_SHARE: f64 = 0.5;
/// Of its time, for reads in order: they differ less.
const SEQUENTIAL_SHARE: f64 = 1.0 / 6.0;
/// No median is better for more of them.
const MAX_RANDOM_READS: usize = 64;
/// The most that is read in order; the single reads are 256 KiB more.
const MAX_SEQUENTIAL_BYTES: u64 = 63 << 20;
/// A request that any disk takes at once and that reaches its full speed.
const SEQUENTIAL_READ_BYTES: usize = 1 << 20;
/// A page, as a fault reads it.
const RANDOM_READ_BYTES: usize = 4096;
/// A multiplicative hash (Knuth): positions that are far from each other and the same each time.
const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The measured speed of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskSpeed {
    /// Its name, as `vda`.
    pub device: String,
    /// Whether it rotates, as the kernel reports it.
    pub rotational: Option<bool>,
    /// One read of a page at a random place, ns: median.
    pub random_read_ns: Option<u64>,
    /// Reads in order of position, bytes a second; `None` if not requested.
    pub sequential_bytes_per_s: Option<u64>,
}

/// What is to be read after a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialPurpose {
    /// How much: for little the trial is short and its figures are rough.
    pub bytes: u64,
    /// Where it begins, in bytes on the device or in the file that is tried. The last read at
    /// random goes there: a head that has come for it stays for the work.
    pub start: Option<u64>,
    /// Whether the pace of reads in order is wanted as well.
    pub in_order: bool,
}

/// Tries the device with the number `device`.
///
/// # Errors
/// `Impossible` without the right to read the device.
pub fn of_device(root: &Root, device: (u32, u32), purpose: TrialPurpose) -> Result<DiskSpeed> {
    let (name, rotational) = name_and_rotation(root, device)?;
    let path = root.path("/dev").join(&name);
    let offset = block::start_on_disk(root, device.0, device.1);
    let start = purpose.start.map(|start| start.saturating_add(offset));
    try_reads(name, rotational, &path, TrialPurpose { start, ..purpose })
}

/// As [`of_device`], by reads of a file on it: of the right part of the disk, and permitted even if
/// the device is not. A read of a file that is only reserved, as `fallocate` makes swap files,
/// needs no disk: then the device is tried.
///
/// # Errors
/// `Impossible` without the right to read the file, or where it cannot be read directly.
pub fn of_file(
    root: &Root,
    device: (u32, u32),
    path: &Path,
    purpose: TrialPurpose,
) -> Result<DiskSpeed> {
    if sys::file::open_read(path, false).is_ok_and(|file| sys::fiemap::has_unwritten(&file)) {
        return of_device(root, device, TrialPurpose { start: None, ..purpose });
    }
    let (name, rotational) = name_and_rotation(root, device)?;
    try_reads(name, rotational, path, purpose)
}

fn name_and_rotation(root: &Root, (major, minor): (u32, u32)) -> Result<(String, Option<bool>)> {
    block::name_and_rotation(root, major, minor).ok_or_else(|| {
        let reason = format!("no disk has the number {major}:{minor}");
        Error::new(ErrorKind::Impossible, OPERATION, reason)
    })
}

fn try_reads(
    device: String,
    rotational: Option<bool>,
    path: &Path,
    purpose: TrialPurpose,
) -> Result<DiskSpeed> {
    let refused = |error: sys::Error| {
        let reason = sys::plain_reason(&error.source);
        Error::new(ErrorKind::Impossible, OPERATION, reason).at(path)
    };
    let file = sys::file::open_read(path, true).and_then(FileDevice::new).map_err(refused)?;
    let bytes = file.size_bytes().map_err(|error| refused(error.into()))?;
    let budget_ns = (purpose.bytes as f64 * NS_PER_BYTE).min(LONGEST_NS);
    let share_ns = |share| (budget_ns * share) as u64;
    let mut jumps = RandomReads::new(&file)?;
    let places = bytes / RANDOM_READ_BYTES as u64;
    jumps.try_random_places(places, share_ns(RANDOM_SHARE))?;
    // Where the head is already, unless the device ends too soon.
    let all_bytes = MAX_SEQUENTIAL_BYTES + RANDOM_READ_BYTES as u64;
    let last = bytes.saturating_sub(all_bytes) / RANDOM_READ_BYTES as u64;
    let start = jumps.end.min(last * RANDOM_READ_BYTES as u64);
    let mut sequential = None;
    if purpose.in_order {
        sequential = sequential_bytes_per_s(&file, start, share_ns(SEQUENTIAL_SHARE))?;
    }
    jumps.come_to_the_work(purpose.start, bytes)?;
    let random_read_ns = jumps.median_ns();
    Ok(DiskSpeed { device, rotational, random_read_ns, sequential_bytes_per_s: sequential })
}

/// Single reads of a page, each at another place.
struct RandomReads<'a> {
    file: &'a FileDevice,
    buffer: AlignedBuffer,
    took_ns: Vec<u64>,
    /// Where the last one ended.
    end: u64,
}

impl<'a> RandomReads<'a> {
    fn new(file: &'a FileDevice) -> Result<Self> {
        Ok(Self {
            file,
            buffer: AlignedBuffer::new(RANDOM_READ_BYTES)?,
            took_ns: Vec::with_capacity(MAX_RANDOM_READS + 1),
            end: 0,
        })
    }

    /// Reads at some of this many places of a page each, one at least, for `budget_ns` and one read
    /// more.
    fn try_random_places(&mut self, places: u64, budget_ns: u64) -> Result<()> {
        let started_ns = now_ns();
        while places > 0
            && self.took_ns.len() < MAX_RANDOM_READS
            && !sys::interrupt::requested()
            && (self.took_ns.is_empty() || now_ns() - started_ns <= budget_ns)
        {
            let drawn = (self.took_ns.len() as u64 + 1).wrapping_mul(SCATTER);
            let place = u64::try_from((u128::from(drawn) * u128::from(places)) >> 64);
            self.to(place.unwrap_or(0) * RANDOM_READ_BYTES as u64)?;
        }
        Ok(())
    }

    /// Reads the page just before `start`, if it is within the first `bytes`.
    fn come_to_the_work(&mut self, start: Option<u64>, bytes: u64) -> Result<()> {
        let pages = start.map(|start| start.min(bytes) / RANDOM_READ_BYTES as u64);
        let before = pages.and_then(|pages| pages.checked_sub(1));
        before.map_or(Ok(()), |page| self.to(page * RANDOM_READ_BYTES as u64))
    }

    fn to(&mut self, offset: u64) -> Result<()> {
        let before_ns = now_ns();
        read(self.file, &mut self.buffer, offset)?;
        self.took_ns.push(now_ns() - before_ns);
        self.end = offset + RANDOM_READ_BYTES as u64;
        Ok(())
    }

    /// `None` without any.
    fn median_ns(mut self) -> Option<u64> {
        self.took_ns.sort_unstable();
        self.took_ns.get(self.took_ns.len() / 2).copied()
    }
}

/// Bytes a second of large reads from the page at `start` on, that page excepted, to which it may
/// have to seek.
fn sequential_bytes_per_s(file: &FileDevice, start: u64, budget_ns: u64) -> Result<Option<u64>> {
    let mut buffer = AlignedBuffer::new(SEQUENTIAL_READ_BYTES)?;
    let mut offset = start + RANDOM_READ_BYTES as u64;
    read(file, &mut buffer[..RANDOM_READ_BYTES], start)?;
    let started_ns = now_ns();
    let mut bytes = 0;
    let mut elapsed_ns = 0;
    while bytes < MAX_SEQUENTIAL_BYTES && elapsed_ns <= budget_ns && !sys::interrupt::requested() {
        let read_bytes = read(file, &mut buffer, offset)?;
        bytes += read_bytes as u64;
        elapsed_ns = now_ns() - started_ns;
        if read_bytes < SEQUENTIAL_READ_BYTES {
            break;
        }
        offset += SEQUENTIAL_READ_BYTES as u64;
    }
    let per_s = u128::from(bytes) * 1_000_000_000 / u128::from(elapsed_ns.max(1));
    Ok(u64::try_from(per_s).ok().filter(|_| bytes > 0))
}

fn read(device: &impl BlockDevice, buffer: &mut [u8], offset: u64) -> Result<usize> {
    Ok(device.read_at(buffer, offset).map_err(sys::Error::from)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn purpose(bytes: u64) -> TrialPurpose {
        TrialPurpose { bytes, start: Some(bytes), in_order: true }
    }

    #[test]
    fn the_disk_behind_a_loop_device_shows_both_figures() {
        let folder = testkit::TempDir::new();
        let file = folder.join("image");
        std::fs::write(&file, vec![1u8; 16 << 20]).unwrap();
        let device = match testkit::LoopDevice::over(&file) {
            Ok(device) => device,
            Err(need) => return testkit::skip(need),
        };
        let metadata = std::fs::metadata(device.path()).unwrap();
        let number = sys::block::device_numbers(metadata.rdev());
        let name = device.path().file_name().unwrap();
        // The same bytes in large requests can take no longer than one by one, by far; a pause of
        // the host within the few milliseconds of either is neither's.
        let is_so = |_| {
            let speed = of_device(&Root::system(), number, purpose(u64::MAX)).unwrap();
            assert_eq!(speed.device.as_str(), name);
            let single_ns = speed.random_read_ns.unwrap();
            let one_by_one = RANDOM_READ_BYTES as u64 * 1_000_000_000 / single_ns;
            speed.sequential_bytes_per_s.unwrap() > one_by_one
        };
        assert!((0..5).any(is_so));
    }

    #[test]
    fn of_a_file_that_is_only_reserved_the_device_is_tried() {
        let mounted = match testkit::Mounted::ext4(64 << 20) {
            Ok(mounted) => mounted,
            Err(need) => return testkit::skip(need),
        };
        let path = mounted.path().join("swap");
        let reserve =
            std::process::Command::new("fallocate").args(["-l", "16m"]).arg(&path).status();
        assert!(reserve.unwrap().success());
        let number = sys::block::device_numbers(std::fs::metadata(&path).unwrap().dev());
        let statistics = format!("/sys/block/{}/stat", mounted.device_name());
        let reads = || -> u64 {
            let text = std::fs::read_to_string(&statistics).unwrap();
            text.split_whitespace().next().unwrap().parse().unwrap()
        };
        let before = reads();
        of_file(&Root::system(), number, &path, purpose(64 << 20)).unwrap();
        // One at a random place and one in order at least.
        assert!(reads() >= before + 2, "{} reads", reads() - before);
    }

    #[test]
    fn a_file_of_any_length_is_tried_to_its_end() {
        let folder = testkit::TempDir::new();
        let path = folder.join("file");
        for length in [0_usize, 5000, (1 << 20) + 4097 + 700] {
            std::fs::write(&path, vec![1u8; length]).unwrap();
            let number = sys::block::device_numbers(std::fs::metadata(&path).unwrap().dev());
            let speed = match of_file(&Root::system(), number, &path, purpose(1)) {
                Ok(speed) => speed,
                Err(error) => {
                    return testkit::skip(format!("a disk that reads directly ({error})"));
                }
            };
            assert_eq!(speed.random_read_ns.is_some(), length >= RANDOM_READ_BYTES);
            let behind_a_page = length > RANDOM_READ_BYTES;
            assert_eq!(speed.sequential_bytes_per_s.is_some(), behind_a_page);
        }
    }

    #[test]
    fn a_number_without_a_disk_is_refused() {
        let error = of_device(&Root::system(), (0, 0), purpose(1)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Impossible);
    }
}

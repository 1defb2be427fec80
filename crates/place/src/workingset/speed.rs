//! This device's own figures: a short trial of reads, so that a plan can say how long it will
//! take and the reader can be chosen. Reads only, for at most about 60 ms and 64 MiB of a device.
//!
//! Reads are direct, so the page cache neither answers nor changes. A single request that
//! hangs (a disk that spins up) is waited for.

use crate::{Error, Kind, Result};
use machine::Root;
use machine::block::{self, Disk};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::Path;
use sys::memory::AlignedBuffer;

const OPERATION: &str = "try the disk";
/// No read begins later: three at random places and three in order on a hard disk.
const LONGEST_NS: u64 = 60_000_000;
/// A trial takes a twentieth of the work that it is for, as a disk of 100 MB/s does that: ns for a byte.
const NS_PER_BYTE: f64 = 0.5;
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

/// What a device showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Its name, as `vda`.
    pub device: String,
    /// Whether the kernel takes it for a rotating one.
    pub rotational: Option<bool>,
    /// One read of a page at a random place, ns: median.
    pub random_read_ns: Option<u64>,
    /// Reads in order of position, bytes a second.
    pub sequential_bytes_per_s: Option<u64>,
}

/// Tries the device with the number `device`, from which `work_bytes` are to be read: for few of
/// them the trial is short and its figures are rough.
///
/// # Errors
/// `Impossible` without the right to read the device.
pub fn of_device(root: &Root, device: (u32, u32), work_bytes: u64) -> Result<Speed> {
    let disk = disk(root, device)?;
    let path = root.path("/dev").join(&disk.name);
    try_reads(disk, &path, work_bytes)
}

/// As [`of_device`] by reading a file on it, which tells of the part
/// of the disk that is meant, and is permitted where the device itself is closed.
///
/// # Errors
/// `Impossible` without the right to read the file, or where it cannot be read directly.
pub fn of_file(root: &Root, device: (u32, u32), path: &Path, work_bytes: u64) -> Result<Speed> {
    try_reads(disk(root, device)?, path, work_bytes)
}

fn disk(root: &Root, (major, minor): (u32, u32)) -> Result<Disk> {
    block::of_device(root, major, minor).ok_or_else(|| {
        let reason = format!("no disk has the number {major}:{minor}");
        Error::new(Kind::Impossible, OPERATION, reason)
    })
}

fn try_reads(disk: Disk, path: &Path, work_bytes: u64) -> Result<Speed> {
    let refused = |error: sys::Error| {
        let reason = sys::plain_reason(&error.source);
        Error::new(Kind::Impossible, OPERATION, reason).at(path)
    };
    let file = sys::file::open_read(path, true).map_err(refused)?;
    let metadata = file
        .metadata()
        .map_err(|source| Error::io(OPERATION, path, &source))?;
    let bytes = match metadata.is_file() {
        true => metadata.len(),
        false => sys::block::size_bytes(&file).map_err(refused)?,
    };
    let budget_ns = LONGEST_NS.min((work_bytes as f64 * NS_PER_BYTE) as u64);
    let (random_read_ns, end) = random_read_ns(&file, bytes, budget_ns / 3 * 2)?;
    // Where the head is already, unless too little lies behind.
    let all_bytes = MAX_SEQUENTIAL_BYTES + RANDOM_READ_BYTES as u64;
    let last = bytes.saturating_sub(all_bytes) / RANDOM_READ_BYTES as u64;
    let start = end.min(last * RANDOM_READ_BYTES as u64);
    Ok(Speed {
        rotational: disk.rotational,
        random_read_ns,
        sequential_bytes_per_s: sequential_bytes_per_s(&file, start, budget_ns / 3)?,
        device: disk.name,
    })
}

/// The median of single reads, `None` for a device too small to have places; where the last one ended.
fn random_read_ns(file: &File, device_bytes: u64, budget_ns: u64) -> Result<(Option<u64>, u64)> {
    let mut buffer = AlignedBuffer::new(RANDOM_READ_BYTES)?;
    let places = device_bytes / RANDOM_READ_BYTES as u64;
    let started_ns = sys::clock::now_ns();
    let mut reads_ns = Vec::with_capacity(MAX_RANDOM_READS);
    let mut end = 0;
    while places > 0 && reads_ns.len() < MAX_RANDOM_READS && !sys::interrupt::requested() {
        let drawn = (reads_ns.len() as u64 + 1).wrapping_mul(SCATTER);
        let place = u64::try_from((u128::from(drawn) * u128::from(places)) >> 64);
        let offset = place.unwrap_or(0) * RANDOM_READ_BYTES as u64;
        let before_ns = sys::clock::now_ns();
        sys::file::read_at(file, &mut buffer, offset)?;
        let now_ns = sys::clock::now_ns();
        reads_ns.push(now_ns - before_ns);
        end = offset + RANDOM_READ_BYTES as u64;
        if now_ns - started_ns > budget_ns {
            break;
        }
    }
    reads_ns.sort_unstable();
    Ok((reads_ns.get(reads_ns.len() / 2).copied(), end))
}

/// Bytes a second of large reads from the page at `start` on, that page excepted, to which it may
/// have to seek.
fn sequential_bytes_per_s(file: &File, start: u64, budget_ns: u64) -> Result<Option<u64>> {
    let mut buffer = AlignedBuffer::new(SEQUENTIAL_READ_BYTES)?;
    let mut offset = start + RANDOM_READ_BYTES as u64;
    sys::file::read_at(file, &mut buffer[..RANDOM_READ_BYTES], start)?;
    let started_ns = sys::clock::now_ns();
    let mut bytes = 0;
    let mut elapsed_ns = 0;
    while bytes < MAX_SEQUENTIAL_BYTES && elapsed_ns <= budget_ns && !sys::interrupt::requested() {
        let read = sys::file::read_at(file, &mut buffer, offset)?;
        bytes += read as u64;
        elapsed_ns = sys::clock::now_ns() - started_ns;
        if read < SEQUENTIAL_READ_BYTES {
            break;
        }
        offset += SEQUENTIAL_READ_BYTES as u64;
    }
    let per_s = u128::from(bytes) * 1_000_000_000 / u128::from(elapsed_ns.max(1));
    Ok(u64::try_from(per_s).ok().filter(|_| bytes > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_disk_behind_a_loop_device_shows_both_figures() {
        let folder = testkit::TempDir::new();
        let file = folder.join("image");
        std::fs::write(&file, vec![1u8; 16 << 20]).unwrap();
        let device = match testkit::LoopDevice::over(&file) {
            Ok(device) => device,
            Err(need) => return testkit::skip(need),
        };
        let number = std::fs::metadata(device.path()).unwrap().rdev();
        let number = sys::block::device_numbers(number);
        let speed = of_device(&Root::system(), number, u64::MAX).unwrap();
        let name = device.path().file_name().unwrap();
        assert_eq!(speed.device.as_str(), name);
        let single_ns = speed.random_read_ns.unwrap();
        let per_s = speed.sequential_bytes_per_s.unwrap();
        // The same bytes in large requests can take no longer than one by one, by far.
        let one_by_one = RANDOM_READ_BYTES as u64 * 1_000_000_000 / single_ns;
        assert!(per_s > one_by_one, "{per_s} and {one_by_one} bytes/s");
    }

    #[test]
    fn a_file_of_any_length_is_tried_to_its_end() {
        let folder = testkit::TempDir::new();
        let path = folder.join("file");
        for length in [0_usize, 5000, (1 << 20) + 4097 + 700] {
            std::fs::write(&path, vec![1u8; length]).unwrap();
            let number = sys::block::device_numbers(std::fs::metadata(&path).unwrap().dev());
            let speed = match of_file(&Root::system(), number, &path, 1) {
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
        let error = of_device(&Root::system(), (0, 0), 1).unwrap_err();
        assert_eq!(error.kind, Kind::Impossible);
    }
}

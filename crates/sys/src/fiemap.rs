//! Where a file is stored on its disk, by the `FS_IOC_FIEMAP` call.
//!
//! It asks for what the file system knows now and writes nothing (no `FIEMAP_FLAG_SYNC`):
//! data that has no place yet is marked as such. Holes are left out.

use crate::error::{Result, check};
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// `FS_IOC_FIEMAP`, from linux/fs.h.
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
/// The last one of the file.
const EXTENT_LAST: u32 = 0x1;
/// The place on the disk is not known: not reported, not allocated yet, or inside of an inode.
const EXTENT_NO_PLACE: u32 = 0x2 | 0x4 | 0x200;
/// Reserved, and not written through the file system.
const EXTENT_UNWRITTEN: u32 = 0x800;
/// How many extents one call asks for; the answer then takes 7 KiB.
const EXTENTS_A_CALL: usize = 128;

/// A contiguous part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Where it begins on the device, in bytes; `None` where it has no place of its own.
    pub physical: Option<u64>,
    /// Whether it is only reserved (`fallocate`): a read of the file gives zeros there and asks no
    /// disk, though swap may have written to it past the file system.
    pub unwritten: bool,
}

/// `struct fiemap_extent` of linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_more: [u32; 3],
}

/// `struct fiemap` of linux/fiemap.h with room for the answer.
#[repr(C)]
struct Question {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; EXTENTS_A_CALL],
}

/// Where the first extent of `file` is on its device, in bytes; `None` without an extent that has a
/// place. Asks for one extent, however many there are.
///
/// # Errors
/// As [`extents`].
pub fn first_place(file: &File) -> Result<Option<u64>> {
    let answer = ask(file, &(0..u64::MAX), 1)?;
    let is_there = answer.mapped_extents > 0;
    Ok(is_there.then(|| extent(&answer.extents[0])).and_then(|first| first.physical))
}

/// The extents that overlap `range` of `file`, ascending.
///
/// # Errors
/// `Unsupported` on file systems that do not say (tmpfs, FUSE, NFS).
pub fn extents(file: &File, range: Range<u64>) -> Result<Vec<FileExtent>> {
    let mut found = Vec::new();
    let mut start = range.start;
    while start < range.end {
        let answer = ask(file, &(start..range.end), EXTENTS_A_CALL as u32)?;
        let count = EXTENTS_A_CALL.min(answer.mapped_extents as usize);
        let raw = &answer.extents[..count];
        found.extend(raw.iter().map(extent));
        let Some(last) = raw.last() else { break };
        let next = last.logical.saturating_add(last.length);
        // An answer that does not advance would be asked for ever.
        if last.flags & EXTENT_LAST != 0 || next <= start {
            break;
        }
        start = next;
    }
    Ok(found)
}

/// Whether a part of the file is only reserved, so that a read of it says nothing about its disk.
#[must_use]
pub fn has_unwritten(file: &File) -> bool {
    let all = extents(file, 0..u64::MAX).unwrap_or_default();
    all.iter().any(|extent| extent.unwritten)
}

/// The first `most` extents of a range, at most [`EXTENTS_A_CALL`].
fn ask(file: &File, range: &Range<u64>, most: u32) -> Result<Question> {
    let mut question = Question {
        start: range.start,
        length: range.end - range.start,
        flags: 0,
        mapped_extents: 0,
        extent_count: most.min(EXTENTS_A_CALL as u32),
        reserved: 0,
        extents: [RawExtent::default(); EXTENTS_A_CALL],
    };
    // SAFETY: the structure has the kernel's layout, says how many extents it has room for, and
    // lives across the call.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut question) };
    check("read the extents of the file", answer)?;
    Ok(question)
}

fn extent(raw: &RawExtent) -> FileExtent {
    FileExtent {
        offset: raw.logical,
        bytes: raw.length,
        physical: (raw.flags & EXTENT_NO_PLACE == 0).then_some(raw.physical),
        unwritten: raw.flags & EXTENT_UNWRITTEN != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use std::os::unix::fs::FileExt;
    use testkit::TempDir;

    #[test]
    fn a_hole_is_left_out_and_the_data_has_a_place() {
        let directory = TempDir::new();
        let file = File::create_new(directory.join("file")).unwrap();
        let far = 64 << 20;
        file.write_all_at(&[1; 8192], 0).unwrap();
        file.write_all_at(&[2; 8192], far).unwrap();
        file.sync_all().unwrap();
        let all = match extents(&file, 0..u64::MAX) {
            Ok(all) => all,
            Err(error) => return testkit::skip(format!("a file system with FIEMAP: {error}")),
        };
        assert_eq!(all.iter().map(|extent| extent.bytes).sum::<u64>(), 16384);
        assert!(all.iter().all(|extent| extent.physical.is_some()));
        assert_eq!(first_place(&file).unwrap(), all[0].physical);
        let hole = File::create_new(directory.join("hole")).unwrap();
        hole.set_len(far).unwrap();
        assert_eq!(first_place(&hole).unwrap(), None);
        let behind = extents(&file, far..far + 4096).unwrap();
        assert_eq!((behind.len(), behind[0].offset), (1, far));
        assert_eq!(extents(&file, 8192..8192 * 2).unwrap(), []);
    }

    #[test]
    fn reserved_and_written_extents_are_distinguished() {
        let directory = TempDir::new();
        let path = directory.join("file");
        let reserve =
            std::process::Command::new("fallocate").args(["-l", "1m"]).arg(&path).status();
        if !reserve.is_ok_and(|status| status.success()) {
            return testkit::skip("fallocate, and a file system that reserves");
        }
        let file = File::options().write(true).open(&path).unwrap();
        if extents(&file, 0..u64::MAX).is_err() {
            return testkit::skip("a file system with FIEMAP");
        }
        assert!(has_unwritten(&file));
        file.write_all_at(&vec![1; 1 << 20], 0).unwrap();
        file.sync_all().unwrap();
        assert!(!has_unwritten(&file));
    }

    #[test]
    fn more_extents_than_one_call_holds_are_all_returned() {
        let directory = TempDir::new();
        let file = File::create_new(directory.join("file")).unwrap();
        let pieces = EXTENTS_A_CALL as u64 * 2 + 7;
        for piece in 0..pieces {
            file.write_all_at(&[1; 4096], piece * 16384).unwrap();
        }
        file.sync_all().unwrap();
        match extents(&file, 0..u64::MAX) {
            Ok(all) => {
                let offsets: Vec<u64> = all.iter().map(|extent| extent.offset).collect();
                let expected: Vec<u64> = (0..pieces).map(|piece| piece * 16384).collect();
                assert_eq!(offsets, expected);
            }
            Err(error) => testkit::skip(format!("a file system with FIEMAP: {error}")),
        }
    }

    #[test]
    fn what_has_no_places_says_so() {
        let memory = File::open("/proc/version").unwrap();
        assert_eq!(extents(&memory, 0..4096).unwrap_err().kind, ErrorKind::Unsupported);
    }
}

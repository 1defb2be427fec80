//! Direct copies on real block devices, and a disk that fails in the middle.
//!
//! The disks are loop devices; without the right to make them the tests say so.
#![allow(clippy::unwrap_used, reason = "what helpers cannot do fails the test")]

use model::bytes::MIB;
use model::progress::Control;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use testkit::{LoopDevice, Random, TempDir};
use transfer::{Extent, Failure, FileEngine, Observer, Route};

const COPY: Route = Route::Copy { source: 0, target: 1 };

fn open_direct(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).custom_flags(testkit::O_DIRECT).open(path).unwrap()
}

fn noise(bytes: u64) -> Vec<u8> {
    let mut data = vec![0; bytes as usize];
    Random(3).fill(&mut data);
    data
}

#[test]
fn a_disk_is_copied_past_the_cache() {
    let directory = TempDir::in_dir(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let (from, to) = (directory.join("from"), directory.join("to"));
    let data = noise(4 * MIB);
    std::fs::write(&from, &data).unwrap();
    std::fs::write(&to, vec![0; 4 * MIB as usize]).unwrap();
    let disks = LoopDevice::over(&from).and_then(|from| Ok((from, LoopDevice::over(&to)?)));
    let (source, target) = match disks {
        Ok(disks) => disks,
        Err(need) => return testkit::skip(need),
    };
    let (source, target) = (open_direct(source.path()), open_direct(target.path()));
    for (depth, buffer_bytes) in [(1, 4096), (8, 65_536), (4, MIB as usize)] {
        let mut engine = FileEngine::at_depth(&[&source, &target], depth, buffer_bytes).unwrap();
        // Not from the start, and not a multiple of the buffers.
        let extent = Extent::at(4096..4 * MIB - 8192);
        let summary = engine.run(COPY, [extent], &mut ());
        assert!(summary.failure.is_none(), "{:?}", summary.failure);
        assert_eq!(summary.whole_bytes, extent.bytes);
        let mut read = sys::memory::AlignedBuffer::new(4 * MIB as usize).unwrap();
        sys::file::read_at(&target, &mut read, 0).unwrap();
        let end = (4 * MIB - 8192) as usize;
        assert!(read[4096..end] == data[4096..end]);
        assert!(read[..4096].iter().chain(&read[end..]).all(|byte| *byte == 0));
        sys::file::write_at(&target, &sys::memory::AlignedBuffer::new(read.len()).unwrap(), 0)
            .unwrap();
    }
}

/// Goes on after failures and keeps their places.
#[derive(Default)]
struct Offsets(Vec<u64>);

impl Observer for Offsets {
    fn failed(&mut self, failure: &Failure) -> Control {
        assert_eq!(failure.error.source.raw_os_error(), Some(5), "{failure:?}");
        self.0.extend(failure.error.offset);
        Control::Continue
    }
}

/// A loop device whose backing file was cut short answers EIO behind the cut.
#[test]
fn errors_of_a_disk_are_reported_by_offset_and_the_rest_is_copied() {
    let directory = TempDir::in_dir(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let (image, copy) = (directory.join("image"), directory.join("copy"));
    let data = noise(4 * MIB);
    std::fs::write(&image, &data).unwrap();
    let disk = match LoopDevice::over(&image) {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    let source = open_direct(disk.path());
    let cut = OpenOptions::new().write(true).open(&image).unwrap();
    cut.set_len(3 * MIB).unwrap();
    let target = OpenOptions::new().read(true).write(true).create_new(true).open(&copy).unwrap();
    let buffer_bytes = (MIB / 2) as usize;
    let mut engine = FileEngine::at_depth(&[&source, &target], 4, buffer_bytes).unwrap();
    let mut failures = Offsets::default();
    // What is lost comes first, so that going on is seen.
    let extents = [Extent::at(3 * MIB..4 * MIB), Extent::at(0..3 * MIB)];
    let summary = engine.run(COPY, extents, &mut failures);
    failures.0.sort_unstable();
    assert_eq!(failures.0, [3 * MIB, 3 * MIB + MIB / 2]);
    assert_eq!((summary.bytes, summary.whole_bytes), (3 * MIB, 0));
    let copied = std::fs::read(&copy).unwrap();
    assert!(copied == data[..3 * MIB as usize]);
}

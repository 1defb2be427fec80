//! `terrace ramdisk save` to a disk that fails: an error, and the generation before is whole; or
//! the new one is. The file system is real to the kernel, the faults are made by the test.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use support::described::described;
use support::{Ran, terrace};
use testkit::disk_model::RequestKind::{self, Flush, Write as Writes};
use testkit::{FaultPlan, FaultyDisk, FileFault, FileSystem, TempDir, Trigger};

/// Requests that are tried, of each kind.
const TRIED: u64 = 6;

/// Two files of several blocks of a data file, and a small one.
fn write_tree(top: &Path, seed: u8) {
    for (name, length) in [("large", 1_700_000), ("second", 1_300_001), ("small", 500)] {
        let content: Vec<u8> = (0..length).map(|at| (at / 3 + at / 4099) as u8 ^ seed).collect();
        fs::write(top.join(name), content).unwrap();
    }
}

fn save(source: &Path, store: &Path) -> Ran {
    terrace(&format!("ramdisk save {} --persist {}", source.display(), store.display()))
}

fn count(disk: &FaultyDisk, kind: RequestKind) -> u64 {
    disk.requests().iter().filter(|request| request.kind == kind).count() as u64
}

/// What the newest generation of a store has.
fn newest(store: &Path, scratch: &TempDir) -> BTreeMap<String, String> {
    let target = scratch.join("restored");
    let line = format!("ramdisk restore {} --persist {}", target.display(), store.display());
    terrace(&line).done();
    // It was a restore to another directory.
    fs::remove_file(store.join("restored")).unwrap();
    let found = described(&target);
    fs::remove_dir_all(target).unwrap();
    found
}

#[test]
fn a_disk_that_fails_at_any_request_of_a_save_keeps_the_generation_before() {
    let (source, scratch) = (TempDir::new(), TempDir::new());
    let disk = match FaultyDisk::new(64 << 20, FaultPlan::new()) {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    let (io, mut failed) = (Errno::IO.raw_os_error(), 0);
    for kind in [Writes, Flush] {
        let mut number = 0;
        loop {
            let mount = match disk.mount(FileSystem::Ext4) {
                Ok(mount) => mount,
                Err(need) => return testkit::skip(need),
            };
            let store = mount.path().join("store");
            write_tree(source.path(), 1);
            save(source.path(), &store).done();
            let before = described(source.path());
            write_tree(source.path(), 2);
            let after = described(source.path());
            disk.set_plan(FaultPlan::new().with(Trigger::Nth(kind, number), FileFault::Fail(io)));
            let ran = save(source.path(), &store);
            let requests = count(&disk, kind);
            disk.set_plan(FaultPlan::new());
            drop(mount);
            let what = format!("{kind:?} {number} of {requests}: {ran:?}");
            assert!([Some(0), Some(1)].contains(&ran.code), "{what}");
            // A failed write that the kernel has not reported yet would end the next journal.
            let _ = fs::File::open(disk.device()).and_then(|device| device.sync_all());
            let mount = disk.mount_again(FileSystem::Ext4).unwrap();
            let store = mount.path().join("store");
            let found = newest(&store, &scratch);
            if ran.code == Some(0) {
                assert!(found == after, "{what}");
            } else {
                failed += 1;
                assert!(ran.err.starts_with("terrace: ramdisk save: "), "{what}");
                assert!(found == before || found == after, "{what}");
            }
            save(source.path(), &store).done();
            assert!(newest(&store, &scratch) == after, "{what}, again");
            let step = requests.div_ceil(TRIED).max(1);
            number += step;
            if number >= requests {
                break;
            }
        }
    }
    assert!(failed > 2, "{failed} requests that failed were noticed");
}

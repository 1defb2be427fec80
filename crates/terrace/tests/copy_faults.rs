//! `terrace copy` while source or target fails: what is damaged is left out and named with its
//! offset, the rest is copied, and nothing incomplete has a name. The file systems and disks are
//! real to the kernel; the faults are made by the test.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use support::{Ran, command, terrace};
use testkit::disk_model::RequestKind::{Flush, Read as Reads, Write as Writes};
use testkit::{
    Beyond, DiskMount, FaultPlan, FaultyDisk, FaultyFiles, FileFault, FileSystem, TempDir, Trigger,
};

const MIB: usize = 1 << 20;

fn bytes(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 3 + at / 4099) as u8 ^ seed).collect()
}

fn copy(source: &Path, target: &Path, options: &str) -> Ran {
    terrace(&format!("copy {} {} {options}", source.display(), target.display()))
}

/// A page without its line ends.
fn one_line(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A disk that fails by this plan; if it cannot be made, the reason is printed.
fn disk(bytes: u64, plan: FaultPlan) -> Option<FaultyDisk> {
    FaultyDisk::new(bytes, plan).map_err(testkit::skip).ok()
}

/// A new file system on it, likewise.
fn mounted(disk: &FaultyDisk) -> Option<DiskMount<'_>> {
    disk.mount(FileSystem::Ext4).map_err(testkit::skip).ok()
}

/// A tree with two large and two small files.
fn make_tree(top: &Path) {
    fs::create_dir_all(top.join("below")).unwrap();
    for (name, length) in
        [("large", 5 * MIB + 77), ("below/second", 3 * MIB), ("small", 5000), ("below/tiny", 3)]
    {
        fs::write(top.join(name), bytes(name.len() as u8, length)).unwrap();
    }
}

/// Whether each file of `copy` is whole: it is the source's, or not there.
fn all_whole(source: &Path, copy: &Path) -> usize {
    let mut there = 0;
    for name in ["large", "below/second", "small", "below/tiny"] {
        if let Ok(found) = fs::read(copy.join(name)) {
            assert!(found == fs::read(source.join(name)).unwrap(), "{name} is not whole");
            there += 1;
        }
    }
    there
}

#[test]
fn a_source_that_fails_is_named_with_its_offset_and_the_rest_is_copied() {
    let (real, target) = (TempDir::new(), TempDir::new());
    make_tree(real.path());
    let cases = [
        ("large", 3 * MIB as u64..3 * MIB as u64 + 1),
        ("below/second", 0..1),
        ("small", 4500..4501),
    ];
    for (at, (name, range)) in cases.into_iter().enumerate() {
        let plan = FaultPlan::new().bad_range(Reads, range).on(name);
        let files = match FaultyFiles::over(real.path(), plan) {
            Ok(files) => files,
            Err(need) => return testkit::skip(need),
        };
        let to = target.join(format!("copy{at}"));
        let ran = copy(files.path(), &to, "");
        assert_eq!(ran.code, Some(1), "{name}: {}", ran.err);
        let page = one_line(&ran.out);
        assert!(page.contains("not copied") && page.contains("input/output error"), "{page}");
        assert!(!to.join(name).exists(), "{name} was placed");
        assert_eq!(all_whole(real.path(), &to), 3, "{name}");
    }
}

#[test]
fn a_source_that_changes_or_shrinks_meanwhile_is_not_placed() {
    let target = TempDir::new();
    for (at, fault) in [FileFault::Change, FileFault::Shrink(MIB as u64)].into_iter().enumerate() {
        let real = TempDir::new();
        make_tree(real.path());
        let plan = FaultPlan::new().with(Trigger::Nth(Reads, 2), fault).on("large");
        let files = match FaultyFiles::over(real.path(), plan) {
            Ok(files) => files,
            Err(need) => return testkit::skip(need),
        };
        let to = target.join(format!("copy{at}"));
        let ran = copy(files.path(), &to, "");
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(one_line(&ran.out).contains("while it was read"), "{}", ran.out);
        assert!(!to.join("large").exists());
        assert!(to.join("small").exists() && to.join("below/second").exists());
    }
}

/// Each write and each flush of a small copy fails once: an error, or all of it is whole.
#[test]
fn a_target_that_fails_at_any_request_leaves_nothing_incomplete() {
    let source = TempDir::new();
    make_tree(source.path());
    let Some(disk) = disk(64 << 20, FaultPlan::new()) else { return };
    let count = {
        let Some(mount) = mounted(&disk) else { return };
        let to = mount.path().join("copy");
        assert_eq!(copy(source.path(), &to, "").code, Some(0));
        let requests = disk.requests();
        let of = |kind| requests.iter().filter(|request| request.kind == kind).count() as u64;
        [(Writes, of(Writes)), (Flush, of(Flush))]
    };
    let mut failed = 0;
    for (kind, requests) in count {
        // A dozen moments of each kind, the first and the last among them.
        for step in 0..12 {
            let number = requests.saturating_sub(1) * step / 11;
            let mount = disk.mount(FileSystem::Ext4).unwrap();
            disk.set_plan(FaultPlan::new().failing(kind, number));
            let to = mount.path().join("copy");
            let ran = copy(source.path(), &to, "");
            assert!([Some(0), Some(1), Some(3)].contains(&ran.code), "{number}: {}", ran.err);
            disk.set_plan(FaultPlan::new());
            if ran.code == Some(0) {
                assert_eq!(all_whole(source.path(), &to), 4, "request {number}");
            } else {
                failed += 1;
                all_whole(source.path(), &to);
                assert!(!ran.err.is_empty() || ran.out.contains("not copied"), "{number}");
            }
        }
    }
    assert!(failed > 0, "no request that failed was noticed");
}

#[test]
fn a_disk_that_lies_about_its_size_fails_the_verification() {
    let source = TempDir::new();
    fs::write(source.join("large"), bytes(9, 112 * MIB)).unwrap();
    fs::hard_link(source.join("large"), source.join("second")).unwrap();
    fs::write(source.join("small"), "whole").unwrap();
    // What ext4 itself needs is below the true end.
    let plan = FaultPlan::new().true_size(108 << 20, Beyond::Dropped);
    let Some(disk) = disk(160 << 20, plan) else { return };
    let Some(mount) = mounted(&disk) else { return };
    let to = mount.path().join("copy");
    let ran = copy(source.path(), &to, "--verify");
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    let said = one_line(&format!("{} {}", ran.out, ran.err));
    assert!(said.contains("what the device gives back differs"), "{said}");
    assert!(!said.contains(".terrace-copy"), "{said}");
    // Neither name of it, and what is whole.
    assert_eq!(names(&to), ["small"]);
}

#[test]
fn a_full_target_says_so_before_the_first_byte() {
    let source = TempDir::new();
    fs::write(source.join("large"), bytes(9, 40 * MIB)).unwrap();
    let Some(disk) = disk(32 << 20, FaultPlan::new()) else { return };
    let Some(mount) = mounted(&disk) else { return };
    let before: Vec<_> = names(mount.path());
    let ran = copy(source.path(), &mount.path().join("copy"), "");
    assert_eq!(ran.code, Some(3), "{} {}", ran.out, ran.err);
    assert!(ran.err.contains("are needed") && ran.err.contains("are free"), "{}", ran.err);
    assert_eq!(before, names(mount.path()));
}

fn names(directory: &Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn an_unplugged_target_ends_the_copy_with_a_line() {
    let source = TempDir::new();
    fs::write(source.join("large"), bytes(9, 24 * MIB)).unwrap();
    let Some(disk) = disk(64 << 20, FaultPlan::new()) else { return };
    let Some(mount) = mounted(&disk) else { return };
    let to = mount.path().join("copy");
    let words = format!("copy {} {} --limit-rate 8m", source.join("large").display(), to.display());
    let mut line = command(&words);
    line.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = line.spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    disk.unplug();
    let ended = child.wait_with_output().unwrap();
    assert!([Some(1), Some(3)].contains(&ended.status.code()), "{:?}", ended.status);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.starts_with("terrace: copy: ") && said.lines().count() == 1, "{said}");
    disk.plug();
}

//! `terrace copy` while source or target fails: what is damaged is left out and named with its
//! offset, the rest is copied, and nothing incomplete has a name. The file systems and disks are
//! real to the kernel; the faults are made by the test.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use rustix::io::Errno;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Ran, command, terrace};
use testkit::disk_model::RequestKind::{self, Flush, Read as Reads, Write as Writes};
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

/// Whether each file of `copy` is whole: it is the source's, or not there. How many are there.
#[track_caller]
fn all_whole(source: &Path, copy: &Path) -> usize {
    let mut there = 0;
    for name in ["large", "below/second", "small", "below/tiny"] {
        if let Ok(found) = fs::read(copy.join(name)) {
            let wanted = fs::read(source.join(name)).unwrap();
            let differing = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted);
            assert!(
                found == wanted,
                "{name} is not whole: {} of {} bytes, the first that differs is {differing:?}",
                found.len(),
                wanted.len()
            );
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

/// Copies a tree whose large file suffers `fault` at such reads.
fn copy_changing(trigger: Trigger, fault: FileFault, to: &Path) -> Option<(TempDir, Ran)> {
    let real = TempDir::new();
    make_tree(real.path());
    let plan = FaultPlan::new().with(trigger, fault).on("large");
    match FaultyFiles::over(real.path(), plan) {
        Ok(files) => {
            let ran = copy(files.path(), to, "");
            drop(files);
            Some((real, ran))
        }
        Err(need) => {
            testkit::skip(need);
            None
        }
    }
}

#[test]
fn a_source_that_changes_or_shrinks_once_meanwhile_is_copied_as_it_is_then() {
    let target = TempDir::new();
    for (at, fault) in [FileFault::Change, FileFault::Shrink(MIB as u64)].into_iter().enumerate() {
        let to = target.join(format!("copy{at}"));
        let Some((real, ran)) = copy_changing(Trigger::Nth(Reads, 2), fault, &to) else { return };
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        assert_eq!(all_whole(real.path(), &to), 4, "{}", ran.out);
    }
}

#[test]
fn a_source_that_changes_again_and_again_is_not_placed() {
    let target = TempDir::new();
    let to = target.join("copy");
    let always = Trigger::From(Reads, 2);
    let Some((_real, ran)) = copy_changing(always, FileFault::Change, &to) else { return };
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(one_line(&ran.out).contains("while it was read"), "{}", ran.out);
    assert!(!to.join("large").exists());
    assert!(to.join("small").exists() && to.join("below/second").exists());
}

/// The numbers of the requests that are tried: each with TERRACE_COPY_FAULTS=all, else a few, the
/// first and the last among them.
fn tried(requests: u64) -> Vec<u64> {
    let is_all = std::env::var("TERRACE_COPY_FAULTS").is_ok_and(|asked| asked == "all");
    let most = if is_all { requests } else { requests.min(7) };
    (0..most)
        .map(|step| step * requests.saturating_sub(1) / most.saturating_sub(1).max(1))
        .collect()
}

fn count(disk: &FaultyDisk, kind: RequestKind) -> u64 {
    disk.requests().iter().filter(|request| request.kind == kind).count() as u64
}

/// A run that failed has said so, and what it placed is whole.
#[track_caller]
fn assert_honest(ran: &Ran, source: &Path, copy: &Path, what: &str) {
    assert!([Some(0), Some(1), Some(3)].contains(&ran.code), "{what}: {ran:?}");
    let there = all_whole(source, copy);
    if ran.code == Some(0) {
        assert_eq!(there, 4, "{what}");
    } else {
        assert!(ran.err.starts_with("terrace: copy: "), "{what}: {ran:?}");
        // One line, and how to go on if all of the target failed.
        assert!(ran.err.lines().skip(1).all(|line| line.starts_with("hint: ")), "{what}: {ran:?}");
        assert!(ran.err.lines().count() <= 2, "{what}: {ran:?}");
    }
}

/// A write or a flush of a small copy fails, or the device has no more room for it: an error, or
/// all of it is whole. When the fault is gone, the same command ends equal.
#[test]
fn a_target_that_fails_at_any_request_leaves_nothing_incomplete() {
    let source = TempDir::new();
    make_tree(source.path());
    let Some(disk) = disk(64 << 20, FaultPlan::new()) else { return };
    let counts = {
        let Some(mount) = mounted(&disk) else { return };
        let to = mount.path().join("copy");
        assert_eq!(copy(source.path(), &to, "").code, Some(0));
        [count(&disk, Writes), count(&disk, Flush)]
    };
    let (io, space) = (Errno::IO.raw_os_error(), Errno::NOSPC.raw_os_error());
    let cases = [(Writes, io, counts[0]), (Writes, space, counts[0]), (Flush, io, counts[1])];
    let mut failed = 0;
    for (kind, error, requests) in cases {
        for number in tried(requests) {
            let what = format!("{kind:?} {number} of {requests}, error {error}");
            let mount = disk.mount(FileSystem::Ext4).unwrap();
            let fault = FileFault::Fail(error);
            disk.set_plan(FaultPlan::new().with(Trigger::Nth(kind, number), fault));
            let ran = copy(source.path(), &mount.path().join("copy"), "");
            disk.set_plan(FaultPlan::new());
            assert_honest(&ran, source.path(), &mount.path().join("copy"), &what);
            drop(mount);
            if ran.code != Some(0) {
                failed += 1;
                if ran.err.contains("check it (fsck)") {
                    check_file_system(&disk, &what);
                }
                let is_anew = goes_on(&disk, FileSystem::Ext4, source.path(), &what);
                assert!(!is_anew || ran.err.contains("begins anew"), "{what}: {ran:?}");
            }
        }
    }
    assert!(failed > 0, "no request that failed was noticed");
}

/// Without a journal a file system goes on after a write of its own data failed: what was durable
/// before may be lost then, so nothing of it is kept.
#[test]
fn after_a_sync_that_failed_on_a_disk_that_works_the_copy_begins_anew() {
    const NO_JOURNAL: FileSystem = FileSystem::Other("ext4", &["-O", "^has_journal"]);
    let source = TempDir::new();
    make_tree(source.path());
    let Some(disk) = disk(64 << 20, FaultPlan::new()) else { return };
    let mounted = disk.mount(NO_JOURNAL);
    let Ok(mount) = mounted.map_err(testkit::skip) else { return };
    assert_eq!(copy(source.path(), &mount.path().join("copy"), "").code, Some(0));
    let requests = count(&disk, Writes);
    drop(mount);
    let mut anew = 0;
    for number in 0..requests {
        let what = format!("Write {number} of {requests}");
        let mount = disk.mount(NO_JOURNAL).unwrap();
        let fault = FileFault::Fail(Errno::IO.raw_os_error());
        disk.set_plan(FaultPlan::new().with(Trigger::Nth(Writes, number), fault));
        let ran = copy(source.path(), &mount.path().join("copy"), "");
        disk.set_plan(FaultPlan::new());
        assert_honest(&ran, source.path(), &mount.path().join("copy"), &what);
        drop(mount);
        if ran.code == Some(0) {
            continue;
        }
        check_file_system(&disk, &what);
        let is_anew = goes_on(&disk, NO_JOURNAL, source.path(), &what);
        assert!(!is_anew || ran.err.contains("begins anew"), "{what}: {ran:?}");
        anew += usize::from(is_anew);
    }
    assert!(anew > 0, "no copy began anew");
}

/// As the hint says: some kernels lose a journal of which a block could not be written.
fn check_file_system(disk: &FaultyDisk, what: &str) {
    let _ = fs::File::open(disk.device()).and_then(|device| device.sync_all());
    let mut check = Command::new("e2fsck");
    let checked = check.args(["-f", "-y"]).arg(disk.device()).output().unwrap();
    // 1 and 2: what was wrong was corrected.
    assert!(checked.status.code().is_some_and(|code| code <= 2), "{what}: {checked:?}");
}

/// The same file system, mounted again without faults.
fn mounted_again(disk: &FaultyDisk, system: FileSystem) -> DiskMount<'_> {
    // A failed write that the kernel has not reported yet would end the next mount's journal.
    let _ = fs::File::open(disk.device()).and_then(|device| device.sync_all());
    disk.mount_again(system).unwrap()
}

/// The disk is mounted again, and the same command ends with a whole copy and no leftover. Whether
/// it kept nothing of the earlier run.
fn goes_on(disk: &FaultyDisk, system: FileSystem, source: &Path, what: &str) -> bool {
    let mount = mounted_again(disk, system);
    let placed = mount.path().join("copy");
    let is_hidden = names(mount.path()).iter().any(is_hidden_name);
    // A copy that was placed without some files is a directory to copy into, as for `cp -a`.
    let again = if placed.exists() && !is_hidden { source.join(".") } else { source.to_owned() };
    let ran = copy(&again, &placed, "");
    assert_eq!(ran.code, Some(0), "{what}, again: {ran:?}");
    assert_eq!(all_whole(source, &placed), 4, "{what}, again");
    assert_eq!(names(&placed), names(source), "{what}, again");
    let all = names(mount.path()).into_iter().chain(names(&placed));
    let left: Vec<_> = all.filter(is_hidden_name).collect();
    assert!(left.is_empty(), "{what}, again: {left:?}");
    ran.out.contains("begun anew: ")
}

fn is_hidden_name(name: &OsString) -> bool {
    name.as_encoded_bytes().starts_with(b".terrace")
}

/// A read of the source's disk fails, of data, a directory or an inode: what it held is named, and
/// the rest is copied.
#[test]
fn a_source_that_fails_at_any_request_leaves_nothing_incomplete() {
    let (model, target) = (TempDir::new(), TempDir::new());
    make_tree(model.path());
    let Some(disk) = disk(64 << 20, FaultPlan::new()) else { return };
    {
        let Some(mount) = mounted(&disk) else { return };
        make_tree(&mount.path().join("source"));
    }
    let attempt = |plan: FaultPlan, number: u64| {
        let mount = disk.mount_again(FileSystem::Ext4).unwrap();
        disk.set_plan(plan);
        let to = target.join(format!("copy{number}"));
        let ran = copy(&mount.path().join("source"), &to, "");
        let requests = count(&disk, Reads);
        disk.set_plan(FaultPlan::new());
        assert_honest(&ran, model.path(), &to, &format!("read {number} of {requests}"));
        (ran, requests)
    };
    let (ran, requests) = attempt(FaultPlan::new(), u64::MAX);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut failed = 0;
    for number in tried(requests) {
        let plan = FaultPlan::new().failing(Reads, number);
        failed += u64::from(attempt(plan, number).0.code != Some(0));
    }
    assert!(failed > 0, "no request that failed was noticed");
}

/// Another program takes the room while the copy is under way.
#[test]
fn a_target_that_is_full_midway_names_the_file_and_the_offset() {
    let source = TempDir::new();
    fs::write(source.join("large"), bytes(9, 16 * MIB)).unwrap();
    fs::write(source.join("small"), "whole").unwrap();
    let Some(disk) = disk(64 << 20, FaultPlan::new()) else { return };
    let Some(mount) = mounted(&disk) else { return };
    let to = mount.path().join("copy");
    let words =
        format!("copy {} {} --engine paced --limit-rate 8m", source.path().display(), to.display());
    let child = started(&words);
    std::thread::sleep(Duration::from_millis(600));
    // As much as there is.
    let _ = fs::write(mount.path().join("other"), vec![1; 64 * MIB]);
    let ended = child.wait_with_output().unwrap();
    let page = one_line(&String::from_utf8_lossy(&ended.stdout));
    assert_eq!(ended.status.code(), Some(1), "{page}");
    assert!(page.contains("large: cannot") && page.contains("at byte"), "{page}");
    assert!(page.contains("no space left"), "{page}");
    assert_eq!(names(&to), ["small"]);
}

#[test]
fn a_disk_that_lies_about_its_size_fails_the_verification() {
    let source = TempDir::in_dir(Path::new("/dev/shm"));
    fs::write(source.join("large"), bytes(9, 112 * MIB)).unwrap();
    fs::hard_link(source.join("large"), source.join("second")).unwrap();
    fs::write(source.join("small"), "whole").unwrap();
    // More than the disk has room for beside an inode; tmpfs before Linux 6.6 has no such names.
    let is_lost = |name: &str| {
        let file = fs::File::open(source.join(name)).unwrap();
        sys::attributes::set_extended(&file, "user.big".as_ref(), &[b'x'; 5000]).is_ok()
    };
    let may_lose = ["large", "small"].map(is_lost)[0];
    // What ext4 itself needs is below the true end.
    let plan = FaultPlan::new().true_size(108 << 20, Beyond::Dropped);
    let Some(disk) = disk(160 << 20, plan) else { return };
    let Some(mount) = mounted(&disk) else { return };
    let to = mount.path().join("copy");
    let ran = copy(source.path(), &to, "--verify --json");
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("of them 1 file did not come back as written"), "{}", ran.err);
    let said = &ran.out;
    assert!(said.contains("what the device gives back differs"), "{said}");
    assert!(!said.contains(".terrace-copy"), "{said}");
    // What is left out is not counted, under neither of its names.
    let json: serde_json::Value = serde_json::from_str(said).unwrap();
    let done = &json["result"]["done"];
    for (field, expected) in
        [("files", 1), ("bytes", 5), ("other_entries", 0), ("failure_count", 2)]
    {
        assert_eq!(done[field], expected, "{field}: {done}");
    }
    let losses = done["losses"].as_array().unwrap();
    assert_eq!(losses.len(), usize::from(may_lose), "{done}");
    assert!(losses.iter().all(|loss| loss["entries"] == 1), "{done}");
    // Neither name of it, and what is whole.
    assert_eq!(names(&to), ["small"]);
}

/// What is written behind the end of a stick whose addresses wrap replaces files that were good.
#[test]
fn a_stick_whose_addresses_wrap_fails_the_verification() {
    let source = TempDir::new();
    for number in 0..40 {
        fs::write(source.join(format!("file{number}")), bytes(number, 600_000)).unwrap();
    }
    let plan = FaultPlan::new().true_size(16 << 20, Beyond::Wraps);
    let Some(disk) = disk(64 << 20, plan) else { return };
    let mount = match disk.mount(FileSystem::Other("vfat", &[])) {
        Ok(mount) => mount,
        Err(need) => return testkit::skip(need),
    };
    let ran = copy(source.path(), &mount.path().join("copy"), "--verify");
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    let said = one_line(&format!("{} {}", ran.out, ran.err));
    assert!(said.contains("what the device gives back differs"), "{said}");
    assert!(said.contains("did not come back as written: do not trust that disk"), "{said}");
}

/// With `--eject` only a new mount shows it: the copy has its names, and is named with them.
#[test]
fn a_disk_that_lies_about_its_size_fails_the_verification_by_a_new_mount() {
    let source = TempDir::new();
    fs::write(source.join("large"), bytes(9, 112 * MIB)).unwrap();
    fs::write(source.join("small"), "whole").unwrap();
    let plan = FaultPlan::new().true_size(108 << 20, Beyond::Dropped);
    let Some(disk) = disk(160 << 20, plan) else { return };
    let Some(mount) = mounted(&disk) else { return };
    let to = mount.path().join("copy");
    let ran = copy(source.path(), &to, "--verify --eject");
    assert_eq!(ran.code, Some(1), "{} {}", ran.out, ran.err);
    let page = one_line(&ran.out);
    let wrong = format!("not what was copied: {}: what the device", to.join("large").display());
    assert!(page.contains(&wrong), "{page}");
    assert!(page.contains("by a new mount and equal: 1 file with 5 B"), "{page}");
    let line = one_line(&ran.err);
    assert!(line.contains("1 file on /dev/loop") && line.contains("do not trust"), "{line}");
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!table.contains(&format!(" {} ", mount.path().display())), "{table}");
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

/// Starts a copy, with its outputs kept.
fn started(words: &str) -> Child {
    let mut line = command(words);
    line.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// It ends with one line and a hint, which is returned: the target as a whole failed.
#[track_caller]
fn assert_ended_unplugged(child: Child) -> String {
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.starts_with("terrace: copy: ") && said.lines().count() == 2, "{said}");
    assert!(said.contains("are safe on the target; run the same command again"), "{said}");
    said.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap().to_owned()
}

/// One large file, and one with two names, which are removed from the hidden tree at the end.
#[test]
fn an_unplugged_target_ends_the_copy_with_a_line() {
    let source = TempDir::new();
    fs::create_dir(source.join("tree")).unwrap();
    fs::write(source.join("large"), bytes(9, 24 * MIB)).unwrap();
    fs::hard_link(source.join("large"), source.join("tree/large")).unwrap();
    fs::hard_link(source.join("large"), source.join("tree/second")).unwrap();
    for name in ["large", "tree"] {
        let Some(disk) = disk(64 << 20, FaultPlan::new()) else { return };
        let Some(mount) = mounted(&disk) else { return };
        let (from, to) = (source.join(name), mount.path().join("copy"));
        let (from, to) = (from.display(), to.display());
        let child = started(&format!("copy {from} {to} --limit-rate 8m"));
        std::thread::sleep(Duration::from_millis(700));
        disk.unplug();
        assert_ended_unplugged(child);
        disk.plug();
    }
}

/// What is said to be safe is there, and the same command goes on with it.
#[test]
fn of_an_unplugged_target_so_many_percent_are_there_as_were_said_to_be_safe() {
    const FILES: usize = 48;
    let source = TempDir::new();
    let tree = source.join("tree");
    fs::create_dir(&tree).unwrap();
    for number in 0..FILES {
        fs::write(tree.join(format!("{number}")), bytes(number as u8, MIB / 2)).unwrap();
    }
    let Some(disk) = disk(64 << 20, FaultPlan::new()) else { return };
    let Some(mount) = mounted(&disk) else { return };
    let words = format!("copy {} {}", tree.display(), mount.path().join("copy").display());
    // With a log all files are counted, so that there are percent.
    let log = source.join("log.trec");
    let child = started(&format!("{words} --limit-rate 8m --log {}", log.display()));
    let written = || -> u64 {
        let requests = disk.requests();
        requests.iter().filter(|it| it.kind == Writes).map(|request| request.len).sum()
    };
    let start = Instant::now();
    while written() < 12 << 20 {
        assert!(start.elapsed() < Duration::from_secs(60), "{} bytes were written", written());
        std::thread::sleep(Duration::from_millis(20));
    }
    disk.unplug();
    let hint = assert_ended_unplugged(child);
    let percent: usize = hint.split_once(" %, ").unwrap().0.parse().unwrap();
    assert!((1..100).contains(&percent), "{hint}");
    disk.plug();
    drop(mount);
    let mount = mounted_again(&disk, FileSystem::Ext4);
    let hidden = names(mount.path()).into_iter().find(is_hidden_name).unwrap();
    let grown = mount.path().join(hidden).join("tree/copy");
    let is_whole = |name: &OsString| {
        let found = fs::read(grown.join(name));
        found.is_ok_and(|found| found == fs::read(tree.join(name)).unwrap())
    };
    let whole = names(&grown).iter().filter(|name| is_whole(name)).count();
    assert!(whole * 100 >= percent * FILES, "{whole} of {FILES} are whole: {hint}");
    let ran = terrace(&words);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(one_line(&ran.out).contains("complete from an earlier run"), "{}", ran.out);
    let copied = mount.path().join("copy");
    assert_eq!(names(&copied), names(&tree));
    for name in names(&tree) {
        assert!(fs::read(copied.join(&name)).unwrap() == fs::read(tree.join(&name)).unwrap());
    }
}

/// Nothing is known of a file that is not given back, so nothing is said against the disk.
#[test]
fn what_a_target_does_not_give_back_is_named_and_not_called_changed() {
    let source = TempDir::new();
    // So large that a part of it is where the disk cannot be read.
    fs::write(source.join("large"), bytes(9, 48 * MIB)).unwrap();
    fs::write(source.join("small"), "whole").unwrap();
    for options in ["--verify", "--verify --eject"] {
        let plan = FaultPlan::new().bad_range(Reads, 40 << 20..56 << 20);
        let Some(disk) = disk(64 << 20, plan) else { return };
        // One group: all that ext4 itself reads is at its start.
        let ext4 = FileSystem::Other("ext4", &["-q", "-F", "-b", "4096"]);
        let mount = match disk.mount(ext4) {
            Ok(mount) => mount,
            Err(need) => return testkit::skip(need),
        };
        let to = mount.path().join("copy");
        let ran = copy(source.path(), &to, options);
        assert_eq!(ran.code, Some(1), "{options}: {}{}", ran.out, ran.err);
        let said = one_line(&format!("{} {}", ran.out, ran.err));
        let unread =
            format!("{}: cannot read it back: input/output error", to.join("large").display());
        assert!(said.contains(&unread), "{options}: {said}");
        assert!(!said.contains("trust") && !said.contains("differs"), "{options}: {said}");
        assert!(!said.contains("as written"), "{options}: {said}");
        // With --eject it has its name by then.
        let why = match options {
            "--verify" => "not copied, the rest is",
            _ => "the copy is durable, but not all of it was read back",
        };
        assert!(said.contains(why), "{options}: {said}");
        assert!(!to.join("large").exists(), "{options}");
    }
}

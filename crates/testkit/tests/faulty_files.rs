//! Each fault of a faulty directory as a program meets it, and that nothing of the directory is
//! left, also after a panic.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use testkit::disk_model::RequestKind::{Flush, Read as Reads, Write as Writes};
use testkit::{FaultPlan, FaultyFiles, FileFault, TempDir, Trigger};

const EIO: Option<i32> = Some(5);
const ENODEV: Option<i32> = Some(19);
const BYTES: usize = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(20);

/// A real directory with the file `a`, and its mirror; if it cannot be made, the reason is printed.
fn mirrored(plan: FaultPlan) -> Option<(TempDir, FaultyFiles)> {
    let real = TempDir::new();
    fs::write(real.join("a"), content()).unwrap();
    let files = FaultyFiles::over(real.path(), plan).map_err(testkit::skip).ok()?;
    Some((real, files))
}

fn content() -> Vec<u8> {
    (0..BYTES).map(|at| (at / 7) as u8).collect()
}

fn error_of<T>(outcome: std::io::Result<T>) -> Option<i32> {
    outcome.err().and_then(|error| error.raw_os_error())
}

fn mounts() -> String {
    fs::read_to_string("/proc/self/mountinfo").unwrap()
}

#[test]
fn without_a_fault_it_is_a_file_system() {
    let Some((real, files)) = mirrored(FaultPlan::new()) else { return };
    let (own, below) = (|name| real.join(name), |name| files.path().join(name));
    assert!(fs::read(below("a")).unwrap() == content());
    fs::create_dir_all(below("b/c")).unwrap();
    fs::write(below("b/c/new"), content()).unwrap();
    fs::rename(below("b"), below("d")).unwrap();
    assert!(fs::read(own("d/c/new")).unwrap() == content());
    assert!(fs::read(below("d/c/new")).unwrap() == content());
    let file = File::options().write(true).open(below("d/c/new")).unwrap();
    file.set_len(10).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000, 7);
    file.set_modified(time).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o640)).unwrap();
    file.sync_all().unwrap();
    let facts = fs::metadata(own("d/c/new")).unwrap();
    assert_eq!((facts.len(), facts.mode() & 0o7777), (10, 0o640));
    assert_eq!((facts.mtime(), facts.mtime_nsec()), (1_000_000, 7));
    let mut names: Vec<_> = fs::read_dir(files.path()).unwrap().flatten().collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    let names: Vec<_> = names.iter().map(std::fs::DirEntry::file_name).collect();
    assert_eq!(names, ["a", "d"]);
    // What is open stays open without a name.
    fs::remove_file(below("d/c/new")).unwrap();
    file.write_all_at(b"here", 0).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 10);
    fs::remove_dir(below("d/c")).unwrap();
    assert!(!own("d/c").exists());
    std::os::unix::fs::symlink("a", own("link")).unwrap();
    assert_eq!(fs::read_link(below("link")).unwrap().to_str(), Some("a"));
    assert!(fs::read(below("link")).unwrap() == content());
    for made in [
        std::os::unix::fs::symlink("a", below("new-link")),
        fs::hard_link(below("a"), below("new-link")),
    ] {
        assert_eq!(error_of(made), Some(1));
    }
    let new = below("d/x");
    fs::write(&new, "other").unwrap();
    fs::rename(below("a"), &new).unwrap();
    assert!(fs::read(&new).unwrap() == content());
    assert_eq!(error_of(fs::metadata(below("a"))), Some(2));
}

#[test]
fn a_bad_range_is_an_error_there_and_nowhere_else() {
    let plan = FaultPlan::new().bad_range(Reads, 65_536..65_537).on("a");
    let Some((real, files)) = mirrored(plan) else { return };
    fs::write(real.join("b"), content()).unwrap();
    let file = File::open(files.path().join("a")).unwrap();
    let mut page = [0; 4096];
    for (offset, error) in [(61_440, None), (65_536, EIO), (69_632, None), (65_536, EIO)] {
        assert_eq!(error_of(file.read_exact_at(&mut page, offset)), error, "at {offset}");
    }
    // A program that reads from the start gets all that is before.
    let mut data = Vec::new();
    let failed = File::open(files.path().join("a")).unwrap().read_to_end(&mut data);
    assert_eq!((error_of(failed), data.len()), (EIO, 65_536));
    assert!(fs::read(files.path().join("b")).unwrap() == content());

    files.set_plan(FaultPlan::new().bad_range(Writes, 10..11));
    let file = File::options().write(true).open(files.path().join("a")).unwrap();
    assert_eq!(error_of(file.write_all_at(b"xy", 9)), EIO);
    file.write_all_at(b"xy", 11).unwrap();
    assert_eq!(fs::read(real.join("a")).unwrap()[9..13], [&content()[9..11], b"xy"].concat());
}

#[test]
fn the_nth_write_or_flush_fails_and_the_next_does_not() {
    let plan = FaultPlan::new().failing(Writes, 1).failing(Flush, 1);
    let Some((_real, files)) = mirrored(plan) else { return };
    let mut file = File::create(files.path().join("new")).unwrap();
    let writes: Vec<_> = (0..3).map(|_| error_of(file.write_all(b"x"))).collect();
    let flushes: Vec<_> = (0..3).map(|_| error_of(file.sync_all())).collect();
    assert_eq!((writes, flushes), (vec![None, EIO, None], vec![None, EIO, None]));
    let kinds: Vec<_> = files.requests().iter().map(|request| request.kind).collect();
    assert_eq!(kinds, [Writes, Writes, Writes, Flush, Flush, Flush]);
}

#[test]
fn a_full_file_system_takes_what_fits() {
    let Some((real, files)) = mirrored(FaultPlan::new().full_from(10_000)) else { return };
    let outcome = fs::write(files.path().join("new"), content());
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::StorageFull);
    assert!(fs::read(real.join("new")).unwrap() == content()[..10_000]);
}

#[test]
fn a_file_shrinks_or_changes_while_it_is_read() {
    let shrink = FaultPlan::new().with(Trigger::Nth(Reads, 1), FileFault::Shrink(1000));
    let Some((_real, files)) = mirrored(shrink) else { return };
    let path = files.path().join("a");
    let mut file = File::open(&path).unwrap();
    let mut first = vec![0; BYTES / 2];
    let length = file.metadata().unwrap().len();
    file.read_exact(&mut first[..4096]).unwrap();
    // Read-ahead may have the rest of the first half already.
    let mut data = Vec::new();
    file.read_to_end(&mut data).unwrap();
    assert!(4096 + data.len() < length as usize, "{}", data.len());
    assert_eq!(fs::metadata(&path).unwrap().len(), 1000);

    files.set_plan(FaultPlan::new().with(Trigger::Nth(Reads, 0), FileFault::Change));
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let data = fs::read(&path).unwrap();
    let after = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(after.duration_since(before).unwrap(), Duration::from_secs(1));
    assert_eq!((data.len(), data[0]), (1000, !content()[0]));
}

#[test]
fn a_hanging_request_waits_alone_until_it_is_released() {
    let plan = FaultPlan::new().with(Trigger::Nth(Reads, 0), FileFault::Hang).on("a");
    let Some((real, files)) = mirrored(plan) else { return };
    fs::write(real.join("b"), "other").unwrap();
    let path = files.path().join("a");
    let reader = std::thread::spawn(move || fs::read(path));
    assert!(files.wait_for_hang(PATIENCE));
    assert_eq!(fs::read(files.path().join("b")).unwrap(), b"other");
    assert!(!reader.is_finished());
    files.release();
    assert!(reader.join().unwrap().unwrap() == content());
}

#[test]
fn of_a_device_that_is_gone_every_request_fails() {
    let plan = FaultPlan::new().with(Trigger::Nth(Writes, 1), FileFault::Remove);
    let Some((real, files)) = mirrored(plan) else { return };
    let new = files.path().join("new");
    let mut file = File::create(&new).unwrap();
    file.write_all(b"x").unwrap();
    assert_eq!(error_of(file.write_all(b"x")), ENODEV);
    assert_eq!(error_of(file.sync_all()), ENODEV);
    assert_eq!(error_of(fs::metadata(&new)), ENODEV);
    assert_eq!(error_of(File::create(files.path().join("b"))), ENODEV);
    files.plug();
    file.write_all(b"y").unwrap();
    assert_eq!(fs::read(real.join("new")).unwrap(), b"xy");
    files.unplug();
    assert_eq!(error_of(fs::read_dir(files.path())), ENODEV);
}

#[test]
fn a_panic_leaves_no_mount_and_no_program_that_waits() {
    let real = TempDir::new();
    fs::write(real.join("a"), content()).unwrap();
    let mut point = PathBuf::new();
    let mut reader = None;
    let hang = FaultPlan::new().with(Trigger::From(Reads, 0), FileFault::Hang);
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let files = match FaultyFiles::over(real.path(), hang) {
            Ok(files) => files,
            Err(need) => return testkit::skip(need),
        };
        point = files.path().to_owned();
        let path = point.join("a");
        reader = Some(std::thread::spawn(move || fs::read(path)));
        assert!(files.wait_for_hang(PATIENCE));
        std::panic::resume_unwind(Box::new("a test that fails"));
    }));
    if outcome.is_ok() {
        return;
    }
    reader.unwrap().join().unwrap().unwrap();
    assert!(!mounts().contains(point.to_str().unwrap()));
    assert!(!point.exists());
    assert!(fs::read(real.join("a")).unwrap() == content(), "the real files stay");
}

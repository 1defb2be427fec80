//! Each fault of a faulty disk as a program meets it, raw and through a file system, and that
//! nothing of the disk is left, also of one whose process was killed.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use testkit::disk_model::RequestKind::{self, Flush, Read as Reads, Write as Writes};
use testkit::{Beyond, FaultPlan, FaultyDisk, FileFault, FileSystem, Trigger};

const MIB: u64 = 1 << 20;
const PAGE: usize = 4096;
const EIO: Option<i32> = Some(5);
const PATIENCE: Duration = Duration::from_secs(20);

/// A disk; if it cannot be made, the reason is printed.
fn disk(bytes: u64, plan: FaultPlan) -> Option<FaultyDisk> {
    FaultyDisk::new(bytes, plan).map_err(testkit::skip).ok()
}

/// Past the page cache: that of a block device stays while any program, as `losetup`, has it open.
fn direct(disk: &FaultyDisk) -> File {
    let mut options = File::options();
    options.read(true).write(true).custom_flags(testkit::O_DIRECT);
    options.open(disk.device()).unwrap()
}

fn content(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| 1 + (at / 4096 % 255) as u8).collect()
}

fn error_of<T>(outcome: io::Result<T>) -> Option<i32> {
    outcome.err().and_then(|error| error.raw_os_error())
}

fn write_durably(path: &Path, data: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(data)?;
    file.sync_all()
}

/// A page of memory where direct I/O takes it.
struct Page(Vec<u8>, usize);

impl Page {
    fn new() -> Self {
        let room = vec![7; 2 * PAGE];
        let start = room.as_ptr().align_offset(PAGE);
        Self(room, start)
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.0[self.1..self.1 + PAGE]
    }
}

#[test]
fn the_nth_request_of_a_kind_fails_and_no_other() {
    let plan = FaultPlan::new().failing(Writes, 1).failing(Reads, 2).failing(Flush, 0);
    let Some(disk) = disk(MIB, plan) else { return };
    let file = direct(&disk);
    let mut page = Page::new();
    let writes: Vec<_> =
        (0..3).map(|n| error_of(file.write_all_at(page.bytes(), n << 12))).collect();
    let reads: Vec<_> =
        (0..4).map(|n| error_of(file.read_exact_at(page.bytes(), n << 12))).collect();
    let flushes: Vec<_> = (0..2).map(|_| error_of(file.sync_all())).collect();
    assert_eq!(writes, [None, EIO, None]);
    assert_eq!(reads, [None, None, EIO, None]);
    assert_eq!(flushes, [EIO, None]);
    let count = |kind: RequestKind| disk.requests().iter().filter(|it| it.kind == kind).count();
    assert_eq!((count(Writes), count(Reads), count(Flush)), (3, 4, 2), "{:?}", disk.requests());
}

#[test]
fn each_file_system_keeps_its_files_on_a_disk_without_faults() {
    for (file_system, bytes) in [
        (FileSystem::Ext4, 32 * MIB),
        (FileSystem::Xfs, 320 * MIB),
        (FileSystem::Other("vfat", &[]), 32 * MIB),
    ] {
        let Some(disk) = disk(bytes, FaultPlan::new()) else { return };
        let mount = match disk.mount(file_system) {
            Ok(mount) => mount,
            Err(need) => {
                testkit::skip(need);
                continue;
            }
        };
        let file = mount.path().join("file");
        fs::write(&file, content(3 * MIB)).unwrap();
        drop(mount);
        let mount = disk.mount_again(file_system).unwrap();
        assert!(fs::read(mount.path().join("file")).unwrap() == content(3 * MIB));
    }
}

/// What a program must be able to rely on, at each write and each flush that its fsync causes: an
/// error, or its data after the next mount.
#[test]
fn ext4_reports_each_failed_write_or_keeps_the_data() {
    let data = content(64 << 10);
    let Some(first) = disk(16 * MIB, FaultPlan::new()) else { return };
    let mount = first.mount(FileSystem::Ext4).unwrap();
    write_durably(&mount.path().join("file"), &data).unwrap();
    let requests = first.requests();
    drop(mount);
    for kind in [Writes, Flush] {
        let count = requests.iter().filter(|request| request.kind == kind).count() as u64;
        assert!((1..40).contains(&count), "{requests:?}");
        let mut reported = 0;
        for number in 0..count {
            let disk = disk(16 * MIB, FaultPlan::new().failing(kind, number)).unwrap();
            let mount = disk.mount(FileSystem::Ext4).unwrap();
            let outcome = write_durably(&mount.path().join("file"), &data);
            drop(mount);
            disk.set_plan(FaultPlan::new());
            match outcome {
                Err(error) => {
                    // EROFS, once the journal has been aborted.
                    assert!(matches!(error.raw_os_error(), Some(5 | 30)), "{error}");
                    reported += 1;
                }
                Ok(()) => {
                    let mount = disk.mount_again(FileSystem::Ext4).unwrap();
                    let kept = fs::read(mount.path().join("file")).unwrap();
                    assert!(kept == data, "{kind:?} {number} was lost in silence");
                }
            }
        }
        assert!(reported > 0, "no program saw that a {kind:?} failed");
    }
}

#[test]
fn a_bad_range_fails_the_read_of_the_file_that_is_there() {
    let Some(disk) = disk(16 * MIB, FaultPlan::new()) else { return };
    let mount = disk.mount(FileSystem::Ext4).unwrap();
    let [good, bad] = ["good", "bad"].map(|name| mount.path().join(name));
    write_durably(&good, &content(MIB)).unwrap();
    let before = disk.requests().len();
    write_durably(&bad, &content(MIB)).unwrap();
    let largest = disk.requests().split_off(before).into_iter().max_by_key(|it| it.len).unwrap();
    drop(mount);
    let range = largest.offset + 8192..largest.offset + 8193;
    disk.set_plan(FaultPlan::new().bad_range(Reads, range));
    let mount = disk.mount_again(FileSystem::Ext4).unwrap();
    assert!(fs::read(&good).unwrap() == content(MIB));
    let mut data = Vec::new();
    let outcome = File::open(&bad).unwrap().read_to_end(&mut data);
    assert_eq!(error_of(outcome), EIO);
    assert!(data.len() < MIB as usize && data.len() % PAGE == 0, "{}", data.len());
    drop(mount);
}

#[test]
fn a_disk_that_claims_too_much_reports_success_and_loses_data() {
    let size = 16 * MIB;
    for (beyond, at_start, at_end) in [(Beyond::Dropped, 1, 0), (Beyond::Wraps, 9, 9)] {
        let plan = FaultPlan::new().true_size(size, beyond);
        let Some(disk) = disk(64 * MIB, plan) else { return };
        let file = direct(&disk);
        let mut page = Page::new();
        for (byte, offset) in [(1, 0), (9, 2 * size)] {
            page.bytes().fill(byte);
            file.write_all_at(page.bytes(), offset).unwrap();
            file.sync_all().unwrap();
        }
        for (byte, offset) in [(at_start, 0), (at_end, 2 * size)] {
            file.read_exact_at(page.bytes(), offset).unwrap();
            assert!(page.bytes().iter().all(|own| *own == byte), "{beyond:?} at {offset}");
        }
    }
    // The journal is in the middle and is kept: mounting succeeds, and only the data is wrong.
    let plan = FaultPlan::new().true_size(48 * MIB, Beyond::Dropped);
    let Some(disk) = disk(64 * MIB, plan) else { return };
    let mount = disk.mount(FileSystem::Ext4).unwrap();
    let file = mount.path().join("file");
    write_durably(&file, &content(50 * MIB)).unwrap();
    drop(mount);
    let _mount = disk.mount_again(FileSystem::Ext4).unwrap();
    let kept = fs::read(&file).unwrap();
    assert_eq!(kept.len() as u64, 50 * MIB);
    assert!(kept != content(50 * MIB) && kept[..PAGE] == content(50 * MIB)[..PAGE]);
}

#[test]
fn an_unplugged_disk_fails_until_it_is_back_with_what_it_had() {
    let Some(disk) = disk(16 * MIB, FaultPlan::new()) else { return };
    let mount = disk.mount(FileSystem::Ext4).unwrap();
    let [safe, lost] = ["safe", "lost"].map(|name| mount.path().join(name));
    write_durably(&safe, &content(MIB)).unwrap();
    disk.unplug();
    assert!(write_durably(&lost, &content(MIB)).is_err());
    drop(mount);
    let file = direct(&disk);
    assert!(file.read_exact_at(Page::new().bytes(), 0).is_err());
    disk.plug();
    file.read_exact_at(Page::new().bytes(), 0).unwrap();
    drop(file);
    let _mount = disk.mount_again(FileSystem::Ext4).unwrap();
    assert!(fs::read(&safe).unwrap() == content(MIB));

    // By the plan, in the midst of the writing of a file.
    let plan = FaultPlan::new().with(Trigger::Nth(Writes, 0), FileFault::Remove);
    disk.set_plan(plan);
    assert!(write_durably(&lost, &content(MIB)).is_err());
}

#[test]
fn a_full_disk_refuses_a_write_as_a_whole() {
    let Some(disk) = disk(MIB, FaultPlan::new().full_from(6144)) else { return };
    let file = direct(&disk);
    let mut page = Page::new();
    let writes: Vec<_> =
        (0..3).map(|n| error_of(file.write_all_at(page.bytes(), n << 12))).collect();
    assert_eq!(writes, [None, Some(28), Some(28)]);
    file.read_exact_at(page.bytes(), 4096).unwrap();
    assert!(page.bytes().iter().all(|byte| *byte == 0));
}

#[test]
fn an_fsync_waits_for_a_write_that_hangs() {
    let plan = FaultPlan::new().with(Trigger::Nth(Writes, 0), FileFault::Hang);
    let Some(disk) = disk(16 * MIB, plan) else { return };
    let mount = disk.mount(FileSystem::Ext4).unwrap();
    let file = mount.path().join("file");
    let own = file.clone();
    let writer = std::thread::spawn(move || write_durably(&own, &content(MIB)));
    assert!(disk.wait_for_hang(PATIENCE));
    assert!(!writer.is_finished());
    disk.release();
    writer.join().unwrap().unwrap();
    assert!(fs::read(&file).unwrap() == content(MIB));

    // One that is never released does not hold up the end.
    disk.set_plan(FaultPlan::new().with(Trigger::From(Writes, 0), FileFault::Hang));
    fs::write(&file, "other").unwrap();
    drop(mount);
    disk.set_plan(FaultPlan::new());
    let _mount = disk.mount_again(FileSystem::Ext4).unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"other");
}

fn mounts() -> String {
    fs::read_to_string("/proc/self/mountinfo").unwrap()
}

/// What is attached to a loop device.
fn attached(device: &str) -> String {
    let name = device.trim_start_matches("/dev/");
    fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).unwrap_or_default()
}

#[test]
fn a_panic_leaves_neither_mount_nor_device() {
    let mut left = None;
    let hang = FaultPlan::new().with(Trigger::From(Writes, 0), FileFault::Hang);
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let Some(disk) = disk(16 * MIB, hang) else { return };
        let mount = disk.mount(FileSystem::Ext4).unwrap();
        fs::write(mount.path().join("file"), content(MIB)).unwrap();
        let device = disk.device().to_str().unwrap().to_owned();
        left = Some((mount.path().to_owned(), attached(&device), device));
        std::panic::resume_unwind(Box::new("a test that fails"));
    }));
    let (Err(_), Some((point, file, device))) = (outcome, left) else { return };
    assert!(!mounts().contains(point.to_str().unwrap()) && !point.exists());
    assert!(!file.is_empty());
    assert_ne!(attached(&device), file);
    assert!(!mounts().contains(Path::new(file.trim()).parent().unwrap().to_str().unwrap()));
}

/// The disk that the next test kills together with its process, one thread of which waits for it.
#[test]
#[ignore = "is started by the test below"]
fn a_disk_that_is_never_given_back() {
    let Some(disk) = disk(16 * MIB, FaultPlan::new()) else { return };
    let mount = disk.mount(FileSystem::Ext4).unwrap();
    disk.set_plan(FaultPlan::new().with(Trigger::From(Writes, 0), FileFault::Hang));
    let file = mount.path().join("file");
    let _writer = std::thread::spawn(move || write_durably(&file, b"here"));
    assert!(disk.wait_for_hang(PATIENCE));
    println!("\ndisk {} {}", disk.device().display(), mount.path().display());
    io::stdout().flush().unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn what_a_killed_test_left_is_removed_by_the_next() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "a_disk_that_is_never_given_back"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let words = io::BufReader::new(child.stdout.take().unwrap());
    let mut lines = io::BufRead::lines(words).map_while(Result::ok);
    let left = lines.find_map(|line| line.strip_prefix("disk ").map(str::to_owned));
    let before = left.as_deref().and_then(|left| left.split(' ').next()).map(attached);
    child.kill().unwrap();
    let (Some(left), Some(before)) = (left, before) else {
        child.wait().unwrap();
        return testkit::skip("root, /dev/fuse and free loop devices");
    };
    // It cannot end before its thread does, which waits for a server that is gone.
    let end = std::time::Instant::now() + PATIENCE;
    let is_zombie = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.contains(") Z ")
    };
    while !is_zombie() {
        assert!(std::time::Instant::now() < end, "the killed test goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
    let (device, point) = left.split_once(' ').unwrap();
    assert!(!before.is_empty());
    let _next = disk(MIB, FaultPlan::new()).unwrap();
    child.wait().unwrap();
    assert!(!mounts().contains(&format!("terrace-test-{} ", child.id())), "{}", mounts());
    assert!(!mounts().contains(point), "{}", mounts());
    assert_ne!(attached(device), before);
    assert!(!Path::new(point).exists());
}

//! Bad targets and faults: each gives one clear error or keeps what was measured, and
//! nothing is left behind. Parts need root, a mount or a loop device, and say so.
#![allow(clippy::unwrap_used, reason = "what helpers cannot do fails the test")]

use machine::Root;
use measure::storage::iolat::{self, EndReason, Prober};
use measure::storage::{
    Access, DeviceLimits, IolatPlan, PhaseName, SeqPlan, ServedBy, StorageTarget,
    iolat as measure_iolat, seqio, survey_device,
};
use measure::{Budget, Error, ErrorKind};
use model::Bytes;
use model::bytes::MIB;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use sys::device::FileDevice;
use testkit::{Faulty, LoopDevice, MemoryDevice, TempDir, Tmpfs};

fn minute() -> Budget {
    Budget::of(Duration::from_secs(60))
}

fn back_to_back(count: Option<u64>) -> IolatPlan {
    IolatPlan { count, interval: Duration::ZERO, ..IolatPlan::default() }
}

fn refused(path: &Path) -> Error {
    let iolat = measure_iolat(path, &back_to_back(Some(1)), &minute(), &Root::system());
    let seqio = seqio(path, &SeqPlan::default(), &minute(), &Root::system());
    let (iolat, seqio) = (iolat.unwrap_err(), seqio.unwrap_err());
    assert_eq!((iolat.kind, iolat.to_string()), (seqio.kind, seqio.to_string()));
    iolat
}

/// An error and its causes, as the binary prints them.
fn line(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[test]
fn what_is_no_target_is_named() {
    let directory = TempDir::new();
    let fifo = directory.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let socket = directory.join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let empty = directory.join("empty");
    std::fs::File::create(&empty).unwrap();
    let rows = [
        (fifo.as_path(), "FIFO"),
        (&socket, "socket"),
        (&empty, "empty"),
        (Path::new("/dev/null"), "character device"),
        (Path::new("/dev/tty"), "character device"),
        (Path::new("/proc/self/status"), "kernel"),
        (&directory.join("absent"), "no such file"),
    ];
    for (path, word) in rows {
        let error = refused(path);
        assert_eq!(error.kind, ErrorKind::Usage, "{}", path.display());
        let line = line(&error);
        assert!(line.contains(word) && !line.contains("os error"), "{line}");
        assert!(line.contains(&*path.to_string_lossy()), "{line}");
    }
}

#[test]
fn a_missing_right_is_impossible_here() {
    // Root may do all of this; the real thing is then tried on a read-only mount below.
    if testkit::is_root() {
        return testkit::skip("an ordinary user");
    }
    let directory = TempDir::new();
    let closed = directory.join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
    assert_eq!(refused(&closed).kind, ErrorKind::Impossible);
}

#[test]
fn a_read_only_file_system_is_impossible_here() {
    let mount = match Tmpfs::mount(MIB) {
        Ok(mount) => mount,
        Err(need) => return testkit::skip(need),
    };
    let status = Command::new("mount").args(["-o", "remount,ro"]).arg(mount.path()).status();
    if !status.is_ok_and(|status| status.success()) {
        return testkit::skip("the right to remount");
    }
    let error = refused(mount.path());
    assert_eq!(error.kind, ErrorKind::Impossible);
    assert!(line(&error).contains("read-only"), "{}", line(&error));
}

#[test]
fn a_small_file_system_gets_a_smaller_file_or_an_error() {
    let mount = match Tmpfs::mount(32 * MIB) {
        Ok(mount) => mount,
        Err(need) => return testkit::skip(need),
    };
    let plan = SeqPlan { size: Bytes(1 << 40), ..SeqPlan::default() };
    let report = seqio(mount.path(), &plan, &minute(), &Root::system()).unwrap();
    assert!(report.failure.is_none(), "{:?}", report.failure);
    assert!(report.size_bytes <= 24 * MIB, "a quarter is left to others");
    assert!(report.notes.iter().any(|note| note.contains("free")));
    std::fs::write(mount.path().join("other"), vec![1; 31 * MIB as usize]).unwrap();
    let error = seqio(mount.path(), &plan, &minute(), &Root::system()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Impossible);
    assert!(error.to_string().contains("free"), "{error}");
}

/// The space is there when it is asked for and gone when it is written.
#[test]
fn a_disk_that_fills_up_meanwhile_is_an_error_that_keeps_the_rest() {
    let mount = match Tmpfs::mount(64 * MIB) {
        Ok(mount) => mount,
        Err(need) => return testkit::skip(need),
    };
    let target = StorageTarget::open(mount.path(), &Root::system()).unwrap();
    let (size, _) = target.fit(&Root::system(), Bytes(40 * MIB), Bytes(MIB)).unwrap();
    assert_eq!(size, Bytes(40 * MIB));
    std::fs::write(mount.path().join("other"), vec![1; 50 * MIB as usize]).unwrap();
    let mode = measure::storage::TransferMode::Buffered;
    let mut stream = measure::storage::stream::Stream::new(target.file(), mode, MIB, 1, 1).unwrap();
    let moved = stream.write(0..size.0, &minute());
    let failure = moved.failure.unwrap();
    assert_eq!(failure.kind, ErrorKind::Failed);
    assert!(moved.bytes > 0 && moved.bytes < size.0);
    let line = line(&failure);
    assert!(line.contains("space") || line.contains("full"), "{line}");
}

#[test]
fn failing_requests_are_counted_and_located() {
    let device = Faulty::new(MemoryDevice::new(MIB as usize)).failing(3).failing(9);
    let plan = back_to_back(Some(50));
    let mut prober = Prober::new(&device, MIB, &plan, 1).unwrap();
    let requests = iolat::run(&mut prober, &plan, &minute(), None);
    assert_eq!((requests.requests, requests.failed), (48, 2));
    assert_eq!(requests.ended, EndReason::Count);
    let line = line(&requests.failure.unwrap());
    assert!(line.contains("at byte"), "{line}");
    assert!(line.ends_with("input/output error"), "{line}");
}

/// A loop device whose backing file was cut short answers EIO behind the cut: a real
/// device error, from the kernel, without any special driver.
#[test]
fn a_real_device_error_is_reported_and_ends_a_hopeless_run() {
    let directory = TempDir::in_dir(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let image = directory.join("image");
    std::fs::write(&image, vec![7; 4 * MIB as usize]).unwrap();
    let device = match LoopDevice::over(&image) {
        Ok(device) => device,
        Err(need) => return testkit::skip(need),
    };
    if std::fs::File::open(device.path()).is_err() {
        return testkit::skip("the right to open loop devices");
    }
    let plan = IolatPlan { access: Access::Direct, ..back_to_back(Some(100)) };
    let healthy = measure_iolat(device.path(), &plan, &minute(), &Root::system()).unwrap();
    assert_eq!((healthy.requests.requests, healthy.requests.failed), (100, 0));
    let file = std::fs::OpenOptions::new().write(true).open(&image).unwrap();
    file.set_len(0).unwrap();
    let report = measure_iolat(device.path(), &plan, &minute(), &Root::system()).unwrap();
    assert_eq!(report.requests.ended, EndReason::Failure);
    assert_eq!(report.requests.failed, iolat::MOST_FAILURES);
    let failure = report.requests.failure.unwrap();
    assert!(line(&failure).ends_with("input/output error"), "{}", line(&failure));
    let report = seqio(device.path(), &SeqPlan::default(), &minute(), &Root::system()).unwrap();
    assert_eq!(report.phases.len(), 1);
    assert!(!report.phases[0].complete);
    assert_eq!(report.failure.unwrap().kind, ErrorKind::Failed);
}

#[test]
fn a_file_that_is_cut_meanwhile_ends_the_run_and_keeps_the_rest() {
    let directory = TempDir::new();
    let path = directory.join("shrinking");
    let measured = |after_ms| {
        std::fs::write(&path, vec![1; 8 * MIB as usize]).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(after_ms));
                let file = std::fs::OpenOptions::new().write(true).open(&path);
                file.and_then(|file| file.set_len(0)).unwrap();
            });
            let report = measure_iolat(&path, &back_to_back(None), &minute(), &Root::system());
            report.ok().filter(|report| report.requests.requests > 0)
        })
    };
    // One that is held up for so long meets an empty file; what was measured before is kept.
    let report = [100, 1000, 5000].into_iter().find_map(measured).unwrap();
    assert_eq!(report.requests.ended, EndReason::Failure);
    let line = line(&report.requests.failure.unwrap());
    assert!(line.contains("shorter"), "{line}");
}

#[test]
fn a_file_that_is_removed_meanwhile_is_measured_to_the_end() {
    let directory = TempDir::new();
    let path = directory.join("doomed");
    std::fs::write(&path, vec![1; MIB as usize]).unwrap();
    let device = FileDevice::new(sys::file::open_read(&path, false).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    let plan = back_to_back(Some(100));
    let mut prober = Prober::new(&device, MIB, &plan, 1).unwrap();
    let requests = iolat::run(&mut prober, &plan, &minute(), None);
    assert_eq!((requests.requests, requests.failed), (100, 0));
}

#[test]
fn a_budget_that_is_too_short_gives_parts_that_say_so() {
    let directory = TempDir::in_dir(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let plan = SeqPlan { size: Bytes(512 * MIB), ..SeqPlan::default() };
    let short = Budget::of(Duration::from_millis(30));
    let report = seqio(directory.path(), &plan, &short, &Root::system()).unwrap();
    assert!(report.failure.is_none(), "{:?}", report.failure);
    let write = &report.phases[0];
    assert_eq!(write.name, PhaseName::Write);
    assert!(!write.complete && write.bytes < 512 * MIB, "{write:?}");
    assert_eq!(report.durable_bytes_per_s, None);
    assert!(directory.names().is_empty());
}

/// Without any of the kernel's files nothing fails, and nothing is claimed.
#[test]
fn a_machine_that_tells_nothing_is_measured_all_the_same() {
    let fake = testkit::FakeRoot::bare();
    let root = Root::at(fake.path());
    let directory = TempDir::in_dir(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let plan = IolatPlan { region: Some(Bytes(MIB)), ..back_to_back(Some(50)) };
    let report = measure_iolat(directory.path(), &plan, &minute(), &root).unwrap();
    assert_eq!(report.requests.requests, 50);
    assert!(matches!(report.served.by, ServedBy::Unknown | ServedBy::Ram));
    assert_eq!(report.target.disk, None);
    let limits = DeviceLimits {
        // A disk that others keep busy takes half a second for the first MiB.
        total: Duration::from_secs(3),
        written: Bytes(32 * MIB),
        raw: true,
    };
    let report = survey_device(directory.path(), &limits, &root).unwrap();
    assert!(report.raw_read_ns.is_none() && report.raw_refused.is_some());
}

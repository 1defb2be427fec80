//! The storage probes on real file systems: what they measure, who they say served
//! it, and that they leave nothing behind and touch nothing of the user's.
#![allow(clippy::unwrap_used, reason = "what helpers cannot do fails the test")]

use machine::Root;
use measure::storage::{
    Access, DeviceLimits, IolatPlan, PhaseName, SeqPlan, ServedBy, TransferMode, iolat,
    random_read, raw_compare, seqio, survey_device, survey_ram_disk,
};
use measure::{Budget, ErrorKind};
use model::Bytes;
use model::bytes::MIB;
use model::probe::SERVED_BY_DEVICE;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use testkit::TempDir;

/// The process's I/O counters, which say who served a probe, count all threads: tests
/// that look at them run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    // A test that failed under the lock has already been reported.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A budget that no test here comes near unless something hangs.
fn minute() -> Budget {
    Budget::of(Duration::from_secs(60))
}

/// A directory on a disk: the build's own; `None` where that is in RAM.
fn on_disk() -> Option<TempDir> {
    let directory = TempDir::in_dir(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let system = sys::file::file_system_of(directory.path()).unwrap();
    if system.in_ram || system.network {
        testkit::skip("a build directory on a disk");
        return None;
    }
    Some(directory)
}

/// A directory on tmpfs that exists on every Linux.
fn in_ram() -> Option<TempDir> {
    let shm = Path::new("/dev/shm");
    let system = sys::file::file_system_of(shm).ok();
    if !system.is_some_and(|system| system.in_ram) || std::fs::metadata(shm).is_err() {
        testkit::skip("a tmpfs at /dev/shm");
        return None;
    }
    Some(TempDir::in_dir(shm))
}

fn quick(access: Access, count: u64) -> IolatPlan {
    IolatPlan {
        count: Some(count),
        interval: Duration::ZERO,
        region: Some(Bytes(4 * MIB)),
        access,
        ..IolatPlan::default()
    }
}

fn user_file(directory: &TempDir) -> PathBuf {
    let path = directory.join("precious");
    let mut content = vec![0; 2 * MIB as usize];
    testkit::Random(7).fill(&mut content);
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&content).unwrap();
    file.sync_all().unwrap();
    path
}

fn state(path: &Path) -> (Vec<u8>, i64, i64, u64) {
    let metadata = std::fs::metadata(path).unwrap();
    let mut content = Vec::new();
    std::fs::File::open(path).unwrap().read_to_end(&mut content).unwrap();
    (content, metadata.mtime_nsec(), metadata.mtime(), metadata.ino())
}

#[test]
fn a_device_a_cache_and_ram_are_recognized() {
    let _alone = alone();
    let Some(disk) = on_disk() else { return };
    let served = |path: &Path, access| {
        let report = iolat(path, &quick(access, 300), &minute(), &Root::system()).unwrap();
        assert_eq!((report.requests.requests, report.requests.failed), (300, 0));
        assert!(report.requests.latency.p99_ns.is_some());
        assert!(!report.served.evidence.is_empty());
        report.served.by
    };
    assert_eq!(served(disk.path(), Access::Direct), ServedBy::Device);
    assert_eq!(served(disk.path(), Access::Cold), ServedBy::Device);
    assert_eq!(served(disk.path(), Access::Cached), ServedBy::PageCache);
    if let Some(ram) = in_ram() {
        // O_DIRECT is accepted there and changes nothing: the classic trap.
        assert_eq!(served(ram.path(), Access::Direct), ServedBy::Ram);
        assert!(ram.names().is_empty());
    }
    assert!(disk.names().is_empty(), "{:?}", disk.names());
}

#[test]
fn a_cached_read_is_faster_than_a_cold_one() {
    let _alone = alone();
    let Some(disk) = on_disk() else { return };
    let median = |access| {
        let report = iolat(disk.path(), &quick(access, 500), &minute(), &Root::system()).unwrap();
        report.requests.latency.p50_ns.unwrap()
    };
    assert!(median(Access::Cold) > 3.0 * median(Access::Cached));
}

/// The order repeats after 64 blocks; without eviction 9 of 10 reads would be cached.
#[test]
fn a_cold_region_stays_cold_when_it_is_read_again() {
    let _alone = alone();
    let Some(disk) = on_disk() else { return };
    let plan = IolatPlan { region: Some(Bytes(MIB / 4)), ..quick(Access::Cold, 640) };
    let report = iolat(disk.path(), &plan, &minute(), &Root::system()).unwrap();
    assert_eq!(report.served.by, ServedBy::Device, "{:?}", report.served);
}

#[test]
fn writes_go_to_an_own_file_only() {
    let _alone = alone();
    let Some(disk) = on_disk() else { return };
    let plan = IolatPlan { write: true, ..quick(Access::Cold, 20) };
    let report = iolat(disk.path(), &plan, &minute(), &Root::system()).unwrap();
    assert_eq!((report.requests.requests, report.requests.failed), (20, 0));
    assert_eq!(report.served.by, ServedBy::Device, "{:?}", report.served);
    let path = user_file(&disk);
    let error = iolat(&path, &plan, &minute(), &Root::system()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert!(error.to_string().contains("name a directory"), "{error}");
}

#[test]
fn a_file_of_the_users_is_as_it_was_afterwards() {
    let _alone = alone();
    let Some(disk) = on_disk() else { return };
    let path = user_file(&disk);
    let before = state(&path);
    for access in [Access::Cold, Access::Cached, Access::Direct] {
        let report = iolat(&path, &quick(access, 50), &minute(), &Root::system()).unwrap();
        assert_eq!(report.requests.requests, 50);
    }
    for mode in [TransferMode::Buffered, TransferMode::Direct] {
        let plan = SeqPlan { mode, ..SeqPlan::default() };
        let report = seqio(&path, &plan, &minute(), &Root::system()).unwrap();
        assert!(report.failure.is_none(), "{:?}", report.failure);
        let names: Vec<PhaseName> = report.phases.iter().map(|p| p.name).collect();
        assert_eq!(names, [PhaseName::Read]);
        assert_eq!(report.phases[0].bytes, 2 * MIB);
    }
    assert_eq!(state(&path), before);
    assert_eq!(disk.names(), ["precious"]);
}

#[test]
fn every_mode_writes_syncs_reads_cold_and_cached() {
    let _alone = alone();
    let Some(disk) = on_disk() else { return };
    for mode in [TransferMode::Buffered, TransferMode::Direct, TransferMode::Uncached] {
        let plan = SeqPlan { size: Bytes(32 * MIB), mode, ..SeqPlan::default() };
        let report = match seqio(disk.path(), &plan, &minute(), &Root::system()) {
            Err(error) if mode == TransferMode::Uncached && error.kind == ErrorKind::Impossible => {
                testkit::skip("RWF_DONTCACHE (Linux 6.14)");
                continue;
            }
            other => other.unwrap(),
        };
        assert!(report.failure.is_none(), "{mode:?} {:?}", report.failure);
        let names: Vec<PhaseName> = report.phases.iter().map(|p| p.name).collect();
        use PhaseName::{CachedRead, ColdRead, Sync, Write};
        assert_eq!(names, [Write, Sync, ColdRead, CachedRead]);
        for phase in &report.phases {
            assert!(phase.complete, "{phase:?}");
            assert!(phase.name == Sync || phase.bytes == 32 * MIB, "{phase:?}");
            assert!(phase.name == Sync || !phase.series.is_empty());
        }
        let phase = |name| report.phases.iter().find(|p| p.name == name).unwrap();
        assert_eq!(phase(ColdRead).served.by, ServedBy::Device, "{mode:?}");
        assert_eq!(phase(ColdRead).cached_before_bytes, Some(0), "{mode:?}");
        assert_eq!(phase(CachedRead).served.by, ServedBy::PageCache, "{mode:?}");
        assert!(phase(ColdRead).verified_bytes > Some(0));
        assert!(report.durable_bytes_per_s.unwrap() > 0.0);
    }
    assert!(disk.names().is_empty());
}

#[test]
fn the_rates_over_time_add_up_to_the_bytes() {
    let _alone = alone();
    let Some(disk) = on_disk() else { return };
    let plan = SeqPlan { size: Bytes(64 * MIB), ..SeqPlan::default() };
    let report = seqio(disk.path(), &plan, &minute(), &Root::system()).unwrap();
    for phase in report.phases.iter().filter(|p| !p.series.is_empty()) {
        let starts = phase.series.iter().map(|rate| rate.t_s);
        let ends = starts.clone().skip(1).chain([phase.wall_s]);
        let sum: f64 = starts
            .zip(ends)
            .zip(&phase.series)
            .map(|((start, end), rate)| (end - start) * rate.bytes_per_s)
            .sum();
        let error = (sum - phase.bytes as f64).abs() / phase.bytes as f64;
        assert!(error < 0.01, "{sum} of {} in {:?}", phase.bytes, phase.name);
    }
}

/// tmpfs has no uncached I/O: that is an error, not an empty result.
#[test]
fn a_mode_that_the_file_system_lacks_is_impossible_here() {
    let _alone = alone();
    let Some(ram) = in_ram() else { return };
    let plan = SeqPlan { size: Bytes(4 * MIB), mode: TransferMode::Uncached, ..SeqPlan::default() };
    match seqio(ram.path(), &plan, &minute(), &Root::system()) {
        Err(error) => assert_eq!(error.kind, ErrorKind::Impossible, "{error}"),
        Ok(report) => assert!(report.failure.is_none(), "{:?}", report.failure),
    }
}

#[test]
fn direct_on_a_ram_disk_is_labelled() {
    let _alone = alone();
    let Some(ram) = in_ram() else { return };
    let plan = SeqPlan { size: Bytes(16 * MIB), mode: TransferMode::Direct, ..SeqPlan::default() };
    let report = seqio(ram.path(), &plan, &minute(), &Root::system()).unwrap();
    assert!(report.target.in_ram);
    for phase in &report.phases {
        assert_eq!(phase.served.by, ServedBy::Ram, "{phase:?}");
        assert!(phase.served.reason.contains("tmpfs"));
    }
}

#[test]
fn random_reads_take_turns_at_depth() {
    let _alone = alone();
    let Some(disk) = on_disk() else { return };
    let path = user_file(&disk);
    let file = sys::file::open_read(&path, true).unwrap();
    let second = Budget::of(Duration::from_millis(200));
    let report = match random_read(&file, 2 * MIB, 8, 4096, &second) {
        Err(error) if error.kind == ErrorKind::Impossible => return testkit::skip("io_uring"),
        other => other.unwrap(),
    };
    assert!(report.failure.is_none());
    assert!(report.requests > 8 && report.requests == report.latency.requests);
    assert!(report.cpu_ns_per_request.unwrap() > 0.0);
    let beyond = random_read(&file, 64 * MIB, 8, 4096, &minute()).unwrap();
    assert!(beyond.failure.unwrap().to_string().contains("byte"));
}

#[test]
fn a_device_is_surveyed_within_its_time_and_its_bytes() {
    let _alone = alone();
    let Some(disk) = on_disk() else { return };
    let limits = DeviceLimits {
        // A slow disk needs its time to be filled.
        total: Duration::from_secs(12),
        written: Bytes(128 * MIB),
        raw: true,
    };
    let started = std::time::Instant::now();
    let report = survey_device(disk.path(), &limits, &Root::system()).unwrap();
    // The sync of a write cannot be cut; ten times is not a matter of speed.
    assert!(started.elapsed() < Duration::from_secs(120));
    assert!(report.failure.is_none(), "{:?}", report.failure);
    assert!(report.written_bytes <= 128 * MIB && report.file_bytes >= 8 * MIB);
    let latency = report.random_read_ns.unwrap();
    // On a machine so busy that fewer than six windows count there is no interval.
    assert!(latency.low.is_some() || latency.trials < 6, "{latency:?}");
    assert!(latency.low.is_none_or(|low| low <= latency.median));
    assert!(latency.high.is_none_or(|high| latency.median <= high));
    assert!(latency.p50.is_some() && latency.p99.is_some());
    for rate in [&report.read_bytes_per_s, &report.write_bytes_per_s] {
        let rate = rate.as_ref().unwrap();
        assert!(rate.trials >= 1 && rate.median > 0.0, "{rate:?}");
    }
    assert_eq!(report.served_by, SERVED_BY_DEVICE, "{}", report.served_reason);
    assert!(report.raw_read_ns.is_some() != report.raw_refused.is_some());
    assert!(report.paced_read_ns.is_some());
    assert!(report.page_cache_read_ns.unwrap().median < latency.median);
    assert!(disk.names().is_empty());
}

#[test]
fn a_ram_disk_is_surveyed() {
    let _alone = alone();
    let Some(ram) = in_ram() else { return };
    let total = Duration::from_secs(2);
    let report = survey_ram_disk(ram.path(), total, &Root::system()).unwrap();
    assert!(report.file_bytes > 0 && report.first_write_bytes_per_s.is_some());
    assert!(report.write_bytes_per_s.unwrap().median > 0.0);
    assert!(report.read_bytes_per_s.unwrap().median > 0.0);
    assert!(report.random_read_ns.unwrap().median > 0.0);
    assert!(ram.names().is_empty());
}

#[test]
fn the_raw_device_is_read_beside_the_own_file_and_never_written() {
    let _alone = alone();
    let Some(disk) = on_disk() else { return };
    let image = user_file(&disk);
    let before = state(&image);
    let device = match testkit::LoopDevice::over(&image) {
        Ok(device) => device,
        Err(need) => return testkit::skip(need),
    };
    let own = disk.join("own");
    std::fs::write(&own, vec![1; MIB as usize]).unwrap();
    let own = sys::file::open_read(&own, true).unwrap();
    let part = Budget::of(Duration::from_millis(100));
    let comparison = match raw_compare(device.path(), &own, MIB, Some(false), &part) {
        Err(error) if error.kind == ErrorKind::Impossible => {
            return testkit::skip("the right to open a loop device");
        }
        other => other.unwrap(),
    };
    // Whole turns of both sides.
    assert_eq!(comparison.own.requests, comparison.raw.requests);
    assert!(comparison.own.requests >= 8);
    assert!(comparison.own.p50_ns.is_some() && comparison.raw.p50_ns.is_some());
    drop(device);
    assert_eq!(state(&image), before);
}

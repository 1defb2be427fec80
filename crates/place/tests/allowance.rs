//! The allowance says stop when it must and not before, on a tree whose counters a test moves.
//! How soon is not asserted: `restore_stops_root` shows it with a real hog.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test program")]

use machine::Root;
use model::Bytes;
use place::ErrorKind;
use place::background::{Allowance, Limits, StopReason};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testkit::FakeRoot;

const LIMITS: Limits = Limits {
    floor: Bytes(100 << 20),
    pressure_permille: 200,
    time: None,
    bytes: None,
    hurry: false,
};

/// Long enough for any look of the allowance's; nothing is asserted about how long it takes.
const WAIT: Duration = Duration::from_secs(20);

fn meminfo(available_mib: u64) -> String {
    format!("MemTotal: 4194304 kB\nMemAvailable: {} kB\n", available_mib << 10)
}

fn pressure(some_us: u64) -> String {
    let avg10 = if some_us < 1_000_000 { 0.0 } else { 9.0 };
    format!("some avg10={avg10:.2} total={some_us}\nfull avg10=0.00 total=0\n")
}

fn tree() -> FakeRoot {
    FakeRoot::bare()
        .file("/proc/meminfo", meminfo(1024))
        .file("/proc/pressure/memory", pressure(5))
        .file("/proc/vmstat", "allocstall_normal 7\nallocstall_movable 1\npgscan_anon 0\n")
}

fn path(tree: &FakeRoot, file: &str) -> PathBuf {
    Root::at(tree.path()).path(file)
}

fn start(tree: &FakeRoot, limits: Limits) -> Allowance {
    Allowance::start(&Root::at(tree.path()), limits).unwrap()
}

/// Asks until it says stop, or the time is over.
fn stopped(mut check: impl FnMut() -> Option<StopReason>, limit: Duration) -> Option<StopReason> {
    let started = Instant::now();
    while started.elapsed() < limit {
        let stop = check();
        if stop.is_some() {
            return stop;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

/// Writes the pressure file while `work` runs: a task stalls for `share_permille` of the time.
fn while_others_wait<T>(tree: &FakeRoot, share_permille: u64, work: impl FnOnce() -> T) -> T {
    let ended = AtomicBool::new(false);
    let file =
        std::fs::OpenOptions::new().write(true).open(path(tree, "/proc/pressure/memory")).unwrap();
    let started = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let waited_us = started.elapsed().as_micros() as u64 * share_permille / 1000;
                // One write of one length: a reader sees the old text or the new one.
                let text = pressure(1_000_000_000 + waited_us);
                std::os::unix::fs::FileExt::write_all_at(&file, text.as_bytes(), 0).unwrap();
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        // The first text is longer than the one that the tree has.
        while std::fs::read(path(tree, "/proc/pressure/memory")).unwrap().len() == pressure(5).len()
        {
            std::thread::yield_now();
        }
        let answer = work();
        ended.store(true, Ordering::Relaxed);
        answer
    })
}

#[test]
fn a_quiet_machine_never_stops_it() {
    let tree = tree();
    let mut allowance = start(&tree, LIMITS);
    let stop = stopped(|| allowance.check(Bytes(0)), Duration::from_millis(400));
    assert_eq!(stop, None);
    assert_eq!(allowance.room(), Bytes(924 << 20));
}

#[test]
fn free_memory_that_falls_to_the_floor_stops_it() {
    let tree = tree();
    let mut allowance = start(&tree, LIMITS);
    assert_eq!(allowance.check(Bytes(0)), None);
    std::fs::write(path(&tree, "/proc/meminfo"), meminfo(100)).unwrap();
    assert_eq!(stopped(|| allowance.check(Bytes(0)), WAIT), Some(StopReason::Floor));
    assert_eq!(allowance.room(), Bytes(0));
}

/// Asks `allowance` while others wait and the kernel looks for more pages to push out each time.
fn check_while_pages_leave(
    tree: &FakeRoot,
    allowance: &mut Allowance,
    limit: Duration,
) -> Option<StopReason> {
    let vmstat = path(tree, "/proc/vmstat");
    let mut scanned = 0;
    let check = || {
        scanned += 1;
        std::fs::write(&vmstat, format!("allocstall_normal 8\npgscan_anon {scanned}\n")).unwrap();
        allowance.check(Bytes(0))
    };
    stopped(check, limit)
}

#[test]
fn others_who_begin_to_wait_while_pages_are_pushed_out_stop_it() {
    let tree = tree();
    let mut allowance = start(&tree, LIMITS);
    let stop =
        while_others_wait(&tree, 600, || check_while_pages_leave(&tree, &mut allowance, WAIT));
    assert_eq!(stop, Some(StopReason::Pressure));
}

#[test]
fn others_who_wait_for_what_was_pushed_out_before_do_not() {
    let tree = tree();
    let mut allowance = start(&tree, LIMITS);
    let stop = while_others_wait(&tree, 900, || {
        stopped(|| allowance.check(Bytes(0)), Duration::from_millis(400))
    });
    assert_eq!(stop, None);
}

#[test]
fn others_who_waited_before_do_not() {
    let looked = |_| {
        let tree = tree();
        while_others_wait(&tree, 600, || {
            let mut allowance = start(&tree, LIMITS);
            let mut strict = start(&tree, LIMITS);
            let same = check_while_pages_leave(&tree, &mut allowance, Duration::from_millis(400));
            drop(allowance);
            (strict.check_unblocked(Bytes(0)), same)
        })
    };
    // A writer that is held up while a allowance starts shows it less than there is.
    let mut stops = (0..8).map(looked).inspect(|stops| println!("{stops:?}"));
    assert!(stops.any(|stops| stops == (None, None)));
}

#[test]
fn without_an_account_of_pressure_direct_reclaim_is_the_sign() {
    let tree = FakeRoot::bare()
        .file("/proc/meminfo", meminfo(1024))
        .file("/proc/vmstat", "allocstall_normal 7\nallocstall_movable 1\n");
    let mut allowance = start(&tree, LIMITS);
    let quiet = stopped(|| allowance.check(Bytes(0)), Duration::from_millis(250));
    assert_eq!(quiet, None);
    let more = "allocstall_normal 7\nallocstall_movable 3\n";
    std::fs::write(path(&tree, "/proc/vmstat"), more).unwrap();
    assert_eq!(stopped(|| allowance.check(Bytes(0)), WAIT), Some(StopReason::Pressure));
}

#[test]
fn a_helper_that_reads_is_not_mistaken_for_others_who_wait() {
    let tree = tree();
    let mut allowance = start(&tree, LIMITS);
    let stop = while_others_wait(&tree, 900, || {
        stopped(|| allowance.check_unblocked(Bytes(0)), Duration::from_millis(400))
    });
    assert_eq!(stop, None);
}

#[test]
fn time_and_bytes_are_budgets() {
    let tree = tree();
    let time = Some(Duration::ZERO);
    let mut allowance = start(&tree, Limits { time, ..LIMITS });
    assert_eq!(allowance.check(Bytes(0)), Some(StopReason::Budget));
    let bytes = Some(Bytes(4096));
    let mut allowance = start(&tree, Limits { bytes, ..LIMITS });
    assert_eq!(allowance.check(Bytes(4095)), None);
    assert_eq!(allowance.room(), Bytes(1));
    assert_eq!(allowance.check(Bytes(4096)), Some(StopReason::Budget));
}

#[test]
fn without_an_estimate_of_free_memory_it_does_not_start() {
    let tree = FakeRoot::bare().file("/proc/meminfo", "MemTotal: 5 kB\n");
    let error = Allowance::start(&Root::at(tree.path()), LIMITS).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Impossible);
    let error = Allowance::start(&Root::at("/nonexistent"), LIMITS).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Impossible);
}

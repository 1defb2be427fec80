//! A restore ends when it must: at Ctrl-C, at the floor, when others wait, when what it brings
//! does not stay; and says which right is missing. Needs what `restore_root` needs.
#![allow(clippy::unwrap_used, reason = "a test program")]

#[macro_use]
mod support;

use machine::Root;
use model::{Bytes, Control, progress};
use place::ErrorKind;
use place::background::StopReason;
use place::workingset::restore::{self, RestoreReport, RestoreRequest};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use support::{Holding, SET_BYTES, Toucher, alone, request};
use sys::memory::Pages;
use testkit::{Cgroup, FakeRoot, SlowDisk};

/// The test that the toucher is started by.
const TOUCHER: &str = "the_toucher";
/// The process that a restore in a process of its own is to bring back.
const PID_VARIABLE: &str = "TERRACE_TEST_RESTORED_PID";
/// Marks a line of such a process.
const MARK: &str = "@";

#[test]
fn the_toucher() {
    support::serve();
}

fn restored(root: &Root, request: &RestoreRequest, progress: &mut dyn FnMut(u32)) -> RestoreReport {
    let plan = restore::plan(root, request).unwrap();
    let mut batch = 0;
    restore::carry_out(root, request, plan, &mut |_| {
        batch += 1;
        progress(batch);
        Control::Continue
    })
    .unwrap()
}

/// All that was asked for.
fn bytes(report: &RestoreReport) -> u64 {
    report.parts.iter().map(|part| part.bytes).sum()
}

/// The machine, but for files that a test moves.
fn tree(pid: u32, available_kib: u64) -> FakeRoot {
    let tree =
        FakeRoot::bare().file("/proc/meminfo", format!("MemAvailable: {available_kib} kB\n"));
    for real in [format!("/proc/{pid}").as_str(), "/proc/swaps", "/proc/self", "/sys", "/dev"] {
        symlink(real, tree.path().join(&real[1..])).unwrap();
    }
    tree
}

#[test]
fn free_memory_is_used_down_to_the_floor_only() {
    let _alone = alone();
    let toucher = or_skip!(Toucher::swapped_out(TOUCHER, SET_BYTES, &[]));
    let available = SET_BYTES;
    let tree = tree(toucher.pid(), available >> 10);
    let root = Root::at(tree.path());
    let mut request = request(toucher.pid());
    request.limits.floor = Bytes(SET_BYTES / 2);
    let meminfo = tree.path().join("proc/meminfo");
    let mut done = 0;
    let plan = restore::plan(&root, &request).unwrap();
    let report = restore::carry_out(&root, &request, plan, &mut |progress| {
        done = progress.done;
        let left = available - done;
        std::fs::write(&meminfo, format!("MemAvailable: {} kB\n", left >> 10)).unwrap();
        Control::Continue
    })
    .unwrap();
    assert_eq!(report.stop, StopReason::Floor);
    assert_eq!(done, SET_BYTES / 2, "all that there is and no page more");
}

#[test]
fn a_restore_ends_if_pages_do_not_stay() {
    let _alone = alone();
    // A batch takes at most the memory that is free. So there are many batches on any machine: two
    // of 50 ms were enough for all pages where the processors were busy and the disk was fast.
    const BATCH_BYTES: u64 = SET_BYTES / 16;
    let toucher = or_skip!(Toucher::swapped_out(TOUCHER, SET_BYTES, &[]));
    let request = RestoreRequest { yield_percent: 50, ..request(toucher.pid()) };
    let tree = tree(toucher.pid(), BATCH_BYTES >> 10);
    let root = Root::at(tree.path());
    let report = restored(&root, &request, &mut |_| toucher.push_out());
    assert_eq!(report.stop, StopReason::Yield);
    assert!(bytes(&report) < SET_BYTES);
}

#[test]
fn hogs_that_make_others_wait_end_it() {
    let _alone = alone();
    // The guard looks between two batches, for some milliseconds only: a disk so slow that there
    // are many of them, and hogs of which one waits at any time. Each has twice the memory of
    // their group, and goes through it in a circle.
    let disk = or_skip!(SlowDisk::hdd(8 * SET_BYTES));
    let _swap = or_skip!(disk.as_swap());
    let toucher = or_skip!(Toucher::start(TOUCHER, SET_BYTES, &[], Holding::Own(Pages::Base)));
    toucher.push_out_as_touched();
    let crowded = Cgroup::v1_memory(SET_BYTES / 4).unwrap();
    let mut request = request(toucher.pid());
    request.limits.pressure_permille = 100;
    let mut hogs = Vec::new();
    wait_for_stalls(|percent| percent < 5);
    let root = Root::system();
    let report = restored(&root, &request, &mut |batch| {
        if batch == 1 {
            hogs.extend((0..4).map(|_| hog_in(&crowded)));
            wait_for_stalls(|percent| percent > 80);
        }
    });
    for mut hog in hogs {
        hog.kill().unwrap();
        hog.wait().unwrap();
    }
    assert_eq!(report.stop, StopReason::Pressure);
    assert!(bytes(&report) < SET_BYTES);
}

fn hog_in(group: &Cgroup) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = group.command(program);
    command.args(["--exact", "the_hog"]).env(PID_VARIABLE, "0");
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// Returns when the percentage of 100 ms in which a task stalled on memory is `expected`; fails
/// after a minute.
fn wait_for_stalls(expected: impl Fn(u64) -> bool) {
    let root = Root::system();
    let waited_us = || machine::pressure::read(&root, "memory").unwrap().some_us;
    for _ in 0..600 {
        let before_us = waited_us();
        std::thread::sleep(std::time::Duration::from_millis(100));
        if expected((waited_us() - before_us) / 1000) {
            return;
        }
    }
    panic!("tasks stall on memory too much, or not at all");
}

#[test]
fn the_hog() {
    if std::env::var_os(PID_VARIABLE).is_none() {
        return;
    }
    let page_bytes = sys::process::page_bytes();
    let bytes = SET_BYTES as usize / 2;
    let mut memory = sys::memory::Mapping::anonymous(bytes, sys::memory::Pages::Base).unwrap();
    let mut random = testkit::Random(1);
    random.fill(memory.as_mut_slice());
    // Until it is killed; if the test is, a minute later.
    let started = std::time::Instant::now();
    while started.elapsed().as_secs() < 60 {
        for page in memory.as_mut_slice().chunks_mut(page_bytes) {
            page[0] = page[0].wrapping_add(1);
        }
    }
}

/// Runs the test `name` of this program in a process of its own about `pid`, and gives what it
/// said.
fn in_a_process_of_its_own(program: &Path, before: &[&str], name: &str, pid: u32) -> String {
    let mut words: Vec<&str> = before.to_vec();
    words.push(program.to_str().unwrap());
    let output = Command::new(words[0])
        .args(&words[1..])
        .args(["--exact", name, "--nocapture"])
        .env(PID_VARIABLE, pid.to_string())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| Some(line.split_once(MARK)?.1.to_owned()));
    line.unwrap_or_else(|| panic!("{text} {}", String::from_utf8_lossy(&output.stderr)))
}

/// The process that [`in_a_process_of_its_own`] was given.
fn given_pid() -> Option<u32> {
    std::env::var(PID_VARIABLE).ok()?.parse().ok()
}

#[test]
fn ctrl_c_ends_it_after_the_batch() {
    let _alone = alone();
    let toucher = or_skip!(Toucher::swapped_out(TOUCHER, SET_BYTES, &[]));
    let program = std::env::current_exe().unwrap();
    let stop = in_a_process_of_its_own(&program, &[], "interrupted", toucher.pid());
    assert_eq!(stop, "Cancelled after 1 batches");
}

#[test]
fn interrupted() {
    let Some(pid) = given_pid() else { return };
    sys::interrupt::install().unwrap();
    let mut batches = 0;
    let report = restored(&Root::system(), &request(pid), &mut |batch| {
        batches = batch;
        if batch == 1 {
            let own = std::process::id().to_string();
            Command::new("kill").args(["-TERM", &own]).status().unwrap();
            while !sys::interrupt::requested() {
                std::thread::yield_now();
            }
        }
    });
    println!("{MARK}{:?} after {batches} batches", report.stop);
}

#[test]
fn an_error_names_the_missing_right() {
    let _alone = alone();
    let folder = testkit::TempDir::new();
    // Where every user may run it.
    let program = folder.join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let toucher = or_skip!(Toucher::swapped_out(TOUCHER, SET_BYTES, &as_user));
    let own = in_a_process_of_its_own(&program, &as_user, "refused", toucher.pid());
    assert!(own.starts_with("Impossible"), "{own}");
    assert!(own.contains("SYS_ADMIN") && own.contains("root"), "{own}");
    let of_another = in_a_process_of_its_own(&program, &as_user, "refused", std::process::id());
    assert!(of_another.starts_with("Impossible"), "{of_another}");
    assert!(of_another.contains("permission denied"), "{of_another}");
}

#[test]
fn refused() {
    let Some(pid) = given_pid() else { return };
    let root = Root::system();
    let request = request(pid);
    let done = restore::plan(&root, &request)
        .and_then(|plan| restore::carry_out(&root, &request, plan, &mut progress::ignore));
    let error = done.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Impossible);
    println!("{MARK}{:?}: {error}", error.kind);
}

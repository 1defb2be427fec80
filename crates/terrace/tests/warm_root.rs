//! `terrace warm` on memory that really lies in swap and on files that really left the page
//! cache: shown, planned, brought back, with the owner's own word for it. Needs root, room for
//! swap on the disk, and memory groups of version 1.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use place::cached;
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::{Ran, Started, assert_interrupted, command, terminate, terrace, warm_json};
use testkit::{Cgroup, Random, SlowDisk, SwapArea, TempDir, WorkingSet};

/// The set of the test process.
const SET_BYTES: usize = 32 << 20;
const PAGE_BYTES: usize = 4096;
/// What of it must have gone to swap: some pages may be on their way at any moment.
const NEARLY_ALL_BYTES: u64 = SET_BYTES as u64 / 100 * 95;
const PAGES: u64 = (SET_BYTES / PAGE_BYTES) as u64;
/// Tests that use swap run one after another: an area belongs to the whole machine.
static SWAP: Mutex<()> = Mutex::new(());
/// A restore that met a short wait for memory of the tests beside it is made again.
const ATTEMPTS: u32 = 10;
/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process with a working set in a group of its own, which is dropped after it.
struct Toucher {
    set: WorkingSet,
    group: Cgroup,
}

/// Its holder is the only test that evicts anything to swap.
fn alone() -> MutexGuard<'static, ()> {
    SWAP.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Toucher {
    fn start() -> Result<Self, String> {
        let group = Cgroup::v1_memory(8 * SET_BYTES as u64)?;
        let mut command = group.command(env!("CARGO_BIN_EXE_terrace"));
        command.args(WorkingSet::arguments(SET_BYTES as u64 >> 20, "contiguous"));
        let set = WorkingSet::spawn(command)?;
        Ok(Self { set, group })
    }

    /// Pushes it out by `warm evict`, until nearly all of its set lies in swap.
    fn push_out(&self) {
        let pid = self.set.pid();
        for _ in 0..ATTEMPTS {
            let text = terrace(&format!("warm evict {pid}")).done();
            assert!(text.starts_with(&format!("{pid}: ")), "{text}");
            if self.swapped_bytes() >= NEARLY_ALL_BYTES {
                return;
            }
        }
        panic!("only {} bytes went to swap", self.swapped_bytes());
    }

    /// The kernel's own word.
    fn swapped_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.set.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmSwap:"));
        let kib: u64 = line.unwrap().trim().trim_end_matches(" kB").parse().unwrap();
        kib * 1024
    }

    /// Wrong pages, and the major faults of touching all.
    fn touch(&mut self) -> (u64, u64) {
        let [_, wrong_words, faults] = self.set.touch().unwrap();
        (wrong_words + self.set.wrong_pages().unwrap(), faults)
    }
}

/// A swap file and a toucher that lies in it; the toucher is dropped first.
fn in_a_swap_file() -> Result<(SwapArea, Toucher), String> {
    let swap = SwapArea::on(4 * SET_BYTES as u64)?;
    let toucher = Toucher::start()?;
    toucher.push_out();
    Ok((swap, toucher))
}

/// Bytes of all parts from swap; a swap area of another test may hold some of them.
fn anonymous_bytes(parts: &Value) -> u64 {
    let all = parts.as_array().unwrap().iter();
    let anonymous = all.filter(|part| part["kind"] == "anonymous");
    anonymous.map(|part| part["bytes"].as_u64().unwrap()).sum()
}

/// Runs a restore until no neighbour of this test made it give way.
fn restored(line: &str) -> Value {
    for _ in 0..ATTEMPTS {
        let ran = terrace(line);
        if ran.code == Some(0) {
            return warm_json("restore", ran);
        }
        assert!(ran.err.contains("others began to wait"), "{ran:?}");
    }
    panic!("others waited for memory {ATTEMPTS} times");
}

/// Starts it, and after `delay` does `then`; it must end by itself or by that. Its exit status.
fn midway(line: &str, delay: Duration, then: impl FnOnce(&mut Child)) -> Option<i32> {
    let mut child = command(line)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(delay);
    then(&mut child);
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    panic!("{line}: does not end");
}

/// The ways to read, one after another.
fn restore_line(round: usize, pid: u32) -> String {
    let methods = ["auto", "remote", "readers:4", "willneed"];
    let method = methods[round % methods.len()];
    format!("warm restore --pid {pid} --hurry --method {method}")
}

#[test]
fn killed_at_any_moment_it_leaves_nothing_and_no_page_is_wrong() {
    let _alone = alone();
    let (_swap, mut toucher) = match in_a_swap_file() {
        Ok(both) => both,
        Err(need) => return testkit::skip(need),
    };
    let pid = toucher.set.pid();
    let directory = TempDir::new();
    let noted = directory.join("snapshot");
    for round in 0..20 {
        let line = match round % 3 {
            2 => format!("warm snapshot {} --pid {pid}", noted.display()),
            _ => restore_line(round, pid),
        };
        let mut drawn = [0; 1];
        Random(round as u64).fill(&mut drawn);
        midway(&line, Duration::from_millis(u64::from(drawn[0])), |child| {
            let _ = child.kill();
        });
        if round % 7 == 6 {
            assert_eq!(toucher.touch().0, 0, "after round {round}");
            toucher.push_out();
        }
    }
    assert_eq!(toucher.touch().0, 0);
    // Nobody is left in the group, and the snapshot is whole or not there.
    let members = std::fs::read_to_string(toucher.group.path().join("cgroup.procs")).unwrap();
    assert_eq!(members.trim(), pid.to_string());
    if noted.exists() {
        terrace(&format!("warm restore --dry-run {}", noted.display())).done();
    }
}

#[test]
fn what_a_process_becomes_while_it_is_brought_back_is_its_own() {
    let _alone = alone();
    for (round, order) in ["remap", "exec", "end", "remap", "exec", "end"].iter().enumerate() {
        let (_swap, mut toucher) = match in_a_swap_file() {
            Ok(both) => both,
            Err(need) => return testkit::skip(need),
        };
        let pid = toucher.set.pid();
        let delay = Duration::from_millis(20 + 15 * round as u64);
        let code = midway(&restore_line(round, pid), delay, |_| match *order {
            "end" => toucher.set.kill().unwrap(),
            request => toucher.set.send(&format!("{request:?}")).unwrap(),
        });
        // It may have been done before, or find the process gone, closed or others waiting.
        assert!(matches!(code, Some(0..=3)), "{order}: {code:?}");
        if *order == "remap" {
            assert!(toucher.set.receive().unwrap().is_empty());
            assert_eq!(toucher.touch().0, 0);
        }
    }
}

#[test]
fn memory_is_shown_planned_and_brought_back_whole() {
    let _alone = alone();
    let (_swap, mut toucher) = match in_a_swap_file() {
        Ok(both) => both,
        Err(need) => return testkit::skip(need),
    };
    let pid = toucher.set.pid();

    let shown = warm_json("show", terrace(&format!("warm show --pid {pid} --json")));
    let process = &shown["processes"][0];
    assert_eq!(process["pid"], pid);
    let in_swap = process["swapped_bytes"].as_u64().unwrap();
    assert!(in_swap >= NEARLY_ALL_BYTES, "{process}");
    assert!(anonymous_bytes(&shown["parts"]) >= NEARLY_ALL_BYTES);

    let line = format!("warm restore --pid {pid} --only anonymous --floor 1m --json");
    let planned = warm_json("restore", terrace(&format!("{line} --dry-run")));
    assert!(planned["done"].is_null());
    assert!(anonymous_bytes(&planned["planned"]) >= NEARLY_ALL_BYTES);
    assert!(toucher.swapped_bytes() >= in_swap / 100 * 95);

    let receipt = restored(&line);
    assert_eq!(receipt["done"]["stop"], "done");
    let (wrong, faults) = toucher.touch();
    assert_eq!(wrong, 0);
    assert!(faults < PAGES / 64, "{faults} faults after the restore");
    // What would have been without: the test of the test.
    toucher.push_out();
    let (wrong, by_demand) = toucher.touch();
    assert_eq!(wrong, 0);
    assert!(by_demand > PAGES / 64, "{by_demand} faults without one");
}

#[test]
fn limits_of_bytes_and_an_unexpected_end_have_different_statuses() {
    let _alone = alone();
    let (_swap, toucher) = match in_a_swap_file() {
        Ok(both) => both,
        Err(need) => return testkit::skip(need),
    };
    let line = format!("warm restore --pid {} --only anonymous", toucher.set.pid());
    let asked = restored(&format!("{line} --floor 1m --max-bytes 4m --json"));
    assert_eq!(asked["done"]["stop"], "budget");
    let read = anonymous_bytes(&asked["done"]["parts"]);
    assert!((4 << 20..SET_BYTES as u64).contains(&read), "{read} bytes");

    let Ran { code, out, err } = terrace(&format!("{line} --floor 1000t"));
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("Ended: free memory came down to the floor."), "{out}");
    assert_eq!(
        err,
        "terrace: warm restore: not all of it is back: free memory came down to the floor\n"
    );
}

#[test]
fn ctrl_c_ends_a_restore_with_a_receipt() {
    let _alone = alone();
    let disk = match SlowDisk::hdd(4 * SET_BYTES as u64) {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    let _swap = disk.as_swap().unwrap();
    let toucher = match Toucher::start() {
        Ok(toucher) => toucher,
        Err(need) => return testkit::skip(need),
    };
    let line = format!("warm restore --pid {} --only anonymous --floor 1m", toucher.set.pid());
    for _ in 0..ATTEMPTS {
        toucher.push_out();
        if !written(&disk) {
            return testkit::skip("no swap of others that fills first");
        }
        // What was written lies in memory as well, in the swap cache, until memory gets short.
        let _ = std::fs::write(toucher.group.path().join("memory.force_empty"), "0");
        let read_bytes = disk.statistics().read_bytes;
        let mut restore = command(&line);
        restore.stdout(Stdio::piped()).stderr(Stdio::piped());
        let restore = restore.spawn().unwrap();
        let started = Instant::now();
        // More than the trial of the disk reads.
        while disk.statistics().read_bytes < read_bytes + (4 << 20) {
            assert!(started.elapsed() < PATIENCE, "it never read");
            std::thread::sleep(Duration::from_millis(1));
        }
        let ran = terminate(restore);
        // Its host may have held this test up until all was back.
        if ran.code != Some(0) {
            assert_interrupted(&ran, "Ended: interrupted.");
            assert!(toucher.swapped_bytes() > 0, "{ran:?}");
            return;
        }
    }
    panic!("{ATTEMPTS} restores ended before they were interrupted");
}

/// Whether the set reaches the disk: that goes on after the pages have left. What came back and was
/// not written to since is on it still.
fn written(disk: &SlowDisk) -> bool {
    let bytes = || disk.statistics().written_bytes;
    let mut last = u64::MAX;
    while bytes() < NEARLY_ALL_BYTES && bytes() != last {
        last = bytes();
        std::thread::sleep(Duration::from_secs(2));
    }
    bytes() >= NEARLY_ALL_BYTES
}

/// How much of this must still be in the page cache: all, but for a host where DAMON pushes out
/// what nobody uses, which takes some pages at any moment.
fn at_least(bytes: u64) -> u64 {
    match machine::damon::pages_out_after(&machine::Root::system()) {
        None => bytes,
        Some(_) => bytes / 10 * 9,
    }
}

/// Bytes of all files in the page cache.
fn cached_bytes(files: &[PathBuf]) -> u64 {
    let bytes = |path: &Path| {
        let file = File::open(path).unwrap();
        let length = file.metadata().unwrap().len();
        cached::bytes_of(&file, &(0..length)).unwrap()
    };
    files.iter().map(|path| bytes(path)).sum()
}

#[test]
fn files_of_a_snapshot_come_back_and_a_changed_one_does_not() {
    const FILE_BYTES: usize = 2 << 20;
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    let directory = TempDir::new();
    let tree = directory.join("tree");
    std::fs::create_dir(&tree).unwrap();
    let mut random = Random(2018);
    let files: Vec<PathBuf> = (0..6).map(|index| tree.join(format!("file {index}"))).collect();
    let write = |path: &Path, random: &mut Random| {
        let mut content = vec![0; FILE_BYTES];
        random.fill(&mut content);
        let mut file = File::create(path).unwrap();
        file.write_all(&content).unwrap();
        file.sync_all().unwrap();
    };
    files.iter().for_each(|path| write(path, &mut random));
    let whole = 6 * FILE_BYTES as u64;
    let sleeper = Started::sleeping(Command::new("sleep"));
    if cached_bytes(&files) < at_least(whole) {
        return testkit::skip("a temporary directory on a disk, with a page cache");
    }
    let (snapshot, tree) = (directory.join("x.snapshot"), tree.display());
    let line =
        format!("warm snapshot {} --pid {} --tree {tree}", snapshot.display(), sleeper.pid());
    let text = terrace(&line).done();
    assert!(text.contains("1 process with") && text.contains("unseen"), "{text}");

    write(&files[5], &mut random);
    let text = terrace(&format!("warm evict {tree}")).done();
    if cached_bytes(&files) != 0 {
        return testkit::skip(format!("a file system whose files can be evicted ({text})"));
    }
    let receipt = restored(&format!("warm restore {} --floor 1m --json", snapshot.display()));
    assert_eq!(receipt["done"]["stop"], "done");
    let notes = receipt["notes"].to_string();
    assert!(notes.contains("1 file of the snapshot has changed"), "{notes}");
    let back = cached_bytes(&files[..5]);
    assert!(back >= at_least(5 * FILE_BYTES as u64), "{back} of {receipt:#}");
    assert_eq!(cached_bytes(&files[5..]), 0, "a changed file was read");

    // What is there already is no work.
    let again =
        restored(&format!("warm restore {} --only files --floor 1m --json", snapshot.display()));
    let parts = again["planned"].as_array().unwrap().iter();
    let read: u64 = parts.map(|part| part["bytes"].as_u64().unwrap()).sum();
    assert!(read < FILE_BYTES as u64, "{again}");
}

/// Files that are read count as room in the account of a group, since they could go again: a task
/// that believes that reads on and evicts what it has just read.
#[test]
fn files_fill_a_group_up_to_its_limit_and_push_nothing_out() {
    const LIMIT: u64 = 24 << 20;
    let group = match Cgroup::v1_memory(LIMIT) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let directory = TempDir::new();
    let files = [directory.join("file")];
    let mut content = vec![0; 2 * LIMIT as usize];
    Random(2012).fill(&mut content);
    let mut file = File::create(&files[0]).unwrap();
    file.write_all(&content).unwrap();
    file.sync_all().unwrap();
    terrace(&format!("warm evict {}", files[0].display())).done();
    if cached_bytes(&files) != 0 {
        return testkit::skip("a file system whose files can be evicted");
    }
    let mut user = group.command("sleep");
    user.arg("1000").stdin(File::open(&files[0]).unwrap());
    let mut user = group.spawn(&mut user).unwrap();
    let met = || std::fs::read_to_string(group.path().join("memory.failcnt")).unwrap();
    let met_before = met();
    let line = "warm restore --only files --floor 1m --json --pid";
    let ran = terrace(&format!("{line} {}", user.id()));
    let met_after = met();
    user.kill().unwrap();
    user.wait().unwrap();
    let receipt: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(receipt["result"]["done"]["stop"], "group_limit", "{ran:?}");
    assert_eq!(met_before, met_after, "the group had to make room");
    let brought = cached_bytes(&files);
    assert!((LIMIT / 2..LIMIT).contains(&brought), "{brought} of {LIMIT}");
}

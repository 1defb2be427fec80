//! `terrace ramdisk why` on real memory: each cause that can be made here is named, touched memory
//! is never the host's fault, and nothing is left behind, however it ends.
//!
//! A host that finds memory late cannot be made from inside; its verdict is tested with data in
//! `explain`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use serde_json::Value;
use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::{
    Ran, Started, TERRACE, as_ordinary_user, assert_interrupted, command, in_group, interrupted,
    run, terrace,
};
use testkit::{Cgroup, SwapArea, TempDir, Tmpfs};

const MIB: u64 = 1 << 20;
/// Others on this machine may take more time than what was staged; then that is the truth.
const ATTEMPTS: usize = 5;
/// How often touched memory is judged here; by hand it was 20 times.
const TOUCHED_RUNS: usize = 4;
/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);
static SWAP: Mutex<()> = Mutex::new(());

/// Its holder is the only test that switches swap on, or that must have none.
fn alone() -> MutexGuard<'static, ()> {
    SWAP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result of a run that did all it was asked, and said before what it takes.
#[track_caller]
fn result(ran: Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.starts_with("terrace: ramdisk why: takes "), "{ran:?}");
    assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    let value: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(value["schema"], "terrace.ramdisk-why/1");
    value["result"].clone()
}

fn finding<'a>(result: &'a Value, id: &str) -> Option<&'a Value> {
    let findings = result["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["id"] == id)
}

/// Whether it is the verdict, or comes right after the processor that others took meanwhile.
fn comes_first(result: &Value, id: &str) -> bool {
    let findings = result["findings"].as_array().unwrap().iter();
    let mut ids = findings.filter_map(|finding| finding["id"].as_str());
    let staged = ids.find(|id| !id.starts_with("cpu_"));
    // Memory that was there is said only when nothing else is.
    staged == Some(id) || id == "already_backed" && finding(result, "group_limit").is_some()
}

/// Runs until `is_it` holds; each other verdict is printed.
#[track_caller]
fn until_reported(mut ask: impl FnMut() -> Value, is_it: impl Fn(&Value) -> bool) -> Value {
    let mut report = Value::Null;
    for attempt in 1..=ATTEMPTS {
        report = ask();
        if is_it(&report) {
            return report;
        }
        println!("attempt {attempt}: {}: {}", report["verdict"], report["findings"]);
    }
    panic!("never told: {report:#}");
}

#[test]
fn touched_memory_is_never_the_hosts_fault() {
    // Touches far more than is judged. The kernel hands out first what was freed last, but it may
    // still take memory that nobody ever touched: that is the host's fault, and no run to judge.
    result(terrace("ramdisk why --size 512m --json"));
    let mut named = Vec::new();
    let mut judged = 0;
    while judged < TOUCHED_RUNS {
        let report = result(terrace("ramdisk why --size 128m --json"));
        let rounds: Vec<&Value> = report["passes"].as_array().unwrap().iter().collect();
        assert!(rounds.len() >= 3, "{report:#}");
        for pass in rounds {
            assert_eq!(pass["bytes"], 128 * MIB);
            assert_eq!(pass["touches"], 128 * MIB / 4096);
        }
        let is_named = |id: &&str| finding(&report, id).is_some();
        match ["backed_lazily", "host_overcommitted"].iter().find(|id| is_named(id)) {
            None => judged += 1,
            Some(id) => named.push(format!("{id}: {}", report["passes"])),
        }
        assert!(named.len() < ATTEMPTS, "{named:#?}");
    }
    println!("the host was blamed in {} runs beside {judged}", named.len());
}

#[test]
fn a_group_that_must_swap_is_named_with_its_limit() {
    let _alone = alone();
    let made = SwapArea::on(512 * MIB).and_then(|area| Ok((area, Cgroup::v1_memory(128 * MIB)?)));
    let Ok((_area, group)) = made.map_err(testkit::skip) else {
        return;
    };
    let ask = || result(run(in_group(&group, "ramdisk why --size 256m --json")));
    let report = until_reported(ask, |report| comes_first(report, "group_limit"));
    let first = &report["passes"][0];
    assert!(first["left_memory_bytes"].as_u64().unwrap() > 64 * MIB, "{report:#}");
    assert!(first["grew"]["group0.memory.failcnt"].as_u64().unwrap() > 0);
    assert!(first["grew"]["vmstat.pswpout"].as_u64().unwrap() > 64 * MIB / 4096);
    assert_eq!(report["limits"][0]["limit_bytes"], 128 * MIB);
    let claim = finding(&report, "group_limit").unwrap()["claim"].to_string();
    assert!(claim.contains("the limit of 128 MiB of the group"), "{claim}");
    assert!(finding(&report, "guest_swap").is_some(), "{report:#}");
    assert!(report["swap_areas"][0][1].as_u64().unwrap() > 64 * MIB, "{report:#}");
    // It would only swap once more.
    assert!(report["passes"].as_array().unwrap().iter().all(|pass| pass["round"] != "huge"));
}

#[test]
fn a_group_without_swap_kills_the_writer_and_that_is_the_answer() {
    let _alone = alone();
    let swap = fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swap.lines().count() > 1 {
        return testkit::skip("a machine without swap at this moment");
    }
    let group = match Cgroup::v1_memory(64 * MIB) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let ran = run(in_group(&group, "ramdisk why --size 192m"));
    assert!(ran.err.contains("the process that writes is killed"), "{ran:?}");
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(words.contains("Killed at the limit of 64 MiB of the group"), "{words}");
    assert!(words.contains("What to do: Raise the limit"), "{words}");
    // All was given back with the process.
    let usage = fs::read_to_string(group.path().join("memory.usage_in_bytes")).unwrap();
    assert!(usage.trim().parse::<u64>().unwrap() < 32 * MIB, "{usage}");
    assert_eq!(fs::read_to_string(group.path().join("cgroup.procs")).unwrap(), "");
}

#[test]
fn clean_page_cache_that_is_dropped_costs_nothing() {
    let _alone = alone();
    let group = match Cgroup::v1_memory(192 * MIB) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let directory = TempDir::new();
    let path = directory.join("read");
    fs::write(&path, vec![7; 160 << 20]).unwrap();
    File::open(&path).unwrap().sync_all().unwrap();
    let ask = || {
        // Out of the cache, and in again by the group, which is charged for it.
        let mut evict = Command::new("dd");
        let file = format!("if={}", path.display());
        evict.arg(file).args(["iflag=nocache", "count=0", "status=none"]);
        run(evict);
        let mut read = group.command("cat");
        read.arg(&path).stdout(Stdio::null());
        run(read);
        result(run(in_group(&group, "ramdisk why --size 128m --json")))
    };
    let is_cheap = |report: &Value| {
        let limit = finding(report, "group_limit");
        let claim = limit.and_then(|limit| limit["claim"].as_str());
        claim.is_some_and(|claim| claim.contains("cost nothing"))
    };
    let report =
        until_reported(ask, |report| comes_first(report, "already_backed") && is_cheap(report));
    assert!(report["passes"][0]["grew"]["group0.memory.failcnt"].as_u64().unwrap() > 0);
    assert_eq!(report["passes"][0]["left_memory_bytes"], 0);
}

#[test]
fn a_crowded_processor_is_named_and_subtracted() {
    let spin = || {
        let mut command = Command::new("taskset");
        command.args(["-c", "0", "sh", "-c", "while :; do :; done"]);
        command.spawn().map(Started)
    };
    let (Ok(_one), Ok(_two)) = (spin(), spin()) else {
        return testkit::skip("taskset");
    };
    let ask = || {
        let mut pinned = Command::new("taskset");
        pinned.args(["-c", "0", TERRACE]);
        pinned.args("ramdisk why --size 128m --json".split_whitespace());
        result(run(pinned))
    };
    let report = until_reported(ask, |report| report["verdict"] == "cpu_contention");
    let first = &report["passes"][0];
    let (waited, touched) = (first["waited_ns"].as_f64(), first["touch_ns"].as_f64());
    assert!(waited.unwrap() > touched.unwrap() * 0.2, "{report:#}");
    for host in ["backed_lazily", "host_overcommitted"] {
        assert!(finding(&report, host).is_none(), "{report:#}");
    }
}

#[test]
fn a_ram_disk_is_written_and_left_as_it_was() {
    let disk = match Tmpfs::mount(96 * MIB) {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    let path = disk.path().display().to_string();
    let report = result(terrace(&format!("ramdisk why {path} --json")));
    assert_eq!(report["asked_bytes"], 48 * MIB, "half of what is free");
    assert!(report["place"].as_str().unwrap().contains(&path), "{report:#}");
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 0);
    terrace(&format!("ramdisk why {path} --size 100m")).refused(3, "the RAM disk has 96 MiB free");
    let elsewhere = TempDir::new();
    let line = format!("ramdisk why {}", elsewhere.path().display());
    terrace(&line).refused(2, "not on a RAM disk");
}

#[test]
fn what_makes_no_sense_or_cannot_be_had_is_refused() {
    terrace("ramdisk why --size 1m").refused(2, "less than 16 MiB says nothing");
    terrace("ramdisk why --size 100t").refused(3, "are left to others");
    terrace("ramdisk why /nonexistent").refused(2, "no such file");
}

#[test]
fn time_that_is_over_leaves_a_verdict_of_what_there_is() {
    let report = result(terrace("ramdisk why --size 512m --budget 200ms --json"));
    let first = &report["passes"][0];
    assert_eq!(first["end"], "time", "{report:#}");
    let written = first["bytes"].as_u64().unwrap();
    assert!(written > 0 && written < 512 * MIB, "{report:#}");
    // Later passes write no more than the first did.
    assert!(report["passes"][1]["bytes"].as_u64().unwrap() <= written);
}

#[test]
fn ctrl_c_gives_the_memory_back_and_tells_what_was_seen() {
    let ran = interrupted("ramdisk why --size 4g", &["0.7", "1", "1.4"]);
    if ran.code == Some(3) {
        return testkit::skip("4 GiB of memory that nobody uses");
    }
    assert_interrupted(&ran, "terrace ramdisk why: 4 GiB in shared memory");
    assert!(ran.out.contains("new memory"), "{ran:?}");
}

#[test]
fn the_writer_ends_with_a_program_that_is_killed() {
    let mut started = command("ramdisk why --size 1g");
    started.stdout(Stdio::null()).stderr(Stdio::null());
    let mut started = Started(started.spawn().unwrap());
    let pid = started.0.id();
    let start = Instant::now();
    let writer = loop {
        if let Some(writer) = child_of(pid) {
            break writer;
        }
        assert!(start.elapsed() < PATIENCE, "it never started to write");
        std::thread::sleep(Duration::from_millis(5));
    };
    let score = || fs::read_to_string(format!("/proc/{writer}/oom_score_adj")).unwrap();
    while score().trim() != "1000" {
        assert!(start.elapsed() < PATIENCE, "it would not be killed first");
        std::thread::sleep(Duration::from_millis(5));
    }
    started.0.kill().unwrap();
    started.0.wait().unwrap();
    let path = format!("/proc/{writer}/cmdline");
    let runs = || fs::read(&path).is_ok_and(|words| !words.is_empty());
    while runs() {
        assert!(start.elapsed() < PATIENCE, "{writer} outlived its starter");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A child of `pid` that is this program again.
fn child_of(pid: u32) -> Option<u32> {
    let numbers = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    let mut children = numbers.split_whitespace().filter_map(|word| word.parse().ok());
    children.find(|child: &u32| {
        fs::read_to_string(format!("/proc/{child}/cmdline"))
            .is_ok_and(|words| words.contains("ramdisk-process"))
    })
}

#[test]
fn an_ordinary_user_gets_all_but_huge_pages() {
    let Some(command) = as_ordinary_user("ramdisk why --size 64m --json") else {
        return;
    };
    let report = result(run(command));
    assert_eq!(report["passes"].as_array().unwrap().len(), 3, "{report:#}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("huge pages were not tried"), "{notes}");
}

#[test]
fn a_recording_holds_the_passes() {
    let directory = TempDir::new();
    let file = directory.join("why.trec");
    let line = format!("ramdisk why --size 64m --json --record {}", file.display());
    result(terrace(&line));
    let text = terrace(&format!("explain {} --json", file.display())).done();
    let explained: Value = serde_json::from_str(&text).unwrap();
    let subject = explained["subject"].as_str().unwrap();
    assert!(subject.ends_with("terrace ramdisk why"), "{subject}");
}

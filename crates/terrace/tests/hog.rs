//! `terrace hog` on real memory: who is pushed out is named, too much is refused, and nothing
//! is left behind, however it ends.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::{
    Ran, Started, as_ordinary_user, assert_interrupted, in_group, run, signalled, terrace,
};
use testkit::{Cgroup, SwapArea, TempDir};

const MIB: u64 = 1 << 20;
/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `is_so`; a machine under load may take its time.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "never came: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn result(ran: Ran) -> Value {
    let value: Value = serde_json::from_str(&ran.done()).unwrap();
    assert_eq!(value["schema"], "terrace.hog/1");
    value["result"].clone()
}

/// A process of the group that holds `bytes` of memory of its own.
fn victim(group: &Cgroup, bytes: u64) -> Started {
    let mut command = in_group(group, "hog-process");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut victim = Started(command.spawn().unwrap());
    let input = victim.0.stdin.as_mut().unwrap();
    writeln!(
        input,
        r#"{{"bytes":{bytes},"hold":{{"secs":600,"nanos":0}},"content":"random","touch":"once","seed":1,"until":null}}"#
    )
    .unwrap();
    let pid = victim.0.id();
    until("the victim's memory", || status(pid, "RssAnon") >= bytes);
    victim
}

/// A field of a process's status, in bytes; 0 if the process is gone.
fn status(pid: u32, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(field));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Swap that no other test uses, and a group. An area belongs to the whole machine.
fn swap_and_group(swap_bytes: u64, limit: u64) -> Option<(SwapArea, Cgroup, Turn)> {
    static SWAP: Mutex<()> = Mutex::new(());
    let turn = SWAP.lock().unwrap_or_else(PoisonError::into_inner);
    let area = SwapArea::on(swap_bytes);
    let made = area.and_then(|area| Ok((area, Cgroup::v1_memory(limit)?, turn)));
    made.map_err(testkit::skip).ok()
}

type Turn = MutexGuard<'static, ()>;

#[test]
fn who_is_pushed_out_is_named_processes_and_files() {
    let Some((_area, group, _turn)) = swap_and_group(256 * MIB, 96 * MIB) else {
        return;
    };
    let victim = victim(&group, 32 * MIB);
    let directory = TempDir::new();
    let path = directory.join("in-use");
    fs::write(&path, vec![1; 16 << 20]).unwrap();
    File::open(&path).unwrap().sync_all().unwrap();
    let mut reader = group.command("sh");
    reader.args(["-c", "exec sleep 600"]).stdin(File::open(&path).unwrap());
    let _reader = Started(group.spawn(&mut reader).unwrap());
    // Charged to whoever reads it first: out of the cache, and in again by the group.
    run({
        let mut command = Command::new("dd");
        command.arg(format!("if={}", path.display())).args([
            "iflag=nocache",
            "count=0",
            "status=none",
        ]);
        command
    });
    let mut read = group.command("cat");
    read.arg(&path).stdout(Stdio::null());
    run(read);

    let hogs = result(run(in_group(&group, "hog --size 96m --count 1 --repeat 2 --json")));
    let lost = |is_it: &dyn Fn(&Value) -> bool, field: &str| {
        let losers = hogs["pushed_out"].as_array().unwrap();
        losers.iter().find(|who| is_it(who)).and_then(|who| who[field].as_u64()).unwrap_or(0)
    };
    let pid = victim.0.id();
    let swapped = lost(&|who| who["pid"] == pid, "to_swap_bytes");
    // Nobody touches the victim's memory, so what is in swap is there still.
    assert_eq!(swapped, status(pid, "VmSwap"), "{hogs}");
    assert!(swapped > 8 * MIB, "{hogs}");
    let name = path.canonicalize().unwrap().display().to_string();
    let evicted = lost(&|who| who["whose"] == name, "from_cache_bytes");
    assert!(evicted > 8 * MIB, "{hogs}");
    println!("{swapped} bytes of a process to swap, {evicted} of a file out of the cache");
    assert_eq!((&hogs["finished"], &hogs["rounds"]), (&2.into(), &2.into()));
    assert_eq!(hogs["touched_bytes"], 192 * MIB);
    assert!(hogs["machine_swapped_out_bytes"].as_u64().unwrap() >= swapped);
}

#[test]
fn they_stop_growing_when_tasks_wait_for_memory() {
    let Some((_area, group, _turn)) = swap_and_group(448 * MIB, 64 * MIB) else {
        return;
    };
    if !Path::new("/proc/pressure/memory").exists() {
        return testkit::skip("pressure accounting (CONFIG_PSI)");
    }
    let line = "hog --size 384m --count 1 --repeat 1 --until-psi 1% --json";
    let hogs = result(run(in_group(&group, line)));
    assert_eq!(hogs["pressure_reached"], true, "{hogs}");
    assert!(hogs["touched_bytes"].as_u64().unwrap() < 384 * MIB, "{hogs}");
}

#[test]
fn a_plan_without_sense_or_without_room_is_refused() {
    for (words, line) in [
        ("--count", "hog --count 0"),
        ("--size", "hog --size 0"),
        ("--repeat", "hog --repeat 1001"),
        ("--until-psi", "hog --until-psi 101%"),
        ("--hold", "hog --hold 2h"),
        ("is not held", "hog --size 1m --touch loop"),
        ("at least 8 MiB", "hog --size 1m --in-cgroup 1m"),
    ] {
        terrace(line).refused(2, words);
    }
    terrace("hog --size 100t").refused(3, "somebody would be killed");
}

/// The limit of the group that we are in counts, not only the machine's memory.
#[test]
fn the_limit_of_the_own_group_counts() {
    let group = match Cgroup::v1_memory(128 * MIB) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    // More than the group has, whatever swap other tests have on now.
    let line = "hog --size 12g --count 1 --repeat 1";
    run(in_group(&group, line)).refused(3, "terrace-test-");
}

#[test]
fn ctrl_c_ends_the_hogs_and_tells_what_they_did() {
    let ran = signalled("hog --size 8m --hold 50s --repeat 3", &[], "INT", "5");
    assert_interrupted(&ran, "terrace hog: 2 of 8 MiB, 3 times");
    assert!(ran.out.contains("16 MiB were touched"), "{ran:?}");
}

#[test]
fn an_ordinary_user_may_hog_and_may_not_make_groups() {
    let Some(command) = as_ordinary_user("hog --size 4m --count 1 --repeat 1") else {
        return;
    };
    let text = run(command).done();
    assert!(text.contains("1 hog ended by itself; 4 MiB were touched"), "{text}");
    let command = as_ordinary_user("hog --size 4m --count 1 --in-cgroup 64m").unwrap();
    let ran = run(command);
    ran.refused(3, "control group");
}

/// The groups of hogs below `parent`.
fn groups_of_hogs(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).unwrap().flatten();
    let names =
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("terrace-hog-"));
    names.map(|entry| entry.path()).collect()
}

#[test]
fn a_parent_that_is_killed_leaves_no_hog_and_its_group_is_the_next_ones_to_remove() {
    let group = match Cgroup::v1_memory(512 * MIB) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let line = "hog --size 16m --count 2 --repeat 1 --hold 1h --in-cgroup 128m";
    let mut parent = Started(in_group(&group, line).stdout(Stdio::null()).spawn().unwrap());
    let members = || -> Vec<u32> {
        let groups = groups_of_hogs(group.path());
        let read = groups.first().map(|group| fs::read_to_string(group.join("cgroup.procs")));
        let text = read.and_then(Result::ok).unwrap_or_default();
        text.lines().map(|pid| pid.parse().unwrap()).collect()
    };
    until("two hogs that hold their memory", || {
        let members = members();
        members.len() == 2 && members.iter().all(|pid| status(*pid, "RssAnon") >= 16 * MIB)
    });
    // One that still fills its memory would end anyway: nobody reads what it says.
    std::thread::sleep(Duration::from_millis(500));
    let hogs = members();
    for pid in &hogs {
        let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        assert_eq!(score.trim(), "1000");
    }
    parent.0.kill().unwrap();
    parent.0.wait().unwrap();
    until("the end of the hogs", || hogs.iter().all(|pid| status(*pid, "VmRSS") == 0));
    until("an empty group", || members().is_empty());
    let left = groups_of_hogs(group.path());
    assert_eq!(left.len(), 1, "a killed process cannot remove its group");
    let line = "hog --size 4m --count 1 --repeat 1 --in-cgroup 64m";
    run(in_group(&group, line)).done();
    assert_eq!(groups_of_hogs(group.path()), Vec::<PathBuf>::new());
}

//! `terrace lab`: what it refuses, what it tells, and a small `recovery-2012` for real, with its
//! own swap file in its own group, of which nothing is left, however it ends.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::{as_ordinary_user, command, run, schema_complaint, terrace};
use testkit::{Cgroup, TempDir};

const SCHEMA: &str = include_str!("../../../docs/lab.schema.json");
const EXPLAIN_SCHEMA: &str = include_str!("../../../docs/explain.schema.json");

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Swap belongs to the whole machine: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a lab can run here at all; says what it needs if not.
fn possible() -> bool {
    let group = Cgroup::v1_memory(64 << 20).map_err(testkit::skip);
    group.is_ok()
}

fn swaps() -> String {
    fs::read_to_string("/proc/swaps").unwrap()
}

/// What a lab leaves on its disk while it runs.
fn workplaces(disk: &Path) -> Vec<String> {
    let entries = fs::read_dir(disk).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("terrace-lab-")).collect()
}

#[test]
fn it_lists_and_shows_what_it_repeats() {
    assert!(terrace("lab list").done().contains("recovery-2012"));
    let text = terrace("lab show recovery-2012").done();
    for words in ["155 s", "119 s", "35 s", "swapoff", "needs root", "cannot be repeated"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let full = TempDir::new();
    fs::write(full.join("a file"), "x").unwrap();
    let file = full.join("a file").display().to_string();
    let full = full.join("").display().to_string();
    for (words, line) in [
        ("action", "lab"),
        ("no experiment x", "lab show x"),
        ("unknown experiment `x`", "lab run x"),
        ("no experiment given", "lab run"),
        ("no application mysql", "lab run recovery-2012 --app toucher,mysql"),
        ("at least 16 MiB", "lab run recovery-2012 --memory 1m"),
        ("--working-set", "lab run recovery-2012 --memory 64m --working-set 60m"),
        ("--working-set", "lab run recovery-2012 --working-set 4k"),
        ("--runs", "lab run recovery-2012 --runs 0"),
        ("--limit", "lab run recovery-2012 --limit 0"),
        ("no empty directory", &format!("lab run recovery-2012 --out {full}")),
        ("no directory", &format!("lab run recovery-2012 --disk {full}/none")),
        ("--whole-machine", "lab run recovery-2012 --whole-machine --memory 64m"),
    ] {
        terrace(line).refused(2, words);
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "x");
}

#[test]
fn more_than_there_is_and_an_ordinary_user_are_refused() {
    let folder = TempDir::new();
    let out = folder.join("never-made");
    let line = format!("lab run recovery-2012 --out {}", out.display());
    if let Some(command) = as_ordinary_user(&line) {
        run(command).refused(3, "needs root");
    }
    if testkit::is_root() {
        let mut command = command_of("--memory 100t");
        command.arg("--out").arg(&out);
        run(command).refused(3, "can be had");
        assert!(!out.exists());
    }
}

fn command_of(options: &str) -> std::process::Command {
    command(&format!("lab run recovery-2012 {options}"))
}

#[test]
fn a_disk_in_memory_holds_no_swap() {
    if !possible() {
        return;
    }
    let out = TempDir::new();
    let mut command = command_of("--app toucher --memory 32m --disk /dev/shm --out");
    let ran = run({
        command.arg(out.join("out"));
        command
    });
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.err.contains("no swap can be put there"), "{ran:?}");
}

#[test]
fn every_way_has_its_time_its_recording_and_intact_content() {
    let _alone = alone();
    if !possible() {
        return;
    }
    let (before, shared_before, folder) = (swaps(), shared_memory(), TempDir::new());
    let out = folder.join("out");
    let disk = folder.join("disk");
    fs::create_dir(&disk).unwrap();
    let options =
        "--app toucher,sqlite,postgresql --memory 32m --repeat 2 --runs 1 --limit 60s --json";
    let mut command = command_of(options);
    command.arg("--out").arg(&out).arg("--disk").arg(&disk);
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said: Vec<&str> = ran.err.lines().collect();
    assert!(said.len() == 1 && said[0].contains("a swap file of"), "{said:?}");
    assert_eq!(fs::read_to_string(out.join("result.json")).unwrap(), ran.out);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(schema_complaint(SCHEMA, &json), None);
    let result = &json["result"];
    let skipped = result["skipped"].as_array().unwrap().len();
    let trials = result["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 3 * (3 - skipped), "{result}");
    for trial in trials {
        let number = |field: &str| trial[field].as_u64();
        println!(
            "{} {}: {:?} ns, lost {:?}, way {:?} ns, {}",
            trial["application"],
            trial["way"],
            number("recovered_ns"),
            number("pushed_out_bytes"),
            number("way_ns"),
            trial["restore_stop"]
        );
        assert!(number("recovered_ns") >= number("way_ns"), "{trial}");
        assert!(number("usual_p99_ns") > Some(0) && number("requests") > Some(0), "{trial}");
        assert_eq!(number("wrong"), Some(0), "{trial}");
        assert_eq!(schema_complaint(EXPLAIN_SCHEMA, &trial["explanation"]), None);
        let recording = out.join(trial["recording"].as_str().unwrap());
        terrace(&format!("explain {}", recording.display())).done();
        if trial["application"] == "toucher" {
            assert!(number("pushed_out_bytes") > Some(1 << 20), "{trial}");
        }
    }
    let restored = trials.iter().find(|trial| trial["way"] == "restore").unwrap();
    assert!(restored["restored_bytes"].as_u64() > Some(1 << 20), "{restored}");
    assert_eq!(swaps(), before);
    assert_eq!(shared_memory(), shared_before);
    assert_eq!(workplaces(&disk), [""; 0]);
}

/// The shared memory with a name, which outlives those who made it.
fn shared_memory() -> (usize, Vec<String>) {
    let segments = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut databases: Vec<_> = names.filter(|name| name.starts_with("PostgreSQL.")).collect();
    databases.sort();
    (segments.lines().count(), databases)
}

#[test]
fn a_lab_that_is_killed_leaves_neither_swap_nor_files() {
    let _alone = alone();
    if !possible() {
        return;
    }
    let folder = TempDir::new();
    let mut command = command_of("--app toucher --memory 32m --repeat 1000 --runs 1");
    command.arg("--out").arg(folder.join("out")).arg("--disk").arg(folder.join(""));
    let mut lab = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let path = folder.join("").display().to_string();
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < PATIENCE, "never came: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until("its swap file", &|| swaps().contains(&path));
    let toucher = folder.join(format!("terrace-lab-{}/toucher", lab.id()));
    until("its application", &|| toucher.exists());
    lab.kill().unwrap();
    lab.wait().unwrap();
    until("the end of the swap file", &|| !swaps().contains(&path));
    until("the end of its files", &|| workplaces(&folder.join("")).is_empty());
}

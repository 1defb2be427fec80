//! `cargo xtask vm` with a real guest: what comes out of it, how slow its disks are, what it leaves
//! behind.
//!
//! Skipped where QEMU or the guest image is missing: the image is made once by `cargo xtask vm
//! --build` (150 MB of downloads), which no test does on its own.
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::TempDir;

/// Everything that a guest is for, in one boot.
const SCRIPT: &str = "
uname -r
lsblk --noheadings --nodeps --output NAME,SIZE,ROTA /dev/vm/hdd
echo complaint >&2
fio --name=r --filename=/dev/vm/hdd --direct=1 --ioengine=psync --rw=randread --bs=4k \
    --runtime=4 --time_based --output-format=json >/out/fio.json
vm-ctl unplug stick || exit 1
test -b /dev/vm/stick && exit 2
exit 7";

fn vm(folder: &TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("vm").args(args).env("TMPDIR", folder.path());
    command
}

#[test]
fn a_guest_gives_its_output_its_files_its_status_and_a_disk_as_slow_as_its_model() {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    let folder = TempDir::new();
    let (out, stats) = (folder.join("out"), folder.join("stats.json"));
    let mut command = vm(&folder, &["--disk", "hdd:4G,model=hdd", "--timeout", "120"]);
    command.args(["--disk", "stick:64M,bus=usb", "--out"]);
    command.arg(&out).arg("--stats").arg(&stats);
    let run = command.args(["--", SCRIPT]).output().unwrap();
    let said = String::from_utf8(run.stdout).unwrap();
    let complained = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(7), "{said}{complained}");
    assert!(said.starts_with("6.12."), "{said}");
    let words: Vec<&str> = said.split_whitespace().skip(2).collect();
    assert_eq!(words, ["4G", "1"], "{said}");
    assert_eq!(complained, "complaint\n");

    // Time in the guest never runs ahead of the model, whose mean is 13 ms at random places; how
    // far it lags behind is this machine's load. What the disk asked for is exact.
    let fio = json(&out.join("fio.json"));
    let iops = fio["jobs"][0]["read"]["iops"].as_f64().unwrap();
    assert!((1.0..90.0).contains(&iops), "{iops} a second");
    let disk = &json(&stats)["hdd"];
    let reads = disk["reads"].as_f64().unwrap();
    let service_ms = disk["service_ns"].as_f64().unwrap() / 1e6 / reads;
    assert!(reads >= 10.0, "{disk}");
    assert!((9.0..16.0).contains(&service_ms), "{service_ms} ms");
    assert_eq!(folder.names(), ["out", "stats.json"]);
}

#[test]
fn a_killed_run_takes_its_guest_with_it() {
    the_end_leaves_nothing("KILL", 9);
}

#[test]
fn ctrl_c_takes_the_guest_and_all_that_serves_it() {
    the_end_leaves_nothing("INT", 2);
}

#[test]
fn what_cannot_be_asked_ends_with_125_and_one_line() {
    let folder = TempDir::new();
    let run = vm(&folder, &["--disk", "a:1M,model=tape", "--", "true"]).output().unwrap();
    assert_eq!(run.status.code(), Some(125));
    let complained = String::from_utf8(run.stderr).unwrap();
    assert_eq!(complained.lines().count(), 1, "{complained}");
    assert!(complained.contains("there are hdd, usb, sd"), "{complained}");
}

fn json(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("a file that the run made");
    serde_json::from_str(&text).expect("JSON")
}

/// Starts a guest and ends it by the signal: Ctrl-C as a terminal sends it, to the whole process
/// group, SIGKILL to the program alone. Nothing that it started may be left, process or file.
fn the_end_leaves_nothing(signal: &str, number: i32) {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    let folder = TempDir::new();
    let mut run = Command::new("env")
        // A shell's background ignores Ctrl-C's signal, and so would all that is started there.
        .arg("--default-signal=INT")
        .arg(env!("CARGO_BIN_EXE_xtask"))
        .args(["vm", "--disk", "d:64M,model=hdd", "--out"])
        .arg(folder.join("out"))
        .args(["--", "echo started; sleep 1000"])
        .env("TMPDIR", folder.path())
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(run.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let group = run.id();
    let started = descendants(group);
    let to_all = if signal == "INT" { "-" } else { "" };
    let kill = ["-s", signal, "--", &format!("{to_all}{group}")];
    let sent = Command::new("kill").args(kill).status().unwrap();
    let ended = run.wait().unwrap();
    let mut complained = String::new();
    let mut stderr = run.stderr.take().unwrap();
    stderr.read_to_string(&mut complained).unwrap();
    assert!(sent.success());
    assert_eq!(line, "started\n", "{complained}");
    assert_eq!(ended.signal(), Some(number), "{complained}");
    let has_guest = started.iter().any(|(_, name)| name.starts_with("qemu-system"));
    assert!(has_guest, "{started:?}");
    let patience = Instant::now() + Duration::from_secs(60);
    for (process, name) in started {
        let folder = PathBuf::from(format!("/proc/{process}"));
        while is_alive(&folder) {
            assert!(Instant::now() < patience, "{name} lives on");
            thread::sleep(Duration::from_millis(20));
        }
    }
    assert_eq!(folder.names(), ["out"]);
}

/// Whether a process is there and has not ended; if no parent waits for it, as in many
/// containers, one that ended stays in the list.
fn is_alive(folder: &Path) -> bool {
    let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z'))
}

/// The processes that descend from one, with the number and the name of each.
fn descendants(process: u32) -> Vec<(u32, String)> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let mut all = Vec::new();
    for thread in threads {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().flat_map(str::parse) {
            let name = fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
            all.push((child, name.trim_end().to_owned()));
            all.extend(descendants(child));
        }
    }
    all
}

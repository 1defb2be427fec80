//! `terrace lab run recovery-2012 --flash`: files of a database on a modelled hard disk, read
//! through a cache on a modelled stick, and nothing of it is left, however the lab ends.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{command, schema_complaint, terrace};
use testkit::{Cgroup, Mount, SlowDisk, TempDir};

const SCHEMA: &str = include_str!("../../../docs/lab.schema.json");
const MIB: u64 = 1 << 20;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A disk with a head, and a stick.
struct Disks {
    disk: SlowDisk,
    stick: SlowDisk,
}

impl Disks {
    /// `None` where a lab with a cache cannot run, which is said.
    fn new() -> Option<Self> {
        Self::made().map_err(testkit::skip).ok()
    }

    fn made() -> Result<Self, String> {
        if !testkit::is_admin() {
            return Err("root outside of a container".to_owned());
        }
        Cgroup::v1_memory(64 * MIB)?;
        if Command::new("sqlite3").arg("-version").output().is_err() {
            return Err("the program sqlite3".to_owned());
        }
        Ok(Self { disk: SlowDisk::hdd(512 * MIB)?, stick: SlowDisk::modelled("usb", 160 * MIB)? })
    }

    fn mount(&self) -> (Mount<'_>, Mount<'_>) {
        (self.disk.as_ext4().unwrap(), self.stick.as_ext4().unwrap())
    }
}

fn lab(options: &str, out: &Path, disk: &Mount, stick: &Mount) -> Command {
    let mut lab = command(&format!("lab run recovery-2012 --app sqlite,toucher {options}"));
    lab.arg("--out").arg(out).arg("--disk").arg(disk.path()).arg("--flash").arg(stick.path());
    lab
}

fn is_attached(cache: &str) -> bool {
    Path::new("/run/terrace/boost").join(cache).join("device").exists()
}

/// What the lab could leave: directories, mounts, loop devices, caches, swap.
fn traces(number: u32, disk: &Mount, stick: &Mount) -> Vec<String> {
    let name = format!("terrace-lab-{number}");
    let mut found = Vec::new();
    for place in [disk.path(), stick.path()] {
        found.extend(place.join(&name).exists().then(|| format!("{}", place.display())));
    }
    for table in ["/proc/self/mountinfo", "/proc/swaps"] {
        let text = fs::read_to_string(table).unwrap();
        found.extend(text.lines().filter(|line| line.contains(&name)).map(str::to_owned));
    }
    for device in sys::loop_device::LoopDevice::all().unwrap() {
        let file = device.backing_file().unwrap().unwrap_or_default();
        found.extend(file.to_string_lossy().contains(&name).then(|| format!("{device:?}")));
    }
    found.extend(is_attached(&name).then(|| format!("the cache {name}")));
    found
}

#[test]
fn a_cache_that_was_filled_answers_what_the_hogs_took() {
    let Some(disks) = Disks::new() else { return };
    let (disk, stick) = disks.mount();
    let folder = TempDir::new();
    let out = folder.join("out");
    let ways = "--way nothing,flash-new,flash-filled";
    let options = format!("--memory 20m --repeat 2 --runs 1 --limit 120s --json {ways}");
    let child = lab(&options, &out, &disk, &stick).stdout(Stdio::piped()).spawn().unwrap();
    let number = child.id();
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert_eq!(traces(number, &disk, &stick), [""; 0]);
    let json: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(schema_complaint(SCHEMA, &json), None);
    let result = &json["result"];
    assert_ne!(result["flash"], result["disk"], "{result}");
    let why = result["skipped"][0].as_str().unwrap_or_default();
    assert!(!why.contains("toucher"), "it is tried without the cache: {why}");
    let trial = |way: &str| {
        let is_it = |trial: &&Value| trial["application"] == "sqlite" && trial["way"] == way;
        result["trials"].as_array().unwrap().iter().find(is_it).unwrap()
    };
    for way in ["nothing", "flash-new", "flash-filled"] {
        let trial = trial(way);
        println!("{way}: {} ns, {} {}", trial["recovered_ns"], trial["requests"], trial["flash"]);
        assert_eq!(trial["wrong"], 0, "{trial}");
        assert!(trial["pushed_out_bytes"].as_u64() > Some(5 * MIB), "{way}: {trial}");
    }
    assert!(trial("nothing")["flash"].is_null());
    let of = |way: &str, field: &str| trial(way)["flash"][field].as_f64().unwrap();
    // All that is asked for was filled; what was read once in order was not kept.
    assert!(of("flash-filled", "cached_bytes") > 12.0 * MIB as f64);
    assert!(of("flash-new", "cached_bytes") < of("flash-filled", "cached_bytes") / 2.0);
    assert!(of("flash-filled", "hit_bytes") > 0.9 * of("flash-filled", "read_bytes"));
    let recovered = |way: &str| trial(way)["recovered_ns"].as_f64().unwrap_or(f64::MAX);
    assert!(recovered("flash-filled") * 2.0 < recovered("nothing"));
}

#[test]
fn a_lab_that_is_killed_leaves_no_cache_mount_or_device() {
    let Some(disks) = Disks::new() else { return };
    let (disk, stick) = disks.mount();
    let folder = TempDir::new();
    let options = "--memory 32m --repeat 1000 --runs 1 --way flash-new";
    let mut started = lab(options, &folder.join("out"), &disk, &stick);
    let mut lab = started.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !is_so() {
            let all = traces(lab.id(), &disk, &stick);
            assert!(start.elapsed() < PATIENCE, "never came: {what}: {all:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    // It is tried once before; then the database is read through it.
    let name = format!("terrace-lab-{}", lab.id());
    let rows = disk.path().join(&name).join("files/sqlite/rows.db");
    until("the database behind the cache", &|| rows.exists() && is_attached(&name));
    let number = lab.id();
    lab.kill().unwrap();
    lab.wait().unwrap();
    let start = Instant::now();
    while !traces(number, &disk, &stick).is_empty() {
        let all = traces(number, &disk, &stick);
        assert!(start.elapsed() < PATIENCE, "they stay: {all:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn flash_on_the_disk_that_is_tried_is_refused() {
    let Some(disks) = Disks::new() else { return };
    let (disk, _stick) = disks.mount();
    let folder = TempDir::new();
    let output = lab("--memory 20m", &folder.join("out"), &disk, &disk).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("is on the disk that is tried"), "{said}");
    assert_eq!(disk.path().read_dir().unwrap().count(), 1, "lost+found alone");
}

#[test]
fn flash_that_is_no_directory_and_ways_that_need_it_are_refused() {
    for (words, line) in [
        ("--way flash-new needs --flash", "lab run recovery-2012 --way flash-new"),
        ("there is no way prayer", "lab run recovery-2012 --way prayer"),
        ("is no directory", "lab run recovery-2012 --flash /no/such/place"),
        (
            "toucher has no files that a flash cache could hold",
            "lab run recovery-2012 --app toucher --way flash-new --flash / --memory 32m",
        ),
    ] {
        terrace(line).refused(2, words);
    }
}

#[test]
fn a_lab_that_is_killed_while_it_attaches_leaves_nothing() {
    let Some(disks) = Disks::new() else { return };
    let (disk, stick) = disks.mount();
    for delay_ms in [0, 30, 60, 90] {
        let folder = TempDir::new();
        let options = "--memory 20m --repeat 1 --runs 1 --way flash-new";
        let mut started = lab(options, &folder.join("out"), &disk, &stick);
        let mut lab = started.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let number = lab.id();
        // The file of the cache is made at the beginning of an attach.
        let cache = stick.path().join(format!("terrace-lab-{number}/cache"));
        let start = Instant::now();
        while !cache.exists() {
            assert!(start.elapsed() < PATIENCE, "no cache is attached");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(delay_ms));
        lab.kill().unwrap();
        lab.wait().unwrap();
        while !traces(number, &disk, &stick).is_empty() {
            let all = traces(number, &disk, &stick);
            assert!(start.elapsed() < PATIENCE, "they stay: {all:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
        // Nothing comes later either.
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(traces(number, &disk, &stick), [""; 0]);
    }
}

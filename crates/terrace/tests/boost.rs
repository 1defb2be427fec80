//! `terrace boost qualify` on modelled sticks: sound ones beside a slower and a faster disk, one
//! with a burst, fakes that wrap and forget, and one that is killed; what is no stick is refused.
//!
//! The times of the models are the truth that figures are compared with.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::{Ran, TERRACE, as_ordinary_user, run, terrace};
use testkit::{Beyond, FileSystem, Mount, SlowDisk, TempDir, Tmpfs, TrueSize};

const MIB: u64 = 1 << 20;

/// What a fake of 1 GiB really has.
const REAL: u64 = 128 * MIB;

/// A stick that writes quickly, so that a test ends soon, and reads as sticks do.
const STICK: &str = "usb,read_ms=0.8,write_ms=0.1,jump_write_ms=0.5,write_bps=60000000,\
                     read_bps=60000000,erase_bytes=1M,cross_read_ms=0.6,jump_read_ms=0";

/// One modelled disk at a time: their servers need the processor when the model says so.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn qualify(path: &Path, words: &str) -> Ran {
    let mut command = Command::new(TERRACE);
    command.args(["boost", "qualify"]).arg(path).args(words.split_whitespace());
    run(command)
}

fn result(ran: Ran) -> Value {
    let value: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(value["schema"], "terrace.boost.qualify/1");
    value["result"].clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[track_caller]
fn near(value: &Value, expected: f64, share: f64) {
    let value = number(value);
    assert!((value / expected - 1.0).abs() < share, "{value} is not near {expected}");
}

/// The figures are those of the model, and the verdict names both.
#[test]
fn a_sound_stick_is_measured_and_the_disk_decides() {
    let _alone = alone();
    let disks = [SlowDisk::modelled(STICK, 256 * MIB), SlowDisk::hdd(64 * MIB)];
    let [Ok(stick), Ok(disk)] = disks else { return testkit::skip("root and /dev/fuse") };
    let mount = stick.as_ext4().unwrap();
    let beside = format!("--for {} --size 24m --budget 8s --json", disk.path().display());
    let ran = qualify(mount.path(), &beside);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let found = result(ran);
    let verdict = &found["verdict"];
    assert_eq!(verdict["answer"], "yes", "{verdict}");
    assert!(verdict["sentence"].as_str().unwrap().contains("times sooner"), "{verdict}");
    // 0.8 ms and 4 KiB at 60 MB/s; the server of the requests adds its own part.
    near(&found["random_read"]["service_ns"]["median"], 0.87e6, 0.3);
    for figures in ["random_read", "random_write", "read_while_writing"] {
        assert_eq!(found[figures]["served_by"], "device", "{figures}: {}", found[figures]);
        let rate = &found[figures]["bytes_per_s"];
        assert!(number(&rate["low"]) <= number(&rate["median"]), "{figures}: {rate}");
    }
    assert!(
        number(&found["read_while_writing"]["mean_ns"]) > number(&found["random_read"]["mean_ns"])
    );
    assert_eq!(found["burst"], Value::Null, "{}", found["burst"]);
    assert_eq!(found["erase_block"]["bytes"], MIB, "{}", found["erase_block"]);
    let capacity = &found["capacity"];
    assert_eq!(capacity["outcome"], "proved", "{capacity}");
    assert_eq!(capacity["proved_bytes"], found["file_bytes"]);
    assert!(number(&capacity["aliases_read"]) >= 1.0, "{capacity}");
    assert_eq!(capacity["damaged_place"], Value::Null);
    // Beside a disk that answers sooner, the same stick is of no use.
    let quick = SlowDisk::modelled("sd,read_ms=0.05,jump_read_ms=0", 64 * MIB).unwrap();
    let beside = format!("--for {} --size 16m --budget 3s", quick.path().display());
    let page = qualify(mount.path(), &beside).done();
    assert!(page.starts_with("No: your disk (loop"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    left_nothing(mount.path());
}

#[test]
fn the_rate_after_a_burst_is_found() {
    let _alone = alone();
    let timing = "usb,write_ms=0,write_bps=8000000,burst_bytes=24M,burst_bps=80000000";
    let Ok(stick) = SlowDisk::modelled(timing, 256 * MIB) else {
        return testkit::skip("root and /dev/fuse");
    };
    let mount = stick.as_ext4().unwrap();
    let found = result(qualify(mount.path(), "--for /dev/null --size 40m --budget 7s --json"));
    // Making the file system took a part of it, of which some has come back.
    near(&found["burst"]["bytes"], 18.0 * MIB as f64, 0.5);
    // While the machine is busy the stick has idle time, in which room for a burst comes back.
    near(&found["sustained_write"]["median"], 8e6, 0.3);
    let burst = number(&found["burst"]["bytes_per_s"]["median"]);
    assert!(burst > 2.0 * number(&found["sustained_write"]["median"]), "{}", found["burst"]);
}

/// Photos all over what a fake really has, then ext4 with its metadata among them, where the next
/// file begins far beyond that.
fn fill<'d>(fake: &'d SlowDisk, directory: &TempDir) -> Mount<'d> {
    let disk = File::options().write(true).open(fake.path()).unwrap();
    for block in 0..REAL / 4096 {
        disk.write_all_at(&photo(block), block * 4096).unwrap();
    }
    disk.sync_all().unwrap();
    let options = "^has_journal,^resize_inode,sparse_super2";
    let made = Command::new("mkfs.ext4")
        .args(["-q", "-b", "4096", "-O", options, "-E", "num_backup_sb=0,nodiscard"])
        .arg(fake.path())
        .status();
    assert!(made.unwrap().success());
    let mount = Mount::existing(FileSystem::Ext4, fake.path(), directory.join("mount")).unwrap();
    let reserved = mount.path().join("reserved");
    let status = Command::new("fallocate").args(["-l", "600m"]).arg(reserved).status();
    assert!(status.unwrap().success());
    mount
}

fn drop_caches() {
    let status = Command::new("sh").args(["-c", "echo 3 >/proc/sys/vm/drop_caches"]).status();
    assert!(status.unwrap().success());
}

fn read(disk: &File, offset: u64, bytes: u64) -> Vec<u8> {
    let mut buffer = vec![0; bytes as usize];
    disk.read_exact_at(&mut buffer, offset).unwrap();
    buffer
}

fn photo(block: u64) -> Vec<u8> {
    (0..512_u64).flat_map(|word| (block * 512 + word + 1).to_le_bytes()).collect()
}

#[test]
fn a_fake_is_refused_by_its_first_block_and_the_photos_are_whole() {
    let _alone = alone();
    if !testkit::is_admin() {
        return testkit::skip("root and its rights");
    }
    for beyond in [Beyond::Wraps, Beyond::Dropped] {
        let size = TrueSize { bytes: REAL, beyond };
        let Ok(fake) = SlowDisk::fake("sd,write_bps=1000000000,write_ms=0", 1024 * MIB, size)
        else {
            return testkit::skip("root and /dev/fuse");
        };
        let directory = TempDir::new();
        let mount = fill(&fake, &directory);
        let ran = qualify(mount.path(), "--size 16m --budget 10s --json");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let found = result(ran);
        assert_eq!(found["verdict"]["answer"], "no", "{}", found["verdict"]);
        let capacity = &found["capacity"];
        assert_eq!(capacity["outcome"], "refused", "{beyond:?}: {capacity}");
        // Twice where the block was written again to see whether the other place follows.
        let written = if beyond == Beyond::Wraps { 8192 } else { 4096 };
        assert_eq!(found["written_bytes"], written, "{beyond:?}: {found}");
        if beyond == Beyond::Wraps {
            let (high, low) = (&capacity["highest_place"], &capacity["damaged_place"]);
            assert_eq!(number(high) % REAL as f64, number(low), "{capacity}");
            assert_eq!(capacity["is_restored"], true, "{capacity}");
            let place = low.as_u64().unwrap();
            drop_caches();
            let after = read(&File::open(fake.path()).unwrap(), place, 4096);
            assert_eq!(after, photo(place / 4096), "{capacity}");
        }
    }
}

#[test]
fn killed_or_interrupted_it_leaves_nothing() {
    let _alone = alone();
    let Ok(stick) = SlowDisk::modelled(STICK, 256 * MIB) else {
        return testkit::skip("root and /dev/fuse");
    };
    let mount = stick.as_ext4().unwrap();
    let free = || free_bytes(mount.path());
    let before = free();
    for signal in ["KILL", "INT"] {
        let mut command = testkit::with_default_signals(TERRACE);
        command.args(["boost", "qualify", "--size", "128m", "--budget", "60s"]).arg(mount.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let written = stick.statistics().written_bytes;
        let start = Instant::now();
        while stick.statistics().written_bytes < written + 8 * MIB {
            assert!(start.elapsed() < Duration::from_secs(30), "it never wrote");
            assert_eq!(child.try_wait().unwrap(), None, "it ended before");
            std::thread::sleep(Duration::from_millis(10));
        }
        let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let output = child.wait_with_output().unwrap();
        if signal == "INT" {
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            let page = String::from_utf8_lossy(&output.stdout);
            assert!(page.starts_with("Unproven: "), "{page}");
        }
        left_nothing(mount.path());
        let start = Instant::now();
        while free() + MIB < before {
            assert!(start.elapsed() < Duration::from_secs(10), "{} of {before}", free());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn free_bytes(path: &Path) -> u64 {
    let output = Command::new("df").args(["--output=avail", "-B1"]).arg(path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().last().unwrap().trim().parse().unwrap()
}

fn left_nothing(path: &Path) {
    let names: Vec<_> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["lost+found"]);
}

#[test]
fn a_device_is_only_read() {
    let _alone = alone();
    let Ok(stick) = SlowDisk::modelled(STICK, 64 * MIB) else {
        return testkit::skip("root and /dev/fuse");
    };
    let found = result(qualify(stick.path(), "--for /dev/null --budget 3s --json"));
    assert_eq!(stick.statistics().writes, 0);
    assert_eq!(found["capacity"]["outcome"], "not_tried");
    assert_eq!((&found["random_write"], &found["file_bytes"]), (&Value::Null, &Value::Null));
    assert_eq!(found["verdict"]["answer"], "unproven", "{}", found["verdict"]);
    near(&found["random_read"]["service_ns"]["median"], 0.87e6, 0.3);
}

#[test]
fn what_is_no_stick_is_refused_with_the_reason() {
    let refused = |path: &Path, words: &str, code: i32, reason: &str| {
        let ran = qualify(path, words);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.err.contains(reason) && ran.out.is_empty(), "{reason}: {ran:?}");
        assert_eq!(
            ran.err.lines().filter(|line| line.starts_with("terrace:")).count(),
            1,
            "{ran:?}"
        );
    };
    refused(Path::new("/dev/shm"), "", 3, "memory already");
    refused(Path::new("/proc"), "", 2, "no disk holds it");
    refused(Path::new("/absent-from-here"), "", 2, "cannot open");
    refused(Path::new("/dev/shm"), "--size 4k", 2, "at least 16 MiB");
    let directory = TempDir::new();
    fs::write(directory.join("file"), "x").unwrap();
    refused(&directory.join("file"), "", 2, "name its directory");
    let help = terrace("boost qualify --help").done();
    assert!(help.contains("--for"), "{help}");
    if !testkit::is_root() {
        return testkit::skip("root, for the rest");
    }
    if let Ok(small) = Tmpfs::mount(32 * MIB) {
        refused(small.path(), "", 3, "tmpfs");
    }
    if let Ok(full) = testkit::Mounted::ext4(24 * MIB) {
        refused(full.path(), "", 3, "is free there");
        left_nothing(full.path());
        full.remount().unwrap();
        let status = Command::new("mount").args(["-o", "remount,ro"]).arg(full.path()).status();
        assert!(status.unwrap().success());
        refused(full.path(), "", 3, "read-only");
    }
    if let Ok(zram) = testkit::ZramDevice::add(64 * MIB) {
        refused(&zram.path(), "", 3, "is memory already (zram)");
        let place = TempDir::new();
        let made = Command::new("mkfs.ext4").arg("-q").arg(zram.path()).status();
        assert!(made.unwrap().success());
        let mount = Mount::existing(FileSystem::Ext4, &zram.path(), place.join("mount")).unwrap();
        refused(mount.path(), "", 3, "is memory already (zram)");
        left_nothing(mount.path());
    }
    let lower = TempDir::new();
    let place = TempDir::new();
    if let Ok(overlay) = Mount::overlay(lower.path(), place.path()) {
        refused(overlay.path(), "", 3, "overlay");
    }
}

/// Another user sees what is missing.
#[test]
fn without_root_it_says_what_is_missing() {
    let Ok(stick) = testkit::Mounted::ext4(128 * MIB) else {
        return testkit::skip("root and loop devices");
    };
    fs::set_permissions(stick.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let path = stick.path().display();
    let line = format!("boost qualify {path} --for {path} --size 16m --budget 3s --json");
    let Some(command) = as_ordinary_user(&line) else { return };
    let found = result(run(command));
    let said = found["capacity"]["aliases_unseen"].as_str().unwrap().to_owned();
    assert!(said.contains("needs root"), "{said}");
    assert!(found["erase_block"]["unseen"].as_str().unwrap().contains("needs root"));
    assert_eq!(found["capacity"]["outcome"], "proved", "{}", found["capacity"]);
}

//! `terrace ramdisk create --atomic`: each save is what a power cut would leave, also of a database
//! under load; killed at any moment nothing stays, and the zram device is given back; mounts whose
//! server is gone are no obstacle.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::described::{assert_is, described};
use support::{Ran, Started, terrace};
use testkit::{FaultPlan, FaultyDisk, FileSystem, Mounted, TempDir, Tmpfs};

/// Where the notes of devices are.
const NOTES: &str = "/run/terrace/ramdisk";
/// Writes pairs of rows that belong together, and says which are committed.
const DATABASE: &str = "
import sqlite3, sys
base = sqlite3.connect(sys.argv[1], isolation_level=None)
base.execute('pragma journal_mode=wal')
base.execute('pragma synchronous=full')
base.execute('create table one (n integer primary key, text)')
base.execute('create table two (n integer primary key, text)')
for n in range(1 << 40):
    base.execute('begin')
    base.execute('insert into one values (?, ?)', (n, str(n) * 200))
    base.execute('insert into two values (?, ?)', (n, str(n) * 20))
    base.execute('commit')
    print(n, flush=True)
";
/// Says how many pairs are there.
const CHECK: &str = "
import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
assert base.execute('pragma integrity_check').fetchall() == [('ok',)]
counts = [base.execute('select count(*), max(n) from ' + name).fetchone() for name in ('one', 'two')]
assert counts[0] == counts[1] and counts[0][0] == counts[0][1] + 1, counts
print(counts[0][0])
";

/// A directory whose RAM disks go with it. One at a time: what a killed command left is looked for.
struct Scene {
    directory: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Scene {
    /// `None`, with the reason printed, where there can be no such RAM disk.
    fn new() -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        let needs = [
            (testkit::is_root(), "root"),
            (Path::new("/sys/class/zram-control").exists(), "zram"),
            (has_mkfs(), "mkfs.btrfs"),
            (has_btrfs(), "btrfs"),
        ];
        if let Some((_, need)) = needs.iter().find(|(is_there, _)| !is_there) {
            testkit::skip(*need);
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Self { directory: TempDir::new(), _alone: alone })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Runs `terrace ramdisk` with words in which `@NAME` is a path of this scene.
    fn ramdisk(&self, words: &str) -> Ran {
        terrace(&self.line(words))
    }

    fn line(&self, words: &str) -> String {
        let above = format!("{}/", self.directory.path().display());
        format!("ramdisk {}", words.replace('@', &above))
    }

    /// The result of a command that did all it was asked.
    #[track_caller]
    fn json(&self, words: &str) -> Value {
        let text = self.ramdisk(&format!("{words} --json")).done();
        serde_json::from_str::<Value>(&text).unwrap()["result"].take()
    }

    /// Makes a RAM disk and returns its device.
    #[track_caller]
    fn create(&self, words: &str) -> (u64, u64) {
        device_of(&self.json(&format!("create @ram --atomic {words}"))["ramdisk"]).unwrap()
    }

    /// What is at the top of the file system of a device.
    fn beside(&self, device: (u64, u64)) -> Vec<String> {
        let point = self.path("volume");
        let _ = fs::create_dir(&point);
        let (device, at) = (format!("/dev/zram{}", device.0), point.display().to_string());
        let mount = ["-t", "btrfs", "-o", "subvolid=5", &device, &at];
        assert!(Command::new("mount").args(mount).status().unwrap().success());
        let names = names(&point);
        assert!(Command::new("umount").arg(&at).status().unwrap().success());
        names
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let points = table.lines().rev().filter_map(|line| line.split(' ').nth(4));
        for point in points.filter(|point| Path::new(point).starts_with(self.directory.path())) {
            let _ = Command::new("umount").arg("--lazy").arg(point).status();
        }
        let _ = self.ramdisk("remove --discard @ram");
    }
}

/// A directory that was moved onto a RAM disk; that goes, if the test has not given it back.
struct Adopted(PathBuf);

impl Drop for Adopted {
    fn drop(&mut self) {
        let _ = terrace(&format!("ramdisk remove --discard {}", self.0.display()));
    }
}

fn has_mkfs() -> bool {
    let run = Command::new("mkfs.btrfs").arg("--version").stdout(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

fn has_btrfs() -> bool {
    let _ = Command::new("modprobe").arg("btrfs").stderr(Stdio::null()).status();
    fs::read_to_string("/proc/filesystems").is_ok_and(|text| text.contains("\tbtrfs"))
}

fn device_of(record: &Value) -> Option<(u64, u64)> {
    let device = &record["kind"]["atomic"];
    Some((device["number"].as_u64()?, device["sequence"].as_u64()?))
}

fn is_there((number, sequence): (u64, u64)) -> bool {
    let text = fs::read_to_string(format!("/sys/block/zram{number}/diskseq"));
    text.is_ok_and(|text| text.trim() == sequence.to_string())
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The devices that are being made, or were when their maker was killed.
fn noted() -> Vec<(u64, u64)> {
    let all = names(Path::new(NOTES)).into_iter().filter_map(|name| {
        let number = name.strip_prefix("zram")?.parse().ok()?;
        let text = fs::read_to_string(Path::new(NOTES).join(&name)).ok()?;
        Some((number, text.parse().unwrap_or(0)))
    });
    all.collect()
}

/// Bytes that do not compress.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(step).collect()
}

#[test]
fn it_is_filled_saved_and_removed_as_any_and_its_device_goes() {
    let Some(scene) = Scene::new() else { return };
    fs::create_dir_all(scene.path("source/deep")).unwrap();
    for at in 0..40u8 {
        fs::write(scene.path("source").join(format!("file{at}")), vec![at; 5000]).unwrap();
    }
    fs::hard_link(scene.path("source/file1"), scene.path("source/deep/link")).unwrap();
    scene.ramdisk("save @source --persist @store").done();
    let before = described(&scene.path("source"));
    let device = scene.create("--size 64m --persist @store");
    assert!(is_there(device));
    assert_is(&before, &scene.path("ram"));
    assert_eq!(scene.beside(device), ["disk"]);
    let status = scene.json("status @ram")["ramdisks"][0].take();
    let (used, memory) = (&status["used_bytes"], &status["memory_bytes"]);
    assert!(memory.as_u64().unwrap() > 0 && used.as_u64().unwrap() > 0, "{status}");
    assert_eq!(
        (&status["compared"]["changed_entries"], &status["swapped_bytes"]),
        (&0.into(), &0.into())
    );

    // What nothing synced is saved, and what did not change is not written again.
    fs::write(scene.path("ram/new"), noise(300_000)).unwrap();
    fs::rename(scene.path("ram/file3"), scene.path("ram/deep/moved")).unwrap();
    let saved = scene.json("save @ram --persist @store")["saved"].take();
    assert_eq!((&saved["is_snapshot"], &saved["generation"]), (&true.into(), &2.into()));
    assert!(saved["data_bytes"].as_u64().unwrap() < 320_000, "{saved}");
    let again = scene.json("save @ram --persist @store")["saved"].take();
    assert_eq!(
        (&again["is_new"], &again["changed_entries"]),
        (&false.into(), &0.into()),
        "{again}"
    );
    scene.ramdisk("extract 2 @copy --persist @store").done();
    assert_is(&described(&scene.path("ram")), &scene.path("copy"));
    assert_eq!(scene.beside(device), ["disk"], "a snapshot was left");
    // A directory of it alone.
    let part = scene.json("save @ram/deep --persist @part")["saved"].take();
    assert_eq!((&part["is_snapshot"], &part["entries"]), (&true.into(), &3.into()));

    for (words, code, reason) in [
        ("grow @ram 128m", 3, "cannot change"),
        ("save @ram/deep --persist @ram/inside", 2, "would be lost with it"),
        ("adopt @ram/deep --size 8m --persist @other", 2, "in memory already"),
    ] {
        scene.ramdisk(words).refused(code, reason);
    }
    // What is in a subvolume below it is in no snapshot of it: named, and not given up in silence.
    let nested = scene.path("ram/nested");
    let btrfs = |verb: &str| {
        let mut command = Command::new("btrfs");
        command.args(["-q", "subvolume", verb]).arg(&nested).status()
    };
    assert!(btrfs("create").unwrap().success());
    let ran = scene.ramdisk("save @ram");
    assert!(ran.code == Some(1) && ran.out.contains("not saved: nested"), "{ran:?}");
    scene.ramdisk("remove @ram").refused(3, "no save has what is unreadable or on another file");
    assert!(btrfs("delete").unwrap().success());
    fs::write(scene.path("ram/unsaved"), "unsaved").unwrap();
    scene.ramdisk("remove @ram").refused(3, "not saved");
    fs::write(scene.path("ram/unsaved"), "still written to").unwrap();
    scene.ramdisk("save @ram --persist @store").done();
    let before = described(&scene.path("ram"));
    scene.ramdisk("remove @ram").done();
    assert!(!is_there(device) && !scene.path("ram").exists());
    scene.create("--size 64m --persist @store");
    assert_is(&before, &scene.path("ram"));
    scene.ramdisk("remove @ram").done();
    assert!(noted().is_empty());
}

#[test]
fn what_makes_no_sense_is_refused_and_what_others_unmounted_is_not_given_up_by_itself() {
    let Some(scene) = Scene::new() else { return };
    fs::create_dir(scene.path("source")).unwrap();
    fs::write(scene.path("source/file"), noise(20 << 20)).unwrap();
    scene.ramdisk("save @source --persist @store").done();
    for (words, code, reason) in [
        ("--size 1m", 2, "at least"),
        ("--size 64t", 3, "can be had"),
        ("--size 64m --huge always", 2, "cannot be used with"),
        ("--size 64m --noswap", 2, "cannot be used with"),
        ("--size 64m --prefault", 2, "cannot be used with"),
        ("--size 24m --persist @store", 2, "btrfs needs"),
    ] {
        let ran = scene.ramdisk(&format!("create @ram --atomic {words}"));
        assert_eq!(ran.code, Some(code), "{words}: {}", ran.err);
        assert!(ran.err.contains(reason), "{words}: {}", ran.err);
        assert!(!scene.path("ram").exists() && noted().is_empty(), "{words}");
    }
    let mut command = support::command(&scene.line("create @ram --atomic --size 64m"));
    command.env("PATH", "/nonexistent");
    if !Path::new("/usr/sbin/mkfs.btrfs").exists() {
        support::run(command).refused(3, "btrfs-progs");
    }

    let device = scene.create("--size 64m --mode 1777 --owner 7:8");
    fs::write(scene.path("ram/file"), "content").unwrap();
    let point = scene.path("ram").display().to_string();
    assert!(Command::new("umount").arg(&point).status().unwrap().success());
    assert!(scene.ramdisk("list").out.contains("still on its device"));
    scene.ramdisk("save @ram/file --persist @none").refused(2, "");
    scene.ramdisk("remove @ram").refused(3, "still on its device");
    // A new one in its place would forget it, and its files would go.
    for kind in ["", " --atomic"] {
        let again = format!("create @ram --size 64m{kind}");
        scene.ramdisk(&again).refused(3, "still on its device");
    }
    assert!(is_there(device));
    scene.ramdisk("remove @ram --discard").done();
    assert!(!is_there(device) && noted().is_empty());
}

/// What was unmounted says nothing of what is mounted in its place.
#[test]
fn units_are_of_what_is_mounted_now() {
    let Some(scene) = Scene::new() else { return };
    scene.create("--size 64m --persist @store");
    let point = scene.path("ram").display().to_string();
    let done = |program: &str, words: &[&str]| {
        assert!(Command::new(program).args(words).status().unwrap().success());
    };
    let install = || scene.ramdisk("install @ram --persist @store --dry-run");
    assert!(install().done().contains("--atomic"));
    done("umount", &[&point]);
    fs::create_dir(scene.path("source")).unwrap();
    done("mount", &["--bind", scene.path("source").to_str().unwrap(), &point]);
    install().refused(2, "is not where a tmpfs is mounted now");
    done("umount", &[&point]);
    done("mount", &["-t", "tmpfs", "-o", "size=8m", "terrace-test", &point]);
    let units = install().done();
    done("umount", &[&point]);
    assert!(units.contains("[Mount]") && units.contains("size=8192k"), "{units}");
    assert!(!units.contains("--atomic"), "{units}");
}

/// A loop device over a file whose server is gone, as after a crash of a program that serves files:
/// `mkfs.btrfs` asks for that file and gives up.
#[test]
fn a_mounted_disk_whose_server_is_gone_is_no_obstacle() {
    let Some(scene) = Scene::new() else { return };
    // The other tests of this machine shall not meet that disk.
    let run = || {
        sys::mount::separate_mounts().unwrap();
        let disk = match FaultyDisk::new(16 << 20, FaultPlan::new()) {
            Ok(disk) => disk,
            Err(need) => return testkit::skip(need),
        };
        let _mount = disk.mount(FileSystem::Ext4).unwrap();
        let name = disk.device().file_name().unwrap();
        let attribute = Path::new("/sys/block").join(name).join("loop/backing_file");
        let text = fs::read_to_string(attribute).unwrap();
        let file = Path::new(text.trim_end());
        let point = file.parent().unwrap();
        // It is in use, so it stays, but its connection ends.
        let force = Command::new("umount").arg("--force").arg(point).output().unwrap();
        assert!(!force.status.success());
        let error = fs::metadata(file).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotConnected, "{error}");
        let device = scene.create("--size 64m");
        fs::write(scene.path("ram/file"), "content").unwrap();
        scene.ramdisk("remove --discard @ram").done();
        assert!(!is_there(device));
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap());
}

/// As a boot does it: of a RAM disk that covers no directory, with the top that it had.
#[test]
fn units_make_one_anew() {
    let Some(scene) = Scene::new() else { return };
    scene.create("--size 64m --mode 1750 --owner 7:8 --persist @store --every 90s --keep 2");
    fs::write(scene.path("ram/file"), noise(100_000)).unwrap();
    scene.ramdisk("save @ram").done();
    let before = described(&scene.path("ram"));
    scene.ramdisk("install @ram --to @units").done();
    let text = verified_create(&scene.path("units"));
    assert!(text.contains("made anew") && !text.contains("--adopted"), "{text}");
    assert!(text.contains("--keep 2 --force --atomic --size 67108864 --every 90s"), "{text}");
    scene.ramdisk("remove @ram").done();
    create_by(&text);
    assert_is(&before, &scene.path("ram"));
    assert_eq!(scene.json("status @ram")["ramdisks"][0]["ramdisk"]["persist"]["keep"], 2);
    scene.ramdisk("uninstall @ram --to @units").done();
    assert!(names(&scene.path("units")).is_empty());
    scene.ramdisk("remove @ram").done();
}

/// The unit that calls `create`; systemd accepts all of them.
fn verified_create(units: &Path) -> String {
    if support::has_program("systemd-analyze") {
        let mut verify = Command::new("systemd-analyze");
        verify.arg("verify").env("SYSTEMD_UNIT_PATH", format!("{}:", units.display()));
        let services = names(units).into_iter().filter(|name| name.ends_with(".service"));
        verify.args(services.map(|name| units.join(name)));
        let ran = support::run(verify);
        assert!(ran.code == Some(0) && !ran.err.contains("ramdisk"), "{ran:?}");
    }
    let unit = names(units).into_iter().find(|name| name.ends_with("-create.service")).unwrap();
    fs::read_to_string(units.join(unit)).unwrap()
}

/// Runs what a unit starts.
fn create_by(unit: &str) {
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let mut create = Command::new("sh");
    create.args(["-c", line]);
    support::run(create).done();
}

/// A directory on a disk moves onto an atomic RAM disk, is kept by its name, and moves back.
#[test]
fn a_directory_moves_onto_one_and_back_and_units_make_it_again() {
    let Some(scene) = Scene::new() else { return };
    let disk = match Mounted::made("ext4", &["-q"], 64 << 20) {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    let (tree, store) = (disk.path().join("tree"), disk.path().join("store"));
    fs::create_dir_all(tree.join("deep")).unwrap();
    fs::write(tree.join("deep/file"), noise(100_000)).unwrap();
    let before = described(&tree);
    let (shown, kept) = (tree.display(), store.display());
    let adopt = format!("ramdisk adopt {shown} --size 64m --persist {kept} --atomic");
    terrace(&format!("{adopt} --noswap")).refused(2, "cannot be used with");
    terrace(&adopt).done();
    let _adopted = Adopted(tree.clone());
    assert_is(&before, &tree);
    // RAM disks of others may be gone.
    let list: Value = serde_json::from_str(&terrace("ramdisk list --json").out).unwrap();
    let all = list["result"]["ramdisks"].as_array().unwrap();
    let point = tree.to_str().unwrap();
    let known = all.iter().find(|one| one["ramdisk"]["mount_point"] == *point).unwrap();
    let device = device_of(&known["ramdisk"]).unwrap();
    fs::write(tree.join("new"), "new").unwrap();
    let text = terrace(&format!("ramdisk save {shown} --json")).done();
    let saved: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(saved["result"]["saved"]["is_snapshot"], true, "{saved}");

    // A boot has its units call these lines.
    let units = scene.path("units");
    let to = units.display();
    terrace(&format!("ramdisk install {shown} --to {to}")).done();
    let text = verified_create(&units);
    assert!(text.contains("--adopted --atomic") && !text.contains("--force"), "{text}");
    let before = described(&tree);
    terrace(&format!("ramdisk remove {shown} --discard")).done();
    assert!(!is_there(device));
    create_by(&text);
    assert_is(&before, &tree);
    terrace(&format!("ramdisk uninstall {shown} --to {to}")).done();

    terrace(&format!("ramdisk release {shown}")).done();
    assert_is(&before, &tree);
    assert_eq!(names(disk.path()), ["lost+found", "store", "tree"]);
    assert!(noted().is_empty());
}

/// `first` and `last` never differ by more than one. Between them are so many files that a save
/// which reads them one after the other sees both at different times.
#[test]
fn a_save_keeps_the_order_of_synced_writes_and_one_of_a_tmpfs_does_not() {
    let Some(scene) = Scene::new() else { return };
    scene.create("--size 64m");
    let tmpfs = match Tmpfs::mount(64 << 20) {
        Ok(tmpfs) => tmpfs,
        Err(need) => return testkit::skip(need),
    };
    let is_broken = |top: &Path, saves: u32, is_enough: bool| {
        for name in ["a", "m0", "m1", "m2", "z"] {
            fs::create_dir(top.join(name)).unwrap();
        }
        for at in 0..900 {
            let path = top.join(format!("m{}/file{at}", at % 3));
            fs::write(path, noise(4000)).unwrap();
        }
        let [first, last] = ["a/first", "z/last"].map(|name| {
            let file = File::create(top.join(name)).unwrap();
            file.write_all_at(&0u64.to_le_bytes(), 0).unwrap();
            file
        });
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1u64.. {
                    for file in [&first, &last] {
                        file.write_all_at(&number.to_le_bytes(), 0).unwrap();
                        // Only what is synced has an order after a power cut.
                        file.sync_data().unwrap();
                    }
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    std::thread::sleep(Duration::from_micros(100));
                }
            });
            let mut broken = 0;
            for at in 0..saves {
                let (store, copy) = (format!("{}{at}", top.display()), scene.path("copy"));
                let store = scene.path(&format!("store{}", store.replace('/', "_")));
                // A file that changes while it is read may be left out: that is no copy either.
                let line = format!("ramdisk save {} --persist {}", top.display(), store.display());
                let is_whole = terrace(&line).code == Some(0);
                let line = format!("extract 1 {} --persist {}", copy.display(), store.display());
                scene.ramdisk(&line).done();
                let read = |name: &str| {
                    fs::read(copy.join(name))
                        .ok()
                        .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
                };
                let is_in_order = match (read("a/first"), read("z/last")) {
                    (Some(first), Some(last)) => first.abs_diff(last) <= 1,
                    _ => false,
                };
                broken += u32::from(!(is_whole && is_in_order));
                fs::remove_dir_all(&copy).unwrap();
                if broken > 0 && is_enough {
                    break;
                }
            }
            is_over.store(true, Ordering::Relaxed);
            broken
        })
    };
    assert_eq!(is_broken(&scene.path("ram"), 5, false), 0);
    assert!(is_broken(tmpfs.path(), 10, true) > 0, "this test cannot see a broken order");
}

#[test]
fn each_generation_of_a_database_under_load_opens_and_has_what_was_committed() {
    let Some(scene) = Scene::new() else { return };
    if !python(&["-c", "import sqlite3"]).status().is_ok_and(|status| status.success()) {
        return testkit::skip("python3 with sqlite3");
    }
    scene.create("--size 256m --persist @store --keep 20");
    let base = scene.path("ram/base");
    let mut command = python(&["-c", DATABASE, base.to_str().unwrap()]);
    command.stdout(Stdio::piped());
    let mut database = Started(command.spawn().unwrap());
    let (sender, committed) = std::sync::mpsc::channel();
    let lines = BufReader::new(database.0.stdout.take().unwrap()).lines();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let _ = sender.send(line.parse::<u64>().unwrap());
        }
    });
    let mut least = Vec::new();
    for _ in 0..6 {
        let first = committed.recv_timeout(Duration::from_secs(30)).unwrap();
        let until_now = committed.try_iter().last().unwrap_or(first);
        scene.ramdisk("save @ram --persist @store --keep 20").done();
        least.push(until_now + 1);
    }
    drop(database);
    for (at, least) in least.iter().enumerate() {
        scene.ramdisk(&format!("extract {} @copy --persist @store", at + 1)).done();
        let copy = scene.path("copy/base");
        let output = python(&["-c", CHECK, copy.to_str().unwrap()]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "generation {}: {said}", at + 1);
        let pairs: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
        assert!(pairs >= *least, "generation {}: {pairs} of {least} pairs", at + 1);
        fs::remove_dir_all(scene.path("copy")).unwrap();
    }
}

fn python(words: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.args(words).stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

#[test]
fn a_save_that_is_killed_leaves_no_snapshot_after_the_next() {
    let Some(scene) = Scene::new() else { return };
    let device = scene.create("--size 128m --persist @store");
    fs::write(scene.path("ram/file"), noise(40 << 20)).unwrap();
    let line = scene.line("save @ram --persist @store");
    let mut left = 0;
    for moment in 1..20 {
        let mut command = support::command(&line);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(10 * moment));
        let _ = child.kill();
        let _ = child.wait();
        let beside = scene.beside(device).len() - 1;
        assert!(beside <= 1, "the next save did not remove what the one before left");
        left += beside;
        if left >= 2 {
            break;
        }
    }
    assert!(left > 0, "no kill came while there was a snapshot");
    terrace(&line).done();
    assert_eq!(scene.beside(device), ["disk"]);
}

#[test]
fn a_create_that_is_killed_leaves_neither_a_mount_nor_a_device() {
    let Some(scene) = Scene::new() else { return };
    fs::create_dir(scene.path("source")).unwrap();
    for at in 0..300 {
        fs::write(scene.path("source").join(format!("file{at}")), vec![7; 20_000]).unwrap();
    }
    scene.ramdisk("save @source --persist @store").done();
    let before = described(&scene.path("source"));
    let line = scene.line("create @ram --atomic --size 64m --persist @store");
    let started = Instant::now();
    terrace(&line).done();
    let usual = started.elapsed();
    scene.ramdisk("remove @ram").done();
    let mut devices = 0;
    for moment in 0..10 {
        let mut command = support::command(&line);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(usual * moment / 9);
        let _ = child.kill();
        let _ = child.wait();
        let noted = noted();
        devices += noted.len();
        if fs::read_dir(scene.path("ram")).is_ok_and(|entries| entries.count() > 0) {
            assert_is(&before, &scene.path("ram"));
            scene.ramdisk("remove @ram").done();
        }
        // A program that makes the file system may be at it still.
        let until = Instant::now() + Duration::from_secs(5);
        while !self::noted().is_empty() && Instant::now() < until {
            // RAM disks of others may be gone.
            let _ = scene.ramdisk("list");
        }
        assert!(!noted.into_iter().any(is_there), "moment {moment}: a device was left");
        assert!(self::noted().is_empty() && !scene.path("ram").exists(), "moment {moment}");
    }
    assert!(devices > 0, "no kill came while there was a device");
}

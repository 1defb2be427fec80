//! `terrace ramdisk save` and `restore` on real RAM disks: what is saved comes back equal, a save
//! writes only what changed, a kill at any moment leaves a whole generation, and damage costs one
//! file.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use support::described::{assert_is, described};
use support::killed::{is_killed_at, kill_points};
use support::{Ran, as_ordinary_user, has_program, run, terrace};
use testkit::{TempDir, Tmpfs};

const MIB: usize = 1 << 20;

/// Numbers that differ from seed to seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut all = Vec::with_capacity(length + 8);
        while all.len() < length {
            all.extend(self.next().to_le_bytes());
        }
        all.truncate(length);
        all
    }
}

fn numbers(seed: u64) -> Numbers {
    Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
}

/// All kinds of entries, sizes around every border, odd names.
fn make_tree(top: &Path) {
    let mut numbers = numbers(5);
    fs::create_dir_all(top.join("deep/er/est")).unwrap();
    let block = 256 << 10;
    let sizes = [0, 1, 4095, 4096, 4097, block - 1, block, block + 1, 3 * block + 777];
    for (at, size) in sizes.into_iter().enumerate() {
        fs::write(top.join(format!("file{at}")), numbers.bytes(size)).unwrap();
    }
    for at in 0..100 {
        fs::write(top.join(format!("deep/er/small{at}")), numbers.bytes(10 + at * 7)).unwrap();
    }
    let sparse = File::create(top.join("sparse")).unwrap();
    sparse.write_all_at(&numbers.bytes(5000), 9 * MIB as u64 + 100).unwrap();
    sparse.set_len(40 * MIB as u64 + 3).unwrap();
    fs::hard_link(top.join("file3"), top.join("deep/second")).unwrap();
    symlink("../file1", top.join("deep/link")).unwrap();
    symlink("nowhere at all", top.join("dangling")).unwrap();
    fs::write(top.join(OsString::from_vec(b"odd \xff\n\t\x1b[31m \\x41".to_vec())), "odd").unwrap();
    fs::set_permissions(top.join("file1"), fs::Permissions::from_mode(0o4751)).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::new(981_173_106, 789_012_345);
    for name in ["file2", "deep/er/small7"] {
        File::options().append(true).open(top.join(name)).unwrap().set_modified(old).unwrap();
    }
    assert!(Command::new("mkfifo").arg(top.join("pipe")).status().unwrap().success());
    if testkit::is_root() {
        let node = Command::new("mknod").arg(top.join("null")).args(["c", "1", "3"]).status();
        assert!(node.unwrap().success());
        std::os::unix::fs::chown(top.join("file4"), Some(1234), Some(4321)).unwrap();
    }
    fs::set_permissions(top.join("deep/er"), fs::Permissions::from_mode(0o1750)).unwrap();
    File::open(top.join("deep/er")).unwrap().set_modified(old).unwrap();
}

fn ramdisk(words: &str) -> Ran {
    terrace(&format!("ramdisk {words}"))
}

/// What a save reports.
fn save(source: &Path, store: &Path) -> serde_json::Value {
    let words = format!("save {} --persist {} --json", source.display(), store.display());
    let ran = ramdisk(&words);
    assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    json["result"]["saved"].clone()
}

fn restore(store: &Path, target: &Path, more: &str) -> Ran {
    ramdisk(&format!("restore {} --persist {} {more}", target.display(), store.display()))
}

/// Names, lengths and times of a directory's files.
fn listed(directory: &Path) -> Vec<(OsString, u64, SystemTime)> {
    let mut all: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name(), entry.metadata().unwrap()))
        .map(|(name, about)| (name, about.len(), about.modified().unwrap()))
        .collect();
    all.sort();
    all
}

/// Longer than the grain of a file's times: what was changed before is settled.
fn settle() {
    std::thread::sleep(Duration::from_millis(50));
}

fn one_line(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_saved_comes_back_equal_and_an_unchanged_directory_writes_nothing() {
    let directory = TempDir::new();
    let (source, store) = (directory.join("source"), directory.join("store"));
    make_tree(&source);
    settle();
    let before = described(&source);
    let saved = save(&source, &store);
    assert_eq!((&saved["generation"], &saved["is_new"]), (&1.into(), &true.into()));
    assert_eq!(saved["entries"], before.len(), "{saved}");
    let there = listed(&store);
    let again = save(&source, &store);
    assert_eq!((&again["generation"], &again["is_new"]), (&1.into(), &false.into()), "{again}");
    assert_eq!(again["read_bytes"], 0, "what did not change is not read: {again}");
    assert_eq!(there, listed(&store));
    let ran = restore(&store, &directory.join("restored"), "");
    assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    assert_is(&before, &directory.join("restored"));
    let sparse = directory.join("restored/sparse").metadata().unwrap();
    assert!(sparse.blocks() * 512 < 4 * MIB as u64, "holes stay holes");
    let words = format!(
        "extract 1 deep/er/small7 {}/part --persist {}",
        directory.path().display(),
        store.display()
    );
    assert_eq!(ramdisk(&words).code, Some(0));
    let part = fs::read(directory.join("part/small7")).unwrap();
    assert_eq!(part, fs::read(source.join("deep/er/small7")).unwrap());
    let list = ramdisk(&format!("list --persist {}", store.display()));
    assert!(one_line(&list.out).contains("when generation 1 was saved"), "{}", list.out);
    assert_eq!(fs::metadata(&store).unwrap().mode() & 0o777, 0o700);
}

/// Few bytes for a tail, for a block of a large file, and for new names of old files.
#[test]
fn a_save_writes_what_changed() {
    let directory = TempDir::new();
    let (source, store) = (directory.join("source"), directory.join("store"));
    fs::create_dir(&source).unwrap();
    let large = 64 * MIB;
    fs::write(source.join("log"), numbers(1).bytes(large)).unwrap();
    for at in 0..8 {
        fs::write(source.join(format!("log.{at}")), numbers(at + 2).bytes(MIB)).unwrap();
    }
    settle();
    let written = |saved: &serde_json::Value| {
        saved["data_bytes"].as_u64().unwrap() + saved["manifest_bytes"].as_u64().unwrap()
    };
    let first = save(&source, &store);
    assert!(written(&first) > large as u64, "{first}");
    let mut log = File::options().append(true).open(source.join("log")).unwrap();
    log.write_all(&numbers(77).bytes(4096)).unwrap();
    let appended = save(&source, &store);
    assert_eq!(appended["data_bytes"], 4096, "{appended}");
    assert!(written(&appended) <= 64 << 10, "{appended}");
    for at in (0..7).rev() {
        let (from, to) = (format!("log.{at}"), format!("log.{}", at + 1));
        fs::rename(source.join(from), source.join(to)).unwrap();
    }
    let rotated = save(&source, &store);
    assert_eq!(rotated["data_bytes"], 0, "{rotated}");
    assert!(written(&rotated) <= 64 << 10, "{rotated}");
    let middle = File::options().write(true).open(source.join("log")).unwrap();
    middle.write_all_at(b"changed", 20 * MIB as u64).unwrap();
    let block = save(&source, &store);
    assert_eq!(block["data_bytes"], 256 << 10, "{block}");
    let expected = described(&source);
    assert_eq!(restore(&store, &directory.join("restored"), "").code, Some(0));
    assert_is(&expected, &directory.join("restored"));
    // A log that grows by many saves has not a piece for each.
    fs::remove_file(source.join("log")).unwrap();
    let mut small = File::options().append(true).open(source.join("log.7")).unwrap();
    for at in 0..20 {
        small.write_all(format!("line {at}\n").as_bytes()).unwrap();
        save(&source, &store);
    }
    let expected = described(&source);
    assert_eq!(restore(&store, &directory.join("again"), "").code, Some(0));
    assert_is(&expected, &directory.join("again"));
    let names: Vec<_> = listed(&store).into_iter().map(|(name, ..)| name).collect();
    let data = names.iter().filter(|name| name.to_string_lossy().starts_with("data-")).count();
    assert!(data < 14, "data that no generation needs is removed: {names:?}");
}

/// Any changes between saves: each generation that is kept comes back as it was.
#[test]
fn random_changes_come_back() {
    for seed in 1..4 {
        let directory = TempDir::new();
        let (source, store) = (directory.join("source"), directory.join("store"));
        make_tree(&source);
        let mut numbers = numbers(seed);
        let mut states = BTreeMap::new();
        for _ in 0..12 {
            for _ in 0..numbers.below(12) {
                change(&source, &mut numbers);
            }
            // Some saves come within the grain of the times, some do not.
            if numbers.below(2) == 0 {
                settle();
            }
            let saved = save(&source, &store);
            states.insert(saved["generation"].as_u64().unwrap(), described(&source));
        }
        for (generation, expected) in states.iter().rev().take(3) {
            let target = directory.join(format!("restored{generation}"));
            let ran = restore(&store, &target, &format!("--generation {generation}"));
            assert_eq!(ran.code, Some(0), "seed {seed}: {} {}", ran.out, ran.err);
            assert_is(expected, &target);
        }
    }
}

/// One change to a tree.
fn change(top: &Path, numbers: &mut Numbers) {
    let small = |number: u64| top.join(format!("deep/er/small{number}"));
    let (one, other) = (small(numbers.below(100)), small(numbers.below(110)));
    let large = top.join("file8");
    match numbers.below(9) {
        0 => drop(fs::rename(&one, &other)),
        1 => drop(fs::remove_file(&one)),
        2 => drop(fs::hard_link(&one, &other)),
        3 => {
            let length = numbers.below(700_000) as usize;
            fs::write(&other, numbers.bytes(length)).unwrap();
        }
        4 => {
            let file = File::options().write(true).open(&large).unwrap();
            let (length, at) = (numbers.below(9000) as usize, numbers.below(900_000));
            file.write_all_at(&numbers.bytes(length), at).unwrap();
        }
        5 => {
            let file = File::options().write(true).open(&large).unwrap();
            file.set_len(numbers.below(1_000_000)).unwrap();
        }
        6 => {
            // The same length and the old time of change: only content or the inode tell.
            if let Ok(file) = File::options().write(true).open(&one) {
                let about = file.metadata().unwrap();
                file.write_all_at(&numbers.bytes(about.len().min(5) as usize), 0).unwrap();
                file.set_modified(about.modified().unwrap()).unwrap();
            }
        }
        7 => {
            let mode = 0o600 | (numbers.below(8) as u32) << 3;
            if one.exists() {
                fs::set_permissions(&one, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        _ => {
            let directory = top.join(format!("deep/made{}", numbers.below(4)));
            if fs::create_dir(&directory).is_err() {
                fs::remove_dir_all(&directory).unwrap();
            }
        }
    }
}

/// Through a shared mapping only the first write to a page moves the time of change.
#[test]
fn what_is_written_through_a_mapping_is_saved() {
    const PROGRAM: &str = "
import mmap, sys
f = open(sys.argv[1], 'r+b')
m = mmap.mmap(f.fileno(), 0)
for line in sys.stdin:
    m[0:5] = line.strip().encode()
    print('done', flush=True)
";
    let disk = match Tmpfs::mount(64 << 20) {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    if !has_program("python3") {
        return testkit::skip("python3");
    }
    let directory = TempDir::new();
    let store = directory.join("store");
    let file = disk.path().join("database");
    fs::write(&file, numbers(3).bytes(100_000)).unwrap();
    let mut writer = Command::new("python3")
        .args(["-c", PROGRAM])
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = BufReader::new(writer.stdout.take().unwrap()).lines();
    let mut words = writer.stdin.take().unwrap();
    let mut write = |word: &str| {
        writeln!(words, "{word}").unwrap();
        assert_eq!(answers.next().unwrap().unwrap(), "done");
        settle();
    };
    write("first");
    save(disk.path(), &store);
    let changed = || {
        let about = file.metadata().unwrap();
        (about.ctime(), about.ctime_nsec())
    };
    let before = changed();
    write("again");
    assert_eq!(before, changed(), "the case that this is about");
    let saved = save(disk.path(), &store);
    assert_eq!(saved["changed_entries"], 1, "{saved}");
    drop(words);
    writer.wait().unwrap();
    assert_eq!(restore(&store, &directory.join("restored"), "").code, Some(0));
    assert_eq!(&fs::read(directory.join("restored/database")).unwrap()[..5], b"again");
}

/// Each time it is read, the file has changed before its end.
#[test]
fn a_file_that_changes_while_it_is_read_stays_as_last_saved_and_is_named() {
    let shared = Path::new("/dev/shm");
    if !shared.is_dir() {
        return testkit::skip("/dev/shm");
    }
    let (memory, directory) = (TempDir::in_dir(shared), TempDir::new());
    let (source, store) = (memory.join("source"), directory.join("store"));
    fs::create_dir(&source).unwrap();
    // To read it takes longer than the grain of its times.
    fs::write(source.join("busy"), vec![1; 64 * MIB]).unwrap();
    fs::write(source.join("calm"), "before").unwrap();
    settle();
    save(&source, &store);
    let before = described(&source);
    fs::write(source.join("calm"), "after").unwrap();
    let busy = File::options().write(true).open(source.join("busy")).unwrap();
    let is_over = AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 2u64.. {
                busy.write_all_at(&number.to_le_bytes(), 0).unwrap();
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let (from, to) = (source.display(), store.display());
        let ran = ramdisk(&format!("save {from} --persist {to} --json"));
        is_over.store(true, Ordering::Relaxed);
        ran
    });
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let saved: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let failures = &saved["result"]["saved"]["failures"];
    assert_eq!((failures.as_array().unwrap().len(), &failures[0]["path"]), (1, &"busy".into()));
    let reason = failures[0]["reason"].as_str().unwrap();
    assert!(reason.contains("changed each time while it was read"), "{reason}");
    assert!(reason.contains("kept as it was saved before"), "{reason}");
    restore(&store, &directory.join("part"), "").done();
    let (part, now) = (described(&directory.join("part")), described(&source));
    assert_eq!(part["\"busy\""], before["\"busy\""], "as it was saved last");
    assert_eq!(part["\"calm\""], now["\"calm\""], "the rest is saved");
    assert_ne!(now["\"busy\""], before["\"busy\""]);
    let words = format!("save {} --persist {} --force", source.display(), store.display());
    ramdisk(&words).done();
    restore(&store, &directory.join("whole"), "").done();
    assert_is(&now, &directory.join("whole"));
}

/// A clock that was set back gives the newest generation the oldest time.
#[test]
fn generations_are_ordered_by_their_numbers_and_not_by_their_times() {
    let directory = TempDir::new();
    let (source, store) = (directory.join("source"), directory.join("store"));
    fs::create_dir(&source).unwrap();
    let save_next = |number: u64, more: &str| {
        // All of it, so that a generation needs nothing of those before.
        fs::write(source.join("file"), numbers(number).bytes(5000)).unwrap();
        let (from, to) = (source.display(), store.display());
        ramdisk(&format!("save {from} --persist {to} {more}")).done();
        for (name, ..) in listed(&store) {
            let text = name.to_string_lossy().into_owned();
            let of_name: Option<u64> = text
                .strip_prefix("generation-")
                .or_else(|| text.strip_prefix("data-"))
                .and_then(|rest| rest.get(..10)?.parse().ok());
            let years = 50 - of_name.unwrap_or(0);
            let back = SystemTime::UNIX_EPOCH + Duration::from_secs(years * 31_557_600);
            File::open(store.join(name)).unwrap().set_modified(back).unwrap();
        }
    };
    let kept = || {
        let text = ramdisk(&format!("list --persist {} --json", store.display())).done();
        let list: serde_json::Value = serde_json::from_str(&text).unwrap();
        let all = list["result"]["generations"].as_array().unwrap().clone();
        all.iter().map(|one| one["generation"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    (1..=3).for_each(|number| save_next(number, ""));
    assert_eq!(kept(), [1, 2, 3]);
    save_next(4, "--keep 2");
    assert_eq!(kept(), [3, 4]);
    let before = described(&source);
    restore(&store, &directory.join("restored"), "").done();
    assert_is(&before, &directory.join("restored"));
}

/// A RAM disk that was mounted anew is empty: it is not saved over what it held.
#[test]
fn another_ram_disk_is_not_saved_over_the_store() {
    let directory = TempDir::new();
    let store = directory.join("store");
    let mount = || Tmpfs::mount(64 << 20);
    let disk = match mount() {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    make_tree(disk.path());
    settle();
    let before = described(disk.path());
    save(disk.path(), &store);
    drop(disk);
    let disk = mount().unwrap();
    let words = format!("save {} --persist {}", disk.path().display(), store.display());
    ramdisk(&words).refused(3, "Restore it first");
    // A restore to it makes it the one.
    let ran = restore(&store, disk.path(), "");
    assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    assert_is(&before, disk.path());
    assert_eq!(ramdisk(&words).code, Some(0));
    fs::write(disk.path().join("new"), "new").unwrap();
    assert_eq!(save(disk.path(), &store)["changed_entries"], 2);
    let other = mount().unwrap();
    let words = format!("save {} --persist {} --force", other.path().display(), store.display());
    assert_eq!(ramdisk(&words).code, Some(0));
}

/// A file of which a restore reads several parts at a time.
const LARGE: usize = 2500 << 10;

/// The queue that large files are read by is refused as a whole, at once or amid a file: the rest
/// is read by plain calls.
#[test]
fn a_queue_that_fails_amid_a_restore_costs_no_file() {
    if !has_program("strace") {
        return testkit::skip("strace");
    }
    let directory = TempDir::new();
    let (source, store) = (directory.join("source"), directory.join("store"));
    fs::create_dir(&source).unwrap();
    for at in 0..3 {
        fs::write(source.join(format!("file{at}")), numbers(at + 1).bytes(2 * LARGE)).unwrap();
    }
    settle();
    save(&source, &store);
    let expected = described(&source);
    let target = directory.join("target");
    for first in [1, 2, 4] {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o"]).arg(directory.join("log"));
        strace.args(["-e", "trace=io_uring_enter", "-e"]);
        strace.arg(format!("inject=io_uring_enter:error=EBUSY:when={first}+"));
        strace.arg("--").arg(support::TERRACE).args(["ramdisk", "restore"]).arg(&target);
        let ran = strace.arg("--persist").arg(&store).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        let calls = fs::read_to_string(directory.join("log")).unwrap();
        // Where the kernel has no such queue there is nothing to refuse.
        assert_eq!(calls.contains("io_uring_enter"), calls.contains("(INJECTED)"), "{calls}");
        assert_is(&expected, &target);
        fs::remove_dir_all(&target).unwrap();
        fs::remove_file(store.join("restored")).unwrap();
    }
}

/// The process is killed at its n-th call that changes something, for every n.
#[test]
fn a_kill_at_any_call_leaves_a_whole_generation() {
    if !has_program("strace") {
        return testkit::skip("strace");
    }
    let directory = TempDir::new();
    let (source, store) = (directory.join("source"), directory.join("store"));
    fs::create_dir_all(source.join("below")).unwrap();
    for at in 0..4 {
        fs::write(source.join(format!("below/file{at}")), numbers(at + 1).bytes(9000)).unwrap();
    }
    settle();
    save(&source, &store);
    let (shown, kept) = (source.display().to_string(), store.display().to_string());
    // The second save is counted: it has a generation to remove and a file to write.
    // More than a block of the data file, which a thread writes, and than what a restore reads
    // past the page cache.
    fs::write(source.join("below/large"), numbers(99).bytes(LARGE)).unwrap();
    let line = format!("ramdisk save {shown} --persist {kept} --keep 1");
    let points = kill_points(&line);
    let mut states = vec![described(&source)];
    let (mut newest, mut kills) = (0, 0);
    for (at, point) in points.iter().enumerate() {
        // Each time something is to be saved, and a generation to be removed.
        fs::write(source.join(format!("below/more{at}")), numbers(at as u64).bytes(20)).unwrap();
        let large = numbers(100 + at as u64).bytes(LARGE);
        fs::write(source.join("below/large"), large).unwrap();
        fs::remove_file(source.join(format!("below/more{}", at.wrapping_sub(2)))).ok();
        states.push(described(&source));
        kills += usize::from(is_killed_at(&line, point));
        let target = directory.join("check");
        let ran = restore(&store, &target, "");
        assert_eq!(ran.code, Some(0), "{point:?}: {} {}", ran.out, ran.err);
        let found = described(&target);
        let which = states.iter().rposition(|state| *state == found);
        assert!(which.is_some_and(|which| which >= newest), "{point:?}: {which:?} of {newest}");
        newest = newest.max(which.unwrap());
        fs::remove_dir_all(&target).unwrap();
        // The check was a restore to another directory.
        fs::remove_file(store.join("restored")).unwrap();
    }
    println!("save: killed at {kills} of {} calls", points.len());
    assert!(kills > 10 && kills * 5 >= points.len() * 4, "{kills} of {points:?}");
    save(&source, &store);
    let expected = described(&source);
    let target = directory.join("target");
    let line = format!("ramdisk restore {} --persist {kept}", target.display());
    let points = kill_points(&line);
    assert_is(&expected, &target);
    fs::remove_dir_all(&target).unwrap();
    let mut restore_kills = 0;
    for point in &points {
        restore_kills += usize::from(is_killed_at(&line, point));
        // Whole or absent.
        if target.exists() {
            assert_is(&expected, &target);
            fs::remove_dir_all(&target).unwrap();
        }
    }
    println!("restore: killed at {restore_kills} of {} calls", points.len());
    assert!(restore_kills > 10 && restore_kills * 5 >= points.len() * 4, "{restore_kills}");
    assert_eq!(restore(&store, &target, "").code, Some(0));
    assert_is(&expected, &target);
    let left: Vec<_> = listed(directory.path()).into_iter().map(|(name, ..)| name).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with('.')), "{left:?}");
}

#[test]
fn damage_costs_one_file_and_the_generation_before_is_offered() {
    let directory = TempDir::new();
    let (source, store) = (directory.join("source"), directory.join("store"));
    make_tree(&source);
    settle();
    save(&source, &store);
    fs::write(source.join("file1"), "newer").unwrap();
    settle();
    save(&source, &store);
    let damage = |name: &str, at: u64| {
        let file = File::options().read(true).write(true).open(store.join(name)).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[!byte[0]], at).unwrap();
    };
    damage("data-0000000001", 300_000);
    let ran = restore(&store, &directory.join("part"), "");
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    let page = one_line(&format!("{} {}", ran.out, ran.err));
    assert!(page.contains("1 entry not restored, the rest is"), "{page}");
    assert!(page.contains("are damaged in data-0000000001"), "{page}");
    assert!(page.contains("ramdisk extract 1"), "{page}");
    assert_eq!(described(&directory.join("part")).len() + 1, described(&source).len());
    // What is missing is not taken for removed.
    let words = format!("save {} --persist {}", directory.join("part").display(), store.display());
    ramdisk(&words).refused(3, "is not the directory that this store saved or restored last");
    damage("generation-0000000002-0000000001.zst", 60);
    let ran = restore(&store, &directory.join("none"), "");
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(one_line(&ran.err).contains("`--generation 1` is the one before"), "{}", ran.err);
    assert!(!directory.join("none").exists());
    // The directory is the only whole one: it is saved anew, and `restored` names another.
    let words = format!("save {} --persist {} --force", source.display(), store.display());
    let ran = ramdisk(&words);
    assert!(one_line(&ran.out).contains("everything is saved anew"), "{}", ran.out);
    let ran = restore(&store, &directory.join("whole"), "");
    assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    assert_is(&described(&source), &directory.join("whole"));
}

#[test]
fn what_a_mount_covers_stays_as_it_was_saved() {
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    let directory = TempDir::new();
    let (source, store) = (directory.join("source"), directory.join("store"));
    make_tree(&source);
    settle();
    save(&source, &store);
    let before = described(&source);
    let covered = source.join("deep");
    let mount = |words: &[&str]| {
        assert!(Command::new(words[0]).args(&words[1..]).arg(&covered).status().unwrap().success());
    };
    mount(&["mount", "-t", "tmpfs", "none"]);
    let ran = ramdisk(&format!("save {} --persist {}", source.display(), store.display()));
    mount(&["umount"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(one_line(&ran.out).contains("it is on another file system"), "{ran:?}");
    restore(&store, &directory.join("back"), "").done();
    assert_is(&before, &directory.join("back"));
}

/// The way of docs/ramdisk-store.md: `zstd` and what every system has.
#[test]
fn a_file_is_recovered_without_this_program() {
    const SCRIPT: &str = r#"
set -e
line=$(zstd -dc generation-0000000001-0000000000.zst | grep -aP '^\+\tnotes\.txt\t')
piece=${line##*$'\t':}
IFS=: read -r data offset at run <<< "$piece"
tail -c +$((offset + 1)) "data-$(printf %010d "$data")" | head -c "${run%%=*}"
"#;
    if !has_program("zstd") {
        return testkit::skip("zstd");
    }
    let directory = TempDir::new();
    let (source, store) = (directory.join("source"), directory.join("store"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("before"), numbers(1).bytes(777)).unwrap();
    fs::write(source.join("notes.txt"), "what was saved").unwrap();
    save(&source, &store);
    let output = Command::new("bash").args(["-c", SCRIPT]).current_dir(&store).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "what was saved");
}

#[test]
fn what_makes_no_sense_is_refused_and_touches_nothing() {
    let directory = TempDir::new();
    let path = directory.path().display().to_string();
    let source = directory.join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), "content").unwrap();
    let before = described(directory.path());
    ramdisk(&format!("save {path}/none --persist {path}/store")).refused(2, "none");
    let inside = format!("save {path}/source --persist {path}/source/store");
    ramdisk(&inside).refused(2, "on what is to be saved");
    ramdisk(&format!("save {path}/source --persist {path}/source"))
        .refused(2, "on what is to be saved");
    ramdisk(&format!("restore {path}/new --persist {path}/store")).refused(2, "store");
    ramdisk(&format!("list --persist {path}/source")).refused(2, "no store of a RAM disk");
    assert_eq!(before, described(directory.path()));
    fs::create_dir(directory.join("other")).unwrap();
    fs::write(directory.join("other/theirs"), "theirs").unwrap();
    ramdisk(&format!("save {path}/source --persist {path}/other")).refused(2, "other files");
    save(&source, &directory.join("store"));
    restore(&directory.join("store"), &source, "").refused(2, "not empty");
    restore(&directory.join("store"), &directory.join("new"), "--generation 7")
        .refused(2, "no generation 7, but 1");
    let words = format!("extract 1 nowhere {path}/new --persist {path}/store");
    ramdisk(&words).refused(2, "no such path");
    assert!(!directory.join("new").exists());
    fs::write(directory.join("store/store"), "terrace-ramdisk-store\t2\t0\n").unwrap();
    restore(&directory.join("store"), &directory.join("new"), "").refused(3, "version 2");
}

/// A store that is full keeps its last generation.
#[test]
fn a_full_store_keeps_the_last_generation() {
    let disk = match Tmpfs::mount(4 << 20) {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    let directory = TempDir::new();
    let (source, store) = (directory.join("source"), disk.path().join("store"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), numbers(1).bytes(MIB)).unwrap();
    save(&source, &store);
    let before = described(&source);
    fs::write(source.join("large"), numbers(2).bytes(5 * MIB)).unwrap();
    let words = format!("save {} --persist {}", source.display(), store.display());
    let ran = ramdisk(&words);
    assert_eq!(ran.code, Some(1), "{} {}", ran.out, ran.err);
    assert!(one_line(&ran.err).contains("no space left"), "{}", ran.err);
    assert_eq!(restore(&store, &directory.join("restored"), "").code, Some(0));
    assert_is(&before, &directory.join("restored"));
    let names: Vec<_> = listed(&store).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names.iter().filter(|name| *name == "data-0000000002").count(), 0, "{names:?}");
}

#[test]
fn an_ordinary_user_saves_its_own_directories() {
    let shared = Path::new("/dev/shm");
    let name = format!("terrace-test-{}", std::process::id());
    let top = shared.join(&name);
    fs::create_dir(&top).unwrap();
    if testkit::is_root() {
        std::os::unix::fs::chown(&top, Some(65534), Some(65534)).unwrap();
    }
    fs::create_dir(top.join("profile")).unwrap();
    fs::set_permissions(top.join("profile"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(top.join("profile/file"), "content").unwrap();
    let shown = top.display();
    let own = TempDir::new();
    if testkit::is_root() {
        std::os::unix::fs::chown(own.path(), Some(65534), Some(65534)).unwrap();
    }
    let store = own.join("store").display().to_string();
    let line = format!("ramdisk save {shown}/profile --persist {shown}/store");
    let refused = as_ordinary_user(&line).map(run);
    let line = format!("ramdisk save {shown}/profile --persist {store}");
    let Some(saving) = as_ordinary_user(&line) else {
        fs::remove_dir_all(&top).unwrap();
        return testkit::skip("another user");
    };
    let saved = run(saving);
    let line = format!("ramdisk restore {shown}/again --persist {store}");
    let restored = run(as_ordinary_user(&line).unwrap());
    let content = fs::read_to_string(top.join("again/file"));
    fs::remove_dir_all(&top).unwrap();
    refused.unwrap().refused(2, "would be lost with it");
    assert_eq!(saved.code, Some(0), "{} {}", saved.out, saved.err);
    // The owner is not theirs to give.
    assert_eq!(restored.code, Some(0), "{} {}", restored.out, restored.err);
    let page = one_line(&restored.out);
    assert!(!page.contains("not restored"), "{page}");
    if testkit::is_root() {
        assert!(page.contains("without owner of what was saved: 2 entries"), "{page}");
    }
    assert_eq!(content.unwrap(), "content");
}

/// Deeper than a path may be long, and beside it large files from several data files, with 64
/// descriptors.
#[test]
fn depth_and_large_files_need_few_descriptors() {
    let directory = TempDir::new();
    let (source, store) = (directory.join("source"), directory.join("store"));
    fs::create_dir(&source).unwrap();
    let script = format!(
        "cd {} && for n in $(seq 60); do mkdir {} && cd {} || exit 1; done; echo deep > file",
        source.display(),
        "d".repeat(100),
        "d".repeat(100)
    );
    assert!(Command::new("bash").args(["-c", &script]).status().unwrap().success());
    let limited = |words: String| {
        let program = env!("CARGO_BIN_EXE_terrace");
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("ulimit -n 64; exec {program} {words}")]);
        run(shell)
    };
    let (shown, kept) = (source.display(), store.display());
    for number in 0..6 {
        let content = numbers(number).bytes(3 * MIB + number as usize);
        fs::write(source.join(format!("large{number}")), content).unwrap();
        let ran = limited(format!("ramdisk save {shown} --persist {kept}"));
        assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    }
    let target = directory.join("target");
    let ran = limited(format!("ramdisk restore {} --persist {kept}", target.display()));
    assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    let found = Command::new("find").arg(&target).args(["-name", "file", "-size", "-2"]).output();
    assert!(!found.unwrap().stdout.is_empty());
    for number in 0..6 {
        let name = format!("large{number}");
        assert!(fs::read(target.join(&name)).unwrap() == fs::read(source.join(&name)).unwrap());
    }
}

/// A large file is read several parts at a time, and what is damaged of it is found out again by
/// another reader: it alone is missing.
#[test]
fn damage_of_a_large_file_costs_that_file() {
    let directory = TempDir::new();
    let (source, store) = (directory.join("source"), directory.join("store"));
    fs::create_dir(&source).unwrap();
    for name in ["damaged", "whole"] {
        let content = numbers(name.len() as u64).bytes(5 * MIB + 77);
        fs::write(source.join(name), content).unwrap();
    }
    settle();
    save(&source, &store);
    let data = store.join("data-0000000001");
    let all = fs::read(&data).unwrap();
    let content = fs::read(source.join("damaged")).unwrap();
    let at = |part: &[u8]| all.windows(64).position(|window| window == part).unwrap();
    let middle = at(&content[3 * MIB..3 * MIB + 64]) as u64;
    let file = File::options().write(true).open(&data).unwrap();
    file.write_all_at(&[!content[3 * MIB]], middle).unwrap();
    drop(file);
    let target = directory.join("target");
    let ran = restore(&store, &target, "");
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    let page = one_line(&format!("{} {}", ran.out, ran.err));
    assert!(page.contains("from 3145728 on are damaged"), "{page}");
    let names: Vec<_> = listed(&target).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["whole"]);
    assert!(fs::read(target.join("whole")).unwrap() == fs::read(source.join("whole")).unwrap());
}

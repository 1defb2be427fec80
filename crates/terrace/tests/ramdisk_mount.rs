//! `terrace ramdisk create`, `grow`, `remove`, `list` and `status` on real mounts: nothing half
//! full is ever to be seen, whenever the command is killed; what cannot be is refused and leaves no
//! trace; a RAM disk that was exchanged is never touched.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::described::{assert_is, described};
use support::{Ran, as_ordinary_user, run, terrace};
use testkit::{Cgroup, TempDir, Tmpfs};

/// A directory whose RAM disks go with it. Its own directory is on no RAM disk of another test.
struct Scene {
    directory: TempDir,
}

impl Scene {
    /// `None`, with the reason printed, where nothing may be mounted.
    fn new() -> Option<Self> {
        if !testkit::is_root() {
            testkit::skip("root");
            return None;
        }
        Some(Self { directory: TempDir::new() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Runs `terrace ramdisk` with words in which `@NAME` is a path of this scene.
    fn ramdisk(&self, words: &str) -> Ran {
        terrace(&format!("ramdisk {}", self.words(words)))
    }

    fn words(&self, words: &str) -> String {
        words.replace('@', &format!("{}/", self.directory.path().display()))
    }

    /// The result of a command that did all it was asked.
    #[track_caller]
    fn json(&self, words: &str) -> Value {
        let text = self.ramdisk(&format!("{words} --json")).done();
        serde_json::from_str::<Value>(&text).unwrap()["result"].take()
    }

    /// Makes a store that holds `files` files of `bytes` each.
    fn store(&self, files: usize, bytes: usize) {
        fs::create_dir_all(self.path("source/deep")).unwrap();
        for at in 0..files {
            let content = vec![at as u8; bytes + at % 5];
            fs::write(self.path("source").join(format!("file{at}")), content).unwrap();
        }
        fs::write(self.path("source/deep/last"), "last").unwrap();
        symlink("deep/last", self.path("source/link")).unwrap();
        fs::set_permissions(self.path("source"), fs::Permissions::from_mode(0o751)).unwrap();
        self.ramdisk("save @source --persist @store").done();
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for point in mounted_below(self.directory.path()) {
            let _ = Command::new("umount").arg("--lazy").arg(&point).status();
            let _ = terrace(&format!("ramdisk remove --discard {}", point.display()));
        }
    }
}

/// The last mounted first.
fn mounted_below(top: &Path) -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = table.lines().rev().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from);
    points.filter(|point| point.starts_with(top)).collect()
}

/// Days since 1970 in UTC.
fn day() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_secs() / 86_400
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn names(directory: &Path) -> usize {
    fs::read_dir(directory).map_or(0, Iterator::count)
}

#[test]
fn a_ram_disk_is_filled_saved_removed_and_comes_back_equal() {
    let Some(scene) = Scene::new() else { return };
    let began_on = day();
    scene.store(40, 5000);
    let before = described(&scene.path("source"));
    let made = scene.json("create @equal --size 64m --persist @store --every 90s --keep 2");
    assert_eq!(made["restored"]["generation"], 1, "{made}");
    assert_is(&before, &scene.path("equal"));
    let record = &made["ramdisk"];
    assert_eq!(record["persist"]["every_seconds"], 90);
    assert_eq!((&record["persist"]["keep"], &record["is_mounted"]), (&2.into(), &true.into()));
    assert_eq!(scene.path("equal").metadata().unwrap().mode() & 0o7777, 0o751);
    let status = scene.json("status @equal")["ramdisks"][0].take();
    assert_eq!(status["state"], "mounted");
    assert_eq!(status["size_bytes"], 64 << 20);
    let compared = &status["compared"];
    assert_eq!(
        (&compared["changed_entries"], &compared["removed_entries"]),
        (&0.into(), &0.into())
    );
    assert!(status["sample"]["compressed_bytes"].as_u64() < status["sample"]["bytes"].as_u64());
    assert!(one_line(&scene.ramdisk("status @equal").done()).contains("a crash now costs nothing"));

    fs::write(scene.path("equal/new"), vec![7; 10_000]).unwrap();
    fs::remove_file(scene.path("equal/file3")).unwrap();
    let compared = scene.json("status @equal")["ramdisks"][0]["compared"].take();
    assert_eq!(compared["removed_entries"], 1, "{compared}");
    assert_eq!(compared["unsaved_bytes"], 10_000, "{compared}");
    let refused = scene.ramdisk("remove @equal");
    refused.refused(3, "not saved");
    assert!(refused.err.contains("terrace ramdisk save"), "{}", refused.err);
    // It is as it was, and can be written to.
    fs::write(scene.path("equal/more"), "more").unwrap();
    scene.ramdisk("save @equal --persist @store").done();
    let status = scene.json("status @equal")["ramdisks"][0].take();
    // 200,000 bytes of the first generation, 10,004 of the second, and both manifests.
    let written = status["written_today_bytes"].as_u64().unwrap();
    let is_same_day = day() == began_on;
    assert!(!is_same_day || (210_000..260_000).contains(&written), "{status}");
    let before = described(&scene.path("equal"));
    let text = one_line(&scene.ramdisk("remove equal").done());
    assert!(text.contains("generation 2 has all of it"), "{text}");
    assert!(!scene.path("equal").exists(), "the directory was made for it");
    scene.ramdisk("create @equal --size 64m --persist @store").done();
    assert_is(&before, &scene.path("equal"));
    scene.ramdisk("remove @equal").done();
    assert!(mounted_below(scene.directory.path()).is_empty());
}

/// The kill comes at moments over all of the command, and at each of them another process sees
/// nothing or everything.
#[test]
fn killed_at_any_moment_nothing_half_full_is_there_and_nothing_is_left() {
    let Some(scene) = Scene::new() else { return };
    scene.store(600, 20_000);
    let before = described(&scene.path("source"));
    let whole = names(&scene.path("source"));
    let create = || {
        let line = scene.words("ramdisk create @ram --size 64m --persist @store");
        let mut command = support::command(&line);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let started = Instant::now();
    assert!(create().wait().unwrap().success());
    let usual = started.elapsed();
    scene.ramdisk("remove @ram").done();
    let (mut whole_ones, mut absent) = (0, 0);
    for moment in 0..16 {
        let (point, is_over) = (scene.path("ram"), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let seen = names(&point);
                    assert!(seen == 0 || seen == whole, "{seen} of {whole} names are to be seen");
                }
            });
            let mut child = create();
            std::thread::sleep(usual * moment / 13);
            let _ = child.kill();
            let _ = child.wait();
            is_over.store(true, Ordering::Relaxed);
            watcher.join().unwrap();
        });
        scene.ramdisk("list");
        if mounted_below(&point).is_empty() {
            assert!(!point.exists(), "moment {moment}: the directory was left");
            absent += 1;
        } else {
            assert_is(&before, &point);
            scene.ramdisk("remove @ram").done();
            whole_ones += 1;
        }
    }
    assert!(absent > 0, "{whole_ones} of 16 were whole: no kill came early");
    // Those of other tests are listed too; what is not where it was mounted gives status 1.
    let listed = scene.ramdisk("list --json");
    assert!(matches!(listed.code, Some(0 | 1)), "{listed:?}");
    let list: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    let listed = list["result"]["ramdisks"].as_array().unwrap().iter();
    let own = scene.path("ram").display().to_string();
    assert_eq!(listed.filter(|one| one["ramdisk"]["mount_point"] == own).count(), 0);
}

#[test]
fn what_makes_no_sense_is_refused_and_leaves_no_trace() {
    let Some(scene) = Scene::new() else { return };
    scene.store(3, 300_000);
    fs::create_dir(scene.path("full")).unwrap();
    fs::write(scene.path("full/file"), "kept").unwrap();
    symlink("full", scene.path("alias")).unwrap();
    fs::create_dir(scene.path("held")).unwrap();
    scene.ramdisk("create @held --size 1m").done();
    scene.ramdisk("create @other --size 1m --persist @taken").done();
    for (words, code, reason) in [
        ("create @ram --size 0", 2, "no limit"),
        ("create @ram --size 0 --force", 2, "no limit"),
        ("create @ram --size 64t", 3, "can be had"),
        ("create @ram --size 512k --persist @store", 2, "more than the size of"),
        ("create @ram --size 512k --persist @store --force", 2, "more than the size of"),
        ("create @full --size 1m", 2, "adopt"),
        ("create @alias --size 1m", 2, "it is a link"),
        ("create @full/file --size 1m", 2, "not a directory"),
        ("create @held --size 1m", 2, "mounted there already"),
        ("create @no/such/place --size 1m", 2, "no such file"),
        ("create / --size 1m", 2, "the top"),
        ("create @ram --size 1m --persist @ram/store", 2, "on the RAM disk itself"),
        ("create @ram --size 1m --persist @taken", 2, "store of the RAM disk"),
        ("create @ram --size 1m --persist @full", 2, "other files"),
        ("create @ram --size 1m --owner nobody-at-all", 2, "no user"),
        ("create @ram --size 1m --mode 9", 2, "permissions"),
        ("grow @held 0", 2, "no limit"),
        ("grow @held 0 --force", 2, "no limit"),
        ("grow @held 64t", 3, "can be had"),
        ("grow @none 2m", 2, "find a RAM disk"),
        ("remove @none", 2, "find a RAM disk"),
        ("status @none", 2, "find a RAM disk"),
    ] {
        let ran = scene.ramdisk(words);
        assert_eq!(ran.code, Some(code), "{words}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(reason), "{words}: {}", ran.err);
        assert!(!scene.path("ram").exists(), "{words}");
    }
    assert_eq!(fs::read(scene.path("full/file")).unwrap(), b"kept");
    assert_eq!(mounted_below(scene.directory.path()).len(), 2);
    // More than there is, if that is asked for: a limit alone takes nothing.
    scene.ramdisk("create @ram --size 64t --force").done();
    scene.ramdisk("remove @ram").done();
    // A store of a newer version, and one that cannot be written to.
    let head = fs::read_to_string(scene.path("store/store")).unwrap();
    fs::write(scene.path("store/store"), head.replacen("\t1\t", "\t2\t", 1)).unwrap();
    scene.ramdisk("create @ram --size 4m --persist @store").refused(3, "version 2");
    fs::write(scene.path("store/store"), head).unwrap();
    let read_only = Tmpfs::mount(4 << 20).unwrap();
    let copied = read_only.path().join("store");
    let at = read_only.path().display().to_string();
    let done = |program: &str, words: &[&str]| {
        assert!(Command::new(program).args(words).status().unwrap().success());
    };
    done("cp", &["-a", scene.path("store").to_str().unwrap(), copied.to_str().unwrap()]);
    done("mount", &["-o", "remount,ro", &at]);
    let words = format!("create @ram --size 4m --persist {}", copied.display());
    scene.ramdisk(&words).refused(3, "read-only");
    assert!(!scene.path("ram").exists());
}

#[test]
fn its_size_changes_and_its_options_are_those_that_were_asked_for() {
    let Some(scene) = Scene::new() else { return };
    fs::create_dir(scene.path("ram")).unwrap();
    std::os::unix::fs::chown(scene.path("ram"), Some(1234), Some(4321)).unwrap();
    fs::set_permissions(scene.path("ram"), fs::Permissions::from_mode(0o710)).unwrap();
    let ran = scene.ramdisk("create @ram --size 8m --huge within_size --noswap --prefault");
    let text = if ran.code == Some(3) {
        assert!(ran.err.contains("tmpfs"), "{}", ran.err);
        testkit::skip("noswap (Linux 6.4) and huge pages");
        scene.ramdisk("create @ram --size 8m --prefault").done()
    } else {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let line = table.lines().find(|line| line.contains(scene.path("ram").to_str().unwrap()));
        assert!(line.unwrap().contains("noswap") && line.unwrap().contains("huge=within_size"));
        ran.done()
    };
    assert!(one_line(&text).contains("8 MiB of memory were touched"), "{text}");
    let top = scene.path("ram").metadata().unwrap();
    assert_eq!((top.mode() & 0o7777, top.uid(), top.gid()), (0o710, 1234, 4321), "as it covers");
    fs::write(scene.path("ram/file"), vec![1; 3 << 20]).unwrap();
    scene.ramdisk("grow @ram 2m").refused(2, "are in use");
    scene.ramdisk("grow @ram 2m --force").refused(2, "are in use");
    let text = one_line(&scene.ramdisk("grow @ram 16m").done());
    assert!(text.contains("up to 16 MiB now, 8 MiB before"), "{text}");
    fs::write(scene.path("ram/more"), vec![1; 10 << 20]).unwrap();
    assert_eq!(fs::read(scene.path("ram/file")).unwrap().len(), 3 << 20);
    let refused = scene.ramdisk("remove @ram");
    refused.refused(3, "saved nowhere");
    let held = fs::File::open(scene.path("ram/file")).unwrap();
    let busy = scene.ramdisk("remove @ram --discard");
    busy.refused(3, "in use by");
    drop(held);
    fs::write(scene.path("ram/still"), "it can be written to").unwrap();
    let text = one_line(&scene.ramdisk("remove @ram --discard").done());
    assert!(text.contains("given up"), "{text}");
    assert!(scene.path("ram").is_dir() && names(&scene.path("ram")) == 0);
    scene.ramdisk("create @ram --size 1m --mode 1777 --owner 0:0").done();
    let top = scene.path("ram").metadata().unwrap();
    assert_eq!((top.mode() & 0o7777, top.uid(), top.gid()), (0o1777, 0, 0));
}

#[test]
fn what_was_unmounted_or_replaced_by_others_is_recognised_and_not_touched() {
    let Some(scene) = Scene::new() else { return };
    scene.store(3, 1000);
    scene.ramdisk("create @ram --size 4m --persist @store").done();
    let done = |program: &str, words: &[&str]| {
        assert!(Command::new(program).args(words).status().unwrap().success());
    };
    let point = scene.path("ram").display().to_string();
    let state = || scene.ramdisk("list --json");
    let is = |ran: &Ran, word: &str| {
        let value: Value = serde_json::from_str(&ran.out).unwrap();
        let all = value["result"]["ramdisks"].as_array().unwrap().clone();
        let own = all.iter().find(|one| one["ramdisk"]["mount_point"] == point).unwrap();
        assert_eq!(own["state"], word, "{own}");
        assert_eq!(ran.code, Some(1));
    };
    done("umount", &[&point]);
    is(&state(), "unmounted");
    scene.ramdisk("grow @ram 8m").refused(3, "unmounted by another program");
    // Another one in its place: it has what the store would lose.
    done("mount", &["-t", "tmpfs", "-o", "size=4m", "terrace-test", &point]);
    fs::write(scene.path("ram/theirs"), "theirs").unwrap();
    is(&state(), "replaced");
    scene.ramdisk("grow @ram 8m").refused(3, "something else is mounted");
    scene.ramdisk("remove @ram").refused(3, "something else is mounted");
    scene.ramdisk("save @ram --persist @store").refused(3, "mounted again");
    scene.ramdisk("remove @ram --discard").done();
    assert_eq!(fs::read(scene.path("ram/theirs")).unwrap(), b"theirs");
    done("umount", &[&point]);
    // Over the RAM disk: below is it, untouched.
    let _ = fs::create_dir(scene.path("ram"));
    scene.ramdisk("create @ram --size 4m --persist @store").done();
    done("mount", &["-t", "tmpfs", "-o", "size=4m", "terrace-test", &point]);
    is(&state(), "replaced");
    done("umount", &[&point]);
    assert_eq!(names(&scene.path("ram")), names(&scene.path("source")));
    scene.ramdisk("remove @ram").done();
    scene.ramdisk("create @ram --size 4m --persist @store").done();
    done("umount", &[&point]);
    let text = one_line(&scene.ramdisk("remove @ram").done());
    assert!(text.contains("is forgotten"), "{text}");
    // Also where the directory above it is gone.
    fs::create_dir(scene.path("above")).unwrap();
    scene.ramdisk("create @above/ram --size 4m").done();
    done("umount", &[scene.path("above/ram").to_str().unwrap()]);
    fs::remove_dir_all(scene.path("above")).unwrap();
    let text = one_line(&scene.ramdisk("remove @above/ram").done());
    assert!(text.contains("is forgotten"), "{text}");
}

/// The limit of the own group is the short memory: it is met while files are restored.
#[test]
fn short_memory_ends_it_and_nothing_is_mounted() {
    let Some(scene) = Scene::new() else { return };
    scene.store(48, 2 << 20);
    let group = match Cgroup::v1_memory(48 << 20) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let create = |more: &str| {
        let line = scene.words(&format!("ramdisk create @ram --size 200m --persist @store{more}"));
        run(support::in_group(&group, &line))
    };
    create("").refused(3, "control group");
    create(" --force").refused(3, "nothing is mounted");
    assert!(!scene.path("ram").exists() && mounted_below(scene.directory.path()).is_empty());
}

#[test]
fn an_ordinary_user_mounts_nothing_and_saves_own_directories_in_shared_memory() {
    let Some(mut refused) = as_ordinary_user("ramdisk create none-such --size 1m") else {
        return;
    };
    refused.env("HOME", "/nonexistent");
    run(refused).refused(3, "/dev/shm");
    for words in [
        "list",
        "status",
        "save /dev/shm",
        "restore /dev/shm",
        "keep /dev/shm",
        "grow /dev/shm 1m --force",
        "remove /dev/shm --discard",
        "install /dev/shm --dry-run",
        "release /dev/shm",
    ] {
        run(as_ordinary_user(&format!("ramdisk {words}")).unwrap()).refused(3, "only root");
    }
    let random = std::process::id();
    let own = PathBuf::from(format!("/dev/shm/terrace-test-{random}"));
    let stores = std::env::temp_dir().join(format!("terrace-test-store-{random}"));
    for made in [&own, &stores] {
        fs::create_dir(made).unwrap();
        if testkit::is_root() {
            std::os::unix::fs::chown(made, Some(65534), Some(65534)).unwrap();
        }
    }
    fs::create_dir(own.join("data")).unwrap();
    fs::write(own.join("data/file"), "content").unwrap();
    if testkit::is_root() {
        for made in ["data", "data/file"] {
            std::os::unix::fs::chown(own.join(made), Some(65534), Some(65534)).unwrap();
        }
    }
    let (own, stores) = (own.display(), stores.display());
    let line = format!("ramdisk save {own}/data --persist {stores}/store");
    let saved = run(as_ordinary_user(&line).unwrap());
    let line = format!("ramdisk restore {own}/again --persist {stores}/store");
    let restored = run(as_ordinary_user(&line).unwrap());
    let content = fs::read(format!("{own}/again/file"));
    fs::remove_dir_all(own.to_string()).unwrap();
    fs::remove_dir_all(stores.to_string()).unwrap();
    assert_eq!((saved.code, restored.code), (Some(0), Some(0)), "{saved:?} {restored:?}");
    assert_eq!(content.unwrap(), b"content");
}

/// `sleep` in it keeps it from being removed, and is named. Meanwhile it can be written to.
#[test]
fn who_uses_it_is_named_and_loses_nothing() {
    let Some(scene) = Scene::new() else { return };
    scene.ramdisk("create @ram --size 1m").done();
    let mut command = Command::new("sleep");
    command.current_dir(scene.path("ram"));
    let started = support::Started::sleeping(command);
    let name = format!("sleep ({}", started.pid());
    scene.ramdisk("remove @ram").refused(3, &name);
    let (file, is_over) = (scene.path("ram/file"), AtomicBool::new(false));
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs::write(&file, "new").expect("it can be written to");
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let refused = scene.ramdisk("remove @ram --discard");
        is_over.store(true, Ordering::Relaxed);
        refused
    });
    refused.refused(3, &name);
    fs::remove_file(&file).unwrap();
    drop(started);
    std::thread::sleep(Duration::from_millis(20));
    scene.ramdisk("remove @ram").done();
}

#[test]
fn its_store_need_not_be_typed_and_without_one_the_remedy_is_named() {
    let Some(scene) = Scene::new() else { return };
    scene.ramdisk("create @bare --size 4m").done();
    let remedy = "it was made without a store; name one with --persist";
    for verb in ["save", "restore"] {
        let ran = scene.ramdisk(&format!("{verb} @bare"));
        assert_eq!(ran.err.lines().count(), 2, "{}", ran.err);
        ran.refused(2, remedy);
        let ran = scene.ramdisk(&format!("{verb} @nowhere"));
        assert!(ran.err.contains("with --persist STORE it may be any directory"), "{}", ran.err);
        ran.refused(2, "find a RAM disk");
        if let Some(other) = as_ordinary_user(&format!("ramdisk {verb} /dev/shm")) {
            run(other).refused(3, "only root");
        }
    }
    scene.ramdisk("create @ram --size 8m --persist @store --keep 5").done();
    // Of each generation alone is what the file had then, so what is too old is gone.
    let save = |content: u8, words: &str| {
        fs::write(scene.path("ram/file"), vec![content; 3000]).unwrap();
        // The `status` of another test may compare it just then.
        scene.ramdisk(&format!("save @ram --wait {words}")).done();
    };
    let generations = || {
        let kept = scene.json("list --persist @store")["generations"].take();
        let all = kept.as_array().unwrap().iter();
        all.map(|one| one["generation"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    (1..=6).for_each(|content| save(content, ""));
    assert_eq!(generations(), [2, 3, 4, 5, 6]);
    // Nor does a typed store change how many stay, if it is its own.
    save(7, "--persist @store");
    assert_eq!(generations(), [3, 4, 5, 6, 7]);
    let before = described(&scene.path("ram"));
    scene.ramdisk("restore @ram").refused(2, "not empty");
    fs::remove_file(scene.path("ram/file")).unwrap();
    scene.ramdisk("restore @ram").done();
    assert_is(&before, &scene.path("ram"));
}

/// From three generations on, each larger than the one before.
#[test]
fn when_it_is_full_is_known_while_it_grows() {
    let Some(scene) = Scene::new() else { return };
    scene.ramdisk("create @ram --size 8m --persist @store").done();
    let growth = || scene.json("status @ram")["ramdisks"][0]["growth"].take();
    let page = || one_line(&scene.ramdisk("status @ram").done());
    for number in 1..=3 {
        assert_eq!(growth(), Value::Null, "before generation {number}");
        assert!(page().contains("when it is full is unproven"), "{}", page());
        if number > 1 {
            // A manifest has whole seconds.
            std::thread::sleep(Duration::from_millis(1010));
        }
        fs::write(scene.path(&format!("ram/file{number}")), vec![number; 1 << 20]).unwrap();
        scene.ramdisk("save @ram --wait").done();
    }
    let grown = growth();
    let (hours, rate) = (grown["hours_until_full"].as_f64(), grown["bytes_per_hour"].as_f64());
    // 5 MiB are free.
    let free = hours.unwrap() * rate.unwrap() / f64::from(1 << 20);
    assert!((4.9..=5.1).contains(&free), "{grown}");
    assert!(page().contains("full in") && page().contains("if it grows on by"), "{}", page());
    fs::remove_file(scene.path("ram/file1")).unwrap();
    scene.ramdisk("save @ram --wait").done();
    assert_eq!(growth(), Value::Null, "it grows no more");
}

/// What walks a RAM disk, as a recorder does, has a directory open for a moment.
#[test]
fn a_walker_that_ends_soon_is_waited_for() {
    let Some(scene) = Scene::new() else { return };
    scene.ramdisk("create @ram --size 4m").done();
    fs::create_dir(scene.path("ram/deep")).unwrap();
    let open = fs::File::open(scene.path("ram/deep")).unwrap();
    let walker = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(400));
        drop(open);
    });
    scene.ramdisk("remove @ram --discard").done();
    walker.join().unwrap();
    assert!(!scene.path("ram").exists());
}

#[test]
fn a_recording_has_what_a_ram_disk_holds_and_what_is_not_saved() {
    let Some(scene) = Scene::new() else { return };
    scene.store(3, 5000);
    let line = "create @rec.orded --size 64m --persist @store";
    scene.ramdisk(line).done();
    fs::write(scene.path("rec.orded/new"), vec![3; 2 << 20]).unwrap();
    let levels = recorded_levels(&scene);
    assert!(levels["used_bytes"] >= 2 << 20, "{levels:?}");
    assert!(levels["unsaved_bytes"] >= 2 << 20, "{levels:?}");
    assert!(levels["swapped_bytes"] <= levels["used_bytes"], "{levels:?}");
    let age_ns = levels["generation_age_ns"];
    assert!(age_ns > 0 && age_ns < 600_000_000_000, "{levels:?}");
    scene.ramdisk("save @rec.orded --persist @store").done();
    let after = recorded_levels(&scene);
    assert_eq!(after["unsaved_bytes"], 0, "{after:?}");
    assert!(after["generation_age_ns"] < age_ns + 60_000_000_000, "{after:?}");
}

/// The last levels of the RAM disk `rec.orded` in a recording of a second.
fn recorded_levels(scene: &Scene) -> BTreeMap<String, u64> {
    let words = "record --for 1s --trace none --force -o @recording";
    terrace(&scene.words(words)).done();
    let text = terrace(&scene.words("export @recording --to json --no-redact")).done();
    let recording: Value = serde_json::from_str(&text).unwrap();
    let series = recording["series"].as_array().unwrap();
    let found = series.iter().filter_map(|series| {
        let name = series["name"].as_str()?.strip_prefix("ramdisk.rec_orded.")?;
        let last = series["steps"].as_array()?.last()?[1].as_u64()?;
        Some((name.to_owned(), last))
    });
    found.collect()
}

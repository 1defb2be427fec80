//! `terrace ramdisk adopt` and `release`: a directory moves onto a RAM disk and back, whole at each
//! moment, also when the command is killed; what is in use is refused.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::Instant;
use support::described::{assert_is, described, names};
use support::killed::{is_killed_at, kill_points, sample};
use support::{Started, as_ordinary_user, command, run, terrace};
use testkit::{Mounted, TempDir, Tmpfs};

/// A disk with a directory and the place of a store. Its RAM disk is unmounted at the end.
struct Disk {
    disk: Mounted,
}

impl Disk {
    /// `None` without the rights.
    fn new() -> Option<Self> {
        let made = if testkit::is_root() {
            Mounted::made("ext4", &["-q"], 64 << 20)
        } else {
            Err("root".to_owned())
        };
        match made {
            Ok(disk) => {
                let this = Self { disk };
                let tree = this.tree();
                fs::create_dir_all(tree.join("deep/er")).unwrap();
                fs::write(tree.join("file"), "first").unwrap();
                fs::write(tree.join("deep/er/large"), vec![7; 300_000]).unwrap();
                fs::hard_link(tree.join("file"), tree.join("deep/same")).unwrap();
                symlink("file", tree.join("link")).unwrap();
                fs::set_permissions(&tree, fs::Permissions::from_mode(0o750)).unwrap();
                Some(this)
            }
            Err(need) => {
                testkit::skip(need);
                None
            }
        }
    }

    fn tree(&self) -> PathBuf {
        self.disk.path().join("tree")
    }

    fn store(&self) -> PathBuf {
        self.disk.path().join("store")
    }

    fn adopt(&self) -> support::Ran {
        let (tree, store) = (self.tree(), self.store());
        terrace(&format!(
            "ramdisk adopt {} --size 32m --persist {}",
            tree.display(),
            store.display()
        ))
    }

    fn release(&self) -> support::Ran {
        terrace(&format!("ramdisk release {}", self.tree().display()))
    }

    /// The newest generation of the store, restored elsewhere.
    #[track_caller]
    fn assert_saved(&self, expected: &BTreeMap<String, String>) {
        let store = self.store();
        let line = format!("ramdisk list --persist {} --json", store.display());
        let list: Value = serde_json::from_str(&terrace(&line).done()).unwrap();
        let newest = list["result"]["generations"].as_array().unwrap().last().unwrap();
        let (directory, number) = (TempDir::new(), &newest["generation"]);
        let copy = directory.join("copy");
        let (to, from) = (copy.display(), store.display());
        terrace(&format!("ramdisk extract {number} {to} --persist {from}")).done();
        assert_is(expected, &copy);
    }

    fn is_mounted(&self) -> bool {
        self.tree().metadata().unwrap().dev() != self.disk.path().metadata().unwrap().dev()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_mounted() {
            terrace(&format!("ramdisk remove {} --discard", self.tree().display()));
        }
    }
}

/// A page without its line ends.
fn joined(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_directory_moves_onto_a_ram_disk_and_back_with_what_changed_there() {
    let Some(disk) = Disk::new() else { return };
    let tree = disk.tree();
    let before = described(&tree);
    let page = joined(&disk.adopt().done());
    assert!(page.contains("is on a RAM disk of 32 MiB now"), "{page}");
    assert!(disk.is_mounted());
    assert_is(&before, &tree);
    // `remove` would uncover what is old.
    terrace(&format!("ramdisk remove {}", tree.display())).refused(3, "terrace ramdisk release");
    fs::write(tree.join("new"), "new").unwrap();
    fs::remove_file(tree.join("link")).unwrap();
    File::options().append(true).open(tree.join("file")).unwrap().write_all(b" more").unwrap();
    let changed = described(&tree);
    let page = joined(&disk.release().done());
    assert!(page.contains("is on its disk again, as it was on the RAM disk"), "{page}");
    assert!(!disk.is_mounted());
    assert_is(&changed, &tree);
    assert_eq!(names(disk.disk.path()), ["lost+found", "store", "tree"]);
    disk.release().refused(2, "find a RAM disk");
    let page = terrace("ramdisk list").out;
    assert!(!page.contains(tree.to_str().unwrap()), "{page}");
}

#[test]
fn what_is_in_use_is_refused_with_names_and_stays() {
    let Some(disk) = Disk::new() else { return };
    let tree = disk.tree();
    let before = described(&tree);
    let mut sleeper = std::process::Command::new("sleep");
    sleeper.arg("60").current_dir(tree.join("deep"));
    let user = Started::sleeping(sleeper);
    disk.adopt().refused(3, "in use by sleep");
    assert!(!disk.is_mounted());
    drop(user);
    disk.adopt().done();
    let open = File::options().append(true).open(tree.join("file")).unwrap();
    disk.release().refused(3, "in use");
    // It was read-only for a moment.
    fs::write(tree.join("other"), "").unwrap();
    drop(open);
    fs::remove_file(tree.join("other")).unwrap();
    disk.release().done();
    let after = described(&tree);
    assert_eq!(after.len(), before.len());
    assert_eq!(names(disk.disk.path()), ["lost+found", "store", "tree"]);
}

#[test]
fn killed_at_any_moment_the_directory_is_whole_and_the_same_command_goes_on() {
    let Some(disk) = Disk::new() else { return };
    let tree = disk.tree();
    let started = Instant::now();
    disk.adopt().done();
    let adopting = started.elapsed();
    fs::write(tree.join("new"), vec![3; 2 << 20]).unwrap();
    let expected = described(&tree);
    let begun = Instant::now();
    disk.release().done();
    let releasing = begun.elapsed();
    let (mut killed, mut done) = (0, 0);
    for step in 1..=12_u32 {
        for (line, whole) in [("adopt", adopting), ("release", releasing)] {
            let options = match line {
                "adopt" => format!(" --size 32m --persist {}", disk.store().display()),
                _ => String::new(),
            };
            let line = format!("ramdisk {line} {}{options}", tree.display());
            let mut child = command(&line).spawn().unwrap();
            std::thread::sleep(whole * step / 12);
            let _ = child.kill();
            let ended = child.wait().unwrap();
            if ended.success() {
                done += 1;
            } else {
                killed += 1;
            }
            // Puts right what the killed one left. RAM disks of others may be gone.
            let _ = terrace("ramdisk list");
            assert_is(&expected, &tree);
            disk.assert_saved(&expected);
            if !ended.success() {
                let wants_mount = line.contains("adopt");
                if wants_mount != disk.is_mounted() {
                    run(command(&line)).done();
                }
            }
            assert_is(&expected, &tree);
        }
    }
    assert!(killed > 0, "{done} were done");
    if disk.is_mounted() {
        disk.release().done();
    }
    assert_is(&expected, &tree);
    let left: Vec<String> = names(disk.disk.path())
        .into_iter()
        .filter(|name| name.starts_with(".terrace-release"))
        .collect();
    assert_eq!(left, [] as [&str; 0]);
}

/// As above, but at each call that changes something, or a sample of them.
#[test]
fn killed_at_its_nth_call_the_directory_is_whole_and_the_same_command_goes_on() {
    if !support::has_program("strace") {
        return testkit::skip("strace");
    }
    let Some(disk) = Disk::new() else { return };
    let tree = disk.tree();
    let expected = described(&tree);
    let (point, store) = (tree.display(), disk.store());
    let adopt = format!("ramdisk adopt {point} --size 32m --persist {}", store.display());
    let release = format!("ramdisk release {point}");
    // The first `adopt` makes the store; those that are killed find one.
    run(command(&adopt)).done();
    run(command(&release)).done();
    let all = [&adopt, &release].map(|line| kill_points(line));
    for (line, back, all) in [(&adopt, &release, &all[0]), (&release, &adopt, &all[1])] {
        let wants_mount = line == &adopt;
        let points = sample(all, 8);
        let mut kills = 0;
        for point in &points {
            if disk.is_mounted() == wants_mount {
                run(command(back)).done();
            }
            kills += usize::from(is_killed_at(line, point));
            // Puts right what the killed one left. RAM disks of others may be gone.
            let _ = terrace("ramdisk list");
            assert_is(&expected, &tree);
            disk.assert_saved(&expected);
            if disk.is_mounted() != wants_mount {
                run(command(line)).done();
                assert_is(&expected, &tree);
            }
        }
        println!("{line}: killed at {kills} of {} calls", all.len());
        // A save of what did not change makes fewer calls than the one that was counted.
        assert!(kills >= 7 && kills * 5 >= points.len() * 4, "{line}: {kills} of {points:?}");
    }
    if disk.is_mounted() {
        disk.release().done();
    }
    assert_is(&expected, &tree);
    assert_eq!(names(disk.disk.path()), ["lost+found", "store", "tree"]);
}

#[test]
fn after_a_restart_the_old_files_are_covered_again() {
    let Some(disk) = Disk::new() else { return };
    let tree = disk.tree();
    disk.adopt().done();
    fs::write(tree.join("new"), "new").unwrap();
    let expected = described(&tree);
    let (point, store) = (tree.display(), disk.store());
    terrace(&format!("ramdisk save {point} --persist {}", store.display())).done();
    // As a restart does.
    terrace(&format!("ramdisk remove {point} --discard")).done();
    assert!(!tree.join("new").exists());
    let line = format!("ramdisk create {point} --size 32m --persist {}", store.display());
    terrace(&line).refused(2, "terrace ramdisk adopt");
    terrace(&format!("{line} --adopted")).done();
    assert_is(&expected, &tree);
    disk.release().done();
    assert_is(&expected, &tree);
}

#[test]
fn old_files_that_were_used_after_a_restart_are_not_covered() {
    let Some(disk) = Disk::new() else { return };
    let tree = disk.tree();
    disk.adopt().done();
    let (point, store) = (tree.display(), disk.store());
    terrace(&format!("ramdisk remove {point} --discard")).done();
    let line = format!("ramdisk create {point} --adopted --size 32m --persist {}", store.display());
    let open = File::open(tree.join("file")).unwrap();
    terrace(&line).refused(3, "in use by");
    drop(open);
    fs::write(tree.join("deep/since"), "of today").unwrap();
    terrace(&line).refused(3, "changed after generation 1 was saved");
    assert!(!disk.is_mounted());
    terrace(&format!("{line} --force")).done();
    assert!(disk.is_mounted() && !tree.join("deep/since").exists());
    terrace(&format!("ramdisk remove {point} --discard")).done();
    assert!(tree.join("deep/since").exists());
}

#[test]
fn units_cover_the_directory_again_and_mount_nothing_else_over_it() {
    let Some(disk) = Disk::new() else { return };
    disk.adopt().done();
    let (point, units) = (disk.tree(), testkit::TempDir::new());
    let shown = terrace(&format!("ramdisk install {} --dry-run", point.display())).done();
    let store = disk.store();
    let words = format!("create {} --persist {}", point.display(), store.display());
    assert!(shown.contains(&words) && shown.contains("--adopted --size"), "{shown}");
    assert!(!shown.contains("[Mount]") && !shown.contains("fstab"), "{shown}");
    let to = units.path().display();
    terrace(&format!("ramdisk install {} --to {to}", point.display())).done();
    let made: Vec<String> =
        names(units.path()).into_iter().filter(|it| it.contains("create")).collect();
    assert_eq!(made.len(), 1, "{made:?}");
    if support::has_program("systemd-analyze") {
        let mut verify = std::process::Command::new("systemd-analyze");
        verify.arg("verify").arg(units.path().join(&made[0]));
        let ran = run(verify);
        assert!(ran.code == Some(0) && !ran.err.contains("ramdisk"), "{ran:?}");
    }
    terrace(&format!("ramdisk uninstall {} --to {to}", point.display())).done();
    assert!(names(units.path()).is_empty());
    terrace(&format!("ramdisk release {}", point.display())).done();
}

#[test]
fn what_cannot_be_adopted_is_refused() {
    if let Some(other) = as_ordinary_user("ramdisk adopt /usr/share --size 1g --persist /tmp/x") {
        run(other).refused(3, "only root");
    }
    let Some(disk) = Disk::new() else { return };
    let top = disk.disk.path().display();
    let other = TempDir::new();
    let store = other.join("store");
    let line = |path: &str, size: &str| {
        terrace(&format!("ramdisk adopt {path} --size {size} --persist {}", store.display()))
    };
    line(&format!("{top}/absent"), "32m").refused(2, "no such file or directory");
    line(&format!("{top}/tree/file"), "32m").refused(2, "not a directory");
    line(&format!("{top}/tree"), "100k").refused(2, "more than the size");
    line(&format!("{top}/tree"), "100k --force").refused(2, "more than the size");
    line(&format!("{top}/tree"), "0 --force").refused(2, "no limit");
    if let Ok(tmpfs) = Tmpfs::mount(1 << 20) {
        line(&tmpfs.path().display().to_string(), "1m").refused(2, "in memory already");
    }
    assert!(!disk.is_mounted());
    let inside = format!("{top}/tree --size 32m --persist {top}/tree/store");
    terrace(&format!("ramdisk adopt {inside}")).refused(2, "would be lost");
    assert!(!disk.is_mounted());
}

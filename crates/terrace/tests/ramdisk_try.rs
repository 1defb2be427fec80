//! `terrace ramdisk try`: the command finds the same files in both places, no other process sees
//! the copies, and nothing is left of them.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use support::described::names;
use support::{as_ordinary_user, command, run};
use testkit::{Mounted, TempDir, Tmpfs};

/// An ext4 with a directory `tree` of a file and a link; `None` without the rights.
fn disk() -> Option<Mounted> {
    let made = if testkit::is_root() {
        Mounted::made("ext4", &["-q"], 64 << 20)
    } else {
        Err("root".to_owned())
    };
    match made {
        Ok(disk) => {
            let tree = disk.path().join("tree");
            fs::create_dir_all(tree.join("below")).unwrap();
            fs::write(tree.join("below/file"), "as it was").unwrap();
            std::os::unix::fs::symlink("below/file", tree.join("link")).unwrap();
            Some(disk)
        }
        Err(need) => {
            testkit::skip(need);
            None
        }
    }
}

/// Runs `terrace ramdisk try OPTIONS DIR -- sh -c SCRIPT` in a working directory.
fn try_in(working: &Path, options: &str, directory: &str, script: &str) -> support::Ran {
    let mut try_it = command(&format!("ramdisk try {options} {directory} -- sh -c"));
    try_it.arg(script).current_dir(working);
    run(try_it)
}

#[test]
fn each_run_has_a_fresh_copy_that_it_alone_sees() {
    let Some(disk) = disk() else { return };
    let tree = disk.path().join("tree");
    let log = TempDir::new();
    let seen = log.join("seen");
    let script = format!(
        "stat -f -c %T . >> {0}; cat link >> {0}; echo >> {0}; echo changed > below/file; \
         ls {1} >> {0}; cat {2}/below/file > {3}",
        seen.display(),
        tree.display(),
        tree.display(),
        log.join("inside").display(),
    );
    // The working directory is the one that is tried.
    let ran = try_in(&tree, "--repeat 1 --prepare true", ".", &script);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
    let page = ran.err;
    let text = fs::read_to_string(&seen).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let in_both =
        ["ext2/ext3", "as it was", "below", "link", "tmpfs", "as it was", "below", "link"];
    assert_eq!(lines.len(), 16, "{text}");
    assert_eq!(&lines[..8], in_both, "{text}");
    // The order of the next round is the other one.
    assert_eq!((lines[8], lines[12]), ("tmpfs", "ext2/ext3"), "{text}");
    assert_eq!(fs::read_to_string(log.join("inside")).unwrap(), "changed\n");
    assert_eq!(fs::read_to_string(tree.join("below/file")).unwrap(), "as it was");
    assert_eq!(names(&tree), ["below", "link"]);
    assert_eq!(names(disk.path()), ["lost+found", "tree"]);
    assert!(page.contains("on its disk") && page.contains("in memory"), "{page}");
}

#[test]
fn what_waits_for_its_disk_is_quicker_in_memory() {
    let Some(disk) = disk() else { return };
    let script = "i=0; while [ $i -lt 60 ]; do \
                  dd if=/dev/zero of=tree/$i bs=4k count=1 conv=fsync status=none; \
                  i=$((i + 1)); done";
    let json = TempDir::new();
    let file = json.join("answer.json");
    let options = format!("--repeat 4 --trace none --json {}", file.display());
    let ran = try_in(disk.path(), &options, "tree", script);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let answer: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let name = |side: &str| answer[side]["name"].as_str().unwrap().to_owned();
    assert!(name("first").ends_with(", on its disk"), "{answer}");
    assert!(name("second").ends_with(", in memory"), "{answer}");
    let wall = &answer["items"][0];
    assert_eq!(wall["of"], "wall");
    // Each fsync of the disk is a commit of its journal; of a tmpfs it is nothing.
    let (on_disk, in_memory) = (wall["first"].as_f64().unwrap(), wall["second"].as_f64().unwrap());
    assert!(in_memory < on_disk, "{wall}");
}

/// One in twenty comparisons of equal things may call them different.
#[test]
fn what_does_not_use_its_disk_has_no_gain() {
    let Some(disk) = disk() else { return };
    let json = TempDir::new();
    let file = json.join("answer.json");
    let options = format!("--repeat 6 --trace none --json {}", file.display());
    let mut tries = (0..3).map(|_| {
        let ran = try_in(disk.path(), &options, "tree", "cat tree/link; sleep 0.05");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let text = fs::read_to_string(&file).unwrap();
        (serde_json::from_str::<serde_json::Value>(&text).unwrap(), ran.err)
    });
    let equal = tries.find(|(answer, _)| {
        assert_eq!(answer["items"][0]["of"], "wall");
        answer["items"][0]["verdict"] == "unproven"
    });
    let (answer, page) = equal.expect("three times a difference");
    let sentence = answer["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("Unproven: runs of one side differ"), "{sentence}");
    assert!(page.contains("Unproven") && page.contains("in memory"), "{page}");
    // The words of the help are those of the answer.
    let help = support::terrace("ramdisk try --help").done();
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("or that this is unproven"), "{help}");
}

#[test]
fn a_killed_trial_leaves_no_mount_and_the_next_removes_its_copy() {
    let Some(disk) = disk() else { return };
    let flag = TempDir::new();
    let begun = flag.join("begun");
    let mut try_it = command("ramdisk try --repeat 1 tree -- sh -c");
    try_it.arg(format!("touch {}; sleep 20", begun.display())).current_dir(disk.path());
    let mut child = try_it.spawn().unwrap();
    let started = Instant::now();
    while !begun.exists() && started.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let tree = disk.path().join("tree");
    assert!(!table.contains(tree.to_str().unwrap()), "others see it: {table}");
    child.kill().unwrap();
    child.wait().unwrap();
    let hidden = |name: &String| name.starts_with(".terrace-try.");
    assert_eq!(names(disk.path()).iter().filter(|name| hidden(name)).count(), 1);
    assert_eq!(names(&tree), ["below", "link"]);
    let ran = try_in(disk.path(), "--repeat 1", "tree", "true");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(names(disk.path()), ["lost+found", "tree"]);
}

#[test]
fn what_cannot_be_tried_is_refused() {
    if let Some(mut other) = as_ordinary_user("ramdisk try /usr/share -- true") {
        other.current_dir("/");
        run(other).refused(3, "only root");
    }
    let Some(disk) = disk() else { return };
    let top = disk.path();
    fs::write(top.join("file"), "").unwrap();
    try_in(top, "", "absent", "true").refused(2, "no such file or directory");
    try_in(top, "", "file", "true").refused(2, "not a directory");
    try_in(top, "", "/", "true").refused(2, "top of the whole tree");
    try_in(top, "", top.to_str().unwrap(), "true").refused(2, "top of a mount");
    if let Ok(tmpfs) = Tmpfs::mount(1 << 20) {
        fs::create_dir(tmpfs.path().join("below")).unwrap();
        try_in(tmpfs.path(), "", "below", "true").refused(2, "in memory already");
    }
    assert_eq!(names(top), ["file", "lost+found", "tree"]);
}

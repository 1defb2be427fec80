//! `terrace copy` of trees that are hard to copy: deeper than a path may be long, with few
//! descriptors; and any tree, made from a seed, by each engine on each file system. What is
//! compared is read by code that the program does not share.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/random_tree.rs"]
mod random_tree;
mod support;
#[path = "support/trees.rs"]
mod trees;

use random_tree::make_tree;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{TERRACE, terrace};
use testkit::{Mounted, TempDir};
use trees::{assert_same, described, make_deep};

/// With a name of 22 bytes a path of more than 4,096 bytes, and far more than 64 levels.
const DEPTH: usize = 330;
const LEVEL_NAME: &str = "a-level-of-a-deep-tree";

/// `terrace` with 64 descriptors and no memory that it may lock.
fn with_little(words: &str) -> Command {
    let mut command = Command::new("sh");
    let line = format!("ulimit -n 64; ulimit -l 0; exec {TERRACE} {words}");
    command.args(["-c", &line]).stdin(Stdio::null());
    command
}

#[track_caller]
fn copies(words: &str) -> String {
    let ran = with_little(&format!("copy {words}")).output().unwrap();
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert_eq!(ran.status.code(), Some(0), "{words}: {}", &said[..said.len().min(600)]);
    said
}

fn hidden(directory: &Path) -> usize {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.as_encoded_bytes().starts_with(b".terrace")).count()
}

#[test]
fn a_tree_that_is_deeper_than_a_path_is_copied_merged_with_and_removed_with_few_descriptors() {
    let directory = TempDir::new();
    let shown = directory.path().display();
    let source = directory.join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("large"), vec![7; 3 << 20]).unwrap();
    make_deep(&source, LEVEL_NAME, DEPTH, |level, path| {
        fs::write(path.join("file"), format!("of level {level}")).unwrap();
        fs::hard_link(path.join("file"), path.join("second")).unwrap();
    });
    copies(&format!("{shown}/source {shown}/copy --verify"));
    assert_same(&described(&source), &directory.join("copy"), "a new tree");

    // The deepest file is another one, and there is one more: both are put into what exists.
    let mut held = trees::open_directory(&source);
    for _ in 0..DEPTH {
        held = trees::subdirectory(&held, LEVEL_NAME.as_ref());
    }
    let deepest = trees::by_descriptor(&held);
    fs::write(deepest.join("file"), "changed").unwrap();
    fs::write(deepest.join("new"), vec![9; 2 << 20]).unwrap();
    copies(&format!("{shown}/source/. {shown}/copy --verify"));
    assert_same(&described(&source), &directory.join("copy"), "a tree that was merged with");

    // What a copy leaves that was killed at the deepest level goes.
    fs::write(deepest.join("slow"), vec![1; 12 << 20]).unwrap();
    let words = format!("copy {shown}/source {shown}/other --limit-rate 6m");
    let mut child = with_little(&words).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(hidden(directory.path()), 1);
    copies(&format!("{shown}/source {shown}/other --restart"));
    assert_eq!(hidden(directory.path()), 0);
    assert_same(&described(&source), &directory.join("other"), "after --restart");
}

/// How the trees are copied. The first is the choice of the program.
const WAYS: [&str; 7] = [
    "",
    "--engine uring",
    "--engine uncached --verify",
    "--engine paced --verify",
    "--engine plain",
    "--engine cached --keep-cached",
    "--engine two-thread --verify",
];

/// Any tree, by each engine, on each file system: content and metadata are equal. The seeds are
/// those of TERRACE_COPY_SEEDS (`7` or `1-40`), else one.
#[test]
fn any_tree_is_copied_whole_by_each_engine_on_each_file_system() {
    if !testkit::is_admin() {
        return testkit::skip("root with all its rights");
    }
    let systems: [(&str, &[&str]); 3] = [
        // Of 256 bytes an inode has room for nanoseconds.
        ("ext4", &["-q", "-F", "-I", "256"]),
        ("xfs", &["-q", "-f"]),
        ("btrfs", &["-q", "-f"]),
    ];
    for (name, options) in systems {
        let mount = match Mounted::made(name, options, 900 << 20) {
            Ok(mount) => mount,
            Err(need) => {
                testkit::skip(need);
                continue;
            }
        };
        for seed in seeds() {
            any_tree(&mount, name, seed);
        }
    }
}

fn seeds() -> std::ops::RangeInclusive<u64> {
    let asked = std::env::var("TERRACE_COPY_SEEDS").unwrap_or_else(|_| "1".to_owned());
    let (first, last) = asked.split_once('-').unwrap_or((&asked, &asked));
    first.parse().unwrap()..=last.parse().unwrap()
}

fn any_tree(mount: &Mounted, system: &str, seed: u64) {
    let source = mount.path().join("source");
    make_tree(&source, seed);
    let expected = described(&source);
    for way in WAYS {
        let what = format!("seed {seed}, {system}, {way}");
        let target = mount.path().join("copy");
        let words = format!("copy {} {} {way}", source.display(), target.display());
        let ran = terrace(&words);
        assert_eq!(ran.code, Some(0), "{what}: {}{}", ran.out, ran.err);
        assert!(!ran.out.contains("without"), "{what}: something was not kept: {}", ran.out);
        assert_same(&expected, &target, &what);
        if way.is_empty() {
            // Onto what exists: nothing of it stays, and nothing else changes.
            let words = format!("copy {}/. {}", source.display(), target.display());
            let ran = terrace(&words);
            assert_eq!(ran.code, Some(0), "{what}, again: {}{}", ran.out, ran.err);
            assert_same(&expected, &target, &format!("{what}, again"));
        }
        fs::remove_dir_all(target).unwrap();
    }
    assert_same(&expected, &source, "the source");
    fs::remove_dir_all(source).unwrap();
}

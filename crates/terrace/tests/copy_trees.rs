//! `terrace copy` of trees that are hard to copy: deeper than a path may be long, with few
//! descriptors.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;
#[path = "support/trees.rs"]
mod trees;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::TERRACE;
use testkit::TempDir;
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

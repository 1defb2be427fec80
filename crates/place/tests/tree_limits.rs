//! A walk with 64 descriptors over a tree that is deeper than that and than any path. The only test
//! of its program: the limit is the process's.

use place::tree::{TreeWalk, WalkEvent, WalkLimits};
use std::ffi::OsStr;
use sys::directory::{Directory, DirectoryStack};
use testkit::TempDir;

/// 700 names of 100 bytes: 70,000 bytes of path, where the kernel takes 4,096.
const DEPTH: usize = 700;
const NAME_BYTES: usize = 100;

#[test]
fn a_tree_deeper_than_descriptors_and_paths_is_walked_and_removed() {
    let limit = std::process::Command::new("prlimit")
        .args(["--nofile=64:64", "--pid"])
        .arg(std::process::id().to_string())
        .status();
    if !limit.is_ok_and(|status| status.success()) {
        return testkit::skip("prlimit");
    }
    let parent = TempDir::new();
    let name = "d".repeat(NAME_BYTES);
    let mut stack = DirectoryStack::new(Directory::open(parent.path()).unwrap(), 4);
    for _ in 0..DEPTH {
        stack.current().unwrap().create_subdirectory(OsStr::new(&name), 0o700).unwrap();
        let below = stack.enter(OsStr::new(&name)).unwrap();
        below.create_new(OsStr::new("file"), 0o600).unwrap();
    }
    // What the rest of a copier holds.
    let held: Vec<std::fs::File> =
        (0..32).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
    let top = Directory::open(parent.path()).unwrap();
    let mut walk = TreeWalk::below(top, WalkLimits::default()).unwrap();
    let (mut files, mut deepest, mut left) = (0, 0, 0);
    while let Some(event) = walk.next() {
        match event {
            WalkEvent::Entry(entry) if entry.name == "file" => files += 1,
            WalkEvent::Enter(at) => deepest = deepest.max(at.depth),
            WalkEvent::Leave(at) => {
                assert!(at.directory.is_some());
                left += 1;
            }
            WalkEvent::Refused(_, error) => panic!("{error}"),
            _ => {}
        }
    }
    assert_eq!((files, deepest, left), (DEPTH, DEPTH, DEPTH + 1));
    drop(held);
    while stack.depth() > 0 {
        stack.current().unwrap().remove(OsStr::new("file")).unwrap();
        stack.leave().unwrap();
        stack.current().unwrap().remove_directory(OsStr::new(&name)).unwrap();
    }
}

//! One Ctrl-C ends every loop over what other users decide on: files, windows, pages, processes.
//! The flag stays set for the rest of a process, so this is a test program of its own.
#![allow(clippy::unwrap_used, reason = "a test program")]

use machine::Root;
use machine::pagemap::Pagemap;
use place::cached::Access;
use place::cached::{CacheQueries, QueryLimitReached};
use place::read_plan::FileIdentity;
use place::workingset::files;
use place::workingset::snapshot::{self, CachedFile, Snapshot};
use place::workingset::targets::{self, Selection};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use testkit::TempDir;

#[test]
fn nothing_more_is_asked_after_one_interrupt() {
    let root = Root::system();
    let directory = TempDir::new();
    let path = directory.join("file");
    std::fs::write(&path, vec![1; 1 << 20]).unwrap();
    let file = File::open(&path).unwrap();
    let identity = FileIdentity::of(&file.metadata().unwrap());
    let mut holder = Command::new("sleep")
        .arg("1000")
        .stdin(Stdio::from(file.try_clone().unwrap()))
        .spawn()
        .unwrap();
    let selection = Selection::Processes(vec![holder.id()]);
    let held = targets::find(&root, &selection).unwrap();

    sys::interrupt::install().unwrap();
    let own = std::process::id().to_string();
    Command::new("kill").args(["-TERM", &own]).status().unwrap();
    while !sys::interrupt::requested() {
        std::thread::yield_now();
    }

    let mut access = Access::new(&root);
    let used = files::find(&root, &held, &mut access).unwrap();
    assert_eq!(used, []);
    let all = std::slice::from_ref(&(0..1 << 20));
    assert_eq!(CacheQueries::default().ranges_of(&file, all), Err(QueryLimitReached));
    let mut pages = 0;
    let mut pagemap = Pagemap::open(&root, std::process::id()).unwrap();
    for mapping in machine::maps::read(&root, std::process::id()).unwrap() {
        pagemap.read(mapping.range, |_, _| pages += 1).unwrap();
    }
    assert_eq!(pages, 0);
    let gone = CachedFile { path: directory.join("gone"), identity, cached: Vec::new() };
    let noted = Snapshot { files: vec![gone; 10], ..Snapshot::default() };
    assert_eq!(snapshot::missing(&noted, &mut access).changed_files, 0);
    let no_process = Selection::Processes(Vec::new());
    let taken = snapshot::take(&root, &no_process, &[PathBuf::from(directory.path())]).unwrap();
    assert_eq!(taken.files, []);
    holder.kill().unwrap();
    holder.wait().unwrap();
}

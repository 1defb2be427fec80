//! A snapshot of real files and processes: taken, written, read, and what is missing after the
//! page cache was dropped comes back; what changed since stays where it is.

#![allow(clippy::unwrap_used, reason = "a test program")]

use machine::Root;
use model::{Bytes, Control};
use place::ErrorKind;
use place::background::{Allowance, Limits};
use place::cached::Access;
use place::order;
use place::ranges;
use place::read_plan::WantedFile;
use place::workingset::evict::{self, EvictTarget};
use place::workingset::snapshot::{self, MissingFiles, ProcessSnapshot, Snapshot};
use place::workingset::targets::{self, Selection};
use place::workingset::{metadata, read};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use testkit::TempDir;

const MIB: u64 = 1 << 20;

/// A program that holds a file open and waits.
fn holder(path: &Path) -> Child {
    let mut child = Command::new("sh")
        .args(["-c", "exec 3<\"$1\"; echo ready; read end", "sh"])
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Not the log of the test run, which would be a file of this process, and grow.
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().unwrap();
}

fn taken(pids: &[u32], trees: &[&Path]) -> Snapshot {
    let selection = Selection::Processes(pids.to_vec());
    let trees: Vec<PathBuf> = trees.iter().map(|tree| tree.to_path_buf()).collect();
    snapshot::take(&Root::system(), &selection, &trees).unwrap()
}

fn dropped(path: &Path) -> bool {
    let victim = EvictTarget::Path(path.to_owned());
    evict::evict(&Root::system(), &victim).unwrap().after_bytes == 0
}

fn read_back(missing: &MissingFiles) -> read::ReadCounts {
    let work = order::by_position(missing.files.clone(), &mut access());
    read::pieces(&work, &mut |_| Control::Continue)
}

/// With all bounds unused.
fn access() -> Access {
    Access::new(&Root::system())
}

fn bytes_of(missing: &MissingFiles) -> u64 {
    let ranges = missing.files.iter().map(|wanted| &wanted.ranges);
    ranges.map(|ranges| ranges::total(ranges)).sum()
}

#[test]
fn what_was_dropped_comes_back_and_what_changed_does_not() {
    let directory = TempDir::new();
    for number in 0..40u64 {
        let path = directory.join(format!("file-{number}"));
        std::fs::write(&path, vec![1; (number * 5000 + 1) as usize]).unwrap();
    }
    let open = directory.join("file-7");
    let child = holder(&open);
    let now = taken(&[child.id()], &[directory.path()]);
    let below = |path: &Path| path.starts_with(directory.path());
    let listed = now.files.iter().filter(|file| below(&file.path)).count();
    assert_eq!(listed, 40, "each once, also the one that is open");
    if testkit::is_root() {
        // What is in memory of files of others the kernel tells nobody else.
        assert!(now.files.len() > 40, "and the program's own files");
    }
    let bytes: u64 = now.files.iter().map(|file| ranges::total(&file.cached)).sum();
    assert_eq!(bytes, now.found_bytes);
    assert!(now.cached_bytes.unwrap() >= now.unseen_bytes().unwrap());

    // It survives its file.
    let file = directory.join("now.snapshot");
    snapshot::write(&now, &file).unwrap();
    let now = snapshot::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();

    let nothing = snapshot::missing(&now, &mut access());
    assert_eq!((bytes_of(&nothing), nothing.changed_files), (0, 0));
    assert_eq!(now.processes.len(), 1);
    assert!(ranges::total(&now.processes[0].present) > 0);
    end(child);
    if !dropped(directory.path()) {
        return testkit::skip("a temporary directory on a disk");
    }
    std::fs::write(directory.join("file-3"), "changed").unwrap();
    std::fs::remove_file(directory.join("file-4")).unwrap();
    let missing = snapshot::missing(&now, &mut access());
    assert_eq!(missing.changed_files, 2);
    assert_eq!(missing.files.len(), 38);
    let read = read_back(&missing);
    let bytes = bytes_of(&missing);
    assert_eq!(read.present_bytes, read.bytes);
    // Of a last page the disk may have a block only.
    let most_without = 38 * (sys::process::page_bytes() as u64 - 4096);
    assert!((bytes - most_without..=bytes).contains(&read.bytes), "{read:?} of {bytes}");
    let still_missing = snapshot::missing(&now, &mut access());
    assert_eq!(bytes_of(&still_missing), 0);
    assert_eq!(still_missing.changed_files, 2);
}

#[test]
fn a_process_with_another_start_or_program_is_another() {
    let child = holder("/dev/null".as_ref());
    let now = taken(&[child.id()], &[]);
    let selection = Selection::Processes(vec![child.id()]);
    let targets = targets::find(&Root::system(), &selection).unwrap();
    let is = |process: &ProcessSnapshot| process.is_process(&Root::system(), &targets[0]);
    let process = &now.processes[0];
    assert_eq!(process.name, "sh");
    assert!(process.executable.is_some() && is(process));
    let mut other = process.clone();
    other.start_ticks += 1;
    assert!(!is(&other));
    other.clone_from(process);
    other.executable = Some("/bin/other".into());
    assert!(!is(&other));
    end(child);
}

#[test]
fn what_a_stranger_says_behind_the_end_of_a_file_is_not_read() {
    let directory = TempDir::new();
    let path = directory.join("data");
    std::fs::write(&path, vec![1; 5000]).unwrap();
    let child = holder(&path);
    let mut now = taken(&[child.id()], &[directory.path()]);
    end(child);
    now.files.retain(|file| file.path == path);
    let end_of_all = 1 << 62;
    now.files[0].cached = vec![0..8192, 1 << 30..end_of_all];
    if !dropped(&path) {
        return testkit::skip("a temporary directory on a disk");
    }
    let missing = snapshot::missing(&now, &mut access());
    assert_eq!(bytes_of(&missing), 8192);
    let unclipped = WantedFile::new(path, now.files[0].identity, now.files[0].cached.clone());
    let plan = order::by_position(vec![unclipped], &mut access());
    assert!(plan.pieces.iter().all(|piece| piece.range.end <= 8192));
    assert_eq!(read_back(&missing).present_bytes, 8192);
}

#[test]
fn a_tree_that_is_not_there_is_a_line() {
    let child = holder("/dev/null".as_ref());
    let selection = Selection::Processes(vec![child.id()]);
    let trees = [PathBuf::from("/no/such/tree")];
    let error = snapshot::take(&Root::system(), &selection, &trees).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert!(error.to_string().contains("/no/such/tree"));
    end(child);
}

fn allowance() -> Allowance {
    let limits =
        Limits { floor: Bytes(0), pressure_permille: 1000, ..Limits::usual(&Root::system()) };
    Allowance::start(&Root::system(), limits).unwrap()
}

#[test]
fn directories_and_inodes_of_a_tree_are_walked() {
    let directory = TempDir::new();
    std::fs::create_dir_all(directory.join("a/b")).unwrap();
    for name in ["a/one", "a/b/two", "three"] {
        std::fs::write(directory.join(name), "x").unwrap();
    }
    std::os::unix::fs::symlink("/usr", directory.join("link")).unwrap();
    let trees = [directory.path().to_owned()];
    let walked = metadata::warm_metadata(&Root::system(), &trees, &mut allowance()).unwrap();
    assert_eq!((walked.directories, walked.inodes, walked.refused), (3, 7, 0));
    assert_eq!(walked.stopped, None);
    let nowhere = [directory.join("nowhere")];
    let error = metadata::warm_metadata(&Root::system(), &nowhere, &mut allowance()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
}

/// Prints how long it takes and how large it is: `cargo test --release -p place --test snapshot --
/// --ignored --nocapture`. Needs 9 GiB of disk and of free memory.
#[test]
#[ignore = "measures, and takes 9 GiB of disk and memory"]
#[allow(clippy::print_stdout, reason = "the figures are its purpose")]
fn figures_of_eight_gibibytes() {
    let directory = TempDir::new();
    let block: Vec<u8> = (0..MIB as usize).map(|at| (at / 512) as u8).collect();
    for number in 0..8 {
        let path = directory.join(format!("large-{number}"));
        let mut file = std::fs::File::create(path).unwrap();
        for _ in 0..1024 {
            std::io::Write::write_all(&mut file, &block).unwrap();
        }
    }
    for number in 0..30_000 {
        let below = directory.join(format!("directory-{}", number / 300));
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(below.join(format!("small-{number}")), &block[..6000]).unwrap();
    }
    // One of the large ones with every other page only: the worst that a file can be.
    let holed = directory.join("large-0");
    let file = std::fs::File::open(&holed).unwrap();
    assert!(dropped(&holed));
    sys::file::advise(&file, 0, 0, sys::file::CacheAdvice::Random).unwrap();
    for page in (0..1024 * MIB).step_by(8192) {
        sys::file::read_at(&file, &mut [0], page).unwrap();
    }
    for _ in 0..3 {
        // Others on the machine may have pushed something out meanwhile.
        for number in 1..8 {
            let mut file = std::fs::File::open(directory.join(format!("large-{number}"))).unwrap();
            std::io::copy(&mut file, &mut std::io::sink()).unwrap();
        }
        let start = Instant::now();
        let trees = [directory.path().to_owned()];
        let now = snapshot::take(&Root::system(), &Selection::All, &trees).unwrap();
        let took = start.elapsed();
        let bytes = snapshot::encode(&now).unwrap();
        let written = start.elapsed() - took;
        let start = Instant::now();
        assert_eq!(snapshot::decode(&bytes).unwrap(), now);
        println!(
            "{} files, {} of {} MiB, {} ranges: taken in {took:.2?}, packed in {written:.2?} to \
             {} bytes, read in {:.2?}",
            now.files.len(),
            now.found_bytes / MIB,
            now.cached_bytes.unwrap() / MIB,
            now.files.iter().map(|file| file.cached.len()).sum::<usize>(),
            bytes.len(),
            start.elapsed(),
        );
    }
}

//! Files of real processes: found, put into the order of the disk, read back, and left alone
//! when they are no longer what they were. Cold and warm is what `cachestat` says.

#![allow(clippy::unwrap_used, reason = "a test program")]
#![allow(clippy::single_range_in_vec_init, reason = "lists of ranges are meant, also of one")]

use machine::{Root, damon};
use model::{Bytes, Control, progress};
use place::background::{Limits, StopReason};
use place::cached::{Access, CacheQueries};
use place::read_plan::{FileIdentity, Piece, ReadPlan, WantedFile};
use place::workingset::files::{self, UsedFile};
use place::workingset::read;
use place::workingset::restore::{self, RestoreRequest};
use place::workingset::targets::{self, Selection, TargetProcess};
use place::{cached, order, ranges};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use sys::file::{CacheAdvice, advise, open_unnoticed, read_at, sync_data};
use sys::helper::HiddenCommand;
use testkit::{Mount, TempDir, Tmpfs};

const MIB: u64 = 1 << 20;

/// A file of noise that is on the disk and not in memory; `None` where it stays in memory.
fn cold_file(path: &Path, bytes: u64) -> Option<File> {
    let mut noise = vec![0; bytes as usize];
    testkit::Random(7).fill(&mut noise);
    std::fs::write(path, noise).unwrap();
    let file = File::open(path).unwrap();
    cool(&file);
    match cached_bytes(&file) {
        Some(0) => Some(file),
        _ => {
            testkit::skip("a temporary directory on a disk, and a kernel that shows its cache");
            None
        }
    }
}

fn cool(file: &File) {
    sync_data(file).unwrap();
    advise(file, 0, 0, CacheAdvice::Random).unwrap();
    advise(file, 0, 0, CacheAdvice::DontNeed).unwrap();
}

fn cached_bytes(file: &File) -> Option<u64> {
    let stat = sys::cachestat::of(file, 0, 0).ok()?;
    Some(stat.cached * page_bytes())
}

/// A shell that holds files open; it ends with its input.
struct Holder {
    child: Child,
    targets: Vec<TargetProcess>,
}

impl Holder {
    fn of(paths: &[&Path]) -> Self {
        let opens = ["exec 3<\"$1\"", "exec 4<\"$2\"", "exec 5<\"$3\""];
        let script = format!("{}; echo ready; read end", opens[..paths.len()].join("; "));
        let mut child = Command::new("sh")
            .args(["-c", &script, "sh"])
            .args(paths)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let selection = Selection::Processes(vec![child.id()]);
        let targets = targets::find(&Root::system(), &selection).unwrap();
        Self { child, targets }
    }

    fn files(&self) -> Vec<UsedFile> {
        files::find(&Root::system(), &self.targets, &mut access()).unwrap()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.stdin.take().unwrap().write_all(b"\n");
        let _ = self.child.wait();
    }
}

fn identity(path: &Path) -> FileIdentity {
    FileIdentity::of(&std::fs::metadata(path).unwrap())
}

fn work_of(wanted: &[WantedFile]) -> ReadPlan {
    order::by_position(wanted.to_vec(), &mut access())
}

fn page_bytes() -> u64 {
    sys::process::page_bytes() as u64
}

fn wanted_file(path: &Path, ranges: Vec<Range<u64>>) -> WantedFile {
    WantedFile::new(path.to_owned(), identity(path), ranges)
}

/// With all bounds unused.
fn access() -> Access {
    Access::new(&Root::system())
}

#[test]
fn an_open_file_is_found_with_what_of_it_is_absent() {
    let directory = TempDir::new();
    let path = directory.join("data");
    let Some(file) = cold_file(&path, 8 * MIB + 100) else {
        return;
    };
    let there = [MIB..2 * MIB, 5 * MIB..5 * MIB + page_bytes()];
    for range in &there {
        for page in range.clone().step_by(page_bytes() as usize) {
            read_at(&file, &mut [0], page).unwrap();
        }
    }
    let holder = Holder::of(&[&path]);
    let found = holder.files();
    let data = found.iter().find(|file| file.path == path).unwrap();
    assert_eq!(data.identity, identity(&path));
    assert_eq!(data.targets, [0]);
    let whole = 0..8 * MIB + page_bytes();
    assert_eq!(data.used, std::slice::from_ref(&whole));
    assert_eq!(data.cached_bytes, cached_bytes(&file));
    assert_eq!(data.cached_bytes, Some(MIB + page_bytes()));
    assert_eq!(data.absent, ranges::without(&[whole], &there));
    // What it has mapped is there too, by the mapped part: the shell itself and its library.
    let mapped: Vec<_> = found.iter().filter(|file| file.path != path).collect();
    assert!(mapped.iter().any(|file| file.path.to_string_lossy().contains("libc")));
    assert!(mapped.iter().all(|file| !file.used.is_empty()));
}

#[test]
fn files_that_the_own_group_uses_are_read_without_another_process() {
    let directory = TempDir::new();
    let path = directory.join("data");
    if cold_file(&path, 2 * MIB).is_none() {
        return;
    }
    let holder = Holder::of(&[&path]);
    let root = Root::system();
    // Other tests may wait for memory meanwhile.
    let limits = Limits { floor: Bytes(0), pressure_permille: 1000, ..Limits::usual(&root) };
    let request = RestoreRequest {
        anonymous: false,
        shared: false,
        estimate: true,
        yield_percent: 0,
        // Would fail if it were called.
        helper: Some(HiddenCommand::new(["no such command"])),
        ..RestoreRequest::new(Selection::Processes(vec![holder.child.id()]), limits)
    };
    let restored = || {
        cold_file(&path, 2 * MIB).unwrap();
        let evicts = damon::pages_out_after(&root).is_some();
        let plan = restore::plan(&root, &request).unwrap();
        let is_noted = plan.notes.iter().any(|note| note.starts_with("DAMON"));
        // Unless it was switched meanwhile.
        if damon::pages_out_after(&root).is_some() == evicts {
            assert_eq!(is_noted, evicts);
        }
        restore::carry_out(&root, &request, plan, &mut progress::ignore).unwrap()
    };
    // A restore ends when free memory runs out for any task of the machine: then it is repeated.
    let mut reports = (0..20).map(|_| restored());
    let report = reports.find(|report| report.stop != StopReason::Pressure).unwrap();
    assert_eq!((report.stop, &report.notes), (StopReason::Done, &Vec::new()), "{report:?}");
    let read_bytes: u64 = report.parts.iter().map(|part| part.bytes).sum();
    assert!(read_bytes >= 2 * MIB, "{read_bytes} bytes");
    // What is in memory now says nothing: DAMON or another program may have evicted it. The report
    // counted what was there when it was read.
    assert!(report.parts.iter().any(|part| part.present_pages > 0));
}

#[test]
fn a_file_of_two_processes_is_one_and_files_without_disk_or_name_are_none() {
    let directory = TempDir::new();
    let (kept, gone) = (directory.join("kept"), directory.join("gone"));
    std::fs::write(&kept, vec![1; 5000]).unwrap();
    std::fs::write(&gone, vec![1; 5000]).unwrap();
    let tmpfs = Tmpfs::mount(1 << 20).ok();
    let in_ram = tmpfs.as_ref().map_or_else(|| gone.clone(), |tmpfs| tmpfs.path().join("ram"));
    std::fs::write(&in_ram, vec![1; 5000]).unwrap();
    let (one, two) = (Holder::of(&[&kept, &gone, &in_ram]), Holder::of(&[&kept]));
    std::fs::remove_file(&gone).unwrap();
    let selection = Selection::Processes(vec![one.child.id(), two.child.id()]);
    let targets = targets::find(&Root::system(), &selection).unwrap();
    let found = files::find(&Root::system(), &targets, &mut access()).unwrap();
    let named = |path: &Path| found.iter().filter(|file| file.path == *path).count();
    assert_eq!((named(&kept), named(&gone), named(&in_ram)), (1, 0, 0));
    let shared = found.iter().find(|file| file.path == kept).unwrap();
    assert_eq!(shared.targets, [0, 1]);
    assert!(found.iter().all(|file| !file.path.starts_with("/proc")));
}

#[test]
fn files_come_back_in_the_order_of_the_disk() {
    let directory = TempDir::new();
    let mut wanted = Vec::new();
    let mut open = Vec::new();
    // The pages of what is behind the first MiB of each.
    let tail = 5000_u64.next_multiple_of(page_bytes());
    for number in 0..20 {
        let path = directory.join(format!("file-{number}"));
        let Some(file) = cold_file(&path, MIB + 5000) else {
            return;
        };
        let parts = vec![0..MIB / 2, MIB..MIB + tail];
        wanted.push(wanted_file(&path, parts));
        open.push(file);
    }
    wanted.reverse();
    let work = work_of(&wanted);
    let known: Vec<u64> = work.pieces.iter().filter_map(|piece| piece.physical).collect();
    assert!(known.is_sorted());
    if known.len() < work.pieces.len() {
        testkit::skip("a file system that reports positions, for the order");
    }
    let mut reported = Vec::new();
    let read = read::pieces(&work, &mut |read| {
        reported.push(read.bytes);
        Control::Continue
    });
    // The blocks of the disk, which may be smaller than pages.
    let all = 20 * (MIB / 2 + 8192);
    assert_eq!((read.bytes, read.present_bytes, read.changed_files), (all, all, 0));
    assert!(reported.is_sorted() && reported.last() == Some(&all));
    for file in &open {
        // Exactly what was wanted, and nothing around it.
        assert_eq!(cached_bytes(file), Some(MIB / 2 + tail));
        let there = cached::ranges_of(file, &(0..MIB + 5000)).unwrap();
        assert_eq!(there, [0..MIB / 2, MIB..MIB + tail]);
    }
}

#[test]
fn a_file_that_is_another_by_now_is_not_read() {
    let directory = TempDir::new();
    let names = ["same", "appended", "replaced", "gone", "directory"];
    let mut wanted = Vec::new();
    for name in names {
        let path = directory.join(name);
        if cold_file(&path, MIB).is_none() {
            return;
        }
        wanted.push(wanted_file(&path, vec![0..MIB]));
    }
    let work = work_of(&wanted);
    assert!(work.pieces.len() >= names.len());
    File::options().append(true).open(directory.join("appended")).unwrap().write_all(b"x").unwrap();
    cold_file(&directory.join("other"), MIB).unwrap();
    std::fs::rename(directory.join("other"), directory.join("replaced")).unwrap();
    std::fs::remove_file(directory.join("gone")).unwrap();
    std::fs::remove_file(directory.join("directory")).unwrap();
    std::fs::create_dir(directory.join("directory")).unwrap();
    for name in ["appended", "replaced"] {
        cool(&File::open(directory.join(name)).unwrap());
    }
    let read = read::pieces(&work, &mut |_| Control::Continue);
    assert_eq!((read.bytes, read.present_bytes, read.changed_files), (MIB, MIB, 4));
    for name in ["appended", "replaced"] {
        assert_eq!(cached_bytes(&File::open(directory.join(name)).unwrap()), Some(0), "{name}");
    }
    // Those that had changed before make no piece at all.
    assert!(work_of(&wanted).pieces.iter().all(|piece| piece.file == 0));
}

#[test]
fn a_file_that_is_cut_midway_ends_nothing() {
    let directory = TempDir::new();
    let path = directory.join("data");
    if cold_file(&path, 64 * MIB).is_none() {
        return;
    }
    let work = work_of(&[wanted_file(&path, vec![0..64 * MIB])]);
    let mut batches = 0;
    let read = read::pieces(&work, &mut |_| {
        batches += 1;
        if batches == 1 {
            File::options().write(true).open(&path).unwrap().set_len(5000).unwrap();
        }
        Control::Continue
    });
    assert_eq!(read.bytes, 64 * MIB, "all was asked for");
    assert!(read.present_bytes < 64 * MIB);
}

#[test]
fn reading_stops_on_request() {
    let directory = TempDir::new();
    let path = directory.join("data");
    let Some(file) = cold_file(&path, 64 * MIB) else {
        return;
    };
    let work = work_of(&[wanted_file(&path, vec![0..64 * MIB])]);
    let mut asked = 0;
    let read = read::pieces(&work, &mut |_| {
        asked += 1;
        Control::Stop
    });
    assert_eq!(asked, 1);
    // The first batch, and the one that was on its way: not the file.
    assert!(read.bytes > 0 && read.bytes <= 4 * MIB, "{}", read.bytes);
    assert!(cached_bytes(&file).unwrap() <= 8 * MIB);
}

#[test]
fn a_work_that_names_no_such_file_is_harmless() {
    let work = ReadPlan {
        files: Vec::new(),
        pieces: vec![Piece { file: 9, range: 0..4096, physical: None }],
    };
    let read = read::pieces(&work, &mut |_| Control::Continue);
    assert_eq!((read.bytes, read.changed_files), (0, 1));
}

#[test]
fn ranges_of_a_sparse_giant_cost_little() {
    let directory = TempDir::new();
    let path = directory.join("giant");
    let file = File::options().write(true).create_new(true).open(&path).unwrap();
    let (far, page) = (1 << 40, page_bytes());
    if file.set_len(far).is_err() {
        return testkit::skip("a file system that takes a file of 1 TiB");
    }
    std::os::unix::fs::FileExt::write_all_at(&file, &[1; 4096], far - 2 * page).unwrap();
    let there = cached::ranges_of(&open_unnoticed(&path).unwrap(), &(0..far));
    if let Some(there) = there {
        assert_eq!(there, [far - 2 * page..far - page]);
    }
}

/// What another user made sparse must not cost root hours: 16 TiB would be 262,144 windows.
#[test]
fn a_sparse_file_takes_few_questions() {
    let directory = TempDir::new();
    let path = directory.join("giant");
    let file = File::options().write(true).create_new(true).open(&path).unwrap();
    let page = page_bytes();
    let far = (16 << 40) - page;
    if file.set_len(far).is_err() {
        return testkit::skip("a file system that takes a file of 16 TiB");
    }
    let open = open_unnoticed(&path).unwrap();
    let all = 0..far;
    let mut questions = CacheQueries::default();
    let parts = std::slice::from_ref(&all);
    if questions.ranges_of(&open, parts) == Ok(None) {
        return testkit::skip("cachestat (Linux 6.5)");
    }
    assert!(questions.asked() <= 2, "{questions:?}");
    std::os::unix::fs::FileExt::write_all_at(&file, &[1; 4096], far - 2 * page).unwrap();
    let found = questions.ranges_of(&open, parts).unwrap().unwrap();
    assert_eq!(found, vec![far - 2 * page..far - page]);
    assert!(questions.asked() <= 200, "{questions:?}");
}

/// The pages belong to the file below, where `cachestat` does not look.
#[test]
fn pages_of_a_file_in_an_overlay_are_seen() {
    const BYTES: u64 = 1 << 20;
    let (lower, directory) = (TempDir::new(), TempDir::new());
    let Some(below) = cold_file(&lower.join("data"), BYTES) else {
        return;
    };
    let mount = match Mount::overlay(lower.path(), directory.path()) {
        Ok(mount) => mount,
        Err(need) => return testkit::skip(need),
    };
    let file = File::open(mount.path().join("data")).unwrap();
    assert_eq!(cached::bytes_of(&file, &(0..BYTES)), Some(0));
    let mut half = vec![0; BYTES as usize / 2];
    // Opened for reading at random: nothing is read ahead.
    read_at(&below, &mut half, 0).unwrap();
    assert_eq!(cached::bytes_of(&file, &(0..BYTES)), Some(BYTES / 2));
    let found = cached::ranges_of(&file, &(0..BYTES)).unwrap();
    assert_eq!(found, vec![0..BYTES / 2]);
}

//! Reading from inside of a control group, and what the kernel shows an ordinary user.
//!
//! Not libtest's harness: the helper is this same program (`serve`), and libtest writes words
//! of its own to the output that the helper answers on.
#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::single_range_in_vec_init, reason = "lists of ranges are meant, also of one")]

use machine::{Root, damon};
use model::Control;
use place::ErrorKind;
use place::cached;
use place::cached::Access;
use place::order;
use place::read_plan::{FileIdentity, ReadPlan, WantedFile};
use place::workingset::cgroup_reader;
use place::workingset::read;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use sys::file::{CacheAdvice, advise, sync_data};
use sys::helper::{Caller, HiddenCommand};
use testkit::{Cgroup, TempDir};

const MIB: u64 = 1 << 20;

/// An ordinary user that every system has.
const ORDINARY_USER: &str = "65534";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve"] => {
            let (input, output) = (std::io::stdin().lock(), std::io::stdout());
            let served = cgroup_reader::serve(&mut Caller::connect(input, output).unwrap());
            return ExitCode::from(u8::from(served.is_err()));
        }
        ["end"] => {}
        ["answer", text] => println!("{text}"),
        ["hold", group, path] => hold(Path::new(group), Path::new(path)),
        ["look", path] => look(Path::new(path)),
        _ if words.contains(&"--list") => {}
        _ => {
            the_cache_is_charged_to_the_group();
            what_is_cancelled_ends_at_once();
            nothing_outlives_its_parent();
            a_group_that_is_none_is_an_error();
            a_helper_that_ends_early_is_an_error();
            any_input_is_served_or_refused();
            an_ordinary_user_gets_true_answers_or_none();
        }
    }
    ExitCode::SUCCESS
}

fn passed(name: &str) {
    println!("test {name} ... ok");
}

fn helper() -> HiddenCommand {
    HiddenCommand::new(["serve"])
}

/// With all bounds unused.
fn access() -> Access {
    Access::new(&Root::system())
}

/// A file that is on the disk and not in memory, and the reading of all of it.
fn cold_work(path: &Path, bytes: u64) -> ReadPlan {
    std::fs::write(path, vec![7; bytes as usize]).unwrap();
    let file = File::open(path).unwrap();
    sync_data(&file).unwrap();
    advise(&file, 0, 0, CacheAdvice::DontNeed).unwrap();
    let identity = FileIdentity::of(&file.metadata().unwrap());
    let wanted = WantedFile::new(path.to_owned(), identity, vec![0..bytes]);
    order::by_position(vec![wanted], &mut access())
}

fn cached_bytes(path: &Path) -> u64 {
    let file = File::open(path).unwrap();
    let all = 0..file.metadata().unwrap().len();
    cached::bytes_of(&file, &all).unwrap()
}

/// The page cache that a group is charged for, by its own account.
fn charged_bytes(group: &Path) -> u64 {
    let text = std::fs::read_to_string(group.join("memory.stat")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("cache "));
    line.unwrap().parse().unwrap()
}

fn group() -> Option<Cgroup> {
    let group = Cgroup::v1_memory(512 * MIB);
    group.map_err(testkit::skip).ok()
}

fn the_cache_is_charged_to_the_group() {
    let Some(group) = group() else { return };
    let directory = TempDir::new();
    let path = directory.join("data");
    let work = cold_work(&path, 64 * MIB);
    if cached_bytes(&path) > 0 {
        return testkit::skip("a temporary directory on a disk");
    }
    let before = charged_bytes(group.path());
    let mut reported = 0;
    let done = cgroup_reader::read_inside(group.path(), &helper(), &work, &mut |read| {
        assert!(read.bytes >= reported);
        reported = read.bytes;
        Control::Continue
    })
    .unwrap();
    assert_eq!((done.bytes, reported), (64 * MIB, 64 * MIB));
    assert_eq!(done.changed_files, 0);
    // Where DAMON evicts unused pages, some go at any moment.
    let taken = damon::pages_out_after(&Root::system()).map_or(0, |_| 6 * MIB);
    assert!(done.present_bytes.min(cached_bytes(&path)) >= 64 * MIB - taken);
    let grown = charged_bytes(group.path()) - before;
    assert!((63 * MIB - taken..70 * MIB).contains(&grown), "{grown} bytes were charged");
    // The same by this process is charged elsewhere: the group's account shows the difference.
    let work = cold_work(&path, 64 * MIB);
    let before = charged_bytes(group.path());
    let read = read::pieces(&work, &mut |_| Control::Continue);
    assert!(read.present_bytes >= 64 * MIB - taken);
    assert!(charged_bytes(group.path()) < before + MIB);
    passed("the_cache_is_charged_to_the_group");
}

fn what_is_cancelled_ends_at_once() {
    let Some(group) = group() else { return };
    let directory = TempDir::new();
    let path = directory.join("data");
    let work = cold_work(&path, 256 * MIB);
    let mut asked = 0;
    let done = cgroup_reader::read_inside(group.path(), &helper(), &work, &mut |_| {
        asked += 1;
        Control::Stop
    });
    assert!(done.unwrap().bytes < 256 * MIB);
    assert_eq!(asked, 1);
    let members = std::fs::read_to_string(group.path().join("cgroup.procs")).unwrap();
    assert_eq!(members, "", "the helper is gone when the call returns");
    passed("what_is_cancelled_ends_at_once");
}

/// Has a file read inside and never goes on after the first batch.
fn hold(group: &Path, path: &Path) {
    let work = cold_work(path, 64 * MIB);
    let _ = cgroup_reader::read_inside(group, &helper(), &work, &mut |_| {
        println!("reading");
        std::thread::sleep(Duration::from_secs(600));
        Control::Continue
    });
}

fn nothing_outlives_its_parent() {
    let Some(group) = group() else { return };
    let directory = TempDir::new();
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .arg("hold")
        .arg(group.path())
        .arg(directory.join("data"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(parent.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let members = || std::fs::read_to_string(group.path().join("cgroup.procs")).unwrap();
    assert_ne!(members(), "");
    parent.kill().unwrap();
    parent.wait().unwrap();
    let start = Instant::now();
    while !members().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(60), "it lives on");
        std::thread::sleep(Duration::from_millis(10));
    }
    passed("nothing_outlives_its_parent");
}

fn a_group_that_is_none_is_an_error() {
    let directory = TempDir::new();
    let nowhere = directory.join("no-group");
    let error = cgroup_reader::read_inside(&nowhere, &helper(), &ReadPlan::default(), &mut |_| {
        Control::Continue
    })
    .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Impossible);
    assert!(error.to_string().contains("no-group"), "{error}");
    passed("a_group_that_is_none_is_an_error");
}

fn a_helper_that_ends_early_is_an_error() {
    let directory = TempDir::new();
    std::fs::write(directory.join("cgroup.procs"), "").unwrap();
    let work = cold_work(&directory.join("data"), MIB);
    for words in [&["end"][..], &["answer", "\"nonsense\""], &["answer", "{}"]] {
        let command = HiddenCommand::new(words.iter().copied());
        let answer = cgroup_reader::read_inside(directory.path(), &command, &work, &mut |_| {
            Control::Continue
        });
        assert_eq!(answer.unwrap_err().kind, ErrorKind::Failed, "{words:?}");
    }
    passed("a_helper_that_ends_early_is_an_error");
}

fn any_input_is_served_or_refused() {
    let mut random = testkit::Random(1);
    for length in 0..200 {
        let mut line = vec![0; length];
        random.fill(&mut line);
        line.retain(|byte| *byte != b'\n');
        line.insert(0, b'x');
        let mut caller = Caller::new(&line[..], std::io::sink());
        let error = cgroup_reader::serve(&mut caller).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
    }
    let mut output = Vec::new();
    let work = serde_json::to_string(&ReadPlan::default()).unwrap();
    let input = format!("{work}\n{work}\n");
    cgroup_reader::serve(&mut Caller::new(input.as_bytes(), &mut output)).unwrap();
    assert_eq!(output.iter().filter(|byte| **byte == b'\n').count(), 2);
    passed("any_input_is_served_or_refused");
}

/// Prints what the kernel shows this user of a file's pages.
fn look(path: &Path) {
    let file = sys::file::open_unnoticed(path).unwrap();
    let all = 0..file.metadata().unwrap().len();
    println!("{:?}", cached::ranges_of(&file, &all));
}

fn an_ordinary_user_gets_true_answers_or_none() {
    if !testkit::is_root() {
        return testkit::skip("root, to become another user");
    }
    let directory = TempDir::new();
    let path = directory.join("data");
    let bytes = 2 * sys::process::page_bytes();
    std::fs::write(&path, vec![1; bytes]).unwrap();
    let seen_by_user = |path: &Path| {
        let output = Command::new("setpriv")
            .args(["--reuid", ORDINARY_USER, "--regid", ORDINARY_USER, "--clear-groups"])
            .arg(std::env::current_exe().unwrap())
            .arg("look")
            .arg(path)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).unwrap();
        output.status.success().then(|| text.trim().to_owned())
    };
    // Root's file: readable, and nothing is known of its pages.
    let Some(others) = seen_by_user(&path) else {
        return testkit::skip("setpriv, and a test program that others may run");
    };
    assert_eq!(others, "None");
    let number = ORDINARY_USER.parse().unwrap();
    std::os::unix::fs::chown(&path, Some(number), Some(number)).unwrap();
    assert_eq!(seen_by_user(&path).unwrap(), format!("Some([0..{bytes}])"));
    std::io::stdout().flush().unwrap();
    passed("an_ordinary_user_gets_true_answers_or_none");
}

//! What `terrace copy` leaves out, names and goes on without; what its first line on a terminal
//! says; and how much memory it takes. What FAT cannot hold is tried in a guest
//! (`xtask/tests/copy_guest.rs`).

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;
// Only looked at here, and never typed at.
#[allow(dead_code)]
#[path = "support/terminal.rs"]
mod terminal;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{DirEntryExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{command, has_program, terrace};
use terminal::Terminal;
use testkit::{FaultPlan, FaultyFiles, FileSystem, Mount, Mounted, TempDir};

const MIB: usize = 1 << 20;
/// What a copy takes at most, whatever it copies.
const MOST_MEMORY_KIB: u64 = 64 << 10;

/// A page without its line ends.
fn one_line(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn names(directory: &Path) -> Vec<OsString> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

fn is_hidden(name: &OsString) -> bool {
    name.as_encoded_bytes().starts_with(b".terrace")
}

#[test]
fn a_file_that_vanishes_before_it_is_read_is_named_and_the_rest_is_copied() {
    let directory = TempDir::new();
    let tree = directory.join("tree");
    fs::create_dir(&tree).unwrap();
    for at in 0..5 {
        fs::write(tree.join(format!("file{at}")), vec![at + 1; 700_000]).unwrap();
    }
    // They are read in the order of their inodes, at this rate one in 0.7 s.
    let entries = fs::read_dir(&tree).unwrap().map(Result::unwrap);
    let last = entries.max_by_key(DirEntryExt::ino).unwrap().file_name();
    let path = directory.path().display();
    let mut line = command(&format!("copy {path}/tree {path}/copy --limit-rate 1m"));
    let child = line.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Once the first is there, all were found.
    let copied = || {
        let hidden = names(directory.path()).into_iter().find(is_hidden)?;
        fs::read_dir(directory.join(hidden.to_str()?).join("tree/copy")).ok()?.next()
    };
    let start = Instant::now();
    while copied().is_none() {
        assert!(start.elapsed() < Duration::from_secs(30), "no file was copied");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    fs::remove_file(tree.join(&last)).unwrap();
    let ended = child.wait_with_output().unwrap();
    let page = one_line(&String::from_utf8_lossy(&ended.stdout));
    assert_eq!(ended.status.code(), Some(1), "{page}");
    let named = format!("not copied: {}: cannot open", tree.join(&last).display());
    assert!(page.contains(&named) && page.contains("no such file or directory"), "{page}");
    assert!(page.contains("4 files with"), "{page}");
    assert_eq!(names(&directory.join("copy")), names(&tree));
    assert!(!names(directory.path()).iter().any(is_hidden));
}

/// A target that has none of them, which is not known before. A second name gets a copy, as on FAT.
#[test]
fn links_and_special_files_are_left_out_and_named_where_there_are_none() {
    let (real, source) = (TempDir::new(), TempDir::new());
    fs::write(source.join("file"), "whole").unwrap();
    fs::write(source.join("large"), vec![5; 2 * MIB]).unwrap();
    fs::hard_link(source.join("large"), source.join("second")).unwrap();
    symlink("file", source.join("link")).unwrap();
    assert!(Command::new("mkfifo").arg(source.join("pipe")).status().unwrap().success());
    let files = match FaultyFiles::over(real.path(), FaultPlan::new()) {
        Ok(files) => files,
        Err(need) => return testkit::skip(need),
    };
    let (from, to) = (source.path().display(), files.path().join("copy"));
    let ran = terrace(&format!("copy {from} {}", to.display()));
    let page = one_line(&ran.out);
    assert_eq!(ran.code, Some(1), "{page} {}", ran.err);
    for name in ["link", "pipe"] {
        let named = format!("not copied: {}: ", source.join(name).display());
        assert!(page.contains(&named), "{name}: {page}");
    }
    assert!(ran.err.contains("2 entries not copied, the rest is"), "{}", ran.err);
    assert_eq!(names(&to), ["file", "large", "second"]);
    for name in names(&to) {
        assert!(fs::read(to.join(&name)).unwrap() == fs::read(source.join(&name)).unwrap());
    }
}

/// Of what is mounted below a source only the directory is copied, as with `cp -x`.
#[test]
fn with_one_file_system_what_is_mounted_below_is_left_out() {
    let directory = TempDir::new();
    let tree = directory.join("tree");
    fs::create_dir_all(tree.join("own")).unwrap();
    fs::write(tree.join("own/file"), "own").unwrap();
    let tmpfs = FileSystem::Other("tmpfs", &[]);
    let mount = match Mount::existing(tmpfs, Path::new("tmpfs"), tree.join("other")) {
        Ok(mount) => mount,
        Err(need) => return testkit::skip(need),
    };
    fs::write(mount.path().join("file"), "other").unwrap();
    let path = directory.path().display();
    for (option, is_copied) in [("--one-file-system", false), ("", true)] {
        let to = directory.join(format!("copy{option}"));
        let ran = terrace(&format!("copy {path}/tree {} {option}", to.display()));
        assert_eq!(ran.code, Some(0), "{option}: {}{}", ran.out, ran.err);
        assert_eq!(fs::read_to_string(to.join("own/file")).unwrap(), "own", "{option}");
        assert!(to.join("other").is_dir(), "{option}");
        assert_eq!(to.join("other/file").exists(), is_copied, "{option}");
    }
}

#[test]
fn the_first_line_on_a_terminal_says_that_the_copy_is_invisible_until_it_is_whole() {
    let directory = TempDir::new();
    fs::write(directory.join("file"), vec![7; 6 * MIB]).unwrap();
    let mut line = command("copy file copy --limit-rate 3m");
    line.env("LC_ALL", "C.UTF-8").current_dir(directory.path());
    let Some(mut terminal) = Terminal::start(&line, 100, 24) else { return };
    let screen = terminal.until("invisible until all of it is on the device");
    let is_there = directory.join("copy").exists();
    assert!(!is_there, "it has its name meanwhile:\n{screen}");
    let first = screen.lines().next().unwrap();
    assert!(
        first.starts_with("terrace copy: to ") && first.contains("copy, invisible"),
        "{screen}"
    );
    let screen = terminal.until("% of 6");
    assert!(screen.contains("of 1 files"), "{screen}");
    terminal.ended(0);
    assert!(directory.join("copy").exists());
}

/// The most memory that a command ever had, in KiB, pages of the program itself included.
fn most_memory_kib(words: &str) -> u64 {
    let mut line = command(words);
    let mut child = line.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        // Until it has become the command it has the memory of this test.
        let is_it = text.starts_with("Name:\tterrace\n");
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).filter(|_| is_it);
        let peak = line.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse().ok());
        most = most.max(peak.unwrap_or(0));
        if let Some(ended) = child.try_wait().unwrap() {
            assert_eq!(ended.code(), Some(0), "{words}");
            return most;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Many files, a large one, and both with checksums.
#[test]
fn a_copy_takes_at_most_64_mib_of_memory() {
    let mount = match Mounted::ext4(600 << 20) {
        Ok(mount) => mount,
        Err(need) => return testkit::skip(need),
    };
    let path = mount.path().display();
    for directory in 0..40 {
        let directory = mount.path().join(format!("many/directory{directory}"));
        fs::create_dir_all(&directory).unwrap();
        for file in 0..300 {
            fs::write(directory.join(format!("a-file-with-an-ordinary-name-{file}")), "x").unwrap();
        }
    }
    fs::write(mount.path().join("large"), vec![7; 192 * MIB]).unwrap();
    for (what, options) in
        [("many", ""), ("many", "--verify"), ("large", ""), ("large", "--verify")]
    {
        let most = most_memory_kib(&format!("copy {path}/{what} {path}/copy {options}"));
        assert!(most > 1024, "{what} {options}: it was not seen");
        assert!(most <= MOST_MEMORY_KIB, "{what} {options}: {most} KiB");
        let copy = mount.path().join("copy");
        if copy.is_dir() {
            fs::remove_dir_all(copy).unwrap();
        } else {
            fs::remove_file(copy).unwrap();
        }
    }
}

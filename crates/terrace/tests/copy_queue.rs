//! `terrace copy` on disks that are used by one copy at a time: the next one waits, says for whom,
//! and never for ever. The disks are loop devices in memory that say they rotate.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{as_ordinary_user, command, terrace};
use testkit::{Mounted, TempDir};

const MIB: usize = 1 << 20;
/// Far longer than anything here takes.
const TOO_LONG: Duration = Duration::from_secs(60);

/// A file system on a disk that says it rotates; `None` where it cannot be had.
fn rotating(bytes: u64) -> Option<Mounted> {
    let mounted = Mounted::ext4(bytes).map_err(testkit::skip).ok()?;
    let setting = mounted.queue_setting("rotational");
    if fs::write(&setting, "1").is_err() || fs::read_to_string(&setting).unwrap().trim() != "1" {
        testkit::skip("a loop device that can be said to rotate");
        return None;
    }
    Some(mounted)
}

fn make_file(path: &Path, length: usize) {
    fs::write(path, vec![7; length]).unwrap();
}

/// A copy in the background, with what it says.
struct Copying(Child);

impl Copying {
    fn start(words: &str) -> Self {
        Self::of(command(&format!("copy {words}")))
    }

    fn of(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// The next line that it says on standard error.
    fn line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        line
    }

    fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// Its exit status, soon.
    fn end(&mut self) -> Option<i32> {
        let start = Instant::now();
        while self.is_running() {
            assert!(start.elapsed() < TOO_LONG, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.0.wait().unwrap().code()
    }

    fn out(&mut self) -> String {
        std::io::read_to_string(self.0.stdout.take().unwrap()).unwrap()
    }

    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the first copy of a test is under way, so that it has its turn.
fn wait_until_hidden(directory: &Path) {
    let start = Instant::now();
    let is_there = || {
        fs::read_dir(directory).unwrap().any(|entry| {
            entry.unwrap().file_name().as_encoded_bytes().starts_with(b".terrace-copy.")
        })
    };
    while !is_there() {
        assert!(start.elapsed() < TOO_LONG, "it does not begin");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_next_copy_on_a_disk_waits_and_says_for_whom() {
    let Some(disk) = rotating(160 << 20) else { return };
    let source = TempDir::new();
    let (from, to) = (source.path().display(), disk.path().display());
    make_file(&source.join("large"), 40 * MIB);
    make_file(&source.join("next"), 17 * MIB);
    make_file(&source.join("little"), 16 * MIB);
    let mut first = Copying::start(&format!("{from}/large {to}/one --limit-rate 16m"));
    wait_until_hidden(disk.path());
    let mut next = Copying::start(&format!("{from}/next {to}/two --json"));
    let line = next.line();
    let expected = format!("terrace: copy: waits for process {} (", first.0.id());
    assert!(line.starts_with(&expected), "{line}");
    assert!(line.contains(&format!("copy {from}/large {to}/one")), "{line}");
    assert!(line.contains("which copies on loop") && line.contains("running for"), "{line}");
    // Little data, and whoever asks for it, goes past; so does another disk.
    assert_eq!(terrace(&format!("copy {from}/little {to}/little")).code, Some(0));
    assert_eq!(terrace(&format!("copy {from}/next {to}/now --now")).code, Some(0));
    assert_eq!(terrace(&format!("copy {from}/next {from}/elsewhere")).code, Some(0));
    assert!(first.is_running() && next.is_running());
    assert!(!disk.path().join("two").exists());
    assert_eq!(first.end(), Some(0));
    assert_eq!(next.end(), Some(0));
    let json: serde_json::Value = serde_json::from_str(&next.out()).unwrap();
    assert!(json["result"]["waited_seconds"].as_f64() > Some(0.0), "{json}");
    assert_eq!(fs::read(disk.path().join("two")).unwrap(), vec![7; 17 * MIB]);
}

#[test]
fn a_copy_that_waits_ends_at_once_and_one_that_is_killed_is_not_waited_for() {
    let Some(disk) = rotating(120 << 20) else { return };
    let source = TempDir::new();
    let (from, to) = (source.path().display(), disk.path().display());
    make_file(&source.join("large"), 40 * MIB);
    make_file(&source.join("next"), 17 * MIB);
    let mut first = Copying::start(&format!("{from}/large {to}/one --limit-rate 1m"));
    wait_until_hidden(disk.path());
    let names = || fs::read_dir(disk.path()).unwrap().count();
    let before = names();
    let mut stopped = Copying::start(&format!("{from}/next {to}/two"));
    assert!(stopped.line().contains("waits for process"));
    stopped.signal("-INT");
    assert_eq!(stopped.end(), Some(1));
    assert!(stopped.line().contains("interrupted while it waited"));
    assert_eq!(names(), before, "it touched the target");
    let mut next = Copying::start(&format!("{from}/next {to}/two"));
    assert!(next.line().contains("waits for process"));
    assert!(first.is_running());
    first.0.kill().unwrap();
    assert_eq!(next.end(), Some(0));
}

/// Each holds what the other needs, if locks are taken one by one.
#[test]
fn copies_between_two_disks_in_both_directions_all_end() {
    let (Some(one), Some(two)) = (rotating(160 << 20), rotating(160 << 20)) else { return };
    let (at_one, at_two) = (one.path().display(), two.path().display());
    make_file(&one.path().join("file"), 17 * MIB);
    make_file(&two.path().join("file"), 17 * MIB);
    let mut copies: Vec<Copying> = (0..6)
        .map(|at| {
            let (from, to) = if at % 2 == 0 { (&at_one, &at_two) } else { (&at_two, &at_one) };
            Copying::start(&format!("{from}/file {to}/copy{at}"))
        })
        .collect();
    for copy in &mut copies {
        assert_eq!(copy.end(), Some(0));
    }
}

/// A holder is seen by the others, be it root or not.
#[test]
fn copies_of_several_users_wait_for_each_other() {
    use std::os::unix::fs::PermissionsExt;
    let Some(disk) = rotating(120 << 20) else { return };
    let source = TempDir::new();
    let (from, to) = (source.path().display(), disk.path().display());
    make_file(&source.join("large"), 40 * MIB);
    for path in [source.path(), disk.path()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let words = format!("copy {from}/large {to}/one --limit-rate 16m");
    let Some(mut by_user) = as_ordinary_user(&words) else { return };
    by_user.env("XDG_RUNTIME_DIR", "/nonexistent");
    let mut first = Copying::of(by_user);
    wait_until_hidden(disk.path());
    let Some(other) = as_ordinary_user(&format!("copy {from}/large {to}/two")) else { return };
    for mut next in [Copying::start(&format!("{from}/large {to}/three")), Copying::of(other)] {
        let line = next.line();
        assert!(line.contains(&format!("waits for process {} (", first.0.id())), "{line}");
    }
    assert!(first.is_running());
}

/// What stands in a command line of another user never reaches the terminal as it is.
#[test]
fn the_holder_is_named_in_clean_text() {
    let Some(disk) = rotating(64 << 20) else { return };
    let source = TempDir::new();
    make_file(&source.join("next"), 17 * MIB);
    let name = disk.device_name();
    let numbers = fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
    let path = format!("/sys/dev/block/{}/dev", numbers.trim());
    if !support::has_program("flock") {
        return testkit::skip("flock");
    }
    let mut holder = Command::new("flock");
    holder.arg0("evil\x1b]0;title\x07\u{202e}name").args(["-x", &path, "cat"]);
    holder.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut holder = support::Started(holder.spawn().unwrap());
    // It answers once the lock is held, and ends with its input.
    let mut input = holder.0.stdin.take().unwrap();
    input.write_all(b"held\n").unwrap();
    let mut line = String::new();
    BufReader::new(holder.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    let words = format!("{}/next {}/two", source.path().display(), disk.path().display());
    let mut next = Copying::start(&words);
    let line = next.line();
    assert!(line.contains("waits for process") && line.contains("evil"), "{line}");
    assert!(!line.contains(['\x1b', '\x07', '\u{202e}']), "{line:?}");
    drop(input);
    assert_eq!(next.end(), Some(0));
}

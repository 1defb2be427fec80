//! A recorder that was stopped while its command ran on, and what is left of recorders: the time
//! is the command's, and the caller's group and directory are free at once.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use support::{command, in_group, run, run_command, terrace, valid_explanation};
use testkit::{Cgroup, TempDir, Tmpfs};

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// The end was taken when the recorder woke, so a command of one second had slept five.
#[test]
fn the_time_is_the_command_s_and_the_gap_is_said() {
    if !testkit::is_admin() {
        return testkit::skip("root, which the kernel tells of ends");
    }
    let directory = TempDir::new();
    let (file, ready) = (directory.join("x.trec"), directory.join("ready"));
    let line = format!("touch {}; sleep 1; exit 9", ready.display());
    let options = ["-q", "--trace", "none", "-o", file.to_str().unwrap()];
    let mut child =
        run_command(&options, &["sh", "-c", &line]).stdin(Stdio::null()).spawn().unwrap();
    while !ready.exists() {
        sleep(Duration::from_millis(10));
    }
    signal("-STOP", child.id());
    sleep(Duration::from_secs(5));
    signal("-CONT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(9));
    let text = terrace(&format!("explain --json {}", file.display())).done();
    let value = valid_explanation(&text);
    // The recorder noticed the end after five seconds at the earliest.
    let wall_ns = value["wall_ns"].as_u64().unwrap();
    assert!((1_000_000_000..4_500_000_000).contains(&wall_ns), "{wall_ns}");
    assert!(text.contains("no recorder ran for"), "{text}");
}

/// A helper that closes kernel events stayed in both for most of a second.
#[test]
fn the_group_and_the_directory_of_the_caller_are_free_at_once() {
    let (group, tmpfs) = match (Cgroup::v2(), Tmpfs::mount(1 << 20)) {
        (Ok(group), Ok(tmpfs)) => (group, tmpfs),
        (Err(need), _) | (_, Err(need)) => return testkit::skip(need),
    };
    for round in 0..3 {
        let mut command = in_group(&group, "run -q -- true");
        command.current_dir(tmpfs.path());
        let ran = run(command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let members = std::fs::read_to_string(group.path().join("cgroup.procs")).unwrap();
        assert_eq!(members, "", "round {round}");
        for process in std::fs::read_dir("/proc").unwrap().flatten() {
            let cwd = std::fs::read_link(process.path().join("cwd"));
            assert_ne!(cwd.ok().as_deref(), Some(tmpfs.path()), "{process:?}");
        }
    }
}

/// Only the next recorder removed the socket of one that was killed.
#[test]
fn undo_removes_what_a_killed_recorder_left() {
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    let mut child = command(&format!("record --trace none -o {}", file.display()))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    while !file.metadata().is_ok_and(|about| about.len() > 0) {
        sleep(Duration::from_millis(10));
    }
    let socket = format!("rec-{}-", child.id());
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    // Another test may have removed it in between, which is all the same.
    let said = terrace("undo").out;
    let again = terrace("undo --list").out;
    assert!(!again.contains(&socket), "{said}{again}");
}

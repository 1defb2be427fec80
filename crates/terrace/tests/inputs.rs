//! What is named as input: whatever is not a regular file is refused in one line and never waited
//! for, and the first signal ends the waiting for a server.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::command;
use testkit::{Dead, DeadFuse, TempDir};

/// Far more than a refusal takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether it ends by itself; it is killed otherwise.
fn ends(child: &mut Child) -> bool {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    false
}

fn start(line: &str) -> Child {
    command(line)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_fifo_is_refused_by_every_command_that_takes_a_file() {
    let directory = TempDir::new();
    let path = directory.join("fifo");
    let made = Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        return testkit::skip("mkfifo");
    }
    let fifo = path.display().to_string();
    let out = directory.join("out").display().to_string();
    for line in [
        format!("explain {fifo}"),
        format!("view {fifo} --html {out}"),
        format!("view {fifo} --live"),
        format!("top {fifo}"),
        format!("compare {fifo} {fifo}"),
        format!("proof {fifo} {fifo}"),
        format!("export {fifo}"),
        format!("import {fifo} -o {out}"),
        format!("import --from vmstat {fifo} -o {out}"),
        format!("warm restore {fifo}"),
        format!("warm restore --dry-run {fifo}"),
        format!("warm snapshot {fifo} --pid {}", std::process::id()),
        format!("measure iolat {fifo}"),
        format!("measure seqio {fifo} --size 1M"),
        format!("survey --quick --path {fifo}"),
        format!("run --cache hot --cache-file {fifo} -- true"),
        format!("run --cache cold --cache-file {fifo} -- true"),
    ] {
        let mut child = start(&line);
        let has_ended = ends(&mut child);
        let output = child.wait_with_output().unwrap();
        assert!(has_ended, "{line}: does not end");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_ne!(output.status.code(), Some(0), "{line}");
        assert!(output.status.code().is_some(), "{line}: {output:?}");
        assert!(text.starts_with("terrace: "), "{line}: {text}");
        assert!(!text.contains("unexpected argument"), "{line}: {text}");
    }
}

#[test]
fn the_first_signal_ends_the_opening_of_a_file_whose_server_is_gone() {
    let dead = match DeadFuse::mount() {
        Ok(dead) => dead,
        Err(need) => return testkit::skip(need),
    };
    dead.stop(Dead::Gone);
    let path = dead.path().display().to_string();
    let directory = TempDir::new();
    let out = directory.join("out").display().to_string();
    for line in [
        format!("explain {path}"),
        format!("compare {path} {path}"),
        format!("import {path} -o {out}"),
        format!("warm restore {path}"),
    ] {
        let mut child = start(&line);
        wait_until_it_opens(child.id());
        let pid = child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        let has_ended = asked.success() && ends(&mut child);
        assert!(has_ended, "{line}: the first signal does not end it");
        assert_eq!(child.wait().unwrap().code(), Some(1), "{line}");
    }
}

/// Waits until a thread of the process sleeps in the opening of its input.
fn wait_until_it_opens(pid: u32) {
    let began = Instant::now();
    let opens = || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
        tasks.into_iter().flatten().flatten().any(|task| {
            let stack = std::fs::read_to_string(task.path().join("stack")).unwrap_or_default();
            stack.contains("fuse") || stack.contains("request_wait_answer")
        })
    };
    while !opens() && began.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

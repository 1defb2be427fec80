//! Commands at the gate, their ends and their signals, with real processes. In a program of
//! its own because handlers and children belong to the whole process: one test at a time.
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sys::ErrorKind;
use sys::signals::PassOn;
use sys::spawn::{Gated, is_not_found};
use sys::wait::{ChildEnding, try_wait, wait};
use testkit::TempDir;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn words(argv: &[&str]) -> Vec<OsString> {
    argv.iter().map(OsString::from).collect()
}

fn shell(script: &str) -> Gated {
    Gated::spawn(&words(&["/bin/sh", "-c", script])).unwrap()
}

/// Waits, as long as it takes, for a file that a command makes.
fn appeared(path: &Path) {
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a signal by number or name.
fn send(signal: &str, pid: u32) {
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", &format!("kill -{signal} {pid}")])
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn nothing_runs_before_the_gate_opens() {
    let _alone = alone();
    let directory = TempDir::new();
    let mark = directory.path().join("mark");
    let mut command = shell(&format!(": > {}; exit 5", mark.display()));
    // It would have had time; what is asserted holds however slow the machine is.
    std::thread::sleep(Duration::from_millis(50));
    assert!(!mark.exists());
    assert_eq!(try_wait(command.pid()).unwrap(), None);
    command.open_gate().unwrap();
    let exit = wait(command.pid()).unwrap();
    assert_eq!(exit.ended, ChildEnding::Exited { code: 5 });
    assert!(exit.usage.minor_faults > 0);
    assert!(exit.usage.max_rss_bytes > 4096);
    assert!(mark.exists());
    assert!(wait(command.pid()).is_err(), "it was waited for");
}

#[test]
fn a_gate_that_never_opens_leaves_no_process() {
    let _alone = alone();
    let command = shell("exit 0");
    let pid = command.pid();
    drop(command);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn reasons_why_a_program_cannot_be_started_differ() {
    let _alone = alone();
    let directory = TempDir::new();
    let mut absent = Gated::spawn(&words(&["no-such-program-anywhere"])).unwrap();
    let error = absent.open_gate().unwrap_err();
    assert!(is_not_found(&error), "{error}");

    let plain = directory.path().join("plain");
    std::fs::write(&plain, "echo").unwrap();
    let mut plain = Gated::spawn(&[plain.into_os_string()]).unwrap();
    let error = plain.open_gate().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);
    assert!(!is_not_found(&error));

    assert_eq!(Gated::spawn(&[]).unwrap_err().kind, ErrorKind::Invalid);
    let zero = Gated::spawn(&words(&["a\0b"])).unwrap_err();
    assert_eq!(zero.kind, ErrorKind::Invalid);
}

#[test]
fn a_signal_that_kills_is_reported() {
    let _alone = alone();
    let mut command = shell("kill -KILL $$");
    command.open_gate().unwrap();
    let exit = wait(command.pid()).unwrap();
    assert_eq!(exit.ended, ChildEnding::Killed { signal: 9 });
}

/// The words of a line of /proc/PID/status that a command wrote down.
fn mask(path: &Path, name: &str) -> u64 {
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
}

#[test]
fn the_command_gets_the_dispositions_of_a_shell() {
    let _alone = alone();
    let directory = TempDir::new();
    let path = directory.path().join("status");
    sys::interrupt::install().unwrap();
    sys::interrupt::reset_broken_pipe();
    let ignored_here = std::fs::read_to_string("/proc/self/status").unwrap();
    // Also what is ignored only while signals are passed on.
    let _other = PassOn::start(std::process::id()).unwrap();
    // `cat` sets no handlers of its own, unlike a shell.
    let mut command = shell(&format!("exec /bin/cat /proc/self/status > {}", path.display()));
    command.open_gate().unwrap();
    wait(command.pid()).unwrap();
    let line = ignored_here.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let inherited = u64::from_str_radix(line.trim(), 16).unwrap() & !(1 << (13 - 1));
    assert_eq!(mask(&path, "SigIgn:"), inherited);
    assert_eq!(mask(&path, "SigCgt:"), 0);
    assert_eq!(mask(&path, "SigBlk:"), 0);
}

#[test]
fn signals_to_end_go_to_the_command_and_those_of_the_terminal_stay() {
    let _alone = alone();
    let directory = TempDir::new();
    let ready = directory.path().join("ready");
    let script =
        format!("trap 'exit 7' USR1; : > {}; while :; do sleep 0.01; done", ready.display());
    let mut command = shell(&script);
    let passing = PassOn::start(command.pid()).unwrap();
    assert_eq!(sys::signals::passed_on(), None);
    command.open_gate().unwrap();
    appeared(&ready);
    send("INT", std::process::id());
    send("QUIT", std::process::id());
    send("USR1", std::process::id());
    let exit = wait(command.pid()).unwrap();
    assert_eq!(exit.ended, ChildEnding::Exited { code: 7 });
    assert_eq!(sys::signals::passed_on(), Some(10));
    drop(passing);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
    assert_eq!(caught >> (10 - 1) & 1, 0, "the handler of SIGUSR1 is gone");
}

#[test]
fn orphans_come_to_the_reaper_and_are_reaped() {
    let _alone = alone();
    let directory = TempDir::new();
    let path = directory.path().join("pid");
    let _reaper = sys::parent::Reaper::start().unwrap();
    // The shell leaves a child behind that has not ended yet.
    let script = format!(
        "(echo $$ > /dev/null; while [ ! -e {0}.go ]; do sleep 0.01; done) & echo $! > {0}; exit 0",
        path.display()
    );
    let mut command = shell(&script);
    command.open_gate().unwrap();
    assert_eq!(wait(command.pid()).unwrap().ended, ChildEnding::Exited { code: 0 });
    let orphan: u32 = std::fs::read_to_string(&path).unwrap().trim().parse().unwrap();
    assert_eq!(try_wait(orphan).unwrap(), None);
    std::fs::write(path.with_extension("go"), "").unwrap();
    wait(orphan).unwrap();
}

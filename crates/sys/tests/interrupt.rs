//! Signals, seen from outside: this program starts itself again and signals the child.
//!
//! A child ends by itself after a minute, and a guard ends it when its test fails.
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Tells the child which part it plays.
const ROLE: &str = "TERRACE_TEST_ROLE";
/// After this time a child ends by itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// Not a test of its own: what a child does. Without a role it returns at once.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    sys::interrupt::install().unwrap();
    assert!(!sys::interrupt::requested());
    let started = Instant::now();
    println!("\nready");
    while !sys::interrupt::requested() && started.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("\nsignal {:?}", sys::interrupt::signal());
    while role == "stubborn" && started.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
}

struct Running {
    child: Child,
    output: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Running {
    fn start(role: &str) -> Self {
        let mut child = testkit::with_default_signals(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(ROLE, role)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut running = Self { child, output };
        running.wait_for("ready");
        running
    }

    fn wait_for(&mut self, start: &str) -> String {
        let is_it = |line: &String| line.starts_with(start);
        self.output.by_ref().map_while(Result::ok).find(is_it).unwrap()
    }

    fn send(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn each_signal_asks_for_the_end() {
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let mut running = Running::start("polite");
        running.send(signal);
        assert_eq!(running.wait_for("signal"), format!("signal Some({number})"));
        assert!(running.child.wait().unwrap().success(), "it ends by itself");
    }
}

#[test]
fn a_second_interrupt_kills() {
    let mut running = Running::start("stubborn");
    running.send("INT");
    running.wait_for("signal");
    std::thread::sleep(std::time::Duration::from_millis(600));
    running.send("INT");
    assert_eq!(running.child.wait().unwrap().signal(), Some(2));
}

/// As `timeout` does it: to the program, and at once again to its group.
#[test]
fn two_signals_at_once_are_one_request() {
    let mut running = Running::start("polite");
    running.send("TERM");
    running.send("TERM");
    assert_eq!(running.wait_for("signal"), "signal Some(15)");
    assert!(running.child.wait().unwrap().success(), "it ends by itself");
}

#[test]
fn what_nohup_ignores_stays_ignored() {
    let mut child = Command::new("nohup")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(ROLE, "polite")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut running = Running { child, output };
    running.wait_for("ready");
    running.send("HUP");
    std::thread::sleep(Duration::from_millis(100));
    assert!(running.child.try_wait().unwrap().is_none(), "still running");
    running.send("TERM");
    assert_eq!(running.wait_for("signal"), "signal Some(15)");
}

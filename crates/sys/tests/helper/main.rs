//! Helper processes: messages, limits, and what is left of them.
//!
//! Not libtest's harness: the helper is this same program, and libtest writes words of its own to
//! the output that the helper answers on.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

use std::io::{BufRead, BufReader, StdinLock, Stdout, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use sys::ErrorKind;
use sys::helper::{Caller, Helper, HiddenCommand, MAX_LINE_BYTES, Received};
use testkit::{Cgroup, TempDir};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["echo"] => return exit(echo()),
        ["chatter"] => return exit(chatter()),
        ["line", bytes] => write_long_line(bytes.parse().unwrap()),
        ["fail"] => {
            eprintln!("a warning\nterrace: the reason");
            return ExitCode::FAILURE;
        }
        ["start-and-sleep"] => start_and_sleep(),
        ["removed"] => echo_from_removed_program(),
        _ if words.contains(&"--list") => {}
        _ => {
            messages_arrive_in_order();
            the_limit_of_a_wait_is_kept();
            much_standard_error_stops_neither_side();
            a_failure_is_reported_with_its_last_line();
            long_and_foreign_lines_are_refused();
            a_dropped_helper_is_gone();
            a_helper_ends_with_its_caller();
            a_caller_that_ended_before_is_noticed();
            a_helper_is_in_its_group_before_it_begins();
            a_program_whose_file_was_removed_starts_helpers();
        }
    }
    ExitCode::SUCCESS
}

fn exit(result: sys::Result<()>) -> ExitCode {
    ExitCode::from(u8::from(result.is_err()))
}

fn passed(name: &str) {
    println!("test {name} ... ok");
}

fn connect() -> sys::Result<Caller<StdinLock<'static>, Stdout>> {
    Caller::connect(std::io::stdin().lock(), std::io::stdout())
}

/// Answers each number with its double, and a text with this process's groups.
fn echo() -> sys::Result<()> {
    let mut caller = connect()?;
    while let Some(number) = caller.receive::<u64>()? {
        caller.send(&(2 * number))?;
        if number == 0 {
            caller.send(&std::fs::read_to_string("/proc/self/cgroup").unwrap())?;
            caller.send(&std::fs::read_to_string("/proc/self/comm").unwrap())?;
        }
    }
    Ok(())
}

/// Writes more to its standard error than a pipe holds before it answers.
fn chatter() -> sys::Result<()> {
    let mut caller = connect()?;
    let _: Option<u64> = caller.receive()?;
    for line in 0..20_000 {
        eprintln!("line {line} of twenty thousand");
    }
    caller.send(&1)
}

fn write_long_line(bytes: usize) {
    let mut out = std::io::stdout().lock();
    for _ in 0..bytes.div_ceil(1 << 20) {
        if out.write_all(&[b' '; 1 << 20]).is_err() {
            return;
        }
    }
    let _ = out.write_all(b"\n");
}

/// Starts a helper, prints its number and waits to be killed.
fn start_and_sleep() {
    let helper = start("echo");
    println!("{}", helper.pid());
    std::io::stdout().flush().unwrap();
    std::thread::sleep(LONG);
}

fn start(command: &str) -> Helper {
    Helper::start(&HiddenCommand::new([command])).unwrap()
}

fn message<T: serde::de::DeserializeOwned + std::fmt::Debug>(helper: &mut Helper) -> T {
    match helper.receive(LONG).unwrap() {
        Received::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

/// Whether the process is gone or only its number is left.
fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

fn wait_until_gone(pid: u32) {
    let start = Instant::now();
    while !is_gone(pid) {
        assert!(start.elapsed() < LONG, "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn messages_arrive_in_order() {
    let mut helper = start("echo");
    for number in 1..100_u64 {
        helper.send(&number).unwrap();
    }
    for number in 1..100_u64 {
        assert_eq!(message::<u64>(&mut helper), 2 * number);
    }
    helper.close_input();
    assert_eq!(helper.receive::<u64>(LONG).unwrap(), Received::Ended);
    assert!(helper.wait().unwrap().status.success());
    passed("messages_arrive_in_order");
}

fn the_limit_of_a_wait_is_kept() {
    let mut helper = start("echo");
    let start = Instant::now();
    assert_eq!(helper.receive::<u64>(SHORT).unwrap(), Received::Pending);
    assert!(start.elapsed() >= SHORT);
    assert_eq!(helper.receive::<u64>(Duration::ZERO).unwrap(), Received::Pending);
    assert!(!helper.has_ended().unwrap());
    passed("the_limit_of_a_wait_is_kept");
}

fn much_standard_error_stops_neither_side() {
    let mut helper = start("chatter");
    helper.send(&0).unwrap();
    assert_eq!(message::<u64>(&mut helper), 1);
    let ending = helper.wait().unwrap();
    let last = "line 19999 of twenty thousand";
    assert_eq!(ending.error_text.as_deref(), Some(last));
    passed("much_standard_error_stops_neither_side");
}

fn a_failure_is_reported_with_its_last_line() {
    let mut helper = start("fail");
    assert_eq!(helper.receive::<u64>(LONG).unwrap(), Received::Ended);
    let ending = helper.wait().unwrap();
    assert!(!ending.status.success());
    assert_eq!(ending.error_text.as_deref(), Some("the reason"));
    assert!(helper.send(&1).is_err());
    passed("a_failure_is_reported_with_its_last_line");
}

fn long_and_foreign_lines_are_refused() {
    let bytes = (MAX_LINE_BYTES + (2 << 20)).to_string();
    let mut helper = Helper::start(&HiddenCommand::new(["line", &bytes])).unwrap();
    let error = helper.receive::<u64>(LONG).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid, "{error}");

    let mut helper = start("echo");
    helper.send(&0).unwrap();
    let error = helper.receive::<Vec<u64>>(LONG).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid, "{error}");

    let too_long = "x".repeat(MAX_LINE_BYTES);
    assert_eq!(helper.send(&too_long).unwrap_err().kind, ErrorKind::Invalid);
    for (input, what) in [(&b"1\n2"[..], "cut"), (b"x\n", "foreign"), (b"\n", "empty")] {
        let mut caller = Caller::new(input, std::io::sink());
        let answers = [caller.receive::<u64>(), caller.receive::<u64>()];
        assert!(answers.iter().any(Result::is_err), "{what}");
    }
    passed("long_and_foreign_lines_are_refused");
}

fn a_dropped_helper_is_gone() {
    let helper = start("echo");
    let pid = helper.pid();
    drop(helper);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    passed("a_dropped_helper_is_gone");
}

fn a_helper_ends_with_its_caller() {
    let mut caller = Command::new(std::env::current_exe().unwrap())
        .arg("start-and-sleep")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(caller.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let pid = line.trim().parse().unwrap();
    assert!(!is_gone(pid));
    caller.kill().unwrap();
    caller.wait().unwrap();
    wait_until_gone(pid);
    passed("a_helper_ends_with_its_caller");
}

/// As if the caller had sent its message and ended before the helper could tie itself to it.
fn a_caller_that_ended_before_is_noticed() {
    let mut helper = Command::new(std::env::current_exe().unwrap())
        .arg("echo")
        .stdin(Stdio::piped())
        .stdout(Stdio::from(closed_pipe()))
        .spawn()
        .unwrap();
    // It may end before it has read this.
    let _ = helper.stdin.take().unwrap().write_all(b"1\n");
    assert_eq!(helper.wait().unwrap().code(), Some(1));
    passed("a_caller_that_ended_before_is_noticed");
}

/// The writing end of a pipe without a reader.
fn closed_pipe() -> std::fs::File {
    sys::pipe::pair(4096).unwrap().1
}

fn a_helper_is_in_its_group_before_it_begins() {
    let group = match Cgroup::v1_memory(64 << 20) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let mut helper = start("echo");
    helper.join(group.path()).unwrap();
    helper.send(&0).unwrap();
    assert_eq!(message::<u64>(&mut helper), 0);
    let groups: String = message(&mut helper);
    let name = group.path().file_name().unwrap().to_str().unwrap();
    assert!(groups.contains(name), "{groups}");
    let comm: String = message(&mut helper);
    assert!(comm.starts_with("helper-"), "{comm}");

    let error = helper.join(Path::new("/nonexistent")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    drop(helper);
    passed("a_helper_is_in_its_group_before_it_begins");
}

fn a_program_whose_file_was_removed_starts_helpers() {
    let directory = TempDir::new();
    let copy = directory.join("copy");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let status = Command::new(&copy).arg("removed").status().unwrap();
    assert!(status.success());
    assert!(!copy.exists());
    passed("a_program_whose_file_was_removed_starts_helpers");
}

fn echo_from_removed_program() {
    std::fs::remove_file(std::env::current_exe().unwrap()).unwrap();
    let mut helper = start("echo");
    helper.send(&21).unwrap();
    assert_eq!(message::<u64>(&mut helper), 42);
}

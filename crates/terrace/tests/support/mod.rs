//! Runs the real binary and looks at what it did: exit status, both outputs, what it
//! left behind.
// Each test file uses a part of it; and a helper of tests may unwrap as the tests do.
#![allow(dead_code, clippy::unwrap_used)]

pub mod described;
pub mod killed;
pub mod limited_set;
pub mod pages;

use boon::{Compiler, Schemas};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// The program under test.
pub const TERRACE: &str = env!("CARGO_BIN_EXE_terrace");

/// What `timeout` makes of a program that it had to kill.
pub const KILLED: [Option<i32>; 2] = [None, Some(137)];

/// A process that a test started; ended with the test.
pub struct Started(pub Child);

impl Started {
    /// Starts `command` for 1,000 seconds; it does not keep the log of the test run open.
    pub fn sleeping(mut command: Command) -> Self {
        command.arg("1000").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a run left on its outputs, and its exit status (`None`: killed by a signal).
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Prints a value for a row of `cargo xtask bench days`, which reads these lines.
#[allow(clippy::print_stdout, reason = "the harness shows it with the test's own output")]
pub fn print_figure(row: &str, value: f64) {
    println!("figure {}", serde_json::json!({ "row": row, "value": value }));
}

/// Runs `terrace` with the words of `line`.
pub fn terrace(line: &str) -> Ran {
    run(command(line))
}

/// `terrace` with the words of `line` in `group`, not started.
pub fn in_group(group: &testkit::Cgroup, line: &str) -> Command {
    let mut command = group.command(TERRACE);
    command.args(line.split_whitespace());
    command
}

/// `terrace` with the words of `line`, not started, without what the environment of the
/// tests would change.
pub fn command(line: &str) -> Command {
    let mut command = testkit::with_default_signals(TERRACE);
    command.args(words(line));
    command.env_remove("NO_COLOR").env_remove("COLUMNS");
    command
}

/// The words of a command line. A survey of a test, which other tests disturb, is not one to learn
/// the noise of this machine from, so it is not kept.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let unkept = line.starts_with("survey").then_some("--no-keep");
    let mut words = line.split_whitespace();
    words.next().into_iter().chain(unkept).chain(words)
}

/// Runs a command to its end.
pub fn run(mut command: Command) -> Ran {
    ran(command.stdin(Stdio::null()).output().unwrap())
}

/// Asks a program to end, which does what Ctrl-C does, and waits for it. Ctrl-C's own signal is
/// ignored by all that a shell starts in the background, these tests included.
pub fn terminate(child: Child) -> Ran {
    let pid = child.id().to_string();
    let asked = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(asked.success());
    wait_for(child)
}

/// Waits for a program that was started with its outputs.
pub fn wait_for(child: Child) -> Ran {
    ran(child.wait_with_output().unwrap())
}

fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ran {
    /// The result of a run that did all it was asked, without a word of complaint.
    #[track_caller]
    pub fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        assert_eq!(self.err, "");
        self.out
    }

    /// A refusal: this exit status, nothing on standard output, exactly one line of
    /// complaint that holds `words`, and at most a hint after it.
    #[track_caller]
    pub fn refused(&self, code: i32, words: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
        let lines: Vec<&str> = self.err.lines().collect();
        assert!(lines[0].starts_with("terrace: ") && lines[0].contains(words), "{self:?}");
        assert!(lines[1..].iter().all(|line| line.starts_with("hint: ")), "{self:?}");
        assert!(lines.len() <= 2, "{self:?}");
    }
}

/// The JSON of a run that did all it was asked, of the schema of the probe.
#[track_caller]
pub fn probe_json(name: &str, line: &str) -> Value {
    let text = terrace(&format!("measure {name} {line} --json")).done();
    let value: Value = serde_json::from_str(&text).unwrap();
    let version = if name == "iolat" { 2 } else { 1 };
    assert_eq!(value["schema"], format!("terrace.measure.{name}/{version}"));
    assert_eq!(value["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(value["interrupted"], false);
    assert_eq!(value["machine"]["host"], Value::Null, "no host name unless asked for");
    assert!(value["machine"]["usable_cpus"].as_u64().unwrap() >= 1);
    assert!(value["cost"]["wall_s"].as_f64().unwrap() > 0.0);
    assert!(value["result"].is_object());
    value
}

/// What a JSON schema says against `value`; `None` when it is valid.
pub fn schema_complaint(schema: &str, value: &Value) -> Option<String> {
    let mut compiler = Compiler::new();
    let schema: Value = serde_json::from_str(schema).expect("the schema is JSON");
    compiler.add_resource("schema.json", schema).expect("a resource");
    let mut schemas = Schemas::new();
    let index = compiler.compile("schema.json", &mut schemas).expect("a valid schema");
    schemas.validate(value, index).err().map(|error| format!("{error:#}"))
}

/// The result of a `warm` command that did all it was asked, as JSON that the schema accepts.
#[track_caller]
pub fn warm_json(name: &str, ran: Ran) -> Value {
    const SCHEMA: &str = include_str!("../../../../docs/warm.schema.json");
    let text = ran.done();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema"], format!("terrace.warm.{name}/1"));
    assert_eq!(schema_complaint(SCHEMA, &value), None, "{text}");
    value["result"].take()
}

/// Runs `terrace` into a pipe that its reader has closed, which is no fault.
#[track_caller]
pub fn closed_pipe(line: &str) {
    let mut child = command(line)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
}

/// `terrace run` with options and the words of a command, not started.
pub fn run_command(options: &[&str], argv: &[&str]) -> Command {
    let mut command = command("run");
    command.args(options).arg("--").args(argv);
    command
}

/// An explanation as JSON that the schema accepts and whose bars add up.
#[track_caller]
pub fn valid_explanation(text: &str) -> Value {
    const SCHEMA: &str = include_str!("../../../../docs/explain.schema.json");
    let value: Value = serde_json::from_str(text).unwrap();
    assert_eq!(schema_complaint(SCHEMA, &value), None, "{text}");
    for (bar, whole) in [("wall", "wall_ns"), ("thread", "thread_ns")] {
        let slices = value["bars"][bar].as_array().unwrap();
        let sum: u64 = slices.iter().map(|slice| slice["ns"].as_u64().unwrap()).sum();
        assert_eq!(sum, value[whole].as_u64().unwrap(), "{bar}: {text}");
    }
    value
}

/// The rows of a CSV below its header, each checked to be as long as the header.
#[track_caller]
pub fn probe_csv(name: &str, line: &str) -> Vec<Vec<String>> {
    let text = terrace(&format!("measure {name} {line} --csv")).done();
    let mut rows: Vec<Vec<String>> = text.lines().map(fields).collect();
    let header = rows.remove(0);
    assert!(header.len() > 3 && header.iter().all(|name| !name.is_empty()), "{header:?}");
    assert!(!rows.is_empty());
    for row in &rows {
        assert_eq!(row.len(), header.len(), "{row:?}");
    }
    rows
}

/// The fields of one line of CSV, quotes taken off.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().unwrap().push(letter),
        }
    }
    assert!(!quoted, "{line}");
    fields
}

/// Runs `terrace` with the words of `line` and more, and sends it a signal (`INT`, `KILL`)
/// after so many seconds.
///
/// `timeout` sends it, so that no slow start of another program comes between. In the foreground
/// it sends the signal once.
pub fn signalled(line: &str, more: &[&OsStr], signal: &str, after_s: &str) -> Ran {
    timed_out(&["--foreground"], line, more, signal, after_s)
}

/// Ctrl-C after each of these times in turn, until it comes when there is something to tell: a
/// program that the host held up has not begun yet.
pub fn interrupted(line: &str, after_s: &[&str]) -> Ran {
    let mut last = None;
    for after_s in after_s {
        let ran = signalled(line, &[], "INT", after_s);
        if !ran.out.is_empty() {
            return ran;
        }
        last = Some(ran);
    }
    last.unwrap()
}

/// The same by plain `timeout`, which sends its signal twice: to the program and then to
/// its group.
pub fn signalled_twice(line: &str, more: &[&OsStr], signal: &str, after_s: &str) -> Ran {
    timed_out(&[], line, more, signal, after_s)
}

fn timed_out(options: &[&str], line: &str, more: &[&OsStr], signal: &str, after_s: &str) -> Ran {
    let mut command = testkit::with_default_signals("timeout");
    command.args(options);
    command.args(["--preserve-status", "-s", signal, after_s, TERRACE]);
    command.args(words(line)).args(more);
    command.env_remove("NO_COLOR").env_remove("COLUMNS");
    run(command)
}

/// Ctrl-C in the midst of a run prints what there is, says so, and exits with 1.
#[track_caller]
pub fn assert_interrupted(ran: &Ran, words: &str) {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains(words), "{ran:?}");
    assert!(ran.err.starts_with("terrace: ") && ran.err.contains("interrupted"), "{ran:?}");
}

/// A command run as an ordinary user; `None` (with the reason printed) where that cannot
/// be had.
pub fn as_ordinary_user(line: &str) -> Option<Command> {
    if !testkit::is_root() {
        return Some(command(line));
    }
    let mut probe = demoted("--version");
    let works = probe.output().is_ok_and(|output| output.status.success());
    if !works {
        testkit::skip("setpriv, and a binary that everyone may run");
        return None;
    }
    Some(demoted(line))
}

fn demoted(line: &str) -> Command {
    let mut command = testkit::with_default_signals("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", TERRACE]);
    command.args(words(line));
    command.env_remove("NO_COLOR").env_remove("COLUMNS");
    command
}

/// Whether `name` is a program here.
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| Path::new(&directory).join(name).is_file())
}

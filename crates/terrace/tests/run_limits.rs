//! `terrace run` under each limit of setrlimit(2), and with each signal that ends a process: the
//! status is the command's, or 125 before it was started, and nothing is left behind.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use support::{Ran, TERRACE, has_program, run, run_command, terrace};
use testkit::{Cgroup, TempDir};

/// A limit of prlimit(1), and values that are small but let the program itself start: with less
/// the kernel refuses to execute it, or the dynamic linker ends it.
const LIMITS: [(&str, &[&str]); 16] = [
    ("as", &["1073741824"]),
    ("core", &["0"]),
    ("cpu", &["4", "60"]),
    ("data", &["1073741824"]),
    ("fsize", &["0", "1", "4096", "8192"]),
    ("locks", &["0"]),
    ("memlock", &["0", "65536"]),
    ("msgqueue", &["0"]),
    ("nice", &["0"]),
    ("nofile", &["5", "12", "24"]),
    ("nproc", &["1"]),
    ("rss", &["4096"]),
    ("rtprio", &["0"]),
    ("rttime", &["1", "1000"]),
    ("sigpending", &["0"]),
    ("stack", &["1048576"]),
];

/// `terrace run --rate 100` of a command that ends with 9, below one limit.
fn limited(limit: &str, value: &str, file: &Path) -> Ran {
    let mut command = Command::new("prlimit");
    command.arg(format!("--{limit}={value}"));
    command.args([TERRACE, "run", "--quiet", "--trace", "none", "--rate", "100"]);
    command.arg("-o").arg(file);
    command.args(["--", "sh", "-c", "sleep 0.3; exit 9"]);
    run(command)
}

#[test]
fn under_each_limit_the_status_is_the_command_s() {
    if !has_program("prlimit") {
        return testkit::skip("prlimit (util-linux)");
    }
    for (limit, values) in LIMITS {
        for value in values {
            let directory = TempDir::new();
            let ran = limited(limit, value, &directory.join("x.trec"));
            match ran.code {
                Some(9) => {}
                Some(125) => assert!(
                    directory.names().is_empty(),
                    "{limit} {value}: {:?} {ran:?}",
                    directory.names()
                ),
                _ => panic!("{limit} {value}: {ran:?}"),
            }
            assert!(!ran.err.contains("panicked"), "{limit} {value}: {ran:?}");
        }
    }
}

/// SIGXFSZ killed the recorder while its command ran on. The command still gets that signal.
#[test]
fn a_file_size_limit_ends_the_recording_and_not_the_recorder() {
    if !has_program("prlimit") {
        return testkit::skip("prlimit (util-linux)");
    }
    let directory = TempDir::new();
    let own = directory.join("own");
    let line = format!(
        "sleep 0.5; (head -c 100000 /dev/zero > {}); echo writer $?; exit 9",
        own.display()
    );
    let mut command = Command::new("prlimit");
    command.args(["--fsize=2048", TERRACE, "run", "--rate", "100", "-o"]);
    command.arg(directory.join("x.trec")).args(["--", "sh", "-c", &line]);
    let ran = run(command);
    // 128 and the number of SIGXFSZ: of the shell's child.
    assert_eq!((ran.code, ran.out.as_str()), (Some(9), "writer 153\n"), "{ran:?}");
    assert!(ran.err.contains("file too large"), "{ran:?}");
}

/// What is written whole or not at all leaves no part of it.
#[test]
fn a_file_size_limit_leaves_no_part_of_a_page() {
    if !has_program("prlimit") {
        return testkit::skip("prlimit (util-linux)");
    }
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    run(run_command(&["-q", "-o", file.to_str().unwrap()], &["true"])).done();
    for (line, page) in [("explain -o", "x.html"), ("view --html", "y.html")] {
        let mut command = Command::new("prlimit");
        command.args(["--fsize=100", TERRACE]);
        command.args(line.split(' ')).arg(directory.join(page)).arg(&file);
        let ran = run(command);
        assert_eq!(ran.code, Some(1), "{line}: {ran:?}");
        assert!(ran.err.contains("file too large"), "{line}: {ran:?}");
        assert_eq!(directory.names(), ["x.trec"], "{line}");
    }
}

/// Timers, batch systems and power managers end processes by other signals than SIGTERM.
#[test]
fn every_signal_that_ends_a_process_is_passed_on() {
    for (name, number) in [("ALRM", 14), ("VTALRM", 26), ("PROF", 27), ("PWR", 30), ("34", 34)] {
        let line = format!("kill -{name} $PPID; exec sleep 60");
        let ran = run(run_command(&["--trace", "none"], &["sh", "-c", &line]));
        assert_eq!(ran.code, Some(128 + number), "{name}: {ran:?}");
        assert!(ran.err.starts_with("-- terrace "), "{name}: {ran:?}");
    }
}

/// The status was read back from the recording: a user who could replace the file chose it.
#[test]
fn the_status_is_never_read_from_the_recording() {
    let directory = TempDir::new();
    let (file, other) = (directory.join("x.trec"), directory.join("other.trec"));
    run(run_command(&["-q", "-o", other.to_str().unwrap()], &["true"])).done();
    let (here, there) = (file.display(), other.display());
    for (what, doubt) in [
        (format!("mv {there} {here}"), "removed or replaced"),
        (format!("truncate -s 20 {here}"), "damaged"),
        (format!("rm {here}"), "removed or replaced"),
    ] {
        let line = format!("sleep 0.1; {what}; exit 9");
        let options = ["--force", "--trace", "none", "-o", file.to_str().unwrap()];
        let mut command = run_command(&options, &["sh", "-c", &line]);
        command.env("COLUMNS", "200");
        let ran = run(command);
        assert_eq!(ran.code, Some(9), "{what}: {ran:?}");
        assert!(ran.err.contains("exit 9") && ran.err.contains(doubt), "{what}: {ran:?}");
    }
}

/// The words of a command line were one entry of the recording, larger than a reader takes.
#[test]
fn a_command_line_of_megabytes_is_recorded_as_far_as_it_fits() {
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    let options = ["-q", "--trace", "none", "-o", file.to_str().unwrap()];
    let mut command = run_command(&options, &["true"]);
    let word = "\u{1}".repeat(100_000);
    command.args(std::iter::repeat_n(&word, 18));
    let ran = match command.output() {
        Ok(output) => output,
        Err(_) => return testkit::skip("room for a command line of 1.8 MB"),
    };
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let json = terrace(&format!("export --no-redact --to json {}", file.display())).done();
    assert!(json.contains("more bytes)"), "its end says what is missing");
}

#[test]
fn only_a_regular_file_is_opened_to_be_replaced() {
    if !has_program("mkfifo") {
        return testkit::skip("mkfifo");
    }
    let directory = TempDir::new();
    let fifo = directory.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for path in [fifo.to_str().unwrap(), "/dev/null"] {
        let ran = run(run_command(&["--force", "-o", path], &["echo", "ran"]));
        ran.refused(125, "not a regular file");
    }
    let before = fs::metadata(&fifo).unwrap();
    assert_eq!(before.len(), 0);
}

/// A command that begins more processes than its group may hold, once as the subject and once
/// beside a recording of the machine. The limit is the first finding of both.
#[test]
fn refused_processes_come_first_with_the_limit_that_refused_them() {
    let group = match Cgroup::v1_pids(4) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let directory = TempDir::new();
    // Counted is from the sample on that met the command in its new group.
    let join = format!("echo $$ > {}/cgroup.procs", group.path().display());
    let script = format!(
        "{join}; sleep 0.5; sh -c 'sleep 0.6 & sleep 0.6 & sleep 0.6 & sleep 0.6 &' 2>/dev/null; sleep 1; :"
    );
    let file = directory.join("run.trec");
    let mut command = support::command("run -o");
    command.arg(&file).args(["--", "sh", "-c", &script]);
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let claim = |file: &Path| {
        let text = terrace(&format!("explain --json {}", file.display())).done();
        let explained = support::valid_explanation(&text);
        let first = &explained["findings"][0];
        assert_eq!(first["id"], "process_limit", "{explained}");
        first["claim"].as_str().unwrap_or_default().to_owned()
    };
    let of_run = claim(&file);
    assert!(of_run.ends_with("it may have at most 4"), "{of_run}");

    let file = directory.join("machine.trec");
    let mut machine = support::command("record --for 4 -o");
    let mut recorder = machine.arg(&file).stderr(std::process::Stdio::null()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let status = Command::new("sh").args(["-c", &script]).status().unwrap();
    assert!(recorder.wait().unwrap().success() && status.success());
    let of_machine = claim(&file);
    let name = group.path().file_name().unwrap().to_string_lossy().into_owned();
    assert!(of_machine.contains(&name) && of_machine.ends_with("limit 4)"), "{of_machine}");
}

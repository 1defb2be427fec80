//! `terrace run`: the command is left alone, its exit status passes through, and the verdict
//! stands on standard error. Whether verdicts are true is tested elsewhere.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::Write;
use std::process::Stdio;
use support::{
    TERRACE, as_ordinary_user, has_program, run, run_command, terrace, valid_explanation,
};
use testkit::TempDir;

/// Where the verdict starts.
const HEADER: &str = "-- terrace ";

fn sh(options: &[&str], line: &str) -> support::Ran {
    run(run_command(options, &["sh", "-c", line]))
}

#[test]
fn exit_status_and_output_are_the_command_s() {
    for code in [0, 1, 7, 255] {
        let ran = sh(&[], &format!("echo said; exit {code}"));
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert_eq!(ran.out, "said\n");
        assert!(ran.err.starts_with(HEADER), "{ran:?}");
        assert!(ran.err.contains(&format!("exit {code}")), "{ran:?}");
        assert!(!ran.err.contains('\x1b'), "{ran:?}");
    }
}

#[test]
fn a_signal_becomes_128_and_its_number() {
    for (signal, code) in [("KILL", 137), ("TERM", 143), ("USR1", 138)] {
        let ran = sh(&[], &format!("kill -{signal} $$"));
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.err.starts_with(HEADER), "{ran:?}");
    }
}

#[test]
fn what_cannot_be_started_has_the_status_of_env() {
    let directory = TempDir::new();
    let file = directory.join("no program");
    fs::write(&file, "").unwrap();
    run(run_command(&[], &["/nonexistent/program"])).refused(127, "/nonexistent/program");
    run(run_command(&[], &["no-such-program-anywhere"])).refused(127, "no-such-program-anywhere");
    run(run_command(&[], &[file.to_str().unwrap()])).refused(126, "permission denied");
    run(run_command(&[], &["/"])).refused(126, "permission denied");
}

#[test]
fn quiet_says_nothing_and_standard_input_passes() {
    let mut child = run_command(&["--quiet"], &["cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"through\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, b"through\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// Every word after the command is the command's, also those that look like options.
#[test]
fn the_command_needs_no_dashes_before_it() {
    let ran = terrace("run --quiet echo --quiet --json -- x -o");
    assert_eq!(ran.out, "--quiet --json -- x -o\n", "{ran:?}");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn the_verdict_fits_its_page() {
    for width in ["40", "50", "80", "132"] {
        for options in [&[][..], &["--details"]] {
            let mut command = run_command(options, &["sh", "-c", "true; sleep 0.05"]);
            command.env("COLUMNS", width);
            let ran = run(command);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let width: usize = width.parse().unwrap();
            // Commands and paths are for copying, so they are never broken; nor is a word.
            let whole = |line: &&str| line.contains("terrace") || line.contains('/');
            let word = |line: &&str| !line.trim().contains(' ');
            for line in ran.err.lines().filter(|line| !whole(line) && !word(line)) {
                assert!(line.chars().count() <= width, "{width}: {line}\n{}", ran.err);
            }
        }
    }
}

#[test]
fn the_json_is_valid_and_standard_output_stays_the_command_s() {
    let directory = TempDir::new();
    let file = directory.join("verdict.json");
    let ran = sh(&["--quiet", "--json", file.to_str().unwrap()], "echo x; sleep 0.05; exit 3");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(3), "x\n", ""));
    let value = valid_explanation(&fs::read_to_string(&file).unwrap());
    assert!(value["ending"].as_str().unwrap().contains("exit 3"), "{value}");
    // By construction: it slept for so long.
    assert!(value["wall_ns"].as_u64().unwrap() >= 50_000_000, "{value}");
    assert_eq!(directory.names(), ["verdict.json"]);
}

#[test]
fn a_run_too_short_for_a_sample_has_a_verdict() {
    let ran = run(run_command(&["--rate", "1"], &["true"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.starts_with(HEADER), "{ran:?}");
}

#[test]
fn repeats_are_prepared_each_time_and_make_a_table() {
    let directory = TempDir::new();
    let log = directory.join("log");
    let (log_name, trec) = (log.display(), directory.join("x.trec"));
    let prepare = format!("echo prepared | tee -a {log_name}");
    let options = ["--repeat", "3", "--prepare", &prepare, "-o", trec.to_str().unwrap()];
    let ran = sh(&options, &format!("echo ran | tee -a {log_name}"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.out, "ran\n".repeat(3), "what --prepare prints is no output");
    let logged = fs::read_to_string(&log).unwrap();
    assert_eq!(logged, "prepared\nran\n".repeat(3));
    assert!(ran.err.contains("3 runs: median"), "{}", ran.err);
    assert_eq!(ran.err.matches("-- terrace ").count(), 1, "{}", ran.err);
    for number in 1..=3 {
        let file = directory.join(format!("x.{number}.trec"));
        terrace(&format!("explain {}", file.display())).done();
    }
}

#[test]
fn a_failing_run_is_the_last() {
    let directory = TempDir::new();
    let log = directory.join("log");
    let line = format!("echo ran >> {}; exit 4", log.display());
    let ran = sh(&["--repeat", "5"], &line);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert_eq!(fs::read_to_string(&log).unwrap(), "ran\n");
    let ran = sh(&["--prepare", "echo words; exit 1"], &line);
    assert_eq!((ran.code, ran.out.as_str()), (Some(125), ""), "{ran:?}");
    assert!(ran.err.starts_with("words\nterrace: run: --prepare"), "{ran:?}");
    assert_eq!(fs::read_to_string(&log).unwrap(), "ran\n", "not run");
}

#[test]
fn the_cache_is_warmed_or_emptied_for_named_files() {
    let directory = TempDir::new();
    let file = directory.join("data");
    fs::write(&file, vec![1; 1 << 20]).unwrap();
    for state in ["hot", "cold"] {
        let options = ["--quiet", "--cache", state, "--cache-file", file.to_str().unwrap()];
        let ran = sh(&options, "true");
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
    }
    assert_eq!(fs::read(&file).unwrap(), vec![1; 1 << 20]);
}

#[test]
fn only_a_recording_is_replaced_and_only_by_force() {
    let directory = TempDir::new();
    let (other, trec) = (directory.join("letter"), directory.join("x.trec"));
    fs::write(&other, "dear").unwrap();
    let to = |path: &std::path::Path, force: bool| {
        let mut options = vec!["--quiet", "-o", path.to_str().unwrap()];
        options.extend(force.then_some("--force"));
        sh(&options, "echo ran")
    };
    for force in [false, true] {
        to(&other, force).refused(125, "letter");
        assert_eq!(fs::read_to_string(&other).unwrap(), "dear");
    }
    assert_eq!(to(&trec, false).done(), "ran\n");
    to(&trec, false).refused(125, "x.trec");
    assert_eq!(to(&trec, true).done(), "ran\n");
    terrace(&format!("explain {}", trec.display())).done();
}

#[test]
fn an_ordinary_user_learns_what_root_would_see() {
    let Some(mut command) = as_ordinary_user("run -- sleep 1") else {
        return;
    };
    command.current_dir("/tmp");
    let ran = run(command);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.err.contains("sudo shows it, `terrace doctor` why"), "{}", ran.err);
    assert!(!ran.err.contains("asleep") && !ran.err.contains("sleep 9"), "{}", ran.err);
}

/// A signal sent to `terrace` alone reaches the command, and the verdict still comes. The
/// command sends it itself, so that nothing depends on when it starts.
#[test]
fn a_signal_to_terrace_is_passed_on() {
    let ran = sh(&[], "kill -TERM $PPID; exec sleep 60");
    assert_eq!(ran.code, Some(143), "{ran:?}");
    assert!(ran.err.starts_with(HEADER), "{ran:?}");
}

/// Ctrl-C of a terminal reaches the whole group: the command dies of it, `terrace` tells.
#[test]
fn ctrl_c_is_the_command_s() {
    if !has_program("setsid") {
        return testkit::skip("setsid (util-linux)");
    }
    let mut command = testkit::with_default_signals("setsid");
    command.args(["--wait", TERRACE, "run", "--", "sh", "-c", "kill -INT 0; exec sleep 60"]);
    command.env_remove("NO_COLOR").env_remove("COLUMNS");
    let ran = run(command);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.err.starts_with(HEADER), "{ran:?}");
}

/// A command that handles Ctrl-C itself goes on, and so does its recording.
#[test]
fn a_command_may_outlive_ctrl_c() {
    if !has_program("setsid") {
        return testkit::skip("setsid (util-linux)");
    }
    let mut command = testkit::with_default_signals("setsid");
    let line = "trap 'echo caught' INT; kill -INT 0; sleep 0.05; exit 6";
    command.args(["--wait", TERRACE, "run", "--", "sh", "-c", line]);
    let ran = run(command);
    assert_eq!((ran.code, ran.out.as_str()), (Some(6), "caught\n"), "{ran:?}");
}

//! `terrace warm` as far as any user can go: the rights that it names, what it shows of one's
//! own processes, JSON by its schema, files that it must not replace.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{
    Started, as_ordinary_user, closed_pipe, run, schema_complaint, terminate, terrace, wait_for,
    warm_json,
};
use testkit::TempDir;

fn sleeper() -> Started {
    Started::sleeping(Command::new("sleep"))
}

#[test]
fn a_process_is_shown_with_what_it_has_in_memory() {
    let sleeper = sleeper();
    let line = format!("warm show --pid {} --json", sleeper.pid());
    let shown = warm_json("show", terrace(&line));
    let processes = shown["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 1);
    assert_eq!(processes[0]["pid"], sleeper.pid());
    assert_eq!(processes[0]["name"], "sleep");
    assert!(processes[0]["resident_bytes"].as_u64().unwrap() > 0);
    let page = terrace(&format!("warm show --pid {}", sleeper.pid())).done();
    assert!(page.starts_with("terrace warm show: 1 process, "), "{page}");
    closed_pipe("warm show");
}

/// A field more, a field less, another type, another word: each is refused.
#[test]
fn the_schema_refuses_what_is_no_result() {
    const SCHEMA: &str = include_str!("../../../docs/warm.schema.json");
    let sleeper = sleeper();
    let line = format!("warm show --pid {} --json", sleeper.pid());
    let good: Value = serde_json::from_str(&terrace(&line).done()).unwrap();
    type Break = fn(&mut Value);
    let breaks: [(&str, Break); 5] = [
        ("another schema", |v| v["schema"] = json!("terrace.warm.show/2")),
        ("the schema of the other", |v| v["schema"] = json!("terrace.warm.restore/1")),
        ("a field more", |v| v["result"]["processes"][0]["extra"] = json!(1)),
        ("a size below 0", |v| v["result"]["found_bytes"] = json!(-1)),
        ("no notes", |v| drop(v["result"].as_object_mut().unwrap().remove("notes"))),
    ];
    assert_eq!(schema_complaint(SCHEMA, &good), None);
    for (what, break_it) in breaks {
        let mut value = good.clone();
        break_it(&mut value);
        assert!(schema_complaint(SCHEMA, &value).is_some(), "{what}");
    }
}

/// What an ordinary user sees and gets.
#[test]
fn without_the_rights_one_line_names_them_and_show_works() {
    let Some(mut refused) = as_ordinary_user("warm restore --all") else {
        return;
    };
    run(refused)
        .refused(3, "needs CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYS_NICE and CAP_DAC_READ_SEARCH");
    for line in ["warm restore --all --only anonymous,files", "warm watch", "warm watch --pid 1"] {
        refused = as_ordinary_user(line).unwrap();
        run(refused).refused(3, "needs CAP_SYS_ADMIN");
    }

    let command = as_ordinary_user("warm show --all --json").unwrap();
    let shown = warm_json("show", run(command));
    let notes = shown["notes"].to_string();
    assert!(notes.contains("processes of other users are not seen"), "{notes}");

    // The first process is never this user's.
    let others = as_ordinary_user("warm show --pid 1").unwrap();
    let ran = run(others);
    ran.refused(3, "cannot look into process 1");
}

/// Any user who may open files can restore them, and metadata too.
#[test]
fn what_needs_no_rights_is_done_without() {
    let directory = TempDir::new();
    fs::create_dir(directory.join("below")).unwrap();
    let line = format!("warm restore --metadata {} --floor 1m --json", directory.path().display());
    let Some(command) = as_ordinary_user(&line) else {
        return;
    };
    let ran = run(command);
    // Only that others wait for memory at this moment could end it early.
    if ran.err.contains("others began to wait") {
        return;
    }
    let receipt = warm_json("restore", ran);
    assert_eq!(receipt["done"]["stop"], "done");
    let notes = receipt["done"]["notes"].to_string();
    assert!(notes.contains("2 directories with 2 entries"), "{notes}");
}

#[test]
fn a_snapshot_replaces_a_snapshot_and_no_other_file() {
    let directory = TempDir::new();
    let sleeper = sleeper();
    let file = directory.join("x.snapshot");
    let line = format!("warm snapshot {} --pid {}", file.display(), sleeper.pid());
    for _ in 0..2 {
        let text = terrace(&line).done();
        let next = format!("Bring it back: terrace warm restore {}", file.display());
        assert!(text.contains(&next), "{text}");
    }
    let snapshot = fs::read(&file).unwrap();

    fs::write(&file, "mine").unwrap();
    terrace(&line).refused(2, "another file is there");
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    assert_eq!(directory.names(), ["x.snapshot"]);

    // Damaged in its middle.
    let mut damaged = snapshot;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&file, damaged).unwrap();
    terrace(&format!("warm restore {}", file.display())).refused(2, "cannot read the snapshot");
}

/// The reader inside of a group is this program; it ends with its input.
#[test]
fn the_hidden_reader_ends_with_its_input() {
    assert_eq!(terrace("warm-reader").done(), "");
    let help = terrace("--help").done();
    assert!(help.contains("warm") && !help.contains("warm-reader"), "{help}");
}

/// A watch that has printed its first line, which is given too.
fn watching(line: &str) -> (Child, String) {
    let mut command = support::command(line);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Byte by byte: what follows the line is for the test.
    let mut first = String::new();
    let output = child.stdout.as_mut().unwrap();
    while !first.ends_with('\n') {
        let mut byte = [0];
        output.read_exact(&mut byte).unwrap();
        first.push(char::from(byte[0]));
    }
    (child, first)
}

#[test]
fn a_watch_says_what_it_watches_and_ends_well_by_a_signal() {
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    let (child, first) = watching("warm watch --quiet 2s");
    let words = "watching: all processes (anonymous, shared); restores when memory has not been short for 2 s";
    assert!(first.starts_with(words), "{first}");
    let ran = terminate(child);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");

    let name = "warm watch --app no-such-program --only shared,files";
    let (child, first) = watching(name);
    assert!(first.starts_with("watching: processes of no-such-program (shared, files)"), "{first}");
    assert!(first.contains("; not there yet: no process is called no-such-program"), "{first}");
    assert_eq!(terminate(child).code, Some(0));
    closed_pipe("warm watch");
}

#[test]
fn a_watch_of_processes_ends_with_them() {
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    terrace("warm watch --pid 4194305").refused(2, "no process 4194305");
    let (one, other) = (sleeper(), sleeper());
    let line = format!("warm watch --pid {},{}", one.pid(), other.pid());
    let (mut child, first) = watching(&line);
    assert!(first.contains(&format!("processes {}, {}", one.pid(), other.pid())), "{first}");
    drop(one);
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(child.try_wait().unwrap(), None, "one of them lives");
    drop(other);
    let ran = wait_for(child);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.ends_with("all processes that were named have ended\n"), "{ran:?}");
}

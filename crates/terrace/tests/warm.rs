//! `terrace warm` as far as any user can go: the rights that it names, what it shows of one's
//! own processes, JSON by its schema, files that it must not replace.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use support::{Started, as_ordinary_user, closed_pipe, run, schema_complaint, terrace, warm_json};
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
    refused = as_ordinary_user("warm restore --all --only anonymous,files").unwrap();
    run(refused).refused(3, "needs CAP_SYS_ADMIN");

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

//! `terrace survey`: its JSON against the schema in `docs/`, its page, its end by Ctrl-C.
//! Whether the figures are true is the benches' to show.

mod support;

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::{
    KILLED, as_ordinary_user, assert_interrupted, run, schema_complaint, signalled,
    signalled_twice, terrace,
};
use testkit::TempDir;

const SCHEMA: &str = include_str!("../../../docs/survey.schema.json");
const RECORDED: &str = include_str!("fixtures/survey.json");

/// What the schema says against `value`; `None` when it is valid.
fn complaint(value: &Value) -> Option<String> {
    schema_complaint(SCHEMA, value)
}

#[test]
fn the_recorded_survey_is_valid() {
    assert_eq!(complaint(&serde_json::from_str(RECORDED).unwrap()), None);
}

/// A field more, a field less, another type, another word: each is refused.
#[test]
fn the_schema_refuses_what_is_not_a_survey() {
    type Break = fn(&mut Value);
    let breaks: [(&str, Break); 9] = [
        ("another schema", |v| v["schema"] = json!("terrace.survey/2")),
        ("no cost", |v| drop(v.as_object_mut().unwrap().remove("cost"))),
        ("a field more", |v| v["extra"] = json!(1)),
        ("a field more in a tier", |v| v["tiers"][0]["extra"] = json!(1)),
        ("an unknown kind", |v| v["tiers"][0]["kind"] = json!("tape")),
        ("a missing p99", |v| {
            drop(v["tiers"][0]["latency_ns"].as_object_mut().unwrap().remove("p99"))
        }),
        ("a null median", |v| v["tiers"][0]["latency_ns"]["median"] = Value::Null),
        ("a finding without evidence", |v| v["findings"][0]["evidence"] = json!([])),
        ("a size below 0", |v| v["cost"]["written_bytes"] = json!(-1)),
    ];
    for (what, break_it) in breaks {
        let mut value: Value = serde_json::from_str(RECORDED).unwrap();
        break_it(&mut value);
        assert!(complaint(&value).is_some(), "{what} passed");
    }
}

#[test]
fn a_quick_survey_is_valid_in_time_and_leaves_nothing() {
    let directory = TempDir::new();
    let line = format!("survey --quick --json --path {}", directory.path().display());
    let ask = || {
        let started = Instant::now();
        let text = terrace(&line).done();
        let took = started.elapsed();
        let survey: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(complaint(&survey), None);
        // Not a measure of speed: a promise of the command, with room for a busy machine.
        assert!(took < Duration::from_secs(25), "{took:?}");
        survey
    };
    let is_whole = |survey: &Value| {
        let tiers = survey["tiers"].as_array().unwrap().iter();
        let kinds: Vec<&str> = tiers.filter_map(|tier| tier["kind"].as_str()).collect();
        println!("tiers {kinds:?}");
        let wanted = ["cpu_cache", "ram", "new_memory", "device"];
        wanted.iter().all(|kind| kinds.contains(kind))
    };
    // A host that backs memory late may leave no time for a part.
    let mut surveys = (0..3).map(|_| ask());
    let survey = surveys.find(is_whole).expect("all kinds of tiers");
    assert_eq!(survey["machine"]["host"], Value::Null);
    assert!(directory.names().is_empty());
}

#[test]
fn an_ordinary_user_has_a_page() {
    let Some(mut command) = as_ordinary_user("survey --quick") else {
        return;
    };
    command.current_dir("/tmp").env("COLUMNS", "80");
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with("terrace survey") && ran.out.contains(" RAM "), "{}", ran.out);
    assert!(ran.out.contains("Next: sudo terrace survey"), "{}", ran.out);
    assert!(!ran.out.contains('\x1b'));
}

#[test]
fn ctrl_c_prints_what_was_seen_and_leaves_nothing() {
    let directory = TempDir::new();
    let ran = signalled("survey --path", &[directory.path().as_os_str()], "INT", "4");
    assert_interrupted(&ran, "; interrupted");
    assert!(directory.names().is_empty());
}

/// `timeout` without --foreground sends its signal twice at once; it counts once.
#[test]
fn a_signal_that_comes_twice_counts_once() {
    let directory = TempDir::new();
    for signal in ["INT", "TERM"] {
        let ran = signalled_twice("survey --path", &[directory.path().as_os_str()], signal, "4");
        assert_interrupted(&ran, "; interrupted");
        assert!(directory.names().is_empty());
    }
}

#[test]
fn details_say_what_the_page_leaves_out() {
    let full = terrace("survey --quick --details").done();
    assert!(!full.contains("--details"), "{full}");
    assert!(full.contains("Seen: ") || full.contains("Nothing odd"), "{full}");
    terrace("survey --details --json").refused(2, "--details");
}

#[test]
fn a_kill_leaves_nothing() {
    let directory = TempDir::new();
    let ran = signalled("survey --path", &[directory.path().as_os_str()], "KILL", "12");
    assert!(KILLED.contains(&ran.code), "{ran:?}");
    assert!(directory.names().is_empty());
}

#[test]
fn a_path_that_is_no_directory_is_refused() {
    terrace("survey --quick --path /nonexistent").refused(2, "/nonexistent");
}

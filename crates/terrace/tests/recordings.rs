//! Real recordings, kept and explained anew: what their rules say of them, what they clear,
//! and that the page of each fits its width. `fixtures/recordings/README.md` says how each
//! was made; what can be staged on a test machine is made anew by `verdicts`.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::collections::HashSet;
use std::path::PathBuf;
use support::{command, run, terrace, valid_explanation};

/// A rule, a recording on which it fires, and one that nearly does: there it clears.
const RULES: &[(&str, &str, &str)] = &[
    ("compaction", "compaction", "huge_pages_refused"),
    ("cpu_contention", "hog_beside", "cold_read"),
    ("cpu_limit", "cpu_quota", "hog_beside"),
    ("first_touch", "first_touch", "huge_pages_refused"),
    ("lock_contention", "lock_contention", "hog_beside"),
    ("memory_limit", "swap_random", "first_touch"),
    ("numa_remote", "numa_remote", "numa_local"),
    ("reads_from_device", "cold_read", "first_touch"),
    ("small_sync_writes", "fsync_storm", "swap_random"),
    ("swapping", "swap_random", "thp_fallback"),
    ("thp_fallback", "thp_fallback", "huge_pages_refused"),
];

/// The columns of a split screen, of an old terminal, and of a wide one.
const WIDTHS: [usize; 3] = [60, 80, 120];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recordings")
}

fn explained(name: &str) -> Value {
    let file = folder().join(format!("{name}.trec"));
    valid_explanation(&terrace(&format!("explain --json {}", file.display())).done())
}

/// The names of all recordings.
fn names() -> Vec<String> {
    let entries = folder().read_dir().unwrap();
    let all = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> =
        all.filter_map(|name| name.strip_suffix(".trec").map(str::to_owned)).collect();
    assert!(names.len() >= RULES.len(), "{names:?}");
    names
}

/// The names of the series of a recording.
fn recorded_series(name: &str) -> HashSet<String> {
    let recording = record::file::open(&folder().join(format!("{name}.trec"))).unwrap();
    let series = recording.series.into_iter();
    series.map(|series| series.schema.name).collect()
}

/// The ids of a list of an explanation.
fn ids<'v>(value: &'v Value, list: &str) -> Vec<&'v str> {
    let all = value[list].as_array().unwrap().iter();
    all.map(|one| one["id"].as_str().unwrap()).collect()
}

#[test]
fn a_rule_fires_on_its_recording_and_clears_a_near_miss() {
    let mut wrong = Vec::new();
    for (rule, fires, nearly) in RULES {
        let (guilty, innocent) = (explained(fires), explained(nearly));
        if !ids(&guilty, "findings").contains(rule) {
            wrong.push(format!("{fires}: {rule} not in {:?}", ids(&guilty, "findings")));
        }
        if !ids(&innocent, "cleared").contains(rule) {
            wrong.push(format!("{nearly}: {rule} not in {:?}", ids(&innocent, "cleared")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A click on a finding shows when it happened and what proves it.
#[test]
fn every_finding_names_a_recorded_series_and_its_time() {
    let mut seen = 0;
    for name in names() {
        let value = explained(&name);
        let recorded = recorded_series(&name);
        let window = value["from_ns"].as_u64().unwrap()..=value["to_ns"].as_u64().unwrap();
        for finding in value["findings"].as_array().unwrap() {
            let context = format!("{name}: {finding:#}");
            let evidence = finding["evidence"].as_array().unwrap();
            let lists = evidence.iter().filter_map(|one| one["series"].as_array());
            let series: Vec<&str> = lists.flatten().map(|one| one.as_str().unwrap()).collect();
            assert!(!series.is_empty(), "{context}");
            assert!(series.iter().all(|one| recorded.contains(*one)), "{context}");
            let at = |end: &str| finding["span"][end].as_u64().expect(&context);
            let (from, to) = (at("from_ns"), at("to_ns"));
            let is_inside = window.contains(&from) && window.contains(&to);
            assert!(from < to && is_inside, "{context}");
            seen += 1;
        }
    }
    assert!(seen >= RULES.len(), "{seen}");
}

/// Slowness by an emulator is not attributed to memory that its host had yet to find.
#[test]
fn an_emulated_machine_is_not_said_to_wait_for_its_host() {
    for name in ["numa_local", "numa_remote", "huge_pages_refused"] {
        let value = explained(name);
        assert!(!ids(&value, "findings").contains(&"memory_backed_lazily"), "{name}");
    }
}

/// That names are stand-ins makes no number less sure.
#[test]
fn replaced_names_are_reported_and_are_no_doubt() {
    let file = folder().join("numa_local.trec");
    for detail in ["", "--details"] {
        let text = terrace(&format!("explain {detail} {}", file.display())).done();
        assert!(text.contains("Names of commands, paths and users were replaced."), "{text}");
        assert!(!text.contains("Doubt:"), "{text}");
    }
}

/// Whether a line is one path or one command and nothing else: these are for copying, so they are
/// never broken.
fn is_for_copying(line: &str) -> bool {
    let words = line.trim_start().trim_start_matches('(');
    let is_a_path = words.starts_with('/') && !words.contains(' ');
    is_a_path || ["terrace ", "sudo terrace "].iter().any(|start| words.starts_with(start))
}

#[test]
fn no_verdict_is_wider_than_its_page() {
    for name in names() {
        for width in WIDTHS {
            for detail in ["", "--details"] {
                let mut explain = command(&format!("explain {detail} {name}.trec"));
                explain.env("COLUMNS", width.to_string());
                explain.current_dir(folder());
                let text = run(explain).done();
                for line in text.lines() {
                    let fits = line.chars().count() <= width || is_for_copying(line);
                    assert!(fits, "{name}, {width}: {line}\n{text}");
                }
            }
        }
    }
}

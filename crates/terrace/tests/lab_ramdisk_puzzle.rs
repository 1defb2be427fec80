//! `terrace lab run ramdisk-puzzle`: a small one for real, its JSON, what it keeps, and what it
//! refuses.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use serde_json::Value;
use std::fs;
use support::{as_ordinary_user, assert_interrupted, run, schema_complaint, signalled, terrace};
use testkit::{Cgroup, TempDir};

const SCHEMA: &str = include_str!("../../../docs/lab.schema.json");
const MIB: u64 = 1 << 20;

#[track_caller]
fn result(text: &str) -> Value {
    let value: Value = serde_json::from_str(text).unwrap();
    assert_eq!(schema_complaint(SCHEMA, &value), None, "{text}");
    value["result"].clone()
}

#[test]
fn it_says_what_it_repeats_and_refuses_nonsense() {
    assert!(terrace("lab list").done().contains("ramdisk-puzzle"));
    let text = terrace("lab show ramdisk-puzzle").done();
    for words in ["145 s", "0.75 s", "432.2 us", "2.8 GB/s", "Needs no root"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    terrace("lab run ramdisk-puzzle --unit 1m").refused(2, "less than 16 MiB says nothing");
    terrace("lab run ramdisk-puzzle --unit 10t").refused(3, "left out");
    terrace("lab run ramdisk-puzzle --disk /nonexistent").refused(2, "is no directory");
}

#[test]
fn the_original_is_judged_and_each_size_is_written_recorded_and_judged() {
    let (out, disk) = (TempDir::new(), TempDir::new());
    let kept = out.join("kept").display().to_string();
    let line = format!(
        "lab run ramdisk-puzzle --unit 16m --disk {} --json --out {kept}",
        disk.path().display()
    );
    let ran = terrace(&line);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("takes up to 128 MiB"), "{ran:?}");
    assert!(ran.err.contains("writes 96 MiB to"), "{ran:?}");
    let report = result(&ran.out);
    let original = &report["original"];
    assert_eq!(original["knee"]["beyond_bytes"], 2_000_000_000u64);
    let fits = |reason: &str| {
        let all = original["candidates"].as_array().unwrap();
        let found = all.iter().find(|one| one["reason"] == reason).unwrap();
        found["standing"].as_str().unwrap().to_owned()
    };
    assert_eq!(fits("guest_swap"), "fits");
    assert_eq!(fits("backed_lazily"), "not_excluded");
    assert_eq!(fits("numa"), "excluded");
    let written = report["written"].as_array().unwrap();
    let sizes: Vec<(&str, u64)> = written
        .iter()
        .map(|one| (one["content"].as_str().unwrap(), one["bytes"].as_u64().unwrap() / MIB))
        .collect();
    let all = |content| [16, 32, 64, 128].map(|mib| (content, mib));
    assert_eq!(sizes, [all("random"), all("zero")].concat());
    for one in written {
        assert!(one["ns"].as_u64().unwrap() > 0);
        let judged = one["content"] == "random";
        assert_eq!(one["judged"].is_object(), judged, "{one}");
        let content = if judged { "random" } else { "zeros" };
        let file = format!("{kept}/{content}-{}.trec", one["units"]);
        terrace(&format!("explain {file}")).done();
    }
    assert_eq!(report["today"]["marginals"].as_array().unwrap().len(), 4);
    let places = report["requests"].as_array().unwrap();
    assert!(places.iter().any(|one| one["place"] == "disk" && one["mean_ns"].is_f64()));
    assert_eq!(result(&fs::read_to_string(format!("{kept}/result.json")).unwrap()), report);
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 0);
    terrace(&line).refused(2, "is no empty directory");
}

#[test]
fn what_a_group_cannot_bear_is_left_out_and_that_is_said() {
    let group = match Cgroup::v1_memory(72 * MIB) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let mut command = group.command(support::TERRACE);
    command.args("lab run ramdisk-puzzle --unit 16m".split_whitespace());
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("128 MiB were left out: the group"), "{words}");
    assert!(words.contains("no disk was compared"), "{words}");
    assert!(words.contains("8 GB 145 s - - -"), "{words}");
}

#[test]
fn ctrl_c_tells_what_was_seen_until_then() {
    let ran = signalled("lab run ramdisk-puzzle --unit 512m", &[], "INT", "6");
    if ran.code == Some(3) {
        return testkit::skip("memory that nobody uses");
    }
    assert_interrupted(&ran, "What the original's own figures say");
}

#[test]
fn an_ordinary_user_may_run_it() {
    let Some(command) = as_ordinary_user("lab run ramdisk-puzzle --unit 16m") else {
        return;
    };
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("128 MiB"), "{ran:?}");
}

#[test]
fn a_size_whose_time_is_over_is_reported_and_makes_no_knee() {
    let line = "lab run ramdisk-puzzle --unit 256m --limit 150ms --json";
    let ran = terrace(line);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = result(&ran.out);
    let notes = report["notes"].to_string();
    assert!(notes.contains("ended early"), "{notes}");
    assert_eq!(report["today"]["knee"], Value::Null, "{report:#}");
}

//! `terrace lab run memory-copy-2001`: a short one for real, its JSON, what it keeps, and how it
//! ends. Rates are compared with each other only, and only where no neighbour can turn them round.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use serde_json::Value;
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};
use support::{as_ordinary_user, command, run, schema_complaint, signalled, terrace};
use testkit::TempDir;

const SCHEMA: &str = include_str!("../../../docs/lab.schema.json");
const METHODS: [&str; 7] = ["memcpy", "char", "short", "int", "long", "int64", "double"];

/// Two at once would measure each other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn it_is_shown_with_the_published_figures() {
    assert!(terrace("lab list").done().contains("memory-copy-2001"));
    let text = terrace("lab show memory-copy-2001").done();
    for words in ["173.644 MB/s", "93.494 MB/s", "4.3 s", "10^6 or 2^20", "needs no root"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let full = TempDir::new();
    fs::write(full.join("a file"), "x").unwrap();
    let out = format!("lab run memory-copy-2001 --out {}", full.join("").display());
    terrace(&out).refused(2, "no empty directory");
    terrace("lab run memory-copy-2001 --budget 0").refused(2, "--budget");
    terrace("lab run memory-copy-2001 --app sqlite").refused(2, "--app");
}

/// Everything has its figure, also for an ordinary user, and the JSON is what the schema says.
#[test]
fn every_part_has_its_figures_and_each_verdict_its_numbers() {
    let _alone = alone();
    let line = "lab run memory-copy-2001 --budget 25s --json";
    let ran = match as_ordinary_user(line) {
        Some(command) => run(command),
        None => terrace(line),
    };
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(schema_complaint(SCHEMA, &json), None);
    let result = &json["result"];
    let named = |part: &str| -> Vec<String> {
        let items = result[part].as_array().unwrap().iter();
        items.map(|item| item["method"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(named("rows"), METHODS);
    assert_eq!(named("verdicts"), METHODS);
    for row in result["rows"].as_array().unwrap() {
        assert_eq!(
            (&row["verified"], &row["bytes_per_s"]["trials"]),
            (&Value::from(true), &Value::from(8))
        );
        for then in row["then"].as_array().unwrap() {
            let ends =
                ["times_if_decimal", "times_if_binary"].map(|key| then[key].as_f64().unwrap());
            assert!((ends[0] / ends[1] - 1.048_576).abs() < 1e-9, "{then}");
        }
    }
    let rates = result["blocks"].as_array().unwrap();
    let rate = |method: &str, bytes: u64| {
        let row = rates.iter().find(|row| row["method"] == method && row["size_bytes"] == bytes);
        row.and_then(|row| row["bytes_per_s"]["median"].as_f64())
    };
    // One byte at a time is slower than libc's copy in the cache, by far more than any noise.
    assert!(rate("memcpy", 64 << 10).unwrap() > 2.0 * rate("char", 64 << 10).unwrap());
    for verdict in result["verdicts"].as_array().unwrap() {
        println!("{}: {}", verdict["method"], verdict["because"]);
        let proven = verdict["limit"] != "unproven";
        assert!(!proven || verdict["evidence"].as_array().unwrap().len() >= 2, "{verdict}");
    }
    if cfg!(target_arch = "x86_64") {
        movers(result);
    }
}

fn movers(result: &Value) {
    let movers = result["movers"].as_array().unwrap();
    let store = |method: &str| {
        let found = movers.iter().find(|mover| mover["method"] == method);
        found.map(|mover| mover["store"].as_str().unwrap())
    };
    let loops = [
        ("char", "mov byte"),
        ("short", "mov word"),
        ("int", "mov dword"),
        ("int64", "mov qword"),
        ("double", "movsd qword"),
    ];
    for (method, instruction) in loops {
        // On a crowded machine a method may get no look at all; it is noted then.
        assert!(store(method).is_none_or(|store| store == instruction), "{movers:?}");
    }
    assert!(movers.len() + result["notes"].as_array().unwrap().len() >= METHODS.len(), "{result}");
}

/// The page fits 80 columns, with the answer before the tables; Ctrl-C leaves what there is.
#[test]
fn a_stopped_one_shows_and_keeps_what_it_has() {
    let _alone = alone();
    let folder = TempDir::new();
    let out = folder.join("out");
    let line = "lab run memory-copy-2001 --budget 60s --out";
    let ran = signalled(line, &[out.as_os_str()], "INT", "15");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("interrupted"), "{ran:?}");
    let answer = ran.out.find("Why two systems differ").unwrap();
    assert!(answer < ran.out.find("The table of 2001").unwrap());
    for line in ran.out.lines().filter(|line| !line.contains(&*out.to_string_lossy())) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let kept = fs::read_to_string(out.join("result.json")).unwrap();
    let json: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(schema_complaint(SCHEMA, &json), None);
    assert_eq!(json["interrupted"], true);
    let mut explain = command("explain");
    explain.arg(out.join("whole.trec"));
    run(explain).done();
}

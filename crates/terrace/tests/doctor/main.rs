//! `terrace doctor` as root, as an ordinary user, and with each thing taken from it that a
//! container takes: what it says must follow, and what it prints as a line must help.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod allowed;
mod denials;
mod refused;
mod report;

use serde_json::Value;
use std::process::{Command, Stdio};
use support::{Ran, TERRACE, run};

const SCHEMA: &str = include_str!("../../../../docs/doctor.schema.json");
const ORDINARY: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// `program` with `words`, not started; `program` is run by the command `before` it, if any.
fn staged(before: &[&str], program: &str, words: &[&str]) -> Command {
    let mut line = before.iter().copied().chain([program]).chain(words.iter().copied());
    let mut command = testkit::with_default_signals(line.next().unwrap());
    command.args(line).stdin(Stdio::null());
    command.env_remove("NO_COLOR").env_remove("COLUMNS");
    command
}

/// The report of `terrace doctor --json` that is run by the command `before` it, valid by the
/// schema. `None`, with the reason printed, where the stage cannot be set.
fn examined(before: &[&str]) -> Option<Value> {
    examined_by(before, TERRACE)
}

fn examined_by(before: &[&str], program: &str) -> Option<Value> {
    let stage = staged(before, program, &["--version"]).output();
    if !stage.is_ok_and(|output| output.status.success()) {
        testkit::skip(before.join(" "));
        return None;
    }
    Some(report_of(run(staged(before, program, &["doctor", "--json"]))))
}

/// The JSON of a run; its status says whether a line would allow more.
#[track_caller]
fn report_of(ran: Ran) -> Value {
    assert_eq!(ran.err, "", "{ran:?}");
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(support::schema_complaint(SCHEMA, &report), None, "{}", ran.out);
    let can_be_allowed = sources(&report).any(|source| {
        let is_lacking = ["partly", "missing"].contains(&source["health"].as_str().unwrap());
        is_lacking && !source["lines"].as_array().unwrap().is_empty()
    });
    assert_eq!(ran.code, Some(i32::from(can_be_allowed)), "{}", ran.out);
    report
}

fn sources(report: &Value) -> impl Iterator<Item = &Value> {
    report["sources"].as_array().unwrap().iter()
}

/// One source of a report.
#[track_caller]
fn source<'a>(report: &'a Value, id: &str) -> &'a Value {
    sources(report).find(|source| source["source"] == id).unwrap_or_else(|| panic!("{id}"))
}

fn health<'a>(report: &'a Value, id: &str) -> &'a str {
    source(report, id)["health"].as_str().unwrap()
}

/// All lines of a source, in one text.
fn lines(source: &Value) -> String {
    let all = source["lines"].as_array().unwrap().iter();
    all.map(|line| line["line"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Whether root has this source here; `false` with the reason printed.
fn root_has(id: &str) -> bool {
    let works = testkit::is_root()
        && examined(&["env"]).is_some_and(|report| health(&report, id) == "works");
    if !works {
        testkit::skip(format!("{id}, as root"));
    }
    works
}

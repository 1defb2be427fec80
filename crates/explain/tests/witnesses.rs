//! The witness of each suspect: the table in the documentation is that of the code, every rule that
//! can clear has a row, and nothing is cleared by a witness that was absent for a part.

#![allow(clippy::unwrap_used, reason = "a table that cannot be read must fail the test")]

use explain::recording::rules::RULES;
use explain::recording::witness::{TABLE, WitnessRow};
use std::collections::BTreeSet;

/// One row as the documentation has it.
fn documented(row: &WitnessRow) -> String {
    let all_of = |by: &&[_]| {
        let words: Vec<String> =
            by.iter().map(|one: &explain::recording::witness::Witness| one.words()).collect();
        words.join(" + ")
    };
    let alternatives: Vec<String> = row.by.iter().map(all_of).collect();
    let suspect = RULES.iter().find(|rule| rule.id == row.id).unwrap().suspect;
    format!("| `{}` | {suspect} | {} |", row.id, alternatives.join("; or "))
}

#[test]
fn the_documentation_names_the_witnesses_of_each_suspect() {
    let docs = include_str!("../../../docs/findings.md");
    let (_, section) = docs.split_once("### Which witness clears a suspect").unwrap();
    let (section, _) = section.split_once("\n### ").unwrap();
    let listed: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = TABLE.iter().map(documented).collect();
    assert_eq!(listed, expected, "write:\n{}", expected.join("\n"));
}

#[test]
fn each_row_is_of_a_rule_and_names_a_witness() {
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    let rows: BTreeSet<&str> = TABLE.iter().map(|row| row.id).collect();
    assert_eq!(rows.len(), TABLE.len(), "a rule has two rows");
    assert!(rows.is_subset(&rules), "{:?}", rows.difference(&rules));
    for row in TABLE {
        assert!(!row.by.is_empty() && row.by.iter().all(|all| !all.is_empty()), "{}", row.id);
    }
}

//! `terrace proof`: the counter that a claim speaks of is found in two real recordings, and
//! that none moved is said.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use support::{Ran, command, run, run_command, terrace};
use testkit::TempDir;

fn recorded(directory: &TempDir, name: &str, bytes: &str) -> String {
    let file = directory.join(name).display().to_string();
    let options = ["--quiet", "--rate", "50", "-o", &file];
    let script = format!("head -c {bytes} /dev/zero | cat >/dev/null; sleep 0.1");
    run(run_command(&options, &["sh", "-c", &script])).done();
    file
}

fn proof(files: &[&str], claim: &str, options: &[&str]) -> Ran {
    let mut command = command("proof");
    command.args(files).args(["--claim", claim]).args(options);
    run(command)
}

#[test]
fn the_counter_of_the_claim_moved_or_did_not() {
    let directory = TempDir::new();
    let little = recorded(&directory, "a.trec", "1000");
    let much = recorded(&directory, "b.trec", "300000000");
    let same = recorded(&directory, "c.trec", "1000");
    let card = proof(&[&little, &much], "asks for more tree.read_chars", &[]).done();
    assert!(
        card.starts_with("> asks for more tree.read\\_chars\n")
            || card.starts_with("> asks for more"),
        "{card}"
    );
    assert!(
        card.contains("One run of each: this shows what moved, not that the claim holds."),
        "{card}"
    );
    let row = card.lines().find(|line| line.starts_with("| `tree.read_chars`"));
    assert!(row.is_some_and(|row| !row.contains("did not move")), "{card}");
    let asked = proof(&[&little, &same], "x", &["--counter", "tree.read_chars"]).done();
    assert!(asked.contains("No counter that belongs to the claim moved"), "{asked}");
    assert!(asked.contains("| did not move |"), "{asked}");
}

#[test]
fn the_html_is_one_file_that_needs_nothing() {
    let directory = TempDir::new();
    let file = recorded(&directory, "a.trec", "1000");
    let page = directory.join("card.html");
    let options = ["--html", page.to_str().unwrap()];
    assert_eq!(proof(&[&file, &file], "<b>swap</b>", &options).done(), "");
    let text = fs::read_to_string(page).unwrap();
    assert!(text.starts_with("<!doctype html>") && text.contains("&lt;b&gt;swap"), "{text}");
    for never in ["http:", "https:", "src=", "<script"] {
        assert!(!text.contains(never), "{never}: {text}");
    }
    assert!(text.contains("(a.trec)"), "a card names files, not places: {text}");
}

#[test]
fn what_cannot_be_carded_is_refused() {
    let directory = TempDir::new();
    let file = recorded(&directory, "a.trec", "1000");
    proof(&[&file, &file], "x", &["--counter", "no.such"]).refused(2, "no.such");
    proof(&[&file, "/nonexistent"], "x", &[]).refused(2, "/nonexistent");
    proof(&[&file, &file], " ", &[]).refused(2, "--claim");
    terrace(&format!("proof {file} {file}")).refused(2, "--claim");
}

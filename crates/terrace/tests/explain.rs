//! `terrace explain`: a page and valid JSON for a whole recording, a part of one, a cut one;
//! and a refusal for what is none.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use support::{run, run_command, terrace, valid_explanation};
use testkit::TempDir;

/// A recording of a command that slept for half a second.
fn recorded(directory: &TempDir) -> PathBuf {
    let file = directory.join("x.trec");
    let options = ["--quiet", "--rate", "50", "-o", file.to_str().unwrap()];
    run(run_command(&options, &["sh", "-c", "sleep 0.5"])).done();
    file
}

fn json(file: &Path, options: &str) -> Value {
    let line = format!("explain --json {options} {}", file.display());
    valid_explanation(&terrace(&line).done())
}

#[test]
fn a_page_and_its_details() {
    let directory = TempDir::new();
    let file = recorded(&directory);
    let brief = terrace(&format!("explain {}", file.display())).done();
    assert!(brief.starts_with("-- terrace: sh -c 'sleep 0.5' -"), "{brief}");
    assert!(brief.contains(&format!("terrace explain {} --details", file.display())));
    let full = terrace(&format!("explain --details {}", file.display())).done();
    for title in ["Wall time: ", "Thread time: ", "Not to blame", "Watching cost "] {
        assert!(full.contains(title), "{title} in {full}");
    }
    let out = directory.join("page");
    let line = format!("explain {} -o {}", file.display(), out.display());
    assert_eq!(terrace(&line).done(), "");
    assert_eq!(fs::read_to_string(out).unwrap(), brief);
}

#[test]
fn the_json_is_valid_and_says_what_it_is_about() {
    let directory = TempDir::new();
    let value = json(&recorded(&directory), "");
    assert_eq!(value["schema"], "terrace.explain/1");
    assert_eq!((&value["from_ns"], &value["to_ns"]), (&0.into(), &value["wall_ns"]));
    assert!(value["wall_ns"].as_u64().unwrap() >= 500_000_000, "{value}");
    assert!(value["ending"].as_str().unwrap().contains("exit 0"), "{value}");
}

#[test]
fn a_part_of_it() {
    let directory = TempDir::new();
    let file = recorded(&directory);
    let value = json(&file, "--from 100ms --to 0.3s");
    let ns = |name: &str| value[name].as_u64().unwrap();
    // From the last sample before to the first one after, wherever a busy machine took them.
    assert!(ns("from_ns") <= 100_000_000 && ns("to_ns") >= 300_000_000, "{value}");
    assert_eq!(ns("wall_ns"), ns("to_ns") - ns("from_ns"));
    assert_eq!(json(&file, "--at 0s")["from_ns"], 0);
    let outside = terrace(&format!("explain {} --from 1h", file.display()));
    outside.refused(2, "the recording has nothing there");
    let backwards = terrace(&format!("explain {} --from 0.3s --to 0.2s", file.display()));
    backwards.refused(2, "--to is not after --from");
}

#[test]
fn a_recording_that_was_cut_opens_and_says_so() {
    let directory = TempDir::new();
    let file = recorded(&directory);
    let whole = fs::read(&file).unwrap();
    let cut = directory.join("cut.trec");
    fs::write(&cut, &whole[..whole.len() - 1]).unwrap();
    let value = json(&cut, "");
    assert!(!value["doubts"].as_array().unwrap().is_empty(), "{value}");
    let page = terrace(&format!("explain {}", cut.display())).done();
    assert!(page.contains("Doubt: "), "{page}");
}

#[test]
fn what_is_no_recording_is_refused() {
    let directory = TempDir::new();
    let refused = |name: &str, bytes: &[u8]| {
        let file = directory.join(name);
        fs::write(&file, bytes).unwrap();
        terrace(&format!("explain {}", file.display())).refused(2, name);
    };
    refused("empty", b"");
    refused("text", b"a letter that somebody wrote to somebody else, long ago");
    refused("zeros", &[0; 65_536]);
    terrace("explain /dev/null").refused(2, "/dev/null");
}

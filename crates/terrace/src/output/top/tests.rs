//! Pictures of recordings as text: what stands where, at any size.
//! The recordings are the fixtures of `explain`, looked at as files and as if they went on.

use super::*;
use crate::output::table::length;
use explain::recording::{Window, explain};
use record::file::open;
use std::path::Path;
use viewer::questions::questions;

fn fixture(name: &str) -> Recording {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/recordings");
    open(&Path::new(fixtures).join(name)).unwrap()
}

/// The picture of a recording after some keys, and what was looked at.
fn shown(recording: &Recording, actions: &[KeyAction], size: ScreenSize, is_live: bool) -> String {
    let extent =
        TimeExtent { first_ns: 0, last_ns: recording.wall_ns(), columns: size.columns(), is_live };
    let questions = questions().unwrap();
    let explained = |cursor: &Cursor| {
        let window = cursor
            .window(&extent)
            .map(|(from_ns, to_ns)| Window { from_ns: Some(from_ns), to_ns: Some(to_ns) });
        explain(recording, window.unwrap_or_default())
    };
    let mut cursor = Cursor::default();
    for action in actions {
        cursor.apply(*action, &extent, &names(&explained(&cursor)), questions.len());
    }
    let lines = picture(&Scene {
        recording,
        explanation: Some(&explained(&cursor)),
        cursor: &cursor,
        extent,
        file: Some("x.trec"),
        questions: &questions,
        glyphs: Glyphs::Ascii,
        size,
    });
    let joined = |line: &Toned| line.iter().map(|(_, text)| text.as_str()).collect::<String>();
    let lines: Vec<String> = lines.iter().map(joined).collect();
    lines.join("\n")
}

const USUAL: ScreenSize = ScreenSize { width: 80, height: 24 };

#[test]
fn a_cold_read_is_named_with_its_proof_and_its_lane() {
    let recording = fixture("cold_read.trec");
    let text = shown(&recording, &[], USUAL, false);
    let whole = explain(&recording, Window::default());
    let claim = whole.findings[0].finding.claim.clone();
    let first_words: String = claim.chars().take(30).collect();
    assert!(text.contains(&format!(">  1 {first_words}").replace(">  1", "> 1")), "{text}");
    assert!(text.contains("block I/O"), "{text}");
    assert!(text.contains(" disk   read "), "{text}");
    assert!(text.contains("all of "), "{text}");
}

#[test]
fn every_size_has_its_lines_and_none_is_too_long() {
    for name in ["cold_read.trec", "swap_random.trec", "lock_contention.trec"] {
        let recording = fixture(name);
        for width in [39, 40, 59, 60, 80, 99, 100, 133, 200] {
            for height in [2, 6, 12, 15, 18, 24, 36, 60] {
                let size = ScreenSize { width, height };
                for (actions, is_live) in [
                    (&[][..], false),
                    (&[KeyAction::Earlier][..], true),
                    (&[KeyAction::Oldest, KeyAction::Down][..], true),
                    (&[KeyAction::Help][..], false),
                ] {
                    let text = shown(&recording, actions, size, is_live);
                    assert_eq!(text.split('\n').count(), height, "{size:?}\n{text}");
                    for line in text.split('\n') {
                        assert!(length(line) <= width, "{size:?}: {line}\n{text}");
                    }
                }
            }
        }
    }
}

#[test]
fn another_moment_says_so_and_marks_its_column() {
    let recording = fixture("swap_random.trec");
    let live = shown(&recording, &[], USUAL, true);
    assert!(live.contains(" live: the last ") && live.contains("  now "), "{live}");
    let back = shown(&recording, &[KeyAction::Earlier, KeyAction::Earlier], USUAL, true);
    assert!(back.contains(" ago, the ") && back.contains("End returns"), "{back}");
    assert!(back.contains(" then ") && back.contains("End now"), "{back}");
    let axis = back.lines().find(|line| line.contains(" a column")).unwrap();
    assert!(axis.contains('v'), "{back}");
}

#[test]
fn a_small_screen_names_the_cause_and_each_question_it_has_room_for() {
    let recording = fixture("cold_read.trec");
    let small = ScreenSize { width: 40, height: 12 };
    let text = shown(&recording, &[], small, false);
    assert!(text.contains("> 1 ") && text.contains("block I/O"), "{text}");
    let one = shown(&recording, &[KeyAction::Question], USUAL, false);
    let lanes = one.lines().skip_while(|line| !line.contains(" a column")).skip(1);
    let titles: Vec<&str> = lanes.filter_map(|line| line.get(1..7)).collect();
    assert_eq!(titles[0], "waits ");
    assert!(titles[1..].iter().all(|title| !["memory", "disk  ", "cache "].contains(title)));
}

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
    shown_with(recording, &[], actions, size, is_live)
}

/// The same, with moments that stood out.
fn shown_with(
    recording: &Recording,
    moments: &[StandingOut],
    actions: &[KeyAction],
    size: ScreenSize,
    is_live: bool,
) -> String {
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
        if *action == KeyAction::Moment {
            cursor.go_to_next(moments, &extent);
            continue;
        }
        cursor.apply(*action, &extent, &names(&explained(&cursor)), questions.len());
    }
    let lines = picture(&Scene {
        recording,
        explanation: Some(&explained(&cursor)),
        cursor: &cursor,
        extent,
        moments,
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

/// The heading of the table of processes and what is below it, up to the axis.
fn table(text: &str) -> Vec<&str> {
    let lines = text.lines().skip_while(|line| !line.contains(" process"));
    lines.take_while(|line| !line.contains(" a column")).collect()
}

const WIDE: ScreenSize = ScreenSize { width: 160, height: 50 };

#[test]
fn processes_of_one_name_have_their_number_in_parentheses_and_no_pid() {
    let mut recording = testkit::who_recording();
    let browser = recording.who.processes.iter_mut().find(|process| process.pid == 4711).unwrap();
    browser.is_many = true;
    let id = browser.id;
    let rows = recording.who.rows.iter_mut().filter(|row| row.process == id);
    rows.for_each(|row| row.processes = 3);
    let text = shown(&recording, &[], WIDE, true);
    let row = table(&text).into_iter().find(|row| row.contains(" browser (")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((words[0], words[1]), ("-", "browser"), "{text}");
    let count: u64 = words[2].trim_matches(['(', ')']).parse().unwrap();
    assert!(count >= 3 && count.is_multiple_of(3), "{text}");
}

#[test]
fn processes_stand_below_the_findings_with_the_busiest_first() {
    let recording = testkit::who_recording();
    let text = shown(&recording, &[], WIDE, true);
    let table = table(&text);
    assert!(table[0].contains(" CPUv ") && table[0].contains(" unit or group"), "{text}");
    assert!(table[1].contains("   4711 browser ") && table[1].contains(" 55 % "), "{text}");
    assert!(table[1].contains("session-3.scope"), "{text}");
    // What belongs to no process is the last row.
    let last = table.last().unwrap();
    assert!(last.contains(" other"), "{text}");
    assert!(text.contains(" Processes in 2 s: 16"), "{text}");
}

#[test]
fn keys_sort_by_each_column_and_turn_the_order_around() {
    let recording = testkit::who_recording();
    let first = |actions: &[KeyAction]| {
        let text = shown(&recording, actions, WIDE, true);
        let table = table(&text);
        (table[0].to_owned(), table[1].to_owned())
    };
    use KeyAction::{Reverse, SortLeft, SortRight};
    let (heading, row) = first(&[SortRight; 8]);
    assert!(heading.contains(" memoryv") && row.contains(" browser "), "{heading}\n{row}");
    let (heading, row) = first(&[SortRight; 9]);
    assert!(heading.contains(" growth/sv") && row.contains(" leak ") && row.contains("+19 MiB"));
    let (heading, row) = first(&[SortLeft]);
    assert!(heading.contains(" process^") && row.contains(" <b>\\x1b[31mx"), "{heading}\n{row}");
    let (heading, row) = first(&[SortLeft, SortLeft, Reverse]);
    assert!(heading.contains(" pid^") && row.contains("   999 "), "{heading}\n{row}");
    for count in 0..14 {
        let (heading, _) = first(&vec![SortRight; count]);
        assert_eq!(heading.matches(['v', '^']).count(), 1, "{heading}");
    }
}

#[test]
fn a_moment_of_the_past_has_its_own_processes() {
    let recording = testkit::who_recording();
    // 40 s in columns of a second: back to the backup.
    let back = vec![KeyAction::Earlier; 15];
    let text = shown(&recording, &back, WIDE, true);
    let table = table(&text);
    assert!(table[1].contains("    812 backup "), "{text}");
    assert!(table[1].contains(" 150 MB ") && table[1].contains("backup.service"), "{text}");
    assert!(table[2].contains(" kswapd0 ") && table[2].contains("(kernel)"), "{text}");
    assert!(table[3].contains(" browser ") && table[3].contains(" 16 MB "), "{text}");
}

#[test]
fn a_filter_keeps_names_and_groups_and_the_rest_is_others() {
    let recording = testkit::who_recording();
    let typed = |text: &str, end: &[KeyAction]| {
        let letters = text.chars().map(KeyAction::Letter);
        let actions: Vec<_> =
            [KeyAction::Filter].into_iter().chain(letters).chain(end.iter().copied()).collect();
        shown(&recording, &actions, WIDE, true)
    };
    let text = typed("CC1", &[]);
    assert!(text.contains(": 16, 12 with \"CC1_\" in their name or group"), "{text}");
    assert!(text.lines().last().unwrap().contains("Enter keep"), "{text}");
    assert!(!text.contains(" leak "), "{text}");
    assert!(table(&text).last().unwrap().contains(" others "), "{text}");
    let text = typed("i>.serx", &[KeyAction::Erase, KeyAction::FilterKept]);
    assert!(text.contains(", 1 with \"i>.ser\" in") && text.contains(" <i>.service"), "{text}");
    let text = typed("nobody", &[KeyAction::FilterDropped]);
    assert!(text.contains(" browser ") && !text.contains("nobody"), "{text}");
}

#[test]
fn panes_take_turns_and_every_size_of_a_table_has_its_lines() {
    let recording = testkit::who_recording();
    let alone = shown(&recording, &[KeyAction::Panes], WIDE, true);
    assert!(!alone.contains(" a column") && alone.contains(" cc1 "), "{alone}");
    let lanes = shown(&recording, &[KeyAction::Panes, KeyAction::Panes], WIDE, true);
    assert!(lanes.contains(" a column") && !lanes.contains(" process "), "{lanes}");
    for width in [39, 40, 60, 80, 100, 160, 300] {
        for height in [2, 6, 12, 18, 24, 60] {
            for count in 0..14 {
                let size = ScreenSize { width, height };
                let text = shown(&recording, &vec![KeyAction::SortRight; count], size, true);
                assert_eq!(text.split('\n').count(), height, "{size:?}\n{text}");
                assert!(text.split('\n').all(|line| length(line) <= width), "{size:?}\n{text}");
            }
        }
    }
}

#[test]
fn where_processes_are_not_watched_one_line_says_why() {
    let mut recording = fixture("cold_read.trec");
    let closed = model::recording::SourceState::closed("BPF is refused", Some("run it as root"));
    recording.facts.sights.insert("who".to_owned(), closed);
    let text = shown(&recording, &[], WIDE, true);
    let why = "Processes were not watched: BPF is refused. Would show them: run it as root.";
    assert_eq!(text.matches(why).count(), 1, "{text}");
}

#[test]
fn moments_that_stood_out_are_on_the_axis_and_a_key_goes_to_each() {
    let recording = fixture("cold_read.trec");
    let wall_ns = recording.wall_ns();
    let moment = |part: u64, claim: &str| StandingOut {
        from_ns: wall_ns * part / 10,
        to_ns: wall_ns * (part + 1) / 10,
        time: format!("14:32:0{part}"),
        claim: claim.to_owned(),
        ..StandingOut::default()
    };
    let moments = [moment(2, "Waited for reads."), moment(6, "Waited for writes.")];
    let after = |keys: usize| {
        let keys = vec![KeyAction::Moment; keys];
        let text = shown_with(&recording, &moments, &keys, USUAL, false);
        let line = text.lines().nth(2).unwrap().to_owned();
        (line, text)
    };
    let (line, text) = after(0);
    assert_eq!(line, " 2 moments stood out (m goes to the next): 14:32:02, 14:32:06", "{text}");
    let axis = text.lines().find(|line| line.contains(" a column")).unwrap();
    assert!(axis.matches('!').count() > 1, "{text}");
    for (keys, claim) in [(1, "reads"), (2, "writes"), (3, "reads")] {
        let (line, text) = after(keys);
        assert!(line.starts_with(" 14:32:0") && line.ends_with(claim), "{keys}: {text}");
    }
    let without = shown(&recording, &[], USUAL, false);
    assert!(!without.contains("stood out") && !without.contains('!'), "{without}");
}

//! The page of a recorded survey at several widths, compared with checked-in pages.
//!
//! `TERRACE_BLESS=1 cargo test -p terrace` rewrites the pages; read the difference then.

use super::*;
use crate::args;
use std::path::PathBuf;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn recorded() -> Survey {
    serde_json::from_str(&std::fs::read_to_string(fixture("survey.json")).unwrap()).unwrap()
}

fn brief(survey: &Survey, width: usize) -> String {
    page(survey, Detail::Brief, Page::plain(width))
}

fn assert_page(name: &str, text: &str) {
    let path = fixture(name);
    if std::env::var_os("TERRACE_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(text == expected, "{name} differs:\n{text}");
}

#[test]
fn the_page_at_40_80_and_140_columns() {
    let survey = recorded();
    for (name, width, detail) in [
        ("survey-40.txt", 40, Detail::Brief),
        ("survey-80.txt", 80, Detail::Brief),
        ("survey-140.txt", 140, Detail::Brief),
        ("survey-40-details.txt", 40, Detail::Full),
        ("survey-80-details.txt", 80, Detail::Full),
        ("survey-140-details.txt", 140, Detail::Full),
    ] {
        assert_page(name, &page(&survey, detail, Page::plain(width)));
    }
}

#[test]
fn no_line_is_wider_than_the_page() {
    let survey = recorded();
    for (width, detail) in (40..180).flat_map(|w| [(w, Detail::Brief), (w, Detail::Full)]) {
        for line in page(&survey, detail, Page::plain(width)).lines() {
            // Only a word that cannot be broken may be wider, and then stands alone.
            let tied = ["Seen:", "terrace ", "sudo terrace "];
            let is_tied = tied.iter().any(|start| line.trim_start().starts_with(start));
            let unbroken = is_tied || !line.trim().contains(' ');
            assert!(line.chars().count() <= width || unbroken, "{width}: {line}");
            assert_eq!(line, line.trim_end(), "{width}");
        }
    }
}

#[test]
fn at_80_columns_no_column_of_the_promised_table_is_missing() {
    let mut crowded = recorded();
    for finding in &mut crowded.findings {
        finding.tier = Some("RAM".to_owned());
    }
    let tier = crowded.tiers.last_mut().unwrap();
    tier.name = format!("/dev/shm/{}mount  loop0", "deep/".repeat(30));
    for survey in [recorded(), crowded] {
        let text = brief(&survey, 80);
        let titles = text.lines().find(|line| line.contains("level")).unwrap();
        for title in ["level", "10x/step", "p50", "p99", "read", "write", "size", "seen"] {
            assert!(titles.contains(title), "{text}");
        }
    }
}

/// What a narrow page cannot hold goes in this order: the grade first, then the bar.
#[test]
fn the_bar_stays_longer_than_the_grade() {
    let survey = recorded();
    let mut grade_alone_went = false;
    for width in 40..80 {
        let text = brief(&survey, width);
        let titles = text.lines().find(|line| line.contains("level")).unwrap();
        let (bar, grade) = (titles.contains("10x/step"), titles.contains("seen"));
        assert!(bar || !grade, "{width}: {titles}");
        grade_alone_went |= bar && !grade;
    }
    assert!(grade_alone_went);
}

#[test]
fn a_brief_page_says_what_is_odd_and_what_to_do_and_where_the_rest_is() {
    let survey = recorded();
    let text = brief(&survey, 80);
    for absent in ["Seen:", "Confirm:", "Risk", "Not checked:"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    let remedies = survey.findings.iter().filter(|f| f.remedy.is_some());
    assert_eq!(text.matches(" Do: ").count(), remedies.count(), "{text}");
    assert_eq!(text.matches("--details, or --json.").count(), 1, "{text}");
    assert!(text.contains("2 not possible here (--details says why)"), "{text}");
    let full = page(&survey, Detail::Full, Page::plain(80));
    assert!(!full.contains("--details"), "{full}");
    assert!(full.contains("Not checked:"), "{full}");
}

#[test]
fn each_finding_is_marked_at_its_level() {
    let survey = recorded();
    let text = brief(&survey, 140);
    for (number, finding) in (1..).zip(&survey.findings) {
        let Some(tier) = &finding.tier else { continue };
        let line = text.lines().find(|line| line.trim_start().starts_with(tier.as_str()));
        let numbers = line.unwrap().split("<- ").nth(1).unwrap();
        assert!(numbers.split(',').any(|n| n == format!("{number}")), "{line:?}");
    }
}

#[test]
fn a_level_without_single_requests_has_its_median_and_no_p99() {
    let text = brief(&recorded(), 80);
    let line = text.lines().find(|line| line.starts_with(" L1 cache")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[3..6], ["0.9", "ns", "-"], "{line}");
}

#[test]
fn nothing_odd_and_nothing_seen_is_still_a_page() {
    let mut survey = recorded();
    survey.findings.clear();
    survey.tiers.clear();
    survey.unchecked.clear();
    survey.skipped.clear();
    survey.machine = MachineFacts { usable_cpus: 1, online_cpus: 1, ..MachineFacts::default() };
    survey.cost.written_bytes = 0;
    survey.interrupted = true;
    let text = brief(&survey, 80);
    assert!(text.starts_with("terrace survey"), "{text}");
    assert!(text.contains("1 core; 47 s; wrote nothing; interrupted"), "{text}");
    assert!(text.contains("Nothing odd"), "{text}");
    assert!(!text.contains("--details"), "{text}");
}

#[test]
fn commands_named_under_next_exist() {
    for root in [true, false] {
        let mut survey = recorded();
        survey.machine.root = root;
        let text = next(&survey, Page::plain(200));
        let commands = text.trim().trim_start_matches("Next: ").split(", ");
        for command in commands {
            let line = command.trim_start_matches("sudo ").split(" (").next().unwrap();
            let words = line.split_whitespace().map(std::ffi::OsString::from);
            assert!(args::parse(words).is_ok(), "{command}");
        }
    }
}

#[test]
fn colour_adds_nothing_but_codes() {
    let survey = recorded();
    let coloured = Page { width: 80, style: crate::output::style::Style::new(true) };
    let marked = page(&survey, Detail::Full, coloured);
    let mut text = crate::output::clean::printable(&marked).into_owned();
    assert!(text.contains('\x1b'));
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[33m"] {
        text = text.replace(code, "");
    }
    assert_eq!(text, page(&survey, Detail::Full, Page::plain(80)));
}

//! The pages of made comparisons: what must stand on them, and how wide they may be. Real
//! ones are shown in `tests/compare.rs`.

use super::*;
use model::compared::SCHEMA;
use model::estimate::Better;

fn item(of: &str, name: &str, verdict: DifferenceVerdict) -> ComparedFigure {
    ComparedFigure {
        of: of.to_owned(),
        name: name.to_owned(),
        unit: "ns".to_owned(),
        better: (of != "finding").then_some(Better::Lower),
        first: Some(1e9),
        second: Some(1.5e9),
        difference: Some(0.5e9),
        low: Some(0.4e9),
        high: Some(0.6e9),
        p: Some(0.0002),
        provable: None,
        first_runs: 10,
        second_runs: 10,
        verdict,
        basis: Basis::Ranks,
    }
}

fn part(name: &str, within: Option<&str>, difference_ns: f64) -> DifferencePart {
    DifferencePart {
        name: name.to_owned(),
        within: within.map(str::to_owned),
        first_ns: 0.5e9,
        second_ns: 0.5e9 + difference_ns,
        difference_ns,
        low_ns: Some(difference_ns - 0.1e9),
        high_ns: Some(difference_ns + 0.1e9),
        verdict: DifferenceVerdict::Larger,
    }
}

fn made() -> Comparison {
    let side = |name: &str| Side {
        name: name.to_owned(),
        files: vec!["a.first.1.trec".to_owned(), "a.first.2.trec".to_owned()],
        runs: 10,
    };
    Comparison {
        schema: SCHEMA.to_owned(),
        what: ComparisonSubject::Recordings,
        first: side("cat 'x|y'\n`z`"),
        second: side("cat z"),
        sentence: "The second takes 500 ms longer.".to_owned(),
        items: vec![
            item("wall", "wall", DifferenceVerdict::Larger),
            item("slice", "run", DifferenceVerdict::Unproven),
            item("finding", "refaults", DifferenceVerdict::Larger),
        ],
        split: Some(TimeDifference {
            first_ns: 1e9,
            second_ns: 1.5e9,
            difference_ns: 0.5e9,
            low_ns: Some(0.4e9),
            high_ns: Some(0.6e9),
            parts: vec![part("block_io", None, 0.5e9), part("refault", Some("block_io"), 0.45e9)],
        }),
        aligned: None,
        tried: None,
        notes: vec!["A note.".to_owned()],
    }
}

#[test]
fn the_page_says_what_made_the_difference() {
    let text = page(&made(), Page::plain(100));
    for words in [
        "10 runs a.first.1.trec and 1 more",
        "The second takes 500 ms longer.",
        "+500 ms  +400 ms to +600 ms  larger",
        "  refault",
        "larger, worse",
        "<0.001",
        " A note.",
    ] {
        assert!(text.contains(words), "{words} in\n{text}");
    }
    assert!(!text.contains("slice"), "{text}");
    assert!(details(&made(), Page::plain(100)).contains("slice"));
}

#[test]
fn pages_are_no_wider_than_asked_for() {
    for width in [50, 80, 132] {
        let text = details(&made(), Page::plain(width));
        let widest = text.lines().map(length).max().unwrap();
        assert!(widest <= width, "{width}: {widest}\n{text}");
    }
}

#[test]
fn markdown_keeps_its_columns_whatever_the_names() {
    let text = markdown(&made());
    assert!(text.contains("`` cat 'x|y' `z` ``, 10 runs"), "{text}");
    assert!(text.contains("| &nbsp;&nbsp;refault |"), "{text}");
    for table in text.split("\n\n").filter(|part| part.starts_with("| ")) {
        let columns: Vec<usize> = table.lines().map(|line| line.matches(" |").count()).collect();
        assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "{table}");
    }
}

#[test]
fn what_a_side_lacks_is_a_dash() {
    let mut comparison = made();
    comparison.what = ComparisonSubject::Surveys;
    comparison.items[1] = ComparedFigure {
        second: None,
        difference: None,
        low: None,
        basis: Basis::Nothing,
        ..item("RAM", "latency", DifferenceVerdict::Unproven)
    };
    let text = page(&comparison, Page::plain(120));
    let line = text.lines().find(|line| line.contains("RAM")).unwrap();
    assert!(line.contains(" - ") && line.ends_with("one side only"), "{line}");
}

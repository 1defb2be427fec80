//! Cards of made recordings: which counters a claim finds, which of them moved, and what is said
//! when none did.

use super::*;
use model::recording::{RecordingOutcome, Schema, Tick};

/// A recording of a second in which these counters grew from 5 by so much.
fn grown(counters: &[(&str, &str, i64)]) -> Recording {
    let series = counters.iter().map(|(name, unit, growth)| {
        let mut series = Series {
            schema: Schema {
                name: (*name).to_owned(),
                unit: (*unit).to_owned(),
                ..Schema::default()
            },
            steps: model::recording::Steps::new(),
        };
        series.push(0, Some(5));
        series.push(1, Some(5 + growth));
        series
    });
    let tick = |at_ns| Tick { due_ns: at_ns, at_ns };
    Recording {
        ticks: vec![tick(0), tick(1_000_000_000)],
        series: series.collect(),
        outcome: Some(RecordingOutcome { ended_ns: 1_000_000_000, ..RecordingOutcome::default() }),
        ..Recording::default()
    }
}

fn claims(claim: &str) -> Asked {
    Asked { claim: claim.to_owned(), counters: Vec::new() }
}

fn shown(card: &ProofCard) -> Vec<(&str, bool)> {
    let all = card.counters.iter();
    all.map(|it| (it.series.as_str(), it.moved)).collect()
}

#[test]
fn the_counter_that_the_claim_speaks_of_is_found_and_moved() {
    let first =
        grown(&[("vmstat.pswpin", "count", 40_000), ("tree.write_bytes", "bytes", 1 << 30)]);
    let second = grown(&[("vmstat.pswpin", "count", 100), ("tree.write_bytes", "bytes", 1 << 20)]);
    let card = card(&first, &second, &claims("zram makes swapping cheap"));
    assert_eq!(shown(&card), [("vmstat.pswpin", true)]);
    assert!(card.verdict.starts_with("One counter moved: `vmstat.pswpin`. One run of each"));
}

#[test]
fn that_none_moved_is_said_with_the_one_that_should_have() {
    let run = grown(&[("vmstat.pswpin", "count", 40_000), ("vmstat.pgfault", "count", 9)]);
    let near = grown(&[("vmstat.pswpin", "count", 41_000), ("vmstat.pgfault", "count", 9_000)]);
    let card = card(&run, &near, &claims("no more swapping"));
    assert_eq!(shown(&card), [("vmstat.pswpin", false)]);
    assert!(card.verdict.contains("No counter that belongs to the claim moved: `vmstat.pswpin`"));
    let none = super::card(&run, &near, &claims("it feels faster"));
    assert!(none.counters.is_empty() && none.verdict.starts_with("No counter"));
}

#[test]
fn what_is_asked_for_is_shown_in_that_order_whatever_it_did() {
    let first = grown(&[("a.x", "count", 1), ("b.y", "bytes", 1 << 30)]);
    let second = grown(&[("b.y", "bytes", 0)]);
    let asked =
        Asked { claim: "reads".to_owned(), counters: vec!["b.y".to_owned(), "a.x".to_owned()] };
    let card = card(&first, &second, &asked);
    assert_eq!(shown(&card), [("b.y", true), ("a.x", false)]);
    assert_eq!(card.counters[1].second, None, "absent is not 0");
}

#[test]
fn a_few_more_or_a_tenth_less_is_no_move() {
    assert!(!is_moved(0.0, 16.0, "count") && is_moved(0.0, 17.0, "count"));
    assert!(!is_moved(1000.0, 1080.0, "count") && is_moved(1000.0, 1200.0, "count"));
    assert!(!is_moved(0.0, 1e6, "ns") && is_moved(0.0, 2e6, "ns"));
}

#[test]
fn single_processors_and_outer_groups_are_left_out() {
    let names = ["stat.cpu0.steal_ns", "group1.memory.stat.pgsteal", "own.steal_ns"];
    let growths: Vec<_> = names.map(|name| (name, "ns", 1 << 40)).to_vec();
    let card = card(&grown(&growths), &grown(&[]), &claims("memory stolen"));
    assert!(card.counters.is_empty(), "{card:?}");
}

#[test]
fn half_of_a_lot_tells_more_than_all_of_a_little() {
    let first =
        grown(&[("tree.write_bytes", "bytes", 400 << 10), ("tree.read_bytes", "bytes", 4 << 30)]);
    let second = grown(&[("tree.write_bytes", "bytes", 0), ("tree.read_bytes", "bytes", 2 << 30)]);
    let card = card(&first, &second, &claims("spares the disk"));
    assert_eq!(shown(&card), [("tree.read_bytes", true), ("tree.write_bytes", true)]);
}

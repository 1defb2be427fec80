//! Comparisons of made recordings of a server: their work is counted once a second. Real ones are
//! compared with the program.

use super::*;
use crate::recording::explain;
use model::recording::{DeviceFacts, RecordingOutcome, Schema, Series, Steps, Tick};

/// Samples in a second.
const HZ: u32 = 10;

fn series(id: u32, name: &str, growths: impl Iterator<Item = u64>) -> Series {
    let schema =
        Schema { id, name: name.to_owned(), unit: "count".to_owned(), ..Schema::default() };
    let mut series = Series { schema, steps: Steps::new() };
    let mut value = 1_000;
    series.push(0, Some(value));
    for (sample, growth) in (1..).zip(growths) {
        value += growth.cast_signed();
        series.push(sample, Some(value));
    }
    series
}

/// A server that is watched for so many seconds, with the work and the reads of each of them.
fn server(work: &[u64], reads: u64) -> Recording {
    let samples = work.len() as u32 * HZ;
    let mut recording = Recording {
        outcome: Some(RecordingOutcome {
            ending: Ending::Stopped,
            ended_ns: u64::from(samples) * 100_000_000,
            ..RecordingOutcome::default()
        }),
        ..Recording::default()
    };
    recording.facts.subject = Subject::Group { path: "/pg".to_owned(), unit: None };
    recording.facts.devices =
        vec![DeviceFacts { name: "vda".to_owned(), ..DeviceFacts::default() }];
    recording.ticks = (0..=samples)
        .map(|sample| {
            let at_ns = u64::from(sample) * 100_000_000;
            Tick { due_ns: at_ns, at_ns }
        })
        .collect();
    // Counted once a second, as servers do.
    let of_second =
        |sample: u32| if sample.is_multiple_of(HZ) { work[(sample / HZ - 1) as usize] } else { 0 };
    recording.series = vec![
        series(0, "work.xact_commit", (1..=samples).map(of_second)),
        series(1, "disk.vda.reads", (1..=samples).map(|_| reads / u64::from(HZ))),
    ];
    recording
}

fn compared(first: &[Recording], second: &[Recording]) -> Comparison {
    let explained = |runs: &[Recording]| -> Vec<Explanation> {
        runs.iter().map(|run| explain(run, Window::default())).collect()
    };
    let steady = |runs: &[Recording]| -> Vec<SteadyRun> {
        runs.iter().map(|run| steady_run(run).unwrap()).collect()
    };
    rates((&explained(first), &steady(first)), (&explained(second), &steady(second)))
}

const CALM: [u64; 10] = [1000, 1020, 990, 1010, 980, 1000, 1015, 985, 1005, 995];

#[test]
fn more_work_in_a_second_is_said_as_so_many_times_with_its_interval() {
    let fast = CALM.map(|work| work * 5 / 2);
    let comparison = compared(&[server(&CALM, 900)], &[server(&fast, 100)]);
    let rate = &comparison.items[0];
    assert_eq!((rate.of.as_str(), rate.name.as_str()), ("rate", "xact_commit"));
    assert_eq!((rate.verdict, rate.basis), (DifferenceVerdict::Larger, Basis::Blocks));
    assert!(rate.worse_by().is_none());
    let sentence = &comparison.sentence;
    assert!(
        sentence.starts_with("The second does 2.5 times as much: 2,500 xact_commit a second instead of 1,000 (95 % interval 2.4"),
        "{sentence}"
    );
    assert!(sentence.contains("For each xact_commit: 0.86 requests fewer."), "{sentence}");
    let slower = compared(&[server(&fast, 0)], &[server(&CALM, 0)]);
    assert!(
        slower.sentence.starts_with("The second does 0.4 times as much"),
        "{}",
        slower.sentence
    );
    assert!(slower.worst().is_some_and(|(item, share)| item.of == "rate" && share > 0.55));
    let all = format!("{comparison:?}{slower:?}");
    assert!(!all.contains("\"wall\""), "lengths are not compared");
}

#[test]
fn the_same_is_unproven_and_so_is_what_drifts_more_than_it_differs() {
    let mut other = CALM;
    other.rotate_left(3);
    let comparison = compared(&[server(&CALM, 9)], &[server(&other, 9)]);
    assert!(comparison.sentence.starts_with("Unproven: "), "{}", comparison.sentence);
    let rising: Vec<u64> = (0..20).map(|second| 900 + 30 * second).collect();
    let comparison = compared(&[server(&[1000; 20], 9)], &[server(&rising, 9)]);
    assert_eq!(comparison.items[0].verdict, DifferenceVerdict::Unproven, "{comparison:?}");
    let short = compared(&[server(&CALM[..2], 9)], &[server(&[9000, 9000], 9)]);
    assert!(short.sentence.contains("too short"), "{}", short.sentence);
}

#[test]
fn without_counted_work_it_is_said_that_nothing_tells_more_from_faster() {
    let bare = |reads| {
        let mut recording = server(&CALM, reads);
        recording.series.remove(0);
        recording
    };
    let comparison = compared(&[bare(15_000)], &[bare(20)]);
    assert_eq!(comparison.items[0].name, "requests");
    let sentence = &comparison.sentence;
    assert!(
        sentence.contains("--work")
            && sentence.contains("20 requests a second to disks instead of 15,000"),
        "{sentence}"
    );
    assert_eq!(comparison.worst(), None);
    let mixed = compared(&[server(&CALM, 9)], &[bare(9)]);
    assert!(mixed.notes.iter().any(|note| note.contains("not counted alike")), "{mixed:?}");
}

#[test]
fn several_recordings_of_each_side_are_judged_by_ranks() {
    let side = |factor: u64| -> Vec<Recording> {
        (0..6).map(|run| server(&CALM.map(|work| work * factor + run), 9)).collect()
    };
    let comparison = compared(&side(1), &side(2));
    assert_eq!(comparison.items[0].basis, Basis::Ranks);
    assert!(comparison.sentence.contains("2 times as much"), "{}", comparison.sentence);
    assert!(comparison.notes.is_empty(), "{:?}", comparison.notes);
}

#[test]
fn a_command_has_a_length_of_its_own() {
    let mut recording = server(&CALM, 9);
    recording.facts.subject = Subject::Command { argv: Vec::new() };
    assert!(steady_run(&recording).is_none());
    assert!(steady_run(&Recording::default()).is_none());
}

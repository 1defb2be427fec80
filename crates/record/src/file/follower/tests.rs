//! Following a file that grows by any step, and a ring over its segments.
//! Damage and a cut end it; only a recording is followed.

use super::*;
use crate::file::{FileSink, Ring, Writer, read, read_ring};
use crate::{RecordSink, Registry, Row};
use model::recording::{Facts, RecordingOutcome, Span, Tick};
use std::fs::File;
use std::io::Write;
use testkit::TempDir;

/// A recording of 1,000 samples in ten chunks and more.
fn bytes() -> Vec<u8> {
    let mut registry = Registry::new();
    let gauge = model::recording::SeriesKind::Gauge;
    let id = registry.id("a", "count", gauge, "x").unwrap();
    let mut writer = Writer::new(Vec::new(), &Facts::default()).unwrap();
    let mut row = Row::default();
    for number in 0..1_000u64 {
        row.count(id, number * number);
        let tick = Tick { due_ns: number * 1_000, at_ns: number * 1_000 };
        writer.sample(tick, registry.schemas(), &row).unwrap();
        if number == 500 {
            let span =
                Span { kind: "mark".to_owned(), text: "half".to_owned(), start_ns: 1, end_ns: 2 };
            writer.span(&span).unwrap();
        }
    }
    writer.finish(&Facts::default(), &RecordingOutcome::default()).unwrap()
}

#[test]
fn a_file_that_grows_by_any_step_is_read_as_it_is_whole() {
    let whole = bytes();
    for step in [1, 7, 4_096] {
        let directory = TempDir::new();
        let path = directory.join("x.trec");
        let mut file = File::create(&path).unwrap();
        file.write_all(&whole[..16]).unwrap();
        let mut follower = Follower::open(&path).unwrap();
        let mut samples = 0;
        for piece in whole[16..].chunks(step) {
            assert!(!follower.is_over());
            file.write_all(piece).unwrap();
            follower.advance();
            let now = follower.recording().ticks.len();
            assert!(now >= samples && follower.recording().damage.is_empty());
            samples = now;
        }
        assert!(follower.is_over() && !follower.advance());
        assert_eq!(*follower.recording(), read(&whole[..]).unwrap(), "{step}");
    }
}

/// Samples that a reader sees after three seconds at 10 Hz and nothing more.
fn seen_after_three_seconds(is_followed: bool) -> usize {
    let mut registry = Registry::new();
    let gauge = model::recording::SeriesKind::Gauge;
    let id = registry.id("a", "count", gauge, "x").unwrap();
    let directory = TempDir::new();
    let path = directory.join("x.trec");
    let mut output = FileSink::create(&path, false, &Facts::default()).unwrap();
    let mut follower = Follower::open(&path).unwrap();
    if is_followed {
        follower.advance();
    }
    for number in 0..=30u64 {
        let mut row = Row::default();
        row.count(id, number);
        let (due_ns, at_ns) = (number * 100_000_000, number * 100_000_000);
        let tick = Tick { due_ns, at_ns };
        output.sample(tick, registry.schemas(), &row).unwrap();
    }
    follower.advance();
    follower.recording().ticks.len()
}

#[test]
fn rows_are_written_each_second_only_while_followed() {
    assert_eq!(seen_after_three_seconds(false), 0);
    assert!(seen_after_three_seconds(true) >= 20);
}

#[test]
fn damage_and_a_cut_end_the_following() {
    let mut damaged = bytes();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    let directory = TempDir::new();
    let path = directory.join("x.trec");
    std::fs::write(&path, &damaged).unwrap();
    let mut follower = Follower::open(&path).unwrap();
    follower.advance();
    assert!(follower.is_over());
    assert_eq!(follower.recording().damage.len(), 1);

    std::fs::write(&path, &bytes()[..middle]).unwrap();
    let mut follower = Follower::open(&path).unwrap();
    assert!(follower.advance() && !follower.is_over());
    File::options().write(true).open(&path).and_then(|file| file.set_len(20)).unwrap();
    follower.advance();
    assert!(follower.recording().damage[0].contains("cut"));
}

#[test]
fn only_a_recording_is_followed() {
    let directory = TempDir::new();
    let error = Follower::open(directory.path()).unwrap_err();
    assert!(error.to_string().contains("no recording is in it"), "{error}");
    let error = Follower::open(Path::new("/dev/null")).unwrap_err();
    assert!(error.to_string().contains("only a file"), "{error}");
    let path = directory.join("x");
    std::fs::write(&path, "no recording at all").unwrap();
    assert_eq!(Follower::open(&path).unwrap_err().kind, ErrorKind::NotARecording);
}

/// Segments of a second, none of which is removed.
const KEEP_NS: u64 = 24_000_000_000;

/// When the first of two runs began, and the second.
const FIRST_NS: u64 = 3_600_000_000_000;
const SECOND_NS: u64 = FIRST_NS + 9_000_000_000;

fn facts_from(started_unix_ns: u64) -> Facts {
    Facts { started_unix_ns, ..Facts::default() }
}

/// What there is at a sample: one from the beginning on, one that comes, one that goes, and one
/// of the first run only.
fn there(started_unix_ns: u64, number: u64) -> Vec<&'static str> {
    let all =
        [("a", true), ("b", number > 13), ("c", number < 25), ("d", started_unix_ns == FIRST_NS)];
    all.into_iter().filter_map(|(name, is)| is.then_some(name)).collect()
}

/// Records `samples` at 10 Hz, and asks after each of them.
fn run(directory: &Path, started_unix_ns: u64, samples: u64, mut each: impl FnMut(&mut Ring)) {
    let facts = facts_from(started_unix_ns);
    let mut registry = Registry::new();
    let mut ring = Ring::open(directory, KEEP_NS, 1 << 20, &facts).unwrap();
    for number in 0..samples {
        let mut row = Row::default();
        for name in there(started_unix_ns, number) {
            let id = registry.id(name, "count", model::recording::SeriesKind::Gauge, "x").unwrap();
            row.count(id, number / 3);
        }
        let at_ns = number * 100_000_000;
        let (due_ns, text) = (at_ns, format!("mark {number}"));
        let tick = Tick { due_ns, at_ns };
        ring.sample(tick, registry.schemas(), &row).unwrap();
        let span = Span { kind: "mark".to_owned(), text, start_ns: at_ns, end_ns: at_ns };
        ring.span(&span).unwrap();
        each(&mut ring);
    }
    ring.finish(&facts, &RecordingOutcome::default()).unwrap();
}

#[test]
fn a_ring_is_followed_over_its_segments_and_only_grows() {
    let directory = TempDir::new();
    // A run before, whose last words end nothing.
    run(directory.path(), FIRST_NS, 15, |_| {});
    let mut follower = None;
    let mut seen = 0;
    run(directory.path(), SECOND_NS, 57, |ring| {
        if seen % 5 != 3 {
            ring.flush().unwrap();
        }
        let follower = follower.get_or_insert_with(|| {
            let follower = Follower::open(directory.path()).unwrap();
            assert_eq!(follower.recording().ticks.len(), 15);
            follower
        });
        follower.advance();
        assert!(!follower.is_over());
        let now = follower.recording().ticks.len();
        assert!(now >= seen + 15 && now <= 15 + 57, "{now} after {seen}");
        seen = now - 15;
    });
    let mut follower = follower.unwrap();
    assert!(follower.advance() && follower.is_over());
    assert_eq!(*follower.recording(), read_ring(directory.path()).unwrap());
    for sample in 0..15 + 57u32 {
        let (started, number) = match sample.checked_sub(15) {
            None => (FIRST_NS, sample),
            Some(number) => (SECOND_NS, number),
        };
        let there = there(started, u64::from(number));
        for series in &follower.recording().series {
            let is_there = there.contains(&&*series.schema.name);
            let expected = is_there.then_some(i64::from(number / 3));
            assert_eq!(series.at(sample), expected, "{} {sample}", series.schema.name);
        }
    }
    let spans = &follower.recording().spans;
    assert_eq!(spans.iter().filter(|span| span.kind == "gap").count(), 1);
}

#[test]
fn a_follower_of_a_ring_gets_rows_each_second() {
    let directory = TempDir::new();
    let mut follower = None;
    run(directory.path(), 1, 8, |_| ());
    run(directory.path(), 5_000_000_000, 40, |_| {
        follower.get_or_insert_with(|| Follower::open(directory.path()).unwrap()).advance();
    });
    // Nothing was flushed by the recorder itself but at the ends of segments.
    assert!(follower.unwrap().recording().ticks.len() >= 8 + 25);
}

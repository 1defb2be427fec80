//! The flight recorder on the real disk: its bounds, a restart, what it never removes, and
//! that its segments join to what one long recording would have said. Time is what the
//! samples say, so nothing here waits.

#![allow(clippy::unwrap_used, reason = "a test program")]

use model::recording::{Ending, Facts, Recording, RecordingOutcome, SeriesKind, Span, Tick};
use proptest::prelude::*;
use record::file::{self, FileSink, Ring, SEGMENTS};
use record::{RecordSink, Registry, Row};
use std::path::Path;
use testkit::TempDir;

const SECOND_NS: u64 = 1_000_000_000;
const PERIOD_NS: u64 = SECOND_NS / 10;
const STARTED_NS: u64 = 1_800_000_000 * SECOND_NS;
const MUCH: u64 = 1 << 40;

/// One run of a recorder: samples that begin `after_ns` after [`STARTED_NS`], each with a
/// counter that tells its number, a mark at every hundredth, and `columns` more columns of
/// random values.
struct Run {
    after_ns: u64,
    samples: u64,
    columns: u32,
    keep_ns: u64,
    keep_bytes: u64,
}

impl Run {
    fn record(&self, directory: &Path, mut seen: impl FnMut(u64)) -> Recording {
        let facts = Facts { started_unix_ns: STARTED_NS + self.after_ns, ..Facts::default() };
        let mut output = Ring::open(directory, self.keep_ns, self.keep_bytes, &facts).unwrap();
        let mut registry = Registry::new();
        let counter = registry.id("number", "count", SeriesKind::Counter, "test").unwrap();
        for column in 0..self.columns {
            registry.id(&format!("noise.{column}"), "count", SeriesKind::Gauge, "test");
        }
        let (mut row, mut random) = (Row::default(), testkit::Random(self.after_ns));
        for number in 0..self.samples {
            let due_ns = number * PERIOD_NS;
            row.count(counter, number);
            for column in 0..self.columns {
                row.set(1 + column, random.next_u64() as i64);
            }
            let at_ns = due_ns + 17;
            let tick = Tick { due_ns, at_ns };
            output.sample(tick, registry.schemas(), &row).unwrap();
            if number.is_multiple_of(100) {
                let span = Span {
                    kind: "mark".to_owned(),
                    text: number.to_string(),
                    start_ns: at_ns,
                    end_ns: at_ns,
                };
                output.span(&span).unwrap();
            }
            seen(number);
        }
        let outcome = RecordingOutcome {
            ending: Ending::Exited { code: 3 },
            ended_ns: self.samples * PERIOD_NS,
            ..RecordingOutcome::default()
        };
        output.finish(&facts, &outcome).unwrap()
    }
}

fn run() -> Run {
    Run { after_ns: 0, samples: 600, columns: 0, keep_ns: 240 * SECOND_NS, keep_bytes: MUCH }
}

fn room(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn segments_join_to_the_whole_recording() {
    let directory = TempDir::new();
    let recording = run().record(directory.path(), |_| ());
    // 60 s in segments of 10 s, and the lock.
    assert_eq!(directory.names().len(), 6 + 1);
    assert_eq!(recording.damage, Vec::<String>::new());
    assert_eq!(recording.facts.started_unix_ns, STARTED_NS);
    assert_eq!(recording.ticks.len(), 600);
    for (number, tick) in (0..).zip(&recording.ticks) {
        assert_eq!(tick.due_ns, number * PERIOD_NS);
        assert_eq!(tick.at_ns, tick.due_ns + 17);
        assert_eq!(recording.series[0].at(number as u32), Some(number as i64));
    }
    assert_eq!(recording.series.len(), 1);
    for (number, span) in (0..).zip(&recording.spans) {
        assert_eq!(span.text, (number * 100).to_string());
        assert_eq!(span.start_ns, number * 100 * PERIOD_NS + 17);
    }
    let outcome = recording.outcome.unwrap();
    assert_eq!(outcome.ending, Ending::Exited { code: 3 });
    assert_eq!(outcome.ended_ns, 60 * SECOND_NS);
}

#[test]
fn what_is_too_old_goes_and_the_rest_stays() {
    let directory = TempDir::new();
    let keep_ns = 24 * SECOND_NS;
    let recording = Run { keep_ns, ..run() }.record(directory.path(), |_| ());
    let kept_ns = recording.ticks.last().unwrap().due_ns - recording.ticks[0].due_ns;
    // The last removal was when the chunk before the last second was written.
    assert!(kept_ns >= keep_ns - 2 * SECOND_NS, "kept {kept_ns} ns");
    assert!(kept_ns <= keep_ns + 3 * SECOND_NS, "kept {kept_ns} ns");
    let last = recording.ticks.len() as u32 - 1;
    assert_eq!(recording.series[0].at(last), Some(599));
    let first = i64::try_from(600 - recording.ticks.len()).unwrap();
    assert_eq!(recording.series[0].at(0), Some(first));
    let from_start_ns = recording.facts.started_unix_ns - STARTED_NS;
    assert_eq!(from_start_ns, first as u64 * PERIOD_NS);
}

#[test]
fn the_room_is_bounded_at_every_sample() {
    let directory = TempDir::new();
    let keep_bytes = 400_000;
    let bounded = Run { columns: 40, samples: 3000, keep_ns: u64::MAX, keep_bytes, ..run() };
    let recording = bounded.record(directory.path(), |_| {
        let room = room(directory.path());
        assert!(room <= keep_bytes, "{room} bytes");
    });
    assert!(recording.ticks.len() < 3000, "nothing was removed");
    let kept = room(directory.path());
    // A segment goes whole, and no more of them than needed.
    assert!(kept > keep_bytes / 2, "only {kept} bytes are left");
    let last = recording.ticks.len() as u32 - 1;
    assert_eq!(recording.series[0].at(last), Some(2999));
}

#[test]
fn a_restart_goes_on_and_the_gap_is_noted() {
    let directory = TempDir::new();
    run().record(directory.path(), |_| ());
    let after_ns = 100 * SECOND_NS;
    let again = Run { after_ns, ..run() };
    let recording = again.record(directory.path(), |_| ());
    assert_eq!(recording.ticks.len(), 1200);
    assert_eq!(recording.ticks[600].due_ns, after_ns);
    let gaps: Vec<_> = recording.spans.iter().filter(|span| span.kind == "gap").collect();
    assert_eq!(gaps.len(), 1);
    assert_eq!(gaps[0].start_ns, recording.ticks[599].at_ns);
    assert_eq!(gaps[0].end_ns, recording.ticks[600].at_ns);
    // The counter began again at 0, which is no growth.
    assert_eq!(recording.series[0].growth(0, 1199), Some(599 + 599));
}

/// One that is killed ends nothing. Opening took it seven seconds, which is known when it begins.
#[test]
fn a_killed_recorder_loses_less_than_a_second_and_knows_when_it_began() {
    let directory = TempDir::new();
    let facts = |after_ns| Facts { started_unix_ns: STARTED_NS + after_ns, ..Facts::default() };
    for (run, samples) in [95, 100, 104].into_iter().enumerate() {
        let ring = directory.join(run.to_string());
        let mut output = Ring::open(&ring, 24 * SECOND_NS, MUCH, &facts(0)).unwrap();
        output.started(&facts(7 * SECOND_NS));
        let mut registry = Registry::new();
        let counter = registry.id("number", "count", SeriesKind::Counter, "test").unwrap();
        let mut row = Row::default();
        for number in 0..samples {
            row.count(counter, number);
            let at_ns = number * PERIOD_NS;
            output.sample(Tick { due_ns: at_ns, at_ns }, registry.schemas(), &row).unwrap();
        }
        drop(output);
        let read = file::read_ring(&ring).unwrap();
        assert_eq!(read.facts.started_unix_ns, STARTED_NS + 7 * SECOND_NS);
        let last_ns = read.ticks.last().unwrap().at_ns;
        assert!(samples * PERIOD_NS - last_ns < SECOND_NS, "{last_ns} of {samples}");
    }
}

#[test]
fn a_directory_is_one_recorder_s_at_a_time() {
    let directory = TempDir::new();
    let facts = Facts::default();
    let open = || Ring::open(directory.path(), SECOND_NS, MUCH, &facts);
    let first = open().unwrap();
    let before = directory.names();
    let refused = open().unwrap_err();
    assert_eq!(refused.kind, record::ErrorKind::Usage);
    assert!(refused.to_string().contains("another recorder"), "{refused}");
    assert_eq!(directory.names(), before, "and leaves nothing behind");
    drop(first);
    open().unwrap();
}

/// The figure of the last run alone would be set against the time of all runs.
#[test]
fn the_cost_of_all_runs_is_summed() {
    let directory = TempDir::new();
    let mut own_cpu_ns_of_runs = Vec::new();
    for run in 0..2 {
        let facts =
            Facts { started_unix_ns: STARTED_NS + run * 100 * SECOND_NS, ..Facts::default() };
        let mut output = Ring::open(directory.path(), 240 * SECOND_NS, MUCH, &facts).unwrap();
        let mut registry = Registry::new();
        let own = registry.id("own.cpu_ns", "ns", SeriesKind::Counter, "test").unwrap();
        let mut row = Row::default();
        for number in 0..400 {
            row.count(own, 5_000 + number * 10);
            let due_ns = number * PERIOD_NS;
            let tick = Tick { due_ns, at_ns: due_ns };
            output.sample(tick, registry.schemas(), &row).unwrap();
        }
        let outcome = RecordingOutcome {
            own_cpu_ns: 9_999_999,
            own_setup_ns: 5_000,
            ..RecordingOutcome::default()
        };
        let recording = output.finish(&facts, &outcome).unwrap();
        own_cpu_ns_of_runs.push(recording.outcome.unwrap().own_cpu_ns);
    }
    assert_eq!(own_cpu_ns_of_runs, [3_990, 2 * 3_990]);
}

#[test]
fn a_clock_that_was_set_back_never_makes_time_run_back() {
    let directory = TempDir::new();
    let after_ns = 50 * SECOND_NS;
    Run { after_ns, ..run() }.record(directory.path(), |_| ());
    // The second run claims to have begun in the middle of the first.
    let after_ns = 80 * SECOND_NS;
    let recording = Run { after_ns, ..run() }.record(directory.path(), |_| ());
    assert_eq!(recording.ticks.len(), 1200);
    assert!(recording.ticks.is_sorted_by_key(|tick| tick.at_ns));
    assert!(recording.ticks.is_sorted_by_key(|tick| tick.due_ns));
}

#[test]
fn nothing_but_its_own_segments_is_removed() {
    let directory = TempDir::new();
    let old = format!("terrace-{:020}.trec", 1);
    let theirs = [
        (old.as_str(), "not a recording, though it has the name"),
        ("terrace-1.trec", "too few digits"),
        ("notes.txt", "a person's"),
        ("x.trec", "a recording by its name"),
    ];
    for (name, words) in theirs {
        std::fs::write(directory.join(name), words).unwrap();
    }
    // A real recording, elsewhere, that a link with a segment's name leads to.
    let elsewhere = TempDir::new();
    let target = elsewhere.join("mine.trec");
    let output = FileSink::create(&target, false, &Facts::default()).unwrap();
    output.finish(&Facts::default(), &RecordingOutcome::default()).unwrap();
    let link = directory.join(format!("terrace-{:020}.trec", 2));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let bounded = Run { keep_ns: 5 * SECOND_NS, ..run() };
    bounded.record(directory.path(), |_| ());
    for (name, words) in theirs {
        assert_eq!(std::fs::read_to_string(directory.join(name)).unwrap(), words);
    }
    assert!(link.is_symlink() && target.exists());
    let segments = directory.names().len() - theirs.len() - 1;
    assert!(segments < SEGMENTS as usize, "{segments} of 60 segments are left");
}

#[test]
fn a_damaged_segment_costs_only_itself() {
    let directory = TempDir::new();
    run().record(directory.path(), |_| ());
    let names = directory.names();
    let broken = directory.join(&names[2]);
    let mut bytes = std::fs::read(&broken).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&broken, &bytes).unwrap();
    let recording = file::open(directory.path()).unwrap();
    assert_eq!(recording.damage.len(), 1);
    assert!(recording.damage[0].starts_with(&names[2]), "{}", recording.damage[0]);
    assert!(recording.ticks.len() >= 500);
    let last = recording.ticks.len() as u32 - 1;
    assert_eq!(recording.series[0].at(last), Some(599));
}

/// After a downgrade the old program must not remove what only the new one reads.
#[test]
fn a_ring_of_a_newer_version_is_refused_and_stays() {
    let directory = TempDir::new();
    run().record(directory.path(), |_| {});
    let mut names = directory.names();
    names.retain(|name| name.ends_with(".trec"));
    let segment = directory.join(&names[0]);
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[8..10].copy_from_slice(&2u16.to_le_bytes());
    let open = || Ring::open(directory.path(), MUCH, MUCH, &Facts::default());
    // Its checksum is wrong now, which is damage.
    std::fs::write(&segment, &bytes).unwrap();
    drop(open().unwrap());
    model::frame::reseal_file_header(&mut bytes).unwrap();
    std::fs::write(&segment, &bytes).unwrap();
    let error = open().unwrap_err();
    assert_eq!(error.kind, record::ErrorKind::Impossible);
    assert!(model::error_chain(&error).contains("format 2, this program reads up to 1"), "{error}");
    assert_eq!(std::fs::read(&segment).unwrap(), bytes);
}

#[test]
fn an_empty_directory_is_no_recording() {
    let directory = TempDir::new();
    let error = file::open(directory.path()).unwrap_err();
    assert_eq!(error.kind, record::ErrorKind::NotARecording);
    let error = Ring::open(directory.path(), 0, 1, &Facts::default()).unwrap_err();
    assert_eq!(error.kind, record::ErrorKind::Usage);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Whatever is kept: it is the end of what was written, without a hole, in order.
    #[test]
    fn a_ring_holds_the_newest_samples(
        samples in 1u64..900,
        keep_s in 1u64..200,
        keep_kib in 256u64..800,
        columns in 0u32..200,
    ) {
        let directory = TempDir::new();
        let run = Run {
            samples,
            columns,
            keep_ns: keep_s * SECOND_NS,
            keep_bytes: keep_kib << 10,
            ..run()
        };
        let recording = run.record(directory.path(), |_| ());
        prop_assert_eq!(&recording.damage, &Vec::<String>::new());
        let kept = recording.ticks.len() as u64;
        prop_assert!((1..=samples).contains(&kept));
        for index in 0..kept {
            let number = (samples - kept + index) as i64;
            prop_assert_eq!(recording.series[0].at(index as u32), Some(number));
            prop_assert_eq!(recording.ticks[index as usize].due_ns, index * PERIOD_NS);
        }
        prop_assert!(recording.spans.iter().all(|span| span.kind == "mark"));
    }
}

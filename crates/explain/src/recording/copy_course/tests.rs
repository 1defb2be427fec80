//! Recordings of copies, made sample by sample, and what is said of them: a steady one, one as of
//! 2008, and such as lack what a sentence needs.

use super::*;
use crate::recording::Window;
use model::recording::{
    Recording, RecordingOutcome, Schema, SeriesKind, SeriesStep, Span, Steps, Tick,
};

/// A recording at 10 Hz; each series by its values.
fn recorded(series: &[(&str, SeriesKind, Vec<i64>)]) -> Recording {
    let samples = series.iter().map(|(_, _, values)| values.len()).max().unwrap_or(0);
    let at = |sample: usize| sample as u64 * 100_000_000;
    let made = series.iter().map(|(name, kind, values)| Series {
        schema: Schema { name: (*name).to_owned(), kind: *kind, ..Schema::default() },
        steps: (0u32..)
            .zip(values)
            .map(|(sample, value)| SeriesStep { sample, value: Some(*value) })
            .collect::<Steps>(),
    });
    let mut recording = Recording {
        ticks: (0..samples).map(|s| Tick { due_ns: at(s), at_ns: at(s) }).collect(),
        series: made.collect(),
        outcome: Some(RecordingOutcome {
            ended_ns: at(samples.saturating_sub(1)),
            ..RecordingOutcome::default()
        }),
        ..Recording::default()
    };
    recording.facts.page_bytes = 4096;
    recording
}

/// A counter that grows by each of these amounts.
fn grown(growths: impl IntoIterator<Item = i64>) -> Vec<i64> {
    let mut sum = 0;
    let grown = growths.into_iter().map(|growth| {
        sum += growth;
        sum
    });
    std::iter::once(0).chain(grown.collect::<Vec<_>>()).collect()
}

const MB: i64 = 1_000_000;

/// Ten seconds: reads and writes at 100 MB/s, the disk at full speed after `slow` tenths.
fn copy(
    slow: usize,
    readers_ms: i64,
    writers_ms: i64,
) -> Vec<(&'static str, SeriesKind, Vec<i64>)> {
    use SeriesKind::{Counter, Gauge};
    let tenths = 100;
    let even = |each: i64| grown((0..tenths).map(|_| each));
    let disk = (0..tenths).map(|at| if at < slow { MB } else { 12 * MB });
    vec![
        ("copy.read_bytes", Counter, even(10 * MB)),
        ("copy.written_bytes", Counter, even(10 * MB)),
        ("copy.durable_bytes", Counter, even(10 * MB)),
        ("copy.files_done", Counter, grown((0..tenths).map(|at| i64::from(at % 50 == 49)))),
        ("copy.readers_waited_ns", Counter, even(readers_ms * 1_000_000)),
        ("copy.writers_waited_ns", Counter, even(writers_ms * 1_000_000)),
        ("disk.vdb.write_bytes", Counter, grown(disk)),
        ("vmstat.pgsteal_file", Counter, even(0)),
        ("meminfo.Active_file", Gauge, vec![1 << 30; tenths + 1]),
        ("meminfo.Inactive_file", Gauge, vec![1 << 30; tenths + 1]),
    ]
}

fn report_of(recording: &Recording) -> CopyReport {
    report(&View::new(recording, Window::default())).unwrap()
}

#[test]
fn a_recording_of_no_copy_has_no_report() {
    let still = recorded(&[("copy.read_bytes", SeriesKind::Counter, vec![0; 10])]);
    for recording in [Recording::default(), still] {
        assert_eq!(report(&View::new(&recording, Window::default())), None);
    }
}

#[test]
fn a_steady_copy_is_described_in_five_sentences() {
    let report = report_of(&recorded(&copy(0, 1, 80)));
    assert_eq!(report.limit, "read");
    assert_eq!(
        report.lines,
        [
            "Read-bound: the source gives 100 MB/s, 100 % of its best seconds.",
            "vdb wrote at full speed from the first sample on.",
            "The source throttled the target: reads waited 100 ms for writes, writes 8 s for reads.",
            "All was on the disk after 10 s.",
            "The cache was kept: 0 B of file pages were taken back, 0 % of what was cached (2 GiB).",
        ]
    );
    assert_eq!((report.ns, report.written_bytes), (10_000_000_000, 1_000_000_000));
    assert_eq!((report.files, report.full_speed_ns), (Some(2), Some(0)));
}

#[test]
fn the_lazy_copier_of_2008() {
    let mut series = copy(40, 50, 40);
    // The disk gets it late, half of the last second is never seen on it, the cache is dropped.
    series[2].2 = grown((0..100).map(|at| if at < 95 { 10 * MB } else { 0 }));
    series[7].2 = grown((0..100).map(|_| 4_000));
    let mut recording = recorded(&series);
    recording.spans.push(Span {
        kind: "mark".to_owned(),
        text: "done".to_owned(),
        start_ns: 3_000_000_000,
        end_ns: 3_000_000_000,
    });
    let report = report_of(&recording);
    assert_eq!(report.limit, "turns");
    assert!(report.full_speed_ns.is_some_and(|ns| (3_400_000_000..=4_000_000_000).contains(&ns)));
    assert!(report.lines[1].starts_with("vdb wrote at full speed after 4 s"), "{:?}", report.lines);
    assert!(report.lines[2].starts_with("Both sides throttled each other: "));
    assert_eq!(
        report.lines[3],
        "It said done after 3 s; 47.7 MiB were not seen to reach the disk."
    );
    assert!(report.lines[4].starts_with("The cache was turned over: 1.53 GiB "));
    assert_eq!((report.done_ns, report.durable_ns), (Some(3_000_000_000), None));
}

#[test]
fn a_cache_smaller_than_the_copy_is_turned_over_more_than_once() {
    let mut series = copy(40, 50, 40);
    series[7].2 = grown((0..100).map(|_| 8_000));
    let report = report_of(&recorded(&series));
    assert_eq!(
        report.lines[4],
        "The cache was turned over: 3.05 GiB of file pages were taken back, more than was cached \
         before (2 GiB), so what it copied too."
    );
}

#[test]
fn what_was_not_recorded_is_not_said() {
    let series: Vec<_> = copy(0, 0, 0).into_iter().take(2).collect();
    let report = report_of(&recorded(&series));
    assert_eq!(report.limit, "unproven");
    assert_eq!(report.lines.len(), 2, "{:?}", report.lines);
    assert_eq!(report.lines[1], "When it was on the disk was not counted.");
    assert_eq!(
        (report.full_speed_ns, report.cache_dropped_bytes, report.files),
        (None, None, None)
    );
}

#[test]
fn a_disk_that_wrote_too_little_is_not_the_target() {
    let mut series = copy(0, 0, 0);
    series[6].2 = grown((0..100).map(|_| 4 * MB));
    assert_eq!(report_of(&recorded(&series)).full_speed_ns, None);
}

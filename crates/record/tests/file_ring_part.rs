//! Reading a part of a ring: it has what a reading of all has of that time, names included, and
//! reads a small part of the bytes. Bytes are counted by the kernel; nothing here judges time.

#![allow(clippy::unwrap_used, reason = "a test program")]

use model::recording::{ClockSet, Facts, Recording, RecordingOutcome, SeriesKind, Span, Tick, Who};
use record::file::{self, RecordingOutline, Ring, SEGMENTS};
use record::{RecordSink, Registry, Row};
use std::path::Path;
use testkit::{MadeWho, Random, TempDir};

const SECOND_NS: u64 = 1_000_000_000;
/// What a segment lasts.
const SEGMENT_NS: u64 = 100 * SECOND_NS;
const WHOLE_NS: u64 = SEGMENTS * SEGMENT_NS;
const PERIOD_NS: u64 = SECOND_NS;
const STARTED_NS: u64 = 1_800_000_000 * SECOND_NS;
const COLUMNS: u32 = 30;

/// A run that begins `after_ns` after [`STARTED_NS`]: columns of random values, processes, and a
/// mark every seventh sample. Ended, or killed before it wrote its end.
fn record(directory: &Path, after_ns: u64, samples: u64, is_killed: bool) {
    let facts = Facts { started_unix_ns: STARTED_NS + after_ns, ..Facts::default() };
    let mut output = Ring::open(directory, WHOLE_NS, 1 << 40, &facts).unwrap();
    let mut registry = Registry::new();
    for column in 0..COLUMNS {
        registry.id(&format!("noise.{column}"), "count", SeriesKind::Gauge, "test");
    }
    let (mut row, mut random, mut who) = (Row::default(), Random(after_ns + 1), MadeWho::new(9));
    for number in 0..samples {
        let due_ns = number * PERIOD_NS;
        let at_ns = due_ns + 17;
        for column in 0..COLUMNS {
            row.set(column, (random.next_u64() >> 20) as i64);
        }
        if number > 0 {
            output.who(&who.sample(at_ns)).unwrap();
        }
        output.sample(Tick { due_ns, at_ns }, registry.schemas(), &row).unwrap();
        if number.is_multiple_of(7) {
            let kind = if number == 700 { ClockSet::KIND } else { "mark" };
            let text = match number {
                700 => ClockSet::by(60_000_000_000).to_string(),
                _ => number.to_string(),
            };
            let span = Span { kind: kind.to_owned(), text, start_ns: at_ns, end_ns: at_ns };
            output.span(&span).unwrap();
        }
    }
    output.flush().unwrap();
    if is_killed {
        return;
    }
    let outcome = RecordingOutcome { ended_ns: samples * PERIOD_NS, ..RecordingOutcome::default() };
    output.finish(&facts, &outcome).unwrap();
}

/// What this thread has read since it began.
fn bytes_read() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    text.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

/// A result, and the bytes that it took to read.
fn counted<T>(read: impl FnOnce() -> T) -> (T, u64) {
    let before = bytes_read();
    let result = read();
    (result, bytes_read() - before)
}

fn part(directory: &Path, from_ns: u64, to_ns: u64) -> Recording {
    RecordingOutline::open(directory).unwrap().part(from_ns, to_ns).unwrap()
}

/// Rows of the time with the names that they have, in order.
fn named_rows(who: &Who, from_ns: u64, to_ns: u64) -> Vec<String> {
    let rows = who.rows.iter().filter(|row| row.from_ns < to_ns && row.to_ns > from_ns);
    let named = rows.map(|row| {
        let process = &who.processes[row.process as usize];
        let (pid, name) = (process.pid, &process.name);
        let (from_ns, to_ns, figures) = (row.from_ns, row.to_ns, row.figures);
        format!("{pid} {name} {} {from_ns} {to_ns} {figures:?}", process.started_ns)
    });
    let file_rows = who.file_rows.iter().filter(|row| row.from_ns < to_ns && row.to_ns > from_ns);
    let of_files = file_rows.map(|row| {
        let file = &who.files[row.file as usize];
        let by = who.processes[row.process as usize].pid;
        format!("{:?} {} {:?} {by} {}", file.device, file.inode, file.path, row.added_bytes)
    });
    let mut all: Vec<String> = named.chain(of_files).collect();
    all.sort();
    all
}

/// The part is the whole, seen from the last sample before to the first after.
fn assert_same(part: &Recording, whole: &Recording, from_ns: u64, to_ns: u64) {
    assert_eq!(part.facts, whole.facts);
    assert_eq!(part.spans, whole.spans);
    let ended = |recording: &Recording| recording.outcome.as_ref().map(|it| it.ended_ns);
    assert_eq!(ended(part), ended(whole));
    let begun = whole.ticks.partition_point(|tick| tick.at_ns <= from_ns).saturating_sub(1);
    let ended = whole.ticks.partition_point(|tick| tick.at_ns < to_ns).min(whole.ticks.len() - 1);
    let moved = part.ticks.iter().position(|tick| *tick == whole.ticks[begun]).unwrap();
    for number in begun..=ended {
        let of_part = (number - begun + moved) as u32;
        assert_eq!(part.ticks[of_part as usize], whole.ticks[number]);
        for series in &whole.series {
            let other = part.series(&series.schema.name).unwrap();
            assert_eq!(other.at(of_part), series.at(number as u32), "{number}");
        }
    }
    let rows = named_rows(&part.who, from_ns, to_ns);
    assert_eq!(rows, named_rows(&whole.who, from_ns, to_ns));
}

#[test]
fn of_a_long_time_only_the_segments_around_the_time_are_read() {
    let directory = TempDir::new();
    record(directory.path(), 0, WHOLE_NS / PERIOD_NS, false);
    assert_eq!(directory.names().len() as u64, SEGMENTS + 1);
    let (whole, whole_bytes) = counted(|| file::open(directory.path()).unwrap());
    assert_eq!(whole.damage, Vec::<String>::new());
    let mut most = 0;
    for segment in [0, 1, 7, 12, 23] {
        // Within one segment, and over the border of two.
        for from_s in [30, 95] {
            let from_ns = segment * SEGMENT_NS + from_s * SECOND_NS;
            let to_ns = from_ns + 10 * SECOND_NS;
            let (part, bytes) = counted(|| part(directory.path(), from_ns, to_ns));
            assert_eq!(part.damage, Vec::<String>::new());
            assert_same(&part, &whole, from_ns, to_ns.min(WHOLE_NS));
            assert!(!named_rows(&part.who, from_ns, to_ns).is_empty());
            assert!(part.ticks.len() < whole.ticks.len() / 8, "{}", part.ticks.len());
            most = most.max(bytes);
        }
    }
    // Headers of all chunks, and at most two of 24 segments.
    assert!(most * 5 < whole_bytes, "{most} of {whole_bytes} bytes");
    #[allow(clippy::print_stdout, reason = "a figure of the test")]
    {
        println!("a part of a ring: at most {most} of {whole_bytes} bytes read");
    }
}

#[test]
fn what_is_far_from_the_time_may_be_damaged() {
    let directory = TempDir::new();
    record(directory.path(), 0, WHOLE_NS / PERIOD_NS, false);
    let names = directory.names();
    let far = directory.join(&names[3]);
    let mut bytes = std::fs::read(&far).unwrap();
    let middle = bytes.len() / 2;
    bytes.truncate(middle);
    std::fs::write(&far, &bytes).unwrap();
    let whole = file::open(directory.path()).unwrap();
    assert_eq!(whole.damage.len(), 1);
    let at_ns = 15 * SEGMENT_NS;
    let part = part(directory.path(), at_ns, at_ns + 10 * SECOND_NS);
    assert_eq!(part.damage, Vec::<String>::new());
    assert_same(&part, &whole, at_ns, at_ns + 10 * SECOND_NS);
    // Behind the damage it is said.
    let at_ns = 3 * SEGMENT_NS + 80 * SECOND_NS;
    let damaged = self::part(directory.path(), at_ns, at_ns + 10 * SECOND_NS);
    assert_eq!(damaged.damage, whole.damage);
}

/// A recorder that was killed, a restart, and a clock that was set back between two runs.
#[test]
fn runs_that_follow_each_other_are_placed_as_in_the_whole() {
    let directory = TempDir::new();
    record(directory.path(), 0, 500, true);
    record(directory.path(), 600 * SECOND_NS, 500, false);
    record(directory.path(), 700 * SECOND_NS, 400, true);
    let whole = file::open(directory.path()).unwrap();
    assert!(whole.outcome.is_none());
    let gaps = whole.spans.iter().filter(|span| span.kind == "gap");
    assert_eq!(gaps.count(), 1);
    let outline = RecordingOutline::open(directory.path()).unwrap();
    assert_eq!(outline.recording().wall_ns(), whole.wall_ns());
    let last_ns = whole.wall_ns();
    for at_ns in (0..last_ns - PERIOD_NS).step_by(43_210_987_654) {
        let to_ns = (at_ns + 10 * SECOND_NS).min(last_ns);
        assert_same(&part(directory.path(), at_ns, to_ns), &whole, at_ns, to_ns);
    }
}

/// A recorder that was killed before its first sample: its segment still says when the ring begins.
#[test]
fn a_first_segment_without_samples_begins_the_ring() {
    let directory = TempDir::new();
    record(directory.path(), 0, 0, true);
    let segments = directory.names().iter().filter(|name| name.ends_with(".trec")).count();
    assert_eq!(segments, 1);
    assert!(RecordingOutline::open(directory.path()).is_none(), "nothing to read a part of");
    record(directory.path(), 600 * SECOND_NS, 300, false);
    let whole = file::open(directory.path()).unwrap();
    assert_eq!(whole.facts.started_unix_ns, STARTED_NS);
    let outline = RecordingOutline::open(directory.path()).unwrap();
    assert_eq!(outline.recording().wall_ns(), whole.wall_ns());
    let first_ns = whole.ticks[0].at_ns;
    assert!(first_ns >= 600 * SECOND_NS, "{first_ns}");
    for at_ns in [0, first_ns, first_ns + 100 * SECOND_NS] {
        let to_ns = at_ns.max(first_ns) + 10 * SECOND_NS;
        assert_same(&part(directory.path(), at_ns, to_ns), &whole, at_ns, to_ns);
    }
}

#[test]
fn what_is_no_ring_is_left_to_a_reading_of_all() {
    let directory = TempDir::new();
    assert!(RecordingOutline::open(directory.path()).is_none());
    record(directory.path(), 0, 100, false);
    std::fs::write(directory.join("notes.txt"), "not a segment").unwrap();
    assert!(RecordingOutline::open(directory.path()).is_some());
}

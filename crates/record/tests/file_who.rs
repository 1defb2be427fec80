//! Who did it, written and read: the same rows, whatever their values, in a file, in a ring, in a
//! part, in a file that is followed; and the same sums where it is more than a reader takes.

#![allow(clippy::unwrap_used, reason = "a test program")]

use model::recording::{
    Facts, FileIdentity, FileRow, Process, ProcessFigure, ProcessRow, Recording, RecordingOutcome,
    RequestRow, SampleRow, SampledPart, Tick, Who,
};
use proptest::prelude::*;
use record::export::{Exporter, Trec};
use record::file::{self, Follower, MemoryFile, Outline, Ring, Writer};
use record::{RecordSink, Registry, Row};
use std::collections::BTreeMap;
use std::io::Cursor;
use testkit::{MadeWho, TempDir};

const SECOND_NS: u64 = 1_000_000_000;
const PERIOD_NS: u64 = SECOND_NS / 10;

fn tick(number: u64) -> Tick {
    let due_ns = number * PERIOD_NS;
    Tick { due_ns, at_ns: due_ns + 90_000 + number * 7919 % 50_000 }
}

/// Adds to a whole what is new in a sample.
fn add(whole: &mut Who, news: &Who) {
    whole.processes.extend_from_slice(&news.processes);
    whole.rows.extend_from_slice(&news.rows);
    whole.files.extend_from_slice(&news.files);
    whole.file_rows.extend_from_slice(&news.file_rows);
    whole.samples.extend_from_slice(&news.samples);
    whole.requests.extend_from_slice(&news.requests);
}

/// Rows in an order that does not depend on how they were written.
fn in_order(who: &Who) -> Who {
    let mut who = who.clone();
    who.rows.sort_by_key(|row| (row.to_ns, row.process, row.from_ns, row.figures));
    who.file_rows.sort_by_key(|row| (row.to_ns, row.file, row.process, row.from_ns));
    who.samples.sort_by_key(|row| (row.to_ns, row.process, row.from_ns, row.samples));
    who.requests.sort_by_key(|row| {
        (row.to_ns, row.process, row.device, row.from_ns, row.is_write, row.classes)
    });
    who
}

/// Records so many samples of a made machine; what was recorded.
fn record(sink: &mut impl RecordSink, samples: u64) -> Who {
    let (mut made, mut whole, mut row) = (MadeWho::new(1), Who::default(), Row::default());
    let mut registry = Registry::new();
    let id = registry.id("n", "count", model::recording::SeriesKind::Counter, "x").unwrap();
    for number in 0..samples {
        let news = made.sample(tick(number).at_ns);
        sink.who(&news).unwrap();
        row.count(id, number);
        sink.sample(tick(number), registry.schemas(), &row).unwrap();
        add(&mut whole, &news);
    }
    whole
}

/// A recording of a made machine, and what was recorded.
fn recorded(samples: u64) -> (Vec<u8>, Who) {
    let mut writer = Writer::new(MemoryFile::default(), &Facts::default()).unwrap();
    let whole = record(&mut writer, samples);
    let ended_ns = samples * PERIOD_NS;
    let outcome = RecordingOutcome { ended_ns, ..RecordingOutcome::default() };
    (writer.finish(&Facts::default(), &outcome).unwrap().into_bytes(), whole)
}

/// The sum of each figure of each process, by what names it.
fn sums(who: &Who) -> BTreeMap<(u32, u64), Vec<u64>> {
    let mut sums: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for row in &who.rows {
        let process = &who.processes[row.process as usize];
        assert_eq!(process.id, row.process);
        let of = sums.entry((process.pid, process.started_ns)).or_default();
        of.resize(ProcessFigure::COUNT, 0);
        for (sum, figure) in of.iter_mut().zip(row.figures) {
            *sum += figure;
        }
    }
    sums
}

/// The same of files: added, refaulted, dirtied, evicted.
fn file_sums(who: &Who) -> BTreeMap<u64, [u64; 4]> {
    let mut sums: BTreeMap<_, [u64; 4]> = BTreeMap::new();
    for row in &who.file_rows {
        let sum = sums.entry(who.files[row.file as usize].inode).or_default();
        sum[0] += row.added_bytes;
        sum[1] += row.refaulted_bytes;
        sum[2] += row.dirtied_bytes;
        sum[3] += row.evicted_bytes;
    }
    sums
}

fn values() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => Just(0u64),
        3 => (0u64..1000).prop_map(|pages| pages * 4096),
        3 => 0u64..200_000_000,
        1 => any::<u64>(),
        1 => Just(u64::MAX),
    ]
}

fn process() -> impl Strategy<Value = Process> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u64>());
    let texts = ("\\PC{0,15}", "(/[a-z0-9.@-]{1,12}){0,4}");
    (numbers, texts, any::<bool>(), any::<bool>()).prop_map(
        |((pid, parent, user, started_ns), (name, group), is_kernel, is_many)| Process {
            id: 0,
            pid,
            parent,
            user,
            started_ns,
            name,
            group,
            is_kernel,
            is_many,
        },
    )
}

fn file_identity() -> impl Strategy<Value = FileIdentity> {
    let path = prop::option::of("(/[a-z é.]{1,9}){1,5}");
    (any::<(u32, u32)>(), any::<u64>(), path).prop_map(|(device, inode, path)| FileIdentity {
        id: 0,
        device,
        inode,
        path,
    })
}

/// The rows of a sample: which process, how long, figures, memory, whether it ended, how many.
type MadeRow = (prop::sample::Index, u64, [u64; ProcessFigure::COUNT], u64, bool, u64);
type MadeSamples = (prop::sample::Index, u64, Vec<u64>);
type MadeRequests = (prop::sample::Index, (u32, u32), bool, u64, Vec<u64>);
type MadeFileRow = (prop::sample::Index, prop::sample::Index, u64, [u64; 4]);

#[derive(Clone, Debug)]
struct Step {
    period_ns: u64,
    processes: Vec<Process>,
    files: Vec<FileIdentity>,
    rows: Vec<MadeRow>,
    file_rows: Vec<MadeFileRow>,
    samples: Vec<MadeSamples>,
    requests: Vec<MadeRequests>,
    is_flushed: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = || prop_oneof![6 => Just(PERIOD_NS), 1 => 0..200 * SECOND_NS];
    let figures = || prop::array::uniform11(values());
    let row = (any::<prop::sample::Index>(), length(), figures(), values(), any::<bool>(), 0..9u64);
    let file_numbers = prop::array::uniform4(values());
    let file_row =
        (any::<prop::sample::Index>(), any::<prop::sample::Index>(), length(), file_numbers);
    let numbers = |count: usize| prop::collection::vec(values(), count);
    let samples = (any::<prop::sample::Index>(), length(), numbers(SampledPart::COUNT));
    let device = (0..1u32 << 12, 0..1u32 << 20);
    let requests = (
        any::<prop::sample::Index>(),
        device,
        any::<bool>(),
        length(),
        numbers(3 + RequestRow::CLASSES),
    );
    let step = (
        length(),
        prop::collection::vec(process(), 0..3),
        prop::collection::vec(file_identity(), 0..2),
        prop::collection::vec(row, 0..6),
        prop::collection::vec(file_row, 0..3),
        (prop::collection::vec(samples, 0..3), prop::collection::vec(requests, 0..3)),
        prop::bool::weighted(0.1),
    );
    let made =
        step.prop_map(|(period_ns, processes, files, rows, file_rows, wide, is_flushed)| Step {
            period_ns,
            processes,
            files,
            rows,
            file_rows,
            samples: wide.0,
            requests: wide.1,
            is_flushed,
        });
    prop::collection::vec(made, 0..40)
}

/// What a step adds to what is known.
fn news(step: &Step, whole: &Who, at_ns: u64) -> Who {
    let mut news = Who::default();
    for (id, process) in (whole.processes.len() as u32..).zip(&step.processes) {
        news.processes.push(Process { id, ..process.clone() });
    }
    for (id, file) in (whole.files.len() as u32..).zip(&step.files) {
        news.files.push(FileIdentity { id, ..file.clone() });
    }
    let processes = whole.processes.len() + news.processes.len();
    let files = whole.files.len() + news.files.len();
    if processes == 0 {
        return news;
    }
    for (process, length_ns, figures, memory_bytes, has_ended, count) in &step.rows {
        news.rows.push(ProcessRow {
            process: process.index(processes) as u32,
            from_ns: at_ns.saturating_sub(*length_ns),
            to_ns: at_ns,
            figures: *figures,
            memory_bytes: *memory_bytes,
            has_ended: *has_ended,
            processes: *count,
        });
    }
    for (file, process, length_ns, numbers) in step.file_rows.iter().filter(|_| files > 0) {
        let [added_bytes, refaulted_bytes, dirtied_bytes, evicted_bytes] = *numbers;
        news.file_rows.push(FileRow {
            file: file.index(files) as u32,
            process: process.index(processes) as u32,
            from_ns: at_ns.saturating_sub(*length_ns),
            to_ns: at_ns,
            added_bytes,
            refaulted_bytes,
            dirtied_bytes,
            evicted_bytes,
        });
    }
    for (process, length_ns, numbers) in &step.samples {
        news.samples.push(SampleRow {
            process: process.index(processes) as u32,
            from_ns: at_ns.saturating_sub(*length_ns),
            to_ns: at_ns,
            samples: numbers[..].try_into().unwrap(),
        });
    }
    for (process, device, is_write, length_ns, numbers) in &step.requests {
        news.requests.push(RequestRow {
            process: process.index(processes) as u32,
            device: *device,
            is_write: *is_write,
            from_ns: at_ns.saturating_sub(*length_ns),
            to_ns: at_ns,
            requests: numbers[0],
            bytes: numbers[1],
            latency_ns: numbers[2],
            classes: numbers[3..].try_into().unwrap(),
        });
    }
    news
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn what_is_written_is_read(steps in steps()) {
        let mut writer = Writer::new(Vec::new(), &Facts::default()).unwrap();
        let (mut whole, mut at_ns) = (Who::default(), 0);
        for step in &steps {
            at_ns += step.period_ns;
            let news = news(step, &whole, at_ns);
            writer.who(&news).unwrap();
            writer.sample(Tick { due_ns: at_ns, at_ns }, &[], &Row::default()).unwrap();
            if step.is_flushed {
                writer.flush().unwrap();
            }
            add(&mut whole, &news);
        }
        let bytes = writer.finish(&Facts::default(), &RecordingOutcome::default()).unwrap();
        let read = file::read(&bytes[..]).unwrap();
        prop_assert_eq!(&read.damage, &Vec::<String>::new());
        prop_assert_eq!(in_order(&read.who), in_order(&whole));
        prop_assert!(read.who.rows.is_sorted_by_key(|row| row.to_ns));
        prop_assert!(read.who.file_rows.is_sorted_by_key(|row| row.to_ns));
        let mut copy = Vec::new();
        Trec.export(&read, &mut copy).unwrap();
        let again = file::read(&copy[..]).unwrap();
        prop_assert_eq!(in_order(&again.who), in_order(&whole));
    }
}

#[test]
fn a_file_cut_at_any_byte_has_rows_with_their_names_until_its_last_whole_chunk() {
    let (bytes, whole) = recorded(120);
    let mut counts = Vec::new();
    for length in (16..bytes.len()).step_by(3) {
        let cut = file::read(&bytes[..length]).unwrap();
        let who = &cut.who;
        assert!(whole.processes.starts_with(&who.processes), "cut at {length}");
        assert!(whole.files.starts_with(&who.files), "cut at {length}");
        let known = who.processes.len() as u32;
        assert!(who.rows.iter().all(|row| row.process < known), "cut at {length}");
        let last_ns = who.rows.last().map_or(0, |row| row.to_ns);
        let until = |row: &&ProcessRow| row.to_ns <= last_ns;
        assert_eq!(who.rows.len(), whole.rows.iter().filter(until).count(), "cut at {length}");
        counts.push(who.rows.len());
    }
    counts.dedup();
    assert!(counts.is_sorted() && counts.len() >= 3, "{counts:?}");
}

#[test]
fn a_part_has_the_rows_of_its_time_and_all_names() {
    let (bytes, whole) = recorded(3_000);
    let all = file::read(&bytes[..]).unwrap();
    assert_eq!(in_order(&all.who), in_order(&whole));
    for (from_s, to_s) in [(0, 1), (17, 18), (100, 160), (299, 300), (150, 150)] {
        let (from_ns, to_ns) = (from_s * SECOND_NS, to_s * SECOND_NS);
        let outline = Outline::read(Cursor::new(&bytes)).unwrap();
        assert_eq!(outline.recording().who.processes, whole.processes);
        let part = outline.part(from_ns, to_ns).unwrap();
        assert_eq!(part.who.processes, whole.processes);
        let overlap = |row: &&ProcessRow| row.to_ns >= from_ns && row.from_ns <= to_ns;
        let needed: Vec<_> = in_order(&whole).rows.iter().filter(overlap).copied().collect();
        let part = in_order(&part.who);
        let found: Vec<_> = part.rows.iter().filter(overlap).copied().collect();
        assert_eq!(found, needed, "{from_s}");
        assert!(part.rows.len() <= needed.len() + 100, "{} {}", part.rows.len(), needed.len());
    }
}

/// A process that is idle for minutes has a row that began long before the part.
#[test]
fn a_part_has_rows_that_began_long_before_it() {
    let mut writer = Writer::new(Vec::new(), &Facts::default()).unwrap();
    let process = Process { name: "daemon".to_owned(), ..Process::default() };
    let mut news = Who { processes: vec![process], ..Who::default() };
    for number in 0..4_000 {
        if number == 3_900 {
            let to_ns = tick(number).at_ns;
            let row = ProcessRow { to_ns, memory_bytes: 7, processes: 1, ..ProcessRow::default() };
            news.rows.push(row);
        }
        writer.who(&std::mem::take(&mut news)).unwrap();
        writer.sample(tick(number), &[], &Row::default()).unwrap();
    }
    let bytes = writer.finish(&Facts::default(), &RecordingOutcome::default()).unwrap();
    let outline = Outline::read(Cursor::new(&bytes)).unwrap();
    let part = outline.part(100 * SECOND_NS, 101 * SECOND_NS).unwrap();
    assert_eq!(part.who.rows.len(), 1);
    assert_eq!(part.who.processes[0].name, "daemon");
}

#[test]
fn segments_can_be_read_alone_and_join_to_the_whole() {
    let directory = TempDir::new();
    let facts = Facts { started_unix_ns: 1_800_000_000 * SECOND_NS, ..Facts::default() };
    let mut ring = Ring::open(directory.path(), 24 * 20 * SECOND_NS, 1 << 40, &facts).unwrap();
    let whole = record(&mut ring, 1_000);
    let joined = ring.finish(&facts, &RecordingOutcome::default()).unwrap();
    assert_eq!(joined.damage, Vec::<String>::new());
    assert_eq!(joined.who.rows.len(), whole.rows.len());
    assert_eq!(sums(&joined.who), sums(&whole));
    assert_eq!(file_sums(&joined.who), file_sums(&whole));
    let of_rows: Vec<u32> = whole.rows.iter().map(|row| row.process).collect();
    let used = whole.processes.iter().filter(|process| of_rows.contains(&process.id)).count();
    assert_eq!(joined.who.processes.len(), used, "each once");
    let mut segments = 0;
    for name in directory.names().iter().filter(|name| name.ends_with(".trec")) {
        let alone = file::open(&directory.join(name)).unwrap();
        assert_eq!(alone.damage, Vec::<String>::new());
        assert!(alone.who.rows.len() > 100);
        for row in &alone.who.rows {
            assert!(!alone.who.processes[row.process as usize].name.is_empty());
        }
        segments += 1;
    }
    assert!(segments >= 4, "{segments}");
}

/// A recorder that is started again numbers its processes anew.
#[test]
fn a_process_of_two_runs_is_one() {
    let directory = TempDir::new();
    let named = |id, pid, started_ns| Process {
        id,
        pid,
        started_ns,
        name: "postgres".to_owned(),
        ..Process::default()
    };
    for (run, order) in [[(7, 1), (8, 2)], [(8, 2), (8, 3)]].into_iter().enumerate() {
        let started_unix_ns = (1_800_000_000 + run as u64 * 100) * SECOND_NS;
        let facts = Facts { started_unix_ns, ..Facts::default() };
        let mut ring = Ring::open(directory.path(), u64::MAX, 1 << 40, &facts).unwrap();
        let processes = (0..).zip(order).map(|(id, (pid, start))| named(id, pid, start));
        let mut news = Who { processes: processes.collect(), ..Who::default() };
        for process in [0, 1] {
            let row = ProcessRow { process, processes: 1, ..ProcessRow::default() };
            news.rows.push(row);
        }
        ring.who(&news).unwrap();
        ring.sample(tick(1), &[], &Row::default()).unwrap();
        ring.finish(&facts, &RecordingOutcome::default()).unwrap();
    }
    let joined = file::open(directory.path()).unwrap();
    let named: Vec<_> = joined.who.processes.iter().map(|it| (it.pid, it.started_ns)).collect();
    assert_eq!(named, [(7, 1), (8, 2), (8, 3)], "a number that came again is another process");
    let of_rows: Vec<_> = joined.who.rows.iter().map(|row| row.process).collect();
    assert_eq!(of_rows, [0, 1, 1, 2]);
}

#[test]
fn a_follower_sees_the_rows_before_the_samples() {
    let directory = TempDir::new();
    let path = directory.join("a.trec");
    let mut sink = file::FileSink::create(&path, false, &Facts::default()).unwrap();
    let whole = record(&mut sink, 250);
    let mut follower = Follower::open(&path).unwrap();
    follower.advance();
    let seen = follower.recording().clone();
    assert_eq!(seen.ticks.len(), 200);
    let last_ns = seen.ticks.last().unwrap().at_ns;
    let until = |row: &&ProcessRow| row.to_ns <= last_ns;
    assert_eq!(seen.who.rows.iter().filter(until).count(), whole.rows.iter().filter(until).count());
    sink.finish(&Facts::default(), &RecordingOutcome::default()).unwrap();
    follower.advance();
    assert_eq!(in_order(&follower.recording().who), in_order(&whole));
}

#[test]
fn a_follower_of_a_ring_joins_the_processes() {
    let directory = TempDir::new();
    let facts = Facts { started_unix_ns: 1_800_000_000 * SECOND_NS, ..Facts::default() };
    let mut ring = Ring::open(directory.path(), 24 * 10 * SECOND_NS, 1 << 40, &facts).unwrap();
    let mut follower = None;
    let (mut made, mut whole) = (MadeWho::new(3), Who::default());
    for number in 0..600 {
        let news = made.sample(tick(number).at_ns);
        ring.who(&news).unwrap();
        ring.sample(tick(number), &[], &Row::default()).unwrap();
        add(&mut whole, &news);
        if number % 50 == 25 {
            let follower =
                follower.get_or_insert_with(|| Follower::open(directory.path()).unwrap());
            follower.advance();
        }
    }
    ring.finish(&facts, &RecordingOutcome::default()).unwrap();
    let mut follower = follower.unwrap();
    while follower.advance() && !follower.is_over() {}
    let followed: &Recording = follower.recording();
    assert_eq!(sums(&followed.who), sums(&whole));
    assert_eq!(file_sums(&followed.who), file_sums(&whole));
}

#[test]
fn ids_that_do_not_go_on_are_refused() {
    let mut writer = Writer::new(Vec::new(), &Facts::default()).unwrap();
    let gap = Who { processes: vec![Process { id: 1, ..Process::default() }], ..Who::default() };
    assert_eq!(writer.who(&gap).unwrap_err().kind, record::ErrorKind::Usage);
    let unknown = Who { rows: vec![ProcessRow::default()], ..Who::default() };
    assert_eq!(writer.who(&unknown).unwrap_err().kind, record::ErrorKind::Usage);
}

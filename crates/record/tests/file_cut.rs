//! The crash story: a recorder dies at any instant, so its file ends at any byte; a disk
//! fills up; a bit flips on the medium. Whatever is left must open with the samples that
//! were whole, and never tell a value that nobody wrote without saying that it is damaged.

#![allow(clippy::unwrap_used, reason = "a test program")]

use model::recording::{Facts, Recording, RecordingOutcome, Span, Tick, Who};
use record::file::{self, FileSink};
use record::{
    AccessBatch, AccessCounts, AccessShifts, DeviceRequest, ErrorKind, PageEvent, PageEventKind,
    RecordSink, Registry, RequestKind, Row,
};
use std::io::{Cursor, Write};
use testkit::MadeWho;

const ROWS: u64 = 12;
const HEADER_BYTES: usize = 16;
const CHUNK_HEADER_BYTES: usize = 32;

/// A small recording of several samples chunks: 12 rows, flushed every 4.
fn whole() -> Vec<u8> {
    written(|_| Who::default(), false)
}

/// The same with what processes used.
fn whole_with_who() -> Vec<u8> {
    let mut made = MadeWho::new(2);
    written(|at_ns| made.sample(at_ns), false)
}

/// The same with a batch of accesses for every four samples.
fn whole_with_accesses() -> Vec<u8> {
    let mut made = MadeWho::new(2);
    written(|at_ns| made.sample(at_ns), true)
}

/// Accesses of the 0.1 s before a sample.
fn batch(number: u64) -> AccessBatch {
    let (from_ns, to_ns) = (number * 100_000_000, (number + 1) * 100_000_000);
    let request = DeviceRequest {
        at_ns: from_ns + 5_000_000,
        latency_ns: 92_000,
        device: (259, 0),
        sector: 1 << 33 | number,
        sectors: 8,
        kind: RequestKind::Read,
    };
    let later = DeviceRequest { at_ns: to_ns, sector: 0, kind: RequestKind::Discard, ..request };
    let page = PageEvent {
        at_ns: from_ns + 5_000_000,
        device: (259, 2),
        inode: 77,
        index: number << 20,
        pages: 32,
        kind: PageEventKind::Added,
    };
    let other = PageEvent { inode: u64::MAX, pages: 1, kind: PageEventKind::Removed, ..page };
    AccessBatch {
        from_ns,
        to_ns,
        shifts: AccessShifts { requests: 0, moves: number as u8, touched: 22 },
        lost: AccessCounts { requests: 0, moves: number, touched: u64::MAX },
        requests: vec![request, later],
        pages: vec![page, page, other],
    }
}

fn written(mut who: impl FnMut(u64) -> Who, has_accesses: bool) -> Vec<u8> {
    let mut registry = Registry::new();
    let mut writer = file::Writer::new(Vec::new(), &Facts::default()).unwrap();
    let mut row = Row::default();
    for number in 0..ROWS {
        if number.is_multiple_of(5) {
            let name = format!("s.{number}");
            registry.id(&name, "count", model::recording::SeriesKind::Counter, "/proc/x");
        }
        for schema in registry.schemas() {
            row.count(schema.id, number * number * 4096 + u64::from(schema.id));
        }
        writer.who(&who(tick(number).at_ns)).unwrap();
        writer.sample(tick(number), registry.schemas(), &row).unwrap();
        if number % 4 == 3 {
            let span = Span {
                kind: "mark".to_owned(),
                text: format!("row {number}"),
                start_ns: number,
                end_ns: number,
            };
            if has_accesses {
                writer.accesses(&batch(number)).unwrap();
            }
            writer.span(&span).unwrap();
            writer.flush().unwrap();
        }
    }
    let outcome = RecordingOutcome { ended_ns: 1_200_000_000, ..RecordingOutcome::default() };
    writer.finish(&Facts::default(), &outcome).unwrap()
}

fn tick(number: u64) -> Tick {
    let due_ns = number * 100_000_000;
    Tick { due_ns, at_ns: due_ns + 1234 + number }
}

/// Whether every sample and value of `part` is one of `whole`.
fn is_prefix(part: &Recording, whole: &Recording) -> bool {
    let samples = part.ticks.len();
    whole.ticks.starts_with(&part.ticks)
        && part.series.len() <= whole.series.len()
        && part.series.iter().zip(&whole.series).all(|(part, whole)| {
            part.schema == whole.schema
                && (0..samples as u32).all(|sample| part.at(sample) == whole.at(sample))
        })
        && whole.spans.starts_with(&part.spans)
        && (part.outcome.is_none() || part.outcome == whole.outcome)
}

/// The file was written by version 0.1, in version 1.1 of the format.
#[test]
fn a_file_of_version_0_1_is_read_as_it_was_written() {
    let old = file::read(&include_bytes!("fixtures/version-0-1.trec")[..]).unwrap();
    assert_eq!(old, file::read(&whole()[..]).unwrap());
}

fn count_of(who: &Who) -> usize {
    who.rows.len() + who.file_rows.len() + who.samples.len() + who.requests.len()
}

/// Another version of zstd may pack differently: then this file must still be read, and a second
/// one beside it is compared.
#[test]
fn the_bytes_on_disk_are_those_of_format_1_3() {
    let bytes = whole_with_accesses();
    if let Some(path) = std::env::var_os("TERRACE_FIXTURE") {
        std::fs::write(path, &bytes).unwrap();
    }
    assert_eq!(bytes, include_bytes!("fixtures/format-1-3.trec"));
    let recording = file::read(&bytes[..]).unwrap();
    assert_eq!(recording.damage, Vec::<String>::new());
    let mut made = MadeWho::new(2);
    let samples = (0..ROWS).map(|number| made.sample(tick(number).at_ns));
    let rows = samples.map(|news| count_of(&news));
    let who = &recording.who;
    assert_eq!(count_of(who), rows.sum::<usize>());
    let accesses = file::AccessReader::new(Cursor::new(&bytes)).unwrap();
    let batches: Vec<AccessBatch> = accesses.map(Result::unwrap).collect();
    assert_eq!(batches, [batch(3), batch(7), batch(11)]);
}

#[test]
fn a_file_of_format_1_2_is_read_as_it_was_written() {
    let old = &include_bytes!("fixtures/format-1-2.trec")[..];
    let all = file::read(old).unwrap();
    assert_eq!(all, file::read(&whole_with_who()[..]).unwrap());
    assert_eq!(all, file::read(&whole_with_accesses()[..]).unwrap(), "accesses are read apart");
    assert!(file::AccessReader::new(Cursor::new(old)).unwrap().next().is_none());
}

/// What readers of versions 1.1 and 1.2 do with kinds that it does not know: it skips them.
#[test]
fn without_the_chunks_of_later_versions_the_rest_is_read() {
    let mut bytes = whole_with_accesses();
    let all = file::read(&bytes[..]).unwrap();
    let mut at = HEADER_BYTES;
    let mut renamed = 0;
    while at < bytes.len() {
        if matches!(bytes[at], 8..=10) {
            bytes[at] += 100;
            renamed += 1;
        }
        let length = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap());
        at += CHUNK_HEADER_BYTES + length as usize;
    }
    file::reseal(&mut bytes);
    let rest = file::read(&bytes[..]).unwrap();
    assert!(renamed >= 5, "{renamed}");
    assert_eq!(rest, Recording { who: Who::default(), ..all });
}

#[test]
fn a_file_cut_at_any_byte_opens_with_what_was_whole() {
    let bytes = whole();
    let all = file::read(&bytes[..]).unwrap();
    assert_eq!(all.damage, Vec::<String>::new());
    assert_eq!((all.ticks.len(), all.series.len()), (ROWS as usize, 3));
    let mut samples = Vec::new();
    for length in 0..bytes.len() {
        let cut = file::read(&bytes[..length]);
        if length < HEADER_BYTES {
            assert_eq!(cut.unwrap_err().kind, ErrorKind::NotARecording);
            continue;
        }
        let cut = cut.unwrap();
        assert!(is_prefix(&cut, &all), "cut at {length}");
        assert_eq!(cut.outcome, None, "cut at {length}");
        samples.push(cut.ticks.len());
    }
    assert!(samples.is_sorted());
    samples.dedup();
    assert_eq!(samples, [0, 4, 8, 12], "each chunk counts once it is whole");
}

#[test]
fn a_flipped_bit_is_never_taken_for_a_value() {
    let bytes = whole();
    let all = file::read(&bytes[..]).unwrap();
    for index in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[index] ^= 1 << bit;
            match file::read(&flipped[..]) {
                Ok(recording) => {
                    assert!(!recording.damage.is_empty(), "byte {index} bit {bit}");
                    assert!(is_prefix(&recording, &all), "byte {index} bit {bit}");
                }
                Err(error) => {
                    assert_eq!(error.kind, ErrorKind::NotARecording);
                    assert!(index < HEADER_BYTES);
                }
            }
        }
    }
}

/// A sink that takes so many bytes and then, like a full disk, a part of the next write.
struct Small {
    bytes: Vec<u8>,
    room: usize,
}

impl Write for Small {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = bytes.len().min(self.room - self.bytes.len());
        if count == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn after_a_failed_write_nothing_more_is_written() {
    let mut small = Small { bytes: Vec::new(), room: 1200 };
    let mut registry = Registry::new();
    let id = registry.id("s", "count", model::recording::SeriesKind::Gauge, "x").unwrap();
    let mut row = Row::default();
    let mut writer = file::Writer::new(&mut small, &Facts::default()).unwrap();
    let mut errors = 0;
    for number in 0..100 {
        row.set(id, number as i64);
        let _ = writer.sample(tick(number), registry.schemas(), &row);
        errors += u32::from(writer.flush().is_err());
    }
    assert!(errors > 1, "the sink was large enough for all");
    let whole_bytes = writer.bytes();
    assert!(writer.finish(&Facts::default(), &RecordingOutcome::default()).is_err());
    let recording = file::read(&small.bytes[..]).unwrap();
    assert!(!recording.ticks.is_empty());
    let last = recording.ticks.len() - 1;
    assert_eq!(recording.series[0].at(last as u32), Some(last as i64));
    assert!(whole_bytes <= small.bytes.len() as u64);
}

#[test]
fn on_a_full_disk_the_recording_keeps_its_end() {
    let tmpfs = match testkit::Tmpfs::mount(64 << 10) {
        Ok(tmpfs) => tmpfs,
        Err(need) => return testkit::skip(need),
    };
    let path = tmpfs.path().join("full.trec");
    let mut registry = Registry::new();
    for number in 0..32 {
        let name = format!("s.{number}");
        registry.id(&name, "count", model::recording::SeriesKind::Gauge, "x");
    }
    let mut output = FileSink::create(&path, false, &Facts::default()).unwrap();
    let mut row = Row::default();
    let mut random = testkit::Random(7);
    let mut taken = 0;
    let refused = loop {
        // Chunks of 30 KB, so that what is cut away has room for the end.
        for schema in registry.schemas() {
            row.set(schema.id, random.next_u64() as i64);
        }
        let sampled = output.sample(tick(taken), registry.schemas(), &row);
        taken += 1;
        if let Err(error) = sampled {
            break error;
        }
        assert!(taken < 1_000_000, "64 KiB never filled up");
    };
    assert_eq!(refused.path.as_deref(), Some(path.as_path()));
    let outcome = RecordingOutcome { ended_ns: 5, ..RecordingOutcome::default() };
    let recording = output.finish(&Facts::default(), &outcome).unwrap();
    assert!(!recording.ticks.is_empty());
    assert!((recording.ticks.len() as u64) < taken);
    let ended = recording.outcome.unwrap();
    assert_eq!(ended.ended_ns, 5);
    assert!(ended.stopped_early.is_some(), "rows were lost");
}

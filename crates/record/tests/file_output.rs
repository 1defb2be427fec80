//! Which files a recording may be written to, and that memory, file and ring tell the same.
//!
//! A person's file must survive every mistake on the command line.

#![allow(clippy::unwrap_used, reason = "a test program")]

use model::recording::{
    Facts, Recording, RecordingOutcome, Schema, SeriesKind, Span, Task, Tick, Who,
};
use record::file::{self, FileSink, MemoryFile, Ring, Writer};
use record::{RecordSink, Registry, Result, Row};
use std::os::unix::fs::PermissionsExt;
use testkit::TempDir;

fn facts() -> Facts {
    Facts { version: "1".to_owned(), started_unix_ns: 5, ..Facts::default() }
}

fn fill(mut output: impl RecordSink) -> Recording {
    let mut registry = Registry::new();
    let id = registry.id("a", "count", SeriesKind::Counter, "x").unwrap();
    let mut row = Row::default();
    for number in 0..250 {
        row.count(id, number / 3);
        let due_ns = number * 100_000_000;
        let tick = Tick { due_ns, at_ns: due_ns + 9 };
        output.sample(tick, registry.schemas(), &row).unwrap();
    }
    output.finish(&facts(), &RecordingOutcome::default()).unwrap()
}

#[test]
fn memory_file_and_ring_tell_the_same() {
    let directory = TempDir::new();
    let path = directory.join("a.trec");
    let memory = fill(Writer::new(MemoryFile::default(), &facts()).unwrap());
    let file = fill(FileSink::create(&path, false, &facts()).unwrap());
    let segments = directory.join("ring");
    let ring = fill(Ring::open(&segments, u64::MAX, 1 << 30, &facts()).unwrap());
    assert_eq!(memory.ticks.len(), 250);
    assert_eq!(memory, file);
    assert_eq!(memory, ring);
    assert_eq!(file::open(&path).unwrap(), file);
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it tells everybody's command lines");
}

/// A sink of two: what a program needs that writes a file and shows the same samples meanwhile.
struct Both<A, B>(A, B);

impl<A: RecordSink, B: RecordSink> RecordSink for Both<A, B> {
    fn sample(&mut self, tick: Tick, schemas: &[Schema], row: &Row) -> Result<()> {
        self.0.sample(tick, schemas, row)?;
        self.1.sample(tick, schemas, row)
    }

    fn span(&mut self, span: &Span) -> Result<()> {
        self.0.span(span)?;
        self.1.span(span)
    }

    fn tasks(&mut self, tasks: &[Task]) -> Result<()> {
        self.0.tasks(tasks)?;
        self.1.tasks(tasks)
    }

    fn who(&mut self, news: &Who) -> Result<()> {
        self.0.who(news)?;
        self.1.who(news)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()?;
        self.1.flush()
    }

    fn finish(self, facts: &Facts, outcome: &RecordingOutcome) -> Result<Recording> {
        let first = self.0.finish(facts, outcome)?;
        assert_eq!(first, self.1.finish(facts, outcome)?);
        Ok(first)
    }
}

#[test]
fn two_sinks_make_one() {
    let directory = TempDir::new();
    let file = FileSink::create(&directory.join("a.trec"), false, &facts()).unwrap();
    let memory = Writer::new(MemoryFile::default(), &facts()).unwrap();
    assert_eq!(fill(Both(file, memory)).ticks.len(), 250);
}

#[test]
fn only_a_recording_is_replaced_and_only_when_asked() {
    let directory = TempDir::new();
    let path = directory.join("a.trec");
    let usage = |error: record::Error| error.kind == record::ErrorKind::Usage;
    file::check(&path, false).unwrap();
    assert!(!path.exists(), "checking makes nothing");
    let first = fill(FileSink::create(&path, false, &facts()).unwrap());
    assert!(usage(file::check(&path, false).unwrap_err()));
    assert!(usage(FileSink::create(&path, false, &facts()).unwrap_err()));
    assert_eq!(file::open(&path).unwrap(), first, "left as it was");
    file::check(&path, true).unwrap();
    assert_eq!(file::open(&path).unwrap(), first, "checking changes nothing");
    drop(FileSink::create(&path, true, &facts()).unwrap());
    assert_eq!(file::open(&path).unwrap().ticks, []);

    let notes = directory.join("notes");
    std::fs::write(&notes, "mine").unwrap();
    assert!(usage(file::check(&notes, true).unwrap_err()));
    assert!(usage(FileSink::create(&notes, true, &facts()).unwrap_err()));
    assert_eq!(std::fs::read(&notes).unwrap(), b"mine");
    assert!(FileSink::create(directory.path(), true, &facts()).is_err());
}

#[test]
fn what_is_no_recording_is_said_to_be_none() {
    let directory = TempDir::new();
    let path = directory.join("x");
    for bytes in [&b""[..], b"\x89TREC", b"time,value\n1,2\n3,4\n5,6\n"] {
        std::fs::write(&path, bytes).unwrap();
        let error = file::open(&path).unwrap_err();
        assert_eq!(error.kind, record::ErrorKind::NotARecording, "{error}");
        assert_eq!(error.path.as_deref(), Some(path.as_path()));
    }
    let error = file::open(std::path::Path::new("/dev/null")).unwrap_err();
    assert_eq!(error.kind, record::ErrorKind::NotARecording);
    assert!(file::open(&directory.join("absent")).is_err());
}

#[test]
fn a_newer_version_is_named_and_what_to_do() {
    let writer = file::Writer::new(Vec::new(), &facts()).unwrap();
    let mut bytes = writer.finish(&facts(), &RecordingOutcome::default()).unwrap();
    bytes[8..10].copy_from_slice(&(file::VERSION_MAJOR + 1).to_le_bytes());
    let sum = crc32c::crc32c(&bytes[..12]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    let error = file::read(&bytes[..]).unwrap_err();
    assert_eq!(error.kind, record::ErrorKind::NotARecording);
    assert!(error.to_string().contains("newer"), "{error}");
}

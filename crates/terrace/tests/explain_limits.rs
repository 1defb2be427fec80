//! Recordings and texts that are made to fill memory: every command that reads one stays below
//! 512 MiB. What fits is taken, or one line says why nothing is.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use model::recording::{Ending, Facts, RecordingOutcome, SeriesKind, Subject, Tick};
use record::file::Writer;
use record::{Registry, Row};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use support::command;
use sys::wait::ChildEnding;
use testkit::{Random, TempDir};

/// What every reader stays below.
const MEMORY_BYTES: u64 = 512 << 20;

/// As many series as a recording may have.
const MAX_SERIES: usize = 32_768;

const DONE: ChildEnding = ChildEnding::Exited { code: 0 };

/// Rows of the chunk that is repeated.
const ROWS: u64 = 30;

/// How a command ended, what it took, and all that it wrote.
struct Took {
    ended: ChildEnding,
    memory_bytes: u64,
    said: String,
}

#[expect(clippy::zombie_processes, reason = "`sys` waits for it, and tells what it took")]
fn took(line: &str, directory: &TempDir) -> Took {
    let said = directory.join("said");
    let out = fs::File::create(&said).unwrap();
    let mut command = command(line);
    command.stdin(Stdio::null());
    command.stderr(out.try_clone().unwrap()).stdout(out);
    let child = command.spawn().unwrap();
    let exit = sys::wait::wait(child.id()).unwrap();
    Took {
        ended: exit.ended,
        memory_bytes: exit.usage.max_rss_bytes,
        said: fs::read_to_string(said).unwrap(),
    }
}

/// The same chunk of samples `repeats` times: each value of it changes by numbers that do not
/// pack, the same in each series, so that the file is small. The command ended with 7.
fn write_recording(path: &Path, repeats: usize) {
    let facts = Facts {
        subject: Subject::Command { argv: vec!["fills".to_owned()] },
        processors: 1,
        ..Facts::default()
    };
    let mut registry = Registry::new();
    for number in 0..MAX_SERIES {
        registry.id(&format!("s.{number}"), "count", SeriesKind::Gauge, "x");
    }
    let mut writer = Writer::new(Vec::new(), &facts).unwrap();
    let mut random = Random(7);
    let steps: Vec<i64> = (0..ROWS).map(|_| random.next_u64().cast_signed() | 1).collect();
    let mut row = Row::default();
    let mut value = 0i64;
    let mut samples = |writer: &mut Writer<Vec<u8>>, from: u64| {
        for (number, step) in (from..).zip(&steps) {
            value = value.wrapping_add(*step);
            (0..MAX_SERIES as u32).for_each(|id| row.set(id, value));
            let due_ns = number * 100_000_000;
            let tick = Tick { due_ns, at_ns: due_ns };
            writer.sample(tick, registry.schemas(), &row).unwrap();
        }
        writer.flush().unwrap();
        writer.bytes() as usize
    };
    samples(&mut writer, 0);
    let start = samples(&mut writer, ROWS);
    let end = samples(&mut writer, 2 * ROWS);
    let outcome = RecordingOutcome {
        ending: Ending::Exited { code: 7 },
        ended_ns: (repeats as u64 + 2) * ROWS * 100_000_000,
        ..RecordingOutcome::default()
    };
    let bytes = writer.finish(&facts, &outcome).unwrap();
    let mut file = fs::File::create(path).unwrap();
    file.write_all(&bytes[..start]).unwrap();
    for _ in 0..repeats {
        file.write_all(&bytes[start..end]).unwrap();
    }
    file.write_all(&bytes[end..]).unwrap();
}

#[test]
fn two_small_files_of_many_changes_are_compared_within_bounds() {
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    // 13 million changes; each took 24 bytes once, in both recordings.
    write_recording(&file, 11);
    assert!(fs::metadata(&file).unwrap().len() < 8 << 20);
    let file = file.display();
    let proof = took(&format!("proof --claim less {file} {file}"), &directory);
    assert_eq!(proof.ended, DONE, "{}", proof.said);
    let mib = proof.memory_bytes >> 20;
    assert!(proof.memory_bytes < MEMORY_BYTES, "{mib} MiB");
}

#[test]
fn a_text_of_many_values_is_imported_within_bounds() {
    let directory = TempDir::new();
    let zeros = "0,".repeat(18 << 20);
    let report =
        r#"{"timestamp": {"date": "2026-11-22", "time": "10:15:10", "interval": 10}, "x": ["#;
    let texts = [
        (format!("{{\"sysstat\":{{\"x\":[{zeros}0]}}}}"), "no report"),
        (
            format!("{{\"sysstat\":{{\"hosts\":[{{\"statistics\":[{report}{zeros}0]}}]}}]}}}}"),
            "more than 262144 values",
        ),
    ];
    for (text, why) in texts {
        let file = directory.join("text");
        fs::write(&file, text).unwrap();
        let out = directory.join("x.trec");
        let line = format!("import {} -o {}", file.display(), out.display());
        let imported = took(&line, &directory);
        assert!(imported.said.contains(why), "{}", imported.said);
        assert_eq!(imported.said.lines().count(), 1, "{}", imported.said);
        let mib = imported.memory_bytes >> 20;
        assert!(imported.memory_bytes < MEMORY_BYTES, "{mib} MiB");
        assert!(!out.exists());
    }
}

//! Small inputs that take much: memory, time, or the patience of who pressed Ctrl-C.
//!
//! Recordings and snapshots that unpack to a thousand times their size, and sparse files.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::TempDir;

use super::judge::{self, Expected, Form, TIME_LIMIT, within};
use super::snapshot;
use super::stage::{AttackStage, Held, PATIENCE, Stop, bad, ensure, shown, text, words};
use super::trec::{self, Chunk};
use super::who;
use crate::process::{self, Limits, Running};

/// Columns and rows of the widest chunk of samples that a reader takes.
const COLUMNS: usize = 32_768;
const ROWS: usize = 100;
/// So many of them are more changes than a reader takes.
const CHUNKS: usize = 21;
/// So many chunks of the most rows.
const GROWTHS: usize = 60;
/// What the documentation grants to `explain`, and some for the program itself.
const EXPLAIN_BYTES: u64 = 1 << 30;
/// More than any reading of a recording takes in a debug build on a loaded machine.
const READ_LIMIT: Duration = Duration::from_secs(120);
/// Sparse files: each took 0.4 s, in a release build.
const SPARSE_FILES: usize = 300;
const SPARSE_BYTES: u64 = (16 << 40) - 4096;
/// The largest file that the kernel can describe, rounded down to pages.
const LARGEST_BYTES: u64 = (1 << 63) - 4097;

/// Facts, series and outcome of a fixture, in this order.
fn frame(stage: &AttackStage) -> Result<(Value, Chunk, Chunk), Stop> {
    let chunks = trec::parse(stage.recording("hog_beside")?);
    let find = |kind: u8| chunks.iter().rev().find(|chunk| chunk.kind == kind).cloned();
    let found = find(trec::FACTS).zip(find(trec::OUTCOME)).zip(find(trec::SCHEMA));
    let ((facts, outcome), schema) =
        found.ok_or_else(|| Stop::Failed("the fixture is not whole".to_owned()))?;
    let facts = facts.values().first().cloned().unwrap_or_default();
    Ok((facts, schema, outcome))
}

/// L3: 65 KB that hold 64 Mi changes of values.
pub(super) fn changes(stage: &AttackStage) -> Held {
    let directory = stage.scratch("changes")?;
    let (facts, _, outcome) = frame(stage)?;
    let mut bytes = trec::header(1, 2);
    let mut add = |chunk: &Chunk| bytes.extend(trec::encode(chunk, Some(19)));
    add(&Chunk::lines(trec::FACTS, &[facts]));
    let series = |id: usize| json!({"id": id, "name": format!("s{id}"), "unit": "ns", "kind": "counter", "source": "x", "refresh_ns": null});
    let all: Vec<Value> = (0..COLUMNS).map(series).collect();
    all.chunks(8192).for_each(|lines| add(&Chunk::lines(trec::SCHEMA, lines)));
    let samples = trec::encode(&Chunk::new(trec::SAMPLES, dense()), Some(19));
    (0..CHUNKS).for_each(|_| bytes.extend(&samples));
    bytes.extend(trec::encode(&outcome, Some(19)));
    let file = directory.join("changes.trec");
    std::fs::write(&file, bytes)?;
    let path = text(&file);
    let out = directory.join("out.html");
    for arguments in [words(["explain", path]), words(["view", "--html", text(&out), path])] {
        let limits = Limits { time: READ_LIMIT, memory_bytes: Some(EXPLAIN_BYTES) };
        hold(stage, &arguments, limits)?;
    }
    Ok(())
}

/// Every value grows by one in every row.
fn dense() -> Vec<u8> {
    let mut bytes = trec::varint(ROWS as u64);
    bytes.extend(trec::varint(COLUMNS as u64));
    bytes.extend(vec![0; 2 * ROWS]);
    bytes.extend(vec![0xff; COLUMNS / 8]);
    let mut column = vec![0, 1];
    column.extend(vec![2; ROWS]);
    bytes.extend(column.repeat(COLUMNS));
    bytes
}

/// A small file that holds two million rows of processes without a name.
pub(super) fn growths(stage: &AttackStage) -> Held {
    let directory = stage.scratch("growths")?;
    let (facts, schema, outcome) = frame(stage)?;
    let mut bytes = trec::header(1, 2);
    let [identities, growths] = who::most();
    for chunk in [Chunk::lines(trec::FACTS, &[facts]), schema, identities] {
        bytes.extend(trec::encode(&chunk, Some(19)));
    }
    let rows = trec::encode(&growths, Some(19));
    (0..GROWTHS).for_each(|_| bytes.extend(&rows));
    bytes.extend(trec::encode(&outcome, Some(19)));
    let [file, out] = ["growths.trec", "out"].map(|name| directory.join(name));
    std::fs::write(&file, &bytes)?;
    ensure(bytes.len() < 4 << 20, || format!("{} bytes", bytes.len()))?;
    let path = text(&file);
    let export = |to| words(["export", "--to", to, "--no-redact", "-o", text(&out), path]);
    for arguments in [words(["explain", path]), export("perfetto"), export("json")] {
        let limits = Limits { time: READ_LIMIT, memory_bytes: Some(EXPLAIN_BYTES) };
        hold(stage, &arguments, limits)?;
    }
    let json = std::fs::read_to_string(&out)?;
    let has_rows = json.contains("\"rows\":[{\"process\":");
    ensure(has_rows, || "the reader believed none of the rows".to_owned())?;
    // What other cases put into recordings is believed as well.
    let [identities, growths] = who::named("x");
    std::fs::write(&file, trec::file(&[identities, growths, outcome]))?;
    hold(stage, &export("json"), within(PATIENCE))?;
    let json = std::fs::read_to_string(&out)?;
    let is_whole =
        ["\"/srv/filex\"", "\"written_bytes\":1073741824", "\"evicted_bytes\":1073741824"]
            .iter()
            .all(|part| json.contains(part));
    ensure(is_whole, || format!("not all of {json}"))
}

/// L4: every word of a long command line was looked for at every letter of a text.
pub(super) fn redaction(stage: &AttackStage) -> Held {
    let directory = stage.scratch("redaction")?;
    let (mut facts, schema, outcome) = frame(stage)?;
    let word = |index: usize| Value::from(format!("{}{index:04}", "r".repeat(40)));
    let argv: Vec<Value> = [Value::from("x")].into_iter().chain((0..4090).map(word)).collect();
    facts["redacted"] = Value::from(false);
    facts["subject"] = json!({"kind": "command", "argv": argv});
    let span = json!({"kind": "rate", "text": "r".repeat(1 << 20), "start_ns": 1, "end_ns": 1});
    let chunks =
        [Chunk::lines(trec::FACTS, &[facts]), schema, Chunk::lines(trec::SPANS, &[span]), outcome];
    let [path, out] = ["redaction.trec", "out"].map(|name| directory.join(name));
    std::fs::write(&path, trec::file(&chunks))?;
    let arguments = words(["export", "--to", "json", "-o", text(&out), text(&path)]);
    hold(stage, &arguments, within(PATIENCE))
}

/// Runs a command once and judges it with these limits.
fn hold(stage: &AttackStage, arguments: &[OsString], limits: Limits) -> Held {
    let observed = process::observe(stage.terrace(arguments), limits)?;
    let memory_bytes = limits.memory_bytes.unwrap_or(u64::MAX);
    let expected = Expected { memory_bytes, ..Expected::of(Form::Text) };
    judge::judge(&observed, &expected).map_err(|why| bad(&why, &shown(arguments)))
}

/// A file of this length without a block.
fn sparse(path: &Path, bytes: u64) -> std::io::Result<File> {
    let file = File::create(path)?;
    file.set_len(bytes)?;
    Ok(file)
}

/// M6: files that hold nothing, and are looked at for hours.
pub(super) fn sparse_files(stage: &AttackStage) -> Held {
    // On a disk: files in RAM have none to come back from, and are left out.
    let directory = stage.scratch("sparse")?;
    let files = (0..SPARSE_FILES)
        .map(|number| sparse(&directory.join(number.to_string()), SPARSE_BYTES))
        .collect::<Result<Vec<File>, _>>()
        .map_err(|_| Stop::Needs("a file system that takes files of 16 TiB".to_owned()))?;
    let pid = std::process::id().to_string();
    let arguments = words(["warm", "show", "--pid", &pid]);
    let mut command = stage.terrace(&arguments);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = Running::start(command)?;
    thread::sleep(Duration::from_secs(2));
    process::signal(running.pid(), "INT")?;
    let observed = running.finish(within(TIME_LIMIT * 2))?;
    ensure(!observed.is_late, || "the first Ctrl-C does not end `warm show`".to_owned())?;
    hold(stage, &arguments, within(PATIENCE))?;
    drop(files);
    Ok(())
}

/// M6: a snapshot of one file of 8 EiB took for ever.
pub(super) fn sparse_snapshot(stage: &AttackStage) -> Held {
    let shared = TempDir::in_dir(Path::new("/dev/shm"));
    let path = shared.join("sparse");
    drop(sparse(&path, LARGEST_BYTES)?);
    let directory = stage.scratch("sparse-snapshot")?;
    let lines = [
        json!({"machine": {"at_ns": 1, "cached_bytes": 1, "found_bytes": 1}}),
        snapshot::file(text(&path), &[0, LARGEST_BYTES >> 12])?,
    ];
    let file = directory.join("sparse.snap");
    std::fs::write(&file, trec::snapshot(&trec::json_lines(&lines)))?;
    let arguments = words(["warm", "restore", "--dry-run", text(&file)]);
    hold(stage, &arguments, within(PATIENCE))
}

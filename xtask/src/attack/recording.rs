//! Mutants of recordings and of rings: chunks, JSON, columns, processes and bytes, with the
//! checksums made right again, so that what is behind the checksum is reached.
//!
//! Each mutant is one call of a command that reads recordings: `explain`, `export`, `view --html`,
//! `compare`, `proof` or `advise`. A ring is a directory of such files under the names of segments.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use serde_json::{Value, json};
use testkit::Random;

use super::accesses;
use super::judge::Form;
use super::mutate::{self, EXTREMES, chance, pick, place};
use super::stage::{AttackStage, Held, text, words};
use super::trec::{self, Chunk};
use super::who;

/// The kinds of spans that the reader knows, and one that it does not.
const SPAN_KINDS: &[&str] = &[
    "mark",
    "gap",
    "rate",
    "clock_jump",
    "progress",
    "device_added",
    "device_removed",
    "group_changed",
    "events_stopped",
    "events_paused",
    "imported",
    "",
];

/// Texts that the reader takes apart.
const SPAN_TEXTS: &[&str] = &[
    "x",
    "the clock was set back by 9999999.0 s",
    "the clock was set forward by 922337203685477580.7 s",
    "50 %",
    "1 of 0",
    "done 18446744073709551615",
    "",
];

/// One mutant of a recording, read by one command.
pub(super) fn attack_file(stage: &AttackStage, random: &mut Random, directory: &Path) -> Held {
    let [a, b] = ["a.trec", "b.trec"].map(|name| directory.join(name));
    std::fs::write(&a, mutant(stage, random))?;
    let second = if chance(random, 50) {
        mutant(stage, random)
    } else {
        pick(random, &stage.recordings).1.clone()
    };
    std::fs::write(&b, second)?;
    let (arguments, form) = reader_of(random, directory, text(&a), text(&b));
    stage.attack(&arguments, form).map(drop)
}

/// One ring of mutants, read by one command.
pub(super) fn attack_ring(stage: &AttackStage, random: &mut Random, directory: &Path) -> Held {
    let ring = directory.join("ring");
    std::fs::create_dir(&ring)?;
    for index in 0..*pick(random, &[1, 2, 3, 5]) {
        let start = match random.below(3) {
            0 => random.next_u64(),
            1 => 1_700_000_000_000_000_000 + index * 1_000_000_000,
            _ => *pick(random, EXTREMES),
        };
        std::fs::write(ring.join(format!("terrace-{start:020}.trec")), mutant(stage, random))?;
    }
    let (arguments, form) = reader_of(random, directory, text(&ring), text(&ring));
    stage.attack(&arguments, form).map(drop)
}

/// A command that reads `a`, and perhaps `b`.
fn reader_of(random: &mut Random, directory: &Path, a: &str, b: &str) -> (Vec<OsString>, Form) {
    let out_path = directory.join("out");
    let out = text(&out_path);
    let redact = *pick(random, &["--redact", "--no-redact"]);
    match random.below(15) {
        0..3 => (words(["explain", "--json", a]), Form::Json),
        3 => (words(["explain", "--details", a]), Form::Text),
        4 => {
            let at = *pick(random, &["1s", "0s", "99999999999s", "14:32", "00:00:00"]);
            let option = *pick(random, &["--at", "--from", "--to"]);
            (words(["explain", option, at, a]), Form::Text)
        }
        5 | 6 => {
            let to = *pick(random, &["csv", "json", "trec", "perfetto", "openmetrics"]);
            (words(["export", "--to", to, redact, "-o", out, a]), Form::Text)
        }
        7 => (words(["view", "--html", out, redact, a]), Form::Text),
        8 => (words(["view", "--html", out, "--align", "progress", a, b]), Form::Text),
        9 => (words(["compare", "--json", a, b]), Form::Json),
        10 => {
            let align = *pick(random, &["time", "progress"]);
            (words(["compare", "--align", align, "--html", out, a, b]), Form::Text)
        }
        11 => (words(["proof", "--claim", "swap", "-o", out, a, b]), Form::Text),
        12 | 13 => (words(["advise", "--json", "--page", out, a]), Form::Json),
        _ => (words(["export", "--to", "oracle-general", redact, "-o", out, a]), Form::Text),
    }
}

/// The bytes of one changed recording.
fn mutant(stage: &AttackStage, random: &mut Random) -> Vec<u8> {
    let index = random.below(stage.chunks.len() as u64) as usize;
    if chance(random, 6) {
        let mut bytes = stage.recordings[index].1.clone();
        mutate::bytes(random, &mut bytes);
        return bytes;
    }
    let mut chunks = stage.chunks[index].clone();
    if chance(random, 6) {
        chunks.extend(pick(random, &stage.chunks).iter().cloned());
    }
    if chance(random, 40) {
        let at = place(random, chunks.len());
        chunks.splice(at..at, who::chunks(random));
    }
    if chance(random, 25) {
        let at = place(random, chunks.len());
        chunks.splice(at..at, accesses::chunks(random));
    }
    for _ in 0..*pick(random, &[1, 1, 2, 3]) {
        change(random, &mut chunks);
    }
    if chance(random, 20) {
        let at = place(random, chunks.len());
        chunks.insert(at, spans(random));
    }
    let mut bytes = if chance(random, 2) {
        trec::header(*pick(random, &[0, 1, 2, 65535]), random.below(65536) as u16)
    } else {
        trec::header(1, 2)
    };
    for chunk in &chunks {
        let level = chance(random, 80).then_some(3);
        bytes.extend(trec::encode(chunk, level));
    }
    if chance(random, 5) {
        bytes.truncate(place(random, bytes.len()));
    }
    bytes
}

/// One change of the list of chunks, or of one chunk.
fn change(random: &mut Random, chunks: &mut Vec<Chunk>) {
    if chunks.is_empty() {
        return;
    }
    let schemas = chunks.iter().filter(|chunk| chunk.kind == trec::SCHEMA);
    let columns = schemas.map(|chunk| chunk.values().len()).sum::<usize>();
    let at = random.below(chunks.len() as u64) as usize;
    match random.below(20) {
        0 => drop(chunks.remove(at)),
        1 => {
            let copy = chunks[at].clone();
            chunks.insert(place(random, chunks.len()), copy);
        }
        2 => chunks[at].kind = *pick(random, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 255]),
        3 | 4 => {
            chunks[at].first_ns = *pick(random, EXTREMES);
            chunks[at].last_ns = *pick(random, EXTREMES);
        }
        5..8 => mutate::bytes(random, &mut chunks[at].raw),
        8..11 => {
            let rows = chunks.iter_mut().filter(|chunk| chunk.kind == trec::SAMPLES);
            if let Some(chunk) = rows.last() {
                chunk.raw = samples(random, columns);
            }
        }
        _ => change_json(random, &mut chunks[at]),
    }
}

/// Changes the JSON of a chunk; its bytes if it holds none.
fn change_json(random: &mut Random, chunk: &mut Chunk) {
    let per_mille = *pick(random, &[1, 10, 20, 100, 400]);
    let mut lines = chunk.values();
    if lines.is_empty() {
        return mutate::bytes(random, &mut chunk.raw);
    }
    let has_ids = chunk.kind == trec::SCHEMA && chance(random, 70);
    for (id, line) in lines.iter_mut().enumerate() {
        *line = mutate::json(random, line, per_mille);
        if has_ids {
            line["id"] = Value::from(id);
        }
    }
    chunk.raw = trec::json_lines(&lines);
}

/// A chunk of spans at extreme times.
fn spans(random: &mut Random) -> Chunk {
    let span = |random: &mut Random| {
        json!({
            "kind": pick(random, SPAN_KINDS),
            "text": pick(random, SPAN_TEXTS),
            "start_ns": pick(random, EXTREMES),
            "end_ns": pick(random, EXTREMES),
        })
    };
    let lines: Vec<Value> = (0..random.below(20)).map(|_| span(random)).collect();
    Chunk::lines(trec::SPANS, &lines)
}

/// Samples in every coding, with extreme differences and times.
fn samples(random: &mut Random, columns: usize) -> Vec<u8> {
    let rows = *pick(random, &[1_u64, 2, 3, 10, 50, 100]);
    let mut bytes = trec::varint(rows);
    bytes.extend(trec::varint(columns as u64));
    for _ in 0..rows {
        let due = if chance(random, 20) {
            *pick(random, &[0, 100_000_000, 1_000_000_000, i64::MAX, i64::MIN])
        } else {
            0
        };
        bytes.extend(trec::signed(due));
    }
    for _ in 0..rows {
        let late = if chance(random, 10) { mutate::number(random) } else { 0 };
        bytes.extend(trec::varint(late));
    }
    let mut changed = vec![0_u8; columns.div_ceil(8)];
    let mut body = Vec::new();
    for column in 0..columns {
        if chance(random, 50) {
            changed[column / 8] |= 1 << (column % 8);
            body.extend(column_of(random, rows));
        }
    }
    bytes.extend(changed);
    bytes.extend(body);
    bytes
}

/// One column: dense, sparse or with gaps.
fn column_of(random: &mut Random, rows: u64) -> Vec<u8> {
    let coding = *pick(random, &[0_u8, 0, 1, 2]);
    let mut bytes = vec![coding];
    if coding < 2 {
        bytes.extend(trec::varint(*pick(random, &[1, 512, 4096, u64::MAX >> 1])));
    }
    let style = random.below(4);
    let difference = |random: &mut Random| match style {
        0 => 0,
        1 => random.below(1_000_000) as i64,
        2 => mutate::number(random) as i64,
        _ => random.below(1 << 41) as i64 - (1 << 40),
    };
    if coding == 0 {
        (0..rows).for_each(|_| bytes.extend(trec::signed(difference(random))));
        return bytes;
    }
    let changes = random.below(rows + 1);
    bytes.extend(trec::varint(changes));
    for _ in 0..changes {
        bytes.push(0);
        let is_present = chance(random, 50);
        if coding == 2 {
            bytes.push(u8::from(is_present));
        }
        if coding == 1 || is_present {
            bytes.extend(trec::signed(difference(random)));
        }
    }
    bytes
}

/// Writes one fixture as a file.
pub(super) fn plain(
    stage: &AttackStage,
    directory: &Path,
    name: &str,
) -> io::Result<std::path::PathBuf> {
    let path = directory.join(format!("{name}.trec"));
    std::fs::write(&path, stage.recording(name)?)?;
    Ok(path)
}

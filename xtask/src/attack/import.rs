//! Mutants of what other tools write, imported; what could be imported is then read.
//!
//! The samples are those of the importer's own tests. Mutants change numbers, lines, words and
//! bytes.

use std::path::Path;

use testkit::Random;
use testkit::tool_reports::{FIO, FIO_LOG, IOSTAT, SADF, VMSTAT};

use super::judge::Form;
use super::mutate::{self, chance, pick, place};
use super::stage::{AttackStage, Held, text, words};

/// The texts with the name of their tool.
const SEEDS: &[(&str, &str)] =
    &[("vmstat", VMSTAT), ("iostat", IOSTAT), ("sadf", SADF), ("fio", FIO), ("fio-log", FIO_LOG)];

const TOKENS: &[&str] = &[
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1e999",
    "-1",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "0",
    "-0",
    "0.0000001",
    "99999999999999999999999",
    "",
    "é",
    "\u{202e}",
    "\u{1b}[31m",
    "\0",
    "99:99:99",
    "0000-00-00",
    "9999999-12-31 23:59:59",
    "1970-01-01 00:00:00",
    "null",
    "[]",
    "{}",
    "\"x\"",
    ",",
    ":",
];

/// A mutant grows by repetition; more is not an attack but a bomb.
const TEXT_BYTES_MAX: usize = 200_000;

/// One mutant, imported; the recording that came out of it is read.
pub(super) fn attack(stage: &AttackStage, random: &mut Random, directory: &Path) -> Held {
    let (tool, seed) = *pick(random, SEEDS);
    let name = format!("a_{}.1.log", pick(random, &["bw", "iops", "lat", "clat", "slat"]));
    let [input, recording, out] =
        [name.as_str(), "out.trec", "out"].map(|name| directory.join(name));
    std::fs::write(&input, mutant(random, seed))?;
    let [input, recording, out] = [&input, &recording, &out].map(|path| text(path));
    let mut arguments = words(["import", input, "-o", recording]);
    if chance(random, 40) {
        let from = if chance(random, 50) { tool } else { pick(random, SEEDS).0 };
        arguments.extend(words(["--from", from]));
    }
    if chance(random, 40) {
        let interval = *pick(random, &["1s", "0s", "1ns", "99999999h", "0.5s", "100ms"]);
        arguments.extend(words(["--interval", interval]));
    }
    if stage.attack(&arguments, Form::Text)?.status() != Some(0) {
        return Ok(());
    }
    let (arguments, form) = match random.below(4) {
        0 => (words(["explain", "--json", recording]), Form::Json),
        1 => (words(["explain", "--details", recording]), Form::Text),
        2 => (words(["view", "--html", out, recording]), Form::Text),
        _ => (words(["export", "--to", "csv", "-o", out, recording]), Form::Text),
    };
    stage.attack(&arguments, form).map(drop)
}

fn mutant(random: &mut Random, seed: &str) -> Vec<u8> {
    let mut text = seed.to_owned();
    for _ in 0..*pick(random, &[1, 1, 2, 4, 10]) {
        text = change(random, &text);
        let mut cut = text.len().min(TEXT_BYTES_MAX);
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        text.truncate(cut);
    }
    let mut bytes = text.into_bytes();
    if chance(random, 3) {
        mutate::bytes(random, &mut bytes);
    }
    bytes
}

/// One change of a word, a line or a place.
fn change(random: &mut Random, text: &str) -> String {
    let token = *pick(random, TOKENS);
    let separator = *pick(random, &[' ', '\n', ',', ':']);
    let mut pieces: Vec<&str> = text.split(separator).collect();
    let at = random.below(pieces.len() as u64) as usize;
    match random.below(6) {
        0 | 1 => pieces[at] = token,
        2 => pieces.insert(at, pieces[at]),
        3 => drop(pieces.remove(at)),
        4 => pieces.truncate(at),
        _ => {
            let copy = pieces[at..].iter().take(5).copied().collect::<Vec<_>>();
            let count = *pick(random, &[2, 50]);
            let end = place(random, pieces.len());
            pieces.splice(end..end, copy.repeat(count));
        }
    }
    pieces.join(&separator.to_string())
}

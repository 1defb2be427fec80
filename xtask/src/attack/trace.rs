//! Mutants of the traces of other tools, as `advise` and `export --to oracle-general` read them:
//! MSR CSV, blkparse, fio's iolog 2 and 3, and oracleGeneral, plain and packed with zstd.
//!
//! Seeds have so many reads that caches are simulated with them.

use std::path::Path;

use testkit::Random;

use super::judge::Form;
use super::mutate::{self, chance, pick};
use super::stage::{AttackStage, Held, text, words};

/// `advise` judges no fewer reads than 1,000.
const READS: u64 = 1_200;

/// Words that stand in place of a field.
const TOKENS: &[&str] = &[
    "18446744073709551615",
    "18446744073709551616",
    "1152921504606846976",
    "1152921504606846975",
    "4294967296",
    "4294967295",
    "9223372036854775807",
    "-1",
    "0",
    "nan",
    "",
    "Read",
    "Write",
    "Q",
    "D",
    "C",
    "+",
    "[0]",
    "wait",
    "é",
    "\u{1b}[31m",
    "\0",
];

/// One mutant, judged or exported.
pub(super) fn attack(stage: &AttackStage, random: &mut Random, directory: &Path) -> Held {
    let [input, page, out] = ["trace", "page.html", "out"].map(|name| directory.join(name));
    std::fs::write(&input, mutant(random))?;
    let [input, page, out] = [&input, &page, &out].map(|path| text(path));
    let (arguments, form) = match random.below(4) {
        0 => (words(["advise", "--json", input]), Form::Json),
        1 => (words(["advise", "--page", page, input]), Form::Text),
        2 => {
            let size = *pick(random, &["1m,4k", "16777216t", "1"]);
            (words(["advise", "--flash", size, "--ram", size, input]), Form::Text)
        }
        _ => (words(["export", "--to", "oracle-general", "-o", out, input]), Form::Text),
    };
    stage.attack(&arguments, form).map(drop)
}

fn mutant(random: &mut Random) -> Vec<u8> {
    let form = random.below(5);
    let mut bytes = if form == 4 { oracle(random) } else { changed(random, &lines(form)) };
    if chance(random, 20) {
        mutate::bytes(random, &mut bytes);
    }
    if chance(random, 25) {
        bytes = zstd::bulk::compress(&bytes, 3).unwrap_or(bytes);
        if chance(random, 50) {
            mutate::bytes(random, &mut bytes);
        }
    }
    bytes
}

/// A whole trace of lines.
fn lines(form: u64) -> Vec<String> {
    let head: &[&str] = match form {
        2 => &["fio version 2 iolog", "/dev/sdb add", "/dev/sdb open"],
        3 => &["fio version 3 iolog", "0 /dev/sdb add", "0 /dev/sdb open"],
        _ => &[],
    };
    let of_read = |at: u64| {
        let sector = at % 300 * 800;
        let offset = sector * 512;
        match form {
            0 => vec![format!("{},hm,0,Read,{offset},4096,80000", at * 100_000)],
            1 => ["Q", "D", "C"]
                .iter()
                .map(|action| {
                    format!("  8,0 3 {at} {at}.000000000 697 {action} R {sector} + 8 [x]")
                })
                .collect(),
            2 => vec![format!("/dev/sdb read {offset} 4096")],
            _ => vec![format!("{at} /dev/sdb read {offset} 4096")],
        }
    };
    head.iter().map(|line| (*line).to_owned()).chain((0..READS).flat_map(of_read)).collect()
}

/// Changes of some fields and lines.
fn changed(random: &mut Random, lines: &[String]) -> Vec<u8> {
    let mut lines = lines.to_vec();
    for _ in 0..*pick(random, &[1, 1, 2, 4]) {
        // Late lines more often: what is before them was taken already.
        let last = lines.len() as u64 - 1;
        let span = if chance(random, 60) { last.min(8) + 1 } else { last + 1 };
        let at = (last - random.below(span)) as usize;
        match random.below(6) {
            0..3 => {
                let separator =
                    if lines[at].contains(',') && !lines[at].contains('+') { ',' } else { ' ' };
                let mut fields: Vec<&str> = lines[at].split(separator).collect();
                let field = random.below(fields.len() as u64) as usize;
                fields[field] = *pick(random, TOKENS);
                lines[at] = fields.join(&separator.to_string());
            }
            3 => {
                let mut end = random.below(lines[at].len() as u64 + 1) as usize;
                while !lines[at].is_char_boundary(end) {
                    end -= 1;
                }
                lines[at].truncate(end);
            }
            4 => lines.swap(at, 0),
            _ => lines[at] = "x".repeat(*pick(random, &[1, 8191, 8192, 9000])),
        }
    }
    let end = if chance(random, 50) { "\n" } else { "" };
    (lines.join("\n") + end).into_bytes()
}

/// Records of 24 bytes, some with extreme numbers.
fn oracle(random: &mut Random) -> Vec<u8> {
    let is_wild = chance(random, 50);
    let mut bytes = Vec::new();
    for at in 0..READS {
        let id = if is_wild && chance(random, 10) { mutate::number(random) } else { at % 300 };
        bytes.extend((at as u32).to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(4096_u32.to_le_bytes());
        bytes.extend((-1_i64).to_le_bytes());
    }
    if chance(random, 30) {
        bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
    }
    bytes
}

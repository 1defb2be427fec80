//! Odd words where a duration, a size, a time, a share or a name is expected.
//!
//! Words are made of others that are each nearly right. All commands here read a fixture or only
//! say what they would do.

use std::path::Path;

use testkit::Random;

use super::judge::Form;
use super::mutate::{chance, pick, place};
use super::recording::plain;
use super::stage::{AttackStage, Held, text, words};

const WORDS: &[&str] = &[
    "0",
    "1",
    "-1",
    "",
    ".",
    "1.5s",
    "s",
    "1e9s",
    "1e400s",
    "nan",
    "inf",
    "18446744073709551615",
    "18446744073709551616s",
    "99999999999999999999h",
    "584542046090h",
    "14:32",
    "24:00",
    "23:59:60",
    "1:2:3:4",
    "é:ü",
    "１２:３４",
    "12:3４",
    "-0s",
    "0x10s",
    "1 s",
    "\t1s",
    "1min1s",
    "9999999999min",
    "0.0000000001ns",
    "1ns",
    "\u{1f980}",
    "\u{1b}[31m",
    "\u{202e}",
    "12:34\n",
    "::",
    ":",
    "12:",
    "%s%n",
    "5%",
    "--",
    "1d",
    "1w",
    "16m",
    "99999999999999999g",
];

/// One command with odd words.
pub(super) fn attack(stage: &AttackStage, random: &mut Random, directory: &Path) -> Held {
    let file_path = plain(stage, directory, "hog_beside")?;
    let file = text(&file_path);
    let out_path = directory.join("out");
    let out = text(&out_path);
    let mut option = |name: &str| format!("--{name}={}", word(random));
    let (first, second, third) = (option("at"), option("from"), option("to"));
    let (align, worse) = (option("align"), option("fail-if"));
    let (claim, counter, interval) = (option("claim"), option("counter"), option("interval"));
    let (floor, bytes, time) = (option("floor"), option("max-bytes"), option("max-time"));
    let (pid, size) = (option("pid"), option("size"));
    let arguments = match random.below(8) {
        0 => words(["explain", &first, file]),
        1 => words(["explain", &second, &third, file]),
        2 => words(["compare", &worse, file, file]),
        3 => words(["compare", &align, file, file]),
        4 => words(["import", &interval, "--from=vmstat", "-o", out, file]),
        5 => words(["proof", &claim, &counter, "-o", out, file, file]),
        6 => words(["warm", "restore", "--dry-run", &floor, &bytes, &time, &pid]),
        _ => words(["ramdisk", "why", &size, "--budget=0s"]),
    };
    stage.attack(&arguments, Form::Text).map(drop)
}

/// A word of the list, often with a piece of another in it. Never with a byte 0, which no argument
/// holds.
fn word(random: &mut Random) -> String {
    let mut word = (*pick(random, WORDS)).to_owned();
    if chance(random, 30) {
        let piece: String = pick(random, WORDS).chars().take(6).collect();
        let places: Vec<usize> = word.char_indices().map(|(at, _)| at).collect();
        let at = places.get(place(random, places.len())).copied();
        word.insert_str(at.unwrap_or(word.len()), &piece);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_can_be_an_argument() {
        let mut random = Random(1);
        assert!((0..5000).all(|_| !word(&mut random).contains('\0')));
    }
}

//! What was typed after `cargo xtask attack`.
//!
//! Without a seed one is taken from the clock and printed, so that each run tries something new and
//! every run can be repeated.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) const USAGE: &str = "\
usage: cargo xtask attack [OPTIONS] [CASE...]   attack the binary; all cases and mutants without a CASE

  --list            only name the cases and the families of mutants
  --seed N          what all randomness starts from; from the clock otherwise
  --for DURATION    time for everything, 5min; the cases take what they need, mutants the rest
  --long DURATION   the same, and kill at random twenty times as often
  --mutant INDEX    only this mutant of the families that are named
  CASE              a case, the first word of several (m1), or a family of mutants (recording)";

/// Time for everything, as `cargo xtask test` gives it.
const TIME_DEFAULT: Duration = Duration::from_secs(300);
/// A day of mutants is enough for every purpose.
const TIME_MAX: Duration = Duration::from_secs(7 * 86_400);
/// Mutants get so much even where the cases took all of the time.
const MUTANTS_TIME_MIN: Duration = Duration::from_secs(20);
/// How often a random case tries: a round takes a second at most.
const ROUNDS_DEFAULT: u32 = 12;
const ROUNDS_LONG: u32 = 20 * ROUNDS_DEFAULT;
/// A short seed is easier to copy.
const SEED_MAX: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Attack,
    List,
    Help,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) action: Action,
    pub(super) seed: u64,
    pub(super) time: Duration,
    pub(super) rounds: u32,
    /// The index of the only mutant.
    pub(super) mutant: Option<u64>,
    /// Cases and families; all if none is named.
    chosen: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            action: Action::Attack,
            seed: now.map_or(1, |now| now.as_nanos() as u64 % SEED_MAX),
            time: TIME_DEFAULT,
            rounds: ROUNDS_DEFAULT,
            mutant: None,
            chosen: Vec::new(),
        }
    }
}

impl Options {
    /// Whether this case or family was named, or none was.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.chosen.is_empty() || self.chosen.iter().any(|chosen| is_named(name, chosen))
    }

    /// The time that mutants get in any case.
    pub(super) fn mutants_time_min(&self) -> Duration {
        MUTANTS_TIME_MIN.min(self.time)
    }
}

/// Whether `name` is `chosen`, or begins with it as a finding: `l12` is the first word of `l12a-undo`.
fn is_named(name: &str, chosen: &str) -> bool {
    let Some(rest) = name.strip_prefix(chosen) else {
        return false;
    };
    let after_letter = rest.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let letters = rest.len() - after_letter.len();
    rest.is_empty() || (letters <= 1 && after_letter.starts_with('-'))
}

/// Takes the arguments apart; `names` are the cases and families that exist.
pub(super) fn parse(args: &[String], names: &[&str]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        let mut value = || {
            rest.next()
                .ok_or_else(|| format!("{word} needs a value\n{USAGE}"))
        };
        match word.as_str() {
            "--help" | "-h" => options.action = Action::Help,
            "--list" => options.action = Action::List,
            "--seed" => options.seed = number(value()?)?,
            "--mutant" => options.mutant = Some(number(value()?)?),
            "--for" => options.time = duration(value()?)?,
            "--long" => {
                options.time = duration(value()?)?;
                options.rounds = ROUNDS_LONG;
            }
            name if names.iter().any(|known| is_named(known, name)) => {
                options.chosen.push(name.to_owned());
            }
            other => return Err(format!("no option or case {other:?}\n{USAGE}")),
        }
    }
    Ok(options)
}

fn number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a number"))
}

/// A number with `s`, `min` or `h`; a bare number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "s" => 1,
        "min" => 60,
        "h" => 3600,
        unit => return Err(format!("no unit {unit:?}: s, min or h")),
    };
    let seconds = number(digits)?.saturating_mul(factor);
    let time = Duration::from_secs(seconds);
    match time <= TIME_MAX {
        true => Ok(time),
        false => Err(format!("{text} is more than a week")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options, String> {
        let args: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        parse(&args, &["m1-recording", "m1a-x", "m10", "ring"])
    }

    #[test]
    fn options_are_taken_apart() {
        let options = parsed(&["--seed", "7", "--for", "2min", "m1", "ring"]).unwrap();
        assert_eq!((options.seed, options.time), (7, Duration::from_secs(120)));
        assert!(options.wants("m1-recording") && options.wants("ring") && options.wants("m1a-x"));
        assert!(!options.wants("m10"));
        let long = parsed(&["--long", "3h"]).unwrap();
        assert_eq!(long.time, Duration::from_secs(10_800));
        assert!(long.rounds > ROUNDS_DEFAULT && long.wants("m10"));
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        for words in [
            &["m2"][..],
            &["--sede"],
            &["--seed"],
            &["--seed", "x"],
            &["--for", "1w"],
            &["--for", "999999999999999999h"],
        ] {
            assert!(parsed(words).is_err(), "{words:?}");
        }
    }
}

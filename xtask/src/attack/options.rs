//! What was typed after `cargo xtask attack`.
//!
//! Without a seed one is taken from the clock and printed, so that each run tries something new and
//! every run can be repeated.

use clap::Args;
use model::duration;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time for everything in `cargo xtask test`: the cases take more than half of it.
const STEP_MUTANTS_TIME: Duration = Duration::from_secs(90);
/// Mutants get so much even where the cases took all of the time.
const MUTANTS_TIME_MIN: Duration = Duration::from_secs(20);
/// How often a random case tries: a round takes a second at most.
const ROUNDS_DEFAULT: u32 = 12;
const ROUNDS_LONG: u32 = 20 * ROUNDS_DEFAULT;
/// A short seed is easier to copy.
const SEED_MAX: u64 = 1_000_000;

/// What is asked for.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct AttackOptions {
    /// Only name the cases and the families of mutants
    #[arg(long)]
    pub(super) list: bool,

    /// What all randomness starts from (default: from the clock)
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Time for everything: the cases take what they need, mutants the rest
    #[arg(long = "for", value_name = "DURATION", value_parser = duration::parse, default_value = "5min")]
    time: Duration,

    /// As --for, and kill at random twenty times as often
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "time")]
    long: Option<Duration>,

    /// Only this mutant of the families that are named
    #[arg(long, value_name = "INDEX")]
    pub(super) mutant: Option<u64>,

    /// A case, the first word of several (m1), or a family of mutants (recording); all by default
    #[arg(value_name = "CASE", value_parser = existing)]
    chosen: Vec<String>,
}

impl AttackOptions {
    /// The attack of `cargo xtask test`: the same each time, with this much time for mutants.
    pub(super) fn of_step(seed: u64) -> Self {
        Self { seed: Some(seed), time: STEP_MUTANTS_TIME, ..Self::default() }
    }

    /// The seed, or one from the clock.
    pub(super) fn seed(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let clock = now.map_or(1, |now| now.as_nanos() as u64 % SEED_MAX);
        self.seed.unwrap_or(clock)
    }

    /// How often a random case tries.
    pub(super) fn rounds(&self) -> u32 {
        self.long.map_or(ROUNDS_DEFAULT, |_| ROUNDS_LONG)
    }

    /// The time for mutants after the cases took theirs.
    pub(super) fn mutants_time(&self, cases: Duration) -> Duration {
        let time = self.long.unwrap_or(self.time);
        time.saturating_sub(cases).max(MUTANTS_TIME_MIN.min(time))
    }

    /// Whether this case or family was named, or none was.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.chosen.is_empty() || self.chosen.iter().any(|chosen| is_named(name, chosen))
    }
}

/// Whether `name` is `chosen`, or begins with it as a finding: `l12` is the first word of
/// `l12a-undo`.
fn is_named(name: &str, chosen: &str) -> bool {
    let Some(rest) = name.strip_prefix(chosen) else {
        return false;
    };
    let after_letter = rest.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let letters = rest.len() - after_letter.len();
    rest.is_empty() || (letters <= 1 && after_letter.starts_with('-'))
}

fn existing(text: &str) -> Result<String, String> {
    let is_there = super::names().iter().any(|known| is_named(known, text));
    let missing = || format!("there is no case or family {text}; --list names them");
    is_there.then(|| text.to_owned()).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: AttackOptions,
    }

    fn parsed(words: &[&str]) -> Result<AttackOptions, clap::Error> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        crate::parse::<Line>("attack", &words).map(|line| line.options)
    }

    #[test]
    fn options_are_taken_apart() {
        let options = parsed(&["--seed", "7", "--for", "2min", "m1", "ring"]).unwrap();
        assert_eq!(options.seed(), 7);
        assert_eq!(options.mutants_time(Duration::from_secs(20)).as_secs(), 100);
        assert_eq!(options.mutants_time(Duration::from_secs(200)), MUTANTS_TIME_MIN);
        assert!(options.wants("m1-recording") && options.wants("ring") && options.wants("m1a-x"));
        assert!(!options.wants("m10"));
        let long = parsed(&["--long", "3h"]).unwrap();
        assert_eq!(long.mutants_time(Duration::ZERO).as_secs(), 10_800);
        assert!(long.rounds() > ROUNDS_DEFAULT && long.wants("m10"));
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        for words in [
            &["m0"][..],
            &["--sede"],
            &["--seed"],
            &["--seed", "x"],
            &["--for", "8d"],
            &["--for", "999999999999999999h"],
        ] {
            assert!(parsed(words).is_err(), "{words:?}");
        }
    }
}

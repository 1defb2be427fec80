//! A change of the wall clock during a recording: how far it was set, or how long the machine was
//! suspended, and the text of its span. Each is parsed from the other's form.

use std::fmt;
use std::str::FromStr;

/// How far the wall clock moved against the steady one: because it was set, or because the machine
/// was suspended, which stops the steady one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSet {
    /// Forward, or back where it is negative; in tenths of a second, as the words have it.
    tenths: i64,
    was_suspended: bool,
}

const NS_PER_TENTH: i128 = 100_000_000;
const FORWARD: &str = "the clock was set forward by ";
const BACK: &str = "the clock was set back by ";
const SUSPENDED: &str = "the machine was suspended for ";

impl ClockSet {
    /// The kind of its span.
    pub const KIND: &'static str = "clock_jump";

    /// One that was set so far.
    #[must_use]
    pub fn by(moved_ns: i128) -> Self {
        let half = NS_PER_TENTH / 2 * moved_ns.signum();
        let tenths = i64::try_from((moved_ns + half) / NS_PER_TENTH);
        Self { tenths: tenths.unwrap_or(0), was_suspended: false }
    }

    /// A machine that was suspended so long.
    #[must_use]
    pub fn suspended(ns: u64) -> Self {
        Self { was_suspended: true, ..Self::by(ns.into()) }
    }

    /// How far, to a tenth of a second.
    #[must_use]
    pub fn moved_ns(self) -> i128 {
        i128::from(self.tenths) * NS_PER_TENTH
    }
}

impl fmt::Display for ClockSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.tenths {
            _ if self.was_suspended => SUSPENDED,
            ..0 => BACK,
            _ => FORWARD,
        };
        let tenths = self.tenths.unsigned_abs();
        write!(out, "{words}{}.{} s", tenths / 10, tenths % 10)
    }
}

impl FromStr for ClockSet {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let known = [(FORWARD, 1, false), (BACK, -1, false), (SUSPENDED, 1, true)];
        let found = known.into_iter().find_map(|(words, sign, was_suspended)| {
            Some((text.strip_prefix(words)?, sign, was_suspended))
        });
        let (number, sign, was_suspended) = found.ok_or(())?;
        let (seconds, tenth) =
            number.strip_suffix(" s").and_then(|number| number.split_once('.')).ok_or(())?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if tenth.len() != 1 || !digits(seconds) || !digits(tenth) {
            return Err(());
        }
        let tenths: i64 = format!("{seconds}{tenth}").parse().map_err(|_| ())?;
        Ok(Self { tenths: sign * tenths, was_suspended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_number_are_one() {
        for (moved_ns, words) in [
            (3_600_000_000_000, "the clock was set forward by 3600.0 s"),
            (-1_540_000_000, "the clock was set back by 1.5 s"),
            (-1_560_000_000, "the clock was set back by 1.6 s"),
        ] {
            let set = ClockSet::by(moved_ns);
            assert_eq!(set.to_string(), words);
            assert_eq!(words.parse(), Ok(set));
        }
        assert_eq!(ClockSet::by(-1_540_000_000).moved_ns(), -1_500_000_000);
        let suspended = ClockSet::suspended(90_000_000_000);
        assert_eq!(suspended.to_string(), "the machine was suspended for 90.0 s");
        assert_eq!(suspended.to_string().parse(), Ok(suspended));
        assert_eq!(suspended.moved_ns(), 90_000_000_000);
    }

    #[test]
    fn other_words_are_none() {
        for text in [
            "",
            "lunch",
            "the clock was set forward by s",
            "the clock was set back by -1.0 s",
            "the clock was set back by 1.00 s",
            "the clock was set back by 99999999999999999999.0 s",
        ] {
            assert_eq!(text.parse::<ClockSet>(), Err(()), "{text}");
        }
    }
}

//! The time of day during a recording, by the clock of the recorded machine.
//!
//! The clock may have been set, or the machine suspended, while it was recorded: between two such
//! moments it is one piece of time. A time of day may be shown several times, or not at all.

use super::{ClockSet, Facts, Recording};

const SECOND_NS: i128 = 1_000_000_000;
const DAY_S: i128 = 86_400;

/// Nanoseconds of a day.
pub const DAY_NS: i128 = DAY_S * SECOND_NS;

/// The wall clock during a recording.
#[derive(Clone, Debug)]
pub struct WallClock {
    /// The pieces between which the clock was set, in order; at least one.
    pieces: Vec<ClockPiece>,
    utc_offset_s: i32,
}

/// A part of a recording in which the clock was not set.
#[derive(Clone, Copy, Debug)]
struct ClockPiece {
    from_ns: i128,
    to_ns: i128,
    /// The local time since 1970 at the start of the recording, by the clock as it is here.
    starts_ns: i128,
}

impl WallClock {
    /// The clock of a recording.
    #[must_use]
    pub fn of(recording: &Recording) -> Self {
        let wall_ns = i128::from(recording.wall_ns());
        let piece = |from_ns, starts_ns| ClockPiece { from_ns, to_ns: wall_ns, starts_ns };
        let mut last = piece(0, starts(&recording.facts));
        let mut pieces = Vec::new();
        for span in &recording.spans {
            let is_set = span.kind == ClockSet::KIND;
            let Some(set) = is_set.then(|| span.text.parse::<ClockSet>().ok()).flatten() else {
                continue;
            };
            let at_ns = i128::from(span.start_ns).min(wall_ns);
            let next = piece(at_ns, last.starts_ns + set.moved_ns());
            last.to_ns = at_ns;
            pieces.push(std::mem::replace(&mut last, next));
        }
        pieces.push(last);
        Self { pieces, utc_offset_s: recording.facts.utc_offset_s }
    }

    /// The last moment at which the clock showed `of_day_ns`, or that was before its piece of time
    /// and lasts `length_ns`, which reaches into it; since the start of the recording.
    #[must_use]
    pub fn last(&self, of_day_ns: i128, length_ns: i128) -> Option<i128> {
        self.pieces.iter().rev().find_map(|piece| piece.last(of_day_ns, length_ns))
    }

    /// How long after the start the clock, as it was then, shows `of_day_ns` for the first time.
    #[must_use]
    pub fn first_after_start(&self, of_day_ns: i128) -> i128 {
        (of_day_ns - self.pieces[0].starts_ns).rem_euclid(DAY_NS)
    }

    /// The time of day, `14:32:05`, so long after the start.
    #[must_use]
    pub fn time_of_day(&self, since_ns: i128) -> String {
        let seconds = self.local_ns(since_ns).rem_euclid(DAY_NS) / SECOND_NS;
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)
    }

    /// The day, `2026-11-25`, so long after the start.
    #[must_use]
    pub fn date(&self, since_ns: i128) -> String {
        let (year, month, day) = date(self.local_ns(since_ns).div_euclid(DAY_NS));
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// Date, time of day with milliseconds and the distance from UTC, as ISO 8601 has them:
    /// `2026-11-25T14:32:05.100+02:00`.
    #[must_use]
    pub fn iso(&self, since_ns: i128) -> String {
        let milliseconds = self.local_ns(since_ns).rem_euclid(SECOND_NS) / 1_000_000;
        let (sign, offset_s) = match self.utc_offset_s {
            offset_s @ ..0 => ('-', -offset_s),
            offset_s => ('+', offset_s),
        };
        let (date, time) = (self.date(since_ns), self.time_of_day(since_ns));
        let (hours, minutes) = (offset_s / 3600, offset_s / 60 % 60);
        format!("{date}T{time}.{milliseconds:03}{sign}{hours:02}:{minutes:02}")
    }

    /// Local time since 1970.
    fn local_ns(&self, since_ns: i128) -> i128 {
        let piece = self.pieces.iter().rev().find(|piece| piece.from_ns <= since_ns);
        piece.map_or(0, |piece| piece.starts_ns) + since_ns
    }
}

impl ClockPiece {
    /// The last moment in it at which the clock showed `of_day`, or that was before it and
    /// lasts into it; since the start of the recording.
    fn last(&self, of_day: i128, length_ns: i128) -> Option<i128> {
        let after_ns = (of_day - self.starts_ns - self.from_ns).rem_euclid(DAY_NS);
        let first = self.from_ns + after_ns;
        if first <= self.to_ns {
            return Some(first + (self.to_ns - first).div_euclid(DAY_NS) * DAY_NS);
        }
        let earlier = first - DAY_NS;
        (earlier + length_ns > self.from_ns).then_some(earlier)
    }
}

/// Local time since 1970 at the start.
fn starts(facts: &Facts) -> i128 {
    i128::from(facts.started_unix_ns) + i128::from(facts.utc_offset_s) * SECOND_NS
}

/// The day and the time of day, `2026-11-25 14:32:05`, of a clock that is so far east of Greenwich.
#[must_use]
pub fn date_and_time(unix_s: i64, utc_offset_s: i32) -> String {
    let local_s = i128::from(unix_s) + i128::from(utc_offset_s);
    let (days, seconds) = (local_s.div_euclid(86_400), local_s.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{:02}", seconds % 60)
}

/// Year, month and day of a day since 1970, in the Gregorian calendar.
fn date(days: i128) -> (i128, i128, i128) {
    // Counted from 1 March 0000, so that a leap day is the last of its year; an era is 400 years.
    const DAYS_TO_1970: i128 = 719_468;
    const ERA_DAYS: i128 = 146_097;
    let since = days + DAYS_TO_1970;
    let (era, of_era) = (since.div_euclid(ERA_DAYS), since.rem_euclid(ERA_DAYS));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i128::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_a_day_and_a_time() {
        assert_eq!(date_and_time(951_782_399, 1), "2000-02-29 00:00:00");
        assert_eq!(date_and_time(-1, 0), "1969-12-31 23:59:59");
    }

    fn clock(started_unix_s: u64, utc_offset_s: i32) -> WallClock {
        let started_unix_ns = started_unix_s * 1_000_000_000;
        let facts = Facts { started_unix_ns, utc_offset_s, ..Facts::default() };
        WallClock::of(&Recording { facts, ..Recording::default() })
    }

    #[test]
    fn dates_and_times_as_iso_8601_has_them() {
        // `date -u -d @SECONDS +%FT%T` says the same.
        for (unix_s, offset_s, iso) in [
            (0, 0, "1970-01-01T00:00:00.250+00:00"),
            (951_782_400, 0, "2000-02-29T00:00:00.250+00:00"),
            (1_709_251_199, 0, "2024-02-29T23:59:59.250+00:00"),
            (1_709_251_199, 3600, "2024-03-01T00:59:59.250+01:00"),
            (1_735_689_600, -12_600, "2024-12-31T20:30:00.250-03:30"),
            (4_102_444_799, 0, "2099-12-31T23:59:59.250+00:00"),
        ] {
            assert_eq!(clock(unix_s, offset_s).iso(250_000_000), iso);
        }
    }

    #[test]
    fn a_clock_that_was_set_shows_another_time_from_then_on() {
        let mut recording = Recording::default();
        recording.spans.push(super::super::Span {
            kind: ClockSet::KIND.to_owned(),
            text: ClockSet::by(3600 * SECOND_NS).to_string(),
            start_ns: 0,
            end_ns: 0,
        });
        assert_eq!(WallClock::of(&recording).time_of_day(5 * SECOND_NS), "01:00:05");
    }
}

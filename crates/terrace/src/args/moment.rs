//! A moment of a recording as typed: `12.5s` after its start, or the time of day `14:32[:05]` by
//! the clock of the machine.

use model::duration::SECOND_NS;
use std::time::Duration;

/// A moment; the time of day is nanoseconds since midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So long after the start.
    Since(Duration),
    /// The first instant of a minute of the day.
    Minute(u64),
    /// An instant of the day.
    Second(u64),
}

/// Parses `12.5s`, `3min`, `14:32`, `14:32:05.5`.
pub fn parse(text: &str) -> Result<Moment, String> {
    if !text.contains(':') {
        if !text.contains(|c: char| c.is_ascii_digit()) {
            let why = "a moment is a time since the start (12.5s) or a time of day (14:32)";
            return Err(why.to_owned());
        }
        let since = model::duration::parse(text).map_err(|error| error.to_string())?;
        return Ok(Moment::Since(since));
    }
    time_of_day(text)
        .ok_or_else(|| "a time of day is 14:32 or 14:32:05, from 00:00 to 23:59:59".to_owned())
}

fn time_of_day(text: &str) -> Option<Moment> {
    let mut fields = text.split(':');
    let mut below = |limit: u64| -> Option<u64> {
        let field = fields.next()?;
        let plain = (1..=2).contains(&field.len()) && field.bytes().all(|b| b.is_ascii_digit());
        let number: u64 = field.parse().ok().filter(|_| plain)?;
        (number < limit).then_some(number)
    };
    let (hours, minutes) = (below(24)?, below(60)?);
    let minute_ns = (hours * 3600 + minutes * 60) * SECOND_NS;
    let Some(field) = fields.next() else {
        return Some(Moment::Minute(minute_ns));
    };
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    let seconds: f64 = field.parse().ok().filter(|_| field.chars().all(digits))?;
    let whole = fields.next().is_none() && (0.0..60.0).contains(&seconds);
    whole.then(|| Moment::Second(minute_ns + (seconds * SECOND_NS as f64) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let at = |h: u64, m: u64, ms: u64| ((h * 60 + m) * 60_000 + ms) * 1_000_000;
        assert_eq!(parse("12.5s"), Ok(Moment::Since(Duration::from_millis(12_500))));
        assert_eq!(parse("90"), Ok(Moment::Since(Duration::from_secs(90))));
        assert_eq!(parse("14:32"), Ok(Moment::Minute(at(14, 32, 0))));
        assert_eq!(parse("14:32:05.5"), Ok(Moment::Second(at(14, 32, 5_500))));
        assert_eq!(parse("0:00:00"), Ok(Moment::Second(0)));
    }

    #[test]
    fn what_is_no_moment_says_why() {
        for wrong in [
            "24:00",
            "14:60",
            "14:32:60",
            "1:2:3:4",
            "14:",
            ":32",
            "14:32:",
            "14:32:nan",
            "+1:30",
            "014:30",
        ] {
            assert!(parse(wrong).unwrap_err().contains("time of day"), "{wrong}");
        }
        assert!(parse("-5s").unwrap_err().contains("negative"));
        assert!(parse("noon").unwrap_err().contains("time of day"));
        assert!(parse("").is_err());
    }
}

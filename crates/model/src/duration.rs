//! Durations as a person types and reads them: `10s`, `5min`, `200ms`, `1.2 ms`.
//!
//! Typed ones become [`std::time::Duration`]; shown ones start from nanoseconds
//! as `f64`, because a single load from L1 is a fraction of one.

use crate::bytes::three_digits;
use std::fmt;
use std::time::Duration;

/// The longest duration that is accepted: no budget of this tool is longer.
pub const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// Why a typed duration was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DurationError {
    /// No digits at the start.
    NoNumber,
    /// A minus sign.
    Negative,
    /// The suffix is not a known unit.
    Unit(String),
    /// Longer than [`LONGEST`].
    TooLong,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DurationError::NoNumber => {
                f.write_str("a duration is a number with a unit: 200ms, 10s, 5min, 1h")
            }
            DurationError::Negative => f.write_str("a duration cannot be negative"),
            DurationError::Unit(unit) => {
                write!(f, "unknown unit `{unit}`: use us, ms, s, min, h or d")
            }
            DurationError::TooLong => f.write_str("a duration cannot exceed 7 days"),
        }
    }
}

impl std::error::Error for DurationError {}

/// Parses `10s`, `5min`, `1.5h`, `200ms`; a bare number is seconds.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err(DurationError::Negative);
    }
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, suffix) = text.split_at(split);
    let number: f64 = digits.parse().map_err(|_| DurationError::NoNumber)?;
    let seconds = number
        * match suffix.trim() {
            "us" => 1e-6,
            "ms" => 1e-3,
            "" | "s" | "sec" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            other => return Err(DurationError::Unit(other.to_owned())),
        };
    if !seconds.is_finite() || seconds > LONGEST.as_secs_f64() {
        return Err(DurationError::TooLong);
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// The kernel's clock tick for programs (`USER_HZ`, 100 a second), in nanoseconds.
pub const CLOCK_TICK_NS: u64 = SECOND_NS / 100;

/// Three significant digits in the unit that fits: `0.96 ns`, `10.2 us`, `1.1 ms`, `47 s`.
pub fn show_ns(ns: f64) -> String {
    for (size, name) in [(1e9, "s"), (1e6, "ms"), (1e3, "us")] {
        if ns >= size * 0.9995 {
            return format!("{} {name}", three_digits(ns / size));
        }
    }
    format!("{} ns", three_digits(ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn typed_durations() {
        assert_eq!(parse("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse("5min"), Ok(Duration::from_secs(300)));
        assert_eq!(parse("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(parse("3"), Ok(Duration::from_secs(3)));
        assert_eq!(parse("-1s"), Err(DurationError::Negative));
        assert_eq!(parse("1y"), Err(DurationError::Unit("y".to_owned())));
        assert_eq!(parse("8d"), Err(DurationError::TooLong));
        assert_eq!(parse(""), Err(DurationError::NoNumber));
    }

    #[test]
    fn shown_durations() {
        assert_eq!(show_ns(0.96), "0.96 ns");
        assert_eq!(show_ns(10_240.0), "10.2 us");
        assert_eq!(show_ns(1.1e6), "1.1 ms");
        assert_eq!(show_ns(47e9), "47 s");
        assert_eq!(show_ns(999.9), "1 us");
    }

    proptest! {
        #[test]
        fn any_text_is_a_duration_or_an_error(text in ".{0,24}") {
            let _ = parse(&text);
        }
    }
}

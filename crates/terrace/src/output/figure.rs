//! Numbers as they are shown: with two or three digits, in the unit that fits.
//!
//! A page of 80 columns has room for two digits (`29 GB/s`), a wider one for three
//! (`29.4 GB/s`); JSON and CSV carry all of them. What is absent is a dash.

use model::bytes::three_digits;
use model::{Bytes, Estimate};

/// What stands where there is no number.
pub const ABSENT: &str = "-";

/// How many significant digits are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// `9.8`, `29`, `125`.
    Two,
    /// `9.81`, `29.4`, `125`.
    Three,
}

/// A time in nanoseconds: `0.9 ns`, `10 us`.
pub fn time(ns: f64, digits: Digits) -> String {
    scaled(ns, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")], digits)
}

/// A rate in bytes a second, in powers of 1000: `29 GB/s`.
pub fn rate(bytes_per_s: f64, digits: Digits) -> String {
    let units = [(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")];
    scaled(bytes_per_s, &units, digits)
}

/// A time in nanoseconds with three digits, or a dash.
pub fn precise_time(ns: impl Into<Option<f64>>) -> String {
    or_absent(ns.into(), |ns| time(ns, Digits::Three))
}

/// A rate in bytes a second with three digits, or a dash.
pub fn precise_rate(bytes_per_s: impl Into<Option<f64>>) -> String {
    or_absent(bytes_per_s.into(), |rate| self::rate(rate, Digits::Three))
}

/// A size in powers of 1000, as devices are sold: `500 GB`.
pub fn decimal_size(bytes: f64, digits: Digits) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
    scaled(bytes, &units, digits)
}

/// A size in powers of 1024, as memory is built: `24 GiB`.
pub fn binary_size(bytes: u64, digits: Digits) -> String {
    match digits {
        Digits::Three => Bytes(bytes).to_string(),
        Digits::Two => {
            let units = [
                (model::bytes::GIB as f64 * 1024.0, "TiB"),
                (model::bytes::GIB as f64, "GiB"),
                (model::bytes::MIB as f64, "MiB"),
                (model::bytes::KIB as f64, "KiB"),
                (1.0, "B"),
            ];
            scaled(bytes as f64, &units, digits)
        }
    }
}

/// A share as a percentage: `12 %`, `0.3 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0, Digits::Two))
}

/// A number of at least 0 with the digits asked for.
pub fn number(value: f64, digits: Digits) -> String {
    match digits {
        Digits::Three => three_digits(value),
        Digits::Two if value >= 9.95 => format!("{value:.0}"),
        Digits::Two => {
            let text = format!("{value:.1}");
            text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
        }
    }
}

/// `shown` of a value, or a dash.
pub fn or_absent<T>(value: Option<T>, shown: impl Fn(T) -> String) -> String {
    value.map_or_else(|| ABSENT.to_owned(), shown)
}

/// "plus or minus": half the interval of the median as a percentage, or a dash.
pub fn plus_minus(estimate: &Estimate) -> String {
    or_absent(estimate.relative_error(), percent)
}

fn scaled(value: f64, units: &[(f64, &str)], digits: Digits) -> String {
    // 999.7 would print as 1000: go up to the next unit before.
    let fits = units.iter().find(|(size, _)| value >= size * 0.9995);
    match (fits, units.last()) {
        (Some((size, name)), _) | (None, Some((size, name))) => {
            format!("{} {name}", number(value / size, digits))
        }
        (None, None) => number(value, digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_and_three() {
        assert_eq!(time(0.94, Digits::Two), "0.9 ns");
        assert_eq!(time(0.94, Digits::Three), "0.94 ns");
        assert_eq!(time(9.97, Digits::Two), "10 ns");
        assert_eq!(time(10_240.0, Digits::Two), "10 us");
        assert_eq!(time(1.1e6, Digits::Two), "1.1 ms");
        assert_eq!(time(999.9, Digits::Two), "1 us");
        assert_eq!(rate(29.44e9, Digits::Two), "29 GB/s");
        assert_eq!(rate(29.44e9, Digits::Three), "29.4 GB/s");
        assert_eq!(decimal_size(500e9, Digits::Two), "500 GB");
        assert_eq!(binary_size(48 << 10, Digits::Two), "48 KiB");
        assert_eq!(binary_size((24 << 30) - (300 << 20), Digits::Two), "24 GiB");
        assert_eq!(percent(0.123), "12 %");
        assert_eq!(number(2.0, Digits::Two), "2");
    }

    #[test]
    fn absent_is_a_dash() {
        assert_eq!(precise_time(None), "-");
        assert_eq!(precise_rate(29.44e9), "29.4 GB/s");
    }
}

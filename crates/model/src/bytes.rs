//! A count of bytes: how it is typed by a person and how it is shown to one.
//!
//! `m` is MiB as in fio and dd, `MB` is 10^6, `MiB` is 2^20: the three
//! conventions of the field are all accepted, and what is shown always names
//! the one it uses.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// 2^10 bytes.
pub const KIB: u64 = 1 << 10;
/// 2^20 bytes.
pub const MIB: u64 = 1 << 20;
/// 2^30 bytes.
pub const GIB: u64 = 1 << 30;

/// Why a typed size was refused; shown to the person as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeError {
    /// No digits at the start.
    NoNumber,
    /// A minus sign.
    Negative,
    /// The suffix is not a known unit.
    Unit(String),
    /// More bytes than 2^63, which no address or file offset can reach.
    TooLarge,
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeError::NoNumber => {
                f.write_str("a size is a number with a unit: 4k, 16m, 1g, 100MB, 2MiB")
            }
            SizeError::Negative => f.write_str("a size cannot be negative"),
            SizeError::Unit(unit) => write!(
                f,
                "unknown unit `{unit}`: use k, m, g, t (powers of 1024), KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB"
            ),
            SizeError::TooLarge => f.write_str("a size cannot exceed 8 EiB"),
        }
    }
}

impl std::error::Error for SizeError {}

impl FromStr for Bytes {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let text = text.trim();
        if text.starts_with('-') {
            return Err(SizeError::Negative);
        }
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (digits, suffix) = text.split_at(split);
        let number: f64 = digits.parse().map_err(|_| SizeError::NoNumber)?;
        let unit = unit_bytes(suffix.trim())?;
        let bytes = number * unit as f64;
        if bytes >= i64::MAX as f64 {
            return Err(SizeError::TooLarge);
        }
        // Whole numbers stay exact above 2^53 by integer arithmetic.
        match digits.parse::<u64>() {
            Ok(whole) => whole.checked_mul(unit).map(Bytes).ok_or(SizeError::TooLarge),
            Err(_) => Ok(Bytes(bytes.round() as u64)),
        }
    }
}

fn unit_bytes(suffix: &str) -> Result<u64, SizeError> {
    let power = |letter: u8| match letter.to_ascii_lowercase() {
        b'k' => Some(1),
        b'm' => Some(2),
        b'g' => Some(3),
        b't' => Some(4),
        _ => None,
    };
    let unknown = || SizeError::Unit(suffix.to_owned());
    match suffix.as_bytes() {
        [] | [b'b' | b'B'] => Ok(1),
        [letter] => power(*letter).map(|p| KIB.pow(p)).ok_or_else(unknown),
        [letter, b'B'] => power(*letter).map(|p| 1000_u64.pow(p)).ok_or_else(unknown),
        [letter, b'i', b'B' | b'b'] => power(*letter).map(|p| KIB.pow(p)).ok_or_else(unknown),
        _ => Err(unknown()),
    }
}

impl fmt::Display for Bytes {
    /// Three significant digits in powers of 1024: `48 KiB`, `1.5 GiB`, `123 MiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_u64 << 40, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")];
        for (size, name) in units {
            // 1023.5 KiB would print as 1024 KiB; go up to the next unit before.
            if self.0 as f64 >= size as f64 * 0.9995 {
                let text = three_digits(self.0 as f64 / size as f64);
                return f.pad(&format!("{text} {name}"));
            }
        }
        f.pad(&format!("{} B", self.0))
    }
}

/// A number of at least 0 with three significant digits and no trailing zeros
/// after the point: `0.96`, `12.1`, `145`, `2`.
pub fn three_digits(value: f64) -> String {
    let decimals = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A rate in bytes a second, in powers of 1000 as rates are quoted: `29.4 GB/s`.
pub fn show_rate(bytes_per_s: f64) -> String {
    for (size, name) in [(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")] {
        if bytes_per_s >= size * 0.9995 {
            return format!("{} {name}", three_digits(bytes_per_s / size));
        }
    }
    format!("{} B/s", three_digits(bytes_per_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_three_conventions_are_recognized() {
        assert_eq!("16m".parse(), Ok(Bytes(16 * MIB)));
        assert_eq!("16M".parse(), Ok(Bytes(16 * MIB)));
        assert_eq!("16MB".parse(), Ok(Bytes(16_000_000)));
        assert_eq!("16MiB".parse(), Ok(Bytes(16 * MIB)));
        assert_eq!("4k".parse(), Ok(Bytes(4096)));
        assert_eq!("1.5g".parse(), Ok(Bytes(GIB + GIB / 2)));
        assert_eq!("123".parse(), Ok(Bytes(123)));
        assert_eq!("0".parse(), Ok(Bytes(0)));
    }

    #[test]
    fn what_is_no_size_says_why() {
        assert_eq!("-1m".parse::<Bytes>(), Err(SizeError::Negative));
        assert_eq!("".parse::<Bytes>(), Err(SizeError::NoNumber));
        assert_eq!("m".parse::<Bytes>(), Err(SizeError::NoNumber));
        assert_eq!("4q".parse::<Bytes>(), Err(SizeError::Unit("q".to_owned())));
        assert_eq!("99999999t".parse::<Bytes>(), Err(SizeError::TooLarge));
        assert_eq!("1.2.3m".parse::<Bytes>(), Err(SizeError::NoNumber));
    }

    #[test]
    fn sizes_are_shown_with_three_digits() {
        assert_eq!(Bytes(48 * KIB).to_string(), "48 KiB");
        assert_eq!(Bytes(24 * GIB - 300 * MIB).to_string(), "23.7 GiB");
        assert_eq!(Bytes(MIB - 1).to_string(), "1 MiB");
        assert_eq!(Bytes(512).to_string(), "512 B");
        assert_eq!(show_rate(29.44e9), "29.4 GB/s");
        assert_eq!(show_rate(125e6), "125 MB/s");
    }

    proptest! {
        #[test]
        fn any_text_is_a_size_or_an_error(text in ".{0,24}") {
            let _ = text.parse::<Bytes>();
        }

        #[test]
        fn shown_is_within_half_a_percent(bytes in KIB..(1 << 50)) {
            let shown: Bytes = Bytes(bytes).to_string().replace(' ', "").parse().unwrap();
            let error = (shown.0 as f64 - bytes as f64).abs() / bytes as f64;
            prop_assert!(error < 0.006, "{bytes} shown as {shown}");
        }
    }
}

//! How numbers and commands are written in a claim.
//!
//! Sizes, rates and times come from `model`; here is what only sentences need.

use model::bytes::three_digits;
use model::duration::show_ns;

/// A share as percent: `44 %`, `1.2 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}

/// A factor of at least 0: `1.46`.
pub(crate) fn times(factor: f64) -> String {
    three_digits(factor)
}

/// A count with its thousands parted: `131,072`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How often: `once`, `4,812 times`.
pub(crate) fn often(times: u64) -> String {
    match times {
        1 => "once".to_owned(),
        _ => format!("{} times", count(times)),
    }
}

/// A time that may be long: as [`show_ns`] up to two minutes, then `43 min`.
pub(crate) fn long_time(ns: f64) -> String {
    let minutes = ns / 60e9;
    if minutes < 2.0 {
        show_ns(ns)
    } else if minutes < 120.0 {
        format!("{} min", three_digits(minutes))
    } else {
        format!("{} h", three_digits(minutes / 60.0))
    }
}

/// Names in a row: `a`, `a and b`, `a, b and c`.
pub(crate) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The command that surveys one path again, quoted for a shell.
pub(crate) fn survey_path(path: &str) -> String {
    format!("terrace survey --path {}", shell_word(path))
}

/// A path as one word of a shell's command line.
pub(crate) fn shell_word(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_sentences() {
        assert_eq!(percent(0.437), "43.7 %");
        assert_eq!(count(131_072), "131,072");
        assert_eq!(count(72), "72");
        assert_eq!(
            (often(1), often(4_812)),
            ("once".into(), "4,812 times".into())
        );
        assert_eq!(long_time(45e9), "45 s");
        assert_eq!(long_time(2.6e12), "43.3 min");
        assert_eq!(long_time(36e12), "10 h");
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }

    #[test]
    fn a_path_with_a_quote_stays_one_word() {
        assert_eq!(survey_path("/data"), "terrace survey --path /data");
        assert_eq!(shell_word("/my disk's"), r"'/my disk'\''s'");
        assert_eq!(shell_word("$(reboot)"), "'$(reboot)'");
    }
}

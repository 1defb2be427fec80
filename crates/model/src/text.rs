//! Counts, long times and shell words, as sentences write them. Sizes and rates are in
//! [`crate::bytes`], short times in [`crate::duration`].

use crate::bytes::three_digits;
use crate::duration::show_ns;

/// A count with its thousands separated: `131,072`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time that may be long: as [`show_ns`] up to two minutes, then `43.3 min`, then hours.
#[must_use]
pub fn long_time(ns: f64) -> String {
    let minutes = ns / 60e9;
    if minutes < 2.0 {
        show_ns(ns)
    } else if minutes < 120.0 {
        format!("{} min", three_digits(minutes))
    } else {
        format!("{} h", three_digits(minutes / 60.0))
    }
}

/// A path or word as one word of a shell's command line.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_long_times() {
        assert_eq!((count(0), count(72)), ("0".into(), "72".into()));
        assert_eq!(count(131_072), "131,072");
        assert_eq!(long_time(45e9), "45 s");
        assert_eq!(long_time(2.6e12), "43.3 min");
        assert_eq!(long_time(36e12), "10 h");
    }

    #[test]
    fn a_path_with_a_quote_stays_one_word() {
        assert_eq!(shell_word("/data"), "/data");
        assert_eq!(shell_word("/my disk's"), r"'/my disk'\''s'");
        assert_eq!(shell_word("$(reboot)"), "'$(reboot)'");
    }
}

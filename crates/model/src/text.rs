//! Counts, long times and shell words, as sentences write them, and text of others with what could
//! do harm made visible. Sizes and rates are in [`crate::bytes`], short times in
//! [`crate::duration`].

use crate::bytes::three_digits;
use crate::duration::show_ns;
use std::borrow::Cow;

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

/// Whether a terminal or a reader could take `letter` for more than a sign: control characters,
/// what changes the direction of text or ends a line of it, what cannot be seen, and noncharacters.
#[must_use]
pub fn is_hazard(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{fdd0}'..='\u{fdef}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// `text` on one line, each character that could do harm as an escape: `\n`, `\x1b`, `\u{202e}`.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    replaced(text, is_hazard, visible)
}

/// `text` with each character that `is_replaced` as `replace` writes it.
pub fn replaced(
    text: &str,
    is_replaced: impl Fn(char) -> bool,
    replace: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    if !text.contains(&is_replaced) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_replaced(letter) { replace(letter, &mut out) } else { out.push(letter) }
    }
    Cow::Owned(out)
}

/// Writes a character as an escape: `\\n`, `\\x1b`, `\\u{202e}`.
pub fn visible(letter: char, out: &mut String) {
    match letter {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\0'..='\x7f' => out.push_str(&format!("\\x{:02x}", u32::from(letter))),
        _ => out.push_str(&format!("\\u{{{:x}}}", u32::from(letter))),
    }
}

/// A number in a second, with three digits that count: `25,600`, `12.5`.
#[must_use]
pub fn rate(per_s: f64) -> String {
    if per_s < 999.5 {
        return three_digits(per_s);
    }
    let unit = 10_f64.powf(per_s.log10().floor() - 2.0);
    count(((per_s / unit).round() * unit) as u64)
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

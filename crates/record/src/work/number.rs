//! A number in a text, and a file that holds one: by itself, or after a key (`key 12`, `key=12`,
//! `key: 12`).

use super::WorkReader;
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// More of a file or an answer is not read.
pub(super) const LONGEST_TEXT: u64 = 1 << 20;

/// A file with a number.
#[derive(Debug)]
pub(super) struct FileSource {
    pub path: PathBuf,
    pub key: Option<String>,
    /// Whether the file may not exist yet, which counts 0.
    pub may_appear: bool,
}

impl WorkReader for FileSource {
    fn read(&mut self, _is_ending: &AtomicBool) -> Result<i64, String> {
        let words = |error: sys::Error| {
            format!("{}: {}", self.path.display(), sys::plain_reason(&error.source))
        };
        let file = match sys::file::open_input(&self.path) {
            Err(error) if self.may_appear && error.kind == sys::ErrorKind::NotFound => {
                return Ok(0);
            }
            opened => opened.map_err(words)?,
        };
        let mut bytes = Vec::new();
        let read = file.take(LONGEST_TEXT).read_to_end(&mut bytes);
        read.map_err(|error| words(sys::Error::new("read", error)))?;
        let text = String::from_utf8_lossy(&bytes);
        let found = match &self.key {
            Some(key) => after_key(&text, key),
            None => first(&text),
        };
        match (&found, &self.key) {
            (Some(number), _) => Ok(*number),
            // A file that is being written anew is empty for a moment.
            (None, _) if self.may_appear && text.trim().is_empty() => Ok(0),
            (None, Some(key)) => Err(format!("{}: no number after {key}", self.path.display())),
            (None, None) => Err(format!("{}: no number in it", self.path.display())),
        }
    }
}

/// The first word that is a number.
pub(super) fn first(text: &str) -> Option<i64> {
    text.split_whitespace().find_map(parsed)
}

/// The first number in the line that starts with `key`.
pub(super) fn after_key(text: &str, key: &str) -> Option<i64> {
    let rest_of = |line: &str| {
        let rest = line.trim_start().strip_prefix(key)?;
        let ends = rest.starts_with(|letter: char| {
            letter.is_whitespace() || letter == '=' || letter == ':' || letter == '{'
        });
        let after = rest.rsplit_once('}').map_or(rest, |(_, after)| after);
        let plain = after
            .trim_start_matches(|letter: char| "=:".contains(letter) || letter.is_whitespace());
        ends.then(|| first(plain)).flatten()
    };
    text.lines().find_map(rest_of)
}

/// A whole number, or the whole part of one.
pub(super) fn parsed(word: &str) -> Option<i64> {
    if let Ok(whole) = word.parse::<i64>() {
        return Some(whole);
    }
    let number = word.parse::<f64>().ok().filter(|number| number.is_finite())?;
    // Beyond this an f64 has no whole numbers left, and i64::MIN means absent.
    (number.abs() < 9e18).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_alone_and_after_keys() {
        assert_eq!(first("done: 12.7 of 30\n"), Some(12));
        assert_eq!(first("nan inf none\n"), None);
        let text = "orders_total 7\norders=8\n orders : 9\nother{a=\"1\"} 10 99\n";
        assert_eq!(after_key(text, "orders_total"), Some(7));
        assert_eq!(after_key(text, "orders"), Some(8));
        assert_eq!(after_key(text, "other"), Some(10));
        assert_eq!(after_key(text, "ord"), None);
        assert_eq!(parsed("1e300"), None);
        assert_eq!(parsed("1.2e3"), Some(1200));
    }
}

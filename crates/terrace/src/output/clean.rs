//! Characters that a terminal would obey, made visible.
//!
//! Names of processes, groups, mounts and files, recordings and surveys are text of other users. It
//! enters the layout through [`wrap`](super::table::wrap), cells of a table and
//! [`Style::paint`](super::style::Style::paint), which escape it before any width is computed. On
//! the way out [`printable`] escapes what is left in a whole text, and is the only place that
//! writes escape sequences: the layout marks colours with noncharacters, which foreign text cannot
//! hold.

pub use model::text::{escaped, is_hazard};
use model::text::{replaced, visible};
use std::borrow::Cow;
use std::io::{self, Write};

/// As [`escaped`], but white space of any kind becomes a space: for command lines as titles.
pub fn spaced(text: &str) -> Cow<'_, str> {
    replaced(text, is_hazard, |letter, out| match letter {
        letter if letter.is_ascii_whitespace() => out.push(' '),
        letter => visible(letter, out),
    })
}

/// As [`escaped`], but ends of lines stay: for text that is laid out already.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |letter| letter != '\n' && is_hazard(letter), visible)
}

/// JSON as it was, with such characters as `\u202e`. They stand only in strings, where that means
/// the same.
pub fn json(text: &str) -> Cow<'_, str> {
    replaced(text, |letter| letter != '\n' && is_hazard(letter), unit)
}

/// Data as a terminal is given it: such characters as `\u202e`, ends of lines and tabs as they are.
pub fn data(text: &str) -> Cow<'_, str> {
    replaced(text, is_hazard_in_data, unit)
}

fn is_hazard_in_data(letter: char) -> bool {
    !matches!(letter, '\n' | '\t') && is_hazard(letter)
}

/// A text of pages as it is written: marks of colours become escape sequences, everything else but
/// ends of lines is made visible.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_replaced = |letter| letter != '\n' && is_hazard(letter);
    replaced(text, is_replaced, |letter, out| match Mark::of(letter) {
        Some(mark) => out.push_str(&mark.sequence()),
        None => visible(letter, out),
    })
}

/// Where a colour begins or ends in a text that is laid out: a character that no text may hold, and
/// that is escaped where foreign text does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u8);

/// The mark that ends a colour; those that begin one follow it by the number of their code.
const END: u32 = 0xfdd0;

/// The codes that a mark can mean, of "select graphic rendition".
const CODES: [u8; 8] = [0, 1, 2, 33, 32, 36, 35, 7];

impl Mark {
    /// The mark of a code of "select graphic rendition"; 0 ends a colour.
    pub fn new(code: u8) -> Self {
        Self(code)
    }

    /// The mark that `letter` is.
    fn of(letter: char) -> Option<Self> {
        let index = u32::from(letter).checked_sub(END)?;
        CODES.get(usize::try_from(index).ok()?).copied().map(Self)
    }

    /// What a terminal is sent.
    fn sequence(self) -> String {
        format!("\x1b[{}m", self.0)
    }

    /// The character that stands for it in the layout.
    pub fn letter(self) -> char {
        let index = CODES.iter().position(|code| *code == self.0);
        let letter = index.and_then(|index| char::from_u32(END + index as u32));
        letter.unwrap_or_default()
    }
}

fn unit(letter: char, out: &mut String) {
    for unit in letter.encode_utf16(&mut [0; 2]) {
        out.push_str(&format!("\\u{unit:04x}"));
    }
}

/// A writer to a terminal for data that is not a page, such as an export: such characters become
/// `\u202e`, bytes that are not UTF-8 become `\xff`. Ends of lines and tabs stay.
#[derive(Debug)]
pub struct TerminalWriter<W> {
    inner: W,
    /// The beginning of a character whose rest has not come yet.
    begun: Vec<u8>,
}

impl<W: Write> TerminalWriter<W> {
    pub fn new(inner: W) -> Self {
        let begun = Vec::new();
        Self { inner, begun }
    }

    /// Writes what was begun as well.
    pub fn end(mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.begun);
        let text: String = rest.iter().map(|byte| format!("\\x{byte:02x}")).collect();
        self.inner.write_all(text.as_bytes())?;
        self.inner.flush()
    }
}

impl<W: Write> Write for TerminalWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let all = [&self.begun[..], bytes].concat();
        let mut out = String::new();
        let mut at = 0;
        for chunk in all.utf8_chunks() {
            out.push_str(&data(chunk.valid()));
            at += chunk.valid().len();
            let invalid = chunk.invalid();
            // At the end it may be a character that goes on in the next piece.
            let may_go_on = at + invalid.len() == all.len()
                && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if may_go_on {
                break;
            }
            out.extend(invalid.iter().map(|byte| format!("\\x{byte:02x}")));
            at += invalid.len();
        }
        self.begun = all[at..].to_vec();
        self.inner.write_all(out.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests;

//! The few colours there are, each with one meaning. Nothing is said by colour alone: a
//! page without it has the same words. In the layout a colour is a mark that takes no column;
//! `clean::printable` turns marks into escape sequences when the text is written.

use super::clean::escaped_lines;

/// What a piece of text is, as far as its colour goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Text and figures.
    #[default]
    Plain,
    /// Headings.
    Strong,
    /// What only completes the picture: units of a page, evidence, notes.
    Dim,
    /// What deserves a look: noisy figures, numbers of findings.
    Warn,
    /// Time on a processor.
    Busy,
    /// Time spent waiting for a device.
    Device,
    /// Time that nothing has measured.
    Unknown,
    /// The place that is looked at.
    Marked,
}

/// A line of text, piece by piece.
pub type Toned = Vec<(Tone, String)>;

/// Where a colour begins or ends in a text that is laid out: a character that no text may hold, and
/// that is escaped where foreign text does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u8);

/// The mark that ends a colour; those that begin one follow it by the number of their code.
const END: u32 = 0xfdd0;

/// The codes that a mark can mean, of "select graphic rendition".
const CODES: [u8; 8] = [0, 1, 2, 33, 32, 36, 35, 7];

impl Mark {
    /// The mark that `letter` is.
    pub fn of(letter: char) -> Option<Self> {
        let index = u32::from(letter).checked_sub(END)?;
        CODES.get(usize::try_from(index).ok()?).copied().map(Self)
    }

    /// What a terminal is sent.
    pub fn sequence(self) -> String {
        format!("\x1b[{}m", self.0)
    }

    fn letter(self) -> char {
        let index = CODES.iter().position(|code| *code == self.0);
        let letter = index.and_then(|index| char::from_u32(END + index as u32));
        letter.unwrap_or_default()
    }
}

/// Marks tones, or leaves them out.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    coloured: bool,
}

impl Style {
    /// A style with or without colour.
    pub fn new(coloured: bool) -> Self {
        Self { coloured }
    }

    /// `text` in `tone`, escaped but for its ends of lines.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let text = escaped_lines(text);
        let code = match tone {
            Tone::Plain => return text.into_owned(),
            Tone::Strong => 1,
            Tone::Dim => 2,
            Tone::Warn => 33,
            Tone::Busy => 32,
            Tone::Device => 36,
            Tone::Unknown => 35,
            Tone::Marked => 7,
        };
        if self.coloured && !text.is_empty() {
            format!("{}{text}{}", Mark(code).letter(), Mark(0).letter())
        } else {
            text.into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::clean::printable;

    #[test]
    fn no_colour_no_codes() {
        assert_eq!(Style::new(false).paint(Tone::Warn, "x"), "x");
        assert_eq!(Style::new(true).paint(Tone::Plain, "x"), "x");
        for (tone, code) in [(Tone::Strong, 1), (Tone::Warn, 33), (Tone::Marked, 7)] {
            let painted = Style::new(true).paint(tone, "x");
            assert_eq!(printable(&painted), format!("\x1b[{code}mx\x1b[0m"));
        }
    }
}

//! The few colours there are, each with one meaning. Nothing is said by colour alone: a
//! page without it has the same words. In the layout a colour is a mark that takes no column;
//! `clean::printable` turns marks into escape sequences when the text is written.

use super::clean::{Mark, escaped_lines};

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

/// Marks tones, or leaves them out.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    coloured: bool,
}

impl Style {
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
            format!("{}{text}{}", Mark::new(code).letter(), Mark::new(0).letter())
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

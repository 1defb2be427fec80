//! The signs of a lane: blocks where the terminal's locale has them, else ASCII. A value above 0
//! has always a sign that 0 has not, and what is absent has none.

/// Which signs a terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glyphs {
    /// Those of every terminal.
    Ascii,
    /// Blocks of eight heights.
    Blocks,
}

const ASCII: [char; 8] = ['_', ':', '-', '=', '+', '*', '#', '@'];
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl Glyphs {
    /// Those of a locale, from what the environment says of it: the first of LC_ALL, LC_CTYPE and
    /// LANG that is not empty.
    pub fn of_locale(variable: impl Fn(&str) -> Option<String>) -> Self {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
        let mut values = names.filter_map(variable).filter(|value| !value.is_empty());
        let locale = values.next().unwrap_or_default().to_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") { Self::Blocks } else { Self::Ascii }
    }

    /// The sign of `value` where `full` fills a cell.
    pub fn height(self, value: Option<f64>, full: f64) -> char {
        let (signs, nothing) = match self {
            Self::Ascii => (ASCII, '.'),
            Self::Blocks => (BLOCKS, '·'),
        };
        match value {
            None => ' ',
            Some(value) if value <= 0.0 => nothing,
            Some(value) => {
                let share = (value / full).clamp(0.0, 1.0);
                let step = (share * signs.len() as f64).ceil() as usize;
                signs[step.clamp(1, signs.len()) - 1]
            }
        }
    }

    /// The mark of the column that a table is sorted by.
    pub fn sort_sign(self, is_ascending: bool) -> &'static str {
        match (self, is_ascending) {
            (Self::Ascii, true) => "^",
            (Self::Ascii, false) => "v",
            (Self::Blocks, true) => "▲",
            (Self::Blocks, false) => "▼",
        }
    }

    /// The mark above a column in which something stood out.
    pub fn moment_sign(self) -> char {
        match self {
            Self::Ascii => '!',
            Self::Blocks => '◆',
        }
    }

    /// The mark above the column that is looked at.
    pub fn cursor_sign(self) -> char {
        match self {
            Self::Ascii => 'v',
            Self::Blocks => '▼',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_little_and_absent_look_different() {
        for glyphs in [Glyphs::Ascii, Glyphs::Blocks] {
            let signs: Vec<char> = [None, Some(0.0), Some(1e-9), Some(0.5), Some(1.0), Some(9.0)]
                .map(|value| glyphs.height(value, 1.0))
                .to_vec();
            let mut different = signs.clone();
            different.dedup();
            assert_eq!(different.len(), 5, "{signs:?}");
            assert_eq!(signs[4], signs[5]);
        }
    }

    #[test]
    fn the_locale_decides() {
        let of = |set: &[(&str, &str)]| {
            Glyphs::of_locale(|name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[]), Glyphs::Ascii);
        assert_eq!(of(&[("LANG", "C.UTF-8")]), Glyphs::Blocks);
        assert_eq!(of(&[("LANG", "de_DE.utf8"), ("LC_ALL", "")]), Glyphs::Blocks);
        assert_eq!(of(&[("LANG", "C.UTF-8"), ("LC_ALL", "C")]), Glyphs::Ascii);
    }
}

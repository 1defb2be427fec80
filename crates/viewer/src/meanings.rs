//! What each series means: the tables of docs/counters.md, read when they are needed.
//!
//! Meanings are written in that document only. A pattern there names a series
//! with `<x>` for a name of the machine and `{a,b}` for each of the words.

/// No series has a longer name, and a pattern may take long to refuse one.
const NAME_BYTES_MAX: usize = 256;

/// The meaning of each series that a recording can hold.
#[derive(Debug)]
pub struct Meanings(Vec<(Vec<Piece>, String)>);

/// A part of a pattern.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// `{a,b}`: one of these.
    OneOf(Vec<String>),
    /// `<x>`: at least one sign.
    Any,
}

impl Meanings {
    /// The meanings in docs/counters.md.
    #[must_use]
    pub fn documented() -> Self {
        Self::read(include_str!("../../../docs/counters.md"))
    }

    /// The tables of `document` whose first column is `series` and whose last is `meaning`.
    fn read(document: &str) -> Self {
        let mut rows: Vec<(Vec<Piece>, String)> = Vec::new();
        let mut above = String::new();
        let mut is_table = false;
        for line in document.lines() {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let (Some(first), Some(last)) = (cells.first(), cells.last()) else {
                continue;
            };
            if !line.starts_with('|') {
                is_table = false;
            } else if *first == "series" {
                is_table = *last == "meaning";
            } else if is_table && first.starts_with('`') {
                let mut meaning = last.replace('`', "");
                // A meaning is shown alone: one that refers to the row above it quotes that row.
                if meaning.starts_with("the same") {
                    meaning = format!("{meaning}: {above}");
                } else {
                    above.clone_from(&meaning);
                }
                let patterns = first.split('`').skip(1).step_by(2);
                rows.extend(patterns.map(|pattern| (pieces(pattern), meaning.clone())));
            }
        }
        Self(rows)
    }

    /// The meaning of the series of this name; `None` where the document has none.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<&str> {
        if name.len() > NAME_BYTES_MAX {
            return None;
        }
        let mut rows = self.0.iter();
        let row = rows.find(|(pieces, _)| matches(pieces, name))?;
        Some(&row.1)
    }
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while !rest.is_empty() {
        let plain = rest.find(['<', '{']).unwrap_or(rest.len());
        if plain > 0 {
            pieces.push(Piece::Text(rest[..plain].to_owned()));
        }
        rest = &rest[plain..];
        let Some(end) = rest.find(['>', '}']) else {
            break;
        };
        pieces.push(match rest.strip_prefix('{') {
            Some(_) => Piece::OneOf(rest[1..end].split(',').map(str::to_owned).collect()),
            None => Piece::Any,
        });
        rest = &rest[end + 1..];
    }
    pieces
}

fn matches(pieces: &[Piece], name: &str) -> bool {
    let Some((piece, rest)) = pieces.split_first() else {
        return name.is_empty();
    };
    let goes_on = |text: &str| name.strip_prefix(text).is_some_and(|after| matches(rest, after));
    match piece {
        Piece::Text(text) => goes_on(text),
        Piece::OneOf(words) => words.iter().any(|word| goes_on(word)),
        Piece::Any => {
            let mut ends = name.char_indices().map(|(at, sign)| at + sign.len_utf8());
            ends.any(|end| matches(rest, &name[end..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_each_word_and_any_name() {
        let pattern = pieces("trace.block.<dev>.{read,write}_le_<2^k>us");
        for (name, expected) in [
            ("trace.block.vda.read_le_16us", true),
            ("trace.block.a.b.write_le_1us", true),
            ("trace.block.vda.flush_le_16us", false),
            ("trace.block..read_le_16us", false),
            ("trace.block.vda.read_le_16us.x", false),
        ] {
            assert_eq!(matches(&pattern, name), expected, "{name}");
        }
    }

    #[test]
    fn the_document_is_understood_down_to_its_last_table() {
        let meanings = Meanings::documented();
        let of = |name| meanings.of(name).unwrap_or_default();
        assert!(of("stat.cpu.steal_ns").contains("hypervisor"));
        assert!(of("disk.vda.write_bytes").starts_with("the same of writes: requests completed"));
        assert!(of("group0.io.vda.max.rbps").contains("limits a second"));
        assert_eq!(of("trace.lost"), of("trace.events"));
        assert_ne!(of("trace.lost"), "");
        assert_eq!(meanings.of("cache copy reads"), None);
        assert_eq!(meanings.of("no.series"), None);
    }

    #[test]
    fn a_name_as_long_as_a_book_is_refused_at_once() {
        let name = format!("trace.block.{}", "a.read_le_".repeat(1 << 20));
        assert_eq!(Meanings::documented().of(&name), None);
    }
}

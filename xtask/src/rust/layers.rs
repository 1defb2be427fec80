//! Separates Rust source into three layers of equal shape: code, comments, contents of literals.
//!
//! Each layer has the length and the lines of the source, with spaces where another layer speaks,
//! so an offset or a line number found in one layer is valid in all. A rule reads the layer that it
//! is about and cannot trip over the others: `unsafe` in a sentence is not `unsafe` in code.
//!
//! The delimiters of literals stay in the code. Unterminated pieces end with the file. Nothing is
//! interpreted: escapes stay as written.

use std::ops::Range;

/// The three layers of one file. Each is as long as the source, and has its line breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layers {
    /// Code, with the delimiters of literals but not their contents.
    pub code: String,
    /// Comments, with their delimiters; doc comments too.
    pub comments: String,
    /// What stands between the delimiters of string, byte-string, C-string, character and byte
    /// literals.
    pub literals: String,
}

impl Layers {
    /// The layers of `source`. Total: any text has layers, also one that is not Rust.
    #[must_use]
    pub fn of(source: &str) -> Self {
        let text = source.as_bytes();
        let blank: Vec<u8> = text
            .iter()
            .map(|byte| if *byte == b'\n' { b'\n' } else { b' ' })
            .collect();
        let (mut code, mut comments, mut literals) = (blank.clone(), blank.clone(), blank);
        let mut at = 0;
        while at < text.len() {
            let piece = Piece::at(text, at);
            let inner = at + piece.open..piece.end - piece.close;
            match piece.kind {
                Kind::Code => copy(text, &mut code, at..piece.end),
                Kind::Comment => copy(text, &mut comments, at..piece.end),
                Kind::Literal => {
                    copy(text, &mut code, at..inner.start);
                    copy(text, &mut code, inner.end..piece.end);
                    copy(text, &mut literals, inner);
                }
            }
            at = piece.end;
        }
        Self {
            code: string(code),
            comments: string(comments),
            literals: string(literals),
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// What starts at an offset: its kind, where it ends, and how long its delimiters are.
struct Piece {
    kind: Kind,
    end: usize,
    open: usize,
    close: usize,
}

impl Piece {
    fn at(text: &[u8], at: usize) -> Self {
        let rest = &text[at..];
        match rest {
            [b'/', b'/', ..] => Self::comment(line_end(text, at)),
            [b'/', b'*', ..] => Self::comment(block_comment_end(text, at)),
            [b'"', ..] => Self::quoted(text, at, 1, b'"'),
            [b'\'', ..] => Self::quote(text, at),
            [first, ..] if is_word(*first) => Self::word(text, at),
            _ => Self::code(at + 1),
        }
    }

    fn code(end: usize) -> Self {
        Self {
            kind: Kind::Code,
            end,
            open: 0,
            close: 0,
        }
    }

    fn comment(end: usize) -> Self {
        Self {
            kind: Kind::Comment,
            ..Self::code(end)
        }
    }

    /// A word, or the literal that it is the prefix of (`r"..."`, `br##"..."##`, `b'x'`).
    fn word(text: &[u8], at: usize) -> Self {
        let end = at + text[at..].iter().take_while(|byte| is_word(**byte)).count();
        let next = text.get(end).copied();
        match (&text[at..end], next) {
            (b"b" | b"c", Some(b'"')) => Self::quoted(text, at, 2, b'"'),
            (b"b", Some(b'\'')) => Self::quoted(text, at, 2, b'\''),
            (b"r" | b"br" | b"cr", Some(b'"' | b'#')) => {
                Self::raw(text, at, end).unwrap_or_else(|| Self::code(end))
            }
            _ => Self::code(end),
        }
    }

    /// A literal with escapes, whose opening delimiter is `open` bytes long.
    fn quoted(text: &[u8], at: usize, open: usize, quote: u8) -> Self {
        let mut end = at + open;
        while end < text.len() && text[end] != quote {
            end += if text[end] == b'\\' { 2 } else { 1 };
        }
        let close = usize::from(end < text.len());
        Self {
            kind: Kind::Literal,
            end: (end + close).min(text.len()),
            open,
            close,
        }
    }

    /// A raw string whose prefix ends at `hashes`; `None` for a raw identifier such as `r#type`.
    fn raw(text: &[u8], at: usize, hashes: usize) -> Option<Self> {
        let count = text[hashes..]
            .iter()
            .take_while(|byte| **byte == b'#')
            .count();
        let quote = hashes + count;
        if text.get(quote) != Some(&b'"') {
            return None;
        }
        let inner = quote + 1;
        let closes = |end: &usize| {
            text[*end] == b'"'
                && text[*end + 1..]
                    .iter()
                    .take_while(|byte| **byte == b'#')
                    .count()
                    >= count
        };
        let (end, close) = match (inner..text.len()).find(closes) {
            Some(end) => (end + 1 + count, 1 + count),
            None => (text.len(), 0),
        };
        Some(Self {
            kind: Kind::Literal,
            end,
            open: inner - at,
            close,
        })
    }

    /// A character literal or, when no quote follows one character later, a lifetime's tick.
    fn quote(text: &[u8], at: usize) -> Self {
        let Some(first) = text.get(at + 1) else {
            return Self::code(at + 1);
        };
        let after = at + 1 + utf8_bytes(*first);
        if *first == b'\\' || text.get(after) == Some(&b'\'') {
            Self::quoted(text, at, 1, b'\'')
        } else {
            Self::code(at + 1)
        }
    }
}

fn line_end(text: &[u8], at: usize) -> usize {
    text[at..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(text.len(), |length| at + length)
}

/// Block comments nest in Rust, so the first `*/` may not be the end.
fn block_comment_end(text: &[u8], at: usize) -> usize {
    let mut depth = 0_usize;
    let mut end = at;
    while end < text.len() {
        match &text[end..] {
            [b'/', b'*', ..] => {
                depth += 1;
                end += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                end += 2;
                if depth == 0 {
                    return end;
                }
            }
            _ => end += 1,
        }
    }
    text.len()
}

/// Bytes of identifiers; every byte of a non-ASCII character counts, as such identifiers are legal.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn utf8_bytes(first: u8) -> usize {
    match first {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    }
}

fn copy(source: &[u8], target: &mut [u8], range: Range<usize>) {
    target[range.clone()].copy_from_slice(&source[range]);
}

/// Pieces end at ASCII bytes, so characters are never cut; the lossy way only keeps this total.
fn string(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code of `source` without the spaces that blanking left, for short comparisons.
    fn code(source: &str) -> String {
        Layers::of(source)
            .code
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn literals(source: &str) -> Vec<String> {
        Layers::of(source)
            .literals
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn comments_leave_the_code_and_keep_its_shape() {
        let layers = Layers::of("a // b\nc /* d */ e");
        assert_eq!(layers.code, "a     \nc         e");
        assert_eq!(layers.comments, "  // b\n  /* d */  ");
    }

    #[test]
    fn block_comments_nest() {
        assert_eq!(code("a /* b /* c */ d */ e"), "a e");
        assert_eq!(code("a /* b /* c */ d"), "a");
    }

    #[test]
    fn comment_signs_in_strings_are_text_and_quotes_in_comments_are_not_strings() {
        assert_eq!(code(r#"f("// no", "/* no"); // "yes"#), r#"f(" ", " ");"#);
        assert_eq!(literals("a // \"b\"\n'c'"), ["c"]);
    }

    #[test]
    fn an_escaped_quote_does_not_end_a_string() {
        assert_eq!(literals(r#"("a\"b\\", c)"#), [r#"a\"b\\"#]);
        assert_eq!(code(r#"("a\"b\\", c)"#), r#"(" ", c)"#);
    }

    #[test]
    fn raw_strings_end_at_their_own_number_of_hashes() {
        assert_eq!(literals(r###"(r#"a"b\"#, c)"###), [r#"a"b\"#]);
        assert_eq!(literals(r####"br##"x"#y"##"####), [r##"x"#y"##]);
        assert_eq!(literals(r#"cr"\" c"#), ["\\"]);
    }

    #[test]
    fn raw_identifiers_are_code() {
        assert_eq!(code("r#fn(r#type)"), "r#fn(r#type)");
    }

    #[test]
    fn lifetimes_are_code_and_characters_are_literals() {
        assert_eq!(
            code("fn f<'a, 'b>(x: &'a str) {}"),
            "fn f<'a, 'b>(x: &'a str) {}"
        );
        assert_eq!(
            literals(r"['a', '\'', '\\', 'é', '€', b'\'', '\u{41}', '{']"),
            ["a", r"\'", r"\\", "é", "€", r"\'", r"\u{41}", "{"]
        );
        assert_eq!(
            code("'outer: loop { break 'outer; }"),
            "'outer: loop { break 'outer; }"
        );
        assert_eq!(code("m('\"', '\"')"), "m(' ', ' ')");
    }

    #[test]
    fn prefixes_count_only_as_whole_words() {
        assert_eq!(literals("b\"x\" c\"y\" b'z'"), ["x", "y", "z"]);
        assert_eq!(code("bar!\"x\""), "bar!\" \"");
    }

    #[test]
    fn unterminated_pieces_end_with_the_file() {
        for source in [
            "\"abc",
            "\"abc\\",
            "'",
            "'\\",
            "r#\"abc\"",
            "/*",
            "b'",
            "//",
        ] {
            assert_eq!(Layers::of(source).code.len(), source.len(), "{source}");
        }
    }

    /// The layers laid over each other are the source again: nothing is lost, nothing is in two.
    #[test]
    fn layers_of_real_files_add_up_to_the_source() {
        for source in [
            include_str!("layers.rs"),
            include_str!("items.rs"),
            include_str!("../process.rs"),
        ] {
            let layers = Layers::of(source);
            let overlay: Vec<u8> = (0..source.len())
                .map(|at| {
                    let parts = [&layers.code, &layers.comments, &layers.literals];
                    let mut seen = parts
                        .iter()
                        .map(|part| part.as_bytes()[at])
                        .filter(|byte| *byte != b' ');
                    let byte = seen.next().unwrap_or(b' ');
                    assert!(
                        byte == b'\n' || seen.next().is_none(),
                        "offset {at} is in two layers"
                    );
                    byte
                })
                .collect();
            assert_eq!(overlay, source.as_bytes());
            let count = |brace: char| layers.code.chars().filter(|c| *c == brace).count();
            assert_eq!(count('{'), count('}'));
        }
    }
}

//! Separates Rust source into three layers of equal shape: code, comments, contents of literals.
//!
//! Each layer has the length and the lines of the source, with spaces in place of the other layers,
//! so an offset or a line number found in one layer is valid in all. A rule reads the layer that it
//! is about and cannot trip over the others: `unsafe` in a sentence is not `unsafe` in code.
//!
//! The delimiters of literals stay in the code. `proc-macro2` finds the tokens; escapes stay as
//! written. Text that is not Rust is code as a whole.

use std::ops::Range;

use proc_macro2::{TokenStream, TokenTree};

/// The three layers of one file. Each is as long as the source, and has its line breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layers {
    /// Code, with the delimiters of literals but not their contents.
    pub code: String,
    /// Comments, with their delimiters; doc comments too.
    pub comments: String,
    /// The text between the delimiters of string, byte-string, C-string, character and byte
    /// literals.
    pub literals: String,
}

impl Layers {
    /// The layers of `source`, which may be any text.
    pub fn of(source: &str) -> Self {
        let (mut code, mut literals) = (Vec::new(), Vec::new());
        match source.parse() {
            Ok(tokens) => split_tokens(source, tokens, &mut code, &mut literals),
            Err(_) => code.push(0..source.len()),
        }
        let mut outside = Vec::new();
        let mut end = 0;
        let mut tokens: Vec<_> = code.iter().chain(&literals).collect();
        tokens.sort_by_key(|range| (range.start, range.end));
        for token in tokens {
            outside.push(end..token.start);
            end = token.end;
        }
        outside.push(end..source.len());
        Self {
            code: only(source, &code),
            comments: only(source, &outside),
            literals: only(source, &literals),
        }
    }
}

/// Sorts the ranges of `tokens` into code and contents of literals.
fn split_tokens(
    source: &str,
    tokens: TokenStream,
    code: &mut Vec<Range<usize>>,
    literals: &mut Vec<Range<usize>>,
) {
    for token in tokens {
        let range = token.span().byte_range();
        let text = &source[range.clone()];
        // A doc comment arrives as the tokens of an attribute, each with the comment's range.
        if text.starts_with("//") || text.starts_with("/*") {
            continue;
        }
        match token {
            TokenTree::Group(group) => {
                code.push(group.span_open().byte_range());
                split_tokens(source, group.stream(), code, literals);
                code.push(group.span_close().byte_range());
            }
            TokenTree::Literal(_) => {
                let quote = |c| c == '"' || c == '\'';
                let content = text.find(quote).zip(text.rfind(quote));
                let (open, close) =
                    content.map_or((text.len(), text.len()), |(open, close)| (open + 1, close));
                code.push(range.start..range.start + open);
                literals.push(range.start + open..range.start + close);
                code.push(range.start + close..range.end);
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => code.push(range),
        }
    }
}

/// `source` with spaces outside of `ranges`, but all its line breaks.
fn only(source: &str, ranges: &[Range<usize>]) -> String {
    let blank = source.bytes().map(|byte| if byte == b'\n' { byte } else { b' ' });
    let mut layer: Vec<u8> = blank.collect();
    for range in ranges {
        layer[range.clone()].copy_from_slice(&source.as_bytes()[range.clone()]);
    }
    // Ranges end between characters.
    String::from_utf8_lossy(&layer).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code of `source` without the spaces that blanking left, for short comparisons.
    fn code(source: &str) -> String {
        Layers::of(source).code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn literals(source: &str) -> Vec<String> {
        Layers::of(source).literals.split_whitespace().map(str::to_owned).collect()
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
        assert_eq!(code("fn f<'a, 'b>(x: &'a str) {}"), "fn f<'a, 'b>(x: &'a str) {}");
        assert_eq!(
            literals(r"['a', '\'', '\\', 'é', '€', b'\'', '\u{41}', '{']"),
            ["a", r"\'", r"\\", "é", "€", r"\'", r"\u{41}", "{"]
        );
        assert_eq!(code("'outer: loop { break 'outer; }"), "'outer: loop { break 'outer; }");
        assert_eq!(code("m('\"', '\"')"), "m(' ', ' ')");
    }

    #[test]
    fn prefixes_count_only_as_whole_words() {
        assert_eq!(literals("b\"x\" c\"y\" b'z'"), ["x", "y", "z"]);
        assert_eq!(code("bar!\"x\""), "bar!\" \"");
    }

    #[test]
    fn text_that_is_not_rust_is_code() {
        for source in ["\"abc", "'", "r#\"abc\"", "a /* b", "f(("] {
            assert_eq!(Layers::of(source).code, source);
        }
    }

    /// The layers laid over each other are the source again: nothing is lost, nothing is in two.
    #[test]
    fn layers_of_real_files_add_up_to_the_source() {
        for source in
            [include_str!("layers.rs"), include_str!("items.rs"), include_str!("../process.rs")]
        {
            let layers = Layers::of(source);
            let overlay: Vec<u8> = (0..source.len())
                .map(|at| {
                    let parts = [&layers.code, &layers.comments, &layers.literals];
                    let mut seen =
                        parts.iter().map(|part| part.as_bytes()[at]).filter(|byte| *byte != b' ');
                    let byte = seen.next().unwrap_or(b' ');
                    assert!(byte == b'\n' || seen.next().is_none(), "offset {at} is in two layers");
                    byte
                })
                .collect();
            assert_eq!(overlay, source.as_bytes());
            let count = |brace: char| layers.code.chars().filter(|c| *c == brace).count();
            assert_eq!(count('{'), count('}'));
        }
    }
}

//! Rule: identifiers and the first lines of docs use none of the words listed here, and no comment
//! line has more than 100 columns.
//!
//! The words are metaphors and turns of phrase for which the field has a literal word. Words match
//! whole: `ear` is a part of `MarkEar` and not of `clear`.

use super::tree::crate_of;
use super::{Tree, Violation};
use crate::rust::Layers;

/// A wider comment does not fit beside another file.
const COLUMNS_MAX: usize = 100;

/// Words that are neither a part of an identifier nor in the first line of a doc comment.
const WORDS: &[&str] = &[
    "accused",
    "blame",
    "blamed",
    "desk",
    "ear",
    "gaze",
    "nobody",
    "sit",
    "sitting",
    "sittings",
    "somebody",
    "told",
    "whereabouts",
    "whoever",
    "wish",
];

/// Phrases that the first line of a doc comment does not contain.
const PHRASES: &[&str] = &["is none", "so it is with", "where there is none"];

/// What opens a doc comment.
const DOC: &[&str] = &["//!", "///"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, layers) in tree.sources() {
        if crate_of(path).is_none() {
            continue;
        }
        let found = wide_comments(layers).chain(identifiers(layers)).chain(first_lines(layers));
        violations.extend(found.map(|(line, text)| Violation::new(path, line, text)));
    }
    violations
}

fn wide_comments(layers: &Layers) -> impl Iterator<Item = (usize, String)> {
    comment_lines(layers).filter_map(|(line, text)| {
        let columns = text.trim_end().chars().count();
        let text = format!("a comment of {columns} columns, at most {COLUMNS_MAX}");
        (columns > COLUMNS_MAX).then_some((line, text))
    })
}

fn identifiers(layers: &Layers) -> impl Iterator<Item = (usize, String)> {
    numbered(&layers.code).flat_map(|(line, text)| {
        let names = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let bad = names.filter_map(|name| {
            let word = parts(name).into_iter().find(|part| WORDS.contains(&part.as_str()))?;
            Some(format!("`{name}` has the word `{word}`"))
        });
        bad.map(|text| (line, text)).collect::<Vec<_>>()
    })
}

/// The lower-case words of an identifier: of `SomeName`, `some_name` and `SOME_NAME`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for piece in name.split('_') {
        let mut after_lower = false;
        let mut part = String::new();
        for c in piece.chars() {
            if c.is_uppercase() && after_lower {
                parts.push(std::mem::take(&mut part));
            }
            after_lower = c.is_lowercase();
            part.extend(c.to_lowercase());
        }
        parts.push(part);
    }
    parts
}

fn first_lines(layers: &Layers) -> impl Iterator<Item = (usize, String)> {
    let mut above = "";
    comment_lines(layers).filter_map(move |(line, text)| {
        let mark = DOC.iter().find(|mark| text.trim_start().starts_with(**mark));
        let is_first = mark.is_some_and(|mark| !above.trim_start().starts_with(mark));
        above = text;
        let refused = is_first.then(|| refused(text)).flatten()?;
        Some((line, format!("the first line of a doc comment says \"{refused}\"")))
    })
}

/// The first listed word or phrase of a line.
fn refused(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    // Quoted names are for `identifiers` to judge.
    let prose: String = text.split('`').step_by(2).collect::<Vec<_>>().join(" x ");
    let words: Vec<&str> = prose.split(|c: char| !c.is_alphanumeric()).collect();
    let word = WORDS.iter().find(|word| words.contains(word));
    let phrase = || PHRASES.iter().find(|phrase| prose.contains(**phrase));
    word.or_else(phrase).copied()
}

/// The lines of the comment layer that hold nothing but a comment; others are empty.
fn comment_lines(layers: &Layers) -> impl Iterator<Item = (usize, &str)> {
    let lines = numbered(&layers.comments).zip(layers.code.lines());
    lines.map(|((line, text), code)| if code.trim().is_empty() { (line, text) } else { (line, "") })
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(at, line)| (at + 1, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(text: &str) -> Vec<String> {
        let found = check(&Tree::of(&[("crates/a/src/lib.rs", text)]));
        let line = |violation: Violation| format!("{}: {}", violation.line, violation.text);
        found.into_iter().map(line).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn listed_words_in_identifiers_are_found_whole() {
        let bad = "fn told() {}\nstruct MarkEar;\nconst NO_WISH: u8 = 0;\nlet sit = 1;";
        assert_eq!(
            violations(bad),
            [
                "1: `told` has the word `told`",
                "2: `MarkEar` has the word `ear`",
                "3: `NO_WISH` has the word `wish`",
                "4: `sit` has the word `sit`",
            ]
        );
        let good = "fn clear_site() -> Wished { Earnings::year(\"told\") } // told, by nobody";
        assert_eq!(violations(good), NONE);
    }

    #[test]
    fn the_first_line_of_a_doc_comment_is_plain() {
        let said = |word: &str| format!("the first line of a doc comment says \"{word}\"");
        assert_eq!(
            violations("//! What it was told.\n\n/// Whoever asks.\nfn a() {}\n"),
            [format!("1: {}", said("told")), format!("3: {}", said("whoever"))]
        );
        assert_eq!(
            violations("    /// The name, where there is none an empty one.\n    a: u8,"),
            [format!("1: {}", said("is none"))]
        );
        let good =
            "/// A name.\n/// Nobody reads on.\nfn a() {} // nobody\n/// Calls `told`.\nfn b() {}";
        assert_eq!(violations(good), NONE);
    }

    #[test]
    fn a_comment_has_at_most_100_columns() {
        let line = |columns: usize| format!("// {}", "é".repeat(columns - 3));
        assert_eq!(violations(&line(100)), NONE);
        for line in [line(101), format!("  ///{}", &line(101)[5..]), format!("/*{}*/", line(99))] {
            assert_eq!(violations(&line).len(), 1, "{line}");
        }
        let code = format!("let a = \"{}\"; // why", "x".repeat(100));
        assert_eq!(violations(&code), NONE);
    }

    #[test]
    fn files_outside_of_crates_are_not_checked() {
        let tree = Tree::of(&[("crates/b/src/lib.rs", "fn told() {}"), ("x.rs", "fn told() {}")]);
        assert_eq!(check(&tree).len(), 1);
    }
}

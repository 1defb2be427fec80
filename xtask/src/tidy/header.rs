//! Rule: each Rust file opens with a `//!` header of 2 to 12 lines.
//!
//! The header says what the file owns, the idea, and what it does not do. Whether it is a good one
//! is for review; that it is there, first, and short enough to be read, is for this rule.

use super::{Tree, Violation};

const LINES: std::ops::RangeInclusive<usize> = 2..=12;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    tree.files()
        .filter(|(path, _)| path.ends_with(".rs"))
        .filter_map(|(path, text)| {
            let lines = text.lines().take_while(|line| line.starts_with("//!")).count();
            let why = match lines {
                0 => "does not open with a `//!` header".to_owned(),
                lines if LINES.contains(&lines) => return None,
                lines => format!(
                    "its header has {lines} lines, not {} to {}",
                    LINES.start(),
                    LINES.end()
                ),
            };
            Some(Violation::new(path, 1, why))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(text: &str) -> usize {
        check(&Tree::of(&[("crates/a/src/b.rs", text)])).len()
    }

    #[test]
    fn two_to_twelve_lines_pass() {
        for (lines, expected) in [(0, 1), (1, 1), (2, 0), (12, 0), (13, 1)] {
            let text = format!("{}\nfn a() {{}}\n", "//! x\n".repeat(lines));
            assert_eq!(violations(&text), expected, "{lines} lines");
        }
    }

    #[test]
    fn the_header_comes_first_and_in_one_piece() {
        assert_eq!(violations("\n//! a\n//! b\n"), 1);
        assert_eq!(violations("use a;\n//! a\n//! b\n"), 1);
        assert_eq!(violations("//! a\n\n//! b\n"), 1);
        assert_eq!(violations("// a\n// b\n"), 1);
    }

    #[test]
    fn other_files_need_none() {
        assert_eq!(check(&Tree::of(&[("docs/a.md", "# a")])), []);
    }
}

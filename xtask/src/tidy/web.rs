//! Rule: a page is made of small files of ours and of vendored files exactly as published.
//!
//! Each vendored file is in a table here with its SHA-256, and its folder has a licence: a new
//! version changes both in one commit. Our own modules and style sheets have a limit of bytes
//! altogether, because each page carries them, and a limit of columns, because a limit of lines
//! alone is met by long lines.

use sha2::{Digest, Sha256};

use super::{Tree, Violation};

const WEB: &str = "crates/viewer/web/";

const VENDORED: &str = "crates/viewer/web/vendor/";

/// The vendored files below [`VENDORED`], uPlot 1.6.32.
const FILES: &[(&str, &str)] = &[
    ("uplot/LICENSE", "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd"),
    ("uplot/uPlot.d.ts", "af44374f6e808be4f7f3fa5888b9c7574dca9f8a15a66d54b6763535802c8080"),
    ("uplot/uPlot.iife.min.js", "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"),
    ("uplot/uPlot.min.css", "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"),
];

/// Bytes of all modules and style sheets of ours: each page that is saved holds them. More than the
/// round number, since an innocent's number has to say why, tables are cards on a phone, up to four
/// recordings lie over each other, and advice has a page of its own, which draws what each policy
/// would have hit of a trace.
const BYTES_MAX: usize = 186_000;

/// As the formatter breaks lines: `prettier --print-width 100 --arrow-parens avoid
/// --quote-props preserve`.
const COLUMNS_MAX: usize = 100;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    checked(tree, FILES, BYTES_MAX)
}

fn checked(tree: &Tree, known: &[(&str, &str)], bytes_max: usize) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut bytes = 0;
    for (path, text) in tree.files().filter(|(path, _)| path.starts_with(WEB)) {
        match path.strip_prefix(VENDORED) {
            Some(name) => violations.extend(vendored(tree, path, name, text, known)),
            None if path.ends_with(".js") || path.ends_with(".css") => {
                bytes += text.len();
                violations.extend(long_lines(path, text));
            }
            None => {}
        }
    }
    if bytes > bytes_max {
        let text = format!("{bytes} bytes altogether, more than {bytes_max}");
        violations.push(Violation::new(WEB, 1, text));
    }
    violations
}

/// What is wrong with a vendored file.
fn vendored(
    tree: &Tree,
    path: &str,
    name: &str,
    text: &str,
    known: &[(&str, &str)],
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let sum: String =
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = known.iter().find(|(known, _)| *known == name);
    if expected.is_none_or(|(_, expected)| *expected != sum) {
        let text = format!("is not the vendored file that was checked: its SHA-256 is {sum}");
        violations.push(Violation::new(path, 1, text));
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    if tree.text(&format!("{folder}/LICENSE")).is_none() {
        violations.push(Violation::new(path, 1, "no LICENSE lies beside it"));
    }
    violations
}

fn long_lines<'a>(path: &'a str, text: &'a str) -> impl Iterator<Item = Violation> + 'a {
    text.lines().enumerate().filter_map(move |(index, line)| {
        let columns = line.chars().count();
        let text = format!("{columns} columns, more than {COLUMNS_MAX}");
        (columns > COLUMNS_MAX).then(|| Violation::new(path, index + 1, text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the text `a`.
    const SUM_OF_A: &str = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";

    fn violations(files: &[(&str, &str)]) -> Vec<String> {
        let found = checked(&Tree::of(files), &[("x/a.js", SUM_OF_A)], 40);
        found.into_iter().map(|violation| violation.text).collect()
    }

    #[test]
    fn a_vendored_file_that_was_changed_or_is_not_in_the_table_is_found() {
        let licence = ("crates/viewer/web/vendor/x/LICENSE", "MIT");
        let found = violations(&[("crates/viewer/web/vendor/x/a.js", "a"), licence]);
        assert_eq!(found.len(), 1, "the licence is not in this table: {found:?}");
        let found = violations(&[("crates/viewer/web/vendor/x/a.js", "b"), licence]);
        assert_eq!(found.len(), 2, "{found:?}");
        let found = violations(&[("crates/viewer/web/vendor/x/b.js", "a"), licence]);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn a_vendored_file_has_a_licence_beside_it() {
        let found = violations(&[("crates/viewer/web/vendor/x/a.js", "a")]);
        assert_eq!(found, ["no LICENSE lies beside it"]);
    }

    #[test]
    fn bytes_of_our_own_files_are_counted_together() {
        let (js, css) = ("crates/viewer/web/a.js", "crates/viewer/web/a.css");
        let twenty = "let a = 0123456789;\n";
        assert_eq!(violations(&[(js, twenty), (css, twenty)]), [""; 0]);
        assert_eq!(violations(&[(js, twenty), (css, "let aa = 0123456789;\n")]).len(), 1);
        assert_eq!(violations(&[("crates/viewer/src/a.js", &twenty.repeat(9))]).len(), 0);
    }

    #[test]
    fn a_line_over_a_hundred_columns_is_found() {
        let file = ("crates/viewer/web/a.js", format!("\n// {}\n", "\u{e9}".repeat(98)));
        let tree = Tree::of(&[(file.0, &file.1)]);
        let violations = checked(&tree, &[], BYTES_MAX);
        let found = violations.iter().map(|violation| (violation.line, violation.text.as_str()));
        assert_eq!(found.collect::<Vec<_>>(), [(2, "101 columns, more than 100")]);
    }

    #[test]
    fn this_workspace_has_the_vendored_files_of_the_table() {
        let root = crate::workspace::current_root().unwrap();
        for (name, _) in FILES {
            assert!(root.join(VENDORED).join(name).is_file(), "{name}");
        }
    }
}

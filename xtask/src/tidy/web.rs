//! Rule: what a page is made of is ours and small, or somebody else's and as he published it.
//!
//! Each file below the vendored folder stands in a table here with its SHA-256, and its folder has a
//! licence; whoever takes a new version changes both in one commit. Our own modules and style
//! sheets have at most so many lines of code altogether: a page that needs more needs a reason.

use sha2::{Digest, Sha256};

use super::{Tree, Violation};

pub(super) const NAME: &str = "web";

const WEB: &str = "crates/viewer/web/";

const VENDORED: &str = "crates/viewer/web/vendor/";

/// The vendored files below [`VENDORED`], uPlot 1.6.32.
const FILES: &[(&str, &str)] = &[
    (
        "uplot/LICENSE",
        "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
    ),
    (
        "uplot/uPlot.d.ts",
        "af44374f6e808be4f7f3fa5888b9c7574dca9f8a15a66d54b6763535802c8080",
    ),
    (
        "uplot/uPlot.iife.min.js",
        "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    ),
    (
        "uplot/uPlot.min.css",
        "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    ),
];

/// Lines of code in all modules and style sheets of ours: neither blank nor only a comment.
const LINES_MAX: usize = 1_500;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    checked(tree, FILES, LINES_MAX)
}

fn checked(tree: &Tree, known: &[(&str, &str)], lines_max: usize) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut lines = 0;
    for (path, text) in tree.files().filter(|(path, _)| path.starts_with(WEB)) {
        match path.strip_prefix(VENDORED) {
            Some(name) => violations.extend(vendored(tree, path, name, text, known)),
            None if path.ends_with(".js") || path.ends_with(".css") => lines += code_lines(text),
            None => {}
        }
    }
    if lines > lines_max {
        let text = format!("{lines} lines of code in all, not at most {lines_max}");
        violations.push(Violation::new(WEB, 1, NAME, text));
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
    let sum = Sha256::digest(text.as_bytes());
    let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = known.iter().find(|(known, _)| *known == name);
    if expected.is_none_or(|(_, expected)| *expected != sum) {
        let text = format!("is not the vendored file that was checked: its SHA-256 is {sum}");
        violations.push(Violation::new(path, 1, NAME, text));
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    if tree.text(&format!("{folder}/LICENSE")).is_none() {
        violations.push(Violation::new(path, 1, NAME, "no LICENSE lies beside it"));
    }
    violations
}

fn code_lines(text: &str) -> usize {
    let is_code = |line: &&str| {
        let comments = ["//", "/*", "*"];
        !line.is_empty() && !comments.iter().any(|start| line.starts_with(start))
    };
    text.lines().map(str::trim).filter(is_code).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the text `a`.
    const SUM_OF_A: &str = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";

    fn violations(files: &[(&str, &str)]) -> Vec<String> {
        let found = checked(&Tree::of(files), &[("x/a.js", SUM_OF_A)], 3);
        found.into_iter().map(|violation| violation.text).collect()
    }

    #[test]
    fn a_vendored_file_that_was_changed_or_that_nobody_knows_is_found() {
        let licence = ("crates/viewer/web/vendor/x/LICENSE", "MIT");
        let found = violations(&[("crates/viewer/web/vendor/x/a.js", "a"), licence]);
        assert_eq!(
            found.len(),
            1,
            "the licence is not in this table: {found:?}"
        );
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
    fn our_own_lines_are_counted_over_all_files_without_comments() {
        let own = "// why\n/** @type {x} */\n\nlet a;\n";
        let style = "a { b: c; }\n\na { d: e; }\n";
        let (js, css) = ("crates/viewer/web/a.js", "crates/viewer/web/a.css");
        assert_eq!(violations(&[(js, own), (css, style)]), [""; 0]);
        let more = format!("{own}let b;\n");
        assert_eq!(violations(&[(js, &more), (css, style)]).len(), 1);
        assert_eq!(
            violations(&[("crates/viewer/src/a.js", &more.repeat(9))]).len(),
            0
        );
    }

    #[test]
    fn this_workspace_has_the_vendored_files_of_the_table() {
        let root = crate::workspace::current_root().unwrap();
        for (name, _) in FILES {
            assert!(root.join(VENDORED).join(name).is_file(), "{name}");
        }
    }
}

//! Rule: every file is used: sources by a `mod`, documents by a link, fixtures by a test.
//!
//! A document counts when README, ARCHITECTURE, CONTRIBUTING or CHANGELOG reaches it over links;
//! other files below `docs/` when such a document names them. A fixture counts when a source of its
//! crate names it or a folder that it is in. A relative link that leads nowhere breaks the rule as
//! well.

use std::collections::BTreeSet;

use super::tree::crate_of;
use super::{Tree, Violation};
use crate::markdown;
use crate::rust::words;

/// The documents that a reader starts with.
const FIRST_DOCUMENTS: &[&str] =
    &["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"];

/// Folders of a crate that cargo compiles sources from.
const SOURCE_FOLDERS: &[&str] = &["src", "tests", "benches", "examples"];

/// Folders of a crate that hold what its tests read.
const FIXTURE_FOLDERS: &[&str] = &["tests", "fixtures"];

/// What proptest writes beside a test, for itself to read.
const REGRESSIONS: &str = ".proptest-regressions";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = sources(tree);
    violations.extend(documents(tree));
    violations.extend(fixtures(tree));
    violations
}

/// The folder of its crate that `path` is in, and the rest: `("src", "a/b.rs")`.
fn in_crate(path: &str) -> Option<(&str, &str)> {
    let name = crate_of(path)?;
    let own = path.strip_prefix("crates/").unwrap_or(path);
    own.strip_prefix(name)?.strip_prefix('/')?.split_once('/')
}

fn sources(tree: &Tree) -> Vec<Violation> {
    tree.sources()
        .filter(|(path, _)| {
            in_crate(path).is_some_and(|(folder, _)| SOURCE_FOLDERS.contains(&folder))
        })
        .filter(|(path, _)| !tree.reached().contains_key(*path))
        .map(|(path, _)| Violation::new(path, 1, "no `mod` leads here"))
        .collect()
}

/// Documents that no first document leads to, and links that lead to nothing.
fn documents(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut open: Vec<String> = FIRST_DOCUMENTS.iter().map(|path| (*path).to_owned()).collect();
    let mut read: BTreeSet<String> = BTreeSet::new();
    while let Some(path) = open.pop() {
        let Some(text) = tree.text(&path).filter(|_| path.ends_with(".md")) else {
            continue;
        };
        if !read.insert(path.clone()) {
            continue;
        }
        for link in markdown::relative_links(&path, text) {
            if !exists(tree, &link.target) {
                let words = format!("a link leads to {}, which does not exist", link.target);
                violations.push(Violation::at(&path, text, link.whole.start, words));
            }
            open.push(link.target);
        }
    }
    violations.extend(unread(tree, &read));
    violations
}

/// Files below `docs/` that are neither read nor named by a document that is.
fn unread(tree: &Tree, read: &BTreeSet<String>) -> Vec<Violation> {
    let is_named = |path: &str| {
        let name = file_name(path);
        let mut texts = read.iter().filter_map(|path| tree.text(path));
        !path.ends_with(".md") && texts.any(|text| words::contains(text, name))
    };
    tree.files()
        .filter(|(path, _)| path.starts_with("docs/"))
        .filter(|(path, _)| !read.contains(*path) && !is_named(path))
        .map(|(path, _)| Violation::new(path, 1, "no document leads here"))
        .collect()
}

/// Whether `path` is a file or a folder of the tree.
fn exists(tree: &Tree, path: &str) -> bool {
    tree.text(path).is_some() || tree.files().any(|(file, _)| is_inside(file, path))
}

fn is_inside(file: &str, folder: &str) -> bool {
    file.strip_prefix(folder).is_some_and(|rest| folder.is_empty() || rest.starts_with('/'))
}

fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn fixtures(tree: &Tree) -> Vec<Violation> {
    tree.files()
        .filter(|(path, _)| !path.ends_with(".rs") && !is_regressions(tree, path))
        .filter_map(|(path, _)| {
            let (_, rest) =
                in_crate(path).filter(|(folder, _)| FIXTURE_FOLDERS.contains(folder))?;
            (!is_named(tree, path, rest)).then(|| {
                Violation::new(path, 1, "no source of its crate names this file or its folder")
            })
        })
        .collect()
}

fn is_regressions(tree: &Tree, path: &str) -> bool {
    path.strip_suffix(REGRESSIONS).is_some_and(|stem| tree.text(&format!("{stem}.rs")).is_some())
}

/// Whether a source of the crate of `path` names the file, by name or stem, or a folder on its way.
///
/// `tests` and `fixtures` are on the way of all fixtures, so naming one of them names none.
fn is_named(tree: &Tree, path: &str, rest: &str) -> bool {
    let mut names: Vec<&str> =
        rest.split('/').filter(|name| !FIXTURE_FOLDERS.contains(name)).collect();
    if let Some(stem) = file_name(path).split('.').next().filter(|stem| !stem.is_empty()) {
        names.push(stem);
    }
    let own = crate_of(path);
    let mut literals = tree
        .sources()
        .filter(|(source, _)| crate_of(source) == own)
        .map(|(_, layers)| &layers.literals);
    literals.any(|text| names.iter().any(|name| words::contains(text, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).into_iter().map(|violation| violation.path).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn a_source_without_a_mod_is_dead() {
        let lib = ("crates/a/src/lib.rs", "mod b; // mod c;");
        assert_eq!(paths(&[lib, ("crates/a/src/b.rs", "")]), NONE);
        assert_eq!(paths(&[lib, ("crates/a/src/c.rs", "")]), ["crates/a/src/c.rs"]);
        assert_eq!(paths(&[lib, ("crates/a/tests/c.rs", "")]), NONE);
        assert_eq!(paths(&[lib, ("crates/a/tests/d/e.rs", "")]), ["crates/a/tests/d/e.rs"]);
    }

    #[test]
    fn a_document_that_nothing_links_to_is_dead() {
        let readme = ("README.md", "see [a](docs/a.md#part)");
        let a = ("docs/a.md", "and [b](b.md), [web](https://example.org/x), schema.json");
        let (b, schema) = (("docs/b.md", ""), ("docs/schema.json", "{}"));
        assert_eq!(paths(&[readme, a, b, schema]), NONE);
        assert_eq!(paths(&[readme, a, b, schema, ("docs/c.md", "")]), ["docs/c.md"]);
        assert_eq!(paths(&[readme, a, b, ("docs/other.json", "")]), ["docs/other.json"]);
        assert_eq!(paths(&[a, b]), ["docs/a.md", "docs/b.md"]);
    }

    #[test]
    fn a_document_is_not_alive_because_it_links_to_itself() {
        assert_eq!(paths(&[("docs/a.md", "[a](a.md)")]), ["docs/a.md"]);
    }

    #[test]
    fn a_link_to_nothing_is_found() {
        let found = check(&Tree::of(&[("README.md", "x\n[a](docs/a.md) [crates](crates)")]));
        let lines: Vec<usize> = found.iter().map(|violation| violation.line).collect();
        assert_eq!(lines, [2, 2]);
        assert_eq!(
            paths(&[("README.md", "[a](docs)"), ("CONTRIBUTING.md", "[r](README.md)")]),
            ["README.md"]
        );
    }

    #[test]
    fn a_fixture_that_no_source_names_is_dead() {
        let fixture = ("crates/a/tests/fixtures/guest/meminfo", "");
        let named = |text: &str| paths(&[("crates/a/src/lib.rs", text), fixture]);
        assert_eq!(named("read(\"tests/fixtures/guest\")"), NONE);
        assert_eq!(named("read(\"meminfo\")"), NONE);
        assert_eq!(named("read(\"tests/fixtures\"); // guest"), [fixture.0]);
        let other = [("crates/b/src/lib.rs", "read(\"guest\")"), fixture];
        assert_eq!(paths(&other), [fixture.0]);
    }

    #[test]
    fn what_proptest_keeps_belongs_to_its_test() {
        let test = ("crates/a/tests/b.rs", "");
        assert_eq!(paths(&[test, ("crates/a/tests/b.proptest-regressions", "")]), NONE);
        assert_eq!(paths(&[test, ("crates/a/tests/c.proptest-regressions", "")]).len(), 1);
    }
}

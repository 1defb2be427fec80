//! `cargo xtask tidy`: the rules that keep the project in the shape that its design describes.
//!
//! One file per rule (`calls` holds two), each a pure function from the [`Tree`] to violations,
//! each with a test that shows it fail and a near miss that passes. This file lists the rules, runs
//! them and prints `path:line: rule: text` per violation, or one line when there is none.

use crate::error::Error;
use crate::rust::words;
use crate::workspace;

mod absolute_path;
mod anchors;
mod architecture;
mod banned_words;
mod calls;
mod data_file;
mod dead_file;
mod dependencies;
mod header;
mod lint_fence;
mod plain_language;
mod shadow_chain;
pub(crate) mod tree;
mod type_names;
mod web;

pub use tree::Tree;

/// One place that breaks one rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file, from the workspace root.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The name of the rule; empty until [`check`] fills it in.
    pub rule: &'static str,
    /// What is wrong, in words.
    pub text: String,
}

impl Violation {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule: "", text: text.into() }
    }

    /// At the line of the byte `offset` of the file's text or of a layer of it.
    fn at(path: &str, code: &str, offset: usize, text: impl Into<String>) -> Self {
        Self::new(path, words::line(code, offset), text)
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, line, rule, text } = self;
        write!(f, "{path}:{line}: {rule}: {text}")
    }
}

type Rule = fn(&Tree) -> Vec<Violation>;

/// Every rule with its name, in the order of their names.
const RULES: &[(&str, Rule)] = &[
    ("absolute_path", absolute_path::check),
    ("anchors", anchors::check),
    ("architecture", architecture::check),
    ("banned_words", banned_words::check),
    ("data_file", data_file::check),
    ("dead_file", dead_file::check),
    ("dependencies", dependencies::check),
    ("file_by_path", calls::file_by_path),
    ("header", header::check),
    ("lint_fence", lint_fence::check),
    ("plain_language", plain_language::check),
    ("setting_writes", calls::setting_writes),
    ("shadow_chain", shadow_chain::check),
    ("type_names", type_names::check),
    ("web", web::check),
];

/// Checks the workspace above the current directory and prints the outcome.
///
/// # Errors
/// [`Error::Failed`] when a rule is broken, after the violations were printed.
pub fn run() -> Result<(), Error> {
    let tree = Tree::read(&workspace::current_root()?)?;
    let violations = check(&tree);
    for violation in &violations {
        println!("{violation}");
    }
    let summary = format!("tidy: {} files, {} violations", tree.files().count(), violations.len());
    if !violations.is_empty() {
        return Err(Error::Failed(summary));
    }
    println!("{summary}");
    Ok(())
}

/// The violations of every rule in `tree`, ordered by place.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let named = |(name, rule): &(&'static str, Rule)| {
        let found = rule(tree).into_iter();
        found.map(|violation| Violation { rule: name, ..violation }).collect::<Vec<_>>()
    };
    let mut violations: Vec<Violation> = RULES.iter().flat_map(named).collect();
    violations.sort();
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_tree_breaks_no_rule() {
        assert_eq!(check(&Tree::of(&[])), []);
    }

    #[test]
    fn violations_print_place_rule_and_text() {
        let violation =
            Violation { rule: "header", ..Violation::at("a/b.rs", "1\n2\n3", 4, "no header") };
        assert_eq!(violation.to_string(), "a/b.rs:3: header: no header");
    }

    /// A rule that is written but not listed would never run.
    #[test]
    fn every_rule_file_is_listed() {
        let listed: Vec<&str> = RULES.iter().map(|(name, _)| *name).collect();
        assert!(listed.is_sorted());
        let root = workspace::current_root().unwrap();
        for entry in std::fs::read_dir(root.join("xtask/src/tidy")).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
            let is_rule = !["calls", "mod", "tree"].contains(&stem.as_str());
            assert!(!is_rule || listed.contains(&stem.as_str()), "{stem}");
        }
    }
}

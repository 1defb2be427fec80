//! `cargo xtask tidy`: the rules that keep the project in the shape that its design describes.
//!
//! One file per rule, each a pure function from the [`Tree`] to violations, each with a test that
//! shows it fail and a near miss that passes. This file lists the rules, runs them and prints
//! `path:line: rule: text` per violation, or one line when there is none.

use crate::error::Error;
use crate::workspace;

mod absolute_path;
mod architecture;
mod banned_words;
mod data_file;
mod dead_file;
mod dependencies;
mod file_by_path;
mod header;
mod lint_fence;
mod plain_language;
mod setting_writes;
mod tree;
mod web;

pub use tree::Tree;

/// One place that breaks one rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file, from the workspace root.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The name of the rule, which is also that of its file.
    pub rule: &'static str,
    /// What is wrong, in words.
    pub text: String,
}

impl Violation {
    fn new(path: &str, line: usize, rule: &'static str, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, text: text.into() }
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
    (absolute_path::NAME, absolute_path::check),
    (architecture::NAME, architecture::check),
    (banned_words::NAME, banned_words::check),
    (data_file::NAME, data_file::check),
    (dead_file::NAME, dead_file::check),
    (dependencies::NAME, dependencies::check),
    (file_by_path::NAME, file_by_path::check),
    (header::NAME, header::check),
    (lint_fence::NAME, lint_fence::check),
    (plain_language::NAME, plain_language::check),
    (setting_writes::NAME, setting_writes::check),
    (web::NAME, web::check),
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
#[must_use]
pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations: Vec<Violation> = RULES.iter().flat_map(|(_, rule)| rule(tree)).collect();
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
        let violation = Violation::new("a/b.rs", 3, "header", "no header");
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
            let is_rule = !["mod", "tree"].contains(&stem.as_str());
            assert!(!is_rule || listed.contains(&stem.as_str()), "{stem}");
        }
    }
}

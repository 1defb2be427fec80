//! Rule: a function has at most 70 lines, from its `fn` to its closing brace, tests too.
//!
//! What fits on a screen can be read at once. Exceptions stand in a table that can only shrink: each
//! holds its function at its present length, and an entry that is no longer needed breaks the rule.

use super::{Tree, Violation};
use crate::rust::items;

pub(super) const NAME: &str = "function_length";

const LINES_MAX: usize = 70;

/// A function that is longer for now: its file, its name, and the lines that it may have.
type Exception = (&'static str, &'static str, usize);

/// Only ever shorten this table.
const EXCEPTIONS: &[Exception] = &[];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    check_with(tree, EXCEPTIONS)
}

fn check_with(tree: &Tree, exceptions: &[Exception]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, layers) in tree.sources() {
        for function in items::functions(&layers.code) {
            let excepted = exceptions
                .iter()
                .find(|(file, name, _)| *file == path && *name == function.name);
            let limit = excepted.map_or(LINES_MAX, |(_, _, lines)| *lines);
            if function.lines > limit {
                let text = format!(
                    "`{}` has {} lines, at most {limit}",
                    function.name, function.lines
                );
                violations.push(Violation::new(path, function.line, NAME, text));
            }
        }
    }
    violations.extend(
        exceptions
            .iter()
            .filter_map(|exception| loose(tree, exception)),
    );
    violations
}

/// The violation of an exception that allows more than its function needs.
fn loose(tree: &Tree, (path, name, limit): &Exception) -> Option<Violation> {
    let longest = tree
        .sources()
        .filter(|(file, _)| file == path)
        .flat_map(|(_, layers)| items::functions(&layers.code))
        .filter(|function| function.name == *name)
        .max_by_key(|function| function.lines);
    let (line, text) = match longest {
        None => (1, format!("the exception for `{name}` has no function")),
        Some(function) if function.lines <= LINES_MAX => (
            function.line,
            format!("`{name}` needs its exception no more"),
        ),
        Some(function) if function.lines < *limit => (
            function.line,
            format!(
                "lower the exception for `{name}` from {limit} to {}",
                function.lines
            ),
        ),
        Some(_) => return None,
    };
    Some(Violation::new(path, line, NAME, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/a/src/lib.rs";

    /// A tree with one function of `lines` lines.
    fn tree(lines: usize) -> Tree {
        let text = format!(
            "//! x\nfn long() {{\n{}}}\n",
            "    work();\n".repeat(lines - 2)
        );
        Tree::of(&[(PATH, &text)])
    }

    fn texts(lines: usize, exceptions: &[Exception]) -> Vec<String> {
        let found = check_with(&tree(lines), exceptions);
        found.into_iter().map(|violation| violation.text).collect()
    }

    #[test]
    fn seventy_lines_pass_and_one_more_does_not() {
        assert_eq!(texts(70, &[]), [""; 0]);
        assert_eq!(texts(71, &[]), ["`long` has 71 lines, at most 70"]);
    }

    #[test]
    fn tests_count_too() {
        let body = "    work();\n".repeat(70);
        let text = format!("#[cfg(test)]\nmod tests {{\nfn long() {{\n{body}}}\n}}\n");
        assert_eq!(check(&Tree::of(&[(PATH, &text)])).len(), 1);
    }

    #[test]
    fn an_exception_holds_the_present_length() {
        assert_eq!(texts(80, &[(PATH, "long", 80)]), [""; 0]);
        assert_eq!(
            texts(81, &[(PATH, "long", 80)]),
            ["`long` has 81 lines, at most 80"]
        );
    }

    #[test]
    fn exceptions_only_shrink() {
        assert_eq!(
            texts(79, &[(PATH, "long", 80)]),
            ["lower the exception for `long` from 80 to 79"]
        );
        assert_eq!(
            texts(70, &[(PATH, "long", 80)]),
            ["`long` needs its exception no more"]
        );
        assert_eq!(
            texts(70, &[(PATH, "gone", 80)]),
            ["the exception for `gone` has no function"]
        );
    }
}

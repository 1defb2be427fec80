//! Rule: no two public types of one crate have the same name.
//!
//! A reader who meets `Plan` must know which one without following the imports. Struct, enum, trait
//! and type alias count, `pub` or visible in a part of the crate, in its sources outside of tests.

use std::collections::BTreeMap;

use super::tree::crate_of;
use super::{Tree, Violation};
use crate::rust::{items, words};

/// Crates that have some still.
const NOT_YET: &[&str] = &[];

const KEYWORDS: &[&str] = &["enum", "struct", "trait", "type"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut known: BTreeMap<(&str, String), &str> = BTreeMap::new();
    for (path, layers) in tree.sources().filter(|(path, _)| path.contains("/src/")) {
        let Some(own) = crate_of(path).filter(|name| !NOT_YET.contains(name)) else {
            continue;
        };
        // A file that only tests reach is no part of the crate.
        if tree.reached().get(path).is_none_or(|is_test| *is_test) {
            continue;
        }
        let code = items::without_tests(&layers.code);
        for (at, name) in public_types(&code) {
            if let Some(first) = known.insert((own, name.to_owned()), path) {
                let text = format!("`{name}` is in {first} as well");
                violations.push(Violation::at(path, &code, at, text));
            }
        }
    }
    violations
}

/// Offset and name of each public type in `code`.
fn public_types(code: &str) -> impl Iterator<Item = (usize, &str)> {
    KEYWORDS.iter().flat_map(move |keyword| {
        words::find(code, keyword).filter_map(move |at| {
            let name = words::identifier(code[at + keyword.len()..].trim_start());
            (is_public(&code[..at]) && !name.is_empty()).then_some((at, name))
        })
    })
}

/// Whether `before` ends in `pub` or `pub(...)`.
fn is_public(before: &str) -> bool {
    let before = before.trim_end();
    let visibility = match before.strip_suffix(')') {
        Some(scope) => scope.rsplit_once('(').map_or("", |(visibility, _)| visibility),
        None => before,
    };
    visibility.ends_with("pub")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(first: &str, second: &str) -> Vec<String> {
        let lib = ("crates/a/src/lib.rs", "mod b; mod c; #[cfg(test)] mod tests;");
        let files = [
            lib,
            ("crates/a/src/b.rs", first),
            ("crates/a/src/c.rs", second),
            ("crates/a/src/tests.rs", "pub struct Plan;"),
            ("crates/d/src/lib.rs", "pub struct Plan;"),
        ];
        let found = check(&Tree::of(&files)).into_iter();
        found.map(|it| format!("{}:{}: {}", it.path, it.line, it.text)).collect()
    }

    #[test]
    fn a_second_public_type_of_a_name_is_found() {
        let found = ["crates/a/src/c.rs:2: `Plan` is in crates/a/src/b.rs as well"];
        for second in ["pub enum", "pub(crate) trait", "pub(super) struct", "pub(in crate::x) type"]
        {
            assert_eq!(violations("pub struct Plan;", &format!("\n{second} Plan {{}}")), found);
        }
    }

    #[test]
    fn private_types_tests_and_other_crates_pass() {
        for second in [
            "struct Plan;",
            "// pub struct Plan;\npub struct Planner;",
            "pub fn plan() -> Plan {}",
            "#[cfg(test)]\nmod tests { pub struct Plan; }",
            "impl Iterator for A { type Plan = u8; }",
        ] {
            assert_eq!(violations("pub struct Plan;", second), [""; 0], "{second}");
        }
    }
}

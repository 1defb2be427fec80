//! Rule: only the binary prints or exits; `dbg!` stands nowhere.
//!
//! A library that prints cannot be used twice, and one that exits cannot clean up. Tests may print: that
//! is how they say what they skipped. This crate may: it is a tool for a terminal.

use super::tree::crate_of;
use super::{Tree, Violation};
use crate::rust::words;

pub(super) const NAME: &str = "printing";

/// The crates whose product code may print.
const PRINTERS: &[&str] = &["terrace", "xtask"];

/// What reaches the terminal or ends the process.
const OUTPUT: &[&str] = &[
    "print!",
    "println!",
    "eprint!",
    "eprintln!",
    "io::stdout",
    "io::stderr",
    "process::exit",
];

const NOWHERE: &str = "dbg!";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, code) in tree.product() {
        if crate_of(path).is_some_and(|name| PRINTERS.contains(&name)) {
            continue;
        }
        for word in OUTPUT {
            for at in words::find(&code, word) {
                let text = format!("`{word}` outside of the binary");
                violations.push(Violation::new(path, words::line(&code, at), NAME, text));
            }
        }
    }
    for (path, layers) in tree.sources() {
        for at in words::find(&layers.code, NOWHERE) {
            let line = words::line(&layers.code, at);
            violations.push(Violation::new(
                path,
                line,
                NAME,
                format!("`{NOWHERE}` left behind"),
            ));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(path: &str, text: &str) -> Vec<String> {
        let found = check(&Tree::of(&[(path, text)]));
        found
            .into_iter()
            .map(|violation| format!("{}: {}", violation.line, violation.text))
            .collect()
    }

    #[test]
    fn a_library_neither_prints_nor_exits() {
        for word in OUTPUT {
            let found = violations(
                "crates/model/src/lib.rs",
                &format!("\nfn a() {{ {word}(1) }}"),
            );
            assert_eq!(found, [format!("2: `{word}` outside of the binary")]);
        }
    }

    #[test]
    fn the_binary_tests_comments_and_strings_may() {
        let none: [&str; 0] = [];
        assert_eq!(
            violations("crates/terrace/src/main.rs", "fn a() { println!() }"),
            none
        );
        assert_eq!(
            violations("crates/model/tests/a.rs", "fn a() { println!() }"),
            none
        );
        assert_eq!(
            violations("crates/testkit/src/lib.rs", "fn a() { println!() }"),
            none
        );
        let text = "// print!()\nconst A: &str = \"eprint!()\";\nfn exit() {}\n\
                    #[cfg(test)]\nmod tests { fn a() { println!() } }\nwriteln!(f)";
        assert_eq!(violations("crates/model/src/lib.rs", text), none);
    }

    #[test]
    fn dbg_stands_nowhere() {
        for path in [
            "crates/terrace/src/main.rs",
            "crates/model/tests/a.rs",
            "xtask/src/lib.rs",
        ] {
            assert_eq!(
                violations(path, "fn a() { dbg!(1); }"),
                ["1: `dbg!` left behind"]
            );
        }
    }
}

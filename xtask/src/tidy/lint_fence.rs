//! Rule: lints that hold a rule of the project are on, and only listed crates switch them off.
//!
//! Clippy and rustc check `unsafe`, its arguments, the length of functions, and printing; any crate
//! could allow them. So every crate inherits the workspace's lints, and each lint below names the
//! crates that may allow it. Standard output and the exit status belong to the same fence.

use super::tree::crate_of;
use super::{Tree, Violation};
use crate::rust::words;

/// The crates that print: the binary, this tool, and what tests say when they skip something.
const PRINTERS: &[&str] = &["terrace", "testkit", "xtask"];

/// The lints, and the crates that may allow them.
const LINTS: &[(&str, &[&str])] = &[
    ("dbg_macro", &[]),
    ("match_bool", &[]),
    ("print_stderr", PRINTERS),
    ("print_stdout", PRINTERS),
    ("too_many_lines", &[]),
    ("undocumented_unsafe_blocks", &[]),
    ("unsafe_code", &["memops", "sys"]),
    ("unsafe_op_in_unsafe_fn", &[]),
];

/// Attributes that change the level of a lint.
const LEVELS: &[&str] = &["allow(", "expect("];

/// What reaches the terminal or ends the process without a macro.
const OUTPUT: &[&str] = &["io::stdout", "io::stderr", "process::exit"];

const WORKSPACE_MANIFEST: &str = "Cargo.toml";
const INHERITS: &str = "[lints]\nworkspace = true";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = switched_off(tree);
    violations.extend(output(tree));
    violations.extend(manifests(tree));
    violations
}

/// Attributes that allow a lint outside of the crates that may.
fn switched_off(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, layers) in tree.sources() {
        let code = &layers.code;
        for at in LEVELS.iter().flat_map(|level| words::find(code, level)) {
            let open = at + code[at..].find('(').unwrap_or(0);
            let names = &code[open..words::closing(code, open)];
            for (lint, may) in LINTS {
                // A test prints what it skipped.
                let prints = lint.starts_with("print_") && path.contains("/tests/");
                let is_excepted = prints || crate_of(path).is_some_and(|name| may.contains(&name));
                if words::contains(names, lint) && !is_excepted {
                    let text = format!("`{lint}` must stay on here");
                    violations.push(Violation::at(path, code, at, text));
                }
            }
        }
    }
    violations
}

/// Standard output and the exit status outside of the binary.
fn output(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, code) in tree.product() {
        if crate_of(path).is_some_and(|name| PRINTERS.contains(&name)) {
            continue;
        }
        for word in OUTPUT {
            for at in words::find(&code, word) {
                let text = format!("`{word}` outside of the binary");
                violations.push(Violation::at(path, &code, at, text));
            }
        }
    }
    violations
}

/// Manifests that do not inherit the lints, and lints that the workspace does not switch on.
fn manifests(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| is_member(path)) {
        if !text.contains(INHERITS) {
            violations.push(Violation::new(path, 1, "the workspace's lints are not inherited"));
        }
    }
    let workspace = tree.text(WORKSPACE_MANIFEST);
    let missing = |lint: &str| {
        let on = |line: &str| {
            ["warn", "deny"].iter().any(|level| line == format!("{lint} = \"{level}\""))
        };
        workspace.is_some_and(|text| !text.lines().any(on))
    };
    for (lint, _) in LINTS.iter().filter(|(lint, _)| missing(lint)) {
        let text = format!("`{lint}` is not switched on");
        violations.push(Violation::new(WORKSPACE_MANIFEST, 1, text));
    }
    violations
}

fn is_member(path: &str) -> bool {
    let depth = path.matches('/').count();
    let folder =
        path.starts_with("crates/") && depth == 2 || path.starts_with("xtask/") && depth == 1;
    folder && path.ends_with("/Cargo.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(path: &str, text: &str) -> Vec<String> {
        let found = check(&Tree::of(&[(path, text)]));
        let line = |violation: Violation| format!("{}: {}", violation.line, violation.text);
        found.into_iter().map(line).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn a_lint_is_allowed_only_where_the_table_says() {
        let text = "\n#![allow(\n    dead_code,\n    unsafe_code\n)]";
        for path in ["crates/model/src/lib.rs", "crates/model/tests/a.rs", "xtask/src/lib.rs"] {
            assert_eq!(violations(path, text), ["2: `unsafe_code` must stay on here"], "{path}");
        }
        assert_eq!(violations("crates/sys/src/lib.rs", text), NONE);
        let text = "#[expect(clippy::too_many_lines)]\nfn a() {}";
        assert_eq!(
            violations("crates/sys/src/lib.rs", text),
            ["1: `too_many_lines` must stay on here"]
        );
        let text = "#![allow(clippy::print_stdout)]";
        assert_eq!(violations("crates/model/src/lib.rs", text).len(), 1);
        assert_eq!(violations("crates/model/tests/a.rs", text), NONE);
        let text = "// #[allow(unsafe_code)]\n#[allow(clippy::len_without_is_empty)]\nfn a() {}";
        assert_eq!(violations("crates/model/src/lib.rs", text), NONE);
    }

    #[test]
    fn a_library_neither_prints_nor_exits() {
        for word in OUTPUT {
            let text = format!("\nfn a() {{ {word}(1) }}");
            let found = violations("crates/model/src/lib.rs", &text);
            assert_eq!(found, [format!("2: `{word}` outside of the binary")]);
            assert_eq!(violations("crates/terrace/src/main.rs", &text), NONE);
            assert_eq!(violations("crates/model/tests/a.rs", &text), NONE);
        }
    }

    #[test]
    fn every_crate_inherits_the_lints_and_the_workspace_has_them_on() {
        let manifest = "crates/a/Cargo.toml";
        assert_eq!(violations(manifest, "[package]").len(), 1);
        assert_eq!(violations(manifest, "[lints]\nworkspace = true\n"), NONE);
        let on = |level: &str| {
            let lines = LINTS.iter().map(|(lint, _)| format!("{lint} = \"{level}\"\n"));
            violations(WORKSPACE_MANIFEST, &lines.collect::<String>()).len()
        };
        assert_eq!((on("deny"), on("warn"), on("allow")), (0, 0, LINTS.len()));
    }
}

//! Rule: dependencies point one way, pure crates stay pure, and each third-party one is justified.
//!
//! Which crate may use which is a table here, as in the design. `model`, `explain`, `policy` and
//! `cache` touch no file, clock, process or environment outside of tests. Every third-party crate
//! that a manifest names has a row in `docs/dependencies.md`, and every row and every workspace
//! entry has a manifest that names it.

use std::collections::BTreeSet;

use super::tree::crate_of;
use super::{Tree, Violation};
use crate::rust::words;
use crate::workspace::{Dependency, Kind, Package};

/// Which members each member may use in its product code.
const ALLOWED: &[(&str, &[&str])] = &[
    ("cache", &["model", "policy"]),
    ("explain", &["model", "policy"]),
    ("lab", &["explain", "machine", "measure", "memops", "model", "place", "record", "sys"]),
    ("machine", &["model", "sys"]),
    ("measure", &["machine", "memops", "model", "sys", "transfer"]),
    ("memops", &["model"]),
    ("model", &[]),
    ("place", &["machine", "model", "sys", "transfer", "undo"]),
    ("policy", &["model"]),
    ("record", &["machine", "model", "sys", "undo"]),
    ("serve", &["model", "sys"]),
    ("sys", &["model"]),
    (
        "terrace",
        &[
            "cache", "explain", "lab", "machine", "measure", "memops", "model", "place", "policy",
            "record", "serve", "sys", "undo", "viewer",
        ],
    ),
    ("undo", &["machine", "model", "sys"]),
    ("viewer", &["model"]),
    (TESTKIT, &["model", "serve", "sys"]),
    ("transfer", &["model", "sys"]),
    ("xtask", &["model", "serve", TESTKIT]),
];

/// Every member may use this one in its tests, none of the product otherwise.
const TESTKIT: &str = "testkit";

/// Which other members a member may use in its tests alone.
const IN_TESTS: &[(&str, &str)] = &[
    // The driver of any engine is tested with the one that there is.
    ("serve", "cache"),
];

/// The crates that do no I/O and read no clock.
const PURE: &[&str] = &["cache", "explain", "model", "policy"];

/// What a pure crate does not touch, below `std`.
const IMPURE: &[&str] = &[
    "env",
    "fs",
    "io::stdin",
    "net",
    "os",
    "process",
    "thread",
    "time::Instant",
    "time::SystemTime",
];

const TABLE: &str = "docs/dependencies.md";
const WORKSPACE_MANIFEST: &str = "Cargo.toml";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations: Vec<Violation> = tree.packages().iter().flat_map(direction).collect();
    violations.extend(purity(tree));
    violations.extend(justified(tree));
    violations.extend(used(tree));
    violations
}

fn manifest(package: &str) -> String {
    match package {
        "xtask" => format!("xtask/{WORKSPACE_MANIFEST}"),
        name => format!("crates/{name}/{WORKSPACE_MANIFEST}"),
    }
}

/// Members that `package` uses and may not.
fn direction(package: &Package) -> Vec<Violation> {
    let path = manifest(&package.name);
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == package.name) else {
        let text = format!("`{}` is not in the table of members", package.name);
        return vec![Violation::new(&path, 1, text)];
    };
    let may_use = |dependency: &&Dependency| {
        let (user, used) = (package.name.as_str(), dependency.name.as_str());
        let in_tests =
            dependency.kind == Kind::Dev && (used == TESTKIT || IN_TESTS.contains(&(user, used)));
        in_tests || allowed.contains(&used)
    };
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.is_member && !may_use(dependency))
        .map(|dependency| {
            let text = format!("`{}` may not use `{}`", package.name, dependency.name);
            Violation::new(&path, 1, text)
        })
        .collect()
}

/// Uses of the outside world in pure crates.
fn purity(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, code) in tree.product() {
        let Some(name) = crate_of(path).filter(|name| PURE.contains(name)) else {
            continue;
        };
        for (at, used) in std_paths(&code) {
            if IMPURE.iter().any(|impure| is_below(&used, impure)) {
                let text = format!("`std::{used}` in `{name}`, which is pure");
                violations.push(Violation::at(path, &code, at, text));
            }
        }
    }
    violations
}

fn is_below(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Every path below `std` in `code`, groups spelled out: `std::{fs, io::{self, Read}}` gives `fs`,
/// `io` and `io::Read`.
fn std_paths(code: &str) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    for at in words::find(code, "std::") {
        let mut found = Vec::new();
        spell_out("", &code[at + "std::".len()..], &mut found);
        paths.extend(found.into_iter().map(|path| (at, path)));
    }
    paths
}

/// Adds the paths that start at `rest`, each behind `prefix`.
fn spell_out(prefix: &str, rest: &str, found: &mut Vec<String>) {
    let rest = rest.trim_start();
    if rest.starts_with('{') {
        let group = &rest[1..words::closing(rest, 0)];
        for part in split_group(group) {
            spell_out(prefix, part, found);
        }
        return;
    }
    let name = words::identifier(rest);
    if name.is_empty() || name == "self" {
        found.push(prefix.to_owned());
        return;
    }
    let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}::{name}") };
    match rest[name.len()..].strip_prefix("::") {
        Some(deeper) => spell_out(&path, deeper, found),
        None => found.push(path),
    }
}

/// The parts of a `use` group, cut at its own commas.
fn split_group(group: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < group.len() {
        match group.as_bytes()[at] {
            b',' => {
                parts.push(&group[start..at]);
                start = at + 1;
            }
            b'{' => at = words::closing(group, at),
            _ => {}
        }
        at += 1;
    }
    parts.push(&group[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Third-party crates without a row in the table, and rows without a crate.
fn justified(tree: &Tree) -> Vec<Violation> {
    let rows: Vec<(usize, &str, bool)> = rows(tree.text(TABLE).unwrap_or_default());
    let mut violations = Vec::new();
    for package in tree.packages() {
        for dependency in package.dependencies.iter().filter(|found| !found.is_member) {
            if !rows.iter().any(|(_, name, _)| *name == dependency.name) {
                let text = format!("`{}` has no row in {TABLE}", dependency.name);
                violations.push(Violation::new(&manifest(&package.name), 1, text));
            }
        }
    }
    let third_party = names(tree, |dependency| !dependency.is_member);
    for (line, name, is_whole) in rows {
        if !third_party.contains(name) {
            let text = format!("`{name}` is used by no crate");
            violations.push(Violation::new(TABLE, line, text));
        } else if !is_whole {
            let text = format!("the row of `{name}` does not say what for and why this one");
            violations.push(Violation::new(TABLE, line, text));
        }
    }
    violations
}

/// The rows of the table: line, crate, and whether both reasons are given.
fn rows(table: &str) -> Vec<(usize, &str, bool)> {
    table
        .lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
            let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
            let reasons = cells.filter(|cell| !cell.is_empty()).count();
            Some((index + 1, name, reasons >= 2))
        })
        .collect()
}

/// Entries of `[workspace.dependencies]` that no member uses.
fn used(tree: &Tree) -> Vec<Violation> {
    let used = names(tree, |_| true);
    let manifest = tree.text(WORKSPACE_MANIFEST).unwrap_or_default();
    manifest
        .lines()
        .enumerate()
        .skip_while(|(_, line)| line.trim() != "[workspace.dependencies]")
        .skip(1)
        .take_while(|(_, line)| !line.starts_with('['))
        .filter_map(|(index, line)| Some((index, line.split_once('=')?.0.trim())))
        .filter(|(_, name)| !name.starts_with('#') && !used.contains(name))
        .map(|(index, name)| {
            let text = format!("`{name}` is used by no crate");
            Violation::new(WORKSPACE_MANIFEST, index + 1, text)
        })
        .collect()
}

fn names(tree: &Tree, keep: impl Fn(&Dependency) -> bool) -> BTreeSet<&str> {
    let all = tree.packages().iter().flat_map(|package| &package.dependencies);
    all.filter(|found| keep(found)).map(|found| found.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "| `serde` | data to JSON | the usual one |\n";

    fn package(name: &str, dependencies: &[(&str, Kind, bool)]) -> Package {
        let dependency = |(name, kind, is_member): &(&str, Kind, bool)| Dependency {
            name: (*name).to_owned(),
            kind: *kind,
            is_member: *is_member,
        };
        Package {
            name: name.to_owned(),
            dependencies: dependencies.iter().map(dependency).collect(),
        }
    }

    fn texts(files: &[(&str, &str)], packages: Vec<Package>) -> Vec<String> {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        let tree = Tree::new(files.collect(), packages);
        check(&tree).into_iter().map(|violation| violation.text).collect()
    }

    fn uses(name: &str, used: &str, kind: Kind) -> Vec<String> {
        texts(&[], vec![package(name, &[(used, kind, true)])])
    }

    #[test]
    fn dependencies_against_the_direction_are_found() {
        let none: [&str; 0] = [];
        assert_eq!(uses("model", "sys", Kind::Normal), ["`model` may not use `sys`"]);
        assert_eq!(uses("sys", "machine", Kind::Build), ["`sys` may not use `machine`"]);
        assert_eq!(uses("explain", "measure", Kind::Dev), ["`explain` may not use `measure`"]);
        assert_eq!(uses("machine", "sys", Kind::Normal), none);
    }

    #[test]
    fn testkit_is_for_tests_only() {
        let none: [&str; 0] = [];
        assert_eq!(uses("sys", TESTKIT, Kind::Dev), none);
        assert_eq!(uses("sys", TESTKIT, Kind::Normal), ["`sys` may not use `testkit`"]);
        assert_eq!(uses("serve", "cache", Kind::Dev), none);
        assert_eq!(uses("serve", "cache", Kind::Normal), ["`serve` may not use `cache`"]);
        assert_eq!(uses("measure", "cache", Kind::Dev), ["`measure` may not use `cache`"]);
    }

    #[test]
    fn an_unknown_member_is_found() {
        assert_eq!(
            texts(&[], vec![package("helper", &[])]),
            ["`helper` is not in the table of members"]
        );
    }

    #[test]
    fn a_pure_crate_touches_nothing_outside() {
        let found = |text: &str| texts(&[("crates/model/src/lib.rs", text)], Vec::new()).len();
        for text in [
            "use std::fs;",
            "fn a() { std::env::var(x) }",
            "use std::{fmt, process::Command};",
            "use std::time::{Duration, Instant};",
            "use std::{io::{self, Read}, time::SystemTime};",
        ] {
            assert_eq!(found(text), 1, "{text}");
        }
        for text in [
            "use std::{fmt, io::{self, Read}, time::Duration};",
            "// std::fs\nlet a = \"std::env\"; let fs = my_std::fs;",
            "use std::fmt;\n#[cfg(test)]\nmod tests { use std::fs; }",
        ] {
            assert_eq!(found(text), 0, "{text}");
        }
        let elsewhere = texts(&[("crates/sys/src/lib.rs", "use std::fs;")], Vec::new());
        assert!(elsewhere.is_empty());
    }

    #[test]
    fn a_third_party_crate_needs_a_row_and_a_row_a_crate() {
        let none: [&str; 0] = [];
        let model = || vec![package("model", &[("serde", Kind::Normal, false)])];
        assert_eq!(texts(&[(TABLE, ROW)], model()), none);
        assert_eq!(texts(&[(TABLE, "")], model()), ["`serde` has no row in docs/dependencies.md"]);
        assert_eq!(texts(&[(TABLE, ROW)], Vec::new()), ["`serde` is used by no crate"]);
        assert_eq!(
            texts(&[(TABLE, "| `serde` | data to JSON | |")], model()),
            ["the row of `serde` does not say what for and why this one"]
        );
    }

    #[test]
    fn a_workspace_entry_needs_a_user() {
        let manifest = "[workspace.dependencies]\nmodel = { path = \"x\" }\nlibc = \"0.2\"\n\n[profile.dev]\na = 1\n";
        let sys = package("sys", &[("model", Kind::Normal, true)]);
        assert_eq!(
            texts(&[(WORKSPACE_MANIFEST, manifest)], vec![sys]),
            ["`libc` is used by no crate"]
        );
    }
}

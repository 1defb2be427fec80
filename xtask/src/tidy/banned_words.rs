//! Rule: no text names the host of a package registry, and the lock file names only the usual one.
//!
//! Which mirror a developer's machine downloads from is that machine's business: a host that slips
//! into the lock file or a script breaks the build of everybody else.

use super::{Tree, Violation};
use crate::rust::words;

/// The lock file is written by cargo and must name its source; see [`lock_sources`].
const LOCK_FILE: &str = "Cargo.lock";

/// Hosts as their labels: joined only at run time, so that this file does not break its own rule.
const HOSTS: &[&[&str]] = &[
    &["crates", "io"],
    &["pypi", "org"],
    &["registry", "npmjs", "org"],
    &["proxy", "golang", "org"],
    &["deb", "debian", "org"],
    &["archive", "ubuntu", "com"],
    &["registry-1", "docker", "io"],
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let hosts: Vec<String> = HOSTS.iter().map(|labels| labels.join(".")).collect();
    let mut violations = Vec::new();
    for (path, text) in tree.files() {
        if path == LOCK_FILE {
            violations.extend(lock_sources(path, text, &hosts[0]));
            continue;
        }
        for host in &hosts {
            for at in words::find(text, host) {
                let what = format!("names the registry host {host}");
                violations.push(Violation::at(path, text, at, what));
            }
        }
    }
    violations
}

/// Lines of the lock file that name another source than the registry's usual index.
fn lock_sources(path: &str, text: &str, registry: &str) -> Vec<Violation> {
    let usual = format!("source = \"registry+https://github.com/rust-lang/{registry}-index\"");
    text.lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with("source = ") && *line != usual)
        .map(|(index, _)| Violation::new(path, index + 1, "not the usual registry"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_host_is_found_in_any_text() {
        for labels in HOSTS {
            let text = format!("a\nfrom https://{}/x", labels.join("."));
            let found = check(&Tree::of(&[("docs/a.md", &text)]));
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].line, 2);
        }
    }

    #[test]
    fn a_word_that_only_resembles_a_host_passes() {
        let text = "crates, io and crates/io; `crates.iota`; sandcrates.io_uring";
        assert_eq!(check(&Tree::of(&[("docs/a.md", text)])), []);
    }

    #[test]
    fn the_lock_file_names_only_the_usual_index() {
        let registry = HOSTS[0].join(".");
        let usual =
            format!("source = \"registry+https://github.com/rust-lang/{registry}-index\"\n");
        assert_eq!(check(&Tree::of(&[(LOCK_FILE, &usual)])), []);
        let mirror = "[[package]]\nsource = \"sparse+https://mirror.example/index/\"\n";
        let found = check(&Tree::of(&[(LOCK_FILE, mirror)]));
        assert_eq!((found.len(), found[0].line), (1, 2));
    }
}

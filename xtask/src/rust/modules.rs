//! Follows `mod` declarations from the roots of every target to the files that they reach.
//!
//! Gives for each reached file whether it exists only in tests. Knows cargo's default targets
//! (`lib.rs`, `main.rs`, `bin/`, `tests/`, `benches/`, `examples/`, `build.rs`), `#[path]` and
//! `include!`.

use std::collections::BTreeMap;

use super::{Layers, items, words};

/// The files that are part of some target, by path from the workspace root; true for those that
/// exist only in tests.
pub type Reached = BTreeMap<String, bool>;

/// Everything that the targets in `sources` reach through `mod`, `#[path]` and `include!`.
pub fn reached(sources: &BTreeMap<String, Layers>) -> Reached {
    let mut reached = Reached::new();
    for path in sources.keys() {
        if let Some(test) = root(path) {
            follow(sources, path, true, test, &mut reached);
        }
    }
    reached
}

/// Whether `path` is the root of a target, and then whether that target exists only for tests.
fn root(path: &str) -> Option<bool> {
    let mut parts: Vec<&str> = path.split('/').collect();
    match parts.first() {
        Some(&"crates") if parts.len() > 2 => drop(parts.drain(..2)),
        Some(&"xtask" | &"fuzz") => drop(parts.remove(0)),
        _ => return None,
    }
    match parts.as_slice() {
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] | ["src", "bin", _] => Some(false),
        ["src", "bin", _, "main.rs"] | ["fuzz_targets", _] => Some(false),
        ["tests" | "benches" | "examples", _] => Some(true),
        ["tests" | "benches" | "examples", _, "main.rs"] => Some(true),
        _ => None,
    }
}

fn follow(
    sources: &BTreeMap<String, Layers>,
    path: &str,
    is_root: bool,
    test: bool,
    reached: &mut Reached,
) {
    let Some(layers) = sources.get(path) else {
        return;
    };
    // A second visit matters only if it shows that a file thought test-only is not.
    if reached.get(path).is_some_and(|seen| !*seen || test) {
        return;
    }
    let test = test || whole_file_is_test(layers);
    reached.insert(path.to_owned(), test);
    for module in items::modules(layers) {
        for child in candidates(path, is_root, &module) {
            follow(sources, &child, false, test || module.test, reached);
        }
    }
    for child in includes(path, layers) {
        follow(sources, &child, true, test, reached);
    }
}

fn whole_file_is_test(layers: &Layers) -> bool {
    !layers.code.is_empty() && items::test_parts(&layers.code).contains(&(0..layers.code.len()))
}

/// Where the file of `module`, declared in `path`, may be.
fn candidates(path: &str, is_root: bool, module: &items::Module) -> Vec<String> {
    let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.trim_end_matches(".rs");
    let owns_directory = is_root || stem == "mod";
    let mut parts = vec![directory.to_owned()];
    // rustc counts `#[path]` from the file's own directory unless an inline module is around it.
    if !owns_directory && (module.path.is_none() || !module.inside.is_empty()) {
        parts.push(stem.to_owned());
    }
    parts.extend(module.inside.iter().cloned());
    let base = parts.join("/");
    match &module.path {
        Some(relative) => vec![join(&base, relative)],
        None => {
            vec![format!("{base}/{}.rs", module.name), format!("{base}/{}/mod.rs", module.name)]
        }
    }
}

/// The files that `include!("...")` pulls into `path`.
fn includes(path: &str, layers: &Layers) -> Vec<String> {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    words::find(&layers.code, "include!(")
        .filter_map(|at| {
            let open = at + layers.code[at..].find('"')? + 1;
            let close = open + layers.code[open..].find('"')?;
            Some(join(directory, &layers.literals[open..close]))
        })
        .collect()
}

/// `relative` seen from `directory`, with `.` and `..` resolved by name.
pub fn join(directory: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(files: &[(&str, &str)]) -> Vec<(String, bool)> {
        let sources = files.iter().map(|(path, text)| ((*path).to_owned(), Layers::of(text)));
        reached(&sources.collect()).into_iter().collect()
    }

    #[test]
    fn modules_are_followed_through_both_layouts() {
        let found = reach(&[
            ("crates/a/src/lib.rs", "mod b; mod c;"),
            ("crates/a/src/b.rs", "mod d;"),
            ("crates/a/src/b/d.rs", ""),
            ("crates/a/src/c/mod.rs", "#[path = \"odd.rs\"] mod e;"),
            ("crates/a/src/c/odd.rs", "include!(\"../table.in.rs\");"),
            ("crates/a/src/table.in.rs", ""),
            ("crates/a/src/dead.rs", ""),
        ]);
        assert_eq!(found.len(), 6);
        assert!(found.iter().all(|(path, test)| !test && !path.contains("dead")));
    }

    #[test]
    fn test_only_files_are_known() {
        let found = reach(&[
            ("crates/a/src/lib.rs", "#[cfg(test)] mod tests; mod b;"),
            ("crates/a/src/tests.rs", "mod prop;"),
            ("crates/a/src/tests/prop.rs", ""),
            ("crates/a/src/b.rs", ""),
            ("crates/a/tests/whole.rs", "mod support;"),
            ("crates/a/tests/support/mod.rs", ""),
        ]);
        for (path, test) in found {
            assert_eq!(test, path.contains("tests"), "{path}");
        }
    }

    #[test]
    fn a_file_that_is_also_in_the_product_is_not_test_only() {
        let lib = "#[cfg(test)] mod a { #[path = \"../b.rs\"] mod c; } mod b;";
        let found = reach(&[("crates/a/src/lib.rs", lib), ("crates/a/src/b.rs", "")]);
        assert!(found.contains(&("crates/a/src/b.rs".to_owned(), false)));
    }

    #[test]
    fn paths_are_joined_by_name() {
        assert_eq!(join("a/b", "../c/./d.md"), "a/c/d.md");
        assert_eq!(join("", "a"), "a");
    }
}

//! Rule: ARCHITECTURE.md describes the tree as it is.
//!
//! Every path below `crates/` or `xtask/` in backticks exists, every crate has its line in the
//! code map, and an item that follows a path in a table cell (`path`, `Item`) is in that file.

use super::{Tree, Violation};

const DOCUMENT: &str = "ARCHITECTURE.md";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let Some(text) = tree.text(DOCUMENT) else {
        let is_empty = tree.files().next().is_none();
        let missing = Violation::new(DOCUMENT, 1, "is missing");
        return Vec::from_iter((!is_empty).then_some(missing));
    };
    let mut violations = missing_crates(tree, text);
    for (index, line) in text.lines().enumerate() {
        let quoted: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        for (position, path) in quoted.iter().enumerate() {
            if !path.starts_with("crates/") && !path.starts_with("xtask/") {
                continue;
            }
            if !exists(tree, path) {
                let text = format!("{path} does not exist");
                violations.push(Violation::new(DOCUMENT, index + 1, text));
                continue;
            }
            let item = quoted.get(position + 1).filter(|_| line.contains(&format!("`{path}`, `")));
            if let Some(item) = item.filter(|item| !holds(tree, path, item)) {
                let text = format!("{path} has no {item}");
                violations.push(Violation::new(DOCUMENT, index + 1, text));
            }
        }
    }
    violations
}

fn exists(tree: &Tree, path: &str) -> bool {
    match path.strip_suffix('/') {
        Some(_) => tree.files().any(|(file, _)| file.starts_with(path)),
        None => tree.text(path).is_some(),
    }
}

fn holds(tree: &Tree, path: &str, item: &str) -> bool {
    let declared = ["struct", "enum", "trait", "fn", "type", "mod"];
    tree.text(path).is_some_and(|text| {
        declared.iter().any(|keyword| text.contains(&format!("{keyword} {item}")))
    })
}

/// Crates without a line in the code map.
fn missing_crates(tree: &Tree, text: &str) -> Vec<Violation> {
    let mut crates: Vec<&str> = tree
        .files()
        .filter_map(|(path, _)| path.strip_prefix("crates/")?.split_once("/Cargo.toml"))
        .filter(|(_, rest)| rest.is_empty())
        .map(|(name, _)| name)
        .collect();
    crates.sort_unstable();
    crates
        .into_iter()
        .filter(|name| !text.lines().any(|line| line.trim_start().starts_with(&format!("{name}/"))))
        .map(|name| Violation::new(DOCUMENT, 1, format!("the code map lacks {name}/")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(document: &str) -> Vec<String> {
        let files = [
            (DOCUMENT, document),
            ("crates/model/Cargo.toml", ""),
            ("crates/model/src/lib.rs", "pub trait BlockDevice {}\n"),
        ];
        check(&Tree::of(&files)).into_iter().map(|violation| violation.text).collect()
    }

    #[test]
    fn a_document_that_fits_the_tree_has_no_violations() {
        let text =
            "  model/  nouns\n| `crates/model/src/lib.rs`, `BlockDevice` | `crates/model/` |\n";
        assert_eq!(texts(text), [""; 0]);
    }

    #[test]
    fn a_path_a_name_or_a_crate_that_is_not_there_is_found() {
        let gone = "model/\n`crates/model/src/gone.rs`\n";
        assert_eq!(texts(gone), ["crates/model/src/gone.rs does not exist"]);
        let renamed = "model/\n`crates/model/src/lib.rs`, `Disk`\n";
        assert_eq!(texts(renamed), ["crates/model/src/lib.rs has no Disk"]);
        assert_eq!(texts("# Architecture\n"), ["the code map lacks model/"]);
    }
}

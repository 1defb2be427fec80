//! Rule: what is no text is a fixture, or a source of its crate names it.
//!
//! A package, an archive or a picture that came along with `git add` would stay in the history of
//! everybody. What a reader cannot read needs a source that says what it is for.

use super::tree::crate_of;
use super::{Tree, Violation};

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let text = "no text, no fixture, and no source of its crate names it";
    tree.data()
        .filter(|path| !path.contains("/fixtures/") && !is_named(tree, path))
        .map(|path| Violation::new(path, 1, text))
        .collect()
}

fn is_named(tree: &Tree, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let own = crate_of(path);
    own.is_some()
        && tree
            .files()
            .filter(|(source, _)| source.ends_with(".rs") && crate_of(source) == own)
            .any(|(_, text)| text.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: (&str, &str) =
        ("crates/a/src/lib.rs", "const RECORDED: &[u8] = include_bytes!(\"recorded.bin\");");

    #[test]
    fn a_package_at_the_root_and_a_picture_without_a_name_are_found() {
        let tree = Tree::of(&[SOURCE]).with_data(&["x-1.0.whl", "crates/a/src/other.png"]);
        let found: Vec<String> = check(&tree).into_iter().map(|it| it.path).collect();
        assert_eq!(found, ["crates/a/src/other.png", "x-1.0.whl"]);
    }

    #[test]
    fn fixtures_and_what_a_source_names_may_be() {
        let data = ["crates/a/src/recorded.bin", "crates/a/tests/fixtures/one.trec"];
        assert_eq!(check(&Tree::of(&[SOURCE]).with_data(&data)), []);
    }
}

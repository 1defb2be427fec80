//! Rule: a link to a heading of a document leads to a heading that is there.
//!
//! The name of a heading is what GitHub and mdBook make of it: lower case, letters, digits, `-` and
//! `_` of it, and `-` for each space; a second one of the same name ends with `-1`.

use std::collections::BTreeSet;

use super::{Tree, Violation};
use crate::markdown::{self, Link};

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let documents = || tree.files().filter(|(path, _)| path.ends_with(".md"));
    let mut violations = Vec::new();
    for (path, text) in documents() {
        for Link { whole, target, heading, .. } in markdown::relative_links(path, text) {
            let document = tree.text(&target).filter(|_| target.ends_with(".md"));
            let (Some(document), Some(heading)) = (document, heading) else { continue };
            if !headings(document).contains(heading) {
                let words = format!("a link leads to #{heading}, which {target} does not have");
                violations.push(Violation::at(path, text, whole.start, words));
            }
        }
    }
    violations
}

/// The names of the headings of a document.
fn headings(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if is_code || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let name = name(title.trim());
        let mut count = 0;
        let mut unique = name.clone();
        while !names.insert(unique) {
            count += 1;
            unique = format!("{name}-{count}");
        }
    }
    names
}

fn name(title: &str) -> String {
    let kept = title.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ if c.is_alphanumeric() => c.to_lowercase().next(),
        _ => None,
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_heading_that_is_not_there_is_found() {
        let there = "# `run -o FILE`: what, why?\n\n## Same\n\n## Same\n\n```\n# no heading\n```\n";
        let of = |links: &str| {
            let files = [("docs/a.md", there), ("docs/b.md", links)];
            check(&Tree::of(&files)).into_iter().map(|found| found.line).collect::<Vec<_>>()
        };
        let none: [usize; 0] = [];
        assert_eq!(of("[x](a.md#run--o-file-what-why)\n[x](a.md#same-1)\n[x](a.md)\n"), none);
        assert_eq!(of("# Here\n[x](#here)\n[x](https://a.example/a.md#b)\n"), none);
        assert_eq!(of("\n[x](a.md#no-heading)\n[x](#there)\n[x](../docs/a.md#no)\n"), [2, 3, 4]);
    }
}

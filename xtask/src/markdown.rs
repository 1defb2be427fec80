//! The links of a Markdown text to files of the tree: the rules of `tidy` follow them, and the site
//! of `docs` leaves out those that lead out of it.

use std::ops::Range;

use crate::rust::modules;

/// `[label](target#heading)`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link<'t> {
    /// Where all of it is in the text.
    pub(crate) whole: Range<usize>,
    pub(crate) label: &'t str,
    /// From the root of the tree; the document itself for a link to one of its headings.
    pub(crate) target: String,
    pub(crate) heading: Option<&'t str>,
}

/// The relative links of the document at `path`, in order. Addresses of other places are none.
pub(crate) fn relative_links<'t>(path: &str, text: &'t str) -> Vec<Link<'t>> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let link = |(at, opening): (usize, &str)| {
        let from = at + opening.len();
        let end = from + text[from..].find(')')?;
        let inside = text[from..end].trim_end();
        let (address, heading) = match inside.split_once('#') {
            Some((address, heading)) => (address, Some(heading)),
            None => (inside, None),
        };
        let file = address.split(' ').next()?;
        if file.contains(':') || file.starts_with('/') || inside.is_empty() {
            return None;
        }
        let target = if file.is_empty() { path.to_owned() } else { modules::join(folder, file) };
        let start = opening_bracket(&text[..at])?;
        Some(Link { whole: start..end + 1, label: &text[start + 1..at], target, heading })
    };
    text.match_indices("](").filter_map(link).collect()
}

/// The bracket that a label begins with, which ends where the text does.
fn opening_bracket(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().rev().find_map(|(at, letter)| match letter {
        ']' => {
            depth += 1;
            None
        }
        '[' if depth == 0 => Some(at),
        '[' => {
            depth -= 1;
            None
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_their_target_from_the_root_and_their_heading() {
        let text = "See [a [b]](../c.md#d), [here](#e), [x](https://f.example/g.md) and [h]( ).";
        let links = relative_links("docs/own.md", text);
        assert_eq!(links.len(), 2, "{links:?}");
        assert_eq!((links[0].label, links[0].target.as_str()), ("a [b]", "c.md"));
        assert_eq!(&text[links[0].whole.clone()], "[a [b]](../c.md#d)");
        assert_eq!((links[1].target.as_str(), links[1].heading), ("docs/own.md", Some("e")));
        assert!(relative_links("a.md", "](b.md) [").is_empty());
    }
}

//! Links of the site: those of a document that lead out of it become plain words, and those of the
//! pages that were built must lead to a page and a place in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::markdown;
use crate::rust::modules;

/// A document of which links to files outside of `pages` are their labels alone.
pub(super) fn within(pages: &BTreeSet<String>, path: &str, text: &str) -> String {
    let mut kept = text.to_owned();
    for link in markdown::relative_links(path, text).into_iter().rev() {
        if !pages.contains(&link.target) {
            kept.replace_range(link.whole, link.label);
        }
    }
    kept
}

/// The links of the pages below `site` that lead nowhere: page and link.
///
/// # Errors
/// When a page cannot be read.
pub(super) fn dead(site: &Path) -> Result<Vec<String>, Error> {
    let mut pages = BTreeMap::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let path = site.join(&folder);
        for entry in fs::read_dir(&path).map_err(Error::io("list", &path))? {
            let name = folder.join(entry.map_err(Error::io("list", &path))?.file_name());
            let path = site.join(&name);
            if path.is_dir() {
                open.push(name);
            } else if name.extension().is_some_and(|kind| kind == "html") {
                let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
                pages.insert(name.to_string_lossy().into_owned(), text);
            }
        }
    }
    let mut found = Vec::new();
    // That page is shown at any address; its links begin at the root of a server.
    for (name, text) in pages.iter().filter(|(name, _)| *name != "404.html") {
        let is_dead = |link: &&str| !leads_somewhere(site, &pages, name, link);
        found.extend(values(text, "href").filter(is_dead).map(|link| format!("{name}: {link}")));
    }
    Ok(found)
}

fn leads_somewhere(site: &Path, pages: &BTreeMap<String, String>, name: &str, link: &str) -> bool {
    let (address, place) = link.split_once('#').unwrap_or((link, ""));
    if address.contains(':') {
        return true;
    }
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let target = if address.is_empty() { name.to_owned() } else { modules::join(folder, address) };
    match pages.get(&target) {
        Some(text) => place.is_empty() || values(text, "id").any(|id| id == place),
        None => site.join(target).exists(),
    }
}

/// The values of an attribute.
fn values<'t>(text: &'t str, attribute: &str) -> impl Iterator<Item = &'t str> {
    let opening = format!(" {attribute}=\"");
    text.match_indices(&opening)
        .map(|(at, found)| &text[at + found.len()..])
        .filter_map(|rest| rest.split('"').next())
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_out_of_the_site_is_its_label() {
        let pages = ["docs/a.md", "README.md"].map(str::to_owned).into();
        let text = "[a](a.md#x) [up](../README.md) [code](../src/lib.rs) [out](https://x.example)";
        let expected = "[a](a.md#x) [up](../README.md) code [out](https://x.example)";
        assert_eq!(within(&pages, "docs/b.md", text), expected);
    }

    #[test]
    fn a_page_or_a_place_that_is_not_there_is_found() {
        let site = testkit::TempDir::new();
        fs::create_dir(site.join("b")).unwrap();
        fs::write(site.join("style.css"), "").unwrap();
        fs::write(site.join("a.html"), "<h1 id=\"one\"></h1>").unwrap();
        let links = ["../a.html#one", "../a.html#two", "#none", "../style.css", "c.html", "x:y"];
        let page: String = links.iter().map(|link| format!("<a href=\"{link}\">")).collect();
        fs::write(site.join("b/p.html"), page).unwrap();
        let found = dead(site.path()).unwrap();
        assert_eq!(found, ["b/p.html: ../a.html#two", "b/p.html: #none", "b/p.html: c.html"]);
    }
}

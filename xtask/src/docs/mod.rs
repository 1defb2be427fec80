//! `cargo xtask docs`: the documents as a site of linked pages with search, by mdBook.
//!
//! The site's sources are the documents as they are in the tree, in the same places, so that their
//! links lead where they lead there; the list of pages is `docs/SUMMARY.md`. Pages of the reference
//! that are generated: the help of each command, and the JSON schemas. The site needs no network.

mod links;
mod reference;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::error::Error;
use crate::{process, workspace};

/// The list of pages, and where its own links begin.
const SUMMARY: &str = "docs/SUMMARY.md";
const SETTINGS: &str = "docs/book.toml";
/// Pages that are not below `docs/`; `benchmarks/` has one.
const OTHER_PAGES: [&str; 6] = [
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
];
/// Besides pages, what they show or link to.
const FILE_KINDS: [&str; 7] = ["md", "svg", "png", "json", "sh", "py", "service"];
/// A page of the list, and the generated one below it.
const GENERATED: [(&str, &str); 2] = [
    ("(docs/cli.md)", "[The help of each command](docs/reference/commands.md)"),
    ("(docs/json.md)", "[Schemas](docs/reference/schemas.md)"),
];
/// The version of mdBook that the pages were looked at with.
const VERSION: &str = "0.5.4";
const INSTALL_LIMIT: Duration = Duration::from_secs(1200);
const BUILD_LIMIT: Duration = Duration::from_secs(600);

/// Makes the site below the target directory, and says where its first page is.
///
/// # Errors
/// When mdBook can neither be found nor be installed, a file cannot be written, or a program fails.
pub(crate) fn run() -> Result<(), Error> {
    let root = workspace::current_root()?;
    let target = workspace::target_directory(&workspace::metadata(&root)?)?;
    let book = target.join("docs");
    let program = mdbook(&root, &target)?;
    let terrace = built(&root)?;
    assemble(&root, &book, &reference::pages(&root, &terrace)?)?;
    let mut command = Command::new(program);
    command.arg("build").arg(&book);
    process::run(command, BUILD_LIMIT)?.success()?;
    let site = book.join("book");
    // mdBook calls the page of a README so, and leaves the links to it as they are.
    for folder in ["", "benchmarks"] {
        let page = site.join(folder).join("index.html");
        fs::copy(&page, page.with_file_name("README.html")).map_err(Error::io("copy", &page))?;
    }
    let dead = links::dead(&site)?;
    if !dead.is_empty() {
        return Err(Error::Failed(format!("links that lead nowhere: {}", dead.join(", "))));
    }
    println!("{}", book.join("book/index.html").display());
    Ok(())
}

/// mdBook: that of the machine if it is the right one, else one below the target directory, which
/// is installed there if need be.
fn mdbook(root: &Path, target: &Path) -> Result<PathBuf, Error> {
    let tools = target.join("tools");
    for candidate in [PathBuf::from("mdbook"), tools.join("bin/mdbook")] {
        let mut command = Command::new(&candidate);
        command.arg("--version");
        let printed = process::run(command, Duration::from_secs(10)).map(|ended| ended.stdout);
        if printed.is_ok_and(|text| text.contains(VERSION)) {
            return Ok(candidate);
        }
    }
    eprintln!("installing mdBook {VERSION} into {}", tools.display());
    let mut command = workspace::cargo(root);
    command.args(["install", "--quiet", "--locked", "--no-default-features"]);
    command.args(["--features", "search", "--version", VERSION, "--root"]).arg(&tools);
    command.arg("mdbook");
    process::run(command, INSTALL_LIMIT)?.success()?;
    Ok(tools.join("bin/mdbook"))
}

/// The product, whose help is a part of the reference.
fn built(root: &Path) -> Result<PathBuf, Error> {
    let built = workspace::executables(root, &["build", "-q", "-p", "terrace"], &[])?;
    let found = built.into_iter().find(|built| built.name == "terrace");
    found.map(|built| built.path).ok_or_else(|| Error::Failed("no terrace was built".to_owned()))
}

/// Writes the sources of the book: `src` with the documents in their places, and its settings.
fn assemble(root: &Path, book: &Path, generated: &[(String, String)]) -> Result<(), Error> {
    let sources = book.join("src");
    for old in [&sources, &book.join("book")] {
        if old.exists() {
            fs::remove_dir_all(old).map_err(Error::io("remove", old))?;
        }
    }
    write(&book.join("book.toml"), &read(&root.join(SETTINGS))?)?;
    let pages = pages(root)?;
    for path in &pages {
        let copy = sources.join(path);
        if path.ends_with(".md") {
            write(&copy, &links::within(&pages, path, &read(&root.join(path))?))?;
            continue;
        }
        make_folder_of(&copy)?;
        fs::copy(root.join(path), &copy).map_err(Error::io("copy", &copy))?;
    }
    for (path, text) in generated {
        write(&sources.join("docs").join(path), text)?;
    }
    write(&sources.join("SUMMARY.md"), &summary(&read(&root.join(SUMMARY))?))
}

/// The list of pages with links as from the root of the tree, and with those that are generated.
fn summary(text: &str) -> String {
    let links = text.replace("](", "](docs/").replace("](docs/../", "](");
    let mut list = String::new();
    for line in links.lines() {
        list.extend([line, "\n"]);
        let below = GENERATED.iter().find(|(page, _)| line.ends_with(page));
        list.extend(below.map(|(_, entry)| format!("    - {entry}\n")));
    }
    list
}

/// The files of the site, relative to the root.
fn pages(root: &Path) -> Result<BTreeSet<String>, Error> {
    let mut found: BTreeSet<String> = OTHER_PAGES.iter().map(|&page| page.to_owned()).collect();
    let mut open = vec!["docs".to_owned()];
    while let Some(folder) = open.pop() {
        let path = root.join(&folder);
        for entry in fs::read_dir(&path).map_err(Error::io("list", &path))? {
            let entry = entry.map_err(Error::io("list", &path))?;
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            let kind = name.rsplit_once('.').map_or("", |(_, kind)| kind);
            if entry.file_type().map_err(Error::io("examine", &path))?.is_dir() {
                open.push(name);
            } else if FILE_KINDS.contains(&kind) && name != SUMMARY {
                found.insert(name);
            }
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::io("read", path))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    make_folder_of(path)?;
    fs::write(path, text).map_err(Error::io("write", path))
}

fn make_folder_of(path: &Path) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(Error::io("make", folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_the_list_begin_at_the_root() {
        let list = "[A](../README.md)\n- [B](b.md)\n    - [C](how-to/c.md)\n";
        let expected = "[A](README.md)\n- [B](docs/b.md)\n    - [C](docs/how-to/c.md)\n";
        assert_eq!(summary(list), expected);
        let list = summary("- [JSON](json.md)\n");
        assert_eq!(list, "- [JSON](docs/json.md)\n    - [Schemas](docs/reference/schemas.md)\n");
    }

    #[test]
    fn each_document_has_a_place_in_the_list() {
        let root = workspace::current_root().unwrap();
        let list = summary(&read(&root.join(SUMMARY)).unwrap());
        for page in pages(&root).unwrap() {
            let is_named = list.contains(&format!("]({page})"));
            assert!(is_named || !page.ends_with(".md"), "{page} is not in {SUMMARY}");
        }
    }
}

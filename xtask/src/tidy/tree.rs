//! Everything that the rules look at: the text of each file, the layers of each Rust file, the
//! packages.
//!
//! Read once, then only looked at, so that a rule is a pure function and its test a few lines of
//! text. The files are those that git tracks or would track; without git (an unpacked archive), all
//! but build output. Of files that are not UTF-8 or very large, which are data, the rules see only
//! the paths.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::error::Error;
use crate::process;
use crate::rust::{Layers, items, modules};
use crate::workspace::{self, Package};

/// No text that a person writes is larger; the largest file of the project has a tenth of it.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// Listing an index takes milliseconds; a minute means that git waits for something.
const GIT_LIMIT: Duration = Duration::from_secs(60);

/// Folders that hold build output or git's own data.
const NOT_OURS: &[&str] = &[".git", "target"];

/// The workspace as the rules see it. Paths are relative to its root, with `/`.
#[derive(Debug)]
pub struct Tree {
    files: BTreeMap<String, String>,
    data: BTreeSet<String>,
    sources: BTreeMap<String, Layers>,
    reached: modules::Reached,
    packages: Vec<Package>,
}

impl Tree {
    /// Reads the workspace at `root`.
    ///
    /// # Errors
    /// When a file cannot be read, or cargo cannot describe the workspace.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let (mut files, mut data) = (BTreeMap::new(), BTreeSet::new());
        for path in list(root)? {
            let place = root.join(&path);
            if let Some(text) = read_text(&place)? {
                files.insert(path, text);
            } else if place.is_file() {
                data.insert(path);
            }
        }
        let packages = workspace::packages(&workspace::metadata(root)?)?;
        Ok(Self { data, ..Self::new(files, packages) })
    }

    /// A tree of the given texts and packages.
    pub fn new(files: BTreeMap<String, String>, packages: Vec<Package>) -> Self {
        let sources: BTreeMap<String, Layers> = files
            .iter()
            .filter(|(path, _)| path.ends_with(".rs"))
            .map(|(path, text)| (path.clone(), Layers::of(text)))
            .collect();
        let reached = modules::reached(&sources);
        Self { files, data: BTreeSet::new(), sources, reached, packages }
    }

    /// A tree of `(path, text)` without packages, for tests of rules.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Self::new(files.collect(), Vec::new())
    }

    /// This tree with files that are no text, for tests of rules.
    #[cfg(test)]
    pub(crate) fn with_data(self, paths: &[&str]) -> Self {
        let data = paths.iter().map(|path| (*path).to_owned()).collect();
        Self { data, ..self }
    }

    /// The path of every file that is no text, in order.
    pub fn data(&self) -> impl Iterator<Item = &str> {
        self.data.iter().map(String::as_str)
    }

    /// Every text file: path and text, ordered by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Every Rust file: path and layers, ordered by path.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &Layers)> {
        self.sources.iter().map(|(path, layers)| (path.as_str(), layers))
    }

    /// The Rust files that a target reaches; see [`modules::reached`].
    pub fn reached(&self) -> &modules::Reached {
        &self.reached
    }

    /// The members of the workspace.
    pub fn packages(&self) -> &[Package] {
        &self.packages
    }

    /// The code of each Rust file as it is outside of tests: test-only files are left out,
    /// test-only parts blank. `testkit` exists only in tests, whatever its files look like.
    pub fn product(&self) -> impl Iterator<Item = (&str, String)> {
        self.sources()
            .filter(|(path, _)| !self.reached.get(*path).is_some_and(|test| *test))
            .filter(|(path, _)| crate_of(path) != Some("testkit"))
            .map(|(path, layers)| (path, items::without_tests(&layers.code)))
    }
}

/// The member that `path` belongs to, if any.
pub fn crate_of(path: &str) -> Option<&str> {
    match path.split_once('/')? {
        ("crates", rest) => rest.split_once('/').map(|(name, _)| name),
        ("xtask", _) => Some("xtask"),
        _ => None,
    }
}

/// The files of the tree at `root`, from there on: those of git, or all without it.
///
/// # Errors
/// When it cannot be listed.
pub(crate) fn list(root: &Path) -> Result<Vec<String>, Error> {
    let mut git = Command::new("git");
    git.arg("-C").arg(root);
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    match process::run(git, GIT_LIMIT).and_then(process::Finished::success) {
        Ok(listing) => {
            let paths = listing.stdout.split('\0').filter(|path| !path.is_empty());
            Ok(paths.map(str::to_owned).collect())
        }
        // No git, or no repository: the folder itself is all there is.
        Err(_) => walk(root),
    }
}

fn walk(root: &Path) -> Result<Vec<String>, Error> {
    let mut paths = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let directory = root.join(&folder);
        for entry in fs::read_dir(&directory).map_err(Error::io("list", &directory))? {
            let entry = entry.map_err(Error::io("list", &directory))?;
            let kind = entry.file_type().map_err(Error::io("list", &directory))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = modules::join(&folder, &name);
            if kind.is_dir() && !NOT_OURS.contains(&name.as_str()) {
                folders.push(path);
            } else if kind.is_file() {
                paths.push(path);
            }
        }
    }
    paths.sort();
    Ok(paths)
}

/// The text at `path`; `None` for what is no regular file (any more), not UTF-8, or too large.
fn read_text(path: &Path) -> Result<Option<String>, Error> {
    match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_file() && facts.len() <= TEXT_BYTES_MAX => {}
        _ => return Ok(None),
    }
    let bytes = fs::read(path).map_err(Error::io("read", path))?;
    Ok(String::from_utf8(bytes).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_has_this_file_by_git_and_by_walking() {
        let root = workspace::current_root().unwrap();
        let own = "xtask/src/tidy/tree.rs".to_owned();
        assert!(list(&root).unwrap().contains(&own));
        let walked = walk(&root).unwrap();
        assert!(walked.contains(&own));
        assert!(walked.iter().all(|path| !path.starts_with(".git/")));
        assert_eq!(read_text(&root.join("no-such-file")).unwrap(), None);
    }

    #[test]
    fn crates_are_named_by_folder() {
        assert_eq!(crate_of("crates/model/src/lib.rs"), Some("model"));
        assert_eq!(crate_of("xtask/src/lib.rs"), Some("xtask"));
        assert_eq!(crate_of("docs/a.md"), None);
        assert_eq!(crate_of("crates/stray.rs"), None);
    }

    #[test]
    fn the_product_has_no_test_files_no_test_parts_and_no_testkit() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "fn a() {}\n#[cfg(test)]\nmod tests;"),
            ("crates/a/src/tests.rs", "fn b() {}"),
            ("crates/a/tests/c.rs", "fn c() {}"),
            ("crates/testkit/src/lib.rs", "fn d() {}"),
        ]);
        let product: Vec<_> = tree.product().collect();
        assert_eq!(product.len(), 1);
        assert_eq!(product[0].1.trim(), "fn a() {}");
    }
}

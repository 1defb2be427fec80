//! The crates that are linked into the binary: what `cargo tree` follows by ordinary
//! dependencies, without those of tests, of build scripts and of macros.
//! `cargo metadata` knows the rest of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::error::Error;
use crate::{process, workspace};

/// Reads some hundred manifests.
const LIMIT: Duration = Duration::from_secs(120);

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LinkedCrate {
    pub(super) name: String,
    pub(super) version: String,
    /// An SPDX expression.
    pub(super) license: String,
    /// Where its sources are.
    pub(super) directory: PathBuf,
    /// The SHA-256 of its package; `None` for a member of the workspace.
    pub(super) checksum: Option<String>,
    /// Indices of the crates that it uses.
    pub(super) uses: Vec<usize>,
}

/// All of them for `target`, by name and version.
///
/// # Errors
/// If cargo fails, or says something of another form.
pub(super) fn linked(root: &Path, target: &str) -> Result<Vec<LinkedCrate>, Error> {
    let mut tree = workspace::cargo(root);
    tree.args(["tree", "--locked", "--package", "terrace", "--target", target]);
    tree.args(["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]);
    let tree = process::run(tree, LIMIT)?.success()?.stdout;
    let mut metadata = workspace::cargo(root);
    metadata.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", target]);
    let json = process::run(metadata, LIMIT)?.success()?.stdout;
    let known: Value = serde_json::from_str(&json).map_err(|error| malformed(error.to_string()))?;
    let path = root.join("Cargo.lock");
    let lock = std::fs::read_to_string(&path).map_err(Error::io("read", &path))?;
    joined(&tree, &known, &checksums(&lock))
}

fn joined(
    tree: &str,
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
) -> Result<Vec<LinkedCrate>, Error> {
    let mut wanted: Vec<(String, String)> = tree.lines().filter_map(named).collect();
    wanted.sort();
    wanted.dedup();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages = list(&metadata["packages"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut indices = BTreeMap::new();
    let mut linked = Vec::new();
    for (index, key) in wanted.iter().enumerate() {
        let is_it = |package: &&Value| package["name"] == *key.0 && package["version"] == *key.1;
        let found = packages.iter().find(is_it);
        let package = found.ok_or_else(|| malformed(format!("no package {} {}", key.0, key.1)))?;
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        indices.insert(text(&package["id"]), index);
        linked.push(LinkedCrate {
            name: key.0.clone(),
            version: key.1.clone(),
            license: text(&package["license"]),
            directory: manifest.parent().unwrap_or(Path::new("")).to_owned(),
            checksum: checksums.get(key).cloned(),
            uses: Vec::new(),
        });
    }
    for node in list(&metadata["resolve"]["nodes"]) {
        let Some(index) = indices.get(&text(&node["id"])) else { continue };
        let uses = list(&node["dependencies"]);
        linked[*index].uses =
            uses.iter().filter_map(|id| indices.get(&text(id)).copied()).collect();
    }
    Ok(linked)
}

/// `zstd v0.13.3`, or with a path behind it.
fn named(line: &str) -> Option<(String, String)> {
    let mut words = line.split_whitespace();
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    Some((name.to_owned(), version.to_owned()))
}

/// The checksums of the lock file, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |part: &str, name: &str| {
        let line = part.lines().find_map(|line| line.strip_prefix(name));
        line.map(|text| text.trim_matches('"').to_owned())
    };
    let entry = |part: &str| {
        let key = (value(part, "name = ")?, value(part, "version = ")?);
        Some((key, value(part, "checksum = ")?))
    };
    lock.split("[[package]]").filter_map(entry).collect()
}

fn malformed(why: String) -> Error {
    Error::Malformed { what: "cargo metadata", why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_the_product_and_not_its_tests_and_macros() {
        let root = workspace::current_root().unwrap();
        let linked = linked(&root, "x86_64-unknown-linux-gnu").unwrap();
        let find = |name: &str| linked.iter().find(|one| one.name == name);
        for (name, is_linked) in [
            ("terrace", true),
            ("sys", true),
            ("zstd-sys", true),
            ("boon", false),
            ("testkit", false),
            ("clap_derive", false),
            ("cc", false),
        ] {
            assert_eq!(find(name).is_some(), is_linked, "{name}");
        }
        let zstd = find("zstd").unwrap();
        assert_eq!(zstd.checksum.as_ref().map(String::len), Some(64));
        assert!(zstd.uses.iter().any(|index| linked[*index].name == "zstd-safe"));
        assert!(linked.iter().all(|one| !one.license.is_empty() && one.directory.is_absolute()));
    }
}

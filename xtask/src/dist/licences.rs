//! The licence texts of everything linked: the files that each crate brings, the Rust standard
//! library's, and those of what zig links in place of libgcc.
//!
//! Each text is there once, below the names of all that it is of. A crate without a text, or under
//! a licence that is not in [`ACCEPTED`], ends the build: a person has to look at it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::crates::LinkedCrate;
use super::tools;
use crate::error::Error;
use crate::process;

/// Licences that ask for their text and for nothing else.
const ACCEPTED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// How the files of licences begin, in small letters.
const FILE_NAMES: &[&str] = &["licen", "copying", "copyright", "notice", "unlicense"];

/// Folders of a crate that hold nothing that is linked, or another crate.
const OTHER_FOLDERS: &[&str] = &["tests", "target", "benches", "examples", ".git"];

/// How deep a crate keeps sources of others with their licence, as zstd-sys does.
const DEPTH_MAX: usize = 4;

/// Printed by zig within this time.
const LIMIT: Duration = Duration::from_secs(60);

/// Texts for people who have the binary.
#[derive(Debug)]
pub(super) struct LicenceTexts {
    /// Of the crates, and of the parts of LLVM.
    pub(super) crates: String,
    /// Of the standard library, as rustc brings it: a page.
    pub(super) standard_library: Vec<u8>,
}

/// Collects them.
///
/// # Errors
/// A crate without a text or under another licence; a text that is not there.
pub(super) fn texts(root: &Path, linked: &[LinkedCrate]) -> Result<LicenceTexts, Error> {
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in linked {
        if !is_accepted(&one.license) {
            let text = format!("{} {} is under {}", one.name, one.version, one.license);
            return Err(Error::Failed(format!("{text}, which is not among those accepted")));
        }
        let is_member = one.checksum.is_none();
        let mut files = licence_files(&one.directory, DEPTH_MAX)?;
        if is_member {
            // Of a member only what it brings from others: ours is at the root.
            files.extend(["LICENSE-MIT", "LICENSE-APACHE"].map(|name| root.join(name)));
        }
        if files.is_empty() {
            return Err(Error::Failed(format!("{} {} has no licence text", one.name, one.version)));
        }
        for file in files {
            let text = fs::read(&file).map_err(Error::io("read", &file))?;
            let owner = format!("{} {} ({})", one.name, one.version, one.license);
            let folder = file.parent().filter(|folder| *folder != root);
            let name = folder.and_then(Path::file_name).map(|name| name.to_string_lossy());
            let of_member = || name.map_or("Terrace".to_owned(), |name| name.into_owned());
            let owner = if is_member { of_member() } else { owner };
            let owners = owners.entry(normal(&text)).or_default();
            if !owners.contains(&owner) {
                owners.push(owner);
            }
        }
    }
    let llvm = zig_libraries()?.join("libunwind/LICENSE.TXT");
    let text = fs::read(&llvm).map_err(Error::io("read", &llvm))?;
    owners.entry(normal(&text)).or_default().push("libunwind and compiler-rt of LLVM".to_owned());
    let toolchain = tools::rustc(root, &["--print", "sysroot"])?;
    let page = Path::new(&toolchain).join("share/doc/rust/COPYRIGHT-library.html");
    let standard_library = fs::read(&page).map_err(Error::io("read", &page))?;
    Ok(LicenceTexts { crates: printed(&owners), standard_library })
}

/// Whether one of the choices of the expression is accepted, in each of its parts.
fn is_accepted(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    let is_one = |part: &str| part.split(" OR ").any(|one| ACCEPTED.contains(&one.trim()));
    !plain.is_empty() && plain.split(" AND ").all(is_one)
}

/// The files of licences in a directory and below it, in order.
fn licence_files(directory: &Path, depth: usize) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(Error::io("list", directory))? {
        let path = entry.map_err(Error::io("list", directory))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if path.is_dir() {
            if depth > 1 && !OTHER_FOLDERS.contains(&name.as_str()) {
                found.extend(licence_files(&path, depth - 1)?);
            }
        } else if FILE_NAMES.iter().any(|start| name.starts_with(start)) && !name.ends_with(".rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Where zig has the sources of what it links.
fn zig_libraries() -> Result<PathBuf, Error> {
    let mut command = Command::new("python3");
    command.args(["-c", "import os, ziglang; print(os.path.dirname(ziglang.__file__))"]);
    let said = process::run(command, LIMIT)?.success()?.stdout;
    Ok(Path::new(said.trim()).join("lib"))
}

/// A text with one kind of line end and no space around it, so that equal ones are one.
fn normal(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

fn printed(owners: &BTreeMap<String, Vec<String>>) -> String {
    let mut texts: Vec<(&Vec<String>, &String)> =
        owners.iter().map(|(text, owners)| (owners, text)).collect();
    texts.sort();
    let line = "=".repeat(80);
    let part = |(owners, text): &(&Vec<String>, &String)| {
        format!("{line}\n{}\n{}\n{text}\n\n", owners.join("\n"), "-".repeat(80))
    };
    let head = "The licences of what is linked into Terrace. Those of the Rust standard library \
                are in\nrust-standard-library.html.\n\n";
    head.to_owned() + &texts.iter().map(part).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    #[test]
    fn each_part_of_an_expression_needs_a_choice_that_is_accepted() {
        for (expression, accepted) in [
            ("MIT OR Apache-2.0", true),
            ("GPL-3.0-only OR MIT", true),
            ("MIT/Apache-2.0", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
            ("MIT AND GPL-3.0-only", false),
            ("GPL-2.0-only", false),
            ("", false),
        ] {
            assert_eq!(is_accepted(expression), accepted, "{expression}");
        }
    }

    #[test]
    fn a_text_stands_once_and_a_crate_without_one_is_refused() {
        let folder = TempDir::new();
        let a_crate = |name: &str| {
            let directory = folder.join(name);
            fs::create_dir_all(directory.join("bundled")).unwrap();
            let (name, version, license) = (name.to_owned(), "1.0.0".to_owned(), "MIT".to_owned());
            let checksum = Some(String::new());
            LinkedCrate { name, version, license, directory, checksum, uses: Vec::new() }
        };
        let (a, b) = (a_crate("a"), a_crate("b"));
        fs::write(a.directory.join("LICENSE"), "MIT text\r\n").unwrap();
        fs::write(b.directory.join("bundled/COPYING"), "\nMIT text  \n").unwrap();
        let found = |one: &LinkedCrate| licence_files(&one.directory, DEPTH_MAX).unwrap();
        assert_eq!((found(&a).len(), found(&b).len()), (1, 1));
        let texts = [&a, &b].map(|one| normal(&fs::read(&found(one)[0]).unwrap()));
        assert_eq!(texts[0], texts[1]);
        let bare = a_crate("bare");
        let root = crate::workspace::current_root().unwrap();
        let refused = super::texts(&root, &[bare]).unwrap_err();
        assert!(refused.to_string().contains("bare 1.0.0 has no licence text"), "{refused}");
    }
}

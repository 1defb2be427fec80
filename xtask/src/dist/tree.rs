//! The files of an installation, below a prefix: the program, a page of the manual for every
//! command, completions, units, documents. Tarball and packages have the same.
//!
//! Pages and completions come from the program itself. One that this machine cannot execute is
//! stood in for by that of the machine's own target, whose pages are the same.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::archive::{FileTree, TreeFile};
use super::build::{self, Built};
use super::licences::LicenceTexts;
use super::{Release, read};
use crate::error::Error;
use crate::process;

/// What the shells call their completions, and where they look for them below a prefix.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "share/bash-completion/completions/terrace"),
    ("zsh", "share/zsh/site-functions/_terrace"),
    ("fish", "share/fish/vendor_completions.d/terrace.fish"),
];

/// Below the root of the workspace.
const UNITS: &[&str] =
    &["terrace-recorder.service", "terrace-warm.service", "terrace-warm-watch.service"];
const DOCUMENTS: &[&str] = &["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Prints some hundred KB.
const LIMIT: Duration = Duration::from_secs(60);

/// All files, by their paths below the prefix.
///
/// # Errors
/// If a page cannot be made, or a file is not there.
pub(super) fn files(
    release: &Release,
    built: &Built,
    texts: &LicenceTexts,
    sbom: &str,
) -> Result<FileTree, Error> {
    let mut tree = FileTree::new();
    let mut add = |path: String, is_program: bool, bytes: Vec<u8>| {
        tree.insert(path, TreeFile { is_program, bytes });
    };
    add("bin/terrace".to_owned(), true, read(&built.program)?);
    let speaker = speaker(release, built)?;
    for (name, page) in manual(release, &speaker)? {
        add(format!("share/man/man1/{name}"), false, page);
    }
    for (shell, path) in COMPLETIONS {
        add((*path).to_owned(), false, said(&speaker, &["completions", shell])?.into_bytes());
    }
    for unit in UNITS {
        let text = read(&release.root.join("packaging").join(unit))?;
        add(format!("lib/systemd/system/{unit}"), false, text);
    }
    for name in DOCUMENTS {
        add(format!("share/doc/terrace/{name}"), false, read(&release.root.join(name))?);
    }
    let document = |name: &str| format!("share/doc/terrace/{name}");
    add(document("LICENSES-OF-OTHERS"), false, texts.crates.clone().into_bytes());
    add(document("rust-standard-library.html"), false, texts.standard_library.clone());
    add(document("sbom.cdx.json"), false, sbom.as_bytes().to_vec());
    Ok(tree)
}

/// A build that runs here: this one, or that of this machine's own target.
fn speaker(release: &Release, built: &Built) -> Result<std::path::PathBuf, Error> {
    let own = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    if release.target == own {
        return Ok(built.program.clone());
    }
    let text = built.program.to_string_lossy().replace(&release.target, &own);
    let program = std::path::PathBuf::from(text);
    if program.exists() {
        return Ok(program);
    }
    let text = format!("{} cannot say its manual here: build {own} too", release.target);
    Err(Error::Failed(text))
}

/// The pages of the manual by their names.
fn manual(release: &Release, program: &Path) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let directory = release.work.join("man");
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(Error::io("empty", &directory))?;
    }
    said(program, &["manual", "--to", &directory.to_string_lossy()])?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(&directory).map_err(Error::io("list", &directory))? {
        let path = entry.map_err(Error::io("list", &directory))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        pages.push((name, read(&path)?));
    }
    Ok(pages)
}

fn said(program: &Path, words: &[&str]) -> Result<String, Error> {
    let mut command = Command::new(program);
    command.args(words);
    Ok(process::run(command, LIMIT)?.success()?.stdout)
}

/// Texts in `bytes` that name a directory of this machine.
///
/// # Errors
/// If the compiler does not say where it is.
pub(super) fn paths_of_this_machine(root: &Path, bytes: &[u8]) -> Result<Vec<String>, Error> {
    let renamed = build::renamed(root)?;
    let has = |path: &str| bytes.windows(path.len()).any(|part| part == path.as_bytes());
    let texts = renamed.iter().map(|(path, _)| path.to_string_lossy().into_owned());
    Ok(texts.filter(|path| has(path)).collect())
}

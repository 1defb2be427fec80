//! `cargo xtask dist --check`: what a new user would meet, tried. Each line says what was seen.
//!
//! Cheap looks come first, then installations, and at the end everything is built once more in
//! another directory. What this machine lacks is `skipped: needs ...`; nothing is installed for it.

mod again;
mod binary;
mod chroot;
mod guest;
mod installer;
mod rpm;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::source::Source;
use super::{Release, SUMS, WORK, read, sums, units};
use crate::error::Error;
use crate::process;

/// For a step that installs or runs something.
const LIMIT: Duration = Duration::from_secs(600);

/// What a check found.
#[derive(Debug)]
enum Finding {
    Held(String),
    Failed(String),
    /// What it needs that is not here.
    Skipped(String),
}

/// A check without a finding of its own: an error is a failure.
type Looked = Result<Finding, Error>;

/// The packages that are looked at.
#[derive(Debug)]
struct Packages {
    release: Release,
    out: PathBuf,
    /// The files of the tarball, unpacked.
    unpacked: PathBuf,
}

impl Packages {
    fn program(&self) -> PathBuf {
        self.unpacked.join("bin/terrace")
    }

    /// The file in `out` with this end.
    fn with_end(&self, end: &str) -> Result<PathBuf, Error> {
        let names = fs::read_dir(&self.out).map_err(Error::io("list", &self.out))?.flatten();
        let mut paths = names.map(|entry| entry.path());
        let architecture = self.release.target.split('-').next().unwrap_or_default();
        let is_ours = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let debian = if architecture == "x86_64" { "amd64" } else { "arm64" };
            let is_architecture = name.contains(architecture) || name.contains(debian);
            name.ends_with(end) && is_architecture
        };
        paths.find(is_ours).ok_or_else(|| Error::Failed(format!("no {end}: cargo xtask dist")))
    }
}

/// Checks what is in `out`: what this machine can execute itself, and the rest in an emulated one.
///
/// # Errors
/// If a check fails; its line was printed before.
pub(super) fn run(
    root: &Path,
    source: &Source,
    targets: &[String],
    out: &Path,
) -> Result<(), Error> {
    let own = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut failed = 0;
    let mut line = |name: &str, looked: Looked| {
        let (state, text) = match looked {
            Ok(Finding::Held(text)) => ("ok     ", text),
            Ok(Finding::Skipped(need)) => ("-      ", format!("skipped: needs {need}")),
            Ok(Finding::Failed(text)) => ("FAILED ", text),
            Err(error) => ("FAILED ", error.to_string()),
        };
        failed += u32::from(state == "FAILED ");
        println!("{state}{name}: {text}");
    };
    line("checksums", checksums(out));
    for target in targets {
        let release = Release::of(root, source, target)?;
        if *target != own && !out.join(format!("{}.tar.gz", release.name())).exists() {
            line(target, Ok(Finding::Skipped(format!("cargo xtask dist --target {target}"))));
            continue;
        }
        let packages = unpack(release, out)?;
        line("glibc", binary::glibc(&packages));
        line("size", binary::size(&packages));
        line("paths", binary::paths(&packages));
        if *target != own {
            line(&format!("{target}, emulated"), guest::installs(&packages));
            continue;
        }
        line("version", binary::version(&packages));
        line("start", binary::start(&packages));
        line("units", of_units(&packages));
        line("install.sh", installer::installs(&packages));
        line("install.sh, damaged archive", installer::refuses(&packages));
        for suite in chroot::SUITES {
            line(&format!("deb on {}", suite.title), chroot::deb(&packages, suite));
        }
        line("tarball on the oldest Debian", chroot::tarball(&packages));
        line("rpm", rpm::into_an_empty_root(&packages));
        line("two builds", again::is_identical(&packages));
    }
    match failed {
        0 => Ok(()),
        count => Err(Error::Failed(format!("{count} checks failed"))),
    }
}

fn checksums(out: &Path) -> Looked {
    let kept = String::from_utf8_lossy(&read(&out.join(SUMS))?).into_owned();
    let files = kept.lines().count();
    if kept != sums(out)? {
        return Ok(Finding::Failed("SHA256SUMS is not of these files".to_owned()));
    }
    Ok(Finding::Held(format!("{files} files")))
}

fn unpack(release: Release, out: &Path) -> Result<Packages, Error> {
    let folder = release.root.join(WORK).join("check");
    emptied(&folder)?;
    let name = release.name();
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(out.join(format!("{name}.tar.gz"))).arg("-C").arg(&folder);
    process::run(tar, LIMIT)?.success()?;
    Ok(Packages { release, out: out.to_owned(), unpacked: folder.join(name) })
}

fn of_units(packages: &Packages) -> Looked {
    if process::find("systemd-analyze").is_none() {
        return Ok(Finding::Skipped("systemd-analyze (systemd)".to_owned()));
    }
    let folder = packages.unpacked.join("lib/systemd/system");
    let examined = units::examine(&folder, &packages.program())?;
    Ok(Finding::Held(examined.join("; ")))
}

/// An empty directory at `path`.
fn emptied(path: &Path) -> Result<(), Error> {
    if path.exists() {
        fs::remove_dir_all(path).map_err(Error::io("empty", path))?;
    }
    fs::create_dir_all(path).map_err(Error::io("make", path))
}

/// Runs a program to its end; its output.
fn said(mut command: Command, words: &[&str]) -> Result<String, Error> {
    command.args(words);
    Ok(process::run(command, LIMIT)?.success()?.stdout)
}

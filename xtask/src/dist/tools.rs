//! The programs that make the packages, in the versions that the bytes were checked with.
//!
//! Another version may give other bytes, so it is refused and not only noted.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::error::Error;
use crate::process;
use crate::workspace;

/// A program that prints its version.
#[derive(Debug)]
pub(super) struct PinnedTool {
    name: &'static str,
    version: &'static str,
    /// Prints the version, as its last word or alone.
    command: &'static [&'static str],
    /// Installs it.
    install: &'static str,
}

pub(super) const ZIGBUILD: PinnedTool = PinnedTool {
    name: "cargo-zigbuild",
    version: "0.24.1",
    command: &["cargo-zigbuild", "--version"],
    install: "pip install cargo-zigbuild==",
};
pub(super) const ZIG: PinnedTool = PinnedTool {
    name: "zig",
    version: "0.17.1",
    command: &["python3", "-m", "ziglang", "version"],
    install: "pip install ziglang==",
};
pub(super) const DEB: PinnedTool = PinnedTool {
    name: "cargo-deb",
    version: "3.8.0",
    command: &["cargo-deb", "--version"],
    install: "cargo install --locked cargo-deb --version",
};
pub(super) const RPM: PinnedTool = PinnedTool {
    name: "cargo-generate-rpm",
    version: "0.21.1",
    command: &["cargo-generate-rpm", "--version"],
    install: "cargo install --locked cargo-generate-rpm --version",
};

/// Prints a version within this time.
const LIMIT: Duration = Duration::from_secs(60);

/// Whether everything is there that packages are made with.
///
/// # Errors
/// What is missing, each with the line that installs it.
pub(super) fn all_for_packages() -> Result<(), Error> {
    let missing: Vec<String> =
        [ZIGBUILD, ZIG, DEB, RPM].iter().filter_map(|tool| tool.missing().err()).collect();
    if missing.is_empty() { Ok(()) } else { Err(Error::Failed(missing.join("\n"))) }
}

impl PinnedTool {
    /// Why it cannot be used, with the line that installs it.
    fn missing(&self) -> Result<(), String> {
        let line = match self.install.strip_suffix("==") {
            Some(install) => format!("{install}=={}", self.version),
            None => format!("{} {}", self.install, self.version),
        };
        let mut command = Command::new(self.command[0]);
        command.args(&self.command[1..]);
        let said = process::run(command, LIMIT).and_then(process::Finished::success);
        let found = match &said {
            Ok(said) => said.stdout.split_whitespace().last().unwrap_or_default(),
            Err(_) => "none",
        };
        if found == self.version {
            return Ok(());
        }
        Err(format!("needs {} {} (found: {found}): {line}", self.name, self.version))
    }
}

/// The first of these programs that is there.
///
/// # Errors
/// The package that holds one.
pub(super) fn either(programs: &[&str], package: &str) -> Result<std::path::PathBuf, Error> {
    let found = programs.iter().find_map(|program| process::find(program));
    found.ok_or_else(|| Error::Failed(format!("needs {}: package {package}", programs[0])))
}

/// What rustc says to these words.
///
/// # Errors
/// If it cannot be started.
pub(super) fn rustc(root: &Path, words: &[&str]) -> Result<String, Error> {
    // That of a build: what RUSTC names, else the one of cargo's own toolchain.
    let cargo = workspace::cargo(root);
    let neighbour = Path::new(cargo.get_program()).with_file_name("rustc");
    let own = if neighbour.exists() { neighbour } else { "rustc".into() };
    let program = std::env::var_os("RUSTC").map_or(own, Into::into);
    let mut command = Command::new(program);
    command.current_dir(root).args(words);
    Ok(process::run(command, LIMIT)?.success()?.stdout.trim().to_owned())
}

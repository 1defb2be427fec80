//! What cargo builds for a guest: the tool, and the tests of a crate with what they expect around
//! them.
//!
//! Built as always, for this machine: the guest has the same Debian's C library. Cargo itself knows
//! what is old, so it is asked each time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::payload::Copy;
use crate::error::Error;
use crate::{process, workspace};

/// Where the guest has programs of ours: on its `PATH`.
pub(super) const FOLDER: &str = "/usr/local/bin";

/// A first build of everything, on a busy machine.
const BUILD_LIMIT: Duration = Duration::from_secs(1800);

/// The tool, as released.
///
/// # Errors
/// When it does not build.
pub(super) fn tool(root: &Path) -> Result<Copy, Error> {
    let built = build(root, &["build", "--release", "-p", "terrace"])?;
    let artifact = built
        .into_iter()
        .next()
        .ok_or_else(|| Error::Failed("cargo built no terrace".to_owned()))?;
    Ok(Copy { source: artifact.path, target: Path::new(FOLDER).join(artifact.name) })
}

/// The tests of `package`: the binaries below /tests, and where their build left the paths, the
/// crate's folder and its program.
///
/// # Errors
/// When they do not build.
pub(super) fn tests(root: &Path, package: &str) -> Result<Vec<Copy>, Error> {
    let built = build(root, &["test", "--no-run", "-p", package])?;
    let mut copies: Vec<Copy> = built
        .into_iter()
        .map(|artifact| Copy {
            target: if artifact.is_test {
                Path::new("/tests").join(artifact.name)
            } else {
                artifact.path.clone()
            },
            source: artifact.path,
        })
        .collect();
    let folder = root.join("crates").join(package);
    if folder.is_dir() {
        copies.push(Copy { source: folder.clone(), target: folder });
    }
    Ok(copies)
}

/// Something to execute that cargo built.
#[derive(Debug, PartialEq, Eq)]
struct Artifact {
    name: String,
    path: PathBuf,
    is_test: bool,
}

fn build(root: &Path, args: &[&str]) -> Result<Vec<Artifact>, Error> {
    let mut cargo = workspace::cargo(root);
    cargo.args(args).args(["--locked", "--message-format=json"]);
    let output = process::run(cargo, BUILD_LIMIT)?.success()?;
    Ok(output.stdout.lines().filter_map(artifact).collect())
}

/// One line of cargo's messages, if it names something to execute.
fn artifact(line: &str) -> Option<Artifact> {
    let message: Value = serde_json::from_str(line).ok()?;
    Some(Artifact {
        name: message["target"]["name"].as_str()?.to_owned(),
        path: message["executable"].as_str()?.into(),
        is_test: message["profile"]["test"].as_bool()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_executed_is_an_artifact() {
        let line = r#"{"reason":"compiler-artifact","target":{"name":"survey"},"profile":{"test":true},"executable":"/t/survey-1f"}"#;
        let expected =
            Artifact { name: "survey".to_owned(), path: "/t/survey-1f".into(), is_test: true };
        assert_eq!(artifact(line), Some(expected));
        assert_eq!(artifact(&line.replace("\"/t/survey-1f\"", "null")), None);
        assert_eq!(artifact("Compiling"), None);
    }
}

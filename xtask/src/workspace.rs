//! Where the workspace is and what cargo says about it.
//!
//! The root is found from the current directory upwards, as cargo does, so that no path of the
//! machine that built this binary is baked in. The packages come from `cargo metadata --no-deps`,
//! which needs no network; only the fields that a rule uses are kept.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::error::Error;
use crate::process;

/// `cargo metadata --no-deps` reads a dozen manifests; a minute means that it hangs on a lock.
const METADATA_LIMIT: Duration = Duration::from_secs(60);

/// One member of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its name, which is also the name of its folder.
    pub name: String,
    /// What its manifest depends on.
    pub dependencies: Vec<Dependency>,
}

/// One entry of a manifest's dependency tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The package that is depended on (not a name that it was renamed to).
    pub name: String,
    /// The table that names it.
    pub kind: Kind,
    /// Whether it is a path dependency, that is, another member.
    pub is_member: bool,
}

/// The dependency table of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `[dependencies]`
    Normal,
    /// `[build-dependencies]`
    Build,
    /// `[dev-dependencies]`
    Dev,
}

/// The nearest directory at or above `start` whose `Cargo.toml` opens a workspace.
///
/// # Errors
/// [`Error::Usage`] outside of the project.
pub fn root(start: &Path) -> Result<PathBuf, Error> {
    start
        .ancestors()
        .find(|directory| {
            std::fs::read_to_string(directory.join("Cargo.toml"))
                .is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
        })
        .map(Path::to_owned)
        .ok_or_else(|| Error::Usage("call this from inside the workspace".to_owned()))
}

/// The workspace root above the current directory.
///
/// # Errors
/// As [`root`], and [`Error::Io`] when the current directory is gone.
pub fn current_root() -> Result<PathBuf, Error> {
    let here = std::env::current_dir().map_err(Error::io("read", Path::new(".")))?;
    root(&here)
}

/// A `cargo` command that runs in `root`, with the same toolchain that runs this program.
///
/// Where `CI` is set nothing is built twice, so state for the next build would only take room: 2 GB
/// of a whole test run.
pub(crate) fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    if std::env::var_os("CI").is_some() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// Something to execute that cargo built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Executable {
    /// The name of its target.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// Its first source, from the workspace root.
    pub(crate) source: String,
    /// The manifest of its package.
    pub(crate) manifest: PathBuf,
    /// Whether it holds tests.
    pub(crate) is_test: bool,
}

/// Runs cargo with `args` and these variables, which build something; what of it can be executed.
/// Cargo's own lines and the compiler's go to standard error.
///
/// # Errors
/// [`Error::Program`] if it does not build.
pub(crate) fn executables(
    root: &Path,
    args: &[&str],
    variables: &[(&str, &str)],
) -> Result<Vec<Executable>, Error> {
    let mut command = cargo(root);
    command.args(args).args(["--locked", "--message-format=json-render-diagnostics"]);
    command.envs(variables.iter().copied());
    let what = format!("cargo {}", args[0]);
    let fail = |why: String| Error::Program { program: what.clone(), what: why };
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| fail(format!("cannot start: {error}")))?;
    if !output.status.success() {
        return Err(fail(output.status.to_string()));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    Ok(messages.lines().filter_map(|line| executable(root, line)).collect())
}

/// One line of cargo's messages, if it names something to execute.
fn executable(root: &Path, line: &str) -> Option<Executable> {
    let message: Value = serde_json::from_str(line).ok()?;
    let text = |pointer: &str| message.pointer(pointer)?.as_str();
    let source = Path::new(text("/target/src_path")?);
    Some(Executable {
        name: text("/target/name")?.to_owned(),
        path: text("/executable")?.into(),
        source: source.strip_prefix(root).unwrap_or(source).to_string_lossy().into_owned(),
        manifest: text("/manifest_path")?.into(),
        is_test: message.pointer("/profile/test")?.as_bool()?,
    })
}

/// What cargo knows about the workspace at `root`, as JSON (`cargo metadata`, format 1, no
/// dependencies).
///
/// # Errors
/// [`Error::Program`] when cargo fails, [`Error::Malformed`] when its output is not JSON.
pub fn metadata(root: &Path) -> Result<Value, Error> {
    let mut command = cargo(root);
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let output = process::run(command, METADATA_LIMIT)?.success()?;
    serde_json::from_str(&output.stdout).map_err(|error| malformed(error.to_string()))
}

/// The members of the workspace in `metadata`, with their dependencies.
///
/// # Errors
/// [`Error::Malformed`] when a field that cargo documents is missing.
pub fn packages(metadata: &Value) -> Result<Vec<Package>, Error> {
    array(metadata, "packages")?.iter().map(package).collect()
}

/// Where cargo puts what it builds, as `metadata` says.
///
/// # Errors
/// [`Error::Malformed`] when the field is missing.
pub fn target_directory(metadata: &Value) -> Result<PathBuf, Error> {
    text(metadata, "target_directory").map(PathBuf::from)
}

fn package(value: &Value) -> Result<Package, Error> {
    let dependencies =
        array(value, "dependencies")?.iter().map(dependency).collect::<Result<_, _>>()?;
    Ok(Package { name: text(value, "name")?, dependencies })
}

fn dependency(value: &Value) -> Result<Dependency, Error> {
    let kind = match value.get("kind").and_then(Value::as_str) {
        None => Kind::Normal,
        Some("build") => Kind::Build,
        Some("dev") => Kind::Dev,
        Some(other) => return Err(malformed(format!("unknown dependency kind {other:?}"))),
    };
    Ok(Dependency {
        name: text(value, "name")?,
        kind,
        is_member: value.get("path").is_some_and(Value::is_string),
    })
}

fn array<'a>(value: &'a Value, field: &str) -> Result<&'a Vec<Value>, Error> {
    value
        .get(field)
        .and_then(Value::as_array)
        .ok_or_else(|| malformed(format!("no list {field:?}")))
}

fn text(value: &Value, field: &str) -> Result<String, Error> {
    value
        .get(field)
        .and_then(Value::as_str)
        .map(str::to_owned)
        .ok_or_else(|| malformed(format!("no text {field:?}")))
}

fn malformed(why: String) -> Error {
    Error::Malformed { what: "cargo metadata", why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_lists_this_package_and_its_dependency() {
        let root = current_root().unwrap();
        let metadata = metadata(&root).unwrap();
        let packages = packages(&metadata).unwrap();
        let own = packages.iter().find(|package| package.name == "xtask").unwrap();
        assert!(own.dependencies.contains(&Dependency {
            name: "serde_json".to_owned(),
            kind: Kind::Normal,
            is_member: false,
        }));
        assert!(target_directory(&metadata).unwrap().is_absolute());
    }

    #[test]
    fn only_what_can_be_executed_is_an_executable() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/a/Cargo.toml","target":{"name":"survey","src_path":"/r/crates/a/tests/survey.rs"},"profile":{"test":true},"executable":"/t/survey-1f"}"#;
        let expected = Executable {
            name: "survey".to_owned(),
            path: "/t/survey-1f".into(),
            source: "crates/a/tests/survey.rs".to_owned(),
            manifest: "/r/crates/a/Cargo.toml".into(),
            is_test: true,
        };
        let root = Path::new("/r");
        assert_eq!(executable(root, line), Some(expected));
        assert_eq!(executable(root, &line.replace("\"/t/survey-1f\"", "null")), None);
        assert_eq!(executable(root, "Compiling"), None);
    }

    #[test]
    fn a_missing_field_is_named() {
        let error = packages(&serde_json::json!({})).unwrap_err();
        assert_eq!(error.to_string(), "cargo metadata: no list \"packages\"");
    }

    #[test]
    fn outside_a_workspace_there_is_no_root() {
        assert!(matches!(root(Path::new("/proc")), Err(Error::Usage(_))));
    }
}

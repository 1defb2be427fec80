//! The binary: linked against glibc 2.28 by `cargo zigbuild`, without a path of the machine that
//! builds it, and split into what runs and what a debugger reads.
//!
//! glibc and not musl: the C library's memcpy is among what is measured.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Release, tools};
use crate::error::Error;
use crate::{process, workspace};

/// That of Debian 10 and of RHEL 8.
pub(super) const GLIBC: (u32, u32) = (2, 28);

/// The profile of `Cargo.toml` that packages are built with.
pub(super) const PROFILE: &str = "dist";

/// To split 100 MB in two.
const SPLIT_LIMIT: Duration = Duration::from_secs(120);

/// What was built.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) program: PathBuf,
    /// Its debug information, which the program names.
    pub(super) debug: PathBuf,
}

/// Why `target` cannot be built here; `None` if it can.
///
/// # Errors
/// If there is no compiler.
pub(super) fn missing(root: &Path, target: &str) -> Result<Option<String>, Error> {
    let known = tools::rustc(root, &["--print", "target-list"])?;
    if !known.lines().any(|line| line == target) || !target.ends_with("-linux-gnu") {
        return Ok(Some("it is not a target of Linux with glibc".to_owned()));
    }
    let libraries = tools::rustc(root, &["--print", "target-libdir", "--target", target])?;
    let mut entries = fs::read_dir(libraries).into_iter().flatten().flatten();
    let is_std = |name: &str| name.starts_with("libstd-");
    if entries.any(|entry| entry.file_name().to_str().is_some_and(is_std)) {
        return Ok(None);
    }
    Ok(Some(format!("its standard library is missing: rustup target add {target}")))
}

/// Builds and splits it; `target_directory` is cargo's.
///
/// # Errors
/// If it does not build.
pub(super) fn build(release: &Release, target_directory: &Path) -> Result<Built, Error> {
    let zig = target_directory.join("zig").join(&release.target);
    let linker = linker(release, &zig)?;
    let mut command = workspace::cargo(&release.root);
    let (major, minor) = GLIBC;
    command.args(["zigbuild", "--locked", "--package", "terrace", "--bin", "terrace"]);
    command.args(["--profile", PROFILE, "--target-dir"]).arg(target_directory);
    command.args(["--target", &format!("{}.{major}.{minor}", release.target)]);
    let renamed = renamed(&release.root)?;
    let flags = |option: &str| -> Vec<String> {
        renamed.iter().map(|(from, to)| format!("{option}={}={to}", from.display())).collect()
    };
    command.env_remove("RUSTFLAGS");
    command.env("CARGO_ENCODED_RUSTFLAGS", flags("--remap-path-prefix").join("\x1f"));
    // Of libraries in C.
    command.env("CFLAGS", flags("-ffile-prefix-map").join(" "));
    let upper = release.target.to_uppercase().replace('-', "_");
    command.env(format!("CARGO_TARGET_{upper}_LINKER"), linker);
    command.env("ZIG_GLOBAL_CACHE_DIR", zig.join("cache"));
    command.env("TERRACE_COMMIT", &release.source.commit);
    command.env("SOURCE_DATE_EPOCH", release.source.epoch_s.to_string());
    command.env("CARGO_INCREMENTAL", "0");
    let fail = |what: String| Error::Program { program: "cargo zigbuild".to_owned(), what };
    let ended = command.stdin(Stdio::null()).status();
    let status = ended.map_err(|error| fail(format!("cannot start: {error}")))?;
    if !status.success() {
        return Err(fail(status.to_string()));
    }
    split(&target_directory.join(&release.target).join(PROFILE).join("terrace"))
}

/// A linker for cargo that calls zig from `/`: what zig adds to a program, start files and an
/// unwinder, names in its debug information where zig was called. Its cache must be new, too.
fn linker(release: &Release, directory: &Path) -> Result<PathBuf, Error> {
    fs::create_dir_all(directory).map_err(Error::io("make", directory))?;
    let (architecture, _) = release.target.split_once('-').unwrap_or_default();
    let (major, minor) = GLIBC;
    let script = format!(
        "#!/bin/sh\ncd / && exec cargo-zigbuild zig cc -- -g -fno-sanitize=all \
         -target {architecture}-linux-gnu.{major}.{minor} \"$@\"\n"
    );
    // By this name rustc knows which options it takes.
    let path = directory.join("zigcc.sh");
    fs::write(&path, script).map_err(Error::io("write", &path))?;
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&path, mode).map_err(Error::io("write", &path))?;
    Ok(path)
}

/// Directories of this machine, and what the binary has instead of each.
pub(super) fn renamed(root: &Path) -> Result<Vec<(PathBuf, &'static str)>, Error> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    let toolchain = PathBuf::from(tools::rustc(root, &["--print", "sysroot"])?);
    // The last one that fits is taken.
    let all = [cargo.map(|path| (path, "/cargo")), Some((toolchain, "/rust"))];
    let own = Some((root.to_owned(), "/terrace"));
    Ok(all.into_iter().chain([own]).flatten().collect())
}

/// Splits `program` into `terrace` and `terrace.debug`, in a directory of their own.
fn split(program: &Path) -> Result<Built, Error> {
    let directory = program.with_file_name("split");
    fs::create_dir_all(&directory).map_err(Error::io("make", &directory))?;
    let (stripped, debug) = (directory.join("terrace"), directory.join("terrace.debug"));
    let objcopy = tools::either(&["llvm-objcopy", "objcopy"], "llvm or binutils")?;
    let run = |words: &[&str], from: &Path, to: &Path| {
        let mut command = Command::new(&objcopy);
        // The link to the debug file holds its name as it is given here.
        command.current_dir(&directory).args(words).arg(from).arg(to);
        process::run(command, SPLIT_LIMIT)?.success().map(drop)
    };
    run(&["--only-keep-debug"], program, &debug)?;
    run(&["--strip-all", "--add-gnu-debuglink=terrace.debug"], program, &stripped)?;
    Ok(Built { program: stripped, debug })
}

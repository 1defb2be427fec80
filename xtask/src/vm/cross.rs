//! How cargo is called for a guest: as always for one like this machine, else with the compiler and
//! the linker of its architecture, in a target directory of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::arch::Arch;
use crate::error::Error;
use crate::process;
use crate::workspace::{self, Executable};

/// Runs cargo with `args`, which build something for `arch`; what of it can be executed.
///
/// # Errors
/// When a part of the toolchain is missing, or it does not build.
pub(crate) fn executables(
    root: &Path,
    arch: Arch,
    args: &[&str],
) -> Result<Vec<Executable>, Error> {
    if arch.target() == Arch::NATIVE.target() {
        return workspace::executables(root, args, &[]);
    }
    let (target, compiler) = (arch.target(), arch.cross_compiler());
    if !has_target(target) {
        let what = format!(
            "rustc has no standard library for {target}: rustup target add {target}, or set RUSTC \
             to one that has it"
        );
        return Err(Error::Failed(what));
    }
    if process::find(compiler).is_none() {
        let kind = compiler.trim_end_matches("-gcc").replace('_', "-");
        return Err(Error::Failed(format!("no {compiler}: apt-get install gcc-{kind}")));
    }
    let directory = target_directory(root, arch)?.to_string_lossy().into_owned();
    let upper = target.to_uppercase().replace('-', "_");
    let linker = format!("CARGO_TARGET_{upper}_LINKER");
    // Symbols of the tests of a crate are hundreds of megabytes, which each guest would be given.
    let variables = [(linker.as_str(), compiler), ("CARGO_PROFILE_DEV_DEBUG", "0")];
    let mut args = args.to_vec();
    args.extend(["--target", target, "--target-dir", &directory]);
    workspace::executables(root, &args, &variables)
}

/// Where cargo builds for `arch`.
fn target_directory(root: &Path, arch: Arch) -> Result<PathBuf, Error> {
    let own = workspace::target_directory(&workspace::metadata(root)?)?;
    Ok(if arch.target() == Arch::NATIVE.target() { own } else { own.join(arch.target()) })
}

/// What tests that were built for `arch` know as `CARGO_TARGET_TMPDIR`.
///
/// # Errors
/// When cargo does not answer.
pub(crate) fn temporary_directory(root: &Path, arch: Arch) -> Result<PathBuf, Error> {
    let directory = target_directory(root, arch)?;
    let is_native = arch.target() == Arch::NATIVE.target();
    Ok(if is_native { directory.join("tmp") } else { directory.join(arch.target()).join("tmp") })
}

/// Whether rustc has the standard library of `target`.
pub(crate) fn has_target(target: &str) -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output =
        Command::new(rustc).args(["--print", "target-libdir", "--target", target]).output();
    output.is_ok_and(|output| {
        let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success() && Path::new(&path).is_dir()
    })
}

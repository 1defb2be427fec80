//! What cargo builds for a guest: the tool, and the tests of a crate with what they expect around
//! them.
//!
//! The guest has the C library of the same Debian. Cargo itself knows what is old, so it is asked
//! each time.

use std::path::Path;

use super::arch::Arch;
use super::cross;
use super::payload::Copy;
use crate::error::Error;

/// Where the guest has programs of ours: on its `PATH`.
pub(super) const FOLDER: &str = "/usr/local/bin";

/// The tool, as released.
///
/// # Errors
/// When it does not build.
pub(super) fn tool(root: &Path, arch: Arch) -> Result<Copy, Error> {
    let built = cross::executables(root, arch, &["build", "--release", "-p", "terrace"])?;
    let missing = || Error::Failed("cargo built no terrace".to_owned());
    let program = built.into_iter().next().ok_or_else(missing)?;
    Ok(Copy { source: program.path, target: Path::new(FOLDER).join(program.name) })
}

/// The tests of `package`: the binaries below /tests, and where their build left the paths, the
/// crate's folder and its program.
///
/// # Errors
/// When they do not build.
pub(super) fn tests(root: &Path, arch: Arch, package: &str) -> Result<Vec<Copy>, Error> {
    let built = cross::executables(root, arch, &["test", "--no-run", "-p", package])?;
    let mut copies: Vec<Copy> = built
        .into_iter()
        .map(|program| Copy {
            target: if program.is_test {
                Path::new("/tests").join(program.name)
            } else {
                program.path.clone()
            },
            source: program.path,
        })
        .collect();
    let folder = root.join("crates").join(package);
    if folder.is_dir() {
        copies.push(Copy { source: folder.clone(), target: folder });
    }
    Ok(copies)
}

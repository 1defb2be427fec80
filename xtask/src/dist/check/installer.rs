//! `install.sh` with the real archive: into an empty prefix and out of it again, and with an
//! archive that was damaged on the way.

use std::fs;
use std::path::Path;

use super::{Command, Finding, LIMIT, Looked, Packages, emptied, process, said};
use crate::dist::{SUMS, read};
use crate::error::Error;

/// Installs, runs, removes; nothing is left.
pub(super) fn installs(packages: &Packages) -> Looked {
    let prefix = packages.unpacked.with_file_name("prefix");
    emptied(&prefix)?;
    let install = |words: &[&str]| {
        let mut command = Command::new("sh");
        command.arg(packages.out.join("install.sh")).args(words).arg("--prefix").arg(&prefix);
        process::run(command, LIMIT)?.success().map(drop)
    };
    install(&[&packages.out.to_string_lossy()])?;
    let version = said(Command::new(prefix.join("bin/terrace")), &["--version"])?;
    let files = count(&prefix)?;
    install(&["--uninstall"])?;
    let left = count(&prefix)?;
    let version = version.lines().next().unwrap_or_default().to_owned();
    Ok(match left {
        0 => Finding::Held(format!("{files} files, {version}, none left by --uninstall")),
        left => Finding::Failed(format!("{left} of {files} files left by --uninstall")),
    })
}

/// One byte of the archive is another: nothing is installed.
pub(super) fn refuses(packages: &Packages) -> Looked {
    let folder = packages.unpacked.with_file_name("damaged");
    let prefix = packages.unpacked.with_file_name("prefix");
    emptied(&folder)?;
    emptied(&prefix)?;
    let name = format!("{}.tar.gz", packages.release.name());
    let mut bytes = read(&packages.out.join(&name))?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(Error::io("write", &path))
    };
    write(&name, &bytes)?;
    write(SUMS, &read(&packages.out.join(SUMS))?)?;
    let mut command = Command::new("sh");
    command.arg(packages.out.join("install.sh")).arg(&folder).arg("--prefix").arg(&prefix);
    let refused = process::run(command, LIMIT)?;
    let said = refused.stderr.trim().to_owned();
    let is_refused = refused.success().is_err() && said.contains("damaged");
    Ok(if is_refused && count(&prefix)? == 0 {
        Finding::Held(said)
    } else {
        Finding::Failed(format!("not refused: {said}"))
    })
}

/// Entries below a directory.
fn count(directory: &Path) -> Result<usize, Error> {
    let mut number = 0;
    for entry in fs::read_dir(directory).map_err(Error::io("list", directory))? {
        let path = entry.map_err(Error::io("list", directory))?.path();
        number += 1;
        if path.is_dir() {
            number += count(&path)?;
        }
    }
    Ok(number)
}

//! `.deb` and `.rpm` by `cargo deb` and `cargo generate-rpm`, from one directory of files.
//!
//! What the packages are called, need and run is in `crates/terrace/Cargo.toml` and `packaging/`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::Release;
use super::archive::FileTree;
use crate::error::Error;
use crate::{process, workspace};

/// Packs 12 MB.
const LIMIT: Duration = Duration::from_secs(300);

/// Where Debian's zsh looks, in place of the prefix's own functions.
const ZSH: (&str, &str) = ("share/zsh/site-functions/", "share/zsh/vendor-completions/");

/// Makes both in `out`.
///
/// # Errors
/// If a file cannot be written or a tool refuses.
pub(super) fn both(release: &Release, tree: &FileTree, out: &Path) -> Result<(), Error> {
    let root = release.work.join("root");
    for (package, is_debian) in [("deb", true), ("generate-rpm", false)] {
        lay_out(&root, tree, is_debian)?;
        let mut command = workspace::cargo(&release.root);
        command.arg(package).env("SOURCE_DATE_EPOCH", release.source.epoch_s.to_string());
        if is_debian {
            command.args(["--no-build", "--no-strip", "--package", "terrace"]);
            command.args(["--compress-type", "xz", "--output"]).arg(out);
        } else {
            command.args(["--package", "crates/terrace", "--payload-compress", "gzip"]);
            command.args(["--output"]).arg(out);
        }
        command.args(["--target", &release.target]);
        finished(command)?;
    }
    Ok(())
}

fn finished(command: Command) -> Result<(), Error> {
    process::run(command, LIMIT)?.success().map(drop)
}

/// Writes the files as they are below `/` after an installation.
fn lay_out(root: &Path, tree: &FileTree, is_debian: bool) -> Result<(), Error> {
    if root.exists() {
        fs::remove_dir_all(root).map_err(Error::io("empty", root))?;
    }
    for (name, file) in tree {
        let name = if is_debian { name.replace(ZSH.0, ZSH.1) } else { name.clone() };
        let path = root.join("usr").join(name);
        let folder = path.parent().unwrap_or(root);
        fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
        fs::write(&path, &file.bytes).map_err(Error::io("write", &path))?;
        let mode = fs::Permissions::from_mode(if file.is_program { 0o755 } else { 0o644 });
        fs::set_permissions(&path, mode).map_err(Error::io("write", &path))?;
    }
    Ok(())
}

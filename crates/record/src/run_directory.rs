//! The directory for what lives no longer than the machine runs: the sockets of recorders for
//! marks, and where the functions of its kernel lie.
//!
//! Root has /run/terrace; others the one of their session, else one among the temporary
//! files that must be theirs alone. A directory that somebody else could write to is refused: whoever puts a
//! socket there would hear the marks.

use crate::{Error, Kind, Result};
use std::fs::{DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The directory of this user, made if it was not there.
///
/// # Errors
/// When it cannot be made, or is not this user's alone.
pub(crate) fn own() -> Result<PathBuf> {
    let path = place();
    make(&path, sys::process::effective_uid())?;
    Ok(path)
}

/// Where it is, whether it exists or not.
pub(crate) fn place() -> PathBuf {
    let uid = sys::process::effective_uid();
    if uid == 0 {
        return PathBuf::from("/run/terrace");
    }
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|path| Path::new(path).is_absolute()) {
        Some(session) => PathBuf::from(session).join("terrace"),
        None => std::env::temp_dir().join(format!("terrace-{uid}")),
    }
}

/// Makes the directory for `uid`, or checks that the one that is there is good.
fn make(path: &Path, uid: u32) -> Result<()> {
    let made = DirBuilder::new().mode(0o700).create(path);
    if let Err(error) = made
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        return Err(Error::io("make the directory", path, error));
    }
    check(path, uid)
}

/// Refuses a directory that is not `uid`'s alone.
pub(crate) fn check(path: &Path, uid: u32) -> Result<()> {
    // Not followed: a link of somebody else may point anywhere.
    let found = std::fs::symlink_metadata(path)
        .map_err(|error| Error::io("look at the directory", path, error))?;
    match fault(&found, uid) {
        None => Ok(()),
        Some(why) => Err(Error::new(Kind::Impossible, "use the directory", why).at(path)),
    }
}

fn fault(found: &Metadata, uid: u32) -> Option<&'static str> {
    /// Write permission of the group and of everybody.
    const OTHERS_WRITE: u32 = 0o022;
    if !found.is_dir() {
        Some("it is no directory")
    } else if found.uid() != uid {
        Some("it belongs to another user")
    } else if found.mode() & OTHERS_WRITE != 0 {
        Some("others may write to it")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use testkit::TempDir;

    #[test]
    fn it_is_made_once_and_used_again() {
        let parent = TempDir::new();
        let path = parent.join("terrace");
        let uid = sys::process::effective_uid();
        make(&path, uid).unwrap();
        make(&path, uid).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }

    #[test]
    fn one_that_others_can_write_to_is_refused() {
        let parent = TempDir::new();
        let uid = sys::process::effective_uid();
        let open = parent.join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
        let text = make(&open, uid).unwrap_err().to_string();
        assert!(text.contains("others may write"), "{text}");
        let link = parent.join("link");
        std::os::unix::fs::symlink(parent.path(), &link).unwrap();
        let text = make(&link, uid).unwrap_err().to_string();
        assert!(text.contains("no directory"), "{text}");
        let text = check(parent.path(), uid + 1).unwrap_err().to_string();
        assert!(text.contains("another user"), "{text}");
    }
}

//! The directory for what is kept until the machine restarts: the recorders' sockets for marks, and
//! the addresses of the kernel's functions.
//!
//! Root has /run/terrace; other users have the one of their session, or one among the temporary
//! files, which must belong to them alone. A directory that another user can write to is refused: a
//! socket of that user would receive the marks.

use crate::Result;
use std::path::{Path, PathBuf};
use sys::directory::Directory;

/// The file for the types of the kernel.
pub(crate) const KERNEL_TYPES: &str = "kernel-types";
/// The file for the functions of the kernel.
pub(crate) const FUNCTIONS: &str = "functions";
/// The file for the functions of the kernel by which processor time is divided.
pub(crate) const PROCESSOR_FUNCTIONS: &str = "processor-functions";
/// What is kept of the kernel.
pub(crate) const KEPT_OF_KERNEL: [&str; 3] = [KERNEL_TYPES, FUNCTIONS, PROCESSOR_FUNCTIONS];

/// The directory of this user, made if it was not there.
///
/// # Errors
/// When it cannot be made, or is not this user's alone.
pub fn own() -> Result<Directory> {
    Ok(Directory::create_private(&place())?)
}

/// The directory of this user; `None` if it does not exist.
///
/// # Errors
/// When it is not this user's alone, or cannot be opened.
pub fn existing() -> Result<Option<Directory>> {
    existing_at(&place())
}

fn existing_at(path: &Path) -> Result<Option<Directory>> {
    match Directory::open_private(path) {
        Err(error) if error.kind == sys::ErrorKind::NotFound => Ok(None),
        opened => Ok(Some(opened?)),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    #[test]
    fn what_does_not_exist_is_no_error_and_what_others_can_change_is_one() {
        use std::os::unix::fs::PermissionsExt;
        let parent = TempDir::new();
        let path = parent.join("terrace");
        assert!(existing_at(&path).unwrap().is_none());
        Directory::create_private(&path).unwrap();
        assert!(existing_at(&path).unwrap().is_some());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        let text = existing_at(&path).unwrap_err().to_string();
        assert!(text.contains("others may write"), "{text}");
    }
}

//! Hidden directories of a process, held by a lock: what killed processes left is removed by the
//! next one that needs such a directory there.

use crate::Result;
use crate::tree::remove_below;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use sys::directory::Directory;
use sys::lock::{self, LockMode};

const OWNER_ONLY: u32 = 0o700;

/// Makes a hidden directory in `holder`, locked, whose name begins with `prefix`. Those of dead
/// processes are removed first.
///
/// # Errors
/// As for making it.
pub(super) fn make(holder: &Directory, prefix: &str) -> Result<(OsString, Directory)> {
    sweep(holder, prefix);
    let name = OsString::from(format!("{prefix}{:016x}", sys::random::seed()?));
    let hidden = holder.create_subdirectory(&name, OWNER_ONLY)?;
    lock::try_take(hidden.file(), LockMode::Exclusive)?;
    Ok((name, hidden))
}

/// Removes hidden directories of this user that no process holds.
pub(super) fn sweep(holder: &Directory, prefix: &str) {
    // What cannot be listed or removed now is tried again next time.
    for name in holder.names().unwrap_or_default() {
        if is_hidden(&name, prefix)
            && let Ok(left) = holder.subdirectory(&name)
            && left.fault_of_itself().is_ok_and(|fault| fault.is_none())
            && lock::try_take(left.file(), LockMode::Exclusive).unwrap_or(false)
            && remove_below(&left).is_ok()
        {
            let _ = holder.remove_directory(&name);
        }
    }
}

fn is_hidden(name: &OsStr, prefix: &str) -> bool {
    let digits = name.as_bytes().strip_prefix(prefix.as_bytes());
    digits.is_some_and(|digits| digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))
}

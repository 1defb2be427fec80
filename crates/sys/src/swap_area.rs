//! Swap areas: a file is made one, switched on and switched off.
//!
//! Owns `swapon`, `swapoff` and the header that marks an area (mkswap(8) writes the same; the
//! union `swap_header` of linux/swap.h). Switching off brings everything in it back into
//! memory first, so it can take minutes; a signal ends it and leaves the area on.

use crate::error::{Error, Result, check};
use std::ffi::CString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The highest priority: the kernel fills this area before all others.
pub const FIRST: u16 = 0x7fff;
/// `SWAP_FLAG_PREFER` of linux/swap.h: the lower bits are a priority.
const PREFER: libc::c_int = 0x8000;
const INFO_OFFSET: u64 = 1024;
const VERSION: u32 = 1;
const MAGIC: &[u8] = b"SWAPSPACE2";

/// Marks `file`, which is `bytes` long and has no holes, as a swap area.
///
/// # Errors
/// `Invalid` for a size without room for a page beside the header, or with too many pages.
pub fn mark(file: &File, bytes: u64) -> Result<()> {
    const OPERATION: &str = "mark a swap area";
    let page_bytes = crate::process::page_bytes() as u64;
    let pages = (bytes / page_bytes).saturating_sub(1);
    let last_page = u32::try_from(pages)
        .ok()
        .filter(|last_page| *last_page > 0)
        .ok_or_else(|| Error::invalid(OPERATION, "no swap area has such a size"))?;
    let info = [VERSION, last_page, 0].map(u32::to_ne_bytes).concat();
    file.write_all_at(&info, INFO_OFFSET)
        .and_then(|()| file.write_all_at(MAGIC, page_bytes - MAGIC.len() as u64))
        .and_then(|()| file.sync_all())
        .map_err(|error| Error::new(OPERATION, error))
}

/// Switches the area on with this priority, at most [`FIRST`].
///
/// # Errors
/// `Denied` without CAP_SYS_ADMIN; `Invalid` for a file that is no area, or on a file system
/// that cannot hold one.
pub fn on(path: &Path, priority: u16) -> Result<()> {
    const OPERATION: &str = "switch swap on";
    let name = name(OPERATION, path)?;
    let flags = PREFER | libc::c_int::from(priority.min(FIRST));
    // SAFETY: the path is a C string that lives until after the call.
    let answer = unsafe { libc::swapon(name.as_ptr(), flags) };
    check(OPERATION, answer).map(drop).map_err(|error| error.at(path))
}

/// Brings back all that is in the area and switches it off.
///
/// # Errors
/// `Invalid` for an area that is not on; `Denied` without CAP_SYS_ADMIN; the kernel's word
/// where memory does not suffice or a signal came.
pub fn off(path: &Path) -> Result<()> {
    const OPERATION: &str = "switch swap off";
    let name = name(OPERATION, path)?;
    // SAFETY: the path is a C string that lives until after the call.
    let answer = unsafe { libc::swapoff(name.as_ptr()) };
    check(OPERATION, answer).map(drop).map_err(|error| error.at(path))
}

fn name(operation: &'static str, path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::invalid(operation, "the path holds a zero byte"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    #[test]
    fn a_file_becomes_an_area_and_is_none_without_its_mark() {
        if !testkit::is_admin() {
            return testkit::skip("root outside of a container");
        }
        let directory = TempDir::new();
        let path = directory.join("area");
        let bytes = 2 << 20;
        std::fs::write(&path, vec![0; bytes]).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        assert_eq!(on(&path, 0).unwrap_err().kind, crate::ErrorKind::Invalid);
        mark(&file, bytes as u64).unwrap();
        let listed = || {
            let text = std::fs::read_to_string("/proc/swaps").unwrap();
            let line = text.lines().find(|line| line.starts_with(path.to_str().unwrap()));
            line.map(|line| line.split_whitespace().nth(2).unwrap().to_owned())
        };
        on(&path, 7).unwrap();
        let size = listed();
        off(&path).unwrap();
        // One page is the header.
        assert_eq!(size, Some((2048 - crate::process::page_bytes() / 1024).to_string()));
        assert_eq!(listed(), None);
        assert_eq!(off(&path).unwrap_err().kind, crate::ErrorKind::Invalid);
    }

    #[test]
    fn an_area_has_at_least_a_page() {
        let directory = TempDir::new();
        let file = File::create(directory.join("area")).unwrap();
        let page_bytes = crate::process::page_bytes() as u64;
        assert!(mark(&file, page_bytes).is_err());
        assert!(mark(&file, page_bytes << 33).is_err());
    }
}

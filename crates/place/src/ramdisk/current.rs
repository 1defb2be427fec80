//! The directory that entries are taken from or made in, one after the other by their paths.
//!
//! Each path is opened component by component: no link is followed, and a path may have any length.
//! A path below the current one is opened from there, so a deep tree costs one step a level.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use sys::directory::Directory;

/// A top directory, and the last one below it that was asked for.
#[derive(Debug)]
pub(super) struct CurrentDirectory {
    top: Directory,
    current: Option<(Vec<u8>, Directory)>,
}

impl CurrentDirectory {
    pub(super) fn new(top: Directory) -> Self {
        Self { top, current: None }
    }

    /// The directory with this path below the top; the top itself for an empty one.
    pub(super) fn enter(&mut self, path: &[u8]) -> sys::Result<&Directory> {
        if path.is_empty() {
            return Ok(&self.top);
        }
        let opened = match self.current.take() {
            Some((current, directory)) if current == path => directory,
            Some((current, directory)) => match rest_below(path, &current) {
                Some(rest) => open_below(directory, rest)?,
                None => open_below(self.top.reopen()?, path)?,
            },
            None => open_below(self.top.reopen()?, path)?,
        };
        Ok(&self.current.insert((path.to_vec(), opened)).1)
    }

    /// A directory of its own, beside the current one.
    pub(super) fn open(&self, path: &[u8]) -> sys::Result<Directory> {
        open_below(self.top.reopen()?, path)
    }
}

/// The path of the parent and the name.
pub(super) fn split(path: &[u8]) -> (&[u8], &OsStr) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], OsStr::from_bytes(&path[slash + 1..])),
        None => (&[], OsStr::from_bytes(path)),
    }
}

/// What follows `top` and a slash in a path.
fn rest_below<'p>(path: &'p [u8], top: &[u8]) -> Option<&'p [u8]> {
    path.strip_prefix(top)?.strip_prefix(b"/")
}

fn open_below(top: Directory, path: &[u8]) -> sys::Result<Directory> {
    let mut current = top;
    for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        current = current.subdirectory(OsStr::from_bytes(name))?;
    }
    Ok(current)
}

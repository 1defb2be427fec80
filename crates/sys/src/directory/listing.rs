//! The entries of a directory, read in pieces from any place in it.
//!
//! The kernel numbers the places between the entries. With such a number a directory that was
//! closed meanwhile is read on from there. As with every way to list a directory, an entry that is
//! made or removed meanwhile may or may not be met.

use super::{Directory, failed};
use crate::error::Result;
use rustix::fs::{RawDir, SeekFrom};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;

/// As much as the C library reads at once.
const BUFFER_BYTES: usize = 32 << 10;

/// An entry as its directory lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    /// The number of its inode; that of the directory below where something is mounted. FAT may
    /// number it anew at each listing.
    pub inode: u64,
    /// Its name: any bytes but `/` and 0.
    pub name: OsString,
}

impl Directory {
    /// Appends the next entries, without `.` and `..`, as many as fit into 32 KiB. Returns the
    /// place behind them, or `None` at the end of the directory.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn list_some(&self, entries: &mut Vec<ListedEntry>) -> Result<Option<u64>> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut listing = RawDir::new(self.file(), &mut buffer);
        loop {
            let Some(next) = listing.next() else {
                return Ok(None);
            };
            let entry =
                next.map_err(|errno| failed("read the directory", errno).at(self.path()))?;
            let place = entry.next_entry_cookie();
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                let name = OsStr::from_bytes(name).to_owned();
                entries.push(ListedEntry { inode: entry.ino(), name });
            }
            // What is read behind it would be lost with the buffer.
            if listing.is_buffer_empty() {
                return Ok(Some(place));
            }
        }
    }

    /// Makes [`Directory::list_some`] go on at `place`, which it returned for this directory; 0 is
    /// its beginning.
    ///
    /// # Errors
    /// Where the file system cannot go to a place.
    pub fn list_from(&self, place: u64) -> Result<()> {
        rustix::fs::seek(self.file(), SeekFrom::Start(place))
            .map(drop)
            .map_err(|errno| failed("read the directory", errno).at(self.path()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use testkit::TempDir;

    #[test]
    fn a_listing_goes_on_where_it_ended_in_another_opening() {
        let directory = TempDir::new();
        let expected: BTreeSet<OsString> =
            (0..3000).map(|number| format!("entry-{number:05}").into()).collect();
        for name in &expected {
            std::fs::write(directory.join(name), b"").unwrap();
        }
        let mut listed = Vec::new();
        let mut place = Some(0);
        let mut pieces = 0;
        while let Some(next) = place {
            let held = Directory::open(directory.path()).unwrap();
            held.list_from(next).unwrap();
            place = held.list_some(&mut listed).unwrap();
            pieces += 1;
        }
        assert!(pieces > 2, "{pieces}");
        assert!(listed.iter().all(|entry| entry.inode > 0));
        assert_eq!(listed.len(), expected.len());
        let names: BTreeSet<OsString> = listed.into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, expected);
    }
}

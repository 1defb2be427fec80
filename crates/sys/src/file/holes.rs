//! Where a file has data and where holes, by `SEEK_DATA` and `SEEK_HOLE`. Pages of shared
//! memory that are in swap are data.

use super::signed;
use crate::error::{Error, Result};
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// The first range of data at or behind `from`; `None` where only holes follow. Moves the
/// file's position. A file system that does not report holes says that all is data.
///
/// # Errors
/// `Invalid` for an offset beyond any file and for what cannot be sought in.
pub fn next_data(file: &File, from: u64) -> Result<Option<Range<u64>>> {
    let Some(start) = seek(file, from, libc::SEEK_DATA)? else {
        return Ok(None);
    };
    // The end of the file counts as a hole; without one the file was cut.
    let end = seek(file, start, libc::SEEK_HOLE)?;
    Ok(end.map(|end| start..end))
}

/// The offset that `lseek` finds; `None` behind the last one.
fn seek(file: &File, from: u64, what: libc::c_int) -> Result<Option<u64>> {
    const OPERATION: &str = "look for holes";
    let from = signed(OPERATION, from)?;
    // SAFETY: takes a descriptor and numbers; touches no memory of ours.
    let answer = unsafe { libc::lseek(file.as_raw_fd(), from, what) };
    match u64::try_from(answer) {
        Ok(offset) => Ok(Some(offset)),
        Err(_) => match Error::last(OPERATION) {
            error if error.number() == Some(libc::ENXIO) => Ok(None),
            error => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use testkit::TempDir;

    #[test]
    fn data_is_found_between_holes() {
        let directory = TempDir::new();
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(directory.join("file"))
            .unwrap();
        let middle = 1 << 20;
        file.write_all_at(&[1; 4096], middle).unwrap();
        file.set_len(4 * middle).unwrap();
        let first = next_data(&file, 0).unwrap().unwrap();
        if first.start == 0 {
            return testkit::skip("a file system with holes");
        }
        assert_eq!(first, middle..middle + 4096);
        assert_eq!(next_data(&file, first.end).unwrap(), None);
        assert_eq!(next_data(&file, 8 * middle).unwrap(), None);
    }
}

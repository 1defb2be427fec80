//! Where a file has data and where holes, by `SEEK_DATA` and `SEEK_HOLE`. Pages of shared
//! memory that are in swap are data.

use super::signed;
use crate::error::{Result, failed};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::ops::Range;

const OPERATION: &str = "look for holes";

/// The first range of data at or behind `from`; `None` where only holes follow. Moves the
/// file's position. A file system that does not report holes says that all is data.
///
/// # Errors
/// `Invalid` for an offset beyond any file and for what cannot be sought in.
pub fn next_data(file: &File, from: u64) -> Result<Option<Range<u64>>> {
    signed(OPERATION, from)?;
    let Some(start) = find(file, SeekFrom::Data(from))? else {
        return Ok(None);
    };
    // The end of the file counts as a hole; without one the file was cut.
    let end = find(file, SeekFrom::Hole(start))?;
    Ok(end.map(|end| start..end))
}

/// The offset that `lseek` finds; `None` behind the last one.
fn find(file: &File, what: SeekFrom) -> Result<Option<u64>> {
    match seek(file, what) {
        Err(Errno::NXIO) => Ok(None),
        answer => answer.map(Some).map_err(failed(OPERATION)),
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

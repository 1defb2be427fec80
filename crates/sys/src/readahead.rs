//! `readahead`: the kernel begins to read a part of a file into the page cache.
//!
//! It neither waits nor touches the file's times. One call brings no more than the device's
//! own read-ahead or its largest request, whichever is more, and silently drops the rest: ask
//! in steps of [`STEP_BYTES`].

use crate::error::{Result, count};
use std::fs::File;
use std::os::fd::AsRawFd;

/// What one call brings on every device: the kernel's default read-ahead.
pub const STEP_BYTES: u64 = 128 << 10;

/// Begins to read `bytes` bytes from `offset`.
///
/// # Errors
/// `Invalid` for what has no page cache; `Device` where the request cannot be made.
pub fn readahead(file: &File, offset: u64, bytes: u64) -> Result<()> {
    const OPERATION: &str = "read ahead";
    let offset = crate::file::signed(OPERATION, offset)?;
    // More than the address space is more than any step.
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    // SAFETY: takes a descriptor and numbers; touches no memory of ours.
    count(OPERATION, || unsafe { libc::readahead(file.as_raw_fd(), offset, bytes) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::MappedFile;
    use crate::file::{CacheAdvice, advise, read_at, sync_data};
    use testkit::TempDir;

    #[test]
    fn a_step_is_in_memory_after_its_last_byte_was_read() {
        let directory = TempDir::new();
        let path = directory.join("file");
        std::fs::write(&path, vec![7; 4 * STEP_BYTES as usize]).unwrap();
        let file = File::open(&path).unwrap();
        sync_data(&file).unwrap();
        advise(&file, 0, 0, CacheAdvice::DontNeed).unwrap();
        let resident = |offset| {
            let window = MappedFile::part(&file, offset, STEP_BYTES).unwrap();
            window.resident().unwrap().iter().all(|there| *there)
        };
        if resident(STEP_BYTES) {
            return testkit::skip("a temporary directory on a disk");
        }
        readahead(&file, STEP_BYTES, STEP_BYTES).unwrap();
        read_at(&file, &mut [0], 2 * STEP_BYTES - 1).unwrap();
        assert!(resident(STEP_BYTES));
    }

    #[test]
    fn a_pipe_has_no_page_cache() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let reader = File::from(std::os::fd::OwnedFd::from(reader));
        assert_eq!(readahead(&reader, 0, 1).unwrap_err().kind, crate::ErrorKind::Invalid);
    }
}

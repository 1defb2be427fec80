//! An anonymous pipe of a chosen capacity.
//!
//! Used to copy memory the way two processes would. Both ends close on exec and on drop.

use crate::error::{Error, Result, check};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

/// A pipe as (reading end, writing end) that holds at least `capacity` bytes.
///
/// # Errors
/// `Denied` beyond `/proc/sys/fs/pipe-max-size` without CAP_SYS_RESOURCE; `Invalid` for a
/// capacity that no pipe can have.
pub fn pair(capacity: usize) -> Result<(File, File)> {
    const OPERATION: &str = "make a pipe";
    let mut ends = [-1; 2];
    // SAFETY: `ends` is room for the two descriptors that the call stores.
    check(OPERATION, unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: the call succeeded, so both are open and have no other owner.
    let (reader, writer) = unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
    let wanted = libc::c_int::try_from(capacity)
        .map_err(|_| Error::invalid(OPERATION, "the capacity is too large"))?;
    // SAFETY: takes an open descriptor and a number; touches no memory of ours.
    let got = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, wanted) };
    check("set the capacity of a pipe", got)?;
    Ok((reader, writer))
}

#[cfg(test)]
mod tests {
    use super::pair;
    use crate::ErrorKind;
    use std::io::{Read, Write};

    #[test]
    fn holds_its_capacity_without_a_reader() {
        let (mut reader, mut writer) = pair(256 * 1024).unwrap();
        let sent: Vec<u8> = (0..256 * 1024).map(|i| (i % 251) as u8).collect();
        writer.write_all(&sent).unwrap();
        drop(writer);
        let mut received = Vec::new();
        reader.read_to_end(&mut received).unwrap();
        assert!(received == sent);
    }

    #[test]
    fn absurd_capacity_is_an_error() {
        assert_eq!(pair(usize::MAX).unwrap_err().kind, ErrorKind::Invalid);
    }

    #[test]
    fn a_closed_reader_gives_an_error_and_no_signal() {
        let (reader, mut writer) = pair(4096).unwrap();
        drop(reader);
        let error = writer.write(b"x").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    }
}

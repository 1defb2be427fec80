//! An anonymous pipe, also one of a chosen capacity, which copies memory the way two processes
//! would. Both ends close on exec and on drop.

use crate::error::{Error, Result, failed};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use std::fs::File;
use std::os::fd::OwnedFd;

const OPERATION: &str = "make a pipe";

/// A pipe as (reading end, writing end).
pub(crate) fn make() -> Result<(OwnedFd, OwnedFd)> {
    pipe_with(PipeFlags::CLOEXEC).map_err(failed(OPERATION))
}

/// A pipe as (reading end, writing end) that holds at least `capacity` bytes.
///
/// # Errors
/// `Denied` beyond `/proc/sys/fs/pipe-max-size` without CAP_SYS_RESOURCE; `Invalid` for a
/// capacity that no pipe can have.
pub fn pair(capacity: usize) -> Result<(File, File)> {
    let (reader, writer) = make()?;
    i32::try_from(capacity).map_err(|_| Error::invalid(OPERATION, "the capacity is too large"))?;
    fcntl_setpipe_size(&writer, capacity).map_err(failed("set the capacity of a pipe"))?;
    Ok((reader.into(), writer.into()))
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

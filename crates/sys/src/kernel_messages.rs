//! The kernel's ring of messages, `/dev/kmsg`, read from its oldest record on.
//!
//! Each read gives one record. Readers do not disturb each other, and nothing is taken out of the
//! ring. What a record holds is parsed elsewhere.

use crate::error::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind as IoKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

const PATH: &str = "/dev/kmsg";
const OPEN: &str = "open";
/// The numbers of the device (Documentation/admin-guide/devices.txt). Some containers have a link
/// to their console under this name.
const DEVICE: (u32, u32) = (1, 11);
/// The kernel refuses a buffer that is shorter than the record; it makes none longer than 8 KiB
/// (`CONSOLE_EXT_LOG_MAX`, `PRINTKRB_RECORD_MAX`).
const RECORD_BYTES_MAX: usize = 16 << 10;

/// The ring, open.
#[derive(Debug)]
pub struct KernelMessages {
    file: File,
    buffer: Vec<u8>,
}

/// What a read of the ring gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelMessage<'a> {
    /// One record: `prefix;text`, then lines with what belongs to it.
    Record(&'a [u8]),
    /// Records that were next are gone: newer ones took their place.
    Overwritten,
    /// There is no newer record.
    End,
}

impl KernelMessages {
    /// Opens the ring at its oldest record.
    ///
    /// # Errors
    /// `Denied` for users without `CAP_SYSLOG` where `kernel.dmesg_restrict` is 1; `NotFound` in
    /// containers, which seldom have the device.
    pub fn open() -> Result<Self> {
        let fail = |error: Error| error.at(PATH);
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(PATH)
            .map_err(|source| fail(Error::new(OPEN, source)))?;
        let about = file.metadata().map_err(|source| fail(Error::new(OPEN, source)))?;
        let device = about.rdev();
        let is_ring = about.file_type().is_char_device()
            && (rustix::fs::major(device), rustix::fs::minor(device)) == DEVICE;
        if !is_ring {
            return Err(fail(Error::invalid(OPEN, "it is another file")));
        }
        Ok(Self { file, buffer: vec![0; RECORD_BYTES_MAX] })
    }

    /// Reads the next record; waits for none.
    ///
    /// # Errors
    /// `Denied` where a security module refuses it; others are not known.
    pub fn next_message(&mut self) -> Result<KernelMessage<'_>> {
        loop {
            match self.file.read(&mut self.buffer) {
                Ok(0) => return Ok(KernelMessage::End),
                Ok(bytes) => return Ok(KernelMessage::Record(&self.buffer[..bytes])),
                Err(error) if error.kind() == IoKind::Interrupted => {}
                Err(error) if error.kind() == IoKind::WouldBlock => return Ok(KernelMessage::End),
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {
                    return Ok(KernelMessage::Overwritten);
                }
                Err(source) => return Err(Error::new("read", source).at(PATH)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_in_their_order_and_have_an_end() {
        let mut ring = match KernelMessages::open() {
            Ok(ring) => ring,
            Err(error) => return testkit::skip(format!("the kernel's messages: {error}")),
        };
        let mut sequences: Vec<u64> = Vec::new();
        // Others may write all the while.
        for _ in 0..1_000_000 {
            match ring.next_message().unwrap() {
                KernelMessage::Record(record) => {
                    let head = String::from_utf8_lossy(record);
                    sequences.push(head.split(',').nth(1).unwrap().parse().unwrap());
                }
                KernelMessage::Overwritten => {}
                KernelMessage::End => break,
            }
        }
        assert!(!sequences.is_empty());
        assert!(sequences.is_sorted_by(|one, next| one < next));
    }
}

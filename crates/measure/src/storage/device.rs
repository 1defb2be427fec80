//! A file or block device as a [`BlockDevice`], so that probes also run on devices
//! that wrap one to count, delay or fail.
//!
//! The system calls are those of `sys::file`; nothing is added in between, because
//! this path is what is timed.

use model::device::{BlockDevice, DeviceError};
use std::fs::File;
use std::io::{Seek, SeekFrom};

/// An open file, read and written at offsets.
#[derive(Debug)]
pub struct FileDevice {
    file: File,
    /// Whether each write waits until it is on stable storage.
    durable: bool,
}

impl FileDevice {
    /// The file as it is opened: cached, or direct with `O_DIRECT`.
    pub fn new(file: File) -> Self {
        Self {
            file,
            durable: false,
        }
    }

    /// The same, where each write is followed by `fdatasync`, as part of the write.
    pub fn durable(file: File) -> Self {
        Self {
            file,
            durable: true,
        }
    }

    /// The file behind it.
    pub fn file(&self) -> &File {
        &self.file
    }
}

fn failed(operation: &'static str, offset: Option<u64>, error: sys::Error) -> DeviceError {
    DeviceError {
        operation,
        offset,
        source: error.source,
    }
}

impl BlockDevice for FileDevice {
    fn len_bytes(&self) -> Result<u64, DeviceError> {
        // Seeking to the end measures files and block devices alike; nothing here
        // uses the file's position.
        (&self.file)
            .seek(SeekFrom::End(0))
            .map_err(|source| DeviceError {
                operation: "measure the size",
                offset: None,
                source,
            })
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DeviceError> {
        sys::file::read_at(&self.file, buffer, offset).map_err(|e| failed("read", Some(offset), e))
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<usize, DeviceError> {
        let written = sys::file::write_at(&self.file, buffer, offset)
            .map_err(|e| failed("write", Some(offset), e))?;
        if self.durable {
            self.flush()?;
        }
        Ok(written)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        sys::file::sync_data(&self.file).map_err(|e| failed("flush", None, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reads_back_what_was_written() {
        let scratch = sys::file::Scratch::create_in(&std::env::temp_dir()).unwrap();
        let device = FileDevice::durable(scratch.reopen().unwrap());
        assert_eq!(device.len_bytes().unwrap(), 0);
        assert_eq!(device.write_at(b"terrace", 4096).unwrap(), 7);
        assert_eq!(device.len_bytes().unwrap(), 4103);
        let mut buffer = [0; 16];
        assert_eq!(device.read_at(&mut buffer, 4096).unwrap(), 7);
        assert_eq!(&buffer[..7], b"terrace");
        assert_eq!(device.read_at(&mut buffer, 9000).unwrap(), 0);
    }
}

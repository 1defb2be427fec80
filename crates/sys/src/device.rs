//! A file or a whole disk as a [`BlockDevice`].
//!
//! The contract asks for whole transfers, the kernel may do less at a time: so transfers
//! are continued until they are done or the device ends.

use crate::error::{Error, Kind, Result};
use crate::{block, file};
use model::device::{BlockDevice, DeviceError};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt;

/// A device over an open file; reads and writes go as the file was opened (cached or direct).
#[derive(Debug)]
pub struct FileDevice {
    file: File,
    is_disk: bool,
}

impl FileDevice {
    /// A device over `file`, a regular file or block device.
    ///
    /// # Errors
    /// `Invalid` for any other kind of file.
    pub fn new(file: File) -> Result<Self> {
        const OPERATION: &str = "use the file as a device";
        let kind = file
            .metadata()
            .map_err(|source| Error::new(OPERATION, source))?
            .file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(Error::invalid(
                OPERATION,
                "not a regular file or block device",
            ));
        }
        Ok(Self {
            is_disk: kind.is_block_device(),
            file,
        })
    }

    /// The file itself.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl BlockDevice for FileDevice {
    fn len_bytes(&self) -> std::result::Result<u64, DeviceError> {
        let answer = if self.is_disk {
            block::size_bytes(&self.file).map_err(|error| error.source)
        } else {
            self.file.metadata().map(|metadata| metadata.len())
        };
        answer.map_err(|source| failure("measure the size of", None, source))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::result::Result<usize, DeviceError> {
        transfer("read", buffer.len(), offset, |done| {
            file::read_at(
                &self.file,
                &mut buffer[done..],
                offset.saturating_add(done as u64),
            )
        })
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> std::result::Result<usize, DeviceError> {
        let end_of_disk = |error: &Error| self.is_disk && error.kind == Kind::NoSpace;
        transfer("write", buffer.len(), offset, |done| {
            let at = offset.saturating_add(done as u64);
            match file::write_at(&self.file, &buffer[done..], at) {
                // A disk answers so beyond its end; the contract says "fewer bytes".
                Err(error) if end_of_disk(&error) => Ok(0),
                other => other,
            }
        })
    }

    fn flush(&self) -> std::result::Result<(), DeviceError> {
        file::sync_data(&self.file).map_err(|error| failure("flush", None, error.source))
    }
}

/// Repeats `step`, which gets the bytes done so far, until all `wanted` are done or it moves none.
fn transfer(
    operation: &'static str,
    wanted: usize,
    offset: u64,
    mut step: impl FnMut(usize) -> Result<usize>,
) -> std::result::Result<usize, DeviceError> {
    let mut done = 0;
    while done < wanted {
        match step(done) {
            Ok(0) => break,
            Ok(bytes) => done += bytes,
            Err(error) => {
                let at = offset.saturating_add(done as u64);
                return Err(failure(operation, Some(at), error.source));
            }
        }
    }
    Ok(done)
}

fn failure(operation: &'static str, offset: Option<u64>, source: io::Error) -> DeviceError {
    DeviceError {
        operation,
        offset,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Scratch;
    use testkit::{LoopDevice, TempDir};

    #[test]
    fn a_file_is_a_device() {
        let directory = TempDir::new();
        let scratch = Scratch::create_in(directory.path()).unwrap();
        let device = FileDevice::new(scratch.reopen().unwrap()).unwrap();
        assert_eq!(device.write_at(&[7; 5000], 100).unwrap(), 5000);
        device.flush().unwrap();
        assert_eq!(device.len_bytes().unwrap(), 5100);
        let mut buffer = [9; 200];
        assert_eq!(device.read_at(&mut buffer, 5000).unwrap(), 100);
        assert_eq!((buffer[99], buffer[100]), (7, 9));
        assert_eq!(device.read_at(&mut buffer, 1 << 40).unwrap(), 0);
        let error = device.read_at(&mut buffer, u64::MAX).unwrap_err();
        assert_eq!(error.offset, Some(u64::MAX));
    }

    #[test]
    fn a_disk_ends_where_it_ends() {
        let directory = TempDir::new();
        let image = directory.join("image");
        std::fs::write(&image, vec![0; 64 << 10]).unwrap();
        let disk = match LoopDevice::over(&image) {
            Ok(disk) => disk,
            Err(need) => return testkit::skip(need),
        };
        let open = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(disk.path())
            .unwrap();
        let device = FileDevice::new(open).unwrap();
        assert_eq!(device.len_bytes().unwrap(), 64 << 10);
        assert_eq!(device.write_at(&[1; 8192], 60 << 10).unwrap(), 4096);
        assert_eq!(device.read_at(&mut [0; 8192], 60 << 10).unwrap(), 4096);
    }

    #[test]
    fn a_directory_is_none() {
        let directory = File::open("/").unwrap();
        assert_eq!(FileDevice::new(directory).unwrap_err().kind, Kind::Invalid);
    }
}

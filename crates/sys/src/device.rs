//! A file or a whole disk as a [`BlockDevice`]: the only one of the product.
//!
//! Between the caller and the system call there is a loop that continues a short transfer, and
//! nothing else: latency probes time this path. How the kernel caches is decided by how the file
//! was opened (`O_DIRECT` or not) and by the two builder methods, never here.

use crate::error::{Error, ErrorKind, Result};
use crate::{block, file};
use model::device::{Alignment, BlockDevice, DeviceError};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;

/// What direct I/O is aligned to where the kernel does not report it (before Linux 6.1, and on
/// file systems without the report): a page, which no device exceeds.
const DIRECT_ALIGNMENT: u32 = 4096;

type DeviceResult<T> = std::result::Result<T, DeviceError>;

/// A regular file or block device, read and written at offsets.
#[derive(Debug)]
pub struct FileDevice {
    file: File,
    is_disk: bool,
    is_uncached: bool,
    is_durable: bool,
}

impl FileDevice {
    /// A device over `file`, cached or direct as the file was opened.
    ///
    /// # Errors
    /// `Invalid` if it is not a regular file or block device.
    pub fn new(file: File) -> Result<Self> {
        const OPERATION: &str = "use the file as a device";
        let metadata = file.metadata().map_err(|source| Error::new(OPERATION, source))?;
        let kind = metadata.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(Error::invalid(OPERATION, "not a regular file or block device"));
        }
        Ok(Self { is_disk: kind.is_block_device(), file, is_uncached: false, is_durable: false })
    }

    /// A device over another descriptor of `file`.
    ///
    /// # Errors
    /// As [`FileDevice::new`], and without a free descriptor.
    pub fn over(file: &File) -> Result<Self> {
        Self::new(file.try_clone().map_err(|source| Error::new("duplicate", source))?)
    }

    /// The same device, where pages that a request brings into the cache leave it again
    /// (`RWF_DONTCACHE`). Before Linux 6.14 requests then fail with `Unsupported`.
    #[must_use]
    pub fn uncached(self) -> Self {
        Self { is_uncached: true, ..self }
    }

    /// The same device, where each write returns only when it is on stable storage.
    #[must_use]
    pub fn durable(self) -> Self {
        Self { is_durable: true, ..self }
    }

    /// Reads into `parts`, one behind the other, with one system call; the number of bytes read,
    /// which may be fewer than there are. An uncached device reads none so.
    ///
    /// # Errors
    /// As [`BlockDevice::read_at`].
    pub fn read_vectored_at(
        &self,
        parts: &mut [IoSliceMut<'_>],
        offset: u64,
    ) -> DeviceResult<usize> {
        if self.is_uncached {
            return Ok(0);
        }
        file::read_vectored_at(&self.file, parts, offset)
            .map_err(|error| DeviceError::new(error.operation, Some(offset), error.source))
    }

    /// Writes `parts`, one behind the other, with one system call; the number of bytes written,
    /// which may be fewer than there is room for. An uncached device writes none so.
    ///
    /// # Errors
    /// As [`BlockDevice::write_at`].
    pub fn write_vectored_at(&self, parts: &[IoSlice<'_>], offset: u64) -> DeviceResult<usize> {
        if self.is_uncached {
            return Ok(0);
        }
        let written = file::write_vectored_at(&self.file, parts, offset)
            .map_err(|error| DeviceError::new(error.operation, Some(offset), error.source))?;
        if self.is_durable {
            self.flush()?;
        }
        Ok(written)
    }

    /// The file itself.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl BlockDevice for FileDevice {
    fn size_bytes(&self) -> DeviceResult<u64> {
        let answer = if self.is_disk {
            block::size_bytes(&self.file).map_err(|error| error.source)
        } else {
            self.file.metadata().map(|metadata| metadata.len())
        };
        answer.map_err(|source| DeviceError::new("measure the size of", None, source))
    }

    fn alignment(&self) -> Alignment {
        if !file::is_direct(&self.file).unwrap_or(true) {
            return Alignment::NONE;
        }
        let reported = file::direct_alignment(&self.file).ok().flatten();
        reported
            .filter(|alignment| alignment.write > 0 && alignment.memory > 0)
            .unwrap_or(Alignment::all(DIRECT_ALIGNMENT))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> DeviceResult<usize> {
        transfer(buffer.len(), offset, |done, at| {
            if self.is_uncached {
                file::read_at_uncached(&self.file, &mut buffer[done..], at)
            } else {
                file::read_at(&self.file, &mut buffer[done..], at)
            }
        })
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> DeviceResult<usize> {
        let written = transfer(buffer.len(), offset, |done, at| {
            let answer = if self.is_uncached {
                file::write_at_uncached(&self.file, &buffer[done..], at)
            } else {
                file::write_at(&self.file, &buffer[done..], at)
            };
            match answer {
                // A disk answers so beyond its end; the contract says "fewer bytes".
                Err(error) if self.is_disk && error.kind == ErrorKind::NoSpace => Ok(0),
                other => other,
            }
        })?;
        if self.is_durable {
            self.flush()?;
        }
        Ok(written)
    }

    fn discard(&self, range: Range<u64>) -> DeviceResult<()> {
        let offset = range.start;
        let answer = if self.is_disk {
            block::discard(&self.file, range)
        } else {
            file::punch_hole(&self.file, range)
        };
        answer.map_err(|error| DeviceError::new("discard", Some(offset), error.source))
    }

    fn flush(&self) -> DeviceResult<()> {
        file::sync_data(&self.file).map_err(|error| DeviceError::new("flush", None, error.source))
    }
}

/// Repeats `step`, which gets the bytes done so far and the offset behind them, until all `wanted`
/// are done or it moves none.
#[inline]
fn transfer(
    wanted: usize,
    offset: u64,
    mut step: impl FnMut(usize, u64) -> Result<usize>,
) -> DeviceResult<usize> {
    let mut done = 0;
    while done < wanted {
        let at = offset.saturating_add(done as u64);
        match step(done, at) {
            Ok(0) => break,
            Ok(bytes) => done += bytes,
            // A direct transfer stops inside a block only at the end, and cannot go on from there.
            Err(error) if done > 0 && error.kind == ErrorKind::Invalid => break,
            Err(error) => return Err(DeviceError::new(error.operation, Some(at), error.source)),
        }
    }
    Ok(done)
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
        assert_eq!(device.size_bytes().unwrap(), 5100);
        let mut buffer = [9; 200];
        assert_eq!(device.read_at(&mut buffer, 5000).unwrap(), 100);
        assert_eq!((buffer[99], buffer[100]), (7, 9));
        assert_eq!(device.read_at(&mut buffer, 1 << 40).unwrap(), 0);
        let error = device.read_at(&mut buffer, u64::MAX).unwrap_err();
        assert_eq!(error.offset, Some(u64::MAX));
    }

    #[test]
    fn parts_of_memory_are_one_range_of_the_device() {
        let scratch = Scratch::create_in(&std::env::temp_dir()).unwrap();
        let device = FileDevice::new(scratch.reopen().unwrap()).unwrap().durable();
        let written = [vec![1; 3000], vec![2; 1000], vec![3; 5000]];
        let parts = written.each_ref().map(|part| IoSlice::new(part));
        assert_eq!(device.write_vectored_at(&parts, 100).unwrap(), 9000);
        let (mut head, mut tail) = ([0; 3500], [0; 9000]);
        let mut parts = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut tail)];
        assert_eq!(device.read_vectored_at(&mut parts, 100).unwrap(), 9000);
        assert_eq!([&head[..], &tail[..5500]].concat(), written.concat());
        let mut parts = [IoSliceMut::new(&mut head)];
        let error = device.read_vectored_at(&mut parts, u64::MAX).unwrap_err();
        assert_eq!(error.offset, Some(u64::MAX));
        // It would leave pages in the cache.
        let uncached = device.uncached();
        assert_eq!(uncached.read_vectored_at(&mut parts, 100).unwrap(), 0);
        assert_eq!(uncached.write_vectored_at(&[IoSlice::new(b"x")], 100).unwrap(), 0);
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
        let open = std::fs::OpenOptions::new().read(true).write(true).open(disk.path()).unwrap();
        let device = FileDevice::new(open).unwrap();
        assert_eq!(device.size_bytes().unwrap(), 64 << 10);
        assert_eq!(device.write_at(&[1; 8192], 60 << 10).unwrap(), 4096);
        assert_eq!(device.read_at(&mut [0; 8192], 60 << 10).unwrap(), 4096);
        // A loop device passes a discard on as a hole.
        match device.discard(0..4096) {
            Err(error) => {
                assert_eq!(ErrorKind::of(&error.source), ErrorKind::Unsupported, "{error}")
            }
            Ok(()) => {
                let mut buffer = [9; 4096];
                device.read_at(&mut buffer, 0).unwrap();
                assert_eq!(buffer, [0; 4096]);
            }
        }
    }

    #[test]
    fn a_durable_device_writes_what_it_reads() {
        let scratch = Scratch::create_in(&std::env::temp_dir()).unwrap();
        let device = FileDevice::new(scratch.reopen().unwrap()).unwrap().durable();
        assert_eq!(device.write_at(b"terrace", 4096).unwrap(), 7);
        let mut buffer = [0; 16];
        assert_eq!(device.read_at(&mut buffer, 4096).unwrap(), 7);
        assert_eq!(&buffer[..7], b"terrace");
    }

    #[test]
    fn a_direct_read_over_the_end_is_short() {
        let directory = TempDir::new();
        let scratch = Scratch::create_in(directory.path()).unwrap();
        file::write_at(scratch.file(), &[7; 5000], 0).unwrap();
        let direct = match scratch.reopen_direct() {
            Ok(direct) => FileDevice::new(direct).unwrap(),
            Err(error) => return testkit::skip(format!("direct I/O ({error})")),
        };
        let alignment = direct.alignment();
        assert!(alignment.read > 1 && alignment.memory.is_power_of_two());
        let mut buffer = crate::memory::AlignedBuffer::new(16384).unwrap();
        assert_eq!(direct.read_at(&mut buffer, 0).unwrap(), 5000);
        let cached = FileDevice::new(scratch.reopen().unwrap()).unwrap();
        assert_eq!(cached.alignment(), Alignment::NONE);
    }

    #[test]
    fn a_discarded_range_of_a_file_reads_as_zeroes() {
        let scratch = Scratch::create_in(&std::env::temp_dir()).unwrap();
        let device = FileDevice::new(scratch.reopen().unwrap()).unwrap();
        device.write_at(&[7; 3 * 4096], 0).unwrap();
        match device.discard(4096..8192) {
            Err(error) if ErrorKind::of(&error.source) == ErrorKind::Unsupported => {
                return testkit::skip(format!("holes in files ({error})"));
            }
            answer => answer.unwrap(),
        }
        let mut buffer = [9; 3 * 4096];
        assert_eq!(device.read_at(&mut buffer, 0).unwrap(), 3 * 4096);
        assert_eq!((buffer[4095], buffer[4096], buffer[8192]), (7, 0, 7));
    }

    #[test]
    fn a_directory_is_not_a_device() {
        let directory = File::open("/").unwrap();
        assert_eq!(FileDevice::new(directory).unwrap_err().kind, ErrorKind::Invalid);
    }
}

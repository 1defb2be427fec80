//! What an engine operates on: a block device that also stores zeros and, as a journal, can make
//! itself useless.

use crate::volume::{VolumeResult, number_of, whole};
use model::device::{Alignment, BlockDevice, DeviceError};
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use sys::device::FileDevice;
use sys::memory::AlignedBuffer;
use sys::{block, file};

/// Zeros are written in pieces of this size where there is no quicker way.
const ZEROES_BYTES: usize = 64 << 10;

/// A device of an engine.
pub trait DriverDevice: BlockDevice + Send + Sync + 'static {
    /// Stores zeros in a range: all of it is read as zeros afterwards.
    ///
    /// # Errors
    /// As a write.
    fn write_zeroes(&self, range: Range<u64>) -> Result<(), DeviceError> {
        write_zeroes(self, range)
    }

    /// Reads into `parts`, one behind the other, in one request; fewer bytes where that is not
    /// possible.
    ///
    /// # Errors
    /// As a read.
    fn read_vectored_at(
        &self,
        parts: &mut [IoSliceMut<'_>],
        offset: u64,
    ) -> Result<usize, DeviceError> {
        let _ = (parts, offset);
        Ok(0)
    }

    /// Writes `parts`, one behind the other, in one request; fewer bytes where that is not
    /// possible.
    ///
    /// # Errors
    /// As a write.
    fn write_vectored_at(&self, parts: &[IoSlice<'_>], offset: u64) -> Result<usize, DeviceError> {
        let _ = (parts, offset);
        Ok(0)
    }

    /// Of a journal: sees to it that it is never found again.
    ///
    /// # Errors
    /// Why that is not sure; `Unsupported` for any other device.
    fn revoke(&self) -> Result<(), DeviceError> {
        let source = io::Error::from(io::ErrorKind::Unsupported);
        Err(DeviceError::new("revoke", None, source))
    }
}

/// A device that others hold too.
impl<D: BlockDevice + Send + Sync + 'static> DriverDevice for Arc<D> {}

/// Writes zeros as any bytes.
fn write_zeroes(
    device: &(impl BlockDevice + ?Sized),
    range: Range<u64>,
) -> Result<(), DeviceError> {
    let no_memory = |error: sys::Error| DeviceError::new("write", None, error.source);
    let zeroes = AlignedBuffer::new(ZEROES_BYTES).map_err(no_memory)?;
    let mut at = range.start;
    while at < range.end {
        let piece = (range.end - at).min(ZEROES_BYTES as u64) as usize;
        let written = device.write_at(&zeroes[..piece], at)?;
        if written < piece {
            let source = io::Error::from_raw_os_error(28);
            return Err(DeviceError::new("write", Some(at), source));
        }
        at += piece as u64;
    }
    Ok(())
}

impl DriverDevice for FileDevice {
    /// By the disk itself or as a hole of the file, else by writing them.
    fn write_zeroes(&self, range: Range<u64>) -> Result<(), DeviceError> {
        let is_disk = self.file().metadata().is_ok_and(|it| it.file_type().is_block_device());
        let quick = if is_disk {
            block::zero_out(self.file(), range.clone())
        } else {
            file::punch_hole(self.file(), range.clone())
        };
        quick.or_else(|_| write_zeroes(self, range))
    }

    fn read_vectored_at(
        &self,
        parts: &mut [IoSliceMut<'_>],
        offset: u64,
    ) -> Result<usize, DeviceError> {
        Self::read_vectored_at(self, parts, offset)
    }

    fn write_vectored_at(&self, parts: &[IoSlice<'_>], offset: u64) -> Result<usize, DeviceError> {
        Self::write_vectored_at(self, parts, offset)
    }
}

/// A device with a way to make it useless.
pub struct RevocableDevice<D> {
    device: D,
    revoke: Box<dyn Fn() -> io::Result<()> + Send + Sync>,
}

impl<D> RevocableDevice<D> {
    /// `device`, which `revoke` removes for good.
    pub fn new(device: D, revoke: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { device, revoke: Box::new(revoke) }
    }
}

impl<D> std::fmt::Debug for RevocableDevice<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RevocableDevice").finish_non_exhaustive()
    }
}

impl<D: BlockDevice> BlockDevice for RevocableDevice<D> {
    fn size_bytes(&self) -> Result<u64, DeviceError> {
        self.device.size_bytes()
    }

    fn alignment(&self) -> Alignment {
        self.device.alignment()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DeviceError> {
        self.device.read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<usize, DeviceError> {
        self.device.write_at(buffer, offset)
    }

    fn discard(&self, range: Range<u64>) -> Result<(), DeviceError> {
        self.device.discard(range)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.device.flush()
    }
}

impl<D: DriverDevice> DriverDevice for RevocableDevice<D> {
    fn write_zeroes(&self, range: Range<u64>) -> Result<(), DeviceError> {
        self.device.write_zeroes(range)
    }

    fn revoke(&self) -> Result<(), DeviceError> {
        (self.revoke)().map_err(|source| DeviceError::new("revoke", None, source))
    }
}

/// Reads a part; behind the end of a medium that grows there are zeros.
pub(super) fn read(
    device: &dyn DriverDevice,
    offset: u64,
    buffer: &mut [u8],
    grows: bool,
) -> VolumeResult {
    let wanted = buffer.len();
    match device.read_at(buffer, offset) {
        Ok(bytes) if bytes < wanted && grows => {
            buffer[bytes..].fill(0);
            Ok(())
        }
        done => whole(done, wanted),
    }
}

/// How an operation without data ended.
pub(super) fn ended(done: Result<(), DeviceError>) -> VolumeResult {
    done.map_err(|error| number_of(&error))
}

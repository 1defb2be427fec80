//! What is exported: a volume of bytes that is read, written, flushed and given up by range.
//!
//! Calls block until the request is done and come from several threads at a time. Errors are error
//! numbers of the system, which go to the client unchanged.

use model::device::{BlockDevice, DeviceError};
use model::engine::ErrorNumber;
use std::io::ErrorKind;

/// How a request to a volume ended.
pub type VolumeResult = Result<(), ErrorNumber>;

/// Bytes that are exported.
///
/// The caller guarantees that ranges are within [`Volume::bytes`].
///
/// An implementation must:
/// - read and write all bytes of a range or fail;
/// - after a flush keep every write that was done before it was called.
pub trait Volume: Send + Sync + 'static {
    /// The length in bytes, which does not change.
    fn bytes(&self) -> u64;

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// What the client gets.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> VolumeResult;

    /// Stores `data` from `offset` on.
    ///
    /// # Errors
    /// What the client gets.
    fn write(&self, offset: u64, data: &[u8]) -> VolumeResult;

    /// Makes all writes that were done durable.
    ///
    /// # Errors
    /// What the client gets.
    fn flush(&self) -> VolumeResult;

    /// Stores zeros in a range.
    ///
    /// # Errors
    /// What the client gets; `EOPNOTSUPP` if zeros are to be written as any bytes.
    fn write_zeroes(&self, offset: u64, len: u64) -> VolumeResult {
        let _ = (offset, len);
        Err(UNSUPPORTED)
    }

    /// Gives up the content of a range: what is read of it is not defined until it is written.
    ///
    /// # Errors
    /// What the client gets.
    fn discard(&self, offset: u64, len: u64) -> VolumeResult {
        let _ = (offset, len);
        Err(UNSUPPORTED)
    }

    /// How far from `offset` on, at most `len`, the volume is of one kind, and whether it is a hole
    /// that reads as zeros there. All of it is data where nothing else is known.
    fn extent(&self, offset: u64, len: u64) -> (u64, bool) {
        let _ = offset;
        (len, false)
    }
}

/// `EOPNOTSUPP`.
pub const UNSUPPORTED: ErrorNumber = ErrorNumber(95);
/// `EINVAL`.
pub const INVALID: ErrorNumber = ErrorNumber(22);

/// Zeros are written in pieces of this size where a device has no quicker way.
const ZEROES: &[u8] = &[0; 64 << 10];

/// A device as a volume; zeros are written to it as any bytes.
#[derive(Debug)]
pub struct DeviceVolume<D> {
    device: D,
    bytes: u64,
}

impl<D: BlockDevice> DeviceVolume<D> {
    /// The whole device.
    ///
    /// # Errors
    /// When its size cannot be read.
    pub fn new(device: D) -> Result<Self, DeviceError> {
        let bytes = device.size_bytes()?;
        Ok(Self { device, bytes })
    }
}

impl<D: BlockDevice + Send + Sync + 'static> Volume for DeviceVolume<D> {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> VolumeResult {
        whole(self.device.read_at(buffer, offset), buffer.len())
    }

    fn write(&self, offset: u64, data: &[u8]) -> VolumeResult {
        whole(self.device.write_at(data, offset), data.len())
    }

    fn flush(&self) -> VolumeResult {
        self.device.flush().map_err(|error| number_of(&error))
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> VolumeResult {
        let end = offset.saturating_add(len);
        let mut at = offset;
        while at < end {
            let piece = (end - at).min(ZEROES.len() as u64);
            self.write(at, &ZEROES[..piece as usize])?;
            at += piece;
        }
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> VolumeResult {
        let range = offset..offset.saturating_add(len);
        self.device.discard(range).map_err(|error| number_of(&error))
    }
}

/// The error number of a device's error. Where the system gave none: [`UNSUPPORTED`] for what the
/// device cannot do, else `EIO`.
#[must_use]
pub fn number_of(error: &DeviceError) -> ErrorNumber {
    match error.source.raw_os_error() {
        Some(number) => ErrorNumber(number),
        None if error.source.kind() == ErrorKind::Unsupported => UNSUPPORTED,
        None => ErrorNumber::EIO,
    }
}

/// A transfer of all bytes, or an error: one that ends early met the end of the device.
pub(crate) fn whole(done: Result<usize, DeviceError>, wanted: usize) -> VolumeResult {
    match done {
        Ok(bytes) if bytes == wanted => Ok(()),
        Ok(_) => Err(ErrorNumber::EIO),
        Err(error) => Err(number_of(&error)),
    }
}

/// Whether a range is within a volume.
pub(crate) fn is_within(volume_bytes: u64, offset: u64, len: u64) -> bool {
    offset.checked_add(len).is_some_and(|end| end <= volume_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_cannot_do_has_its_number() {
        let number = |source| number_of(&DeviceError::new("discard", None, source));
        assert_eq!(number(ErrorKind::Unsupported.into()), UNSUPPORTED);
        assert_eq!(number(ErrorKind::Other.into()), ErrorNumber::EIO);
        assert_eq!(number(std::io::Error::from_raw_os_error(28)), ErrorNumber(28));
    }
}

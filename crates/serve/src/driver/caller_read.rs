//! Reads of the cache's medium that the thread of a caller does itself: a hit then wakes no other
//! thread up, and is not waited for by one.
//!
//! A caller waits for the medium for a moment only. Where that takes longer, a thread of the pool
//! waits for the end of the read, and the caller for its request, which the engine may answer from
//! the disk meanwhile: a medium that hangs holds up no caller.

use crate::volume::VolumeResult;
use model::engine::ErrorNumber;
use std::fs::File;
use std::time::Duration;
use sys::uring::{Completion, IoRequest, Queue};

/// Room for the blocks that hold a frame of 16 KiB.
const ROOM: usize = 32 << 10;

/// How long a caller waits for a medium: a stick takes 1 to 3 ms, and its engine gives up after
/// seconds.
const PATIENCE: Duration = Duration::from_millis(50);

/// Reads a file, one read at a time, into memory of its own.
#[derive(Debug)]
pub(super) struct FileReader {
    queue: Box<Queue>,
    file: usize,
    slot: usize,
}

impl FileReader {
    /// `None` where the kernel has no io_uring for this process, or not the memory.
    pub(super) fn new(file: &File) -> Option<Self> {
        let mut queue = Box::new(Queue::unregistered(1, ROOM).ok()?);
        let file = queue.add_file(file).ok()?;
        let slot = queue.idle_slot()?;
        Some(Self { queue, file, slot })
    }

    /// Begins to read so many bytes; false if it cannot.
    pub(super) fn begin(&mut self, offset: u64, bytes: usize) -> bool {
        let request = IoRequest::read(self.file, offset, bytes);
        bytes <= ROOM && self.queue.submit(self.slot, request).is_ok()
    }

    /// Waits for the end of the read, at most for a moment unless `is_patient`; `None` if it has
    /// not come. What was read is in `bytes` then, with zeros behind the end of the file.
    pub(super) fn end(&mut self, bytes: &mut [u8], is_patient: bool) -> Option<VolumeResult> {
        let read = loop {
            let waited =
                if is_patient { self.queue.enter(1) } else { self.queue.enter_within(1, PATIENCE) };
            let Some(Completion { request, result, .. }) = self.queue.complete() else {
                // An error of the queue itself: nothing more is known of this read.
                return (is_patient && waited.is_err()).then_some(Err(ErrorNumber::EIO));
            };
            let read = match result {
                Ok(read) => read,
                Err(error) => {
                    let number = error.source.raw_os_error().map_or(ErrorNumber::EIO, ErrorNumber);
                    return Some(Err(number));
                }
            };
            // A read may end early before the end of the file, and then goes on.
            if read == 0 || read == request.bytes {
                break request.start + read;
            }
            if self.queue.submit(self.slot, request.after(read)).is_err() {
                return Some(Err(ErrorNumber::EIO));
            }
        };
        bytes[read..].fill(0);
        if let Some(buffer) = self.queue.buffer_mut(self.slot) {
            bytes[..read].copy_from_slice(&buffer[..read]);
        }
        Some(Ok(()))
    }

    /// Whether another read can begin.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.in_flight() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;

    #[test]
    fn a_read_that_ends_early_goes_on() {
        let (pipe, mut writer) = std::io::pipe().unwrap();
        let Some(mut reader) = FileReader::new(&OwnedFd::from(pipe).into()) else {
            return testkit::skip("io_uring");
        };
        let data: Vec<u8> = (0..512).map(|at| at as u8).collect();
        let mut read = vec![0; 512];
        assert!(reader.begin(0, 512));
        writer.write_all(&data[..100]).unwrap();
        assert_eq!(reader.end(&mut read, false), None, "the rest has not come");
        writer.write_all(&data[100..]).unwrap();
        assert_eq!(reader.end(&mut read, true), Some(Ok(())));
        assert!(reader.is_idle() && read == data);
        // What ends for good is followed by zeros.
        assert!(reader.begin(0, 512));
        writer.write_all(&data[..100]).unwrap();
        drop(writer);
        assert_eq!(reader.end(&mut read, true), Some(Ok(())));
        assert!(read[..100] == data[..100] && read[100..].iter().all(|byte| *byte == 0));
    }
}

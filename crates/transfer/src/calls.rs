//! The engine without concurrency: each request is one call on a device, performed when it is
//! submitted. As programs do buffered I/O, on any [`BlockDevice`].

use crate::engine::{self, Completion, Engine};
use model::device::BlockDevice;
use sys::memory::AlignedBuffer;
use sys::uring::IoRequest;

/// One slot on some devices; see the module's text.
#[derive(Debug)]
pub struct Calls<D> {
    devices: Vec<D>,
    buffer: AlignedBuffer,
    ended: Option<Completion>,
}

impl<D: BlockDevice> Calls<D> {
    /// An engine on `devices`, which requests name by their index, with one aligned buffer.
    ///
    /// # Errors
    /// `Invalid` for a buffer of 0 bytes, `NoMemory` if it does not fit.
    pub fn new(devices: Vec<D>, buffer_bytes: usize) -> sys::Result<Self> {
        Ok(Self { devices, buffer: AlignedBuffer::new(buffer_bytes)?, ended: None })
    }
}

impl<D: BlockDevice> Engine for Calls<D> {
    fn depth(&self) -> usize {
        1
    }

    fn buffer_bytes(&self) -> usize {
        self.buffer.len()
    }

    fn in_flight(&self) -> usize {
        usize::from(self.ended.is_some())
    }

    fn idle_slot(&self) -> Option<usize> {
        self.ended.is_none().then_some(0)
    }

    fn buffer_mut(&mut self, slot: usize) -> Option<&mut [u8]> {
        (slot == 0 && self.ended.is_none()).then_some(&mut *self.buffer)
    }

    fn submit(&mut self, slot: usize, request: IoRequest) -> sys::Result<()> {
        if slot != 0 || self.ended.is_some() {
            return Err(engine::refused("the slot is not idle"));
        }
        engine::check(&request, self.devices.len(), self.buffer.len())?;
        let device = &self.devices[request.file];
        self.ended = Some(engine::perform(slot, request, device, &mut self.buffer));
        Ok(())
    }

    fn wait(&mut self) -> sys::Result<()> {
        Ok(())
    }

    fn complete(&mut self) -> Option<Completion> {
        self.ended.take()
    }
}

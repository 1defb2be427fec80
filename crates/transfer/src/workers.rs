//! The engine for several requests at a time where io_uring is closed, as in most containers: a few
//! threads that call the devices.
//!
//! A buffer moves to a thread with its request and comes back with the completion, so nothing is
//! shared but the devices. The channels have room for every slot and never block the caller. A
//! panic in a device is an error of its request; the thread and the buffer stay in use.

use crate::engine::{self, Completion, Engine};
use model::device::BlockDevice;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use sys::clock::now_ns;
use sys::memory::AlignedBuffer;
use sys::uring::IoRequest;

/// Threads at most. Picked: with calls of 1 MiB, more than eight were no faster on any disk seen.
const MAX_THREADS: usize = 8;

/// As many slots as threads; see the module's text.
#[derive(Debug)]
pub struct Workers {
    /// One for each slot, absent while it is in flight.
    buffers: Vec<Option<AlignedBuffer>>,
    buffer_bytes: usize,
    devices: usize,
    idle: Vec<usize>,
    ended: VecDeque<Ended>,
    /// Absent once the threads shall end.
    requests: Option<SyncSender<Job>>,
    completions: Receiver<Ended>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Job {
    slot: usize,
    request: IoRequest,
    buffer: AlignedBuffer,
}

#[derive(Debug)]
struct Ended {
    completion: Completion,
    buffer: AlignedBuffer,
}

impl Workers {
    /// An engine on `devices`, which requests name by their index, with `depth` threads (at most
    /// eight) and as many aligned buffers.
    ///
    /// # Errors
    /// `Invalid` for a buffer of 0 bytes, `NoMemory` if the buffers do not fit, the kernel's
    /// reason if it starts no thread.
    pub fn new<D>(devices: Vec<D>, depth: u32, buffer_bytes: usize) -> sys::Result<Self>
    where
        D: BlockDevice + Send + Sync + 'static,
    {
        let slots = (depth as usize).clamp(1, MAX_THREADS);
        let (requests, waiting) = mpsc::sync_channel(slots);
        let (finished, completions) = mpsc::sync_channel(slots);
        let buffers: sys::Result<Vec<_>> =
            (0..slots).map(|_| AlignedBuffer::new(buffer_bytes).map(Some)).collect();
        let mut workers = Self {
            buffers: buffers?,
            buffer_bytes,
            devices: devices.len(),
            idle: (0..slots).rev().collect(),
            ended: VecDeque::with_capacity(slots),
            requests: Some(requests),
            completions,
            threads: Vec::with_capacity(slots),
        };
        let devices = Arc::new(devices);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..slots {
            let (devices, waiting, finished) =
                (Arc::clone(&devices), Arc::clone(&waiting), finished.clone());
            let thread = std::thread::Builder::new()
                .name("transfer".to_owned())
                .spawn(move || serve(&devices, &waiting, &finished))
                .map_err(|source| sys::Error::new("start a thread", source))?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }
}

/// Performs requests until there are no more senders.
fn serve<D: BlockDevice>(
    devices: &[D],
    waiting: &Mutex<Receiver<Job>>,
    finished: &SyncSender<Ended>,
) {
    loop {
        // A receiver has no state that a panic of another thread could break.
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { slot, request, mut buffer }) = next else {
            return;
        };
        // The device is responsible for its own state; the buffer has no invariant to break.
        let performed = catch_unwind(AssertUnwindSafe(|| {
            engine::perform(slot, request, &devices[request.file], &mut buffer)
        }));
        let completion = performed.unwrap_or_else(|_| panicked(slot, request));
        if finished.send(Ended { completion, buffer }).is_err() {
            return;
        }
    }
}

/// The end of a request whose device panicked; the panic's own message is on standard error.
fn panicked(slot: usize, request: IoRequest) -> Completion {
    let source = io::Error::other("the device panicked");
    Completion {
        slot,
        request,
        result: Err(sys::Error::new(request.operation.name(), source)),
        completed_ns: now_ns(),
    }
}

impl Engine for Workers {
    fn depth(&self) -> usize {
        self.buffers.len()
    }

    fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    fn in_flight(&self) -> usize {
        self.depth() - self.idle.len()
    }

    fn idle_slot(&self) -> Option<usize> {
        self.idle.last().copied()
    }

    fn buffer_mut(&mut self, slot: usize) -> Option<&mut [u8]> {
        self.buffers.get_mut(slot)?.as_deref_mut()
    }

    fn submit(&mut self, slot: usize, request: IoRequest) -> sys::Result<()> {
        engine::check(&request, self.devices, self.buffer_bytes)?;
        let place = self
            .idle
            .iter()
            .rposition(|idle| *idle == slot)
            .ok_or_else(|| engine::refused("the slot is not idle"))?;
        let requests = self.requests.as_ref().ok_or_else(threads_ended)?;
        let buffer = self.buffers[slot].take().ok_or_else(threads_ended)?;
        let job = Job { slot, request, buffer };
        // There is room for every slot: only the absence of all threads is an error.
        requests.try_send(job).map_err(|_| threads_ended())?;
        self.idle.swap_remove(place);
        Ok(())
    }

    fn wait(&mut self) -> sys::Result<()> {
        if self.ended.is_empty() && self.in_flight() > 0 {
            let ended = self.completions.recv().map_err(|_| threads_ended())?;
            self.ended.push_back(ended);
        }
        Ok(())
    }

    fn complete(&mut self) -> Option<Completion> {
        let next = self.ended.pop_front();
        let Ended { completion, buffer } = next.or_else(|| self.completions.try_recv().ok())?;
        self.buffers[completion.slot] = Some(buffer);
        self.idle.push(completion.slot);
        Some(completion)
    }
}

fn threads_ended() -> sys::Error {
    sys::Error::new("wait for I/O", io::Error::other("its threads have ended"))
}

impl Drop for Workers {
    /// Waits for everything that was submitted, then for the threads.
    fn drop(&mut self) {
        self.requests = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

//! The engine for files: an io_uring at a depth where the kernel permits it, else threads; plain
//! calls where one request at a time is wanted.

use crate::calls::Calls;
use crate::engine::Engine;
use crate::extent::Extent;
use crate::observer::Observer;
use crate::run::{Route, Summary, run};
use crate::workers::Workers;
use std::fs::File;
use sys::device::FileDevice;
use sys::uring::Queue;

/// An engine on files and disks, which routes name by their index.
#[derive(Debug)]
pub enum FileEngine {
    /// By io_uring.
    Ring(Box<Queue>),
    /// By threads.
    Workers(Workers),
    /// One call after the other.
    Calls(Calls<FileDevice>),
}

impl FileEngine {
    /// An engine with `depth` requests in flight: by io_uring, else by at most eight threads.
    ///
    /// # Errors
    /// `Invalid` for a depth or buffer of 0 or too large, or what is not a file or disk;
    /// `NoMemory` if the buffers do not fit.
    pub fn at_depth(files: &[&File], depth: u32, buffer_bytes: usize) -> sys::Result<Self> {
        match Self::ring(files, depth, buffer_bytes)? {
            Some(ring) => Ok(ring),
            None => {
                let devices: sys::Result<Vec<_>> = files.iter().map(|file| device(file)).collect();
                Workers::new(devices?, depth, buffer_bytes).map(Self::Workers)
            }
        }
    }

    /// An engine by io_uring; `None` where the kernel has none or forbids it.
    ///
    /// # Errors
    /// As [`FileEngine::at_depth`].
    pub fn ring(files: &[&File], depth: u32, buffer_bytes: usize) -> sys::Result<Option<Self>> {
        let mut queue = match Queue::new(depth, buffer_bytes) {
            Ok(queue) => queue,
            Err(e) if matches!(e.kind, sys::ErrorKind::Unsupported | sys::ErrorKind::Denied) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        for file in files {
            queue.add_file(file)?;
        }
        Ok(Some(Self::Ring(Box::new(queue))))
    }

    /// An engine with one request at a time.
    ///
    /// # Errors
    /// As [`Calls::new`].
    pub fn calls(devices: Vec<FileDevice>, buffer_bytes: usize) -> sys::Result<Self> {
        Calls::new(devices, buffer_bytes).map(Self::Calls)
    }

    /// How many requests are really in flight.
    #[must_use]
    pub fn depth(&self) -> usize {
        match self {
            Self::Ring(queue) => Engine::depth(&**queue),
            Self::Workers(workers) => workers.depth(),
            Self::Calls(calls) => calls.depth(),
        }
    }

    /// The buffer of a slot that is idle, as all are between two runs.
    pub fn buffer_mut(&mut self, slot: usize) -> Option<&mut [u8]> {
        match self {
            Self::Ring(queue) => Engine::buffer_mut(&mut **queue, slot),
            Self::Workers(workers) => workers.buffer_mut(slot),
            Self::Calls(calls) => calls.buffer_mut(slot),
        }
    }

    /// As [`run()`]; the kind of engine is decided once, not for each request.
    pub fn run<O: Observer>(
        &mut self,
        route: Route,
        extents: impl IntoIterator<Item = Extent>,
        observer: &mut O,
    ) -> Summary {
        match self {
            Self::Ring(queue) => run(&mut **queue, route, extents, observer),
            Self::Workers(workers) => run(workers, route, extents, observer),
            Self::Calls(calls) => run(calls, route, extents, observer),
        }
    }
}

fn device(file: &File) -> sys::Result<FileDevice> {
    let clone = file.try_clone().map_err(|source| sys::Error::new("duplicate", source))?;
    FileDevice::new(clone)
}

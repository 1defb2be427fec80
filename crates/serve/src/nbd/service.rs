//! Serves a volume over all connections of the kernel's device, and makes a new connection where
//! the kernel gave one up though this process lives: a request took longer than its time.
//!
//! A new connection is made only when nothing of the old one is under way any more. So a disk that
//! hangs makes no threads without end. What is sent again meanwhile comes over another connection,
//! beside what it repeats: a volume that two overlapping writes may reach at once is not served
//! well by this; that of `driver` does them one after the other.

use super::device::KernelDevice;
use super::protocol::Negotiated;
use super::server::serve;
use crate::volume::Volume;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// After a connection that could not be made.
const PAUSE: Duration = Duration::from_secs(1);

/// The threads that serve a device.
#[derive(Debug)]
pub struct DeviceServer {
    threads: Vec<JoinHandle<()>>,
    is_ending: Arc<AtomicBool>,
}

impl DeviceServer {
    /// Begins to serve `volume` over `streams`, the connections of `device`, with so many requests
    /// of each at a time.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(
        device: &KernelDevice,
        streams: Vec<UnixStream>,
        volume: &Arc<dyn Volume>,
        requests: usize,
    ) -> sys::Result<Self> {
        let is_ending = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::with_capacity(streams.len());
        for stream in streams {
            let (device, volume) = (device.clone(), Arc::clone(volume));
            let ending = Arc::clone(&is_ending);
            let run = move || serve_for_good(&device, stream, volume.as_ref(), requests, &ending);
            let started = std::thread::Builder::new().name("nbd".to_owned()).spawn(run);
            threads.push(started.map_err(|source| sys::Error::new("start a thread", source))?);
        }
        Ok(Self { threads, is_ending })
    }

    /// From now on a connection that ends is not replaced.
    pub fn let_end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
    }

    /// Waits for the end of all connections, for a time at most; whether it came. What is still
    /// served then goes on.
    #[must_use]
    pub fn join_within(self, limit: Duration) -> bool {
        self.let_end();
        let end = Instant::now() + limit;
        while !self.threads.iter().all(JoinHandle::is_finished) {
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

/// Serves one connection after the other, until the device ends.
fn serve_for_good(
    device: &KernelDevice,
    mut stream: UnixStream,
    volume: &dyn Volume,
    requests: usize,
    is_ending: &AtomicBool,
) {
    let close = |stream: &UnixStream| drop(stream.shutdown(Shutdown::Both));
    loop {
        // An error of one connection ends that alone.
        let has_left = serve(&stream, volume, Negotiated::default(), requests, close);
        drop(stream);
        if matches!(has_left, Ok(true)) {
            return;
        }
        stream = loop {
            if is_ending.load(Ordering::SeqCst) || !device.is_connected() {
                return;
            }
            match device.take_over() {
                Ok(stream) => break stream,
                Err(_) => std::thread::sleep(PAUSE),
            }
        };
    }
}

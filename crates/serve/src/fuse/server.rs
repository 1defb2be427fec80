//! Serves a volume as the only file of a file system, with one thread for each channel.
//!
//! Each thread reads a request, has the volume do it and answers, so as many requests are under way
//! as there are channels. A panic of the volume is an error of that request alone. The threads end
//! when the file system is unmounted. Where a killed server must have a successor, a kernel that
//! cannot send requests again is refused at its first one.

use super::channel::{Channel, Received};
use super::protocol::{
    self, DATA_BYTES_MAX, FileRequest, FileRequestKind, OPEN_DIRECT, REQUEST_ROOM, attributes_body,
    errno, error_number, init_body, open_body, statfs_body, words,
};
use crate::volume::{Volume, VolumeResult, is_within};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What the memory of a thread is filled with. Not 0: memory of zeros has no pages before they are
/// touched. If the process is killed while the kernel copies a request into a page that is not
/// there, the kernel gives up, and the request ends with `EIO` instead of waiting for a successor.
const FILL: u8 = 1;

/// How the file behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// How many seconds the kernel may keep its attributes.
    pub valid_s: u64,
    /// How the kernel is to treat an open file, as `OPEN_DIRECT` of [`protocol`].
    pub open_flags: u32,
    /// Holes can be punched, so a loop device over it can be trimmed.
    pub has_holes: bool,
    /// Requests that the kernel may have under way for a loop device; 0 is its own limit, 12.
    pub background: u16,
    /// A kernel that cannot send requests again to a successor (before Linux 6.9) is refused.
    pub needs_resend: bool,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            valid_s: 3600,
            open_flags: OPEN_DIRECT,
            has_holes: false,
            background: 0,
            needs_resend: false,
        }
    }
}

impl FileOptions {
    /// For a loop device with as many requests under way as the kernel has.
    pub const DISK: Self = Self {
        valid_s: 3600,
        open_flags: OPEN_DIRECT | protocol::OPEN_PARALLEL_WRITES,
        has_holes: true,
        background: 128,
        needs_resend: false,
    };
}

/// The kernel's first request of a connection has not come, was answered, or was refused.
const NOT_MET: u8 = 0;
const AGREED: u8 = 1;
const REFUSED: u8 = 2;

/// The threads that serve a file.
#[derive(Debug)]
pub struct FileServer {
    threads: Vec<JoinHandle<()>>,
    agreement: Arc<AtomicU8>,
}

impl FileServer {
    /// Begins to serve `volume` through all `channels` of one connection.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(
        channels: Vec<Channel>,
        volume: Arc<dyn Volume>,
        options: FileOptions,
    ) -> sys::Result<Self> {
        let mut threads = Vec::with_capacity(channels.len());
        let agreement = Arc::new(AtomicU8::new(NOT_MET));
        for channel in channels {
            let mut thread = FileThread::new(channel, Arc::clone(&volume), options);
            thread.agreement = Arc::clone(&agreement);
            let started = std::thread::Builder::new()
                .name("fuse".to_owned())
                .spawn(move || thread.run())
                .map_err(|source| sys::Error::new("start a thread", source))?;
            threads.push(started);
        }
        Ok(Self { threads, agreement })
    }

    /// Waits, for a time at most, until the kernel has begun a new connection; whether it has what
    /// [`FileOptions::needs_resend`] demands. `None` if it has not begun: also for a successor,
    /// whose connection was begun by another server.
    #[must_use]
    pub fn is_accepted(&self, limit: Duration) -> Option<bool> {
        let end = Instant::now() + limit;
        loop {
            match self.agreement.load(Ordering::SeqCst) {
                AGREED => return Some(true),
                REFUSED => return Some(false),
                _ if Instant::now() > end => return None,
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Waits for the unmount as [`Self::join`] does, for a time at most; whether it came. What is
    /// still served then goes on.
    #[must_use]
    pub fn join_within(self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        while !self.threads.iter().all(JoinHandle::is_finished) {
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.join();
        true
    }

    /// Waits until the file system is unmounted.
    pub fn join(self) {
        for thread in self.threads {
            // It catches what its volume panics with.
            let _ = thread.join();
        }
    }
}

/// One thread with its channel and the memory that it needs.
pub struct FileThread {
    channel: Channel,
    volume: Arc<dyn Volume>,
    options: FileOptions,
    agreement: Arc<AtomicU8>,
    request: Vec<u8>,
    data: Vec<u8>,
}

impl std::fmt::Debug for FileThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileThread").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl FileThread {
    /// All memory is made here.
    #[must_use]
    pub fn new(channel: Channel, volume: Arc<dyn Volume>, options: FileOptions) -> Self {
        let (request, data) = (vec![FILL; REQUEST_ROOM], vec![FILL; DATA_BYTES_MAX]);
        let agreement = Arc::new(AtomicU8::new(NOT_MET));
        Self { channel, volume, options, agreement, request, data }
    }

    /// Serves until the file system is unmounted.
    pub fn run(&mut self) {
        while self.step(true).is_some() {}
    }

    /// Reads one request and answers it, unless `answers` is false; `None` when the file system is
    /// unmounted, else whether there was one.
    pub fn step(&mut self, answers: bool) -> Option<bool> {
        let request = match self.channel.receive(&mut self.request) {
            Received::Request(request) => request,
            Received::Nothing => return Some(false),
            Received::Ended => return None,
        };
        if !answers {
            return Some(true);
        }
        let Ok(FileRequest { unique, kind }) = protocol::parse(request) else {
            self.channel.answer(protocol::unique(request), errno::EIO, &[]);
            return Some(true);
        };
        let (volume, options) = (self.volume.as_ref(), self.options);
        if let FileRequestKind::Init(init) = kind {
            let is_refused = options.needs_resend && !init.has_resend();
            let body = init_body(init, options.background);
            // Refused, the kernel ends the connection.
            let (error, body) =
                if is_refused { (errno::EPROTO, &[][..]) } else { (0, body.as_slice()) };
            self.channel.answer(unique, error, body);
            self.agreement.store(if is_refused { REFUSED } else { AGREED }, Ordering::SeqCst);
            return Some(true);
        }
        let (channel, data) = (&self.channel, &mut self.data);
        let done = catch_unwind(AssertUnwindSafe(|| {
            answer(channel, volume, options, unique, kind, data);
        }));
        if done.is_err() {
            channel.answer(unique, errno::EIO, &[]);
        }
        Some(true)
    }
}

fn answer(
    channel: &Channel,
    volume: &dyn Volume,
    options: FileOptions,
    unique: u64,
    kind: FileRequestKind<'_>,
    room: &mut [u8],
) {
    let answer = |error, body: &[u8]| channel.answer(unique, error, body);
    let end = |result: VolumeResult, body: &[u8]| match result {
        Ok(()) => channel.answer(unique, 0, body),
        Err(error) => channel.answer(unique, error_number(error.0), &[]),
    };
    let is_inside = |offset, len| is_within(volume.bytes(), offset, len);
    match kind {
        // Answered before.
        FileRequestKind::Init(_) => {}
        FileRequestKind::Attributes => {
            answer(0, &attributes_body(volume.bytes(), options.valid_s));
        }
        FileRequestKind::Open => answer(0, &open_body(options.open_flags)),
        FileRequestKind::Read { offset, len } => {
            // What lies behind the end is not there, which is no error: the kernel reads whole
            // pages.
            let len = u64::from(len).min(volume.bytes().saturating_sub(offset)) as usize;
            match room.get_mut(..len) {
                Some([]) => answer(0, &[]),
                Some(buffer) => {
                    let result = volume.read(offset, buffer);
                    end(result, buffer);
                }
                None => answer(errno::EIO, &[]),
            }
        }
        FileRequestKind::Write { offset, data } if is_inside(offset, data.len() as u64) => {
            end(volume.write(offset, data), &words(data.len() as u32, 0));
        }
        FileRequestKind::Zero { offset, len } if options.has_holes && is_inside(offset, len) => {
            end(volume.write_zeroes(offset, len), &[]);
        }
        FileRequestKind::Zero { .. } if options.has_holes => answer(errno::EOPNOTSUPP, &[]),
        FileRequestKind::Write { .. } => answer(errno::EIO, &[]),
        FileRequestKind::Sync => end(volume.flush(), &[]),
        FileRequestKind::StatFs if options.has_holes => answer(0, &statfs_body(volume.bytes())),
        FileRequestKind::Acknowledge => answer(0, &[]),
        FileRequestKind::Unanswered => {}
        FileRequestKind::Zero { .. } | FileRequestKind::StatFs | FileRequestKind::Unknown => {
            answer(errno::ENOSYS, &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::DeviceVolume;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use testkit::MemoryDevice;

    /// What a server answers to the first request of a kernel with these flags: the error, and
    /// whether it accepts it.
    fn met(flags: [u32; 2], needs_resend: bool) -> (i32, u8) {
        let (kernel, server) = UnixStream::pair().unwrap();
        let body = [7, 41, 0, flags[0], flags[1], 0].map(u32::to_ne_bytes).concat();
        let mut request = vec![0; protocol::HEADER_IN];
        request[..4].copy_from_slice(&((protocol::HEADER_IN + body.len()) as u32).to_ne_bytes());
        request[4..8].copy_from_slice(&protocol::opcode::INIT.to_ne_bytes());
        request.extend(body);
        (&kernel).write_all(&request).unwrap();
        let volume = Arc::new(DeviceVolume::new(MemoryDevice::new(512)).unwrap());
        let options = FileOptions { needs_resend, ..FileOptions::DISK };
        let mut thread = FileThread::new(Channel::from(OwnedFd::from(server)), volume, options);
        assert_eq!(thread.step(true), Some(true));
        let mut header = [0; protocol::HEADER_OUT];
        (&kernel).read_exact(&mut header).unwrap();
        (protocol::number32(&header, 4) as i32, thread.agreement.load(Ordering::SeqCst))
    }

    #[test]
    fn a_kernel_that_sends_nothing_again_is_refused_where_that_is_needed() {
        // `FUSE_INIT_EXT`, and `FUSE_HAS_RESEND` of the second half.
        let new = [1 << 30, 1 << 7];
        assert_eq!(met([0, 0], true), (-errno::EPROTO, REFUSED));
        assert_eq!(met([1 << 30, 0], true), (-errno::EPROTO, REFUSED));
        assert_eq!(met([0, 1 << 7], true), (-errno::EPROTO, REFUSED));
        assert_eq!(met(new, true), (0, AGREED));
        assert_eq!(met([0, 0], false), (0, AGREED));
    }

    #[test]
    fn the_memory_of_a_thread_is_there_before_the_first_request() {
        let channel = Channel::of(File::open("/dev/null").unwrap());
        let volume = Arc::new(DeviceVolume::new(MemoryDevice::new(512)).unwrap());
        let thread = FileThread::new(channel, volume, FileOptions::default());
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        let page_bytes = sys::process::page_bytes() as u64;
        for memory in [&thread.request, &thread.data] {
            let ends = memory.as_ptr_range();
            // Its whole pages.
            let start = (ends.start as u64).next_multiple_of(page_bytes);
            let end = ends.end as u64 / page_bytes * page_bytes;
            match sys::pagemap::used(&pagemap, start..end) {
                Ok((parts, _)) => {
                    let used: u64 = parts.iter().map(|part| part.end - part.start).sum();
                    assert_eq!(used, end - start);
                }
                Err(error) => testkit::skip(format!("PAGEMAP_SCAN (Linux 6.7): {error}")),
            }
        }
    }
}

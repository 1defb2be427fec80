//! Tests of the driver with small engines: what it guarantees to any of them. The flash cache is
//! driven in `tests/served/cached.rs`.

use super::*;
use model::device::{Alignment, BlockDevice, DeviceError};
use model::engine::{BufferId, BufferRange, Operation, OperationId, Output, RequestId};
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Condvar, Mutex};
use testkit::MemoryDevice;

const BYTES: u64 = 4 << 20;
const BLOCK: u32 = 512;

/// A device in memory that other owners see too, and that can be held up.
#[derive(Clone)]
struct Medium {
    memory: Arc<MemoryDevice>,
    gate: Arc<(Mutex<bool>, Condvar)>,
    waiting: Arc<AtomicUsize>,
    /// Of each write.
    lengths: Arc<Mutex<Vec<usize>>>,
    /// The parts of each request of several.
    together: Arc<Mutex<Vec<usize>>>,
    /// Where a read fails.
    bad: Arc<AtomicU64>,
}

impl Medium {
    fn new(bytes: u64) -> Self {
        let memory = Arc::new(MemoryDevice::new(bytes as usize));
        let gate = Arc::new((Mutex::new(true), Condvar::new()));
        Self {
            memory,
            gate,
            waiting: Arc::default(),
            lengths: Arc::default(),
            together: Arc::default(),
            bad: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    fn set_open(&self, is_open: bool) {
        *self.gate.0.lock().unwrap() = is_open;
        self.gate.1.notify_all();
    }

    fn pass(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let open = self.gate.0.lock().unwrap();
        drop(self.gate.1.wait_while(open, |is_open| !*is_open).unwrap());
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl BlockDevice for Medium {
    fn size_bytes(&self) -> Result<u64, DeviceError> {
        self.memory.size_bytes()
    }

    fn alignment(&self) -> Alignment {
        Alignment::NONE
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DeviceError> {
        self.pass();
        if (offset..offset + buffer.len() as u64).contains(&self.bad.load(Ordering::SeqCst)) {
            let source = std::io::Error::from_raw_os_error(61);
            return Err(DeviceError::new("read", Some(offset), source));
        }
        self.memory.read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> Result<usize, DeviceError> {
        self.pass();
        self.lengths.lock().unwrap().push(buffer.len());
        self.memory.write_at(buffer, offset)
    }

    fn discard(&self, range: Range<u64>) -> Result<(), DeviceError> {
        self.memory.discard(range)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.pass();
        Ok(())
    }
}

impl DriverDevice for Medium {
    fn read_vectored_at(
        &self,
        parts: &mut [IoSliceMut<'_>],
        offset: u64,
    ) -> Result<usize, DeviceError> {
        self.together.lock().unwrap().push(parts.len());
        let mut done = 0;
        for part in parts {
            done += self.read_at(part, offset + done as u64)?;
        }
        Ok(done)
    }

    fn write_vectored_at(&self, parts: &[IoSlice<'_>], offset: u64) -> Result<usize, DeviceError> {
        self.together.lock().unwrap().push(parts.len());
        self.pass();
        self.lengths.lock().unwrap().extend(parts.iter().map(|part| part.len()));
        let whole: Vec<u8> = parts.iter().flat_map(|part| part.iter()).copied().collect();
        self.memory.write_at(&whole, offset)
    }
}

/// An engine that passes everything on to one device; a flush revokes the journal, and a request at
/// [`BAD`] is a fault of its own.
struct PassThrough {
    to: Device,
    open: Vec<(u64, Range<u64>)>,
    overlapped: Arc<AtomicBool>,
}

const BAD: u64 = BYTES - BLOCK as u64;

impl PassThrough {
    fn new(to: Device) -> Self {
        Self { to, open: Vec::new(), overlapped: Arc::default() }
    }
}

impl Engine for PassThrough {
    fn handle(&mut self, input: Input, _: &mut dyn Buffers, outputs: &mut Vec<Output>) {
        outputs.push(match input {
            Input::Request { id, request } => {
                let operation = match request {
                    Request::Read { offset, data } => {
                        assert!(offset != BAD, "a fault of the engine");
                        Operation::Read { offset, data }
                    }
                    Request::Write { offset, data } => {
                        let range = offset..offset + u64::from(data.len);
                        let meets = |of: &Range<u64>| of.start < range.end && range.start < of.end;
                        let overlaps = self.open.iter().any(|(_, of)| meets(of));
                        self.overlapped.fetch_or(overlaps, Ordering::SeqCst);
                        self.open.push((id.0, range));
                        Operation::Write { offset, data }
                    }
                    Request::WriteZeroes { offset, len } => Operation::WriteZeroes { offset, len },
                    Request::Discard { offset, len } => Operation::Discard { offset, len },
                    Request::Flush => {
                        let (id, device) = (OperationId(id.0), Device::Journal);
                        return outputs.push(Output::Operate {
                            id,
                            device,
                            operation: Operation::Revoke,
                        });
                    }
                    Request::Prefetch { .. } => {
                        return outputs.push(Output::Complete { id, result: Ok(()) });
                    }
                };
                Output::Operate { id: OperationId(id.0), device: self.to, operation }
            }
            Input::Completion { id, result } => {
                self.open.retain(|(of, _)| *of != id.0);
                Output::Complete { id: RequestId(id.0), result }
            }
            Input::Detach => Output::Event(Event::Detached { is_proved: true }),
            Input::Tick { .. } | Input::CacheReturned => return,
        });
    }
}

fn options() -> DriverOptions {
    let of = DriverOptions::of(BYTES + 100, BLOCK);
    DriverOptions { requests: 8, request_bytes: 64 << 10, threads: [4, 1, 1], ..of }
}

/// Backing, cache and journal, and the driver over them.
fn driven(engine: impl Engine + Send + 'static, cache_bytes: u64) -> (Driver, [Medium; 3]) {
    let (driver, media) = started(engine, cache_bytes, options());
    (driver.unwrap(), media)
}

fn started(
    engine: impl Engine + Send + 'static,
    cache_bytes: u64,
    options: DriverOptions,
) -> (Result<Driver, String>, [Medium; 3]) {
    let media = [BYTES, cache_bytes, 4096].map(Medium::new);
    let [backing, cache, journal] = media.clone();
    let revoked = Arc::clone(&journal.memory);
    let journal = RevocableDevice::new(journal, move || {
        let zeroes = vec![0; 4096];
        revoked.write_at(&zeroes, 0).map(drop).map_err(|error| error.source)
    });
    let devices = DriverDevices {
        backing: Arc::new(backing),
        cache: Arc::new(cache),
        cache_file: None,
        journal: Arc::new(journal),
    };
    let open = |_: &mut dyn Buffers| Ok(engine);
    (Driver::start(options, devices, &[], open, |_| {}), media)
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / 512 * 7 + at) as u8).collect()
}

#[test]
fn long_requests_are_cut_and_all_bytes_arrive() {
    let (driver, [backing, ..]) = driven(PassThrough::new(Device::Backing), 4096);
    assert_eq!(driver.bytes(), BYTES);
    // More pieces than requests may be open.
    let data = pattern(2 << 20);
    driver.write(512, &data).unwrap();
    assert!(backing.memory.contents()[512..][..data.len()] == data);
    let mut read = vec![0; data.len()];
    driver.read(512, &mut read).unwrap();
    assert!(read == data);
    // All pieces that are open together are one request to the disk.
    assert_eq!(*backing.together.lock().unwrap(), [8; 8]);
    driver.write_zeroes(1024, 512).unwrap();
    assert_eq!(backing.memory.contents()[1024..1536], [0; 512]);
    driver.discard(512, 512).unwrap();
    driver.prefetch(0, 4096).unwrap();
    assert_eq!(driver.detach(Duration::from_secs(60)), Some(true));
}

#[test]
fn what_is_not_of_whole_blocks_within_the_volume_is_refused() {
    let (driver, _) = driven(PassThrough::new(Device::Backing), 4096);
    for (offset, len) in [(1, 512), (0, 511), (BYTES, 512), (u64::MAX - 511, 512), (512, BYTES)] {
        assert_eq!(driver.discard(offset, len), Err(INVALID), "{offset} {len}");
    }
    assert_eq!(driver.read(100, &mut [0; 512]), Err(INVALID));
    assert_eq!(driver.write(0, &[0; 100]), Err(INVALID));
}

#[test]
fn pieces_of_a_request_are_of_whole_blocks() {
    let start = |request_bytes, block_bytes| {
        let engine = PassThrough::new(Device::Backing);
        started(engine, 4096, DriverOptions { request_bytes, block_bytes, ..options() })
    };
    for (request_bytes, block_bytes) in [(0, BLOCK), (BLOCK - 1, BLOCK), (4096, 0)] {
        assert!(start(request_bytes, block_bytes).0.is_err(), "{request_bytes} {block_bytes}");
    }
    let (driver, [backing, ..]) = start(2 * BLOCK + 100, BLOCK);
    let data = pattern(5 * BLOCK as usize);
    driver.unwrap().write(512, &data).unwrap();
    assert!(backing.memory.contents()[512..][..data.len()] == data);
    let lengths = backing.lengths.lock().unwrap();
    assert!(lengths.len() == 3 && lengths.iter().all(|it| it.is_multiple_of(BLOCK as usize)));
}

#[test]
fn a_flush_revokes_as_the_engine_wants() {
    let (driver, [_, _, journal]) = driven(PassThrough::new(Device::Backing), 4096);
    journal.memory.write_at(&[9; 4096], 0).unwrap();
    driver.flush().unwrap();
    assert_eq!(journal.memory.contents(), [0; 4096]);
}

#[test]
fn writes_that_overlap_are_not_open_together() {
    let engine = PassThrough::new(Device::Backing);
    let overlapped = Arc::clone(&engine.overlapped);
    let (driver, [backing, ..]) = driven(engine, 4096);
    std::thread::scope(|scope| {
        for thread in 0..8u8 {
            let driver = &driver;
            scope.spawn(move || {
                for round in 0..50u64 {
                    let offset = (u64::from(thread) + round) % 4 * 512;
                    driver.write(offset, &vec![thread; 200 << 10]).unwrap();
                }
            });
        }
    });
    assert!(!overlapped.load(Ordering::SeqCst));
    // Each block is of one write.
    for block in backing.memory.contents().chunks_exact(512).take(400) {
        assert!(block.iter().all(|byte| *byte == block[0]));
    }
}

#[test]
fn what_was_given_out_before_never_reaches_the_new_device() {
    let (driver, [_, old, _]) = driven(PassThrough::new(Device::Cache), BYTES);
    old.set_open(false);
    let new = Medium::new(BYTES);
    std::thread::scope(|scope| {
        let driver = &driver;
        let before: Vec<_> =
            (0..3).map(|at| scope.spawn(move || driver.write(at * 512, &[1; 512]))).collect();
        // One is under way, two wait for the only thread.
        while old.waiting.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        while driver.shared.lock().open_requests() < 3 {
            std::thread::yield_now();
        }
        driver.replace_cache(Arc::new(new.clone()), None).unwrap();
        // The new one does not wait for the old one.
        driver.write(4096, &[2; 512]).unwrap();
        old.set_open(true);
        before.into_iter().for_each(|write| write.join().unwrap().unwrap());
    });
    let (old, new) = (old.memory.contents(), new.memory.contents());
    assert!(old[..1536].iter().all(|byte| *byte == 1) && old[1536..].iter().all(|it| *it == 0));
    assert!(new[..4096].iter().all(|byte| *byte == 0) && new[4096..4608] == [2; 512]);
}

#[test]
fn an_error_in_a_request_of_several_is_that_of_one() {
    // The cache has one thread.
    let (driver, [_, cache, _]) = driven(PassThrough::new(Device::Cache), BYTES);
    cache.memory.write_at(&pattern(8192), 0).unwrap();
    cache.bad.store(2048, Ordering::SeqCst);
    cache.set_open(false);
    let read = |offset: u64| {
        let mut read = vec![0; 1024];
        driver.read(offset, &mut read).map(|()| read)
    };
    let wait_for = |requests| {
        while driver.shared.lock().open_requests() < requests {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        let read = &read;
        let ahead = scope.spawn(move || read(64 << 10));
        while cache.waiting.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        let reads: Vec<_> = (1..5)
            .map(|number| {
                let one = scope.spawn(move || read(number * 1024));
                wait_for(number as usize + 1);
                one
            })
            .collect();
        cache.set_open(true);
        ahead.join().unwrap().unwrap();
        for (number, one) in (1..).zip(reads) {
            let ended = one.join().unwrap();
            match number {
                2 => assert_eq!(ended, Err(ErrorNumber(61))),
                _ => assert!(ended.unwrap() == pattern(8192)[number * 1024..][..1024]),
            }
        }
    });
    assert_eq!(*cache.together.lock().unwrap(), [4]);
}

/// Writes to the cache: at the place of the request before the medium has returned, [`BYTES`]
/// behind it afterwards.
struct Comparing {
    has_returned: bool,
}

impl Engine for Comparing {
    fn handle(&mut self, input: Input, _: &mut dyn Buffers, outputs: &mut Vec<Output>) {
        match input {
            Input::Request { id, request: Request::Write { offset, data } } => {
                let offset = offset + if self.has_returned { BYTES } else { 0 };
                let operation = Operation::Write { offset, data };
                let (id, device) = (OperationId(id.0), Device::Cache);
                outputs.push(Output::Operate { id, device, operation });
            }
            Input::Completion { id, result } => {
                outputs.push(Output::Complete { id: RequestId(id.0), result });
            }
            Input::CacheReturned => self.has_returned = true,
            _ => {}
        }
    }
}

#[test]
fn the_engine_knows_of_a_new_medium_before_it_can_write_to_it() {
    for _ in 0..20 {
        let engine = Comparing { has_returned: false };
        let (driver, [_, old, _]) = driven(engine, 2 * BYTES);
        let new = Medium::new(2 * BYTES);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let driver = &driver;
                scope.spawn(move || {
                    for _ in 0..400 {
                        driver.write(thread * 512, &[1; 512]).unwrap();
                    }
                });
            }
            while old.lengths.lock().unwrap().is_empty() {
                std::thread::yield_now();
            }
            driver.replace_cache(Arc::new(new.clone()), None).unwrap();
        });
        driver.write(0, &[1; 512]).unwrap();
        let (old, new) = (old.memory.contents(), new.memory.contents());
        let (first, second) = (..BYTES as usize, BYTES as usize..);
        assert!(old[second.clone()].iter().all(|byte| *byte == 0));
        assert!(new[first].iter().all(|byte| *byte == 0) && new[second][0] == 1);
    }
}

#[test]
fn a_medium_that_grows_has_zeros_behind_its_end_and_a_volume_does_not() {
    let (driver, [_, cache, _]) = driven(PassThrough::new(Device::Cache), 1024);
    cache.memory.write_at(&[3; 1024], 0).unwrap();
    let mut read = [9; 2048];
    driver.read(512, &mut read).unwrap();
    assert!(read[..512] == [3; 512] && read[512..] == [0; 1536]);
    let (driver, _) = driven(PassThrough::new(Device::Journal), 4096);
    assert_eq!(driver.read(8192, &mut read), Err(ErrorNumber::EIO));
}

#[test]
fn a_fault_of_the_engine_is_an_error_of_its_requests() {
    let (driver, [backing, ..]) = driven(PassThrough::new(Device::Backing), 4096);
    backing.set_open(false);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| driver.flush().and(driver.write(0, &[1; 512])));
        while backing.waiting.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(driver.read(BAD, &mut [0; 512]), Err(ErrorNumber::EIO));
        assert_eq!(driver.flush(), Err(ErrorNumber::EIO));
        // What was under way ends when the disk has answered.
        backing.set_open(true);
        assert_eq!(waits.join().unwrap(), Err(ErrorNumber::EIO));
    });
}

#[test]
fn the_engine_owns_the_buffers_that_it_asked_for() {
    let media = [BYTES, 4096, 4096].map(Medium::new);
    let [backing, cache, journal] = media;
    let devices = DriverDevices {
        backing: Arc::new(backing),
        cache: Arc::new(cache),
        cache_file: None,
        journal: Arc::new(journal),
    };
    let open = |buffers: &mut dyn Buffers| {
        let taken = [buffers.take(64 << 10), buffers.take(1)];
        assert!(taken[0].is_none(), "those of the requests are taken");
        let own = BufferRange::first(taken[1].unwrap(), 4096);
        buffers.bytes_mut(own).fill(1);
        Err::<PassThrough, _>("no more".to_owned())
    };
    let failed = Driver::start(options(), devices, &[(4096, 1)], open, |_| {});
    assert_eq!(failed.err().unwrap(), "no more");
}

/// Reads the cache into buffers of its own, and answers after a silent second as it is.
struct Impatient {
    own: Vec<BufferId>,
    open: Vec<(RequestId, u64)>,
    now_ns: u64,
    late: Arc<AtomicUsize>,
}

impl Engine for Impatient {
    fn handle(&mut self, input: Input, _: &mut dyn Buffers, outputs: &mut Vec<Output>) {
        match input {
            Input::Request { id, request: Request::Read { offset, .. } } => {
                self.open.push((id, self.now_ns));
                let data = BufferRange::first(self.own.pop().unwrap(), BLOCK);
                let operation = Operation::Read { offset, data };
                let (id, device) = (OperationId(id.0), Device::Cache);
                outputs.push(Output::Operate { id, device, operation });
            }
            Input::Completion { id, result } => {
                let of = |(open, _): &(RequestId, u64)| open.0 == id.0;
                match self.open.iter().position(of) {
                    Some(at) => {
                        let (id, _) = self.open.remove(at);
                        outputs.push(Output::Complete { id, result });
                    }
                    None => drop(self.late.fetch_add(1, Ordering::SeqCst)),
                }
            }
            Input::Tick { now_ns } => {
                self.now_ns = now_ns;
                let is_late = |since: u64| now_ns - since > 1_000_000_000;
                let late = self.open.extract_if(.., |(_, since)| is_late(*since));
                outputs.extend(late.map(|(id, _)| Output::Complete { id, result: Ok(()) }));
            }
            _ => {}
        }
    }
}

/// The driver over a medium that is `file` too, and that medium as a device.
fn over_file(engine: impl Engine + Send + 'static, file: std::fs::File) -> (Driver, Medium) {
    let (driver, [_, cache, _]) = driven(engine, BYTES);
    driver.replace_cache(Arc::new(cache.clone()), Some(&file)).unwrap();
    (driver, cache)
}

#[test]
fn a_caller_reads_a_file_itself_and_finds_zeros_behind_its_end() {
    let directory = testkit::TempDir::new();
    let path = directory.join("medium");
    std::fs::write(&path, pattern(40 << 10)).unwrap();
    let (driver, cache) =
        over_file(PassThrough::new(Device::Cache), std::fs::File::open(&path).unwrap());
    let has_readers = sys::uring::Queue::new(1, 4096).is_ok();
    for (offset, len) in [(0, 512), (4096, 32 << 10), (36 << 10, 8 << 10), (60 << 10, 512)] {
        cache.set_open(!has_readers);
        let mut read = vec![9; len];
        driver.read(offset as u64, &mut read).unwrap();
        let mut all = pattern(40 << 10);
        all.resize(100 << 10, 0);
        assert!(!has_readers || read == all[offset..offset + len], "{len} from {offset} on");
    }
    // What is longer than a frame is read by a thread, from the device.
    cache.set_open(true);
    let data = pattern(64 << 10);
    driver.write(0, &data).unwrap();
    let mut read = vec![0; data.len()];
    driver.read(0, &mut read).unwrap();
    assert!(read == data);
    // The descriptor of a directory can be opened, and no more.
    let directory = std::fs::File::open(directory.path()).unwrap();
    let (driver, _) = over_file(PassThrough::new(Device::Cache), directory);
    assert_eq!(driver.read(0, &mut [0; 512]).is_err(), has_readers);
}

#[test]
fn a_file_that_hangs_holds_up_no_caller() {
    use std::io::Write;
    let late = Arc::new(AtomicUsize::new(0));
    // Nothing can be read of a pipe before something is written to it.
    let (reader, mut writer) = std::io::pipe().unwrap();
    let pipe: std::fs::File = std::os::fd::OwnedFd::from(reader).into();
    let medium = Medium::new(BYTES);
    let devices = DriverDevices {
        backing: Arc::new(medium.clone()),
        cache: Arc::new(medium.clone()),
        cache_file: Some(pipe),
        journal: Arc::new(medium.clone()),
    };
    let counted = Arc::clone(&late);
    let open = |buffers: &mut dyn Buffers| {
        let own = (0..4).filter_map(|_| buffers.take(BLOCK)).collect();
        Ok(Impatient { own, open: Vec::new(), now_ns: 0, late: counted })
    };
    let driver = Driver::start(options(), devices, &[(BLOCK, 4)], open, |_| {}).unwrap();
    for _ in 0..2 {
        driver.read(0, &mut [0; 512]).unwrap();
    }
    // One of them is left with a medium that is not used any more.
    driver.replace_cache(Arc::new(medium), None).unwrap();
    driver.read(512, &mut [0; 512]).unwrap();
    if sys::uring::Queue::new(1, 4096).is_err() {
        return testkit::skip("io_uring");
    }
    assert_eq!(late.load(Ordering::SeqCst), 0, "both still wait");
    writer.write_all(&[7; 1024]).unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while late.load(Ordering::SeqCst) < 2 {
        assert!(Instant::now() < end, "{late:?} of 2 reads have ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    driver.read(1024, &mut [0; 512]).unwrap();
}

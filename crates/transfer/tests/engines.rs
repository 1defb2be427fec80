//! Every engine moves the same bytes: any extents, any depth, any size of the buffers, with faults
//! drawn from a seed, and whatever ends a run half-way.
//!
//! The oracle is a copy in memory. Parts need io_uring or strace, and say so.
#![allow(clippy::unwrap_used, reason = "what helpers cannot do fails the test")]

use model::device::BlockDevice;
use model::progress::{Control, ProgressUnit};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use sys::file::Scratch;
use sys::uring::Queue;
use testkit::{Fault, Faulty, MemoryDevice, Random, TempDir};
use transfer::{
    Calls, Engine, Extent, Failure, FileEngine, MovedPiece, Observer, ReportProgress, Route,
    Summary, Workers, run,
};

const COPY: Route = Route::Copy { source: 0, target: 1 };
const DEVICE_BYTES: usize = 1 << 16;

fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut data = vec![0; bytes];
    Random(seed).fill(&mut data);
    data
}

/// A device with this content, which lives as long as the test program: threads may hold it.
fn memory(content: &[u8]) -> &'static MemoryDevice {
    let device = MemoryDevice::new(content.len());
    device.write_at(content, 0).unwrap();
    Box::leak(Box::new(device))
}

/// What the target holds afterwards, from `source`.
fn expected(source: &[u8], extents: &[Extent]) -> Vec<u8> {
    let mut target = vec![0; DEVICE_BYTES];
    for extent in extents {
        let bytes = extent.bytes as usize;
        target[extent.target as usize..][..bytes]
            .copy_from_slice(&source[extent.source as usize..][..bytes]);
    }
    target
}

/// Extents that do not overlap on the target, inside of the devices.
fn extents() -> impl Strategy<Value = Vec<Extent>> {
    let part = (0_u64..3000, 0_u64..9000, 0_u64..40_000);
    prop::collection::vec(part, 0..5).prop_map(|parts| {
        let mut target = 0;
        let cut = parts.into_iter().map(|(gap, bytes, source)| {
            let extent = Extent { source, target: target + gap, bytes };
            target += gap + bytes;
            extent
        });
        cut.collect()
    })
}

/// Remembers what was reported.
#[derive(Default)]
struct Report {
    data: BTreeMap<u64, Vec<u8>>,
    moved: Vec<Extent>,
    failed: Vec<(Extent, Option<u64>)>,
}

impl Observer for Report {
    fn read(&mut self, data: &mut [u8], extent: &Extent) {
        self.data.insert(extent.source, data.to_vec());
    }

    fn moved(&mut self, piece: &MovedPiece) {
        self.moved.push(piece.extent);
    }

    fn failed(&mut self, failure: &Failure) -> Control {
        self.failed.push((failure.extent, failure.error.offset));
        Control::Continue
    }
}

/// Copies with this engine; the summary was compared with the report.
fn copy<E: Engine>(engine: &mut E, extents: &[Extent]) -> (Summary, Report) {
    let mut report = Report::default();
    let summary = run(engine, COPY, extents.iter().copied(), &mut report);
    let moved: u64 = report.moved.iter().map(|extent| extent.bytes).sum();
    assert_eq!(summary.bytes, moved);
    assert_eq!(summary.failures, report.failed.len() as u64);
    assert_eq!(engine.in_flight(), 0);
    (summary, report)
}

proptest! {
    #[test]
    fn bytes_in_are_bytes_out(extents in extents(), depth in 1_u32..12, buffer in 1_usize..20_000) {
        let source = noise(DEVICE_BYTES, 5);
        let wanted = expected(&source, &extents);
        let total: u64 = extents.iter().map(|extent| extent.bytes).sum();
        let devices = || vec![memory(&source), memory(&vec![0; DEVICE_BYTES])];
        let check = |(summary, report): (Summary, Report), target: &[u8]| {
            prop_assert!(target == wanted);
            prop_assert_eq!((summary.bytes, summary.whole_bytes), (total, total));
            prop_assert!(summary.failure.is_none() && !summary.is_stopped);
            for (offset, data) in &report.data {
                prop_assert!(source[*offset as usize..].starts_with(data));
            }
            Ok(())
        };
        let called = devices();
        let mut calls = Calls::new(called.clone(), buffer).unwrap();
        check(copy(&mut calls, &extents), &called[1].contents())?;
        let threaded = devices();
        let mut workers = Workers::new(threaded.clone(), depth, buffer).unwrap();
        check(copy(&mut workers, &extents), &threaded[1].contents())?;
        let scratch = || Scratch::create_in(&std::env::temp_dir()).unwrap();
        let (from, to) = (scratch(), scratch());
        sys::file::write_at(from.file(), &source, 0).unwrap();
        to.file().set_len(DEVICE_BYTES as u64).unwrap();
        if let Ok(mut queue) = Queue::new(depth, buffer) {
            queue.add_file(from.file()).unwrap();
            queue.add_file(to.file()).unwrap();
            let answer = copy(&mut queue, &extents);
            let mut target = vec![0; DEVICE_BYTES];
            sys::file::read_at(to.file(), &mut target, 0).unwrap();
            check(answer, &target)?;
        }
    }

    /// What was reported as moved is on the target, what failed is reported with its offset, and
    /// nothing is both or neither.
    #[test]
    fn faults_are_reported_where_they_are(seed: u64, one_in in 2_u64..20, buffer in 100_usize..5000) {
        let source = noise(DEVICE_BYTES, 6);
        let faulty = |content: &[u8], seed| {
            let device = MemoryDevice::new(content.len());
            device.write_at(content, 0).unwrap();
            &*Box::leak(Box::new(Faulty::new(device).seeded(seed, one_in)))
        };
        let devices = vec![faulty(&source, seed), faulty(&vec![0; DEVICE_BYTES], !seed)];
        let whole = [Extent::at(0..DEVICE_BYTES as u64)];
        for use_threads in [false, true] {
            let (summary, report) = if use_threads {
                copy(&mut Workers::new(devices.clone(), 3, buffer).unwrap(), &whole)
            } else {
                copy(&mut Calls::new(devices.clone(), buffer).unwrap(), &whole)
            };
            let target = devices[1].inner().contents();
            for extent in &report.moved {
                let part = extent.source as usize..(extent.source + extent.bytes) as usize;
                prop_assert!(target[part.clone()] == source[part]);
            }
            for (extent, offset) in &report.failed {
                let piece = extent.source..extent.source + extent.bytes;
                prop_assert!(piece.contains(&offset.unwrap()));
            }
            let failed = report.failed.iter().map(|(extent, _)| extent.bytes).sum::<u64>();
            prop_assert_eq!(summary.bytes + failed, DEVICE_BYTES as u64);
            let first = report.failed.iter().map(|(extent, _)| extent.source).min();
            prop_assert_eq!(summary.whole_bytes, first.unwrap_or(DEVICE_BYTES as u64));
            prop_assert!(!summary.is_stopped);
        }
    }
}

#[test]
fn a_failure_stops_what_was_not_started_unless_the_caller_goes_on() {
    let device = Faulty::new(MemoryDevice::new(100)).failing(3);
    let mut calls = Calls::new(vec![&device], 10).unwrap();
    let summary = run(&mut calls, Route::Read(0), [Extent::at(0..100)], &mut ());
    let failure = summary.failure.unwrap();
    assert_eq!((failure.error.offset, failure.error.operation), (Some(30), "read"));
    assert_eq!((summary.bytes, summary.whole_bytes), (30, 30));
    assert!(summary.is_stopped);
    assert_eq!(device.operations(), 4);
}

#[test]
fn a_device_that_ends_early_is_a_failure_with_its_end() {
    let devices = [memory(&[1; 64]), memory(&[0; 25])];
    let mut calls = Calls::new(devices.to_vec(), 16).unwrap();
    let summary = run(&mut calls, Route::Read(0), [Extent::at(48..100)], &mut ());
    let failure = summary.failure.unwrap();
    assert_eq!(failure.error.source.kind(), std::io::ErrorKind::UnexpectedEof);
    assert_eq!((summary.bytes, failure.error.offset), (16, Some(64)));
    let summary = run(&mut calls, COPY, [Extent::at(0..64)], &mut ());
    let failure = summary.failure.unwrap();
    assert_eq!(failure.error.source.kind(), std::io::ErrorKind::WriteZero);
    // 9 of the second 16 bytes were taken.
    assert_eq!((summary.whole_bytes, failure.error.offset), (16, Some(25)));
    assert_eq!(failure.extent, Extent::at(16..32));
}

#[test]
fn a_write_gets_its_data_from_the_observer() {
    struct Content;
    impl Observer for Content {
        fn fill(&mut self, data: &mut [u8], extent: &Extent) {
            data.fill(extent.target as u8);
        }
    }
    let device = memory(&[0; 30]);
    let mut workers = Workers::new(vec![device], 2, 10).unwrap();
    let summary = run(&mut workers, Route::Write(0), [Extent::at(5..25)], &mut Content);
    assert_eq!(summary.bytes, 20);
    let contents = device.contents();
    assert_eq!((contents[4], contents[9], contents[19], contents[24]), (0, 5, 10, 20));
    assert_eq!(contents[25], 0);
}

#[test]
fn progress_is_reported_and_stops_the_run() {
    let mut calls = Calls::new(vec![memory(&[1; 100])], 10).unwrap();
    let mut seen = Vec::new();
    let mut sink = |progress: model::progress::Progress<'_>| {
        assert_eq!((progress.step, progress.unit), ("reading", ProgressUnit::Bytes));
        seen.push((progress.done, progress.total));
        Control::stop_if(progress.done >= 30)
    };
    let mut report = ReportProgress::new(&mut sink, "reading", Some(100));
    let summary = run(&mut calls, Route::Read(0), [Extent::at(0..100)], &mut report);
    assert_eq!((summary.bytes, summary.is_stopped), (30, true));
    assert_eq!(seen, [(10, Some(100)), (20, Some(100)), (30, Some(100))]);
}

#[test]
fn a_run_that_is_cut_half_way_leaves_no_thread() {
    struct Panics;
    impl Observer for Panics {
        fn moved(&mut self, _: &MovedPiece) {
            panic!("the caller failed");
        }
    }
    let slow = Fault::Delay(Duration::from_millis(50));
    let faulty = Faulty::new(MemoryDevice::new(1000)).with(1, slow.clone()).with(2, slow);
    // The threads share the device: when all have ended, this is its only owner.
    let device = Arc::new(faulty);
    let mut workers = Workers::new(vec![Shared(Arc::clone(&device))], 4, 100).unwrap();
    let cut = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run(&mut workers, Route::Read(0), [Extent::at(0..1000)], &mut Panics)
    }));
    assert!(cut.is_err() && workers.in_flight() > 0);
    drop(workers);
    assert_eq!(Arc::strong_count(&device), 1);
}

/// A device with several owners.
struct Shared(Arc<Faulty<MemoryDevice>>);

impl BlockDevice for Shared {
    fn size_bytes(&self) -> Result<u64, model::device::DeviceError> {
        self.0.size_bytes()
    }
    fn alignment(&self) -> model::device::Alignment {
        self.0.alignment()
    }
    fn read_at(&self, data: &mut [u8], offset: u64) -> Result<usize, model::device::DeviceError> {
        self.0.read_at(data, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize, model::device::DeviceError> {
        self.0.write_at(data, offset)
    }
    fn discard(&self, range: std::ops::Range<u64>) -> Result<(), model::device::DeviceError> {
        self.0.discard(range)
    }
    fn flush(&self) -> Result<(), model::device::DeviceError> {
        self.0.flush()
    }
}

/// A device that panics at each read that touches this byte.
struct PanicsAt(u64, &'static MemoryDevice);

impl BlockDevice for PanicsAt {
    fn size_bytes(&self) -> Result<u64, model::device::DeviceError> {
        self.1.size_bytes()
    }
    fn alignment(&self) -> model::device::Alignment {
        self.1.alignment()
    }
    fn read_at(&self, data: &mut [u8], offset: u64) -> Result<usize, model::device::DeviceError> {
        let range = offset..offset + data.len() as u64;
        assert!(!range.contains(&self.0), "the panic of a test's device");
        self.1.read_at(data, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize, model::device::DeviceError> {
        self.1.write_at(data, offset)
    }
    fn discard(&self, range: std::ops::Range<u64>) -> Result<(), model::device::DeviceError> {
        self.1.discard(range)
    }
    fn flush(&self) -> Result<(), model::device::DeviceError> {
        self.1.flush()
    }
}

/// Found by review: the thread ended, and the run waited for its slot for ever.
#[test]
fn a_panic_in_a_device_is_an_error_of_its_extent() {
    let (source, target) = (memory(&[7; 1000]), memory(&[0; 1000]));
    let devices = vec![PanicsAt(250, source), PanicsAt(u64::MAX, target)];
    let mut workers = Workers::new(devices, 2, 100).unwrap();
    for _ in 0..3 {
        let (summary, report) = copy(&mut workers, &[Extent::at(0..1000)]);
        assert_eq!(report.failed, [(Extent::at(200..300), Some(200))]);
        assert_eq!((summary.bytes, summary.whole_bytes), (900, 200));
        let error = summary.failure.unwrap().error.source.to_string();
        assert_eq!(error, "the device panicked");
    }
    assert_eq!(target.contents()[199..301], [[7].as_slice(), &[0; 100], &[7]].concat());
}

#[test]
fn requests_that_do_not_fit_an_engine_are_refused() {
    fn check(engine: &mut impl Engine) {
        use transfer::IoRequest;
        for (slot, request) in [
            (9, IoRequest::read(0, 0, 10)),
            (0, IoRequest::read(0, 0, 11)),
            (0, IoRequest::read(0, 0, 11).after(5)),
            (0, IoRequest::read(1, 0, 10)),
        ] {
            let error = engine.submit(slot, request).unwrap_err();
            assert_eq!(error.kind, sys::ErrorKind::Invalid);
        }
        assert_eq!(engine.in_flight(), 0);
        engine.submit(0, IoRequest::sync(0)).unwrap();
        assert!(engine.buffer_mut(0).is_none());
        assert!(engine.submit(0, IoRequest::sync(0)).is_err());
        engine.wait().unwrap();
        assert_eq!(engine.complete().unwrap().result.unwrap(), 0);
        engine.submit(0, IoRequest::discard(0, 0..50)).unwrap();
        engine.wait().unwrap();
        assert_eq!(engine.complete().unwrap().result.unwrap(), 0);
        assert!(engine.complete().is_none());
    }
    let device = memory(&[7; 100]);
    check(&mut Calls::new(vec![device], 10).unwrap());
    check(&mut Workers::new(vec![device], 1, 10).unwrap());
    assert_eq!(device.contents()[49..51], [0, 7]);
}

/// Set for the copy of this program that may not use io_uring.
const WITHOUT_RING: &str = "TERRACE_TEST_WITHOUT_RING";

#[test]
fn without_io_uring_files_are_copied_by_threads() {
    if std::env::var(WITHOUT_RING).is_err() {
        let mut command = std::process::Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=io_uring_setup"]);
        command.args(["-e", "inject=io_uring_setup:error=EPERM"]);
        command.arg(std::env::current_exe().unwrap());
        command.args(["--exact", "without_io_uring_files_are_copied_by_threads"]);
        match command.env(WITHOUT_RING, "1").output() {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout);
                let errors = String::from_utf8_lossy(&output.stderr);
                if errors.contains("ptrace") {
                    return testkit::skip("the right to trace");
                }
                assert!(text.contains("1 passed"), "{text}{errors}");
            }
            Err(error) => testkit::skip(format!("strace ({error})")),
        }
        return;
    }
    let directory = TempDir::new();
    let scratch = || Scratch::create_in(directory.path()).unwrap();
    let (source, target) = (scratch(), scratch());
    let data = noise(1 << 20, 9);
    sys::file::write_at(source.file(), &data, 0).unwrap();
    let files = [source.file(), target.file()];
    assert!(FileEngine::ring(&files, 32, 65_536).unwrap().is_none());
    let mut engine = FileEngine::at_depth(&files, 32, 65_536).unwrap();
    assert!(matches!(engine, FileEngine::Workers(_)));
    assert_eq!(engine.depth(), 8);
    let summary = engine.run(COPY, [Extent::at(0..1 << 20)], &mut ());
    assert!(summary.failure.is_none());
    let mut copied = vec![0; 1 << 20];
    sys::file::read_at(target.file(), &mut copied, 0).unwrap();
    assert!(copied == data);
}

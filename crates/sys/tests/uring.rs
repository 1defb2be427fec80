//! The I/O queue against real files of this machine.
//!
//! Where io_uring is missing or forbidden the tests say so and pass.
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::fs::OpenOptions;
use std::path::Path;
use sys::ErrorKind;
use sys::file::Scratch;
use sys::uring::{IoRequest, MAX_FILES, Queue};
use testkit::{LoopDevice, Random, TempDir};

/// A queue for one file, with index 0, or the reason why this machine has none.
fn queue(file: &std::fs::File, depth: u32, bytes: usize) -> Option<Queue> {
    match Queue::new(depth, bytes) {
        Ok(mut queue) => {
            assert_eq!(queue.add_file(file).unwrap(), 0);
            Some(queue)
        }
        Err(error) => {
            // What a user without the capability may lock is shared with all rings and kernel
            // events of the same user, also those of other programs.
            let may_lock = testkit::is_root() && std::env::var(WITHOUT_LOCKS).is_err();
            let is_short = error.source.kind() == std::io::ErrorKind::OutOfMemory;
            assert!(
                matches!(error.kind, ErrorKind::Unsupported | ErrorKind::Denied)
                    || is_short && !may_lock,
                "{error}"
            );
            testkit::skip(format!("io_uring ({error})"));
            None
        }
    }
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut buffer = vec![0; bytes];
    Random(bytes as u64).fill(&mut buffer);
    buffer
}

/// Writes `data` by the queue, at its own full depth, in pieces of one buffer.
fn write_all(queue: &mut Queue, data: &[u8], piece: usize) {
    let mut next = 0;
    let mut ended = 0;
    while ended < data.len() {
        while let Some(slot) = queue.idle_slot().filter(|_| next < data.len()) {
            let part = &data[next..(next + piece).min(data.len())];
            queue.buffer_mut(slot).unwrap()[..part.len()].copy_from_slice(part);
            let request = IoRequest::write(0, next as u64, part.len());
            queue.submit(slot, request).unwrap();
            assert!(queue.buffer_mut(slot).is_none(), "a buffer in flight is out of reach");
            next += part.len();
        }
        queue.enter(1).unwrap();
        while let Some(completion) = queue.complete() {
            assert!(completion.completed_ns >= completion.submitted_ns);
            ended += completion.result.unwrap();
        }
    }
    assert_eq!((ended, queue.in_flight()), (data.len(), 0));
}

/// Reads pieces in random order and compares each with `data`.
fn read_and_compare(queue: &mut Queue, data: &[u8], piece: usize) {
    let mut order: Vec<usize> = (0..data.len()).step_by(piece).collect();
    let mut random = Random(1);
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    let count = order.len();
    let mut compared = 0;
    while compared < count {
        while let Some(slot) = queue.idle_slot().filter(|_| !order.is_empty()) {
            let request = IoRequest::read(0, order.pop().unwrap() as u64, piece);
            queue.submit(slot, request).unwrap();
        }
        queue.enter(1).unwrap();
        while let Some(completion) = queue.complete() {
            let bytes = completion.result.unwrap();
            let expected = &data[completion.request.offset as usize..][..bytes];
            assert!(queue.buffer_mut(completion.slot).unwrap()[..bytes] == *expected);
            assert!(bytes > 0);
            compared += 1;
        }
    }
}

#[test]
fn what_is_written_is_read_at_every_depth() {
    let directory = TempDir::new();
    for (depth, piece) in [(1, 4096), (2, 512), (7, 12_288), (32, 4096), (256, 4096)] {
        let scratch = Scratch::create_in(directory.path()).unwrap();
        let Some(mut queue) = queue(scratch.file(), depth, piece) else {
            return;
        };
        assert_eq!(queue.depth(), depth as usize);
        let data = noise(1 << 20);
        write_all(&mut queue, &data, piece);
        read_and_compare(&mut queue, &data[..data.len() / piece * piece], piece);
    }
}

#[test]
fn direct_io_reads_what_was_written() {
    let directory = TempDir::new();
    let scratch = Scratch::create_in(directory.path()).unwrap();
    let direct = match scratch.reopen_direct() {
        Ok(direct) => direct,
        Err(error) => return testkit::skip(format!("direct I/O ({error})")),
    };
    let Some(mut queue) = queue(&direct, 16, 4096) else {
        return;
    };
    let data = noise(1 << 20);
    write_all(&mut queue, &data, 4096);
    read_and_compare(&mut queue, &data, 4096);
    let cached = sys::cachestat::of(scratch.file(), 0, 0).map(|state| state.cached);
    assert!(!cached.is_ok_and(|pages| pages > 0), "direct I/O went around the cache");
}

#[test]
fn a_refused_read_is_an_error_of_its_own_request() {
    let directory = TempDir::new();
    let path = directory.join("file");
    let file = OpenOptions::new().write(true).create_new(true).open(&path).unwrap();
    let Some(mut queue) = queue(&file, 4, 4096) else {
        return;
    };
    queue.submit(0, IoRequest::read(0, 8192, 4096)).unwrap();
    queue.submit(1, IoRequest::write(0, 0, 4096)).unwrap();
    queue.enter(2).unwrap();
    let mut results = [None, None];
    while let Some(completion) = queue.complete() {
        results[completion.slot] = Some(completion.result);
    }
    let [Some(read), Some(written)] = results else { panic!("both requests end") };
    let error = read.unwrap_err();
    assert_eq!((error.kind, error.operation), (ErrorKind::Invalid, "read"));
    assert_eq!(written.unwrap(), 4096);
}

#[test]
fn reads_at_the_end_are_short() {
    let directory = TempDir::new();
    let scratch = Scratch::create_in(directory.path()).unwrap();
    sys::file::write_at(scratch.file(), &noise(5000), 0).unwrap();
    let Some(mut queue) = queue(scratch.file(), 1, 4096) else {
        return;
    };
    for (offset, expected) in [(4096, 904), (1 << 40, 0)] {
        queue.submit(0, IoRequest::read(0, offset, 4096)).unwrap();
        queue.enter(usize::MAX).unwrap();
        assert_eq!(queue.complete().unwrap().result.unwrap(), expected);
    }
    assert!(queue.complete().is_none());
    queue.enter(1).unwrap();
}

#[test]
fn wrong_use_is_an_error_and_changes_nothing() {
    let directory = TempDir::new();
    let scratch = Scratch::create_in(directory.path()).unwrap();
    let Some(mut queue) = queue(scratch.file(), 2, 4096) else {
        return;
    };
    for (depth, bytes) in [(0, 4096), (5000, 4096), (1, 0), (1, usize::MAX)] {
        let error = Queue::new(depth, bytes).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
    }
    let rest = IoRequest::read(0, 0, 4097).after(4096);
    let behind = IoRequest { bytes: 2, ..rest };
    for (slot, request) in [
        (2, IoRequest::read(0, 0, 1)),
        (0, IoRequest::read(0, 0, 4097)),
        (0, behind),
        (0, IoRequest::read(1, 0, 1)),
        (0, IoRequest::read(usize::MAX, 0, 1)),
    ] {
        let error = queue.submit(slot, request).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
    }
    assert!(queue.buffer_mut(2).is_none());
    queue.submit(0, IoRequest::write(0, 0, 1)).unwrap();
    let error = queue.submit(0, IoRequest::write(0, 0, 1)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert_eq!(queue.in_flight(), 1);
}

#[test]
fn dropping_waits_for_what_was_queued() {
    let directory = TempDir::new();
    let scratch = Scratch::create_in(directory.path()).unwrap();
    let Some(mut queue) = queue(scratch.file(), 8, 65_536) else {
        return;
    };
    for slot in 0..8 {
        queue.buffer_mut(slot).unwrap().fill(slot as u8 + 1);
        let request = IoRequest::write(0, slot as u64 * 65_536, 65_536);
        queue.submit(slot, request).unwrap();
    }
    drop(queue);
    let mut byte = [0];
    for slot in 0..8u64 {
        sys::file::read_at(scratch.file(), &mut byte, slot * 65_536 + 65_535).unwrap();
        assert_eq!(u64::from(byte[0]), slot + 1);
    }
}

#[test]
fn the_queue_moves_between_threads_and_outlives_the_file_handle() {
    let directory = TempDir::new();
    let scratch = Scratch::create_in(directory.path()).unwrap();
    let Some(mut queue) = queue(scratch.file(), 4, 4096) else {
        return;
    };
    drop(scratch);
    let thread = std::thread::spawn(move || {
        let data = noise(64 << 10);
        write_all(&mut queue, &data, 4096);
        read_and_compare(&mut queue, &data, 4096);
    });
    thread.join().unwrap();
    assert!(Path::new("/proc/self").exists() && directory.names().is_empty());
}

/// The next completion, waited for.
fn wait(queue: &mut Queue) -> sys::uring::Completion {
    queue.enter(1).unwrap();
    queue.complete().unwrap()
}

#[test]
fn one_ring_copies_from_file_to_file_syncs_and_discards() {
    let directory = TempDir::new();
    let scratch = || Scratch::create_in(directory.path()).unwrap();
    let (source, target) = (scratch(), scratch());
    let data = noise(8192);
    sys::file::write_at(source.file(), &data, 0).unwrap();
    let Some(mut queue) = queue(source.file(), 2, 8192) else {
        return;
    };
    let to = queue.add_file(target.file()).unwrap();
    queue.submit(0, IoRequest::read(0, 0, 8192)).unwrap();
    assert_eq!(wait(&mut queue).result.unwrap(), 8192);
    // The same buffer, written in two parts.
    let whole = IoRequest::write(to, 4096, 8192);
    let first = IoRequest { bytes: 100, ..whole };
    for request in [first, whole.after(100)] {
        queue.submit(0, request).unwrap();
        let completion = wait(&mut queue);
        assert_eq!(completion.result.unwrap(), request.bytes);
        assert_eq!(completion.request, request);
    }
    queue.submit(1, IoRequest::sync(to)).unwrap();
    assert_eq!(wait(&mut queue).result.unwrap(), 0);
    let mut copied = vec![0; 8192];
    sys::file::read_at(target.file(), &mut copied, 4096).unwrap();
    assert!(copied == data);
    queue.submit(1, IoRequest::discard(to, 4096..8192)).unwrap();
    match wait(&mut queue).result {
        Err(error) if error.kind == ErrorKind::Unsupported => {
            return testkit::skip(format!("holes in files ({error})"));
        }
        answer => assert_eq!(answer.unwrap(), 0),
    }
    sys::file::read_at(target.file(), &mut copied, 4096).unwrap();
    assert!(copied[..4096] == [0; 4096] && copied[4096..] == data[4096..]);
}

#[test]
fn a_discard_of_a_disk_is_refused() {
    let directory = TempDir::new();
    let image = directory.join("image");
    std::fs::write(&image, [7; 65_536]).unwrap();
    let disk = match LoopDevice::over(&image) {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    let file = OpenOptions::new().read(true).write(true).open(disk.path()).unwrap();
    let Some(mut queue) = queue(&file, 1, 4096) else {
        return;
    };
    let error = queue.submit(0, IoRequest::discard(0, 0..4096)).unwrap_err();
    assert_eq!((error.kind, queue.in_flight()), (ErrorKind::Invalid, 0));
    queue.submit(0, IoRequest::read(0, 0, 4096)).unwrap();
    assert_eq!(wait(&mut queue).result.unwrap(), 4096);
    assert_eq!(queue.buffer_mut(0).unwrap(), [7; 4096]);
}

#[test]
fn files_come_and_go_while_the_queue_lives() {
    let directory = TempDir::new();
    let scratch = || Scratch::create_in(directory.path()).unwrap();
    let first = scratch();
    let Some(mut queue) = queue(first.file(), 1, 4096) else {
        return;
    };
    let all: Vec<_> = (1..MAX_FILES).map(|_| scratch()).collect();
    for (number, file) in (1..).zip(&all) {
        sys::file::write_at(file.file(), &[number as u8], 0).unwrap();
        assert_eq!(queue.add_file(file.file()).unwrap(), number);
    }
    let error = queue.add_file(first.file()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    queue.submit(0, IoRequest::read(7, 0, 1)).unwrap();
    assert_eq!(queue.release_file(7).unwrap_err().kind, ErrorKind::Invalid);
    assert_eq!(wait(&mut queue).result.unwrap(), 1);
    assert_eq!(queue.buffer_mut(0).unwrap()[0], 7);
    queue.release_file(7).unwrap();
    assert_eq!(queue.release_file(7).unwrap_err().kind, ErrorKind::Invalid);
    assert!(queue.submit(0, IoRequest::read(7, 0, 1)).is_err());
    assert_eq!(queue.add_file(all[9].file()).unwrap(), 7);
    queue.submit(0, IoRequest::read(7, 0, 1)).unwrap();
    assert_eq!(wait(&mut queue).result.unwrap(), 1);
    assert_eq!(queue.buffer_mut(0).unwrap()[0], 10);
}

/// Set for the copy of this program that may lock hardly any memory.
const WITHOUT_LOCKS: &str = "TERRACE_TEST_WITHOUT_LOCKS";

#[test]
fn buffers_that_may_not_be_registered_still_work() {
    if std::env::var(WITHOUT_LOCKS).is_ok() {
        let directory = TempDir::new();
        let scratch = Scratch::create_in(directory.path()).unwrap();
        let Some(mut queue) = queue(scratch.file(), 8, 65_536) else {
            return;
        };
        assert!(!queue.has_registered_buffers(), "512 KiB are over the limit");
        let data = noise(1 << 20);
        write_all(&mut queue, &data, 65_536);
        read_and_compare(&mut queue, &data, 65_536);
        return;
    }
    // Ordinary users have the limit; root has a capability that must be dropped first.
    let mut command = std::process::Command::new("prlimit");
    command.arg("--memlock=65536:65536");
    if testkit::is_root() {
        command.args(["setpriv", "--bounding-set=-ipc_lock"]);
    }
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "buffers_that_may_not_be_registered_still_work"]);
    match command.env(WITHOUT_LOCKS, "1").output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("1 passed"), "{text}{:?}", output.stderr);
        }
        Err(error) => testkit::skip(format!("prlimit and setpriv ({error})")),
    }
}

//! Sequential transfer of a range of one file: the engine of `seqio`, of filling a
//! scratch file, and of the survey's windows.
//!
//! Direct transfers keep a queue of requests in flight (io_uring; plain calls where
//! that is forbidden); buffered and uncached ones are one call after the other, as
//! programs do them. Buffers are filled before the clock starts; inside, each
//! 4 KiB of a write costs one store to make it differ from all others. What was read
//! last is still in the buffers afterwards and is checked there, so checking costs
//! no measured time and no further reads.

use super::pace::{Pace, RateAt};
use super::{fill, per_second, request_failed};
use crate::{Budget, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::ops::Range;
use sys::memory::AlignedBuffer;
use sys::uring::{Operation, Queue, Request};

/// How the bytes move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Through the page cache, one call after the other.
    #[default]
    Buffered,
    /// Past it (`O_DIRECT`), several requests in flight.
    Direct,
    /// Through it, but the pages leave it at once (`RWF_DONTCACHE`, Linux 6.14).
    Uncached,
}

/// What one transfer did.
#[derive(Debug)]
pub struct Moved {
    /// Bytes whose requests succeeded.
    pub bytes: u64,
    /// The end of the part, from the start of the range, without a gap.
    pub whole_until: u64,
    /// Wall time of the transfer, nanoseconds.
    pub wall_ns: u64,
    /// Processor time of the process in it, nanoseconds.
    pub cpu_ns: Option<u64>,
    /// The rate over time.
    pub series: Vec<RateAt>,
    /// The first failure, which ended it.
    pub failure: Option<Error>,
}

impl Moved {
    /// The mean rate; `None` where no time passed.
    pub fn bytes_per_s(&self) -> Option<f64> {
        per_second(self.bytes, self.wall_ns)
    }
}

/// Moves ranges of one file.
#[derive(Debug)]
pub struct Stream {
    engine: Engine,
    block_bytes: u64,
    seed: u64,
    /// Whether the buffers hold patterns and not what was read.
    filled: bool,
    /// What each buffer was last filled with by a read: offset and length.
    last_read: Vec<(u64, usize)>,
}

#[derive(Debug)]
enum Engine {
    Queue(Box<Queue>),
    Calls {
        file: File,
        buffer: AlignedBuffer,
        uncached: bool,
    },
}

impl Stream {
    /// A stream over `file`, which for [`Mode::Direct`] is opened with `O_DIRECT`;
    /// `depth` counts for that mode only.
    ///
    /// # Errors
    /// `Usage` for a block of 0 bytes or a depth of 0; `Impossible` where the buffers
    /// do not fit into memory.
    pub fn new(file: &File, mode: Mode, block_bytes: u64, depth: u32, seed: u64) -> Result<Self> {
        let unfit = |e: sys::Error| {
            Error::caused(
                ErrorKind::Impossible,
                "prepare the buffers",
                super::Reason(e.source),
            )
        };
        if block_bytes == 0 || depth == 0 {
            let reason = "the block size and the depth must be at least 1";
            return Err(Error::new(ErrorKind::Usage, "transfer", reason));
        }
        let block = usize::try_from(block_bytes).unwrap_or(usize::MAX);
        let queue = match mode {
            Mode::Direct => match Queue::new(depth, block) {
                Ok(mut queue) => {
                    queue.add_file(file).map_err(unfit)?;
                    Some(queue)
                }
                Err(e) if matches!(e.kind, sys::Kind::Unsupported | sys::Kind::Denied) => None,
                Err(e) => return Err(unfit(e)),
            },
            Mode::Buffered | Mode::Uncached => None,
        };
        let engine = match queue {
            Some(queue) => Engine::Queue(Box::new(queue)),
            None => Engine::Calls {
                file: file
                    .try_clone()
                    .map_err(|source| unfit(sys::Error::new("duplicate", source)))?,
                buffer: AlignedBuffer::new(block).map_err(unfit)?,
                uncached: mode == Mode::Uncached,
            },
        };
        let slots = match &engine {
            Engine::Queue(queue) => queue.depth(),
            Engine::Calls { .. } => 1,
        };
        Ok(Self {
            engine,
            block_bytes,
            seed,
            filled: false,
            last_read: vec![(0, 0); slots],
        })
    }

    /// Bytes of each request.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// The seed of the content.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How many requests are really kept in flight: 1 where io_uring is not to be had.
    pub fn depth(&self) -> usize {
        self.last_read.len()
    }

    /// Writes fresh data to `range`, whose start is a multiple of the block, until it
    /// ends, the budget ends or a request fails.
    pub fn write(&mut self, range: Range<u64>, budget: &Budget) -> Moved {
        self.fill_buffers();
        self.run(Operation::Write, range, budget)
    }

    /// Reads `range` likewise.
    pub fn read(&mut self, range: Range<u64>, budget: &Budget) -> Moved {
        self.filled = false;
        self.last_read.fill((0, 0));
        self.run(Operation::Read, range, budget)
    }

    /// Compares what the last read left in the buffers with what [`Stream::write`]
    /// wrote; the bytes compared.
    ///
    /// # Errors
    /// `Implausible` at the first block that differs.
    pub fn verify(&mut self) -> Result<u64> {
        let mut compared = 0;
        for slot in 0..self.last_read.len() {
            let (offset, bytes) = self.last_read[slot];
            let seed = self.seed;
            let Some(buffer) = self.buffer(slot).and_then(|buffer| buffer.get(..bytes)) else {
                continue;
            };
            if !fill::holds(buffer, seed, offset) {
                let operation = format!("trust the read at byte {offset} of");
                let reason = "it is not what was written there";
                return Err(Error::new(ErrorKind::Implausible, operation, reason));
            }
            compared += bytes as u64;
        }
        Ok(compared)
    }

    fn buffer(&mut self, slot: usize) -> Option<&mut [u8]> {
        match &mut self.engine {
            Engine::Queue(queue) => queue.buffer_mut(slot),
            Engine::Calls { buffer, .. } => Some(buffer),
        }
    }

    fn fill_buffers(&mut self) {
        if self.filled {
            return;
        }
        let patterns = self.block_bytes.div_ceil(fill::BLOCK_BYTES as u64);
        for slot in 0..self.depth() {
            let seed = self.seed;
            if let Some(buffer) = self.buffer(slot) {
                fill::fill(buffer, seed, slot as u64 * patterns);
            }
        }
        self.filled = true;
    }

    fn run(&mut self, operation: Operation, range: Range<u64>, budget: &Budget) -> Moved {
        let job = Job {
            operation,
            range,
            block_bytes: self.block_bytes,
            seed: self.seed,
        };
        let cpu_before = super::cpu_ns();
        let mut pace = Pace::start();
        let (whole_until, failure) = match &mut self.engine {
            Engine::Queue(queue) => run_queue(queue, &job, budget, &mut pace, &mut self.last_read),
            Engine::Calls {
                file,
                buffer,
                uncached,
            } => run_calls(
                file,
                buffer,
                *uncached,
                &job,
                budget,
                &mut pace,
                &mut self.last_read,
            ),
        };
        let wall_ns = pace.elapsed_ns();
        let cpu_ns = cpu_before.and_then(|before| Some(super::cpu_ns()?.saturating_sub(before)));
        Moved {
            bytes: pace.bytes,
            whole_until,
            wall_ns,
            cpu_ns,
            series: pace.series(wall_ns),
            failure,
        }
    }
}

struct Job {
    operation: Operation,
    range: Range<u64>,
    block_bytes: u64,
    seed: u64,
}

impl Job {
    /// The length of the request at `offset`.
    fn bytes_at(&self, offset: u64) -> usize {
        self.block_bytes.min(self.range.end - offset) as usize
    }

    /// What a request's answer means: the failure, if it did not do all of its work.
    fn failure(&self, offset: u64, answer: sys::Result<usize>) -> Option<Error> {
        let (name, short) = match self.operation {
            Operation::Read => ("read", "the file became shorter meanwhile"),
            _ => ("write", "only a part was taken: the disk is full"),
        };
        match answer {
            Ok(bytes) if bytes == self.bytes_at(offset) => None,
            Ok(_) => {
                let operation = format!("{name} at byte {offset} of");
                Some(Error::new(ErrorKind::Failed, operation, short))
            }
            Err(e) if e.kind == sys::Kind::Unsupported => Some(Error::caused(
                ErrorKind::Impossible,
                e.operation,
                super::Reason(e.source),
            )),
            Err(e) => Some(request_failed(name, offset, e.source)),
        }
    }
}

fn run_queue(
    queue: &mut Queue,
    job: &Job,
    budget: &Budget,
    pace: &mut Pace,
    last_read: &mut [(u64, usize)],
) -> (u64, Option<Error>) {
    let mut next = job.range.start;
    let mut first_gap = u64::MAX;
    let mut failure = None;
    loop {
        while next < job.range.end && failure.is_none() && !budget.over() {
            let Some(slot) = queue.idle_slot() else { break };
            let bytes = job.bytes_at(next);
            if job.operation == Operation::Write
                && let Some(buffer) = queue.buffer_mut(slot)
            {
                fill::stamp(&mut buffer[..bytes], job.seed, next);
            }
            if let Err(e) = queue.submit(
                slot,
                Request {
                    operation: job.operation,
                    ..Request::read(0, next, bytes)
                },
            ) {
                failure = Some(request_failed("queue a request", next, e.source));
                break;
            }
            next += bytes as u64;
        }
        if queue.in_flight() == 0 {
            return (next.min(first_gap), failure);
        }
        if let Err(e) = queue.enter(1) {
            failure = Some(request_failed("wait for requests", next, e.source));
            return (job.range.start, failure);
        }
        while let Some(done) = queue.complete() {
            let offset = done.request.offset;
            match job.failure(offset, done.result) {
                None => {
                    let bytes = job.bytes_at(offset);
                    pace.add(bytes as u64, done.completed_ns);
                    last_read[done.slot] = (offset, bytes);
                }
                Some(error) => {
                    first_gap = first_gap.min(offset);
                    failure.get_or_insert(error);
                }
            }
        }
    }
}

fn run_calls(
    file: &File,
    buffer: &mut [u8],
    uncached: bool,
    job: &Job,
    budget: &Budget,
    pace: &mut Pace,
    last_read: &mut [(u64, usize)],
) -> (u64, Option<Error>) {
    use sys::file::{read_at, read_at_uncached, write_at, write_at_uncached};
    let mut next = job.range.start;
    while next < job.range.end && !budget.over() {
        let bytes = job.bytes_at(next);
        let part = &mut buffer[..bytes];
        let answer = match (job.operation, uncached) {
            (Operation::Read, false) => read_at(file, part, next),
            (Operation::Read, true) => read_at_uncached(file, part, next),
            _ => {
                fill::stamp(part, job.seed, next);
                if uncached {
                    write_at_uncached(file, part, next)
                } else {
                    write_at(file, part, next)
                }
            }
        };
        if let Some(error) = job.failure(next, answer) {
            return (next, Some(error));
        }
        pace.add(bytes as u64, sys::clock::now_ns());
        last_read[0] = (next, bytes);
        next += bytes as u64;
    }
    (next, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use sys::file::Scratch;

    const MIB: u64 = 1 << 20;

    fn scratch() -> Scratch {
        Scratch::create_in(&std::env::temp_dir()).unwrap()
    }

    fn minute() -> Budget {
        Budget::of(Duration::from_secs(60))
    }

    /// Every mode writes what every mode reads; an odd end of the range included.
    #[test]
    fn modes_agree_on_the_content() {
        for (mode, depth) in [(Mode::Buffered, 1), (Mode::Direct, 4), (Mode::Uncached, 1)] {
            let scratch = scratch();
            let file = match mode {
                Mode::Direct => scratch.reopen_direct(),
                _ => scratch.reopen(),
            };
            let Ok(file) = file else {
                println!(
                    "skipped: needs direct I/O in {}",
                    std::env::temp_dir().display()
                );
                continue;
            };
            let mut stream = Stream::new(&file, mode, MIB / 2, depth, 11).unwrap();
            let end = 3 * MIB + 8192;
            let wrote = stream.write(0..end, &minute());
            if let Some(error) = &wrote.failure {
                assert_eq!((mode, error.kind), (Mode::Uncached, ErrorKind::Impossible));
                println!("skipped: needs RWF_DONTCACHE");
                continue;
            }
            assert_eq!((wrote.bytes, wrote.whole_until), (end, end));
            let read = stream.read(0..end, &minute());
            assert_eq!((read.bytes, read.whole_until), (end, end), "{mode:?}");
            assert!(stream.verify().unwrap() > 0);
            let mut again = Stream::new(scratch.file(), Mode::Buffered, MIB, 1, 11).unwrap();
            again.read(0..end, &minute());
            assert!(again.verify().unwrap() > 0, "{mode:?}");
        }
    }

    #[test]
    fn foreign_content_is_not_trusted() {
        let scratch = scratch();
        scratch.file().set_len(MIB).unwrap();
        let mut stream = Stream::new(scratch.file(), Mode::Buffered, MIB, 1, 3).unwrap();
        stream.read(0..MIB, &minute());
        assert_eq!(stream.verify().unwrap_err().kind, ErrorKind::Implausible);
    }

    #[test]
    fn a_file_that_is_too_short_ends_the_read_with_what_was_there() {
        let scratch = scratch();
        let mut stream = Stream::new(scratch.file(), Mode::Buffered, MIB, 1, 3).unwrap();
        stream.write(0..2 * MIB, &minute());
        scratch.file().set_len(MIB + 4096).unwrap();
        let read = stream.read(0..2 * MIB, &minute());
        assert_eq!((read.bytes, read.whole_until), (MIB, MIB));
        assert!(read.failure.unwrap().to_string().contains("shorter"));
    }

    #[test]
    fn no_time_moves_nothing() {
        let scratch = scratch();
        let mut stream = Stream::new(scratch.file(), Mode::Buffered, MIB, 1, 3).unwrap();
        let wrote = stream.write(0..MIB, &Budget::of(Duration::ZERO));
        assert_eq!((wrote.bytes, wrote.failure.is_none()), (0, true));
    }
}

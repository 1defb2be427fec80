//! Sequential transfer of one file with content that can be checked: what `seqio`, the filling of a
//! scratch file, and the windows of a survey measure with.
//!
//! `transfer` moves the bytes: direct requests at a depth by io_uring (plain calls where that is
//! forbidden), buffered and uncached ones by one call after the other, as programs do. Here are the
//! content and the clock. Buffers are filled before the clock starts; inside, each 4 KiB of a write
//! costs one store to make it differ from all others. What was read last is still in the buffers
//! afterwards and is checked there, so checking costs no measured time and no further reads.

use super::pace::{Pace, RateAt};
use super::{failed_request, fill, per_second};
use crate::{Budget, Error, ErrorKind, Result};
use model::device::DeviceError;
use model::progress::Control;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::ops::Range;
use sys::device::FileDevice;
use transfer::{Extent, FileEngine, MovedPiece, Observer, Route};

/// How the bytes move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferMode {
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
pub struct TransferResult {
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

impl TransferResult {
    /// The mean rate; `None` where no time passed.
    pub fn bytes_per_s(&self) -> Option<f64> {
        per_second(self.bytes, self.wall_ns)
    }
}

/// Moves ranges of one file.
#[derive(Debug)]
pub struct Stream {
    engine: FileEngine,
    block_bytes: u64,
    seed: u64,
    /// Whether the buffers hold patterns and not what was read.
    filled: bool,
    /// What each buffer was last used for: offset and length.
    last: Vec<(u64, usize)>,
}

impl Stream {
    /// A stream over `file`, which for [`TransferMode::Direct`] is opened with `O_DIRECT`;
    /// `depth` counts for that mode only.
    ///
    /// # Errors
    /// `Usage` for a block of 0 bytes or a depth of 0; `Impossible` where the buffers
    /// do not fit into memory.
    pub fn new(
        file: &File,
        mode: TransferMode,
        block_bytes: u64,
        depth: u32,
        seed: u64,
    ) -> Result<Self> {
        if block_bytes == 0 || depth == 0 {
            let reason = "the block size and the depth must be at least 1";
            return Err(Error::new(ErrorKind::Usage, "transfer", reason));
        }
        let block = usize::try_from(block_bytes).unwrap_or(usize::MAX);
        let engine = open_engine(file, mode, block, depth)
            .map_err(|e| Error::io(ErrorKind::Impossible, "prepare the buffers", &e.source))?;
        Ok(Self { last: vec![(0, 0); engine.depth()], engine, block_bytes, seed, filled: false })
    }

    /// Bytes of each request.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// The seed of the content.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How many requests are really kept in flight: 1 without io_uring.
    pub fn depth(&self) -> usize {
        self.last.len()
    }

    /// Writes fresh data to `range`, whose start is a multiple of the block, until it
    /// ends, the budget ends or a request fails.
    pub fn write(&mut self, range: Range<u64>, budget: &Budget) -> TransferResult {
        self.fill_buffers();
        self.run(Route::Write(0), range, budget)
    }

    /// Reads `range` likewise.
    pub fn read(&mut self, range: Range<u64>, budget: &Budget) -> TransferResult {
        self.filled = false;
        self.last.fill((0, 0));
        self.run(Route::Read(0), range, budget)
    }

    /// Compares what the last read left in the buffers with what [`Stream::write`]
    /// wrote; the bytes compared.
    ///
    /// # Errors
    /// `Implausible` at the first block that differs.
    pub fn verify(&mut self) -> Result<u64> {
        let mut compared = 0;
        for (slot, &(offset, bytes)) in self.last.iter().enumerate() {
            let buffer = self.engine.buffer_mut(slot);
            let Some(data) = buffer.and_then(|buffer| buffer.get(..bytes)) else {
                continue;
            };
            if !fill::holds(data, self.seed, offset) {
                let operation = format!("trust the read at byte {offset} of");
                let reason = "it is not what was written there";
                return Err(Error::new(ErrorKind::Implausible, operation, reason));
            }
            compared += bytes as u64;
        }
        Ok(compared)
    }

    fn fill_buffers(&mut self) {
        if self.filled {
            return;
        }
        let patterns = self.block_bytes.div_ceil(fill::BLOCK_BYTES as u64);
        for slot in 0..self.depth() {
            if let Some(buffer) = self.engine.buffer_mut(slot) {
                fill::fill(buffer, self.seed, slot as u64 * patterns);
            }
        }
        self.filled = true;
    }

    fn run(&mut self, route: Route, range: Range<u64>, budget: &Budget) -> TransferResult {
        let cpu_before = super::cpu_ns();
        let mut watched =
            Watched { budget, seed: self.seed, last: &mut self.last, pace: Pace::start() };
        let extent = Extent::at(range.clone());
        let summary = self.engine.run(route, [extent], &mut watched);
        let pace = watched.pace;
        let wall_ns = pace.elapsed_ns();
        let cpu_ns = cpu_before.and_then(|before| Some(super::cpu_ns()?.saturating_sub(before)));
        TransferResult {
            bytes: summary.bytes,
            whole_until: range.start + summary.whole_bytes,
            wall_ns,
            cpu_ns,
            series: pace.series(wall_ns),
            failure: summary.failure.map(|failure| as_error(failure.error)),
        }
    }
}

/// The engine of a mode.
fn open_engine(
    file: &File,
    mode: TransferMode,
    block: usize,
    depth: u32,
) -> sys::Result<FileEngine> {
    if mode == TransferMode::Direct
        && let Some(ring) = FileEngine::ring(&[file], depth, block)?
    {
        return Ok(ring);
    }
    let clone = file.try_clone().map_err(|source| sys::Error::new("duplicate", source))?;
    let mut device = FileDevice::new(clone)?;
    if mode == TransferMode::Uncached {
        device = device.uncached();
    }
    FileEngine::calls(vec![device], block)
}

/// What is done at each step of a run: nothing but the content and the clock.
struct Watched<'a> {
    budget: &'a Budget,
    seed: u64,
    last: &'a mut [(u64, usize)],
    pace: Pace,
}

impl Observer for Watched<'_> {
    fn control(&mut self) -> Control {
        Control::stop_if(self.budget.over())
    }

    fn fill(&mut self, data: &mut [u8], extent: &Extent) {
        fill::stamp(data, self.seed, extent.target);
    }

    fn moved(&mut self, piece: &MovedPiece) {
        let extent = &piece.extent;
        self.pace.add(extent.bytes, piece.completed_ns);
        self.last[piece.slot] = (extent.source, extent.bytes as usize);
    }
}

/// A failed piece as this crate's error.
fn as_error(error: DeviceError) -> Error {
    let place = |offset| format!("{} at byte {offset} of", error.operation);
    match (error.source.kind(), error.offset) {
        (io::ErrorKind::UnexpectedEof, Some(offset)) => {
            let reason = "the file became shorter meanwhile";
            Error::new(ErrorKind::Failed, place(offset), reason)
        }
        (io::ErrorKind::WriteZero, Some(offset)) => {
            let reason = "only a part was taken: the disk is full";
            Error::new(ErrorKind::Failed, place(offset), reason)
        }
        _ if sys::ErrorKind::of(&error.source) == sys::ErrorKind::Unsupported => {
            Error::io(ErrorKind::Impossible, error.operation, &error.source)
        }
        (_, offset) => failed_request(error.operation, offset, &error.source),
    }
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
        for (mode, depth) in
            [(TransferMode::Buffered, 1), (TransferMode::Direct, 4), (TransferMode::Uncached, 1)]
        {
            let scratch = scratch();
            let file = match mode {
                TransferMode::Direct => scratch.reopen_direct(),
                _ => scratch.reopen(),
            };
            let Ok(file) = file else {
                println!("skipped: needs direct I/O in {}", std::env::temp_dir().display());
                continue;
            };
            let mut stream = Stream::new(&file, mode, MIB / 2, depth, 11).unwrap();
            let end = 3 * MIB + 8192;
            let wrote = stream.write(0..end, &minute());
            if let Some(error) = &wrote.failure {
                assert_eq!((mode, error.kind), (TransferMode::Uncached, ErrorKind::Impossible));
                println!("skipped: needs RWF_DONTCACHE");
                continue;
            }
            assert_eq!((wrote.bytes, wrote.whole_until), (end, end));
            let read = stream.read(0..end, &minute());
            assert_eq!((read.bytes, read.whole_until), (end, end), "{mode:?}");
            assert!(stream.verify().unwrap() > 0);
            let mut again =
                Stream::new(scratch.file(), TransferMode::Buffered, MIB, 1, 11).unwrap();
            again.read(0..end, &minute());
            assert!(again.verify().unwrap() > 0, "{mode:?}");
        }
    }

    #[test]
    fn foreign_content_is_not_trusted() {
        let scratch = scratch();
        scratch.file().set_len(MIB).unwrap();
        let mut stream = Stream::new(scratch.file(), TransferMode::Buffered, MIB, 1, 3).unwrap();
        stream.read(0..MIB, &minute());
        assert_eq!(stream.verify().unwrap_err().kind, ErrorKind::Implausible);
    }

    #[test]
    fn a_file_that_is_too_short_ends_the_read_with_what_was_there() {
        let scratch = scratch();
        let mut stream = Stream::new(scratch.file(), TransferMode::Buffered, MIB, 1, 3).unwrap();
        stream.write(0..2 * MIB, &minute());
        scratch.file().set_len(MIB + 4096).unwrap();
        let read = stream.read(0..2 * MIB, &minute());
        assert_eq!((read.bytes, read.whole_until), (MIB, MIB));
        assert!(read.failure.unwrap().to_string().contains("shorter"));
    }

    #[test]
    fn no_time_moves_nothing() {
        let scratch = scratch();
        let mut stream = Stream::new(scratch.file(), TransferMode::Buffered, MIB, 1, 3).unwrap();
        let wrote = stream.write(0..MIB, &Budget::of(Duration::ZERO));
        assert_eq!((wrote.bytes, wrote.failure.is_none()), (0, true));
    }
}

//! Sequential transfer of one file with content that can be checked: what `seqio`, the filling of a
//! scratch file, and the windows of a survey measure with.
//!
//! `transfer` moves the bytes: direct requests at a depth by io_uring (plain calls where that is
//! forbidden), buffered and uncached ones by one call after the other, as programs do. Here are the
//! content and the clock. Buffers are filled before the clock starts; inside, each 4 KiB of a write
//! costs one store to make it differ from all others. What was read last is still in the buffers
//! afterwards and is checked there, so checking costs no measured time and no further reads.

use super::{cpu_ns_since, failed_request, fill, per_second, seconds};
use crate::{Budget, Error, ErrorKind, Result};
use model::device::DeviceError;
use model::progress::Control;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::ops::Range;
use sys::device::FileDevice;
use transfer::{Extent, FileEngine, MovedPiece, Observer, Route};

/// The grain of the rate over time, in nanoseconds.
const TICK_NS: u64 = 100_000_000;

/// A last tick shorter than this is counted into the one before: a rate over less
/// time is mostly chance.
const LEAST_TICK_NS: u64 = 20_000_000;

/// Room for the ticks of a budget of 10 minutes; longer ones make it grow.
const TICKS: usize = 6_000;

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

/// The rate in one stretch of about 100 ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateAt {
    /// When the stretch began, seconds since the phase began.
    pub t_s: f64,
    /// Bytes a second in it.
    pub bytes_per_s: f64,
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

    /// The same result, or the failure that ended it.
    ///
    /// # Errors
    /// The failure.
    pub fn checked(self) -> Result<Self> {
        match self.failure {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }
}

/// What a read returned, beside what was written there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ComparedRead {
    /// Bytes that were compared.
    pub(super) bytes: u64,
    /// Of them, as they were written.
    pub(super) held: u64,
    /// Where the first block that differs begins in the file.
    pub(super) first_wrong: Option<u64>,
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
        let compared = self.compare();
        match compared.first_wrong {
            None => Ok(compared.bytes),
            Some(offset) => {
                let operation = format!("trust the read at byte {offset} of");
                let reason = "it is not what was written there";
                Err(Error::new(ErrorKind::Implausible, operation, reason))
            }
        }
    }

    /// As [`Stream::verify`], for each 4 KiB.
    pub(super) fn compare(&mut self) -> ComparedRead {
        let mut compared = ComparedRead::default();
        for (slot, &(offset, bytes)) in self.last.iter().enumerate() {
            let buffer = self.engine.buffer_mut(slot);
            let Some(data) = buffer.and_then(|buffer| buffer.get(..bytes)) else {
                continue;
            };
            compared.bytes += bytes as u64;
            for (index, block) in data.chunks(fill::BLOCK_BYTES).enumerate() {
                let at = offset + (index * fill::BLOCK_BYTES) as u64;
                if fill::holds(block, self.seed, at) {
                    compared.held += block.len() as u64;
                } else {
                    let first = compared.first_wrong.get_or_insert(at);
                    *first = at.min(*first);
                }
            }
        }
        compared
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
        let cpu_ns = cpu_ns_since(cpu_before);
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
    let mut device = FileDevice::over(file)?;
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

/// Bytes over time.
struct Pace {
    start_ns: u64,
    bytes: u64,
    ticks: Vec<u64>,
}

impl Pace {
    fn start() -> Self {
        Self { ticks: Vec::with_capacity(TICKS), bytes: 0, start_ns: sys::clock::now_ns() }
    }

    fn add(&mut self, bytes: u64, at_ns: u64) {
        let tick = (at_ns.saturating_sub(self.start_ns) / TICK_NS) as usize;
        if tick >= self.ticks.len() {
            self.ticks.resize(tick + 1, 0);
        }
        self.ticks[tick] += bytes;
        self.bytes += bytes;
    }

    fn elapsed_ns(&self) -> u64 {
        sys::clock::now_ns() - self.start_ns
    }

    /// The rates of a transfer that took `wall_ns`; the last stretch is as long as
    /// what was left of the time.
    fn series(mut self, wall_ns: u64) -> Vec<RateAt> {
        let last = (wall_ns.saturating_sub(1) / TICK_NS) as usize;
        self.ticks.resize(last + 1, 0);
        let mut rest_ns = wall_ns - last as u64 * TICK_NS;
        if rest_ns < LEAST_TICK_NS && last > 0 {
            let bytes = self.ticks.pop().unwrap_or_default();
            self.ticks[last - 1] += bytes;
            rest_ns += TICK_NS;
        }
        let end = self.ticks.len() - 1;
        let length = |tick: usize| if tick == end { rest_ns } else { TICK_NS };
        self.ticks
            .iter()
            .enumerate()
            .filter_map(|(tick, &bytes)| {
                Some(RateAt {
                    t_s: seconds(tick as u64 * TICK_NS),
                    bytes_per_s: per_second(bytes, length(tick))?,
                })
            })
            .collect()
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

    fn pace(wall_ns: u64, adds: &[(u64, u64)]) -> Vec<RateAt> {
        let mut pace = Pace::start();
        for &(bytes, at_ns) in adds {
            pace.add(bytes, pace.start_ns + at_ns);
        }
        pace.series(wall_ns)
    }

    #[test]
    fn each_stretch_is_divided_by_its_own_length() {
        let series = pace(150_000_000, &[(100, 50_000_000), (100, 149_000_000)]);
        let rates: Vec<f64> = series.iter().map(|r| r.bytes_per_s).collect();
        assert_eq!(rates, [1000.0, 2000.0]);
        // A stump of 1 ms would show any rate at all.
        let series = pace(101_000_000, &[(101, 100_900_000)]);
        assert_eq!(series.len(), 1);
        assert!((series[0].bytes_per_s - 1000.0).abs() < 1e-6);
        assert!(pace(0, &[]).is_empty());
    }
}

//! The phases of a sequential run, one after the other, each kept in the report before
//! a failure in it ends the run.

use super::{PhaseName, SeqPhase};
use crate::storage::served::{Direction, ServedBy, ServedWatch};
use crate::storage::stream::{Stream, TransferMode};
use crate::storage::target::StorageTarget;
use crate::storage::{cpu_ns, cpu_ns_since, failed, of_one_run, per_second, seconds};
use crate::{Budget, Result};
use machine::Root;
use model::Bytes;
use model::bytes::MIB;
use model::estimate::Better;

/// How much is made durable between looks at the budget.
const SYNC_STEP: u64 = 32 * MIB;
/// The share of what is left of the budget that a phase may take when others follow.
const PHASE_SHARE: u32 = 2;
/// The cached read leaves most of the memory to others: at most 1 / this of it.
const CACHED_SHARE: u64 = 4;

/// A run over one target.
pub(super) struct Run<'a> {
    pub(super) target: &'a StorageTarget,
    pub(super) root: &'a Root,
    pub(super) budget: &'a Budget,
    pub(super) stream: Stream,
    pub(super) size: u64,
    pub(super) phases: Vec<SeqPhase>,
    pub(super) notes: Vec<String>,
}

impl Run<'_> {
    /// Bytes that all phases so far have moved.
    pub(super) fn moved_bytes(&self) -> u64 {
        self.phases.iter().map(|phase| phase.bytes).sum()
    }

    /// The four phases on the own file; each goes as far as the one before came.
    pub(super) fn own_phases(&mut self) -> Result<()> {
        self.allocate()?;
        let part = self.budget.part(self.budget.left() / PHASE_SHARE);
        let written = self.transfer(PhaseName::Write, 0..self.size, &part, false)?;
        let durable = self.sync(written)?;
        if durable == 0 || self.budget.over() {
            return Ok(());
        }
        self.evict();
        let part = self.budget.part(self.budget.left() / PHASE_SHARE);
        let read = self.transfer(PhaseName::ColdRead, 0..durable, &part, true)?;
        self.cached_read(read)
    }

    /// Reserves the space, so that writes do not pay for finding it and a full disk
    /// shows at once; file systems without this find it as they go. The file is elsewhere in each
    /// run: where a disk has fast and slow places, runs in one of them agree on its figure.
    fn allocate(&mut self) -> Result<()> {
        let _before_it = self.target.occupy(self.size);
        match sys::file::allocate(self.target.file(), self.size) {
            Err(e) if e.kind == sys::ErrorKind::NoSpace => {
                Err(failed("reserve the test file in", self.target.path(), e))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Moves `range`, keeps the phase, and returns how far it came; the failure ends it
    /// after the phase was kept.
    pub(super) fn transfer(
        &mut self,
        name: PhaseName,
        range: std::ops::Range<u64>,
        budget: &Budget,
        verify: bool,
    ) -> Result<u64> {
        let direction = match name {
            PhaseName::Write => Direction::Write,
            _ => Direction::Read,
        };
        let whole = range.end;
        let cached = self.target.cache_state(whole).map(|state| state.cached_bytes());
        let watch = ServedWatch::start(self.root, self.target);
        let moved = match direction {
            Direction::Write => self.stream.write(range, budget),
            Direction::Read => self.stream.read(range, budget),
        };
        let served = watch.finish(direction, moved.bytes);
        let (verified, foreign) = match verify.then(|| self.stream.verify()).transpose() {
            Ok(verified) => (verified, None),
            Err(error) => (None, Some(error)),
        };
        let until = moved.whole_until;
        self.phases.push(SeqPhase {
            name,
            bytes: moved.bytes,
            wall_s: seconds(moved.wall_ns),
            bytes_per_s: moved.bytes_per_s(),
            rate: moved.bytes_per_s().and_then(|rate| of_one_run(rate, Better::Higher)),
            series: moved.series,
            served,
            cpu_s: moved.cpu_ns.map(seconds),
            complete: until >= whole,
            cached_before_bytes: cached,
            verified_bytes: verified,
        });
        match moved.failure.or(foreign) {
            Some(error) => Err(error),
            None => Ok(until),
        }
    }

    /// Makes the first `written` bytes durable, step by step so that the budget is
    /// obeyed; what a cut leaves dirty is thrown away with the end of the file.
    fn sync(&mut self, written: u64) -> Result<u64> {
        let file = self.target.file();
        let fail = |e| failed("sync", self.target.path(), e);
        let dirty = self.target.cache_state(0).map(|state| state.unwritten_bytes());
        let watch = ServedWatch::start(self.root, self.target);
        let cpu_before = cpu_ns();
        let start_ns = sys::clock::now_ns();
        let mut done = 0;
        while done < written && !self.budget.over() {
            let next = done + SYNC_STEP;
            // Starting the step after the one waited for keeps the device busy.
            let started = sys::file::sync_range_start(file, done, 2 * SYNC_STEP);
            if started.is_err() || sys::file::sync_range_wait(file, done, SYNC_STEP).is_err() {
                // Not every file system can; the sync below reports what is wrong.
                done = written;
            }
            done = next.max(done).min(written);
        }
        file.set_len(done).map_err(|source| fail(sys::Error::new("truncate", source)))?;
        sys::file::sync_data(file).map_err(fail)?;
        let wall_ns = sys::clock::now_ns() - start_ns;
        let mut served = watch.finish(Direction::Write, dirty.unwrap_or(done));
        if dirty == Some(0) && served.by != ServedBy::Ram {
            served.by = ServedBy::Device;
            served.reason = "nothing was left in the page cache to write".to_owned();
        }
        let bytes = dirty.unwrap_or(done).min(done);
        let bytes_per_s = per_second(bytes, wall_ns).filter(|_| bytes > 0);
        self.phases.push(SeqPhase {
            name: PhaseName::Sync,
            bytes,
            wall_s: seconds(wall_ns),
            bytes_per_s,
            rate: bytes_per_s.and_then(|rate| of_one_run(rate, Better::Higher)),
            series: Vec::new(),
            served,
            cpu_s: cpu_ns_since(cpu_before).map(seconds),
            complete: done == written,
            cached_before_bytes: None,
            verified_bytes: None,
        });
        Ok(done)
    }

    /// Takes the own file out of the cache; what stays is noted.
    fn evict(&mut self) {
        if self.target.in_ram() {
            return;
        }
        match self.target.evict() {
            Ok(Some(left)) if left > 0 => self.notes.push(format!(
                "{} of the file could not be evicted before the cold read",
                Bytes(left)
            )),
            Ok(Some(_)) => {}
            Ok(None) => self.notes.push(
                "this kernel does not tell whether the file left the cache (cachestat, Linux 6.5)"
                    .to_owned(),
            ),
            Err(error) => {
                self.notes.push(format!("the file was not evicted before the cold read: {error}"))
            }
        }
    }

    /// Reads what fits comfortably into the cache twice; the second time counts.
    fn cached_read(&mut self, read: u64) -> Result<()> {
        let usable = machine::memory::usable(self.root).map(|usable| usable.bytes.0);
        let room = usable.map_or(read, |usable| usable / CACHED_SHARE);
        let block = self.stream.block_bytes();
        let bytes = read.min(room) / block * block;
        if bytes == 0 || self.budget.over() {
            return Ok(());
        }
        if bytes < read {
            self.notes.push(format!("the cached read covers {} of it", Bytes(bytes)));
        }
        let file = self.target.file();
        let fresh = Stream::new(file, TransferMode::Buffered, block, 1, self.stream.seed())?;
        let old = std::mem::replace(&mut self.stream, fresh);
        let part = self.budget.part(self.budget.left() / PHASE_SHARE);
        let outcome = self.stream.read(0..bytes, &part).checked().and_then(|warm| {
            let whole = warm.whole_until;
            if whole == 0 {
                return Ok(0);
            }
            self.transfer(PhaseName::CachedRead, 0..whole, self.budget, true)
        });
        self.stream = old;
        outcome.map(drop)
    }
}

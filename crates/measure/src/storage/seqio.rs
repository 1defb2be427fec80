//! Sequential transfer, as people measure it with `dd`, but with data that cannot be compressed,
//! writes that count only once they are durable, and cold reads that are cold.
//!
//! 1. Write the own file.
//! 2. Make it durable: a phase of its own, where a buffered write hides its cost.
//! 3. Evict the file, prove it, read it.
//! 4. Read it again from the cache.
//!
//! A file or device of the user's is only read, as it is found. A failure ends the
//! run and keeps what was measured before it. Several runs are combined in `combine`.

mod combine;
mod run;

use super::served::Served;
use super::stream::{RateAt, Stream, TransferMode};
use super::target::{StorageTarget, TargetFacts};
use super::{fill, of_one_run};
use crate::memory::arena::check_fits;
use crate::runs::Runs;
use crate::{Budget, Error, ErrorKind, Result};
use machine::Root;
use model::bytes::{GIB, MIB};
use model::estimate::Better;
use model::{Bytes, Estimate};
use run::Run;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The most memory that the requests in flight may take.
pub const MOST_IN_FLIGHT: Bytes = Bytes(GIB);
/// The deepest queue that a plan may ask for.
pub const DEEPEST: u32 = 1024;

/// What will be measured; all of it can be checked without touching the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeqPlan {
    /// Bytes to transfer, rounded down to whole blocks.
    pub size: Bytes,
    /// Bytes of each request, a multiple of 4 KiB.
    pub block: Bytes,
    /// Requests in flight in [`TransferMode::Direct`]; the other modes make one after the other.
    pub depth: u32,
    /// How the bytes move.
    pub mode: TransferMode,
}

impl Default for SeqPlan {
    fn default() -> Self {
        Self { size: Bytes(GIB), block: Bytes(MIB), depth: 8, mode: TransferMode::Buffered }
    }
}

impl SeqPlan {
    /// Refuses what makes no sense for any target.
    ///
    /// # Errors
    /// `Usage`.
    pub fn check(&self) -> Result<()> {
        let refuse = |reason: String| {
            Err(Error::new(ErrorKind::Usage, "measure sequential transfer", reason))
        };
        let block = self.block.0;
        if block == 0 || !block.is_multiple_of(fill::BLOCK_BYTES as u64) {
            return refuse("the block size must be a multiple of 4 KiB".to_owned());
        }
        if self.depth == 0 || self.depth > DEEPEST {
            return refuse(format!("the depth must be 1 to {DEEPEST}"));
        }
        if block.saturating_mul(u64::from(self.depth)) > MOST_IN_FLIGHT.0 {
            return refuse(format!("block size times depth exceeds {MOST_IN_FLIGHT}"));
        }
        if self.size.0 < block {
            return refuse("the size is less than one block".to_owned());
        }
        Ok(())
    }
}

/// Which part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseName {
    /// Writing the own file through the cache in the first of several runs: its pages may be in
    /// memory that is new to this machine, so it is apart from the others.
    FirstWrite,
    /// Writing the own file.
    Write,
    /// Making it durable.
    Sync,
    /// Reading it after it was evicted from the cache.
    ColdRead,
    /// Reading it from the cache.
    CachedRead,
    /// Reading a file of the user's as it was found.
    Read,
}

/// One part of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SeqPhase {
    /// Which.
    pub name: PhaseName,
    /// Bytes that it moved; of a sync those that were still only in the page cache.
    pub bytes: u64,
    /// Its wall time, seconds.
    pub wall_s: f64,
    /// Bytes a second; `None` where nothing moved. Of several runs the median.
    pub bytes_per_s: Option<f64>,
    /// The same with its interval, which one run alone does not have.
    pub rate: Option<Estimate>,
    /// The rate in each 100 ms; several runs follow each other.
    pub series: Vec<RateAt>,
    /// Who served it.
    pub served: Served,
    /// Processor time of the process in it, seconds.
    pub cpu_s: Option<f64>,
    /// Whether it got to its end; a short budget, Ctrl-C or a failure cut it otherwise.
    pub complete: bool,
    /// Bytes in the page cache when it began.
    pub cached_before_bytes: Option<u64>,
    /// Bytes that were compared with what had been written, and were the same.
    pub verified_bytes: Option<u64>,
}

/// What was measured.
#[derive(Debug, Serialize, Deserialize)]
pub struct SeqReport {
    /// On what.
    pub target: TargetFacts,
    /// How.
    pub mode: TransferMode,
    /// Bytes of each request.
    pub block_bytes: u64,
    /// Requests that were really in flight.
    pub depth: u32,
    /// Bytes that were to be transferred.
    pub size_bytes: u64,
    /// The parts, in order; those that were not reached are missing.
    pub phases: Vec<SeqPhase>,
    /// Bytes over the time of write and sync together; `None` unless both are complete.
    pub durable_bytes_per_s: Option<f64>,
    /// The same with its interval.
    pub durable_rate: Option<Estimate>,
    /// Bytes written to files, all of them removed again.
    pub written_bytes: u64,
    /// How many runs of the probe are in it.
    pub runs: Runs,
    /// Whether the person stopped it.
    pub interrupted: bool,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// The failure that ended it.
    #[serde(with = "super::failure_text")]
    pub failure: Option<Error>,
}

/// Measures sequential transfer at `path` within `budget`: all phases in a directory,
/// the read alone on a file or block device, which is never written.
///
/// # Errors
/// `Usage` and `Impossible` as [`StorageTarget::open`] and [`SeqPlan::check`], `Usage` for a
/// file smaller than one block, `Impossible` for a mode that the file system lacks. A
/// failure on the way is in the report.
pub fn seqio(path: &Path, plan: &SeqPlan, budget: &Budget, root: &Root) -> Result<SeqReport> {
    plan.check()?;
    // The requests in flight, and as many blocks of prepared data.
    check_fits(root, 2 * plan.block.0.saturating_mul(u64::from(plan.depth)))?;
    let target = StorageTarget::open(path, root)?;
    let mut notes = Vec::new();
    let size = transfer_size(&target, plan, root, &mut notes)?;
    let stream = open_stream(&target, plan)?;
    if plan.mode == TransferMode::Direct && stream.depth() < plan.depth as usize {
        notes.push("io_uring is not to be had here: one request at a time".to_owned());
    }
    let phases = Vec::new();
    let mut run = Run { target: &target, root, budget, stream, size, phases, notes };
    let outcome = if target.is_own() {
        run.own_phases()
    } else {
        let range = 0..size;
        run.transfer(PhaseName::Read, range, budget, false).map(drop)
    };
    // Nothing was measured and nothing ever will be: no partial result.
    let outcome = match outcome {
        Err(error) if error.kind == ErrorKind::Impossible && run.moved_bytes() == 0 => {
            return Err(error.at(path));
        }
        other => other,
    };
    let depth = run.stream.depth() as u32;
    let durable = durable_rate(&run.phases);
    Ok(SeqReport {
        mode: plan.mode,
        block_bytes: plan.block.0,
        depth,
        size_bytes: size,
        durable_bytes_per_s: durable,
        durable_rate: durable.and_then(|rate| of_one_run(rate, Better::Higher)),
        written_bytes: written_bytes(&run.phases),
        runs: Runs::default(),
        phases: run.phases,
        interrupted: budget.interrupted(),
        notes: run.notes,
        failure: outcome.err().map(|error| error.at(path)),
        target: target.facts(root)?,
    })
}

/// How much is transferred: whole blocks that fit, or that are there.
fn transfer_size(
    target: &StorageTarget,
    plan: &SeqPlan,
    root: &Root,
    notes: &mut Vec<String>,
) -> Result<u64> {
    let room = if target.is_own() {
        let (fitted, note) = target.fit(root, plan.size, plan.block)?;
        notes.extend(note);
        fitted.0
    } else {
        notes.push(
            "only read, from whatever cache holds it: terrace writes to and evicts only its own \
             file, in a directory"
                .to_owned(),
        );
        plan.size.0.min(target.bytes()?)
    };
    let size = room / plan.block.0 * plan.block.0;
    if size == 0 {
        let reason = format!("it is smaller than one block of {}", plan.block);
        return Err(Error::new(ErrorKind::Usage, "measure", reason).at(target.path()));
    }
    Ok(size)
}

fn open_stream(target: &StorageTarget, plan: &SeqPlan) -> Result<Stream> {
    let direct;
    let file = match plan.mode {
        TransferMode::Direct => {
            direct = target.direct()?;
            &direct
        }
        TransferMode::Buffered | TransferMode::Uncached => target.file(),
    };
    Stream::new(file, plan.mode, plan.block.0, plan.depth, target.draw_seed()?)
}

/// The rate at which bytes became durable: over write and sync together.
fn durable_rate(phases: &[SeqPhase]) -> Option<f64> {
    let phase = |name| phases.iter().find(|p| p.name == name && p.complete);
    let (write, sync) = (phase(PhaseName::Write)?, phase(PhaseName::Sync)?);
    let wall_s = write.wall_s + sync.wall_s;
    (wall_s > 0.0).then(|| write.bytes as f64 / wall_s)
}

fn written_bytes(phases: &[SeqPhase]) -> u64 {
    let written = phases.iter().filter(|phase| phase.name == PhaseName::Write);
    written.map(|phase| phase.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_that_make_no_sense_are_refused() {
        let refused = |change: fn(&mut SeqPlan)| {
            let mut plan = SeqPlan::default();
            change(&mut plan);
            plan.check().is_err_and(|e| e.kind == ErrorKind::Usage)
        };
        assert!(!refused(|_| ()));
        assert!(refused(|p| p.size = Bytes(0)));
        assert!(refused(|p| p.block = Bytes(0)));
        assert!(refused(|p| p.block = Bytes(1000)));
        assert!(refused(|p| p.depth = 0));
        assert!(refused(|p| p.depth = u32::MAX));
        assert!(refused(|p| p.block = Bytes(1 << 62)));
    }
}

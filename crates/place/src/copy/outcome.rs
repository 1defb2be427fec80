//! What a copy did: counted by all threads, and its report. A file that was not copied is removed
//! from the hidden tree here, so that nothing incomplete gets a name.

use super::checksum_log::{ChecksumLog, FileChecksums};
use super::engine::Engines;
use super::{CopyShared, FileJob};
use crate::EntryFailure;
use crate::metadata::{LossCount, LossSet, LossTally, MetadataLoss};
use model::copy_gauges::{CopyEngine, CopyGauges};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So many failures are named; the others are counted.
const MOST_NAMED: usize = 1000;

/// What an engine copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineUse {
    /// Its name.
    pub engine: String,
    /// Files.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
}

/// What a copy did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CopyReport {
    /// Whether the copy is durable and has its name.
    pub is_complete: bool,
    /// From the start to that, in seconds.
    pub seconds: f64,
    /// Regular files that were copied.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that were written for that; fewer where there are holes or data is shared.
    pub written_bytes: u64,
    /// Directories.
    pub directories: u64,
    /// Links, pipes, sockets, devices, and further names of files.
    pub other_entries: u64,
    /// Files that an earlier run of the same command had completed.
    pub resumed_files: u64,
    /// Bytes of large files that an earlier run had made durable; the copy went on behind them.
    pub resumed_bytes: u64,
    /// Whether nothing of an earlier run was kept, as the target's file system had failed to write.
    pub is_begun_anew: bool,
    /// Files that were at the target and were kept.
    pub kept_files: u64,
    /// Which engine copied how much.
    pub engines: Vec<EngineUse>,
    /// What was refused, and so not used.
    pub refusals: Vec<String>,
    /// What was not copied, with the reason; the first 1,000.
    pub failures: Vec<EntryFailure>,
    /// How many there were.
    pub failure_count: u64,
    /// What the target does not hold of what was copied.
    pub losses: Vec<LossCount>,
    /// Bytes of the sources that were in the page cache before the copy; absent if not seen.
    pub source_cached_before: Option<u64>,
    /// Bytes of them that are in the cache now.
    pub source_cached_after: Option<u64>,
    /// Bytes of their copies that are in the cache now.
    pub target_cached: Option<u64>,
    /// Files that were read back and are equal.
    pub verified_files: u64,
    /// Their bytes.
    pub verified_bytes: u64,
    /// Files that were read back and are not what was written; they are left out and are failures
    /// as well.
    pub differing_files: u64,
    /// The most bytes that were under way at a time.
    pub most_under_way_bytes: u64,
    /// Where the part that is done is kept, if the copy is not complete.
    pub unfinished: Option<PathBuf>,
    /// Directories that copies by other commands left beside it.
    pub leftovers: Vec<PathBuf>,
}

/// The page cache before and after the copy of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheCount {
    pub(super) source_before: Option<u64>,
    pub(super) source_after: Option<u64>,
    pub(super) target_after: Option<u64>,
    pub(super) bytes: u64,
}

/// What all threads count.
#[derive(Debug)]
pub(super) struct Outcome {
    is_resumed: bool,
    state: Mutex<OutcomeState>,
}

#[derive(Debug, Default)]
struct OutcomeState {
    report: CopyReport,
    engines: BTreeMap<&'static str, (u64, u64)>,
    losses: LossTally,
    /// Each that a file to be read back has, by its number less 1. There are few.
    loss_sets: Vec<LossSet>,
    /// What is to be read back.
    checksums: Option<ChecksumLog>,
    /// Inodes of the copy that are not complete and have several names.
    broken: BTreeSet<u64>,
}

impl Outcome {
    /// With `checksums` for a copy that is to be read back.
    pub(super) fn new(
        is_resumed: bool,
        is_begun_anew: bool,
        checksums: Option<ChecksumLog>,
    ) -> Self {
        let report = CopyReport { is_begun_anew, ..CopyReport::default() };
        let state = OutcomeState { report, checksums, ..OutcomeState::default() };
        Self { is_resumed, state: Mutex::new(state) }
    }

    /// Whether an earlier run may have left sealed files.
    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    fn state(&self) -> MutexGuard<'_, OutcomeState> {
        // Sums: a panic in between leaves one of them too low.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file was not copied: what there is of it is removed.
    pub(super) fn failed(&self, job: &FileJob, reason: &str) {
        if let Ok(stat) = job.pair.target.stat(&job.target_name) {
            if stat.links > 1 {
                self.break_inode(stat.inode);
            }
            // It is not named in the copy; what stays is removed with the staging directory.
            let _ = job.pair.target.remove(&job.target_name);
        }
        self.failed_at(job.path(), reason);
    }

    /// What did not get its name.
    pub(super) fn failed_at(&self, path: PathBuf, reason: &str) {
        if let Some(checksums) = &mut self.state().checksums {
            checksums.add_unplaced(&path);
        }
        self.incomplete_at(path, reason);
    }

    /// What has its name, but not all that belongs to it.
    pub(super) fn incomplete_at(&self, path: PathBuf, reason: &str) {
        let mut state = self.state();
        state.report.failure_count += 1;
        if state.report.failures.len() < MOST_NAMED {
            state.report.failures.push(EntryFailure { path, reason: reason.to_owned() });
        }
    }

    /// No name of this inode of the copy is placed.
    pub(super) fn break_inode(&self, inode: u64) {
        self.state().broken.insert(inode);
    }

    pub(super) fn broken(&self) -> BTreeSet<u64> {
        self.state().broken.clone()
    }

    pub(super) fn file_done(&self, engine: CopyEngine, bytes: u64, losses: &[MetadataLoss]) {
        let mut state = self.state();
        state.report.files += 1;
        state.report.bytes += bytes;
        let used = state.engines.entry(engine.name()).or_default();
        used.0 += 1;
        used.1 += bytes;
        drop(state);
        self.losses(losses);
    }

    /// Counts what the target does not hold of one entry.
    pub(super) fn losses(&self, losses: &[MetadataLoss]) {
        // Most entries lose nothing, and need no lock for that.
        if !losses.is_empty() {
            self.state().losses.add(losses);
        }
    }

    pub(super) fn directory_done(&self) {
        self.state().report.directories += 1;
    }

    pub(super) fn other_done(&self) {
        self.state().report.other_entries += 1;
    }

    pub(super) fn resumed(&self) {
        self.state().report.resumed_files += 1;
    }

    /// A large file goes on at this offset.
    pub(super) fn goes_on(&self, offset: u64) {
        self.state().report.resumed_bytes += offset;
    }

    pub(super) fn kept(&self) {
        self.state().report.kept_files += 1;
    }

    pub(super) fn leftovers(&self, found: Vec<PathBuf>) {
        self.state().report.leftovers = found;
    }

    pub(super) fn cache(&self, count: CacheCount) {
        fn add(sum: &mut Option<u64>, more: Option<u64>) {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0) + more);
            }
        }
        let report = &mut self.state().report;
        let limited = |bytes: Option<u64>| bytes.map(|cached| cached.min(count.bytes));
        add(&mut report.source_cached_before, limited(count.source_before));
        add(&mut report.source_cached_after, limited(count.source_after));
        add(&mut report.target_cached, limited(count.target_after));
    }

    pub(super) fn most_under_way(&self, bytes: u64) {
        let report = &mut self.state().report;
        report.most_under_way_bytes = report.most_under_way_bytes.max(bytes);
    }

    /// Records what is to be read back of a complete file.
    pub(super) fn checksums(
        &self,
        job: &FileJob,
        engine: CopyEngine,
        sums: Option<&[u32]>,
        losses: &[MetadataLoss],
    ) {
        let Some(sums) = sums else { return };
        let mut state = self.state();
        if state.checksums.is_none() {
            return;
        }
        let (path, bytes, sums) = (job.target_path(), job.stat.bytes, sums.to_vec());
        let losses = state.number_of(losses);
        if let Some(log) = &mut state.checksums {
            log.push(&FileChecksums { path, engine, losses, bytes, sums });
        }
    }

    /// All that was recorded; nothing is afterwards.
    pub(super) fn take_checksums(&self) -> Option<ChecksumLog> {
        self.state().checksums.take()
    }

    pub(super) fn verified(&self, bytes: u64) {
        let report = &mut self.state().report;
        report.verified_files += 1;
        report.verified_bytes += bytes;
    }

    /// A file is not what was written.
    pub(super) fn differs(&self) {
        self.state().report.differing_files += 1;
    }

    /// A further name of a file that was counted is left out.
    pub(super) fn uncount_name(&self) {
        let report = &mut self.state().report;
        report.other_entries = report.other_entries.saturating_sub(1);
    }

    /// A file that was counted as copied, and recorded to be read back, is left out.
    pub(super) fn uncount(&self, file: &FileChecksums) {
        let state = &mut *self.state();
        state.report.files = state.report.files.saturating_sub(1);
        state.report.bytes = state.report.bytes.saturating_sub(file.bytes);
        if let Some(used) = state.engines.get_mut(file.engine.name()) {
            used.0 = used.0.saturating_sub(1);
            used.1 = used.1.saturating_sub(file.bytes);
        }
        state.engines.retain(|_, used| used.0 > 0);
        let set = (file.losses as usize).checked_sub(1).and_then(|at| state.loss_sets.get(at));
        if let Some(set) = set {
            state.losses.remove(set);
        }
    }

    pub(super) fn report(
        &self,
        elapsed: Duration,
        is_complete: bool,
        unfinished: Option<PathBuf>,
        engines: &Engines,
        gauges: &CopyGauges,
    ) -> CopyReport {
        let state = self.state();
        let used = |(engine, (files, bytes)): (&&'static str, &(u64, u64))| EngineUse {
            engine: (*engine).to_owned(),
            files: *files,
            bytes: *bytes,
        };
        CopyReport {
            is_complete,
            seconds: elapsed.as_secs_f64(),
            written_bytes: gauges.written_bytes.get().unwrap_or(0),
            engines: state.engines.iter().map(used).collect(),
            refusals: engines.refusals(),
            losses: state.losses.counts(),
            unfinished,
            ..state.report.clone()
        }
    }
}

impl OutcomeState {
    /// The number of the losses of a file; 0 if it has none.
    fn number_of(&mut self, losses: &[MetadataLoss]) -> u32 {
        if losses.is_empty() {
            return 0;
        }
        let set = LossSet::of(losses);
        let at = self.loss_sets.iter().position(|known| *known == set).unwrap_or_else(|| {
            self.loss_sets.push(set);
            self.loss_sets.len() - 1
        });
        at as u32 + 1
    }
}

impl CopyShared<'_> {
    /// An entry was left out.
    pub(super) fn refused(&self, path: PathBuf, error: &sys::Error) {
        self.outcome.failed_at(path, &sys::plain_reason(&error.source));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::LossReason;

    #[test]
    fn what_a_file_that_is_left_out_lost_is_not_counted() {
        let outcome = Outcome::new(false, false, None);
        let owner = MetadataLoss::Owner { wanted: 7, reason: LossReason::Denied };
        let group = MetadataLoss::Group { wanted: 7, reason: LossReason::Denied };
        let of_both = [owner, group];
        for _ in 0..2 {
            outcome.file_done(CopyEngine::Plain, 5, &of_both);
        }
        let counts = || outcome.state().losses.counts();
        // An owner and its group are one loss.
        assert_eq!(counts().iter().map(|loss| loss.entries).collect::<Vec<_>>(), [2]);
        let losses = outcome.state().number_of(&of_both);
        assert_eq!((losses, outcome.state().number_of(&of_both)), (1, 1));
        assert_eq!(outcome.state().number_of(&[]), 0);
        let (path, engine) = (PathBuf::from("file"), CopyEngine::Plain);
        let file = FileChecksums { path, engine, losses, bytes: 5, sums: vec![1] };
        outcome.uncount(&file);
        assert_eq!(counts().iter().map(|loss| loss.entries).collect::<Vec<_>>(), [1]);
        outcome.uncount(&file);
        assert!(counts().is_empty());
        assert_eq!(outcome.state().report.files, 0);
    }
}

//! The state and the report of a restore: what all kinds of memory share.
//! It owns the allowance and the progress; the order of the work is the caller's.

use super::plan::{MemoryKind, RestorePlan, RestoreRequest};
use crate::Result;
use crate::background::{Allowance, StopReason, WatchedGroup};
use crate::workingset::remote::RestoreMethod;
use crate::workingset::speed::DiskSpeed;
use machine::Root;
use model::{Bytes, Control, Progress, ProgressSink};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// What was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RestoreReport {
    /// Why it ended.
    pub stop: StopReason,
    /// One for each source, in the order of work.
    pub parts: Vec<RestoredSource>,
    /// From the first read to the last, ns.
    pub elapsed_ns: u64,
    /// Of these, pauses for other tasks that wanted the processors.
    pub paused_ns: u64,
    /// Lines for a person.
    pub notes: Vec<String>,
}

/// What was done of one part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RestoredSource {
    /// The kind of memory.
    pub kind: MemoryKind,
    /// The swap area's path or the disk's name.
    pub source: String,
    /// The method that was used.
    pub method: Option<RestoreMethod>,
    /// Bytes asked for.
    pub bytes: u64,
    /// Of the pages asked for, present afterwards.
    pub present_pages: u64,
    /// Pages asked for.
    pub pages: u64,
    /// Pages whose process or mapping was gone.
    pub gone_pages: u64,
    /// How long, ns.
    pub elapsed_ns: u64,
    /// The most faults with a read from the device that are avoided: the pages present that came
    /// from there. A page that had not left memory avoids none.
    pub avoided_faults: u64,
    /// What these would have cost, ns: each the time of the device for one page.
    pub avoided_ns: Option<u64>,
}

/// The state of a restore.
pub(super) struct RestoreRun<'a> {
    pub(super) root: &'a Root,
    pub(super) request: &'a RestoreRequest,
    pub(super) speeds: &'a [DiskSpeed],
    pub(super) allowance: Allowance,
    /// What was done so far.
    pub(super) report: RestoreReport,
    /// Whether pages of a group at its limit were left where they are.
    pub(super) group_left_out: bool,
    progress: &'a mut ProgressSink<'a>,
    /// What `progress` answered last.
    control: Control,
    planned: Bytes,
    moved: Bytes,
    started: Instant,
}

impl<'a> RestoreRun<'a> {
    /// Starts the allowance: no data has been read yet.
    ///
    /// # Errors
    /// Those of [`Allowance::start`].
    pub(super) fn start(
        root: &'a Root,
        request: &'a RestoreRequest,
        plan: &'a RestorePlan,
        progress: &'a mut ProgressSink<'a>,
    ) -> Result<Self> {
        let mut allowance = Allowance::start(root, request.limits.clone())?;
        let groups = plan.work.targets.iter().map(|target| WatchedGroup::OfProcess(target.pid));
        allowance.watch_groups(groups);
        let planned = plan.parts.iter().filter(|part| part.skipped.is_none());
        Ok(Self {
            root,
            request,
            speeds: &plan.speeds,
            allowance,
            report: RestoreReport {
                stop: StopReason::Done,
                parts: Vec::new(),
                elapsed_ns: 0,
                paused_ns: 0,
                notes: Vec::new(),
            },
            group_left_out: false,
            progress,
            control: Control::Continue,
            planned: Bytes(planned.map(|part| part.bytes).sum()),
            moved: Bytes(0),
            started: Instant::now(),
        })
    }

    /// Reports `bytes` more.
    pub(super) fn advance(&mut self, bytes: u64) {
        self.moved.0 += bytes;
        let total = Some(self.planned.0);
        self.control = (self.progress)(Progress::bytes("restoring", self.moved.0, total));
    }

    /// Reports that a part has come to `bytes`, of which `reported` were known.
    pub(super) fn advance_to(&mut self, bytes: u64, reported: &mut u64) {
        self.advance(bytes - *reported);
        *reported = bytes;
    }

    /// Adds a part of `bytes` read, of which `present_bytes` are in memory, to the report. Each
    /// page present avoids a fault, which costs a random read of the device with the index `speed`.
    pub(super) fn add_part(
        &mut self,
        kind: MemoryKind,
        source: &str,
        (bytes, present_bytes): (u64, u64),
        started: Instant,
        speed: Option<usize>,
    ) {
        let page_bytes = sys::process::page_bytes() as u64;
        let present_pages = present_bytes / page_bytes;
        self.report.parts.push(RestoredSource {
            kind,
            source: source.to_owned(),
            method: None,
            bytes,
            present_pages,
            pages: bytes.div_ceil(page_bytes),
            gone_pages: 0,
            elapsed_ns: started.elapsed().as_nanos() as u64,
            avoided_faults: present_pages,
            avoided_ns: self.random_read_ns(speed).map(|ns| ns * present_pages),
        });
    }

    /// Whether to stop; pauses for others. Call it while nothing is being read.
    pub(super) fn check(&mut self) -> Option<StopReason> {
        let moved = self.moved;
        self.cancelled().or_else(|| self.allowance.check(moved))
    }

    /// Whether to stop, while a helper reads: never pauses.
    pub(super) fn check_unblocked(&mut self) -> Option<StopReason> {
        let moved = self.moved;
        self.cancelled().or_else(|| self.allowance.check_unblocked(moved))
    }

    fn cancelled(&self) -> Option<StopReason> {
        self.control.is_stop().then_some(StopReason::Cancelled)
    }

    /// Adds a note to the report unless it has it already.
    pub(super) fn note_once(&mut self, note: String) {
        if !self.report.notes.contains(&note) {
            self.report.notes.push(note);
        }
    }

    /// What one page at random costs on the device with this index.
    pub(super) fn random_read_ns(&self, speed: Option<usize>) -> Option<u64> {
        speed.and_then(|index| self.speeds[index].random_read_ns)
    }

    /// The finished report.
    pub(super) fn finish(self, stop: Option<StopReason>) -> RestoreReport {
        let done = if self.group_left_out { StopReason::GroupLimit } else { StopReason::Done };
        RestoreReport {
            stop: stop.unwrap_or(done),
            elapsed_ns: self.started.elapsed().as_nanos() as u64,
            paused_ns: self.allowance.paused().as_nanos() as u64,
            ..self.report
        }
    }
}

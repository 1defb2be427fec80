//! A restore while it works: what all kinds of memory share.
//! It owns the allowance, the progress and the report; the order of the work is the caller's.

use super::plan::RestorePlan;
use super::report::RestoreReport;
use super::request::RestoreRequest;
use crate::Result;
use crate::background::{Allowance, GroupName, StopReason};
use crate::workingset::speed::DiskSpeed;
use machine::Root;
use model::{Bytes, Control, Progress, ProgressSink};
use std::time::Instant;

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
        let pids = plan.work.targets.iter().map(|target| target.pid);
        allowance.watch_groups(pids.map(GroupName::OfProcess));
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

    /// Whether to stop; pauses for others. Call it while nothing is being read.
    pub(super) fn check(&mut self) -> Option<StopReason> {
        let moved = self.moved;
        self.cancelled().or_else(|| self.allowance.check(moved))
    }

    /// Whether to stop, while a helper reads: never pauses.
    pub(super) fn check_unblocked(&mut self) -> Option<StopReason> {
        let moved = self.moved;
        self.cancelled()
            .or_else(|| self.allowance.check_unblocked(moved))
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
        let done = if self.group_left_out {
            StopReason::GroupLimit
        } else {
            StopReason::Done
        };
        RestoreReport {
            stop: stop.unwrap_or(done),
            elapsed_ns: self.started.elapsed().as_nanos() as u64,
            paused_ns: self.allowance.paused().as_nanos() as u64,
            ..self.report
        }
    }
}

//! The probes as they are run once or in several processes: how long all of it may take, and what
//! one run measures.

use crate::args::measure::IolatArgs;
use crate::command::random;
use crate::output::report::RandomResult;
use machine::Root;
use measure::compute::{self, ComputePlan, ComputeReport};
use measure::faults::{self, FaultPlan, FaultReport};
use measure::memory::copy::{self, CopyPlan, CopyReport};
use measure::memory::latency::{self, LatencyPlan, LatencyReport};
use measure::runs::{Repeatable, RunOrder};
use measure::storage::{IolatPlan, PacesReport, SeqPlan, SeqReport, iolat_paces, seqio};
use measure::{Budget, Result};
use std::path::Path;
use std::time::Duration;

/// The budget of copies by default: nine runs of all methods at 256 MiB.
pub const COPY_BUDGET: Duration = Duration::from_secs(45);

/// The budget of single requests by default.
const REQUEST_BUDGET: Duration = Duration::from_secs(10);

/// The budget of sequential transfer by default: nine runs of 256 MiB where a disk does 200 MB/s;
/// a slower one transfers less in each.
const TRANSFER_BUDGET: Duration = Duration::from_secs(20);

/// A memory probe ends by its plan; only Ctrl-C is to end it earlier, so the outer
/// budget lies beyond.
const BEYOND_PLAN: Duration = Duration::from_secs(3600);

/// A probe with its plan.
pub trait ProbePlan {
    /// What a run gives.
    type Report: Repeatable;

    /// Time for all runs together.
    fn budget(&self) -> Duration;

    /// What the first run needs beside its share.
    fn first_extra(&self) -> Duration {
        Duration::ZERO
    }

    /// One run.
    ///
    /// # Errors
    /// As the probe.
    fn measure(&self, order: &RunOrder, root: &Root) -> Result<Self::Report>;
}

fn beyond(order: &RunOrder) -> Budget {
    Budget::of(order.budget.saturating_add(BEYOND_PLAN))
}

impl ProbePlan for CopyPlan {
    type Report = CopyReport;

    fn budget(&self) -> Duration {
        self.budget
    }

    fn measure(&self, order: &RunOrder, root: &Root) -> Result<CopyReport> {
        copy::measure(&self.clone().of_run(order), root, &beyond(order))
    }
}

impl ProbePlan for LatencyPlan {
    type Report = LatencyReport;

    fn budget(&self) -> Duration {
        self.budget
    }

    fn measure(&self, order: &RunOrder, root: &Root) -> Result<LatencyReport> {
        latency::measure(&self.clone().of_run(order), root, &beyond(order))
    }
}

impl ProbePlan for FaultPlan {
    type Report = FaultReport;

    fn budget(&self) -> Duration {
        self.budget
    }

    fn first_extra(&self) -> Duration {
        self.wait
    }

    fn measure(&self, order: &RunOrder, root: &Root) -> Result<FaultReport> {
        faults::measure(&self.clone().of_run(order), root, &beyond(order))
    }
}

impl ProbePlan for ComputePlan {
    type Report = ComputeReport;

    fn budget(&self) -> Duration {
        self.budget
    }

    fn measure(&self, order: &RunOrder, root: &Root) -> Result<ComputeReport> {
        compute::measure(&self.clone().of_run(order), root, &beyond(order))
    }
}

/// Single requests at several paces.
pub struct Iolat<'a> {
    pub path: &'a Path,
    pub plan: IolatPlan,
    /// Intervals that are measured after that of the plan.
    pub later: Vec<Duration>,
    pub budget: Option<Duration>,
}

impl ProbePlan for Iolat<'_> {
    type Report = PacesReport;

    fn budget(&self) -> Duration {
        self.budget.unwrap_or(REQUEST_BUDGET)
    }

    fn measure(&self, order: &RunOrder, root: &Root) -> Result<PacesReport> {
        iolat_paces(self.path, &self.plan, &self.later, &Budget::of(order.budget), root)
    }
}

/// Random reads at a depth.
pub struct Random<'a> {
    pub args: &'a IolatArgs,
    pub depth: u32,
}

impl ProbePlan for Random<'_> {
    type Report = RandomResult;

    fn budget(&self) -> Duration {
        self.args.deadline.or(self.args.probe.budget).unwrap_or(REQUEST_BUDGET)
    }

    fn measure(&self, order: &RunOrder, root: &Root) -> Result<RandomResult> {
        random::measure(self.args, self.depth, &Budget::of(order.budget), root)
    }
}

/// Sequential transfer.
pub struct Seqio<'a> {
    pub path: &'a Path,
    pub plan: SeqPlan,
    pub budget: Option<Duration>,
}

impl ProbePlan for Seqio<'_> {
    type Report = SeqReport;

    fn budget(&self) -> Duration {
        self.budget.unwrap_or(TRANSFER_BUDGET)
    }

    fn measure(&self, order: &RunOrder, root: &Root) -> Result<SeqReport> {
        seqio(self.path, &self.plan, &Budget::of(order.budget), root)
    }
}

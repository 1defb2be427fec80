//! Restores memory: a plan that can be printed, reads under an allowance, and a report.
//!
//! Anonymous pages come in the order of their slots. From a rotating or network disk one thread
//! reads one byte of each page in the other process (synchronous, so progress and back-pressure are
//! exact), with advice ahead of it where the runs are long. From flash a short trial on the first
//! pages chooses between slot-ordered advice and several readers. Compressed RAM is skipped: a
//! restore would gain nothing.

mod method_trial;
mod plan;
mod plan_files;
mod plan_swap;
mod run;
mod run_files;
mod run_swap;
mod swap_ins;
mod verify;

pub use super::remote::RestoreMethod;
pub use plan::{MemoryKind, PlannedSource, PlannedWork, RestorePlan, RestoreRequest};
pub use run::{RestoreReport, RestoredSource};

use super::targets::{self, TargetProcess};
use crate::background::StopReason;
use crate::{Error, ErrorKind, Result};
use machine::{Root, damon};
use model::ProgressSink;
use run::RestoreRun;

/// Finds what is not in memory, and measures the disks. Restores nothing.
///
/// # Errors
/// Those of [`targets::find`]; `Usage` for a process that is to come first and is not among those
/// chosen; `Impossible` if nothing that was asked for can be seen.
pub fn plan(root: &Root, request: &RestoreRequest) -> Result<RestorePlan> {
    let mut plan = RestorePlan::default();
    plan.work.targets = targets::find(root, &request.selection)?;
    let first = first_targets(&plan.work.targets, &request.first)?;
    if request.anonymous {
        plan_swap::plan_anonymous(root, request, &first, &mut plan)?;
    }
    if request.shared {
        plan_files::plan_shared(root, request, &mut plan);
    }
    if request.files {
        plan_files::plan_files(root, request, &mut plan)?;
    }
    if let Some(unused) = damon::pages_out_after(root).filter(|_| !plan.parts.is_empty()) {
        let after = model::duration::show_ns(unused.as_nanos() as f64);
        plan.notes.push(format!(
            "DAMON pushes out regions of memory that lay unused for {after}: what is brought back \
             and not used goes again"
        ));
    }
    Ok(plan)
}

/// The indices of the targets that come first.
fn first_targets(targets: &[TargetProcess], first: &[u32]) -> Result<Vec<u32>> {
    let index_of = |pid: &u32| {
        let found = targets.iter().position(|target| target.pid == *pid);
        found.map(|index| index as u32).ok_or_else(|| {
            let reason = format!("it is not among the {} chosen", targets.len());
            Error::new(ErrorKind::Usage, format!("put process {pid} first"), reason)
        })
    };
    first.iter().map(index_of).collect()
}

/// Does `plan`, and reports to `progress` after each batch. Ends early when the allowance or
/// `progress` says so: that is not an error, the report gives the reason.
///
/// # Errors
/// `Impossible` if the first read is refused.
pub fn carry_out(
    root: &Root,
    request: &RestoreRequest,
    plan: RestorePlan,
    progress: &mut ProgressSink<'_>,
) -> Result<RestoreReport> {
    if let Some(reason) = plan.work.refused() {
        let operation = "bring anonymous memory back";
        return Err(Error::new(ErrorKind::Impossible, operation, reason));
    }
    let mut run = RestoreRun::start(root, request, &plan, progress)?;
    let stop = restore_all(&mut run, &plan.work)?;
    Ok(run.finish(stop))
}

/// All kinds of memory in their order, until there is a reason to stop.
fn restore_all(run: &mut RestoreRun<'_>, work: &PlannedWork) -> Result<Option<StopReason>> {
    if let Some(stop) = run_swap::restore_swapped(run, work)? {
        return Ok(Some(stop));
    }
    if let Some(stop) = run_files::restore_shared(run, work) {
        return Ok(Some(stop));
    }
    if let Some(stop) = run_files::restore_files(run, work)? {
        return Ok(Some(stop));
    }
    run_files::warm_metadata(run)
}

//! Requests at several paces on the same file, one pace after the other, and several runs of that
//! combined.

use super::prepare;
use super::requests::{Prober, RequestReport, run};
use super::{Access, IolatPlan};
use crate::disturbance::{Bracket, Disturbance};
use crate::memory::arena::check_fits;
use crate::runs::{Repeatable, Runs};
use crate::storage::served::{Direction, Served, ServedWatch};
use crate::storage::target::{StorageTarget, TargetFacts};
use crate::{Budget, Result};
use machine::Root;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// What was measured at one pace.
#[derive(Debug, Serialize, Deserialize)]
pub struct PaceReport {
    /// From the start of one request to the start of the next, seconds; 0: back to back.
    pub interval_s: f64,
    /// The figures.
    #[serde(flatten)]
    pub requests: RequestReport,
}

/// What was measured at each pace.
#[derive(Debug, Serialize, Deserialize)]
pub struct PacesReport {
    /// What was asked.
    pub target: TargetFacts,
    /// What could answer.
    pub access: Access,
    /// Whether the requests were writes.
    pub write: bool,
    /// Bytes of each request.
    pub request_bytes: u64,
    /// Bytes of the region that they went to.
    pub region_bytes: u64,
    /// The seed of order and content, of the first run.
    pub seed: u64,
    /// Each pace, in the order in which it was measured.
    pub paces: Vec<PaceReport>,
    /// Who served the requests, of all paces.
    pub served: Served,
    /// What happened to the thread meanwhile, in the first run.
    pub disturbance: Disturbance,
    /// Bytes written to files, all of them removed again.
    pub written_bytes: u64,
    /// How many runs of the probe are in it.
    pub runs: Runs,
    /// What the reader should know: a smaller file, pages that could not be evicted.
    pub notes: Vec<String>,
}

/// Measures latency at `path` at the plan's pace, and then at each of `later` intervals between
/// the starts of requests, until the plan's count or each pace's share of `budget` ends.
///
/// # Errors
/// `Usage` and `Impossible` as [`StorageTarget::open`] and [`IolatPlan::check`]; `Failed`
/// if its own file cannot be filled. Failing requests are counted in the report.
pub fn iolat_paces(
    path: &Path,
    plan: &IolatPlan,
    later: &[Duration],
    budget: &Budget,
    root: &Root,
) -> Result<PacesReport> {
    plan.check()?;
    check_fits(root, plan.request.0)?;
    let target = StorageTarget::open(path, root)?;
    if plan.write {
        target.require_own()?;
    }
    let seed = match plan.seed {
        Some(seed) => seed,
        None => target.draw_seed()?,
    };
    let mut notes = Vec::new();
    let region_bytes = prepare::region(&target, plan, seed, budget, root, &mut notes)?;
    let device = prepare::device(&target, plan)?;
    prepare::cache(&target, plan, region_bytes, budget, &mut notes)?;
    let mut prober = Prober::new(device, region_bytes, plan, seed)?;
    let watch = ServedWatch::start(root, &target);
    let mut bracket = Bracket::for_this_thread(root, None);
    let before = bracket.read();
    let mut paces = each_pace(&mut prober, plan, later, budget, &target);
    let disturbance = Disturbance::between(&before, &bracket.read());
    let direction = if plan.write { Direction::Write } else { Direction::Read };
    let warm_ups: usize = paces.iter().map(|pace| pace.requests.first_ns.len()).sum();
    let counted_bytes: u64 = paces.iter().map(|pace| pace.requests.bytes).sum();
    let moved_bytes = counted_bytes + warm_ups as u64 * plan.request.0;
    let served = watch.finish(direction, moved_bytes);
    for pace in &mut paces {
        pace.requests.failure = pace.requests.failure.take().map(|error| error.at(path));
    }
    let filled_bytes = if target.is_own() { region_bytes } else { 0 };
    Ok(PacesReport {
        target: target.facts(root)?,
        access: plan.access,
        write: plan.write,
        request_bytes: plan.request.0,
        region_bytes,
        seed,
        paces,
        served,
        disturbance,
        written_bytes: filled_bytes + if plan.write { moved_bytes } else { 0 },
        runs: Runs::default(),
        notes,
    })
}

fn each_pace(
    prober: &mut Prober<sys::device::FileDevice>,
    plan: &IolatPlan,
    later: &[Duration],
    budget: &Budget,
    target: &StorageTarget,
) -> Vec<PaceReport> {
    let is_evicted = plan.access == Access::Cold && target.is_own() && !plan.write;
    let intervals = std::iter::once(plan.interval).chain(later.iter().copied());
    let mut paces = Vec::new();
    for (turn, interval) in intervals.enumerate() {
        if turn > 0 && (budget.over() || is_evicted && target.evict().is_err()) {
            break;
        }
        let part = budget.part(budget.left() / (later.len() + 1 - turn) as u32);
        let paced = IolatPlan { interval, ..plan.clone() };
        let requests = run(prober, &paced, &part, is_evicted.then_some(target));
        paces.push(PaceReport { interval_s: interval.as_secs_f64(), requests });
    }
    paces
}

impl Repeatable for PacesReport {
    fn has_failed(&self) -> bool {
        self.paces.iter().any(|pace| pace.requests.failure.is_some())
    }

    fn combine(mut reports: Vec<Self>, runs: Runs) -> Self {
        let written_bytes = reports.iter().map(|report| report.written_bytes).sum();
        let served = Served::of_runs(reports.iter().map(|report| &report.served));
        let mut notes: Vec<String> = Vec::new();
        for note in reports.iter_mut().flat_map(|report| std::mem::take(&mut report.notes)) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let mut of_paces: Vec<(f64, Vec<RequestReport>)> = Vec::new();
        let paces = reports.iter_mut().flat_map(|report| std::mem::take(&mut report.paces));
        for PaceReport { interval_s, requests } in paces {
            match of_paces.iter_mut().find(|(of, _)| *of == interval_s) {
                Some((_, same)) => same.push(requests),
                None => of_paces.push((interval_s, vec![requests])),
            }
        }
        let combined = of_paces.into_iter().filter_map(|(interval_s, requests)| {
            let requests = RequestReport::between_runs(requests, runs.span_s)?;
            Some(PaceReport { interval_s, requests })
        });
        let paces = combined.collect();
        let first = reports.swap_remove(0);
        Self { paces, written_bytes, served: served.unwrap_or(first.served), notes, runs, ..first }
    }
}

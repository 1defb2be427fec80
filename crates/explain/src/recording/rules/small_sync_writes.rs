//! Many small writes, each waited for until it was safe on its device.
//!
//! The wait is told by events; how small the writes are by the bytes for each flush, or for
//! each write where the device has no cache of its own to flush.

use super::caused::CausedRun;
use super::device::{Direction, Traffic, busiest};
use super::run_view::ratio;
use super::{RunVerdict, RunView};
use crate::verdict::{NoFinding, clear};
use crate::wording::{count, survey_path};
use model::explanation::{Cause, TimePart};
use model::{Bytes, Evidence, Finding};

/// Fewer syncs are no storm. Picked.
const LEAST_SYNCS: u64 = 20;

/// A sync of up to so many bytes is small. Picked: the time of one sync of this size is
/// still mostly the device's latency.
const SMALL_BYTES: f64 = 262_144.0;

/// How many syncs there were, and how much each wrote.
#[derive(Clone, Debug)]
pub(super) struct Syncs<'a> {
    times: u64,
    bytes_each: f64,
    traffic: Traffic<'a>,
    flushes: Option<Evidence>,
}

impl Syncs<'_> {
    /// Whether they are many and small.
    pub(super) fn are_small(&self) -> bool {
        self.times >= LEAST_SYNCS && self.bytes_each <= SMALL_BYTES
    }
}

/// The syncs to the device that took most of the writes; `None` where nothing was flushed.
pub(super) fn syncs<'a>(run: &RunView<'a>) -> Option<Syncs<'a>> {
    run.part_ns(TimePart::Flush).filter(|ns| *ns > 0)?;
    let traffic = busiest(run, Direction::Write)?;
    let names =
        [format!("trace.block.{}.flushes", traffic.name), format!("disk.{}.flushes", traffic.name)];
    let counted = names.iter().filter_map(|name| run.grown(name));
    let flushes =
        counted.filter(|evidence| evidence.value > 0.0).max_by(|a, b| a.value.total_cmp(&b.value));
    let times = flushes.as_ref().map_or(traffic.requests, |evidence| evidence.value as u64);
    Some(Syncs { times, bytes_each: ratio(traffic.bytes as f64, times as f64), traffic, flushes })
}

pub(super) fn check(run: &RunView) -> RunVerdict {
    let ns = run.part_ns(TimePart::Flush).ok_or(NoFinding::Nothing)?;
    let measured =
        Evidence::time("waited for syncs", ns, "events").seen_in(run.part_series(TimePart::Flush));
    let whole = run.write_wait_ns().unwrap_or(ns);
    let small = syncs(run).filter(Syncs::are_small);
    let Some(syncs) = small.filter(|_| run.hurts(ns) && run.hurts(whole)) else {
        return clear(Some(measured).filter(|_| !run.hurts(ns)));
    };
    let traffic = syncs.traffic;
    let caused = CausedRun::of(run, run.sampled_device_writes(), 1.0);
    let claim = format!(
        "{} for small synchronous writes to {}: {} of {} each{}",
        run.waited(ns),
        traffic.place(),
        count(syncs.times),
        Bytes(syncs.bytes_each as u64),
        caused.words(),
    );
    let mut finding = Finding::new(run.part_grade(TimePart::Flush), claim, [measured])
        .and(syncs.flushes)
        .and(traffic.evidence)
        .remedy(
            "Put more into each sync (larger transactions, fewer fsync calls), or the log on a \
             device with a protected write cache. Risk: what is not synced is lost in a crash.",
        );
    finding.confirm = traffic.mount.map(survey_path);
    Ok(caused.add_to(Cause::new(Some(ns), finding)))
}

//! Dirty data lay still while its device was idle, and the writer waited for it later.
//!
//! Looked for sample by sample: dirty pages enough to write and hardly anything written.
//! The kernel counts everybody's; no more of them can be the subject's than it has written by
//! then. It costs something only if the subject then waited for writes.

use super::device::{Direction, busiest};
use super::run_view::ratio;
use super::{RunVerdict, RunView, io_limit};
use crate::verdict::NoFinding;
use crate::wording::{long_time, percent};
use model::explanation::{Cause, TimePart};
use model::{Evidence, Finding, Grade};

/// Less dirty data than this is not worth a start. Picked.
const LEAST_DIRTY_BYTES: u64 = 16 << 20;

/// A device that works for less than this share of the time is idle. Picked.
const IDLE_SHARE: f64 = 0.1;

/// The least share of the time in which it could have written. Picked.
const LEAST_IDLE: f64 = 0.2;

pub(super) fn check(run: &RunView) -> RunVerdict {
    let throttled = run.part_ns(TimePart::DirtyThrottle);
    let written = run.cached_write_wait_ns();
    let waited = throttled.max(written).ok_or(NoFinding::Nothing)?;
    // Below a limit the device is idle for another reason.
    if !run.hurts(waited) || io_limit::check(run).is_ok() {
        return Err(NoFinding::Nothing);
    }
    let device = busiest(run, Direction::Write).ok_or(NoFinding::Nothing)?;
    let idle = idle_with_dirty_ns(run, &device.name).ok_or(NoFinding::Nothing)?;
    let busy = format!("disk.{}.io_ns", device.name);
    let measured = Evidence::time("idle with dirty data", idle, "/proc/diskstats").seen_in([
        "tree.write_bytes",
        "vmstat.nr_dirty",
        &busy,
    ]);
    let ns = idle.min(waited);
    let share = ratio(idle as f64, run.wall_ns() as f64);
    if share < LEAST_IDLE || !run.hurts(ns) {
        return Err(NoFinding::Cleared(measured));
    }
    let claim = format!(
        "{} was idle for {} ({} of the time) while data lay dirty, then the writer waited",
        device.name,
        long_time(idle as f64),
        percent(share),
    );
    let mut evidence = vec![measured];
    let most = run.max("vmstat.nr_dirty");
    evidence.extend(most.map(|most| run.evidence("vmstat.nr_dirty", most as f64)));
    evidence.extend(device.evidence);
    let finding = Finding::new(Grade::Inferred, claim, evidence).remedy(
        "Start writing earlier: a smaller vm.dirty_background_bytes. Risk: data that is soon \
         overwritten is then written in vain.",
    );
    Ok(Cause::new(Some(ns), finding))
}

/// The time in samples with enough dirty data and an idle device.
fn idle_with_dirty_ns(run: &RunView, device: &str) -> Option<u64> {
    let dirty = run.series("vmstat.nr_dirty")?;
    let own = run.series("tree.write_bytes")?;
    let busy = run.series(&format!("disk.{device}.io_ns"))?;
    let least = LEAST_DIRTY_BYTES / run.page_bytes();
    let (first, last) = run.samples();
    let mut idle = 0u64;
    for sample in first..last {
        let (Some(from), Some(to)) = (run.at_ns(sample), run.at_ns(sample + 1)) else {
            break;
        };
        let length = to.saturating_sub(from);
        let pages = [dirty.at(sample), dirty.at(sample + 1)]
            .into_iter()
            .flatten()
            .min()
            .and_then(|pages| u64::try_from(pages).ok());
        let Some(worked) = busy.growth(sample, sample + 1) else {
            continue;
        };
        let is_idle = (worked as f64) < length as f64 * IDLE_SHARE;
        let written = own.growth(first, sample).unwrap_or(0);
        let enough = pages.is_some_and(|pages| pages >= least) && written >= LEAST_DIRTY_BYTES;
        if is_idle && enough {
            idle = idle.saturating_add(length);
        }
    }
    Some(idle)
}

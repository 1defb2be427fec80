//! Dirty data lay still while its device was idle, and the writer waited for it later.
//!
//! Looked for sample by sample: dirty pages enough to write and hardly anything written.
//! The kernel counts everybody's; no more of them can be the subject's than it has written by
//! then. It costs something only if the subject then waited for writes.

use super::cause::CauseBuilder;
use super::device::{Way, busiest};
use super::run_view::ratio;
use super::{Rank, Rule, RunView, Verdict, io_limit};
use crate::wording::{long_time, percent};
use model::explanation::TimePart;
use model::{Evidence, Grade};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: "writeback_burst",
    suspect: "write-back bursts",
    within: &["dirty_throttle", "small_sync_writes", "writes_to_device"],
    rank: Rank::Timed,
    check,
};

/// Less dirty data than this is not worth a start. Picked.
const LEAST_DIRTY_BYTES: u64 = 16 << 20;

/// A device that works for less than this share of the time is idle. Picked.
const IDLE_SHARE: f64 = 0.1;

/// The least share of the time in which it could have written. Picked.
const LEAST_IDLE: f64 = 0.2;

fn check(run: &RunView) -> Verdict {
    let throttled = run.part_ns(TimePart::DirtyThrottle);
    let written = run.cached_write_wait_ns();
    let Some(waited) = throttled.max(written) else {
        return Verdict::Silent;
    };
    // Below a limit the device is idle for another reason.
    if !run.hurts(waited) || io_limit::blames(run) {
        return Verdict::Silent;
    }
    let Some(device) = busiest(run, Way::Write) else {
        return Verdict::Silent;
    };
    let Some(idle) = idle_with_dirty_ns(run, &device.name) else {
        return Verdict::Silent;
    };
    let busy = format!("disk.{}.io_ns", device.name);
    let measured = Evidence::new("idle with dirty data", idle as f64, "ns", "/proc/diskstats")
        .seen_in(["tree.write_bytes", "vmstat.nr_dirty", &busy]);
    let ns = idle.min(waited);
    let share = ratio(idle as f64, run.view.wall_ns() as f64);
    if share < LEAST_IDLE || !run.hurts(ns) {
        return Verdict::Clear(measured);
    }
    let claim = format!(
        "{} was idle for {} ({} of the time) while data lay dirty, then the writer waited",
        device.name,
        long_time(idle as f64),
        percent(share),
    );
    let mut evidence = vec![measured];
    let most = run.view.max("vmstat.nr_dirty");
    evidence.extend(most.map(|most| run.evidence("vmstat.nr_dirty", most as f64)));
    evidence.extend(device.evidence);
    CauseBuilder::new(RULE.id, Some(ns), Grade::Inferred, claim, evidence)
        .remedy(
            "Start writing earlier: a smaller vm.dirty_background_bytes. Risk: data that is soon \
             overwritten is then written in vain.",
        )
        .found()
}

/// The time in samples with enough dirty data and an idle device.
fn idle_with_dirty_ns(run: &RunView, device: &str) -> Option<u64> {
    let dirty = run.view.series("vmstat.nr_dirty")?;
    let own = run.view.series("tree.write_bytes")?;
    let busy = run.view.series(&format!("disk.{device}.io_ns"))?;
    let least = LEAST_DIRTY_BYTES / run.page_bytes();
    let ticks = &run.view.recording().ticks;
    let (first, last) = run.view.samples();
    let mut idle = 0u64;
    for sample in first..last {
        let (Some(from), Some(to)) = (ticks.get(sample as usize), ticks.get(sample as usize + 1))
        else {
            break;
        };
        let length = to.at_ns.saturating_sub(from.at_ns);
        let pages = [dirty.at(sample), dirty.at(sample + 1)].into_iter().flatten();
        let pages = pages.min().and_then(|pages| u64::try_from(pages).ok());
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

//! Decides when a memory shortage is over and a restore is worth it. Pure: no clock, no I/O.
//!
//! [`ShortageWatch`] gets a [`MemorySample`] a second, from [`MemorySampler`], and answers with a
//! [`WatchDecision`]. A shortage begins with a sign of it: pages were written to swap, tasks
//! reclaimed memory themselves, or stalled while pages were evicted. It is over when there was no
//! sign for the quiet time. Then one restore is due, if the shortage left enough in swap and there
//! is room for that. What a restore left in swap is remembered, so that it is no reason for the
//! next one. The quiet time grows while restores bring pages that are evicted again.

mod sampler;
#[cfg(test)]
mod tests;

pub use sampler::{MemorySampler, SwapPlacement};

use super::restore::{MemoryKind, RestorePlan, RestoreReport};
use crate::background::{PRESSURE_PERMILLE, StopReason};
use model::Bytes;
use std::time::Duration;

/// Less in swap is no reason for a restore. 16 MiB are 4,096 pages: on a disk that seeks, half a
/// minute of waiting if programs fault on them one by one. To find less costs more than it spares,
/// since the page tables of all processes are read.
pub const WORTH_RESTORING: Bytes = Bytes(16 << 20);

/// The longest quiet time that restores in vain lead to. Picked: a machine whose memory gets short
/// every few minutes is not to read its swap each time.
pub const LONGEST_QUIET: Duration = Duration::from_secs(600);

/// A restore was in vain if pages are evicted this soon after it.
pub const PROVING_TIME: Duration = Duration::from_secs(60);

/// What the kernel counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemorySample {
    /// Since a moment that is the same for all samples.
    pub time: Duration,
    /// Pages written to swap since boot, or compressed by zswap in place of that.
    pub evicted_pages: u64,
    /// How often a task found no free memory and reclaimed some itself, since boot.
    pub direct_reclaims: u64,
    /// Pages that were looked at for eviction, since boot.
    pub scanned_pages: u64,
    /// How long tasks stalled on memory since boot, us; `None` if the kernel does not account it.
    pub stalled_us: Option<u64>,
    /// What programs can still take without swapping.
    pub available: Bytes,
    /// What is in swap on disks and not in RAM as well.
    pub in_swap: Bytes,
}

/// What showed between two samples that memory was short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShortageSigns {
    /// Pages written to swap.
    pub evicted_pages: u64,
    /// How often a task reclaimed memory itself.
    pub direct_reclaims: u64,
    /// The share of the time in which tasks stalled while pages were looked at for eviction, in
    /// permille; 0 where that is little.
    pub stalled_permille: u64,
    /// What programs could still take at the end.
    pub available: Bytes,
}

impl ShortageSigns {
    /// What grew from `before` to `now`. Stalls count as in [`crate::background::Allowance`]: not
    /// those of tasks that wait for pages evicted earlier, which a restore helps.
    fn between(before: &MemorySample, now: &MemorySample) -> Self {
        let elapsed_us = now.time.saturating_sub(before.time).as_micros().max(1);
        let stalled_us = match (before.stalled_us, now.stalled_us) {
            (Some(before_us), Some(now_us)) if now.scanned_pages > before.scanned_pages => {
                now_us.saturating_sub(before_us)
            }
            _ => 0,
        };
        let permille = u64::try_from(u128::from(stalled_us) * 1000 / elapsed_us).unwrap_or(1000);
        Self {
            evicted_pages: now.evicted_pages.saturating_sub(before.evicted_pages),
            direct_reclaims: now.direct_reclaims.saturating_sub(before.direct_reclaims),
            stalled_permille: if permille > u64::from(PRESSURE_PERMILLE) { permille } else { 0 },
            available: now.available,
        }
    }

    /// Whether memory was short.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.evicted_pages > 0 || self.direct_reclaims > 0 || self.stalled_permille > 0
    }
}

/// What is to be done after a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchDecision {
    /// Nothing.
    Wait,
    /// Nothing: a shortage has begun. Said once for each.
    ShortageBegan(ShortageSigns),
    /// Nothing: a shortage is over, and left less in swap than is worth a restore.
    LittleInSwap,
    /// Nothing yet: a shortage is over, and there is no room for what it left in swap. Said once
    /// for each shortage.
    NoRoom {
        /// What must be available.
        needed: Bytes,
        /// What is.
        available: Bytes,
    },
    /// One restore, of at least so much; then [`ShortageWatch::restored`].
    Restore(Bytes),
}

/// When a restore is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchSettings {
    /// How long memory must not have been short.
    pub quiet: Duration,
    /// What must be available beyond what is restored.
    pub floor: Bytes,
    /// The most that a restore reads.
    pub most: Option<Bytes>,
}

/// How a restore ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreEnd {
    /// Why.
    pub stop: StopReason,
    /// What it was to read from swap and did not come to.
    pub unread: Bytes,
}

impl RestoreEnd {
    /// The end of a restore of `planned` bytes in swap, by its report.
    #[must_use]
    pub fn of(planned: Bytes, report: &RestoreReport) -> Self {
        let in_swap = report.parts.iter().filter(|part| part.kind != MemoryKind::File);
        let read: u64 = in_swap.map(|part| part.bytes).sum();
        Self { stop: report.stop, unread: Bytes(planned.0.saturating_sub(read)) }
    }

    /// The end of a restore that failed before it read.
    #[must_use]
    pub fn failed() -> Self {
        Self { stop: StopReason::SourceGone, unread: Bytes(0) }
    }
}

/// What a plan would read from swap.
#[must_use]
pub fn planned_in_swap(plan: &RestorePlan) -> Bytes {
    let parts = plan.parts.iter();
    let read = parts.filter(|part| part.kind != MemoryKind::File && part.skipped.is_none());
    Bytes(read.map(|part| part.bytes).sum())
}

/// Where the watch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No shortage since the last restore, or since the last one that was not worth any.
    Calm,
    /// A shortage with its last sign at this time.
    Short(Duration),
    /// It is over, and there was no room.
    Waiting,
}

/// A restore that is not known yet to have been of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UnprovenRestore {
    ended: Duration,
    evicted_pages: u64,
}

/// The state of a watch.
#[derive(Clone, Debug)]
pub struct ShortageWatch {
    settings: WatchSettings,
    last: MemorySample,
    phase: Phase,
    /// What of the swap in use is no reason for a restore: it was there at the start, or a restore
    /// left it there. As it gets less by itself, so does this.
    left_in_swap: Bytes,
    quiet: Duration,
    unproven: Option<UnprovenRestore>,
}

impl ShortageWatch {
    /// A watch from `first` on. What is in swap by then is no reason for a restore.
    #[must_use]
    pub fn start(settings: WatchSettings, first: MemorySample) -> Self {
        Self {
            settings,
            last: first,
            phase: Phase::Calm,
            left_in_swap: first.in_swap,
            quiet: settings.quiet,
            unproven: None,
        }
    }

    /// How long memory must not have been short at present.
    #[must_use]
    pub fn quiet(&self) -> Duration {
        self.quiet
    }

    /// What is to be done after `sample`.
    pub fn next(&mut self, sample: MemorySample) -> WatchDecision {
        let signs = ShortageSigns::between(&self.last, &sample);
        self.last = sample;
        self.left_in_swap = self.left_in_swap.min(sample.in_swap);
        self.judge_restore(&sample);
        if signs.is_short() {
            let is_known = matches!(self.phase, Phase::Short(_));
            self.phase = Phase::Short(sample.time);
            let first = WatchDecision::ShortageBegan(signs);
            return if is_known { WatchDecision::Wait } else { first };
        }
        match self.phase {
            Phase::Calm => WatchDecision::Wait,
            Phase::Short(since) if sample.time.saturating_sub(since) < self.quiet => {
                WatchDecision::Wait
            }
            Phase::Short(_) | Phase::Waiting => self.decide(&sample),
        }
    }

    /// Notes that the restore that was due has ended, and what is in memory after it.
    pub fn restored(&mut self, end: RestoreEnd, after: MemorySample) {
        let in_vain =
            matches!(end.stop, StopReason::Floor | StopReason::Pressure | StopReason::Yield);
        self.phase = Phase::Calm;
        self.left_in_swap = after.in_swap;
        if in_vain {
            self.lengthen_quiet();
        }
        if matches!(end.stop, StopReason::Floor | StopReason::Pressure) {
            // Memory got short before it came to these: that is a shortage of its own.
            self.left_in_swap = Bytes(after.in_swap.0.saturating_sub(end.unread.0));
            self.phase = Phase::Short(after.time);
        }
        let ended = UnprovenRestore { ended: after.time, evicted_pages: after.evicted_pages };
        self.unproven = (!in_vain).then_some(ended);
        self.last = after;
    }

    /// What is due once a shortage is over.
    fn decide(&mut self, sample: &MemorySample) -> WatchDecision {
        let evicted = Bytes(sample.in_swap.0 - self.left_in_swap.0);
        if evicted < WORTH_RESTORING {
            self.phase = Phase::Calm;
            return WatchDecision::LittleInSwap;
        }
        // With room for a part only, a program would have to end for the rest, without a shortage
        // that the rest could be restored after.
        let room = self.settings.most.map_or(evicted, |most| evicted.min(most));
        let needed = Bytes(self.settings.floor.0.saturating_add(room.0));
        if sample.available < needed {
            let is_said = self.phase == Phase::Waiting;
            self.phase = Phase::Waiting;
            let no_room = WatchDecision::NoRoom { needed, available: sample.available };
            return if is_said { WatchDecision::Wait } else { no_room };
        }
        self.phase = Phase::Calm;
        WatchDecision::Restore(evicted)
    }

    /// Finds out whether the last restore was of use: whether what it read stayed.
    fn judge_restore(&mut self, sample: &MemorySample) {
        let Some(restore) = self.unproven else { return };
        if sample.evicted_pages > restore.evicted_pages {
            self.lengthen_quiet();
            self.unproven = None;
        } else if sample.time.saturating_sub(restore.ended) >= PROVING_TIME {
            self.quiet = self.settings.quiet;
            self.unproven = None;
        }
    }

    fn lengthen_quiet(&mut self) {
        let longest = LONGEST_QUIET.max(self.settings.quiet);
        self.quiet = self.quiet.saturating_mul(2).min(longest);
    }
}

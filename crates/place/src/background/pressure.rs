//! Whether other tasks stall on memory, as distinct from the work's own stalls.
//!
//! The kernel counts a read from swap as a memory stall if the page had been in active use
//! (`swap_read_folio`; seen on Linux 6.18: 1.3 s of 2.0 s of a restore). So a growing count may be
//! the work's own, and only the stalls during a pause of the work are those of others. One stall
//! may be chance, so a second pause of 40 ms confirms it: with a batch of 50 ms the work stops
//! within 180 ms. Direct reclaim needs no pause: free memory has run out for some task.
//!
//! Tasks that fault on evicted pages also count as stalled, but a restore helps them. So stalls
//! count only while the kernel scans for pages to evict (`pgscan_*`), also for a group at its
//! limit.

use machine::{ProcFile, Root, pressure};
use std::time::{Duration, Instant};

/// The time from one observation to the next.
const INTERVAL: Duration = Duration::from_millis(80);
/// A first observation takes two ticks of the kernel and this. `collect_percpu_times` weighs each
/// processor by its time at work in whole ticks: a shorter one reads nothing (seen: 0 in each of
/// 200 pauses of 3 ms beside a task that stalled all the time, at 250 Hz).
const BEYOND_TICKS: Duration = Duration::from_millis(1);
/// The second observation, after a first one with stalls, and the one at the start.
const LONG_OBSERVATION: Duration = Duration::from_millis(40);

/// Observes the stalls of others.
#[derive(Debug)]
pub(super) struct MemoryPressure {
    pressure: Option<ProcFile>,
    vmstat: Option<ProcFile>,
    /// The share of the time in which tasks stalled at the start.
    before_permille: u64,
    /// Direct reclaims at the last observation.
    reclaims: Option<u64>,
    /// Pages that had been scanned for eviction by then.
    scanned: Option<u64>,
    observed_at: Instant,
    /// The total of all stalls by then.
    stalled_us: Option<u64>,
    short_observation: Duration,
}

impl MemoryPressure {
    /// Reads the counters, and observes the stalls that exist already.
    pub(super) fn start(root: &Root) -> Self {
        let mut this = Self {
            pressure: ProcFile::open(root, "/proc/pressure/memory").ok(),
            vmstat: ProcFile::open(root, "/proc/vmstat").ok(),
            before_permille: 0,
            reclaims: None,
            scanned: None,
            observed_at: Instant::now(),
            stalled_us: None,
            short_observation: sys::clock::tick() * 2 + BEYOND_TICKS,
        };
        if this.stalled_lately() && this.observe(this.short_observation).unwrap_or(0) > 0 {
            this.before_permille = this.observe(LONG_OBSERVATION).unwrap_or(0);
        }
        this.reclaims = this.sum_of("allocstall");
        this.scanned = this.sum_of("pgscan_");
        this.stalled_us = this.read_stalled_us();
        this.observed_at = Instant::now();
        this
    }

    /// Whether free memory ran out for some task, or pages are scanned for eviction and others
    /// stall for more than `limit_permille` of the time on top of what they did at the start. The
    /// calling work must have no reads in flight.
    pub(super) fn others_stall_in_a_pause(&mut self, limit_permille: u32) -> bool {
        let Some(interval) = self.elapsed_interval() else {
            return false;
        };
        let limit = self.before_permille + u64::from(limit_permille);
        let grown_us = match (self.read_stalled_us(), self.stalled_us) {
            (Some(now), Some(before)) => now.saturating_sub(before),
            _ => 0,
        };
        let is_suspicious = self.has_scanned() && permille(grown_us, interval) > limit;
        let short = self.short_observation;
        let mut exceeds = |time| self.observe(time).is_some_and(|share| share > limit);
        let others = is_suspicious && exceeds(short) && exceeds(LONG_OBSERVATION);
        self.stalled_us = self.read_stalled_us();
        self.has_reclaimed() || others
    }

    /// Whether free memory ran out for some task since the last observation.
    pub(super) fn has_direct_reclaim(&mut self) -> bool {
        self.elapsed_interval().is_some() && self.has_reclaimed()
    }

    /// Whether the count of direct reclaims grew. Reclaim within a limited group does not count:
    /// that is not the machine's memory.
    fn has_reclaimed(&mut self) -> bool {
        let before = self.reclaims;
        self.reclaims = self.sum_of("allocstall");
        matches!((before, self.reclaims), (Some(before), Some(now)) if now > before)
    }

    /// Whether pages were scanned for eviction since the last observation; assumed if unknown.
    fn has_scanned(&mut self) -> bool {
        let before = self.scanned;
        self.scanned = self.sum_of("pgscan_");
        before.is_none() || self.scanned != before
    }

    /// The time since the last observation, if another one is due.
    fn elapsed_interval(&mut self) -> Option<Duration> {
        let elapsed = self.observed_at.elapsed();
        (elapsed >= INTERVAL).then(|| {
            self.observed_at = Instant::now();
            elapsed
        })
    }

    /// The share of `time`, from now on, in which tasks stall on memory.
    fn observe(&mut self, time: Duration) -> Option<u64> {
        let start = Instant::now();
        let before_us = self.read_stalled_us()?;
        std::thread::sleep(time);
        let stalled_us = self.read_stalled_us()?.saturating_sub(before_us);
        Some(permille(stalled_us, start.elapsed()))
    }

    /// Whether a task stalled in the last seconds; assumed if unknown.
    fn stalled_lately(&mut self) -> bool {
        let text = self.pressure.as_mut().and_then(|file| file.text());
        text.and_then(pressure::lately).unwrap_or(true)
    }

    fn read_stalled_us(&mut self) -> Option<u64> {
        let text = self.pressure.as_mut()?.text()?;
        Some(pressure::parse(text)?.some_us)
    }

    /// The sum of the counters that begin with `prefix`: the kernel keeps them by zone and reason.
    fn sum_of(&mut self, prefix: &str) -> Option<u64> {
        machine::vmstat::sum_of(self.vmstat.as_mut()?.text()?, prefix)
    }
}

fn permille(stalled_us: u64, time: Duration) -> u64 {
    stalled_us * 1_000_000 / u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1)
}

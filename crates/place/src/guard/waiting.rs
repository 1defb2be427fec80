//! Whether others wait for memory, told apart from the mover's own waiting.
//!
//! The kernel counts the reading of a page from swap as waiting for memory if the page had been
//! in active use (`swap_read_folio`). Observed on Linux 6.18, others at work as well: `some memory`
//! grew by 1.3 s while such pages were brought back for 2.0 s, and by nothing in 5.6 s for pages
//! touched once. So its growth says nothing about others; in a pause of the mover it does: beside a
//! real hog 4 to 5 ms in a pause of 3 (it lasts longer than asked) and 12 to 23 in one of 40.
//!
//! A pause of 3 ms in 80 ms costs 4 %; one waiter in it may be chance, so it is looked at for
//! 40 ms more before it counts. With a batch of 50 ms that stops a mover within 175 ms of one who
//! waits all the time; who waits for 10 ms and runs for 20 is seen in every fourth pause only.
//! That free memory has run out is told at once, by the count of direct reclaims.

use machine::{Rereader, Root, pressure};
use std::time::Duration;
use sys::clock::now_ns;

/// From one pause to the next.
const LOOK_EVERY_NS: u64 = 80_000_000;
/// A first look: long enough for a share to mean something beside a wake-up of 0.1 ms.
const GLANCE: Duration = Duration::from_millis(3);
/// The second look, if the first one was bad.
const CLOSE_LOOK: Duration = Duration::from_millis(40);
/// How long the start looks at what is there already.
const FIRST_LOOK: Duration = Duration::from_millis(40);

/// The witness of others' waiting.
#[derive(Debug)]
pub(super) struct Waiting {
    pressure: Option<Rereader>,
    vmstat: Option<Rereader>,
    /// The share of the time in which somebody waited at the start.
    before_permille: u64,
    /// Direct reclaims that had begun at the last look.
    reclaims: Option<u64>,
    looked_ns: u64,
}

impl Waiting {
    /// Looks at what is there already.
    pub(super) fn start(root: &Root) -> Self {
        let mut waiting = Self {
            pressure: Rereader::open(root, "/proc/pressure/memory").ok(),
            vmstat: Rereader::open(root, "/proc/vmstat").ok(),
            before_permille: 0,
            reclaims: None,
            looked_ns: 0,
        };
        waiting.before_permille = waiting.share_permille(FIRST_LOOK).unwrap_or(0);
        waiting.reclaims = waiting.direct_reclaims();
        waiting.looked_ns = now_ns();
        waiting
    }

    /// Whether somebody ran out of free memory, or others wait for more than `limit_permille`
    /// of the time on top of what they did at the start. The caller itself must wait for no
    /// memory while it asks.
    pub(super) fn in_a_pause(&mut self, limit_permille: u32) -> bool {
        if !self.is_due() {
            return false;
        }
        let limit = self.before_permille + u64::from(limit_permille);
        let mut exceeds = |time| self.share_permille(time).is_some_and(|share| share > limit);
        let waits = exceeds(GLANCE) && exceeds(CLOSE_LOOK);
        self.has_reclaimed() || waits
    }

    /// As [`Waiting::in_a_pause`], by the first sign alone.
    pub(super) fn reclaims(&mut self) -> bool {
        self.is_due() && self.has_reclaimed()
    }

    /// Whether anybody ran out of free memory since the last look and had to make room himself.
    /// Reclaim within a limited group is not counted: that is not the machine's memory.
    fn has_reclaimed(&mut self) -> bool {
        let before = self.reclaims;
        self.reclaims = self.direct_reclaims();
        matches!((before, self.reclaims), (Some(before), Some(now)) if now > before)
    }

    fn is_due(&mut self) -> bool {
        let now_ns = now_ns();
        let due = now_ns - self.looked_ns >= LOOK_EVERY_NS;
        if due {
            self.looked_ns = now_ns;
        }
        due
    }

    /// The share of `time`, from now on, in which somebody waits for memory.
    fn share_permille(&mut self, time: Duration) -> Option<u64> {
        let started_ns = now_ns();
        let before_us = self.waited_us()?;
        std::thread::sleep(time);
        let waited_us = self.waited_us()?.saturating_sub(before_us);
        Some(waited_us * 1_000_000 / (now_ns() - started_ns).max(1))
    }

    fn waited_us(&mut self) -> Option<u64> {
        let text = self.pressure.as_mut()?.text()?;
        Some(pressure::parse(text)?.some_us)
    }

    /// `allocstall_*`, one counter for each zone.
    fn direct_reclaims(&mut self) -> Option<u64> {
        let counters = machine::vmstat::parse(self.vmstat.as_mut()?.text()?);
        let of_zone =
            |(name, count): (&String, &u64)| name.starts_with("allocstall").then_some(*count);
        counters
            .iter()
            .filter_map(of_zone)
            .reduce(u64::saturating_add)
    }
}

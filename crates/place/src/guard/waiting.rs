//! Whether others wait for memory, told apart from the mover's own waiting.
//!
//! The kernel counts the reading of a page from swap as waiting for memory if the page had been
//! in active use (`swap_read_folio`; seen on Linux 6.18: 1.3 s of 2.0 s of such a restore). So what
//! it counts may be the mover's own; in a pause of the mover it is that of others. A pause is made
//! only if the count grew, and one waiter in it may be chance, so it is looked at for 40 ms more:
//! with a batch of 50 ms that stops a mover within 180 ms. Free memory that ran out is told at once,
//! by the count of direct reclaims.
//!
//! Who asks for what was pushed out before waits as well, and that is what a mover is there to end: as
//! long as the kernel looks for no page to push out, not even for a group at its limit (`pgscan_*`),
//! nobody's waiting counts.

use machine::{Rereader, Root, pressure};
use std::time::Duration;
use sys::clock::now_ns;

/// From one pause to the next.
const LOOK_EVERY_NS: u64 = 80_000_000;
/// A first look is two ticks of the kernel and this. `collect_percpu_times` weighs each processor
/// by its time at work in whole ticks: what is asked for sooner counts as nothing and is lost
/// (seen: 0 in each of 200 pauses of 3 ms, beside one who waited all the time, at 250 Hz).
const BEYOND_TICKS: Duration = Duration::from_millis(1);
/// The second look, if the first one was bad, and the look at the start if anybody waits then.
const CLOSE_LOOK: Duration = Duration::from_millis(40);

/// The witness of others' waiting.
#[derive(Debug)]
pub(super) struct Waiting {
    pressure: Option<Rereader>,
    vmstat: Option<Rereader>,
    /// The share of the time in which somebody waited at the start.
    before_permille: u64,
    /// Direct reclaims that had begun at the last look.
    reclaims: Option<u64>,
    /// Pages that the kernel had looked at by then, whether to push them out.
    scanned: Option<u64>,
    /// When others were last looked at, and what had been waited for by then.
    looked_ns: u64,
    waited_us: Option<u64>,
    glance: Duration,
}

impl Waiting {
    /// Looks at what is there already.
    pub(super) fn start(root: &Root) -> Self {
        let mut waiting = Self {
            pressure: Rereader::open(root, "/proc/pressure/memory").ok(),
            vmstat: Rereader::open(root, "/proc/vmstat").ok(),
            before_permille: 0,
            reclaims: None,
            scanned: None,
            looked_ns: 0,
            waited_us: None,
            glance: sys::clock::tick() * 2 + BEYOND_TICKS,
        };
        let glance = waiting.glance;
        let glances = waiting.waited_lately();
        if glances
            && waiting
                .share_permille(glance)
                .is_some_and(|share| share > 0)
        {
            waiting.before_permille = waiting.share_permille(CLOSE_LOOK).unwrap_or(0);
        }
        waiting.reclaims = waiting.counted("allocstall");
        waiting.scanned = waiting.counted("pgscan_");
        waiting.waited_us = waiting.waited_us();
        waiting.looked_ns = now_ns();
        waiting
    }

    /// Whether somebody ran out of free memory, or pages are pushed out and others wait for more than
    /// `limit_permille` of the time on top of what they did at the start. The caller itself must wait for no
    /// memory while it asks.
    pub(super) fn in_a_pause(&mut self, limit_permille: u32) -> bool {
        let since_ns = now_ns() - self.looked_ns;
        if !self.is_due() {
            return false;
        }
        let limit = self.before_permille + u64::from(limit_permille);
        let grown_us = self.waited_us().zip(self.waited_us);
        let grown_us = grown_us.map_or(0, |(now, before)| now.saturating_sub(before));
        let anybody = self.makes_room() && grown_us * 1_000_000 / since_ns.max(1) > limit;
        let glance = self.glance;
        let mut exceeds = |time| self.share_permille(time).is_some_and(|share| share > limit);
        let others = anybody && exceeds(glance) && exceeds(CLOSE_LOOK);
        self.waited_us = self.waited_us();
        self.has_reclaimed() || others
    }

    /// As [`Waiting::in_a_pause`], by the first sign alone.
    pub(super) fn reclaims(&mut self) -> bool {
        self.is_due() && self.has_reclaimed()
    }

    /// Whether anybody ran out of free memory since the last look and had to make room himself.
    /// Reclaim within a limited group is not counted: that is not the machine's memory.
    fn has_reclaimed(&mut self) -> bool {
        let before = self.reclaims;
        self.reclaims = self.counted("allocstall");
        matches!((before, self.reclaims), (Some(before), Some(now)) if now > before)
    }

    /// Whether the kernel looked for pages to push out since the last look; taken for so if it does
    /// not tell.
    fn makes_room(&mut self) -> bool {
        let before = self.scanned;
        self.scanned = self.counted("pgscan_");
        before.is_none() || self.scanned != before
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

    /// Taken for so if the kernel does not tell.
    fn waited_lately(&mut self) -> bool {
        let text = self.pressure.as_mut().and_then(|file| file.text());
        text.and_then(pressure::lately).unwrap_or(true)
    }

    fn waited_us(&mut self) -> Option<u64> {
        let text = self.pressure.as_mut()?.text()?;
        Some(pressure::parse(text)?.some_us)
    }

    /// The counters of this beginning together, which the kernel keeps by zone, reason and kind of page.
    fn counted(&mut self, beginning: &str) -> Option<u64> {
        machine::vmstat::sum_of(self.vmstat.as_mut()?.text()?, beginning)
    }
}

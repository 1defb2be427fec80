//! How often a file is synced while it is copied, so that what is shown as being on the device is
//! close to what is there.
//!
//! 1. Only bytes that a sync made durable are shown. Without syncs midway, a copy of a few large
//!    files would be shown in a few jumps.
//! 2. A step is [`SHARE_OF_ALL`] of all bytes: shorter ones cost more, longer ones are seen. The
//!    ring has one sync of a file in flight at a time and goes on meanwhile, so it may sync every
//!    [`RING_EVERY`]; calls wait for theirs, and sync every [`CALLS_EVERY`]; where a head moves for
//!    it, one is [`HEAD_EVERY`] after the other.
//! 3. Where nothing is shown, and until all files are counted, there are no such steps.
//!
//! The steps from which a later run goes on are those of `offsets`.

use super::CopyShared;
use std::time::{Duration, Instant};

/// A step is so much of all bytes.
const SHARE_OF_ALL: f64 = 0.005;
/// And at least so much: a sync writes some blocks of the file system itself.
const LEAST_STEP_BYTES: u64 = 2 << 20;
/// 200 syncs in the 2 s of a copy of 2.4 GB made it 1.8 % longer.
const RING_EVERY: Duration = Duration::from_millis(20);
/// A head goes to the journal and back: 60 ms were seen.
const HEAD_EVERY: Duration = Duration::from_secs(1);
/// Calls wait for a sync, and the device with them: a pause of 20 ms is 4 % of this.
const CALLS_EVERY: Duration = Duration::from_millis(500);

/// The steps of one file.
#[derive(Debug)]
pub(super) struct SyncSteps {
    /// The shortest time from one sync to the next.
    every: Duration,
    synced_at: Instant,
}

impl SyncSteps {
    /// For a file that begins now.
    pub(super) fn new(target_rotates: bool) -> Self {
        let every = if target_rotates { HEAD_EVERY } else { RING_EVERY };
        Self { every, synced_at: Instant::now() }
    }

    /// From now on calls copy the file.
    pub(super) fn go_by_calls(&mut self) {
        self.every = self.every.max(CALLS_EVERY);
        self.synced_at = Instant::now();
    }

    /// Whether it is time for a sync, with so much written since the last one.
    pub(super) fn is_due(&self, shared: &CopyShared<'_>, unsynced_bytes: u64) -> bool {
        let total = shared.gauges.bytes_total.get().filter(|_| shared.request.shows_durable);
        total.is_some_and(|total| unsynced_bytes >= step_bytes(total))
            && self.synced_at.elapsed() >= self.every
    }

    /// A sync has ended.
    pub(super) fn synced(&mut self) {
        self.synced_at = Instant::now();
    }
}

/// The step of a copy of so many bytes.
fn step_bytes(total: u64) -> u64 {
    ((total as f64 * SHARE_OF_ALL) as u64).max(LEAST_STEP_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::{CopyRequest, carry_out, plan};
    use model::copy_gauges::{CopyEngine, CopyGauges};
    use model::progress::Control;
    use testkit::TempDir;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_step_is_a_small_share_of_all_and_not_too_small() {
        assert_eq!(step_bytes(10 * MIB), LEAST_STEP_BYTES);
        assert_eq!(step_bytes(1 << 40), (1 << 40) / 200);
    }

    /// How many different numbers of durable bytes were seen while 24 MiB were copied at 48 MiB/s.
    fn values_seen(engine: Option<CopyEngine>, shows_durable: bool) -> usize {
        let directory = TempDir::new();
        std::fs::write(directory.join("file"), vec![7; 24 * MIB as usize]).unwrap();
        let request = CopyRequest {
            sources: vec![directory.join("file")],
            target: directory.join("copy"),
            engine,
            limit_rate: Some(48 * MIB),
            wants_totals: true,
            shows_durable,
            ..CopyRequest::default()
        };
        let gauges = CopyGauges::default();
        let mut seen = vec![0];
        let planned = plan(&request).unwrap();
        let report = carry_out(&request, planned, &gauges, &mut || {
            let durable = gauges.durable_bytes.get().unwrap_or(0);
            if seen.last() != Some(&durable) {
                assert!(seen.last() < Some(&durable), "{durable} after {seen:?}");
                seen.push(durable);
            }
            Control::Continue
        });
        assert!(report.unwrap().report.is_complete);
        assert_eq!(gauges.durable_bytes.get(), Some(24 * MIB));
        seen.len()
    }

    #[test]
    fn a_large_file_is_durable_step_by_step_where_that_is_shown() {
        // Of 12 steps some may be covered by one sync, or fall between two looks.
        assert!(values_seen(None, true) >= 6);
        assert!(values_seen(None, false) <= 2, "only at the end");
        assert!(values_seen(Some(CopyEngine::Plain), true) <= 2, "left to the kernel");
    }
}

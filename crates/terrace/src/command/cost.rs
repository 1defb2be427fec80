//! What a run of this program cost the machine, to be stated beside its result: time, memory, bytes
//! written, and, where the harness was used, its own overhead, which is never subtracted.

use crate::output::json::{Cost, Harness};
use machine::Root;
use measure::calibrate;
use measure::disturbance::Bracket;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Started with the work whose cost is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    started: Instant,
    started_unix_s: u64,
}

impl Meter {
    /// Starts now.
    pub fn start() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            started: Instant::now(),
            // A clock before 1970 is not set; nothing better than 0 can be said of it.
            started_unix_s: since_1970.map_or(0, |since| since.as_secs()),
        }
    }

    /// When it started, seconds since 1970 UTC.
    pub fn started_unix_s(&self) -> u64 {
        self.started_unix_s
    }

    /// The cost until now of a run that measured nothing by the harness.
    pub fn cost(&self) -> Cost {
        let usage = sys::usage::process().ok();
        Cost {
            wall_s: self.started.elapsed().as_secs_f64(),
            cpu_s: usage.as_ref().map_or(0.0, |usage| usage.cpu_ns() as f64 / 1e9),
            max_resident_bytes: usage.as_ref().map_or(0, |usage| usage.max_rss_bytes),
            written_bytes: 0,
            harness: None,
        }
    }

    /// The cost until now of a run that measured and wrote `written_bytes` to files. What the
    /// harness costs is found out by calling it: milliseconds, which are not part of the run.
    pub fn cost_of_measuring(&self, written_bytes: u64, root: &Root) -> Cost {
        let cost = self.cost();
        let overhead = calibrate::overhead(&mut Bracket::for_this_thread(root, None));
        Cost {
            written_bytes,
            harness: Some(Harness { timer_ns: overhead.timer_ns, bracket_ns: overhead.bracket_ns }),
            ..cost
        }
    }
}

//! Latency of single requests, one at a time, as `ioping` measures it, with the
//! percentiles and the histogram that it lacks.
//!
//! 1. The plan is checked, the target opened, its own file filled with data that
//!    no layer can shrink (reads of unwritten extents never reach a disk).
//! 2. Requests go to every aligned block once in a shuffled order before any comes
//!    again; between two clock readings there is the bare system call.
//! 3. Counters before and after show what served them.
//! 4. `paces` does this at several paces: a machine that falls asleep between requests answers
//!    slower the longer they are apart.
//!
//! It does not keep several requests in flight: that is `random`.

mod paces;
mod prepare;
mod requests;

pub use paces::{PaceReport, PacesReport, iolat_paces};
pub use requests::{EndReason, Prober, RequestReport, run};

use super::served::Served;
use super::target::TargetFacts;
use crate::disturbance::Disturbance;
use crate::{Budget, Error, ErrorKind, Result};
use machine::Root;
use model::Bytes;
use model::bytes::{GIB, KIB, MIB};
pub use prepare::fill_own;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// The largest request: more is throughput, which is `seqio`.
pub const LARGEST_REQUEST: Bytes = Bytes(GIB);
/// The region if none is given: large enough that its blocks last for seconds.
pub const DEFAULT_REGION: Bytes = Bytes(64 * MIB);
/// After this many failed requests the run ends.
pub const MOST_FAILURES: u64 = 16;
/// How many single times are kept at most, if they are wanted: 32 MiB of them.
pub const MOST_RAW: usize = 4 << 20;

/// What may answer a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Buffered, but the own file was taken out of the cache before; a write is
    /// followed by `fdatasync` and timed with it.
    #[default]
    Cold,
    /// Buffered, with the own file read into the cache before; a write ends there.
    Cached,
    /// Past the cache (`O_DIRECT`); a write ends in the device, perhaps in its cache.
    Direct,
}

/// What will be measured; all of it can be checked without touching the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IolatPlan {
    /// How many requests, warm-up not counted; `None`: until the budget ends.
    pub count: Option<u64>,
    /// Time from the start of one request to the start of the next; zero: back to back.
    pub interval: Duration,
    /// Bytes of each request.
    pub request: Bytes,
    /// The part of the target that is asked, from its start; `None`: all of a file or
    /// device, [`DEFAULT_REGION`] in a directory.
    pub region: Option<Bytes>,
    /// What may answer.
    pub access: Access,
    /// Writes instead of reads; only in a directory.
    pub write: bool,
    /// The first requests, which are kept apart: they pay for waking things up.
    pub warmup: u64,
    /// For the order of the requests and the content; `None`: from the kernel.
    pub seed: Option<u64>,
    /// Whether to keep every single time (at most [`MOST_RAW`]).
    pub raw: bool,
}

impl Default for IolatPlan {
    /// As `ioping` without options, except that it stops.
    fn default() -> Self {
        Self {
            count: None,
            interval: Duration::from_secs(1),
            request: Bytes(4 * KIB),
            region: None,
            access: Access::Cold,
            write: false,
            warmup: 1,
            seed: None,
            raw: false,
        }
    }
}

impl IolatPlan {
    /// Refuses what makes no sense for any target.
    ///
    /// # Errors
    /// `Usage`.
    pub fn check(&self) -> Result<()> {
        let refuse = |reason: String| Err(Error::new(ErrorKind::Usage, "measure latency", reason));
        if self.request.0 == 0 || self.request > LARGEST_REQUEST {
            return refuse(format!("a request must be 1 B to {LARGEST_REQUEST}"));
        }
        if self.count == Some(0) {
            return refuse("the count of requests must be at least 1".to_owned());
        }
        if self.region.is_some_and(|region| region < self.request) {
            return refuse("the working set is smaller than one request".to_owned());
        }
        Ok(())
    }
}

/// What was measured at one pace.
#[derive(Debug)]
pub struct IolatReport {
    /// What was asked.
    pub target: TargetFacts,
    /// Bytes of the region that the requests went to.
    pub region_bytes: u64,
    /// The figures.
    pub requests: RequestReport,
    /// Who served them.
    pub served: Served,
    /// What happened to the thread meanwhile.
    pub disturbance: Disturbance,
    /// What the reader should know: a smaller file, pages that could not be evicted.
    pub notes: Vec<String>,
}

/// Measures latency at `path` at the plan's pace until its count or `budget` ends.
///
/// # Errors
/// As [`iolat_paces`].
pub fn iolat(path: &Path, plan: &IolatPlan, budget: &Budget, root: &Root) -> Result<IolatReport> {
    let report = iolat_paces(path, plan, &[], budget, root)?;
    let PacesReport { target, region_bytes, paces, served, disturbance, notes, .. } = report;
    let Some(PaceReport { requests, .. }) = paces.into_iter().next() else {
        let reason = "no request was made";
        return Err(Error::new(ErrorKind::Failed, "measure latency", reason).at(path));
    };
    Ok(IolatReport { target, region_bytes, requests, served, disturbance, notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_that_make_no_sense_are_refused() {
        let broken = [
            IolatPlan { request: Bytes(0), ..IolatPlan::default() },
            IolatPlan { request: Bytes(u64::MAX), ..IolatPlan::default() },
            IolatPlan { count: Some(0), ..IolatPlan::default() },
            IolatPlan { region: Some(Bytes(512)), ..IolatPlan::default() },
        ];
        for plan in broken {
            assert_eq!(plan.check().unwrap_err().kind, ErrorKind::Usage, "{plan:?}");
        }
    }
}

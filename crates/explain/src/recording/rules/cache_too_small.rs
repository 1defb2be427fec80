//! The page cache was too small for what the subject reads again and again.
//!
//! The kernel counts pages that it reads back after it had evicted them. Where they were
//! evicted by a stream that went through the cache once, that rule speaks instead.

use super::caused::CausedRun;
use super::memory_limit;
use super::refaults::{counted, refaults};
use super::{RunVerdict, RunView};
use crate::verdict::{NoFinding, clear_count};
use crate::wording::{count, long_time};
use model::explanation::Cause;
use model::{Bytes, Finding, Grade};

pub(super) fn check(run: &RunView) -> RunVerdict {
    let clearing = counted(run);
    let Some(again) = refaults(run) else {
        let why = "the wait for what was read again is not known";
        return run.without_time(clearing, "refaults", why);
    };
    if memory_limit::lost_in_groups_ns(run) > again.ns / 2 {
        // The limits of groups are blamed: their cache is too small, that of the machine is not.
        return Err(NoFinding::Nothing);
    }
    if !run.hurts(again.ns) {
        return clear_count(clearing, "refaults");
    }
    if again.stream.is_some() {
        return Err(NoFinding::Nothing);
    }
    let caused = CausedRun::of(run, run.sampled_device_reads(), again.share);
    let claim = format!(
        "About {} re-read data evicted moments before: {} pages ({}){}",
        long_time(again.ns as f64),
        count(again.pages),
        Bytes(again.bytes),
        caused.words(),
    );
    let finding = Finding::new(Grade::Inferred, claim, again.evidence.clone())
        .and(again.hit.iter().flat_map(|hit| hit.evidence.clone()));
    Ok(caused.add_to(Cause::new(Some(again.ns), finding)))
}

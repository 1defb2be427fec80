//! The command waited for a process of its own that was not watched.
//!
//! Waiting for watched children is no cause: their own time is accounted for. What is left
//! are instants at which every thread slept and no class of sleep explains it.

use super::asleep::asleep_ns;
use super::{RunVerdict, RunView};
use crate::verdict::{NoFinding, clear};
use crate::wording::long_time;
use model::explanation::{Cause, TimeSlice};
use model::{Evidence, Finding};

/// Sleep of any class up to this share of the waiting says that the children slept.
const SLEEP_SHARE: u64 = 10;

pub(super) fn check(run: &RunView) -> RunVerdict {
    let children = run.accounts.thread(TimeSlice::Children);
    if children == 0 || run.is_machine() {
        return Err(NoFinding::Nothing);
    }
    let measured = Evidence::time("waited for own children", children, "events")
        .seen_in(run.slice_series(TimeSlice::Children));
    let asleep = run.accounts.wall(TimeSlice::Sleep).min(children);
    let is_explained = asleep_ns(run, u64::MAX) > 0
        && run.accounts.thread(TimeSlice::Sleep) >= asleep / SLEEP_SHARE;
    // All children of a command are watched from their birth: what is left of it are the
    // moments between the end of one and the waking of who waits for it.
    if is_explained || run.is_command() || !run.hurts_asleep(asleep) {
        // The waiting itself is accounted for in the children.
        return clear(Some(measured));
    }
    let claim = format!("Waited {} for children that were not watched", long_time(asleep as f64),);
    let grade = run.slice_grade(TimeSlice::Children);
    Ok(Cause::new(Some(asleep), Finding::new(grade, claim, vec![measured])))
}

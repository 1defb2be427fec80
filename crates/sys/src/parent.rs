//! Ending with the parent: `PR_SET_PDEATHSIG`.
//!
//! For a helper process that must never outlive the one that started it, not even where that
//! was killed and not even in the midst of a page fault.

use crate::error::{Result, check};

/// From now on this process is killed when the thread that started it ends. A parent that
/// ended before is not noticed: check afterwards, as [`crate::helper::Caller::connect`] does.
///
/// # Errors
/// Only where a filter forbids the call.
pub fn die_with_it() -> Result<()> {
    // SAFETY: takes a number, touches no memory of ours.
    let answer = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) };
    check("end with the parent", answer).map(drop)
}

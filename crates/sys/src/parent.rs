//! Parents and their descendants: a process ends with its parent (`PR_SET_PDEATHSIG`), or adopts
//! orphaned descendants (`PR_SET_CHILD_SUBREAPER`).
//!
//! The first is for a helper process that must never outlive the one that started it, not even
//! where that was killed and not even in the midst of a page fault. By the second a daemon that
//! leaves its parents stays below the recorder, so that it is still seen to belong to the
//! command. Neither is inherited by children. Reaping is in [`crate::wait`].

use crate::error::{Result, failed};
use rustix::process::{self, Signal};

/// From now on this process is killed when the thread that started it ends. A parent that
/// ended before is not noticed: check afterwards, as [`crate::helper::Caller::connect`] does.
///
/// # Errors
/// Only where a filter forbids the call.
pub fn die_with_it() -> Result<()> {
    process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(failed("end with the parent"))
}

/// While it lives, orphans among the descendants become children of this process.
#[derive(Debug)]
pub struct Reaper {
    before: bool,
}

impl Reaper {
    /// Starts; what was set before returns on drop.
    ///
    /// # Errors
    /// Only where a filter forbids the call.
    pub fn start() -> Result<Self> {
        let before = is_reaper()?;
        set_reaper(true)?;
        Ok(Self { before })
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        // What could be set can be set back.
        let _ = set_reaper(self.before);
    }
}

/// Whether this process adopts orphaned descendants now.
///
/// # Errors
/// Only where a filter forbids the call.
pub fn is_reaper() -> Result<bool> {
    let reaper = process::child_subreaper().map_err(failed("ask who gets orphans"))?;
    Ok(reaper.is_some())
}

fn set_reaper(on: bool) -> Result<()> {
    process::set_child_subreaper(on.then(process::getpid))
        .map_err(failed("become the parent of orphans"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attribute_ends_with_the_guard() {
        // The only test of this program that touches the attribute.
        let before = is_reaper().unwrap();
        let guard = Reaper::start().unwrap();
        assert!(is_reaper().unwrap());
        drop(guard);
        assert_eq!(is_reaper().unwrap(), before);
    }
}

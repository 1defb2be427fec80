//! Adopting orphaned descendants: `PR_SET_CHILD_SUBREAPER`.
//!
//! A daemon that leaves its parents stays below the recorder this way, so that it is still
//! seen to belong to the command. The attribute is not inherited by children. Reaping is in
//! [`crate::wait`].

use crate::error::{Result, check};

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
        set(true)?;
        Ok(Self { before })
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        // What could be set can be set back.
        let _ = set(self.before);
    }
}

/// Whether this process adopts orphaned descendants now.
///
/// # Errors
/// Only where a filter forbids the call.
pub fn is_reaper() -> Result<bool> {
    let mut now: libc::c_int = 0;
    // SAFETY: `now` is room for the one number that the call stores.
    let answer = unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut now) };
    check("ask who gets orphans", answer)?;
    Ok(now != 0)
}

fn set(on: bool) -> Result<()> {
    // SAFETY: takes a number, touches no memory of ours.
    let answer = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, libc::c_ulong::from(on)) };
    check("become the parent of orphans", answer).map(drop)
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

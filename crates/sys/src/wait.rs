//! The end of a child, also of an orphan that was given to this process: how it ended and what it
//! used, by `wait4`.
//!
//! Stopped children are the terminal's business and not reported. A child's number is not
//! free before it was waited for, so signals are passed on to it until just before that.

use crate::error::{ErrorKind, Result, check, failed};
use crate::pidfd::process_number;
use crate::{signals, usage};
use model::recording::Usage;
use rustix::io::retry_on_intr;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use std::mem::MaybeUninit;

const OPERATION: &str = "wait for a child";

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildEnding {
    /// By itself, with this status: 0 to 255.
    Exited {
        /// The status.
        code: i32,
    },
    /// By a signal.
    Killed {
        /// The signal's number.
        signal: i32,
    },
}

/// The end of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildExit {
    /// How.
    pub ended: ChildEnding,
    /// What it and the children that it waited for have used.
    pub usage: Usage,
}

/// Waits until the child `pid` has ended, and forgets it.
///
/// # Errors
/// `Other` (ECHILD) where it is no child of this process, or was waited for already.
pub fn wait(pid: u32) -> Result<ChildExit> {
    peek(pid, WaitIdOptions::empty())?;
    reap(pid)
}

/// Waits until the child `pid` has ended, and leaves it to be read in /proc and reaped.
///
/// # Errors
/// As [`wait`].
pub fn ended(pid: u32) -> Result<()> {
    peek(pid, WaitIdOptions::empty()).map(drop)
}

/// As [`wait`], but `None` at once while the child lives.
///
/// # Errors
/// As [`wait`].
pub fn try_wait(pid: u32) -> Result<Option<ChildExit>> {
    if !peek(pid, WaitIdOptions::NOHANG)? {
        return Ok(None);
    }
    reap(pid).map(Some)
}

/// Whether the child has ended; unless `how` says otherwise, waits for that. It stays to be reaped.
fn peek(pid: u32, how: WaitIdOptions) -> Result<bool> {
    let child = WaitId::Pid(process_number(OPERATION, pid)?);
    let options = how | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let ended = retry_on_intr(|| waitid(child.clone(), options)).map_err(failed(OPERATION))?;
    Ok(ended.is_some())
}

/// Forgets a child that has ended.
fn reap(pid: u32) -> Result<ChildExit> {
    signals::forget(pid);
    let number = process_number(OPERATION, pid)?.as_raw_nonzero().get();
    let mut status: libc::c_int = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both are room for what the call stores.
        let answer = unsafe { libc::wait4(number, &raw mut status, 0, usage.as_mut_ptr()) };
        match check(OPERATION, answer) {
            Err(error) if error.kind == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(_) => break,
        }
    }
    // SAFETY: the call succeeded and filled it; all-zero would be valid as well.
    let used = usage::of(&unsafe { usage.assume_init() });
    let ended = if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        ChildEnding::Killed { signal }
    } else {
        let code = libc::WEXITSTATUS(status);
        ChildEnding::Exited { code }
    };
    Ok(ChildExit { ended, usage: used })
}

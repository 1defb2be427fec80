//! The end of a child: how it ended and what it used, by `wait4`; and the reaping of
//! orphans that were given to this process.
//!
//! Stopped children are the terminal's business and not reported. A child's number is not
//! free before it was waited for, so signals are passed on to it until just before that.

use crate::error::{Error, ErrorKind, Result, check};
use crate::{signals, usage};
use model::recording::Usage;
use std::mem::MaybeUninit;

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
    peek(pid, 0)?;
    reap(pid)
}

/// Waits until the child `pid` has ended, and leaves it to be read in /proc and reaped.
///
/// # Errors
/// As [`wait`].
pub fn ended(pid: u32) -> Result<()> {
    peek(pid, 0).map(drop)
}

/// As [`wait`], but `None` at once while the child lives.
///
/// # Errors
/// As [`wait`].
pub fn try_wait(pid: u32) -> Result<Option<ChildExit>> {
    if !peek(pid, libc::WNOHANG)? {
        return Ok(None);
    }
    reap(pid).map(Some)
}

/// Forgets every child that has ended but `keep`, which another caller waits for, and returns their
/// numbers. Stops at `keep` when that has ended: call again after it was waited for.
///
/// # Errors
/// Only where a filter forbids the call; having no child is not an error.
pub fn reap_orphans(keep: Option<u32>) -> Result<Vec<u32>> {
    let mut reaped = Vec::new();
    loop {
        let flags = libc::WNOHANG | libc::WEXITED | libc::WNOWAIT;
        let pid = match wait_id(libc::P_ALL, 0, flags) {
            Ok(Some(pid)) => pid,
            Ok(None) => return Ok(reaped),
            Err(error) if error.number() == Some(libc::ECHILD) => return Ok(reaped),
            Err(error) => return Err(error),
        };
        if Some(pid) == keep {
            return Ok(reaped);
        }
        reap(pid)?;
        reaped.push(pid);
    }
}

/// Whether the child has ended; with no `flags`, waits for that. It stays to be reaped.
fn peek(pid: u32, flags: libc::c_int) -> Result<bool> {
    let flags = flags | libc::WEXITED | libc::WNOWAIT;
    wait_id(libc::P_PID, pid, flags).map(|ended| ended.is_some())
}

/// The number of a child that has ended, if any has.
fn wait_id(whose: libc::idtype_t, id: u32, flags: libc::c_int) -> Result<Option<u32>> {
    loop {
        let mut news = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: `news` is room for the structure that the call fills, or leaves zero.
        let answer = unsafe { libc::waitid(whose, id, news.as_mut_ptr(), flags) };
        match check("wait for a child", answer) {
            Err(error) if error.kind == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(_) => {
                // SAFETY: all-zero is valid, and the call succeeded; for news of a child the
                // field is the one that the kernel sets.
                let pid = unsafe { news.assume_init().si_pid() };
                return Ok(u32::try_from(pid).ok().filter(|pid| *pid != 0));
            }
        }
    }
}

/// Forgets a child that has ended.
fn reap(pid: u32) -> Result<ChildExit> {
    const OPERATION: &str = "wait for a child";
    signals::forget(pid);
    let number = libc::pid_t::try_from(pid)
        .map_err(|_| Error::invalid(OPERATION, "there is no such process number"))?;
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

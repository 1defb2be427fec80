//! Ctrl-C as a flag: the first signal asks the program to finish, a later one ends it.
//!
//! The handler stores two numbers and reads a clock, so it is safe at any instant.
//! Probes look at [`requested`] between trials; what they own is removed by `Drop` on
//! the way out. `timeout` sends its signal twice in a row, to the program and to its
//! group: a second one that comes at once is the same request.

use crate::error::Result;
use crate::signals;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// The signal that asked for the end; 0 while none has.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// When it came, by the monotonic clock; 0 while none has.
static SINCE_NS: AtomicU64 = AtomicU64::new(0);

/// How many [`Hold`]s live.
static HOLDS: AtomicU32 = AtomicU32::new(0);

/// Signals this soon after the first are the same request: typing is slower.
const SAME_REQUEST_NS: u64 = 500_000_000;

/// From now on SIGINT, SIGTERM and SIGHUP ask for the end instead of killing. One that comes half a
/// second later kills, as by default. One that is ignored already (`nohup`, a background job of a
/// script) stays ignored.
///
/// # Errors
/// Never on Linux.
pub fn install() -> Result<()> {
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().try_for_each(install_one)
}

/// Whether SIGINT is ignored: so a shell without job control starts its background jobs.
/// [`install`] keeps that.
///
/// # Errors
/// None on Linux; the kernel's reason otherwise.
pub fn is_sigint_ignored() -> Result<bool> {
    Ok(signals::disposition(libc::SIGINT)?.sa_sigaction == libc::SIG_IGN)
}

/// Whether a signal has asked for the end.
#[must_use]
pub fn requested() -> bool {
    signal().is_some()
}

/// The signal number that asked for the end; shells report an exit status of 128 plus it.
#[must_use]
pub fn signal() -> Option<i32> {
    Some(SIGNAL.load(Ordering::Relaxed)).filter(|number| *number != 0)
}

/// While it lives a second signal does not kill either: what was changed for a moment is put back.
#[derive(Debug)]
pub struct Hold(());

/// Begins a short part that is not to be cut off between two writes. SIGQUIT and SIGKILL do kill.
#[must_use]
pub fn hold() -> Hold {
    HOLDS.fetch_add(1, Ordering::Relaxed);
    Hold(())
}

impl Drop for Hold {
    fn drop(&mut self) {
        HOLDS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Makes sure that writing to a closed pipe is an error and never kills, whatever the parent
/// process had set: what the program owns must still be removed.
pub fn reset_broken_pipe() {
    // SAFETY: sets a disposition that needs no handler; no memory of ours is involved. It cannot
    // fail for this signal.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

fn install_one(number: libc::c_int) -> Result<()> {
    if signals::disposition(number)?.sa_sigaction == libc::SIG_IGN {
        return Ok(());
    }
    // The handler does only what is permitted in one: atomics, reading a clock, setting a
    // disposition and raising a signal.
    signals::set(number, &signals::action(on_signal as extern "C" fn(libc::c_int) as usize))
}

extern "C" fn on_signal(number: libc::c_int) {
    let now_ns = crate::clock::now_ns().max(1);
    match SINCE_NS.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => SIGNAL.store(number, Ordering::Relaxed),
        Err(since_ns) if now_ns.saturating_sub(since_ns) < SAME_REQUEST_NS => {}
        Err(_) if HOLDS.load(Ordering::Relaxed) > 0 => {}
        Err(_) => {
            // SAFETY: both calls are async-signal-safe. The signal is blocked until this
            // handler returns, and then meets the default disposition.
            unsafe {
                libc::signal(number, libc::SIG_DFL);
                libc::raise(number);
            }
        }
    }
}

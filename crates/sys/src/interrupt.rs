//! Ctrl-C as a flag: the first signal asks the program to finish, the second ends it.
//!
//! The handler only stores a number, so it is safe at any instant. Probes look at
//! [`requested`] between trials; what they own is removed by `Drop` on the way out.

use crate::error::{Result, check};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, Ordering};

/// The signal that asked for the end; 0 while none has.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// From now on SIGINT, SIGTERM and SIGHUP ask for the end instead of killing. The second
/// of a kind kills, as by default. One that is ignored already (`nohup`, a background job
/// of a script) stays ignored.
///
/// # Errors
/// None on Linux; the kernel's word otherwise.
pub fn install() -> Result<()> {
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP]
        .into_iter()
        .try_for_each(install_one)
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

/// Makes sure that writing to a closed pipe is an error and never kills, whatever the parent
/// process had set: what the program owns must still be removed.
pub fn reset_broken_pipe() {
    // SAFETY: sets a disposition that needs no handler; no memory of ours is involved. It cannot
    // fail for this signal.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

fn install_one(number: libc::c_int) -> Result<()> {
    const OPERATION: &str = "install a signal handler";
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks only; `before` is room for the answer.
    let answer = unsafe { libc::sigaction(number, std::ptr::null(), before.as_mut_ptr()) };
    check(OPERATION, answer)?;
    // SAFETY: the call succeeded and filled it.
    if unsafe { before.assume_init() }.sa_sigaction == libc::SIG_IGN {
        return Ok(());
    }
    // SAFETY: all-zero is a valid `sigaction`: empty mask, no flags, default handler.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
    action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
    // SAFETY: `action` is complete and its handler does nothing but store to an atomic, which
    // is permitted in a signal handler.
    let answer = unsafe { libc::sigaction(number, &raw const action, std::ptr::null_mut()) };
    check(OPERATION, answer).map(drop)
}

extern "C" fn on_signal(number: libc::c_int) {
    SIGNAL.store(number, Ordering::Relaxed);
}

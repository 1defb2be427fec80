//! Where a thread is while it works: the address of its next instruction, looked at by a timer.
//!
//! The timer runs on the thread's own processor time and interrupts only it, by SIGPROF; the
//! kernel looks at such a timer at its tick, so there are some hundred looks a second. The handler
//! stores one number, so it is safe at any instant.

use crate::error::{Result, check};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Looks that are kept; later ones are only lost.
const MOST: usize = 1024;

/// Between two samples, if the kernel's tick is as fast.
const INTERVAL_NS: libc::c_long = 1_000_000;

static SEEN: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Does `work` and returns the program counter of this thread, sampled meanwhile: an address for
/// each sample, at most 1,024. Empty where the kernel's tick did not come, or this architecture's
/// registers are not known.
///
/// # Errors
/// When the kernel refuses the timer.
pub fn sample(work: impl FnOnce()) -> Result<Vec<usize>> {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    COUNT.store(0, Ordering::Relaxed);
    let handled = Handled::install()?;
    let timer = Timer::start()?;
    work();
    drop(timer);
    drop(handled);
    let count = COUNT.load(Ordering::Relaxed).min(MOST);
    let seen = SEEN[..count].iter();
    Ok(seen.map(|address| address.load(Ordering::Relaxed)).collect())
}

/// SIGPROF in our hands; on drop it means again what it meant before.
struct Handled(libc::sigaction);

impl Handled {
    fn install() -> Result<Self> {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: all-zero is a valid `sigaction`: empty mask, no flags, default handler.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void) = on_tick;
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: `action` is complete, its handler only loads and stores numbers, and `before` is
        // room for the answer.
        let answer =
            unsafe { libc::sigaction(libc::SIGPROF, &raw const action, before.as_mut_ptr()) };
        check("watch where a thread is", answer)?;
        // SAFETY: the call succeeded and filled it.
        Ok(Self(unsafe { before.assume_init() }))
    }
}

impl Drop for Handled {
    fn drop(&mut self) {
        // SAFETY: restores what the kernel gave. The timer is deleted before, and a signal that it
        // had sent to this thread was handled before that call returned.
        unsafe { libc::sigaction(libc::SIGPROF, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// A timer on this thread's processor time; deleted on drop.
struct Timer(libc::timer_t);

impl Timer {
    fn start() -> Result<Self> {
        // SAFETY: all-zero is a valid `sigevent`, whose pointers are not followed.
        let mut event: libc::sigevent = unsafe { MaybeUninit::zeroed().assume_init() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGPROF;
        // SAFETY: takes nothing and cannot fail.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer = MaybeUninit::<libc::timer_t>::zeroed();
        // SAFETY: `event` is complete, and `timer` is room for the answer.
        let answer = unsafe {
            libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut event, timer.as_mut_ptr())
        };
        check("start a timer of this thread", answer)?;
        // SAFETY: the call succeeded and filled it.
        let timer = Self(unsafe { timer.assume_init() });
        let interval = libc::timespec { tv_sec: 0, tv_nsec: INTERVAL_NS };
        let times = libc::itimerspec { it_interval: interval, it_value: interval };
        // SAFETY: the timer is ours, `times` is complete, and no old times are asked for.
        let answer =
            unsafe { libc::timer_settime(timer.0, 0, &raw const times, std::ptr::null_mut()) };
        check("start a timer of this thread", answer)?;
        Ok(timer)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer is ours and is deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

extern "C" fn on_tick(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands a handler with SA_SIGINFO the interrupted thread's context, which
    // lives until it returns.
    let Some(address) = interrupted_at(unsafe { &*context.cast::<libc::ucontext_t>() }) else {
        return;
    };
    if let Some(slot) = SEEN.get(COUNT.load(Ordering::Relaxed)) {
        slot.store(address, Ordering::Relaxed);
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(target_arch = "x86_64")]
fn interrupted_at(context: &libc::ucontext_t) -> Option<usize> {
    Some(context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize)
}

#[cfg(target_arch = "aarch64")]
fn interrupted_at(context: &libc::ucontext_t) -> Option<usize> {
    Some(context.uc_mcontext.pc as usize)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn interrupted_at(_: &libc::ucontext_t) -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[inline(never)]
    fn spin(until: Instant) -> u64 {
        let mut mixed = 0_u64;
        while Instant::now() < until {
            // No call, also where nothing is optimised: it is looked for in this function.
            let mut rest = 100_000_u64;
            while rest > 0 {
                rest -= 1;
                mixed ^= rest;
            }
            mixed = std::hint::black_box(mixed);
        }
        mixed
    }

    /// A busy thread is seen in its code, and SIGPROF means afterwards what it meant before.
    #[test]
    fn a_thread_is_seen_where_it_works() {
        let meaning = || {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: asks only; `action` is room for the answer, and zero is valid.
            unsafe {
                libc::sigaction(libc::SIGPROF, std::ptr::null(), action.as_mut_ptr());
                action.assume_init().sa_sigaction
            }
        };
        let before = meaning();
        // A processor that is away for most of it is seen less often.
        let look = |_| {
            sample(|| {
                spin(Instant::now() + Duration::from_millis(400));
            })
            .unwrap()
        };
        let seen = (0..5).map(look).find(|seen| seen.len() > 5).unwrap();
        let start = spin as *const () as usize;
        let inside = seen.iter().filter(|at| at.abs_diff(start) < 4096).count();
        assert!(inside * 2 > seen.len(), "{inside} of {}", seen.len());
        assert_eq!(meaning(), before);
        assert!(sample(|| {}).unwrap().len() < seen.len());
    }
}

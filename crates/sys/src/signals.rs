//! Signals while a command runs below: those of the terminal are the command's own, those
//! that ask this process to end are passed on to it.
//!
//! The terminal sends SIGINT and SIGQUIT to the command as well, which is in the same
//! process group, so here they are ignored. What was ignored before stays ignored. The
//! handler reads one number and sends one signal, so it is safe at any instant.
//!
//! The two signals of resource limits (SIGXFSZ, SIGXCPU) are met by handlers, which the kernel
//! takes away at `execve`: no program that this one starts inherits a change.

use crate::error::{Result, check};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// The process that signals are passed on to; 0 if none.
static TARGET: AtomicI32 = AtomicI32::new(0);

/// The last signal that was passed on; 0 while none was.
static PASSED: AtomicI32 = AtomicI32::new(0);

/// One bit for each signal that is ignored only because of [`PassOn`].
static IGNORED_HERE: AtomicU64 = AtomicU64::new(0);

/// The terminal's: every process of the foreground group gets them.
const TERMINAL: [libc::c_int; 2] = [libc::SIGINT, libc::SIGQUIT];

/// Sent to one process by people, supervisors and timers: all that end a process unless it asks
/// for another action, and that no instruction of its own causes. The realtime signals too.
const PASSED_ON: [libc::c_int; 10] = [
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
];

/// Whether this process has used the processor time that RLIMIT_CPU gives it.
static IS_CPU_USED_UP: AtomicBool = AtomicBool::new(false);

/// While it lives, signals go to the command. At most one at a time makes sense.
#[must_use]
pub struct PassOn {
    before: Vec<(libc::c_int, libc::sigaction)>,
    cpu_limit: Option<Rlimit>,
}

impl std::fmt::Debug for PassOn {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let signals = self.before.iter().map(|(number, _)| number);
        out.debug_list().entries(signals).finish()
    }
}

impl PassOn {
    /// Starts to pass signals on to the process `pid`; what was set before returns on drop.
    ///
    /// # Errors
    /// None on Linux; the kernel's word otherwise.
    pub fn start(pid: u32) -> Result<Self> {
        TARGET.store(pid.cast_signed(), Ordering::SeqCst);
        PASSED.store(0, Ordering::SeqCst);
        let mut guard = Self { before: Vec::new(), cpu_limit: warn_before_cpu_limit() };
        for number in TERMINAL {
            if guard.replace(number, libc::SIG_IGN)? {
                IGNORED_HERE.fetch_or(bit(number), Ordering::SeqCst);
            }
        }
        for number in PASSED_ON.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()) {
            guard.replace(number, pass_on as extern "C" fn(libc::c_int) as usize)?;
        }
        // The command has the same limit, and a signal of its own.
        guard.replace(libc::SIGXCPU, note_cpu_limit as extern "C" fn(libc::c_int) as usize)?;
        Ok(guard)
    }

    /// Sets a disposition unless the signal is ignored; whether it was set.
    fn replace(&mut self, number: libc::c_int, handler: libc::sighandler_t) -> Result<bool> {
        let before = disposition(number)?;
        if before.sa_sigaction == libc::SIG_IGN {
            return Ok(false);
        }
        set(number, &action(handler))?;
        self.before.push((number, before));
        Ok(true)
    }
}

impl Drop for PassOn {
    fn drop(&mut self) {
        for (number, before) in &self.before {
            // What could be set can be set back.
            let _ = set(*number, before);
        }
        IGNORED_HERE.store(0, Ordering::SeqCst);
        TARGET.store(0, Ordering::SeqCst);
        if let Some(limit) = self.cpu_limit {
            let _ = setrlimit(Resource::Cpu, limit);
        }
    }
}

/// From now on a file that reaches RLIMIT_FSIZE is an error of the write (`EFBIG`) and does not
/// kill: what this process owns must still be put back. A signal that is ignored stays ignored.
///
/// # Errors
/// None on Linux; the kernel's word otherwise.
pub fn survive_file_size_limit() -> Result<()> {
    match disposition(libc::SIGXFSZ)?.sa_sigaction {
        libc::SIG_DFL => {
            let nothing = do_nothing as extern "C" fn(libc::c_int) as usize;
            set(libc::SIGXFSZ, &action(nothing))
        }
        _ => Ok(()),
    }
}

/// Whether this process has used up its processor time (RLIMIT_CPU) while a [`PassOn`] lived. It
/// is killed soon unless it uses no more.
#[must_use]
pub fn is_cpu_used_up() -> bool {
    IS_CPU_USED_UP.load(Ordering::SeqCst)
}

/// Where RLIMIT_CPU would kill without a warning: makes the warning come a second before. Gives
/// the limit from before, if it was changed.
fn warn_before_cpu_limit() -> Option<Rlimit> {
    let limit = getrlimit(Resource::Cpu);
    let most_s = limit.maximum.filter(|most_s| limit.current == Some(*most_s) && *most_s >= 2)?;
    let earlier = Rlimit { current: Some(most_s - 1), ..limit };
    setrlimit(Resource::Cpu, earlier).ok().map(|()| limit)
}

/// The last signal that was passed on since [`PassOn::start`].
#[must_use]
pub fn passed_on() -> Option<i32> {
    Some(PASSED.load(Ordering::SeqCst)).filter(|number| *number != 0)
}

/// Passes nothing on to `pid` any more: its number is about to become free.
pub(crate) fn forget(pid: u32) {
    // If the number belongs to another process by now, that is as good as success.
    let _ = TARGET.compare_exchange(pid.cast_signed(), 0, Ordering::SeqCst, Ordering::SeqCst);
}

/// Whether the signal is ignored only because this process asked for it here; safe between
/// `fork` and `exec`.
pub(crate) fn is_ignored_here(number: libc::c_int) -> bool {
    IGNORED_HERE.load(Ordering::SeqCst) & bit(number) != 0
}

fn bit(number: libc::c_int) -> u64 {
    1 << (number - 1)
}

/// What happens on a signal now.
pub(crate) fn disposition(number: libc::c_int) -> Result<libc::sigaction> {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks only; `now` is room for the answer.
    let answer = unsafe { libc::sigaction(number, std::ptr::null(), now.as_mut_ptr()) };
    check("ask for a signal's handler", answer)?;
    // SAFETY: the call succeeded and filled it.
    Ok(unsafe { now.assume_init() })
}

/// An action that runs `handler`, or one of the two constants for none.
pub(crate) fn action(handler: libc::sighandler_t) -> libc::sigaction {
    // SAFETY: all-zero is a valid `sigaction`: empty mask, no flags, default handler.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_RESTART;
    action
}

/// Sets what happens on a signal.
pub(crate) fn set(number: libc::c_int, action: &libc::sigaction) -> Result<()> {
    // SAFETY: `action` is complete: one that the kernel gave, or one whose handler does only
    // what is permitted in a signal handler.
    let answer = unsafe { libc::sigaction(number, action, std::ptr::null_mut()) };
    check("install a signal handler", answer).map(drop)
}

extern "C" fn do_nothing(_: libc::c_int) {}

extern "C" fn note_cpu_limit(_: libc::c_int) {
    IS_CPU_USED_UP.store(true, Ordering::SeqCst);
}

extern "C" fn pass_on(number: libc::c_int) {
    let target = TARGET.load(Ordering::SeqCst);
    if target <= 0 {
        return;
    }
    PASSED.store(number, Ordering::SeqCst);
    // SAFETY: both are async-signal-safe, and `errno` is left as the interrupted code had it.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        libc::kill(target, number);
        *errno = kept;
    }
}

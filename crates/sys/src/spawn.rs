//! Starting a command that waits at a gate: it exists, can be put into a group and watched,
//! and runs nothing of its own before [`Gated::open_gate`].
//!
//! The command gets what this process was given: terminal, environment, directory, process
//! group, ignored signals and the caller's signal mask. Handlers and what was ignored only
//! for this program's sake return to the default. Finding and running it is `execvp`'s
//! business, so it is found as env(1) would.

use crate::error::{Error, ErrorKind, Result, check, count};
use crate::{pipe, signals, wait};
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;

/// A command that was started and not yet let go, or runs.
#[derive(Debug)]
pub struct Gated {
    pid: u32,
    /// A byte opens the gate; the end of the pipe means that this process is gone.
    gate: Option<File>,
    /// The error number, if the command cannot be executed; closed when it is.
    report: File,
}

/// What a command that cannot be executed exits with; only a tracer sees it.
const EXIT_NOT_STARTED: libc::c_int = 127;

/// Signals are numbered from 1 to this.
const LAST_SIGNAL: libc::c_int = 64;

impl Gated {
    /// Starts the command `argv`, program first, up to its gate.
    ///
    /// # Errors
    /// `Invalid` for no word or a word with a zero byte; `Other` where no process can be
    /// made. That the program is not there is known only after the gate.
    pub fn spawn(argv: &[OsString]) -> Result<Self> {
        const OPERATION: &str = "start the command";
        let words = argv
            .iter()
            .map(|word| CString::new(word.as_bytes()))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|_| Error::invalid(OPERATION, "a word holds a zero byte"))?;
        if words.is_empty() {
            return Err(Error::invalid(OPERATION, "it has no words"));
        }
        let mut pointers: Vec<*const libc::c_char> =
            words.iter().map(|word| word.as_ptr()).collect();
        pointers.push(std::ptr::null());
        let (gate_reader, gate) = pipe::make()?;
        let (report, report_writer) = pipe::make()?;
        // Nothing may be delivered to the child before its handlers are gone: it would be
        // lost in a copy of this program's flags.
        let mask = block_all_signals()?;
        // SAFETY: the child calls only async-signal-safe functions on memory that was
        // prepared above, and ends in `exec` or `_exit`.
        let answer = unsafe { libc::fork() };
        if answer == 0 {
            run_child(&Child {
                words: &pointers,
                mask: &mask,
                gate: gate_reader.as_raw_fd(),
                gate_writer: gate.as_raw_fd(),
                report: report_writer.as_raw_fd(),
            });
        }
        let forked = check(OPERATION, answer);
        restore_signals(&mask);
        Ok(Self { pid: forked?.unsigned_abs(), gate: Some(gate.into()), report: report.into() })
    }

    /// The number of the command's process; it stays the same through the gate.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the command run, and returns when it does.
    ///
    /// # Errors
    /// `NotFound` where there is no such program; otherwise what the kernel said of it:
    /// `Denied`, `Other` (ENOEXEC), and so on. The child is gone then. A second opening
    /// changes nothing.
    pub fn open_gate(&mut self) -> Result<()> {
        let Some(mut gate) = self.gate.take() else {
            return Ok(());
        };
        // A child that was killed at the gate is found by whoever waits for it.
        let _ = gate.write_all(b"g");
        drop(gate);
        let mut number = [0u8; 4];
        let got = count("start the command", || {
            // SAFETY: the descriptor is open and `number` is room for what is asked for.
            unsafe { libc::read(self.report.as_raw_fd(), number.as_mut_ptr().cast(), 4) }
        })?;
        if got < number.len() {
            return Ok(());
        }
        let _ = wait::wait(self.pid);
        let source = io::Error::from_raw_os_error(i32::from_ne_bytes(number));
        Err(Error::new("execute the command", source))
    }
}

impl Drop for Gated {
    /// A command that never passed its gate ends.
    fn drop(&mut self) {
        if self.gate.take().is_some() {
            // Not left to the end of the pipe: another child at its gate may hold a copy.
            // SAFETY: takes numbers; the child was not waited for, so the number is its own.
            unsafe { libc::kill(self.pid.cast_signed(), libc::SIGKILL) };
            let _ = wait::wait(self.pid);
        }
    }
}

/// Whether the error of [`Gated::open_gate`] means that there is no such program: 127 by
/// env(1), all others are 126.
#[must_use]
pub fn is_not_found(error: &Error) -> bool {
    error.kind == ErrorKind::NotFound && error.number() == Some(libc::ENOENT)
}

/// All that the child needs, prepared before the fork.
struct Child<'a> {
    words: &'a [*const libc::c_char],
    mask: &'a libc::sigset_t,
    gate: libc::c_int,
    gate_writer: libc::c_int,
    report: libc::c_int,
}

/// Waits at the gate and becomes the command. Calls only what is async-signal-safe.
fn run_child(child: &Child<'_>) -> ! {
    reset_handlers();
    // SAFETY: descriptors and memory are the child's own copies; nothing is allocated, no
    // lock is taken. `words` ends with a null pointer and its strings are alive. With the
    // mask back, a signal that came since the fork ends the child as it would the command.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, child.mask, std::ptr::null_mut());
        libc::close(child.gate_writer);
        let mut byte = 0u8;
        let got = loop {
            let got = libc::read(child.gate, (&raw mut byte).cast(), 1);
            if got >= 0 || *libc::__errno_location() != libc::EINTR {
                break got;
            }
        };
        if got != 1 {
            libc::_exit(EXIT_NOT_STARTED);
        }
        libc::execvp(child.words[0], child.words.as_ptr());
        let number = *libc::__errno_location();
        libc::write(child.report, (&raw const number).cast(), 4);
        libc::_exit(EXIT_NOT_STARTED)
    }
}

/// Every handler, and what is ignored only for this program's sake, back to the default.
/// The standard library ignores SIGPIPE before `main`, so what it was cannot be known; the
/// default is what a shell gives.
fn reset_handlers() {
    for number in 1..=LAST_SIGNAL {
        let mut now = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: asks only; `now` is room for the answer. It fails for the two numbers that
        // the C library keeps for itself.
        let answer = unsafe { libc::sigaction(number, std::ptr::null(), now.as_mut_ptr()) };
        if answer != 0 {
            continue;
        }
        // SAFETY: the call succeeded and filled it.
        let handler = unsafe { now.assume_init() }.sa_sigaction;
        let ours = number == libc::SIGPIPE || signals::is_ignored_here(number);
        if handler == libc::SIG_DFL || (handler == libc::SIG_IGN && !ours) {
            continue;
        }
        // SAFETY: a default disposition needs no handler.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}

/// Blocks every signal of the calling thread; gives what was blocked before.
pub(crate) fn block_all_signals() -> Result<libc::sigset_t> {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both are room for a set, which the first call fills completely.
    let answer = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr())
    };
    match answer {
        // SAFETY: the call succeeded and filled it.
        0 => Ok(unsafe { before.assume_init() }),
        number => Err(Error::new("block signals", io::Error::from_raw_os_error(number))),
    }
}

/// Blocks what was blocked before [`block_all_signals`].
pub(crate) fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: `mask` is a set that the kernel gave. It cannot fail for a valid set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

//! What lets a sampler keep its beat on a machine that is out of breath: a realtime
//! priority for one thread, memory that stays, and that thread's own CPU clock.
//!
//! Nothing here is inherited by a child. Both are requests that many users are refused; the
//! caller says so and goes on.

use crate::error::{Error, Result, check};
use crate::process::{Capability, has_capability};
use rustix::process::{Resource, getrlimit};

/// Low among the realtime priorities, below the kernel's own threads (50 and above), above
/// everything that shares the processor fairly.
pub const SAMPLER_PRIORITY: u8 = 10;

/// Gives the calling thread the realtime priority `priority` (1 to 99) first come first
/// served; its children do not get it.
///
/// # Errors
/// `Denied` without CAP_SYS_NICE or a limit that permits it; `Invalid` for a priority that
/// does not exist, or where RLIMIT_RTTIME would kill the process for it.
pub fn realtime(priority: u8) -> Result<()> {
    const OPERATION: &str = "take a realtime priority";
    if !(1..=99).contains(&priority) {
        return Err(Error::invalid(OPERATION, "priorities are 1 to 99"));
    }
    if has_realtime_limit() {
        let why = "the limit on realtime processor time (RLIMIT_RTTIME) could kill it";
        return Err(Error::invalid(OPERATION, why));
    }
    let parameters = libc::sched_param { sched_priority: libc::c_int::from(priority) };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread; `parameters` is live and complete.
    let answer = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    check(OPERATION, answer).map(drop)
}

/// Whether a thread with a realtime priority is killed once it has run for a time without a sleep.
fn has_realtime_limit() -> bool {
    getrlimit(Resource::Rttime).current.is_some()
}

/// Gives the calling thread back its fair share only.
///
/// # Errors
/// None on Linux.
pub fn ordinary() -> Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // The kernel refuses to drop "reset on fork" without CAP_SYS_NICE, so it stays.
    let policy = libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread; `parameters` is live and complete.
    let answer = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    check("give a realtime priority back", answer).map(drop)
}

/// Keeps every page of this process in memory once it was touched. Memory that is mapped
/// later is included only where no limit can make that mapping fail.
///
/// # Errors
/// `Denied` or `NoMemory` where the limit on locked memory is too small.
pub fn lock_memory() -> Result<()> {
    let mut flags = libc::MCL_CURRENT | libc::MCL_ONFAULT as libc::c_int;
    if has_capability(Capability::IpcLock) {
        flags |= libc::MCL_FUTURE;
    }
    // SAFETY: takes a number; pages may move in, none is changed or taken away.
    check("lock memory", unsafe { libc::mlockall(flags) }).map(drop)
}

/// Brings in all pages that this process has, also of its program, and keeps them in memory; pages
/// of later memory stay from when they are touched. So nothing that was needed once is read from a
/// disk again. Not all later memory at once: that would be the whole stack of each thread.
///
/// # Errors
/// `Denied` without `CAP_IPC_LOCK`: with a limit, a later mapping could fail.
pub fn hold_memory() -> Result<()> {
    const OPERATION: &str = "lock memory";
    if !has_capability(Capability::IpcLock) {
        let refused = std::io::Error::from_raw_os_error(libc::EPERM);
        return Err(Error::new(OPERATION, refused));
    }
    for flags in [libc::MCL_CURRENT, libc::MCL_FUTURE | libc::MCL_ONFAULT as libc::c_int] {
        // SAFETY: takes a number; pages may move in, none is changed or taken away.
        check(OPERATION, unsafe { libc::mlockall(flags) })?;
    }
    Ok(())
}

/// Takes [`lock_memory`] or [`hold_memory`] back.
///
/// # Errors
/// None on Linux.
pub fn unlock_memory() -> Result<()> {
    // SAFETY: takes nothing; unlocked pages keep their contents.
    check("unlock memory", unsafe { libc::munlockall() }).map(drop)
}

/// CPU time that the calling thread has used; exact, unlike that of [`crate::usage`], which
/// may be counted in ticks. 0 where a filter forbids the clock.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live `timespec` that the call fills; untouched (zero) if it fails.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_realtime_priority_is_given_or_refused_and_not_inherited() {
        // In a thread of its own, which takes the priority with it.
        let asked = std::thread::spawn(|| {
            if let Err(error) = realtime(SAMPLER_PRIORITY) {
                assert_eq!(error.kind, ErrorKind::Denied);
                return false;
            }
            // SAFETY: 0 is the calling thread.
            let policy = unsafe { libc::sched_getscheduler(0) };
            assert_eq!(policy, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK);
            // A child thread starts with a fair share.
            let child = std::thread::spawn(|| {
                // SAFETY: 0 is the calling thread.
                unsafe { libc::sched_getscheduler(0) }
            });
            assert_eq!(child.join().unwrap(), libc::SCHED_OTHER);
            ordinary().unwrap();
            true
        });
        if !asked.join().unwrap() {
            testkit::skip("the right to realtime priorities");
        }
    }

    /// The bytes that are locked of this process, by the kernel's word.
    fn locked_bytes() -> u64 {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
    }

    #[test]
    fn held_memory_is_locked_and_later_memory_from_its_first_touch() {
        use crate::memory::{Mapping, Pages};
        const BYTES: usize = 8 << 20;
        if let Err(error) = hold_memory() {
            assert_eq!(error.kind, ErrorKind::Denied);
            return testkit::skip("CAP_IPC_LOCK");
        }
        let before = locked_bytes();
        assert!(before > 1 << 20, "{before}");
        let mut later = Mapping::anonymous(BYTES, Pages::Base).unwrap();
        assert!(locked_bytes() >= before + BYTES as u64, "it stays once it is there");
        let start = later.address();
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let own = smaps.split_once(&format!("\n{start:x}-")).unwrap().1;
        let rss = own.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
        assert_eq!(rss.trim(), "0 kB", "it is not there before it is touched");
        later.as_mut_slice()[0] = 1;
        drop(later);
        unlock_memory().unwrap();
        assert_eq!(locked_bytes(), 0);
    }

    #[test]
    fn absurd_priorities_are_refused() {
        assert_eq!(realtime(0).unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(realtime(100).unwrap_err().kind, ErrorKind::Invalid);
    }

    #[test]
    fn work_moves_the_clock_of_the_thread() {
        let before = thread_cpu_ns();
        let mut sum = 0u64;
        // Ends after this much CPU time, however slowly that comes.
        while thread_cpu_ns() - before < 5_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
    }
}

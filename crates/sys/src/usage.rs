//! What a thread or the process has used so far: faults, context switches, CPU time.
//!
//! Owns `getrusage`, and reads the structure for [`crate::wait`] too. The figures are running
//! totals; a caller brackets a trial with two readings and subtracts. CPU times have the kernel's
//! own precision, not the clock's.

use crate::error::{Result, check};
use model::recording::Usage;
use std::mem::MaybeUninit;

/// Linux counts block I/O of `rusage` in these units, whatever the device.
const BLOCK_BYTES: u64 = 512;

/// Running totals of the calling thread; the largest resident size is that of the process.
///
/// # Errors
/// Only where a filter forbids the call.
pub fn thread() -> Result<Usage> {
    read(libc::RUSAGE_THREAD)
}

/// Running totals of the whole process, ended threads included.
///
/// # Errors
/// Only where a filter forbids the call.
pub fn process() -> Result<Usage> {
    read(libc::RUSAGE_SELF)
}

/// Running totals of all children that have ended and were waited for; the largest resident size is
/// that of the largest of them.
///
/// # Errors
/// Only where a filter forbids the call.
pub fn children() -> Result<Usage> {
    read(libc::RUSAGE_CHILDREN)
}

fn read(whose: libc::c_int) -> Result<Usage> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is room for the structure that the call fills.
    check("read resource usage", unsafe { libc::getrusage(whose, usage.as_mut_ptr()) })?;
    // SAFETY: the call succeeded and filled it; all-zero would be valid as well.
    Ok(of(&unsafe { usage.assume_init() }))
}

/// The figures of the kernel's structure.
pub(crate) fn of(usage: &libc::rusage) -> Usage {
    let nanoseconds = |time: libc::timeval| {
        time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1000
    };
    Usage {
        user_ns: nanoseconds(usage.ru_utime),
        system_ns: nanoseconds(usage.ru_stime),
        // Linux counts in units of 1,024 bytes.
        max_rss_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
        minor_faults: usage.ru_minflt.unsigned_abs(),
        major_faults: usage.ru_majflt.unsigned_abs(),
        read_bytes: usage.ru_inblock.unsigned_abs() * BLOCK_BYTES,
        write_bytes: usage.ru_oublock.unsigned_abs() * BLOCK_BYTES,
        voluntary_switches: usage.ru_nvcsw.unsigned_abs(),
        involuntary_switches: usage.ru_nivcsw.unsigned_abs(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Mapping, Pages};

    #[test]
    fn touching_new_pages_counts_as_faults() {
        let mut memory = Mapping::anonymous(1 << 20, Pages::Base).unwrap();
        let before = thread().unwrap();
        let page_bytes = crate::process::page_bytes();
        for page in memory.as_mut_slice().chunks_mut(page_bytes) {
            page[0] = 1;
        }
        let after = thread().unwrap();
        assert!(after.minor_faults - before.minor_faults >= (1 << 20) / page_bytes as u64);
    }

    #[test]
    fn work_costs_cpu_time() {
        let before = process().unwrap();
        let started = crate::clock::now_ns();
        let mut sum = 0u64;
        while crate::clock::now_ns() - started < 30_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        let after = process().unwrap();
        assert!(after.user_ns + after.system_ns > before.user_ns + before.system_ns);
        assert!(after.max_rss_bytes > 100_000);
    }
}

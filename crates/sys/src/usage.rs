//! What a thread or the process has used so far: faults, context switches, CPU time.
//!
//! Owns `getrusage`. The figures are running totals; a caller brackets a trial with two
//! readings and subtracts. CPU times have the kernel's own precision, not the clock's.

use crate::error::{Result, check};
use std::mem::MaybeUninit;

/// Running totals of the calling thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
    /// Times that the thread gave up the CPU, to wait.
    pub voluntary_switches: u64,
    /// Times that the scheduler took the CPU away.
    pub involuntary_switches: u64,
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
}

/// Running totals of the whole process, ended threads included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// The most memory that was ever resident, in bytes.
    pub max_resident_bytes: u64,
}

/// The calling thread's totals.
///
/// # Errors
/// Only where a filter forbids the call.
pub fn thread() -> Result<ThreadUsage> {
    let usage = read(libc::RUSAGE_THREAD)?;
    Ok(ThreadUsage {
        minor_faults: usage.ru_minflt.unsigned_abs(),
        major_faults: usage.ru_majflt.unsigned_abs(),
        voluntary_switches: usage.ru_nvcsw.unsigned_abs(),
        involuntary_switches: usage.ru_nivcsw.unsigned_abs(),
        user_ns: nanoseconds(usage.ru_utime),
        system_ns: nanoseconds(usage.ru_stime),
    })
}

/// The process's totals.
///
/// # Errors
/// Only where a filter forbids the call.
pub fn process() -> Result<ProcessUsage> {
    let usage = read(libc::RUSAGE_SELF)?;
    Ok(ProcessUsage {
        user_ns: nanoseconds(usage.ru_utime),
        system_ns: nanoseconds(usage.ru_stime),
        // Linux counts in units of 1,024 bytes.
        max_resident_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
    })
}

fn read(whose: libc::c_int) -> Result<libc::rusage> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is room for the structure that the call fills.
    check("read resource usage", unsafe { libc::getrusage(whose, usage.as_mut_ptr()) })?;
    // SAFETY: the call succeeded and filled it; all-zero would be valid as well.
    Ok(unsafe { usage.assume_init() })
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Mapping, Pages};

    #[test]
    fn touching_new_pages_counts_as_faults() {
        let mut memory = Mapping::anonymous(1 << 20, Pages::Base).unwrap();
        let before = thread().unwrap();
        for page in memory.as_mut_slice().chunks_mut(4096) {
            page[0] = 1;
        }
        let after = thread().unwrap();
        assert!(after.minor_faults - before.minor_faults >= 256);
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
        assert!(after.max_resident_bytes > 100_000);
    }
}

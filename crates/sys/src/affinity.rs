//! Which CPUs the calling thread may run on, and moving it to one of them.
//!
//! Owns `sched_getaffinity` and `sched_setaffinity` with a mask that grows, so machines with
//! more than 1,024 CPUs work. It changes the calling thread only, never another one.

use crate::error::{Error, Result, check};

/// CPUs in the first mask tried; the kernel refuses a mask shorter than its own.
const FIRST_MASK_CPUS: usize = 1024;
/// The largest mask tried; kernels are built for at most 8,192 CPUs.
const MAX_MASK_CPUS: usize = 65_536;
const WORD_BITS: usize = u64::BITS as usize;

/// The CPU numbers that the calling thread may run on, ascending.
///
/// # Errors
/// Only where the kernel has no such call or a mask larger than 65,536 CPUs.
pub fn allowed() -> Result<Vec<usize>> {
    let mut cpus = FIRST_MASK_CPUS;
    loop {
        let mut mask = vec![0u64; cpus / WORD_BITS];
        // SAFETY: `mask` is a live, writable buffer of exactly the length given; the kernel
        // writes no more than that, and any bit pattern is a valid `u64`.
        let answer = unsafe {
            libc::sched_getaffinity(0, size_of_val(mask.as_slice()), mask.as_mut_ptr().cast())
        };
        match check("read the CPU affinity", answer) {
            Ok(_) => return Ok(bits(&mask)),
            Err(error) if error.number() == Some(libc::EINVAL) && cpus < MAX_MASK_CPUS => cpus *= 2,
            Err(error) => return Err(error),
        }
    }
}

/// Moves the calling thread to `cpu` and keeps it there.
///
/// # Errors
/// `Invalid` if the CPU does not exist or the thread's cpuset excludes it.
pub fn pin(cpu: usize) -> Result<()> {
    set(&[cpu])
}

/// Lets the calling thread run on exactly these CPUs (those of them that are usable).
///
/// # Errors
/// `Invalid` if none of them is usable or a number is beyond any kernel's limit.
pub fn set(cpus: &[usize]) -> Result<()> {
    const OPERATION: &str = "set the CPU affinity";
    let highest = cpus.iter().copied().max().unwrap_or(0);
    if highest >= MAX_MASK_CPUS {
        return Err(Error::invalid(OPERATION, "no kernel has that many CPUs"));
    }
    let mut mask = vec![0u64; highest.max(FIRST_MASK_CPUS - 1) / WORD_BITS + 1];
    for cpu in cpus {
        mask[cpu / WORD_BITS] |= 1 << (cpu % WORD_BITS);
    }
    // SAFETY: `mask` is a live buffer of exactly the length given; the kernel only reads it.
    let answer =
        unsafe { libc::sched_setaffinity(0, size_of_val(mask.as_slice()), mask.as_ptr().cast()) };
    check(OPERATION, answer).map(drop)
}

/// The CPU that the calling thread is on at this instant; stale at once unless pinned.
#[must_use]
pub fn running_on() -> Option<usize> {
    // SAFETY: takes no arguments and touches no memory of ours.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

fn bits(mask: &[u64]) -> Vec<usize> {
    (0..mask.len() * WORD_BITS)
        .filter(|cpu| mask[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1 == 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_pinned_thread_runs_where_it_was_put() {
        std::thread::spawn(|| {
            let all = allowed().unwrap();
            for &cpu in &all {
                pin(cpu).unwrap();
                assert_eq!(running_on(), Some(cpu));
                assert_eq!(allowed().unwrap(), [cpu]);
            }
            set(&all).unwrap();
            assert_eq!(allowed().unwrap(), all);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn absent_and_absurd_cpus_are_errors() {
        std::thread::spawn(|| {
            let before = allowed().unwrap();
            assert_eq!(pin(60_000).unwrap_err().kind, ErrorKind::Invalid);
            assert_eq!(pin(usize::MAX).unwrap_err().kind, ErrorKind::Invalid);
            assert_eq!(set(&[]).unwrap_err().kind, ErrorKind::Invalid);
            assert_eq!(allowed().unwrap(), before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn bits_become_numbers() {
        assert_eq!(bits(&[0b101, 1 << 63]), [0, 2, 127]);
        assert!(bits(&[]).is_empty());
    }
}

//! The one clock that measurements use: CLOCK_MONOTONIC in nanoseconds, which stands still while
//! the machine is suspended; and the one by which the kernel says when a process started.
//!
//! Read through the vDSO where the kernel offers it, so a reading costs tens of
//! nanoseconds. It says nothing about the time of day.

/// Nanoseconds since an arbitrary fixed point (boot, on Linux); never goes back.
#[must_use]
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since the machine started, suspension included: what the kernel counts the start of
/// a process in.
#[must_use]
pub fn since_boot_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live `timespec` that the call fills. It cannot fail: both clocks exist
    // on every Linux and the pointer is valid, so the answer needs no check.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    // Both parts are non-negative for these clocks; 584 years fit.
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// How long the machine was suspended since it was started: the clock of [`now_ns`] stands still
/// then.
#[must_use]
pub fn suspended_ns() -> u64 {
    let steady_ns = now_ns();
    since_boot_ns().saturating_sub(steady_ns)
}

/// The kernel's tick (1 s / `CONFIG_HZ`): what its coarse clocks and some of its accounts count
/// in. Told by the coarse clock's resolution.
#[must_use]
pub fn tick() -> std::time::Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as above; a clock that is not there leaves the zeros.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    std::time::Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{now_ns, tick};

    #[test]
    fn a_tick_is_one_of_those_that_kernels_are_built_with() {
        let per_s = (1.0 / tick().as_secs_f64()).round();
        assert!((100.0..=1200.0).contains(&per_s), "{per_s}");
    }

    #[test]
    fn time_passes_and_never_goes_back() {
        let first = now_ns();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let mut last = now_ns();
        assert!(last - first >= 2_000_000);
        for _ in 0..10_000 {
            let next = now_ns();
            assert!(next >= last);
            last = next;
        }
    }
}

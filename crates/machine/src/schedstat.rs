//! How long a thread ran and how long it was ready but had to wait for a CPU.
//!
//! In nanoseconds and exact, so it finds disturbances that no tick counter sees. What the
//! hypervisor takes away does not show here; see `stat`.

use crate::root::{ProcFile, Root};
use serde::Serialize;
use sys::Result;

/// Numbers on a CPU's line of /proc/schedstat before its totals; see the kernel's
/// `Documentation/scheduler/sched-stats.rst`.
const CPU_NUMBERS_BEFORE: usize = 6;

/// The totals of a thread, or of all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunDelay {
    /// Time on a CPU.
    pub on_cpu_ns: u64,
    /// Time ready to run, waiting for a CPU.
    pub waited_ns: u64,
    /// How many times it got a CPU.
    pub slices: u64,
}

/// The file of the thread that opened it, whichever thread reads.
#[derive(Debug)]
pub struct RunDelayReader(ProcFile);

impl RunDelayReader {
    /// Opens /proc/thread-self/schedstat: the calling thread's totals.
    ///
    /// # Errors
    /// `NotFound` where /proc is missing or the kernel is built without it.
    pub fn open(root: &Root) -> Result<Self> {
        ProcFile::open(root, "/proc/thread-self/schedstat").map(Self)
    }

    /// The totals now; `None` once the thread has ended.
    pub fn read(&mut self) -> Option<RunDelay> {
        parse(self.0.text()?)
    }
}

/// "12345 678 9"
#[must_use]
pub fn parse(text: &str) -> Option<RunDelay> {
    let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
    let mut next = || numbers.next().flatten();
    Some(RunDelay { on_cpu_ns: next()?, waited_ns: next()?, slices: next()? })
}

/// The totals of all CPUs from the text of /proc/schedstat, whose lines of CPUs end with the
/// same three numbers (versions 15 to 17); `None` where it has no such line.
#[must_use]
pub fn parse_machine(text: &str) -> Option<RunDelay> {
    let of_cpus = text.lines().filter_map(|line| {
        let (_, numbers) = line.strip_prefix("cpu")?.split_once(' ')?;
        let (first, _) = numbers.match_indices(' ').nth(CPU_NUMBERS_BEFORE - 1)?;
        parse(&numbers[first..])
    });
    of_cpus.reduce(|sum, cpu| RunDelay {
        on_cpu_ns: sum.on_cpu_ns.saturating_add(cpu.on_cpu_ns),
        waited_ns: sum.waited_ns.saturating_add(cpu.waited_ns),
        slices: sum.slices.saturating_add(cpu.slices),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn three_numbers_or_nothing() {
        let expected = RunDelay { on_cpu_ns: 1, waited_ns: 2, slices: 3 };
        assert_eq!(parse("1 2 3\n"), Some(expected));
        assert_eq!(parse("1 2"), None);
        assert_eq!(parse("1 x 3"), None);
    }

    #[test]
    fn the_machine_is_the_sum_of_its_cpus() {
        let text = "version 17\ntimestamp 4294937355\n\
                    cpu0 0 0 9 8 7 6 1000 200 3\ndomain0 MC 3 1 2 3 4 5 6 7 8 9\n\
                    cpu1 0 0 9 8 7 6 30 4 5\n";
        let expected = RunDelay { on_cpu_ns: 1030, waited_ns: 204, slices: 8 };
        assert_eq!(parse_machine(text), Some(expected));
        assert_eq!(parse_machine("version 17\ntimestamp 1\n"), None);
        assert_eq!(parse_machine("cpu0 1 2 3 4 5 6 7 8\n"), None);
    }

    #[test]
    fn a_thread_sees_its_own_work() {
        let Ok(mut reader) = RunDelayReader::open(&Root::system()) else {
            println!("skipped: needs /proc/thread-self/schedstat");
            return;
        };
        let before = reader.read().unwrap();
        let started = std::time::Instant::now();
        while started.elapsed().as_millis() < 30 {
            std::hint::spin_loop();
        }
        // The kernel adds a running thread's time when it is next switched or ticked.
        std::thread::yield_now();
        let after = reader.read().unwrap();
        assert!(after.on_cpu_ns + after.waited_ns > before.on_cpu_ns + before.waited_ns);
    }

    proptest! {
        #[test]
        fn any_text_parses(text in "\\PC{0,80}") {
            let _ = (parse(&text), parse_machine(&format!("cpu0 {text}")));
        }
    }
}

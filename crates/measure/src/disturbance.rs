//! The bracket around a trial: what disturbed it, by the kernel's own counters.
//!
//! Before and after each trial the thread reads its run-queue delay
//! (`/proc/thread-self/schedstat`), its page faults (`getrusage`) and the steal of its processor
//! (`/proc/stat`). A trial during which it waited, faulted or was stolen from is no measurement of
//! memory, so it is thrown away and counted. What a counter cannot show (a neighbour in the shared
//! cache or on the memory bus) is not caught here; the spread of the kept trials shows it.

use machine::Root;
use machine::schedstat::RunDelayReader;
use machine::stat::StealReader;
use serde::{Deserialize, Serialize};

/// A trial is disturbed when more than this share of it went elsewhere. Picked:
/// the differences that the tool is asked to see start at 5 %.
const SHARE: f64 = 0.02;

/// What a minor fault is taken to cost, in nanoseconds; the cheapest seen was 500.
const FAULT_NS: f64 = 1_000.0;

/// One tick of `/proc/stat`, in nanoseconds: USER_HZ is 100 on every Linux.
const TICK_NS: f64 = 10_000_000.0;

/// Reads the counters around trials; one for each measuring thread.
#[derive(Debug)]
pub struct Bracket {
    run_delay: Option<RunDelayReader>,
    steal: Option<StealReader>,
    cpu: Option<usize>,
}

/// The counters at one instant; a part that cannot be read is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadCounters {
    waited_ns: Option<u64>,
    minor_faults: Option<u64>,
    major_faults: Option<u64>,
    steal_ticks: Option<u64>,
}

/// What happened to the thread during one trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Time it was runnable but not running, nanoseconds.
    pub waited_ns: Option<u64>,
    /// Page faults without I/O.
    pub minor_faults: Option<u64>,
    /// Page faults with I/O.
    pub major_faults: Option<u64>,
    /// Time the host took the processor away, nanoseconds, in steps of 10 ms.
    pub stolen_ns: Option<u64>,
}

/// Why a trial was thrown away; the worst cause that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiscardCause {
    /// Other work had the processor.
    Waited,
    /// The host took the processor.
    Stolen,
    /// It faulted on pages that should have been there.
    Faulted,
    /// The cache that it measures was held by others.
    CrowdedOut,
}

impl Bracket {
    /// A bracket for the calling thread, which should be pinned to `cpu`.
    ///
    /// Counters that this kernel or container hides stay `None`.
    pub fn for_this_thread(root: &Root, cpu: Option<usize>) -> Self {
        Self {
            run_delay: RunDelayReader::open(root).ok(),
            steal: StealReader::open(root).ok(),
            cpu,
        }
    }

    /// Which of the three counters can be read here, for the report.
    pub fn blind_to(&self) -> Vec<&'static str> {
        let mut blind = Vec::new();
        if self.run_delay.is_none() {
            blind.push("run-queue delay");
        }
        if self.steal.is_none() {
            blind.push("steal");
        }
        blind
    }

    /// Reads the counters.
    pub fn read(&mut self) -> ThreadCounters {
        let usage = sys::usage::thread().ok();
        let cpu = self.cpu;
        ThreadCounters {
            waited_ns: self
                .run_delay
                .as_mut()
                .and_then(|reader| reader.read())
                .map(|delay| delay.waited_ns),
            minor_faults: usage.as_ref().map(|u| u.minor_faults),
            major_faults: usage.as_ref().map(|u| u.major_faults),
            steal_ticks: self.steal.as_mut().and_then(|reader| reader.read(cpu)),
        }
    }
}

impl Disturbance {
    /// What happened between two readings.
    pub fn between(before: &ThreadCounters, after: &ThreadCounters) -> Self {
        let grown = |a: Option<u64>, b: Option<u64>| Some(b?.saturating_sub(a?));
        Self {
            waited_ns: grown(before.waited_ns, after.waited_ns),
            minor_faults: grown(before.minor_faults, after.minor_faults),
            major_faults: grown(before.major_faults, after.major_faults),
            stolen_ns: grown(before.steal_ticks, after.steal_ticks)
                .map(|ticks| (ticks as f64 * TICK_NS) as u64),
        }
    }

    /// The worse of each part, of two threads that worked in step.
    pub fn or_worse(self, other: &Disturbance) -> Self {
        Self {
            waited_ns: self.waited_ns.max(other.waited_ns),
            minor_faults: self.minor_faults.max(other.minor_faults),
            major_faults: self.major_faults.max(other.major_faults),
            stolen_ns: self.stolen_ns.max(other.stolen_ns),
        }
    }

    /// Whether a trial of `elapsed_ns` is to be thrown away, and why.
    pub fn cause(&self, elapsed_ns: f64) -> Option<DiscardCause> {
        let share = |ns: Option<u64>| ns.unwrap_or(0) as f64 / elapsed_ns.max(1.0);
        let faults = self.minor_faults.unwrap_or(0) as f64 * FAULT_NS / elapsed_ns.max(1.0);
        if share(self.stolen_ns) > SHARE {
            Some(DiscardCause::Stolen)
        } else if share(self.waited_ns) > SHARE {
            Some(DiscardCause::Waited)
        } else if self.major_faults.unwrap_or(0) > 0 || faults > SHARE {
            Some(DiscardCause::Faulted)
        } else {
            None
        }
    }
}

/// How many trials were kept and thrown away, and how much was taken in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Trials that count.
    pub kept: u32,
    /// Thrown away: other work had the processor.
    pub waited: u32,
    /// Thrown away: the host had the processor.
    pub stolen: u32,
    /// Thrown away: page faults.
    pub faulted: u32,
    /// Thrown away: others held the cache that was to be measured.
    pub crowded_out: u32,
    /// Wall time of all trials, nanoseconds.
    pub elapsed_ns: u64,
    /// Run-queue delay in all trials, nanoseconds.
    pub waited_ns: u64,
    /// Steal in all trials, nanoseconds.
    pub stolen_ns: u64,
}

impl Tally {
    /// Counts one trial; `crowded_out` says that its cache was held by others.
    pub fn add(
        &mut self,
        elapsed_ns: f64,
        disturbance: &Disturbance,
        crowded_out: bool,
    ) -> Option<DiscardCause> {
        let cause =
            disturbance.cause(elapsed_ns).or(crowded_out.then_some(DiscardCause::CrowdedOut));
        match cause {
            None => self.kept += 1,
            Some(DiscardCause::Waited) => self.waited += 1,
            Some(DiscardCause::Stolen) => self.stolen += 1,
            Some(DiscardCause::Faulted) => self.faulted += 1,
            Some(DiscardCause::CrowdedOut) => self.crowded_out += 1,
        }
        self.elapsed_ns += elapsed_ns as u64;
        self.waited_ns += disturbance.waited_ns.unwrap_or(0);
        self.stolen_ns += disturbance.stolen_ns.unwrap_or(0);
        cause
    }

    /// Adds another tally to this one.
    pub fn merge(&mut self, other: &Tally) {
        self.kept += other.kept;
        self.waited += other.waited;
        self.stolen += other.stolen;
        self.faulted += other.faulted;
        self.crowded_out += other.crowded_out;
        self.elapsed_ns += other.elapsed_ns;
        self.waited_ns += other.waited_ns;
        self.stolen_ns += other.stolen_ns;
    }

    /// Trials that were thrown away.
    pub fn discarded(&self) -> u32 {
        self.waited + self.stolen + self.faulted + self.crowded_out
    }

    /// The share of the trials' time that was spent waiting for the processor.
    pub fn run_delay_share(&self) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| self.waited_ns as f64 / self.elapsed_ns as f64)
    }

    /// The share of the trials' time that the host took.
    pub fn steal_share(&self) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| self.stolen_ns as f64 / self.elapsed_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(waited_ns: u64, minor: u64, stolen_ns: u64) -> Disturbance {
        Disturbance {
            waited_ns: Some(waited_ns),
            minor_faults: Some(minor),
            major_faults: Some(0),
            stolen_ns: Some(stolen_ns),
        }
    }

    #[test]
    fn a_trial_is_judged_by_the_share_that_went_elsewhere() {
        assert_eq!(of(10_000, 0, 0).cause(1e6), None);
        assert_eq!(of(30_000, 0, 0).cause(1e6), Some(DiscardCause::Waited));
        assert_eq!(of(0, 30, 0).cause(1e6), Some(DiscardCause::Faulted));
        assert_eq!(of(0, 10, 0).cause(1e6), None);
        assert_eq!(of(30_000, 0, 10_000_000).cause(1e8), Some(DiscardCause::Stolen));
    }

    #[test]
    fn unseen_counters_disturb_nothing() {
        assert_eq!(Disturbance::default().cause(1e6), None);
        let missing = ThreadCounters::default();
        assert_eq!(Disturbance::between(&missing, &missing), Disturbance::default());
    }

    /// A thread that must share its processor with a spinning one sees the wait.
    #[test]
    fn real_waiting_is_seen() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let cpu = sys::affinity::allowed().unwrap()[0];
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sys::affinity::pin(cpu).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let measured = scope.spawn(|| {
                sys::affinity::pin(cpu).unwrap();
                let mut bracket = Bracket::for_this_thread(&Root::system(), Some(cpu));
                let before = bracket.read();
                let start = sys::scheduling::thread_cpu_ns();
                while sys::scheduling::thread_cpu_ns() - start < 100_000_000 {
                    std::hint::spin_loop();
                }
                Disturbance::between(&before, &bracket.read())
            });
            let disturbance = measured.join().unwrap();
            stop.store(true, Ordering::Relaxed);
            // The two share one processor for 50 turns, however much of it the host takes.
            assert!(disturbance.waited_ns > Some(0), "{disturbance:?}");
            let stolen = disturbance.stolen_ns.unwrap_or(0) > 0;
            let cause = disturbance.cause(2e8);
            assert!(
                cause == Some(DiscardCause::Waited)
                    || stolen && cause == Some(DiscardCause::Stolen),
                "{disturbance:?}"
            );
        });
    }
}

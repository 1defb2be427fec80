//! From what the kernel says of one thread to its row: the part that falls into the
//! recording.
//!
//! What had been charged when the watch began is subtracted. A longest wait is kept only if
//! it grew since: an older one is not of this recording. The run time of a thread that
//! ended without ever sleeping is completed; of others it lacks up to a tick.

use super::proc::{self, LivingThread};
use model::recording::{Delay, Task, TaskSource};
use sys::taskstats::Stats;

/// What one thread had been charged at one instant.
#[derive(Clone, Debug)]
pub(super) struct Charges {
    pub(super) tid: u32,
    /// When the thread began: for an end too late by as much as the news of it was, for one
    /// that was asked about too early by as much as asking took.
    pub(super) began_ns: u64,
    /// Whether some delay was counted, so that delay accounting is on for the thread.
    pub(super) was_charged: bool,
    /// The totals, in the shape of a row; its delays are `Some` wherever the kernel has a
    /// field.
    totals: Task,
}

/// Ages come in steps of a microsecond, of /proc in ticks.
const AGE_STEP_NS: u64 = 20_000_000;

/// The kernel charges time on a processor at each tick, which is at most so long, and when
/// the thread leaves it; the record of an end is made before that. A child of a millisecond
/// may have no charge at all.
const LAST_STRETCH_MAX_NS: u64 = 10_000_000;

impl Charges {
    /// From the kernel's record, which was read at `now_ns`.
    pub(super) fn of_stats(stats: &Stats, now_ns: u64, source: TaskSource) -> Self {
        let totals = Task {
            pid: stats.tgid.unwrap_or(stats.tid),
            tid: stats.tid,
            ppid: stats.ppid,
            comm: stats.comm.clone(),
            threads: 1,
            source,
            alive_ns: stats.elapsed_ns,
            run_ns: stats.run_ns,
            user_ns: stats.user_ns,
            system_ns: stats.system_ns,
            queue: stats.queue,
            block_io: Some(stats.block_io),
            swap_in: Some(stats.swap_in),
            reclaim: Some(stats.reclaim),
            thrash: stats.thrash,
            compact: stats.compact,
            copy_on_write: stats.copy_on_write,
            interrupts: stats.interrupts,
            minor_faults: stats.minor_faults,
            major_faults: stats.major_faults,
            read_bytes: stats.read_bytes,
            write_bytes: stats.write_bytes,
            read_chars: stats.read_chars,
            write_chars: stats.write_chars,
            read_calls: stats.read_calls,
            write_calls: stats.write_calls,
            voluntary_switches: stats.voluntary_switches,
            involuntary_switches: stats.involuntary_switches,
        };
        Self {
            tid: stats.tid,
            began_ns: now_ns.saturating_sub(stats.elapsed_ns),
            was_charged: was_charged(stats),
            totals,
        }
    }

    /// From /proc, read at `now_ns`: run, queue, block I/O in ticks. /proc does not count the waits
    /// for block I/O; their count is 0.
    pub(super) fn of_proc(thread: &LivingThread, now_ns: u64) -> Option<Self> {
        let thread = proc::complete(thread);
        let run = thread.run?;
        let io = thread.io.unwrap_or_default();
        // Both clocks stand still or go on together but for a suspended machine.
        let alive_ns = now_ns.saturating_sub(thread.began_ns);
        let totals = Task {
            pid: thread.pid,
            tid: thread.tid,
            ppid: thread.ppid,
            comm: thread.comm.clone(),
            threads: 1,
            source: TaskSource::Proc,
            alive_ns,
            run_ns: run.on_cpu_ns,
            user_ns: thread.user_ns,
            system_ns: thread.system_ns,
            queue: Delay { count: run.slices, total_ns: run.waited_ns, max_ns: None },
            block_io: Some(Delay { count: 0, total_ns: thread.block_io_ns, max_ns: None }),
            minor_faults: thread.minor_faults,
            major_faults: thread.major_faults,
            read_bytes: io.read_bytes,
            write_bytes: io.write_bytes,
            read_chars: io.rchar,
            write_chars: io.wchar,
            read_calls: io.read_calls.unwrap_or(0),
            write_calls: io.write_calls.unwrap_or(0),
            voluntary_switches: thread.voluntary_switches,
            involuntary_switches: thread.involuntary_switches,
            ..Task::default()
        };
        Some(Self {
            tid: thread.tid,
            began_ns: thread.began_ns,
            was_charged: thread.block_io_ns > 0,
            totals,
        })
    }

    /// Whether `later` can be of the same thread and not of one that got its number: a
    /// thread never gets younger. Beginnings would not do, for they are computed from an
    /// age and a clock that is read later.
    pub(super) fn is_same_thread(&self, later: &Self) -> bool {
        let age_ns = later.totals.alive_ns.saturating_add(AGE_STEP_NS);
        self.tid == later.tid && self.totals.alive_ns <= age_ns
    }
}

/// Whether some delay was counted for the thread: then accounting was on when it began.
/// Without it all are 0, and a thread of an accounted process is nearly never without a
/// copied page or an interrupt.
pub(super) fn was_charged(stats: &Stats) -> bool {
    let always = [stats.block_io, stats.swap_in, stats.reclaim];
    let later = [stats.thrash, stats.compact, stats.copy_on_write, stats.interrupts];
    let mut all = always.into_iter().chain(later.into_iter().flatten());
    all.any(|charged| charged.count > 0)
}

/// The row of a thread: what came since `before`, at most `limit_ns` of life. Where the
/// thread was not `charged`, the delays that were not counted are absent.
pub(super) fn task(now: &Charges, before: Option<Charges>, limit_ns: u64, charged: bool) -> Task {
    let ran_before = before.is_some();
    let mut row = difference(now, before, limit_ns, charged);
    if !ran_before && row.source == TaskSource::Exit && row.voluntary_switches == 0 {
        // It never slept, so what is neither run nor queue is the last stretch.
        let last_ns = row.alive_ns.saturating_sub(row.run_ns).saturating_sub(row.queue.total_ns);
        row.run_ns += last_ns.min(LAST_STRETCH_MAX_NS);
    }
    if ran_before {
        // A stretch that was under way at the first look is charged when it ends, so part
        // of it may be of before.
        row.run_ns = row.run_ns.min(row.alive_ns);
        row.queue.total_ns = row.queue.total_ns.min(row.alive_ns - row.run_ns);
    }
    row
}

/// The totals now without those of before.
fn difference(now: &Charges, before: Option<Charges>, limit_ns: u64, charged: bool) -> Task {
    let mut row = now.totals.clone();
    let ran_before = before.is_some();
    let mut old = before.map(|before| before.totals).unwrap_or_default();
    for (value, old) in counters(&mut row).into_iter().zip(counters(&mut old)) {
        *value = value.saturating_sub(*old);
    }
    row.alive_ns = row.alive_ns.min(limit_ns);
    row.queue = since(row.queue, old.queue, ran_before);
    for (value, old) in delays(&mut row).into_iter().zip(delays(&mut old)) {
        let known = value.filter(|_| charged);
        *value = known.map(|value| since(value, old.unwrap_or_default(), ran_before));
    }
    row
}

/// What a row counts and only grows.
pub(super) fn counters(task: &mut Task) -> [&mut u64; 14] {
    [
        &mut task.alive_ns,
        &mut task.run_ns,
        &mut task.user_ns,
        &mut task.system_ns,
        &mut task.minor_faults,
        &mut task.major_faults,
        &mut task.read_bytes,
        &mut task.write_bytes,
        &mut task.read_chars,
        &mut task.write_chars,
        &mut task.read_calls,
        &mut task.write_calls,
        &mut task.voluntary_switches,
        &mut task.involuntary_switches,
    ]
}

/// The delays that a kernel, or a thread that was not charged, may lack.
pub(super) fn delays(task: &mut Task) -> [&mut Option<Delay>; 7] {
    [
        &mut task.block_io,
        &mut task.swap_in,
        &mut task.reclaim,
        &mut task.thrash,
        &mut task.compact,
        &mut task.copy_on_write,
        &mut task.interrupts,
    ]
}

/// What came to a delay; its longest wait only if that is known to be of this time.
fn since(new: Delay, old: Delay, ran_before: bool) -> Delay {
    let count = new.count.saturating_sub(old.count);
    let is_new = |max_ns: &u64| !ran_before || old.max_ns.is_some_and(|old| *max_ns > old);
    let none_came = (count == 0).then_some(0).filter(|_| new.max_ns.is_some());
    Delay {
        count,
        total_ns: new.total_ns.saturating_sub(old.total_ns),
        max_ns: none_came.or(new.max_ns.filter(is_new)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(elapsed_ns: u64, run_ns: u64, block_io: (u64, u64, u64)) -> Stats {
        Stats {
            version: 16,
            tid: 5,
            tgid: Some(4),
            elapsed_ns,
            run_ns,
            block_io: Delay { count: block_io.0, total_ns: block_io.1, max_ns: Some(block_io.2) },
            ..Stats::default()
        }
    }

    fn charges(stats: &Stats) -> Charges {
        Charges::of_stats(stats, 10_000, TaskSource::Exit)
    }

    #[test]
    fn what_was_charged_before_is_subtracted() {
        let old = charges(&stats(1000, 300, (2, 80, 70)));
        let new = charges(&stats(1500, 400, (3, 100, 70)));
        let row = task(&new, Some(old.clone()), 10_000, true);
        assert_eq!((row.pid, row.alive_ns, row.run_ns), (4, 500, 100));
        let block_io = row.block_io.unwrap();
        assert_eq!((block_io.count, block_io.total_ns), (1, 20));
        assert_eq!(block_io.max_ns, None, "the longest was before");
        assert_eq!(row.swap_in.unwrap(), Delay::default());
        let new = charges(&stats(1500, 400, (3, 200, 90)));
        let row = task(&new, Some(old.clone()), 10_000, true);
        assert_eq!(row.block_io.unwrap().max_ns, Some(90));
    }

    #[test]
    fn the_last_stretch_of_a_thread_that_never_slept_is_run() {
        let short = charges(&stats(900_000, 0, (0, 0, 0)));
        assert_eq!(task(&short, None, u64::MAX, true).run_ns, 900_000);
        // What is longer than a tick has another cause: stolen by the host.
        let long = charges(&stats(5_000_000_000, 4_000_000_000, (0, 0, 0)));
        let row = task(&long, None, u64::MAX, true);
        assert_eq!(row.run_ns, 4_010_000_000);
        let mut slept = stats(900_000, 0, (0, 0, 0));
        slept.voluntary_switches = 1;
        assert_eq!(task(&charges(&slept), None, u64::MAX, true).run_ns, 0);
    }

    #[test]
    fn a_wait_that_had_begun_before_is_cut() {
        let mut old = stats(1000, 300, (0, 0, 0));
        let mut new = stats(1500, 600, (0, 0, 0));
        old.queue.total_ns = 100;
        new.queue.total_ns = 400;
        let row = task(&charges(&new), Some(charges(&old)), 10_000, true);
        assert_eq!((row.alive_ns, row.run_ns), (500, 300));
        assert_eq!(row.queue.total_ns, 200);
    }

    #[test]
    fn life_is_clipped_to_the_recording_and_absent_is_not_zero() {
        let new = charges(&stats(1500, 400, (0, 0, 0)));
        let row = task(&new, None, 1000, false);
        assert_eq!((row.alive_ns, row.run_ns), (1000, 1000));
        assert_eq!((row.block_io, row.reclaim), (None, None));
        assert_eq!(row.thrash, None);
        let row = task(&new, None, 2000, true);
        assert_eq!(row.block_io.unwrap().max_ns, Some(0));
        assert_eq!(row.thrash, None, "the kernel has no such field");
    }

    #[test]
    fn a_number_that_was_given_again_is_another_thread() {
        let old = charges(&stats(1_000_000_000, 300, (0, 0, 0)));
        assert!(old.is_same_thread(&charges(&stats(1_000_000_000, 300, (0, 0, 0)))));
        assert!(!old.is_same_thread(&charges(&stats(500_000_000, 300, (0, 0, 0)))));
    }
}

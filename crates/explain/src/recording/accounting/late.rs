//! Wake-ups that were reported late: where a kernel tells nothing in the idle task of a processor,
//! neither the wake-up nor the switch to the thread is told, and it counts as waiting until
//! the first notice of its own. The kernel's account of the time that it ran has no such gap,
//! so what that has more is taken from the waits.

use super::rows::Rows;
use crate::recording::View;
use crate::wording::long_time;
use model::explanation::Repair;
use model::explanation::TimeSlice;

/// The most that a notice may come late. Seen: 4 to 10 us for each of 13,000 waits of 50 us;
/// more than this has another reason, which [`super::check`] tells.
const MOST_LATE_NS: u64 = 20_000;

/// Time that was run and reported as a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Late {
    /// Reported as block I/O.
    pub block_io_ns: u64,
    /// Reported as sleep.
    pub sleep_ns: u64,
}

impl Late {
    /// Looks at the events beside rows that lost none; nothing where either is missing.
    pub(super) fn of(view: &View, rows: Option<&Rows>) -> Self {
        let sum = |name: &str| view.sum(name).unwrap_or(0);
        let most_ns = sum("trace.sched.untold_wakeups").saturating_mul(MOST_LATE_NS);
        let run_ns = sum("trace.sched.run_ns");
        let more_ns = rows.map_or(0, |rows| rows.run_ns.saturating_sub(run_ns));
        let late_ns = more_ns.min(most_ns);
        let (io_waits, waits) = (sum("trace.sched.block_io_waits"), sum("trace.sched.waits"));
        let io_share = io_waits as f64 / waits.max(1) as f64;
        let in_io_ns = (late_ns as f64 * io_share.min(1.0)) as u64;
        let slept_ns = sum("trace.sched.sleep_ns");
        Self {
            block_io_ns: in_io_ns.min(sum("trace.sched.block_io_ns")),
            sleep_ns: (late_ns - in_io_ns).min(slept_ns),
        }
    }

    /// All of it.
    pub(super) fn ns(self) -> u64 {
        self.block_io_ns.saturating_add(self.sleep_ns)
    }

    /// The same on the clock, where only that part of the waits is seen in which nothing else
    /// ran: as much of it as of the waits.
    pub(super) fn on_the_clock(self, view: &View) -> Self {
        let part = |late_ns: u64, clock: &str, threads: &str| {
            let all_ns = view.sum(threads).unwrap_or(0).max(1);
            let seen_ns = view.sum(clock).unwrap_or(0).min(all_ns);
            (late_ns as f64 * seen_ns as f64 / all_ns as f64) as u64
        };
        let (io, slept) = ("trace.sched.block_io_ns", "trace.sched.sleep_ns");
        Self {
            block_io_ns: part(self.block_io_ns, "trace.wall.block_io_ns", io),
            sleep_ns: part(self.sleep_ns, "trace.wall.asleep_ns", slept),
        }
    }

    /// The length of a state with this put right.
    pub(super) fn put_right(self, state: TimeSlice, ns: u64) -> u64 {
        match state {
            TimeSlice::Run => ns.saturating_add(self.ns()),
            TimeSlice::BlockIo => ns.saturating_sub(self.block_io_ns),
            TimeSlice::Sleep => ns.saturating_sub(self.sleep_ns),
            _ => ns,
        }
    }

    /// What is said of it.
    pub(super) fn repair(self, run_ns: u64) -> Option<Repair> {
        let text = format!(
            "trace.sched.run_ns: {} less than the kernel charged the threads, which came to an \
             idle processor untold; they are taken from the waits before",
            long_time(self.ns() as f64)
        );
        (self.ns() > 0).then(|| Repair {
            text,
            before_ns: run_ns,
            after_ns: run_ns.saturating_add(self.ns()),
        })
    }
}

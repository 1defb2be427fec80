//! Events against delay accounting: two ways of the kernel to know the same times. The bar
//! is made of one; where the other says something else, both numbers are told.

use super::source::{self, Sources};
use crate::recording::View;
use model::duration::show_ns;
use model::explanation::TimeSlice;

/// Two clocks of the kernel may differ by 2 %.
const SHARE: u64 = 50;

/// And by one tick for each thread.
const EACH_THREAD_NS: u64 = 4_000_000;

/// The state that adds up what runs and what is ready to.
pub(in crate::recording) const RUN_AND_QUEUE: &str = "run and queue";

/// A state of threads of which two sources differ by more than noise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which: [`RUN_AND_QUEUE`], `block I/O`.
    pub state: &'static str,
    /// How long by switch events; the bar has this.
    pub by_events: u64,
    /// How long by delay accounting.
    pub charged: u64,
}

impl Difference {
    /// By how much.
    #[must_use]
    pub const fn apart(&self) -> u64 {
        self.by_events.abs_diff(self.charged)
    }

    /// Both numbers in a sentence.
    pub(in crate::recording) fn words(&self) -> String {
        format!(
            "{}: {} by switch events, {} by delay accounting; the bar has the former",
            self.state,
            show_ns(self.by_events as f64),
            show_ns(self.charged as f64)
        )
    }
}

/// Where two sources that know the same thing differ by more than noise.
pub(super) fn differences(view: &View, sources: &Sources) -> Vec<Difference> {
    let comparable = sources.events && sources.lost_exits == 0 && !source::is_machine(view);
    let Some(rows) = sources.rows.as_ref().filter(|_| comparable) else {
        return Vec::new();
    };
    // Time that the host took is run to one clock and nothing to the other.
    let stolen = view.growth("stat.cpu.steal_ns").unwrap_or(0);
    let ticks = EACH_THREAD_NS.saturating_mul(rows.threads);
    // What had to be cut is a bound and differs for a reason that is told already.
    let whole = rows.block_io.filter(|charged| !charged.cut);
    let block_io = whole.map(|charged| charged.ns);
    let mut found = Vec::new();
    // Run and queue together: the kernel stamps a thread that it puts back into the queue
    // with a clock that stands still between ticks, and so charges some run as queue.
    let on_or_for_a_processor = rows.run_ns.saturating_add(rows.queue.ns);
    for (state, names, charged) in [
        (RUN_AND_QUEUE, &[TimeSlice::Run, TimeSlice::Queue][..], Some(on_or_for_a_processor)),
        ("block I/O", &[TimeSlice::BlockIo][..], block_io),
    ] {
        let parts = names.iter().map(|name| {
            let seen = view.sum(&format!("trace.sched.{}_ns", name.id()))?;
            Some(sources.late.put_right(*name, seen))
        });
        let seen = parts.reduce(|sum, part| Some(sum?.saturating_add(part?)));
        let (Some(by_events), Some(charged)) = (seen.flatten(), charged) else {
            continue;
        };
        let difference = Difference { state, by_events, charged };
        let share = by_events.max(charged) / SHARE;
        let allowed = share.saturating_add(ticks).saturating_add(stolen);
        if difference.apart() > allowed {
            found.push(difference);
        }
    }
    found
}

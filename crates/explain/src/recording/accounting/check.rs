//! Events against delay accounting: two ways of the kernel to know the same times. The bar
//! is made of one; where the other says something else, both numbers are told.

use super::source::{self, Sources};
use crate::recording::View;
use model::duration::show_ns;

/// Two clocks of the kernel may differ by 2 %.
const SHARE: u64 = 50;

/// And by one tick for each thread.
const EACH_THREAD_NS: u64 = 4_000_000;

/// See [`super::disagreements`].
pub(super) fn disagreements(view: &View) -> Vec<String> {
    let sources = Sources::of(view);
    let comparable = sources.events && sources.lost_exits == 0 && !source::is_machine(view);
    let Some(rows) = sources.rows.filter(|_| comparable) else {
        return Vec::new();
    };
    // Time that the host took is run to one clock and nothing to the other.
    let stolen = view.growth("stat.cpu.steal_ns").unwrap_or(0);
    let ticks = EACH_THREAD_NS.saturating_mul(rows.threads);
    // What had to be cut is a bound and differs for a reason that is told already.
    let whole = rows.block_io.filter(|charged| !charged.cut);
    let block_io = whole.map(|charged| charged.ns);
    let mut told = Vec::new();
    for (state, charged) in [
        ("run", Some(rows.run_ns)),
        ("queue", Some(rows.queue.ns)),
        ("block_io", block_io),
    ] {
        let seen = view.sum(&format!("trace.sched.{state}_ns"));
        let (Some(seen), Some(charged)) = (seen, charged) else {
            continue;
        };
        let share = seen.max(charged) / SHARE;
        let allowed = share.saturating_add(ticks).saturating_add(stolen);
        if seen.abs_diff(charged) > allowed {
            told.push(format!(
                "{state}: {} by switch events, {} by delay accounting; the bar has the former",
                show_ns(seen as f64),
                show_ns(charged as f64)
            ));
        }
    }
    told
}

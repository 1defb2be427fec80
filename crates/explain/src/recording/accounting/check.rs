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

/// Where two sources that know the same thing differ by more than noise, in sentences with
/// both numbers.
pub(super) fn disagreements(view: &View, sources: &Sources) -> Vec<String> {
    let contradiction = super::machine::too_much_run_ns(view)
        .filter(|_| sources.events && source::is_machine(view))
        .map(|(by_events, by_ticks)| {
            format!(
                "some thread ran for {} by switch events, and all processors for {} by their own \
                 count: the bars have the latter",
                show_ns(by_events as f64),
                show_ns(by_ticks as f64)
            )
        });
    if let Some(contradiction) = contradiction {
        return vec![contradiction];
    }
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
    let mut messages = Vec::new();
    // Run and queue together: the kernel stamps a thread that it puts back into the queue
    // with a clock that stands still between ticks, and so charges some run as queue.
    let on_or_for_a_processor = rows.run_ns.saturating_add(rows.queue.ns);
    for (state, names, charged) in [
        ("run and queue", &[TimeSlice::Run, TimeSlice::Queue][..], Some(on_or_for_a_processor)),
        ("block I/O", &[TimeSlice::BlockIo][..], block_io),
    ] {
        let parts = names.iter().map(|name| {
            let seen = view.sum(&format!("trace.sched.{}_ns", name.id()))?;
            Some(sources.late.put_right(*name, seen))
        });
        let seen = parts.reduce(|sum, part| Some(sum?.saturating_add(part?)));
        let (Some(seen), Some(charged)) = (seen.flatten(), charged) else {
            continue;
        };
        let share = seen.max(charged) / SHARE;
        let allowed = share.saturating_add(ticks).saturating_add(stolen);
        if seen.abs_diff(charged) > allowed {
            messages.push(format!(
                "{state}: {} by switch events, {} by delay accounting; the bar has the former",
                show_ns(seen as f64),
                show_ns(charged as f64)
            ));
        }
    }
    messages
}

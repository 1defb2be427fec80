//! What can be done about a finding on this machine, in words: each way has a check against the
//! facts of the recording, and one that cannot work is left out.
//!
//! Findings without a row here keep the words of their rule, which always apply.

use super::super::limits::reached;
use super::super::refaults::refaults;
use super::super::{RunView, memory_limit};
use super::change::{helped_by_huge_pages, is_written_stream_at_limit, parent_limit, room};
use crate::recording::awaited;
use crate::recording::limited::are_processors_busy;
use model::Bytes;
use model::explanation::Cause;

/// For what is written once: it then needs no memory of the group.
const PAST_THE_CACHE: &str =
    "write past the page cache (O_DIRECT; RWF_DONTCACHE from Linux 6.14 on)";

/// One way to do something about a finding; `None` where it cannot work here.
type Way = Option<String>;

/// What the rule advised, or what the ways are that can work; `None` if nothing can.
pub(super) fn possible(run: &RunView, cause: &Cause) -> Option<String> {
    let own = cause.finding.remedy.clone();
    let less = || Some("let the program use less memory".to_owned());
    match cause.finding.id.as_str() {
        "memory_limit" if is_written_stream_at_limit(run) => {
            either([Some(PAST_THE_CACHE.to_owned())], "each write then waits for its device")
        }
        "memory_limit" => {
            either([raise_limit(run), less()], "that memory is then missing elsewhere")
        }
        "cache_too_small" => either([more_cache(run)], "that memory is then missing elsewhere"),
        "swapping" => either(
            [restored(run), more_memory(run), less(), compressed_swap(run)],
            "memory that it gets is missing elsewhere, and compression takes processor time",
        ),
        "dirty_throttle" => either(
            [Some("use a faster device".to_owned()), more_dirty(run)],
            "more is lost in a crash, and a later fsync waits for more",
        ),
        "reclaim_direct" => either(
            [earlier_reclaim(run), Some("use less memory".to_owned())],
            "the memory that is kept free is not usable by programs",
        ),
        "first_touch" => either(
            [Some("reuse memory instead of freeing and allocating it".to_owned()), huge_pages(run)],
            "more memory is held than is in use",
        ),
        "cpu_contention" if is_of_own_threads(cause) && !are_processors_busy(run) => None,
        // What ran meanwhile is the server that it waits for.
        "cpu_contention"
            if !is_of_own_threads(cause) && awaited::server(run.view, run.accounts).is_some() =>
        {
            None
        }
        _ => own,
    }
}

/// Whether the threads of the subject wait for each other's processors.
pub(super) fn is_of_own_threads(cause: &Cause) -> bool {
    cause.order_ns.is_some()
}

/// `Raise the limit, or use less. Risk: ...`.
fn either<const N: usize>(ways: [Way; N], risk: &str) -> Option<String> {
    let ways: Vec<String> = ways.into_iter().flatten().collect();
    let words = ways.join(", or ");
    let mut letters = words.chars();
    let first = letters.next()?.to_uppercase();
    Some(format!("{first}{}. Risk: {risk}.", letters.as_str()))
}

/// A higher limit, if the machine has memory that it may give.
fn raise_limit(run: &RunView) -> Way {
    if run.is_machine() {
        room(run)?;
        let words = "raise the limit (memory.max of the group, or the container's memory limit)";
        return Some(words.to_owned());
    }
    let (hit, _) = memory_limit::at_fault(run).or_else(|| reached(run).map(|hit| (hit, 0)))?;
    let most = room(run)?;
    let above = parent_limit(run, &hit).map_or("", |_| " and those above it");
    let available = most.map(|bytes| format!(" ({} can be had)", Bytes(bytes)));
    Some(format!("raise the {}{above}{}", hit.description(), available.unwrap_or_default()))
}

/// What was read again is what a larger cache would have held. Where memory was free all the time,
/// the machine's cache was not too small: a limit of some group made it so.
fn more_cache(run: &RunView) -> Way {
    let again = refaults(run)?;
    if again.hit.is_some() {
        return raise_limit(run);
    }
    let free = run.lowest("meminfo.MemFree");
    if free.is_some_and(|free| free >= again.bytes) {
        return None;
    }
    Some(format!(
        "leave at most {} more memory to the page cache, which is what was read again",
        Bytes(again.bytes)
    ))
}

/// What an earlier pressure left in swap.
fn restored(run: &RunView) -> Way {
    let evicted = super::restore::of(run, "swapping")?;
    Some(format!("restore what was evicted while memory is free (`{}`)", evicted.command))
}

fn more_memory(run: &RunView) -> Way {
    if !run.is_machine() && reached(run).is_some() {
        return raise_limit(run);
    }
    // Nobody adds memory to a machine that had enough.
    let free = run.lowest("meminfo.MemFree").unwrap_or(0);
    let swapped = run.growth("vmstat.pswpin").unwrap_or(0).saturating_mul(run.page_bytes());
    (free == 0 || free < swapped).then(|| "add memory".to_owned())
}

fn compressed_swap(run: &RunView) -> Way {
    let is_there = run.facts().swaps.iter().any(|area| area.contains("zram"));
    let is_zswap = run.growth("vmstat.zswpin").is_some_and(|pages| pages > 0);
    (!is_there && !is_zswap).then(|| "put compressed RAM before the swap device".to_owned())
}

/// A higher threshold is of no use where a group's own memory is the bound.
fn more_dirty(run: &RunView) -> Way {
    let is_bound = !run.is_machine() && reached(run).is_some();
    (!is_bound && room(run).is_some())
        .then(|| "a higher vm.dirty_bytes for short bursts".to_owned())
}

/// The kernel's own thread frees memory of the machine, not that of a group at its limit.
fn earlier_reclaim(run: &RunView) -> Way {
    let is_bound = !run.is_machine() && reached(run).is_some();
    let words = "let the kernel's own thread start earlier (a larger vm.watermark_scale_factor)";
    (!is_bound).then(|| words.to_owned())
}

/// Asking for huge pages changes something only where they are given to who asks, and helps only
/// where new memory is then cheaper.
fn huge_pages(run: &RunView) -> Way {
    let enabled = run.facts().settings.get("thp.enabled").map(String::as_str);
    let is_changing = !matches!(enabled, Some("always" | "never")) && helped_by_huge_pages(run);
    is_changing.then(|| "ask for huge pages (madvise)".to_owned())
}

//! The suspects that counters show, in the order in which they are asked: the processor, the
//! limit of a group, swap, freeing memory, moving it together, another node.

use super::ramdisk_view::{CONTROLLER, RamDiskView};
use crate::verdict::{Verdict, clear};
use crate::wording::{count, often, percent};
use model::duration::show_ns;
use model::explanation::Cause;
use model::ramdisk::{GroupLimit, Pass, Reason};
use model::{Bytes, Evidence, Finding, Grade};

/// A processor that was taken for more than this share of the time counts (io.md's 20 % of the
/// wall; below it the figures are right once it is subtracted).
const CPU_SHARE: f64 = 0.2;
/// A counter matters from this share of the pages written on: machine-wide counters move by
/// themselves.
const PAGES_SHARE: f64 = 0.01;
/// Memory of another node matters from this share of the pages on.
const NODE_SHARE: f64 = 0.1;
/// What a suspect is asked by.
type Check = fn(&RamDiskView) -> Verdict<Cause>;

/// All of them.
pub(super) const ALL: [(Reason, Check); 7] = [
    (Reason::CpuContention, contention),
    (Reason::CpuStolen, stolen),
    (Reason::GroupLimit, group_limit),
    (Reason::GuestSwap, guest_swap),
    (Reason::DirectReclaim, direct_reclaim),
    (Reason::Compaction, compaction),
    (Reason::Numa, numa),
];

fn contention(view: &RamDiskView) -> Verdict<Cause> {
    processor(
        view,
        |pass| pass.waited_ns,
        ("ready and not run", "/proc/thread-self/schedstat"),
        "waited for a processor that other work of this machine had",
        "Stop or move the other work, or give this one a larger share. Risk: what is stopped does \
         not do its work.",
    )
}

fn stolen(view: &RamDiskView) -> Verdict<Cause> {
    processor(
        view,
        |pass| pass.stolen_ns,
        ("taken by the host", "/proc/stat"),
        "stood still while the host had the processor",
        "Ask whoever runs the host for processors of its own, or move to another host.",
    )
}

fn processor(
    view: &RamDiskView,
    of: fn(&Pass) -> Option<u64>,
    (name, source): (&str, &str),
    clause: &str,
    remedy: &str,
) -> Verdict<Cause> {
    let (first, ns) = view
        .first
        .and_then(|pass| Some((pass, of(pass)?.min(pass.touch_ns))))
        .ok_or_else(|| format!("{source} cannot be read here"))?;
    let share = ns as f64 / first.touch_ns.max(1) as f64;
    let evidence = Evidence::time(name, ns, source);
    if share <= CPU_SHARE {
        return clear(Some(evidence));
    }
    let claim = format!(
        "{} of the time it {clause}; without that a page takes {}.",
        percent(share),
        show_ns(first.mean_ns().unwrap_or(0.0)),
    );
    Ok(Cause::new(Some(ns), Finding::new(Grade::Measured, claim, [evidence]).remedy(remedy)))
}

/// The level of a group that refused memory, how often, and the counter that says so.
fn refused(view: &RamDiskView) -> Option<(u32, u64, String)> {
    let levels = view.seen.limits.iter().map(|limit| limit.level);
    let named = levels.flat_map(|level| {
        ["failcnt", "events.max", "events.high", "events.oom_kill"]
            .map(|name| (level, format!("group{level}.memory.{name}")))
    });
    let mut grown = named.filter_map(|(level, name)| Some((level, view.grew(&name)?, name)));
    grown.find(|(_, times, _)| *times > 0)
}

fn group_limit(view: &RamDiskView) -> Verdict<Cause> {
    const REMEDY: &str = "Raise the limit (memory.max of the group, or the container's memory \
     limit) above what the RAM disk and the programs need together. Risk: that memory is then \
     missing elsewhere.";
    let Some((level, times, counter)) = refused(view) else {
        let limit = view.seen.limits.iter().min_by_key(|limit| limit.limit_bytes);
        return clear(Some(limit.map_or_else(
            || Evidence::count("groups with a limit", 0, CONTROLLER),
            |limit| room(view, limit),
        )));
    };
    let limit = view.seen.limits.iter().find(|limit| limit.level == level);
    let (path, size) = limit.map_or(("", 0), |limit| (limit.path.as_str(), limit.limit_bytes));
    let named = format!("the limit of {} of the group {path}", Bytes(size));
    let mut evidence = view.all_evidence(&[&counter], "count");
    if view.seen.killed {
        let kills = format!("group{level}.memory.events.oom_kill");
        evidence.extend(view.evidence(&kills, "count"));
        let written = Bytes(view.first.map_or(0, |pass| pass.bytes));
        let claim = format!(
            "Killed at {named}, with {written} written or a little more: there is no swap to go to."
        );
        let finding = Finding::new(Grade::Measured, claim, evidence).remedy(REMEDY);
        // It decides alone.
        return Ok(Cause::new(Some(u64::MAX), finding));
    }
    evidence.extend(left_memory(view));
    let clause = format!("It reached {named} {}{}", often(times), swapped_words(view));
    view.cause_or_cheap(&clause, evidence, REMEDY)
}

/// What a group that refused nothing still had.
fn room(view: &RamDiskView, limit: &GroupLimit) -> Evidence {
    let held = limit.used_bytes.unwrap_or(0);
    let written = view.first.map_or(0, |pass| pass.bytes);
    let left = limit.limit_bytes.saturating_sub(held.saturating_add(written));
    Evidence::bytes("left below the limit", left, CONTROLLER)
}

/// What of the file is in memory no more.
fn left_memory(view: &RamDiskView) -> Option<Evidence> {
    let left = view.first?.left_memory_bytes?;
    Some(Evidence::bytes("of the file not in memory any more", left, "cachestat"))
}

fn swapped_words(view: &RamDiskView) -> String {
    match view.first.and_then(|pass| pass.left_memory_bytes) {
        Some(left) if matters(view, left / view.seen.page_bytes.max(1)) => {
            format!(", and {} of the file went to swap", Bytes(left))
        }
        _ => String::new(),
    }
}

fn matters(view: &RamDiskView, pages: u64) -> bool {
    pages > 0 && pages as f64 >= view.touches() as f64 * PAGES_SHARE
}

/// Whether swap that the machine counts was for what was written; yes where the kernel does not
/// tell what left memory.
fn is_ours(view: &RamDiskView) -> bool {
    let left = view.first.and_then(|pass| pass.left_memory_bytes);
    let page_bytes = view.seen.page_bytes.max(1);
    let left = left.is_none_or(|bytes| matters(view, bytes / page_bytes));
    let freed = view.grew("vmstat.pgscan_direct").unwrap_or(0);
    left || matters(view, freed) || refused(view).is_some()
}

fn guest_swap(view: &RamDiskView) -> Verdict<Cause> {
    const NAMES: [&str; 3] = ["vmstat.pswpout", "vmstat.swpout_zero", "vmstat.zswpout"];
    let pages = view.grew_any(&NAMES).ok_or("the kernel does not count swapped pages")?;
    let mut evidence = view.all_evidence(&NAMES, "pages");
    if !matters(view, pages) {
        return clear(evidence.into_iter().next());
    }
    evidence.extend(left_memory(view));
    if !is_ours(view) {
        // All of the file is there, and nobody had to make room for it: others swap.
        let last = evidence.pop().ok_or("whose pages were swapped is not known")?;
        return clear(Some(last));
    }
    let fullest = view.seen.swap_areas.iter().max_by_key(|(_, bytes)| *bytes);
    let to = fullest.map_or(String::new(), |(area, _)| format!(" to {area}"));
    let clause = format!("This machine swapped {} pages out{to} meanwhile", count(pages));
    view.cause_or_cheap(
        &clause,
        evidence,
        "More memory, or a smaller RAM disk; swap on a faster device or in compressed RAM makes \
         it less slow. Risk: a RAM disk that is swapped is as slow as its swap.",
    )
}

fn direct_reclaim(view: &RamDiskView) -> Verdict<Cause> {
    let pages = view.grew("vmstat.pgscan_direct").ok_or("the kernel does not count reclaim")?;
    let names = ["vmstat.pgscan_direct", "vmstat.allocstall", "vmstat.pgscan_kswapd"];
    let evidence = view.all_evidence(&names, "count");
    if matters(view, pages) {
        let clause = format!("Memory had to be freed first: {} pages were looked at", count(pages));
        return view.cause_or_cheap(
            &clause,
            evidence,
            "More free memory: a smaller RAM disk, or less in the page cache (vm.min_free_kbytes \
             larger starts freeing earlier). Risk: what is freed must be read again.",
        );
    }
    let background = view.grew("vmstat.pgscan_kswapd").unwrap_or(0);
    if matters(view, background) && !view.is_lost() {
        let clause = format!(
            "The kernel freed memory in the background ({} pages looked at)",
            count(background)
        );
        return view.cause_or_cheap(&clause, evidence, "");
    }
    clear(evidence.into_iter().next())
}

fn compaction(view: &RamDiskView) -> Verdict<Cause> {
    let stalls = view.grew("vmstat.compact_stall").ok_or("the kernel does not count compaction")?;
    let names = ["vmstat.compact_stall", "vmstat.compact_fail", "vmstat.thp_file_fallback"];
    let evidence = view.all_evidence(&names, "count");
    let fallbacks = view.grew("vmstat.thp_file_fallback").unwrap_or(0);
    // One of them moves the pages of a huge page: 512.
    if !matters(view, stalls.saturating_add(fallbacks).saturating_mul(512)) {
        return clear(evidence.into_iter().next());
    }
    let clause = format!("Free memory had to be moved together first, {}", often(stalls));
    view.cause_or_cheap(
        &clause,
        evidence,
        "A RAM disk of base pages (mount -o huge=never), or memory compacted before (echo 1 > \
         /proc/sys/vm/compact_memory). Risk: base pages cost more for each.",
    )
}

fn numa(view: &RamDiskView) -> Verdict<Cause> {
    const NAMES: [&str; 2] = ["vmstat.numa_miss", "vmstat.numa_other"];
    let pages = view.grew_any(&NAMES).ok_or("the kernel does not count by node")?;
    let evidence = view.all_evidence(&NAMES, "pages");
    if (pages as f64) < view.touches().max(1) as f64 * NODE_SHARE {
        return clear(evidence.into_iter().next());
    }
    let clause = format!("{} pages lie at another node", count(pages));
    view.cause_or_cheap(
        &clause,
        evidence,
        "Mount it with a policy (mount -o mpol=local, or mpol=interleave), or run the program at \
         the node that has memory (numactl). Risk: the other nodes stay empty.",
    )
}

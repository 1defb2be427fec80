//! Which setting a trial changes for a remedy: only what one file of the kernel holds, takes effect
//! at once, and can be put back as it was.
//!
//! The file is the one that the recording read the present value from.

use super::super::call_storms::MMAP;
use super::super::limits::{LimitHit, reached};
use super::super::refaults::{is_written_stream, refaults};
use super::super::{RunView, device};
use model::Bytes;
use model::explanation::{SettingChange, TimePart};
use std::path::Path;

/// This share of the machine's memory is left to others.
const FLOOR_PARTS: u64 = 20;

/// A limit is raised by this share of itself at least; less is no change. Picked.
const LEAST_PARTS: u64 = 10;

/// Times as much read-ahead as there is. Picked: 128 KiB becomes 1 MiB.
const READ_AHEAD_TIMES: u64 = 8;

/// Times the old limit that a trial gives, if there is so much memory.
const LIMIT_TIMES: u64 = 4;

/// No quota in version 1 of control groups.
const NO_QUOTA: &str = "-1";

/// The span of a subject that went to another group.
const GROUP_CHANGED: &str = "group_changed";

/// Which memory gets huge pages.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const HUGE_PAGES_ALWAYS: &str = "always";

/// The setting of a guest whose host takes free memory back.
const FREE_PAGE_REPORTING: &str = "balloon.free_page_reporting";

/// What a trial of the remedy of this finding changes.
pub(super) fn of(run: &RunView, id: &str) -> Option<SettingChange> {
    match id {
        "memory_limit" | "cache_too_small" | "swapping" => memory_limit(run),
        "cpu_limit" => cpu_quota(run),
        "read_ahead_small" => read_ahead(run),
        "first_touch" => huge_pages(run),
        _ => None,
    }
}

/// How much memory the machine can give: `None` if there is too little for any limit to be raised,
/// `Some(None)` if that is not known.
pub(super) fn room(run: &RunView) -> Option<Option<u64>> {
    let available = run.lowest("meminfo.MemAvailable").or_else(|| run.lowest("meminfo.MemFree"));
    let Some(available) = available else { return Some(None) };
    let all = run.lowest("meminfo.MemTotal").unwrap_or(0);
    let room = available.saturating_sub(all / FLOOR_PARTS);
    let limit = reached(run).and_then(|hit| hit.limit_bytes).unwrap_or(0);
    (room > 0 && room >= limit / LEAST_PARTS).then_some(Some(room))
}

/// The limit of a group above that is not higher than this one, so that both must be raised.
pub(super) fn parent_limit(run: &RunView, hit: &LimitHit) -> Option<u64> {
    let own = hit.limit_bytes?;
    let level = level_of(hit)?;
    let above = (level + 1..super::super::limits::MOST_LEVELS).filter_map(|level| {
        let name = format!("group{level}.memory.limit_bytes");
        u64::try_from(run.latest(&name)?).ok().filter(|bytes| *bytes > 0)
    });
    above.min().filter(|bytes| *bytes < own.saturating_add(own / LEAST_PARTS))
}

fn level_of(hit: &LimitHit) -> Option<u32> {
    let rest = hit.limit_series.as_ref()?.strip_prefix("group")?;
    rest.split_once('.')?.0.parse().ok()
}

/// Whether the limit that was reached only evicts what was written once.
pub(super) fn is_written_stream_at_limit(run: &RunView) -> bool {
    let limit = reached(run).and_then(|hit| hit.limit_bytes);
    !run.is_machine() && limit.is_some_and(|bytes| is_written_stream(run, bytes))
}

fn memory_limit(run: &RunView) -> Option<SettingChange> {
    if run.is_machine() || has_moved(run) || is_written_stream_at_limit(run) {
        return None;
    }
    let hit = reached(run)?;
    let now = hit.limit_bytes?;
    let most = room(run)?.unwrap_or(now);
    if parent_limit(run, &hit).is_some() {
        return None;
    }
    let again = refaults(run).map_or(0, |again| again.bytes);
    let wanted = (now.saturating_mul(LIMIT_TIMES - 1)).max(again);
    let page = run.page_bytes();
    let to = now.saturating_add(wanted.min(most)) / page * page;
    let path = run.source(hit.limit_series.as_deref()?);
    let words = format!("the {} raised to {}", hit.description(), Bytes(to));
    (to > now).then(|| setting(path, &now.to_string(), &to.to_string(), words)).flatten()
}

fn cpu_quota(run: &RunView) -> Option<SettingChange> {
    if run.is_machine() || has_moved(run) {
        return None;
    }
    let series = "group0.cpu.quota_us";
    run.growth("group0.cpu.throttled_periods").filter(|periods| *periods > 0)?;
    let path = run.source(series);
    let is_first_version = path.ends_with("cpu.cfs_quota_us");
    let period = run.latest("group0.cpu.period_us")?;
    let quota = run.latest(series)?;
    let (from, to) = if is_first_version {
        (quota.to_string(), NO_QUOTA.to_owned())
    } else {
        (format!("{quota} {period}"), format!("max {period}"))
    };
    let group = super::super::limits::group_path(run, 0, &["cpu", "unified"]);
    setting(path, &from, &to, format!("no CPU limit of {group}"))
}

fn read_ahead(run: &RunView) -> Option<SettingChange> {
    let traffic = device::busiest(run, device::Direction::Read)?;
    let now = traffic.facts?.read_ahead_bytes?;
    let to = now.checked_mul(READ_AHEAD_TIMES)?;
    let path = format!("/sys/block/{}/queue/read_ahead_kb", traffic.name);
    let words = format!("the read-ahead of {} from {} to {}", traffic.name, Bytes(now), Bytes(to));
    setting(&path, &(now / 1024).to_string(), &(to / 1024).to_string(), words)
}

/// Whether huge pages can make new memory cheaper.
pub(super) fn helped_by_huge_pages(run: &RunView) -> bool {
    takes_large_pieces(run) && !is_taken_by_host(run)
}

/// Whether memory is taken in pieces that may hold a huge page. A page costs more to touch than to
/// give back, so where mapping and unmapping take longer than the touches, each mapping has few
/// pages. Seen: a page for each mapping took twice as long to map as to touch.
fn takes_large_pieces(run: &RunView) -> bool {
    let mapping = run.sampled_calls(MMAP).map_or(0, |time| time.ns);
    let touching = run.sampled(TimePart::FirstTouch);
    touching.is_none_or(|touching| mapping < touching.ns)
}

/// Whether the host takes back what is free, in blocks of a huge page: a new huge page is one of
/// them, and the host must back all of it anew. Seen: 2 GiB took 2.3 to 3.4 s in huge pages and
/// 0.9 s in base pages, each 3 s after the last of it was freed.
fn is_taken_by_host(run: &RunView) -> bool {
    run.facts().settings.get(FREE_PAGE_REPORTING).is_some_and(|is_on| is_on == "1")
}

/// Huge pages for all memory, where they are given only on request.
fn huge_pages(run: &RunView) -> Option<SettingChange> {
    if !helped_by_huge_pages(run) {
        return None;
    }
    let now = run.facts().settings.get("thp.enabled").filter(|now| now.as_str() == "madvise")?;
    let words = format!("huge pages for all memory ({now} becomes {HUGE_PAGES_ALWAYS})");
    setting(HUGE_PAGES, now, HUGE_PAGES_ALWAYS, words)
}

/// Whether the subject changed its group: the files of the series are those of the first one.
fn has_moved(run: &RunView) -> bool {
    run.recording().spans.iter().any(|span| span.kind == GROUP_CHANGED)
}

/// A change of a file of the kernel; `None` for a source in words.
fn setting(path: &str, from: &str, to: &str, words: String) -> Option<SettingChange> {
    Path::new(path).is_absolute().then(|| SettingChange {
        path: path.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        words,
    })
}

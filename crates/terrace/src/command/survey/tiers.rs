//! The tiers of the page from what the probes returned. Pure: numbers in, tiers
//! out, nearest to the processor first.

use super::plan::TIMES_CACHE;
use super::run::SurveyResults;
use machine::memory::Memory;
use measure::faults::{TouchMethod, TouchPhase};
use measure::memory::PagesGranted;
use measure::memory::levels::{BestRate, LevelReport};
use model::bytes::three_digits;
use model::probe::{CacheLevel, DeviceReport, RamDiskReport, SwapArea};
use model::{Bytes, Covers, Grade, Latency, Tier, TierKind};

/// The tier's name of memory that was never touched; findings refer to it.
pub const NEW_MEMORY: &str = "RAM, new";

/// All tiers of `seen`, in the order of the page.
pub fn tiers(seen: &SurveyResults, memory: &Memory) -> Vec<Tier> {
    let caches = seen.ladder.as_ref().map_or(&[][..], |ladder| &ladder.caches);
    let pages = pages_word(seen.granted.as_ref());
    let mut tiers: Vec<Tier> = seen
        .levels
        .iter()
        .map(|level| match level.name.as_str() {
            "RAM" => ram(level, pages, caches, memory.total),
            _ => cache(level, pages, caches),
        })
        .collect();
    tiers.extend(new_memory(seen));
    tiers.extend(seen.ram_disks.iter().map(ram_disk));
    tiers.extend(page_cache(seen, memory.available));
    let (in_ram, on_disk): (Vec<_>, Vec<_>) = seen.swap.iter().partition(|area| area.compressed);
    tiers.extend(in_ram.into_iter().map(swap_tier));
    tiers.extend(seen.devices.iter().map(device));
    tiers.extend(on_disk.into_iter().map(swap_tier));
    tiers
}

/// The name under which a level of memory is shown.
pub fn level_name(level: &str) -> String {
    match level {
        "RAM" => level.to_owned(),
        cache => format!("{cache} cache"),
    }
}

/// The reason that stands for absent percentiles of a chain of loads.
const NO_PERCENTILES: &str =
    "no percentiles: a single load is shorter than one reading of the clock";

/// What smaps says of the pages that were asked to be huge.
fn pages_word(granted: Option<&PagesGranted>) -> &'static str {
    match granted.and_then(PagesGranted::share) {
        Some(share) if share > 0.98 => "huge pages",
        Some(share) if share > 0.02 => "partly huge pages",
        Some(_) => "4 KiB pages, huge ones not granted",
        None => "huge pages asked for",
    }
}

fn level(
    report: &LevelReport,
    kind: TierKind,
    capacity: Option<u64>,
    pages: &str,
    noun: &str,
) -> Tier {
    let rates = [("read", &report.read), ("write", &report.write), ("copy", &report.copy)];
    let method = |(what, reached): (&str, &Option<BestRate>)| {
        Some(format!("{what} {}", reached.as_ref()?.method))
    };
    let methods: Vec<String> = rates.into_iter().filter_map(method).collect();
    let rate = |reached: &Option<BestRate>| reached.as_ref().map(|r| r.bytes_per_s.clone());
    Tier {
        name: level_name(&report.name),
        kind,
        capacity_bytes: capacity,
        latency_ns: report.load_ns.as_ref().map(Latency::from),
        read_bytes_per_s: rate(&report.read),
        write_bytes_per_s: rate(&report.write),
        copy_bytes_per_s: rate(&report.copy),
        method: format!(
            "{noun}: random chain of loads over {}, {pages}; {}",
            Bytes(report.size_bytes),
            methods.join(", ")
        ),
        grade: grade(&report.load_ns, Grade::Measured),
        reason: Some(match (&report.load_ns, report.all_disturbed) {
            (None, _) => "the time ended before its first trial".to_owned(),
            (_, true) => format!("something disturbed every trial of a method; {NO_PERCENTILES}"),
            (_, false) => NO_PERCENTILES.to_owned(),
        }),
        noisy: false,
    }
}

fn cache(report: &LevelReport, pages: &str, caches: &[CacheLevel]) -> Tier {
    let found = caches.iter().find(|cache| format!("L{}", cache.level) == report.name);
    let edge = found.and_then(|cache| cache.measured.as_ref());
    let claimed = found.and_then(|cache| cache.sysfs_bytes.or(cache.cpuid_bytes));
    // An edge between two steps of the ladder that brackets the claim is the claim. One that moves
    // says nothing against it.
    let moved = found.and_then(CacheLevel::moved_between);
    let capacity = match (edge, claimed) {
        (Some(edge), Some(claimed)) if edge.agrees_with(claimed) => Some(claimed),
        (Some(_), Some(claimed)) if moved.is_some() => Some(claimed),
        (Some(edge), _) => Some(edge.fits_bytes),
        (None, claimed) => claimed,
    };
    let noun = match (moved, edge) {
        (Some((low, high)), _) => {
            format!("between {} and {} are left", Bytes(low), Bytes(high))
        }
        (None, Some(edge)) => {
            format!("holds {}, no longer {}", Bytes(edge.fits_bytes), Bytes(edge.spills_bytes))
        }
        (None, None) => "size as claimed, no edge found".to_owned(),
    };
    level(report, TierKind::CpuCache, capacity, pages, &noun)
}

fn ram(report: &LevelReport, pages: &str, caches: &[CacheLevel], total: Option<Bytes>) -> Tier {
    let total = total.map(|bytes| bytes.0);
    let mut tier = level(report, TierKind::Ram, total, pages, "used memory");
    let claims = caches.iter().filter_map(|c| c.sysfs_bytes.max(c.cpuid_bytes));
    let cache = claims.max().unwrap_or(0);
    if report.size_bytes < TIMES_CACHE * cache && tier.grade == Grade::Measured {
        tier.grade = Grade::Inferred;
        tier.reason = Some(format!(
            "only {} could be used, and a cache of {} is claimed: part of this may be the cache",
            Bytes(report.size_bytes),
            Bytes(cache)
        ));
    }
    tier
}

fn new_memory(seen: &SurveyResults) -> Option<Tier> {
    let report = seen.faults.as_ref()?;
    let first = report.find(TouchMethod::Base, TouchPhase::First)?;
    let latency_ns = Some(Latency {
        median: first.p50_ns?,
        p50: first.p50_ns,
        p99: first.p99_ns,
        low: None,
        high: None,
        trials: first.touches as u32,
        discarded: 0,
        covers: Covers::WithinRun,
    });
    let huge = report.find(TouchMethod::Transparent, TouchPhase::First).map(|huge| {
        let each = huge.p50_ns.map(model::duration::show_ns).unwrap_or_default();
        format!("; on huge pages {each} for 2 MiB, {} GB/s", three_digits(huge.bytes_per_s / 1e9))
    });
    Some(Tier {
        latency_ns,
        method: format!(
            "first store to each of {} fresh 4 KiB pages{}",
            first.touches,
            huge.unwrap_or_default()
        ),
        grade: Grade::Measured,
        reason: None,
        ..Tier::unseen(NEW_MEMORY, TierKind::NewMemory, "")
    })
}

fn ram_disk(report: &RamDiskReport) -> Tier {
    Tier {
        capacity_bytes: report.free_bytes,
        latency_ns: report.random_read_ns.clone(),
        read_bytes_per_s: report.read_bytes_per_s.clone(),
        write_bytes_per_s: report.write_bytes_per_s.clone(),
        method: format!(
            "reads of 4 KiB, rates in calls of 1 MiB over a file of {}; size is what is free",
            Bytes(report.file_bytes)
        ),
        grade: Grade::Measured,
        reason: joined(report.notes.clone()),
        ..Tier::unseen(report.tier.clone(), TierKind::RamDisk, "")
    }
}

/// The page cache, as it served the first device's file.
fn page_cache(measured: &SurveyResults, available: Option<Bytes>) -> Option<Tier> {
    let mut devices = measured.devices.iter();
    let report = devices.find(|report| report.page_cache_bytes.is_some())?;
    Some(Tier {
        capacity_bytes: available.map(|bytes| bytes.0),
        latency_ns: report.page_cache_read_ns.clone(),
        read_bytes_per_s: report.page_cache_read_bytes_per_s.clone(),
        method: format!(
            "cached reads of 4 KiB and 1 MiB of {} on {}; size is what is available",
            Bytes(report.page_cache_bytes?),
            report.fs_type
        ),
        grade: Grade::Measured,
        reason: Some("writes to it end on the device".to_owned()),
        ..Tier::unseen("page cache", TierKind::PageCache, "")
    })
}

fn device(report: &DeviceReport) -> Tier {
    Tier {
        capacity_bytes: report.capacity_bytes,
        latency_ns: report.random_read_ns.clone(),
        read_bytes_per_s: report.read_bytes_per_s.clone(),
        write_bytes_per_s: report.write_bytes_per_s.clone(),
        method: format!(
            "random {} reads one at a time; rates in {} requests, {} deep, writes to stable \
             storage; file of {}; {}",
            Bytes(4096),
            Bytes(report.block_bytes),
            report.sequential_depth,
            Bytes(report.file_bytes),
            report.served_reason
        ),
        grade: grade(&report.random_read_ns, Grade::Measured),
        reason: joined(report.notes.iter().chain(&report.failure).cloned().collect()),
        ..Tier::unseen(report.tier.clone(), TierKind::Device, "")
    }
}

/// The grade of a tier whose latency is `seen`, if it is there.
fn grade<T>(latency: &Option<T>, seen: Grade) -> Grade {
    if latency.is_some() { seen } else { Grade::Unseen }
}

/// Reasons in one clause; `None` without any.
fn joined(reasons: Vec<String>) -> Option<String> {
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn swap_tier(area: &SwapArea) -> Tier {
    let kind = if area.compressed { TierKind::CompressedRam } else { TierKind::Swap };
    let name = area.path.trim_start_matches("/dev/");
    Tier {
        capacity_bytes: Some(area.size_bytes),
        latency_ns: area.latency_ns.clone(),
        method: "random 4 KiB reads of the swap area itself".to_owned(),
        grade: grade(&area.latency_ns, Grade::Inferred),
        reason: area.reason.clone(),
        ..Tier::unseen(format!("swap  {name}"), kind, "")
    }
}

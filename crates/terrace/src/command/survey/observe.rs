//! What the rules of `explain` are shown, from what the probes returned. Pure but
//! for the facts of the machine that it reads under the given root.

use super::places::Place;
use super::run::{Processor, Seen};
use super::swap::SwapTier;
use super::tiers;
use explain::observed::{
    CacheSeen, CopySeen, DepthSeen, DeviceSeen, FaultKind, FaultsSeen, NoiseSeen, Observed,
    PagesSeen, ProcessorSeen, RamDiskSeen, Recooled, SERVED_BY_DEVICE, SwapAreaSeen, SwapSeen,
    TranslationSeen,
};
use machine::Root;
use measure::faults::{FaultReport, FaultSeries, Phase, Way};
use measure::memory::latency::CacheLevel;
use measure::memory::levels::LevelReport;
use measure::storage::{DeviceReport, RamDiskReport, ServedBy};
use model::machine::MachineFacts;
use model::{Estimate, Tier};

/// Everything for the rules.
pub fn observed(
    seen: &Seen,
    tiers: &[Tier],
    swap: &[SwapTier],
    facts: &MachineFacts,
    root: &Root,
) -> Observed {
    let virtualized = facts.virtualization.is_some();
    let cached_read = seen
        .devices
        .iter()
        .find_map(|(_, report)| report.page_cache.as_ref()?.read_bytes_per_s.clone());
    Observed {
        copies: seen
            .levels
            .iter()
            .filter_map(|level| copy(level, seen, facts))
            .collect(),
        faults: seen
            .faults
            .as_ref()
            .map(|report| faults(report, virtualized)),
        caches: seen
            .ladder
            .iter()
            .flat_map(|ladder| ladder.caches.iter().map(cache))
            .collect(),
        pages: seen.granted.map(|granted| PagesSeen {
            thp_setting: facts.thp.clone(),
            asked_bytes: granted.bytes,
            granted_bytes: granted.huge_bytes,
        }),
        translation: translation(seen, virtualized),
        devices: seen
            .devices
            .iter()
            .map(|(place, report)| device(place, report, virtualized))
            .collect(),
        ram_disks: seen
            .ram_disks
            .iter()
            .map(|(place, report)| ram_disk(place, report, &cached_read, root))
            .collect(),
        processor: Some(processor(seen, facts)),
        swap: Some(swap_seen(swap, root)),
        noise: noise(seen, tiers),
    }
}

fn copy(level: &LevelReport, seen: &Seen, facts: &MachineFacts) -> Option<CopySeen> {
    let (libc, best) = (level.libc_copy.as_ref()?, level.copy.as_ref()?);
    let l3 = seen
        .ladder
        .as_ref()?
        .caches
        .iter()
        .find(|cache| cache.level == 3);
    Some(CopySeen {
        size_bytes: level.size_bytes / 2,
        libc: facts
            .libc
            .clone()
            .unwrap_or_else(|| "the C library".to_owned()),
        libc_bytes_per_s: libc.bytes_per_s.clone(),
        best_method: best.method.clone(),
        best_bytes_per_s: best.bytes_per_s.clone(),
        best_traffic_factor: best.traffic_factor,
        libc_traffic_factor: libc.traffic_factor,
        libc_l3_bytes: l3.and_then(|cache| cache.libc_bytes),
        beyond_caches: level.name == "RAM",
    })
}

fn faults(report: &FaultReport, virtualized: bool) -> FaultsSeen {
    let kind = |way, phase| report.find(way, phase).map(fault_kind);
    let again = |way| report.find(way, Phase::Again)?.p50_ns;
    FaultsSeen {
        base: kind(Way::Base, Phase::First),
        huge: kind(Way::Transparent, Phase::First),
        again_ns: again(Way::Base),
        huge_again_ns: again(Way::Transparent),
        recooled: recooled(report),
        virtualized,
    }
}

fn fault_kind(series: &FaultSeries) -> FaultKind {
    FaultKind {
        page_bytes: series.touch_bytes,
        faults: series.touches,
        p50_ns: series.p50_ns,
        p99_ns: series.p99_ns,
        modes: series.modes,
        bytes_per_s: series.bytes_per_s,
    }
}

/// Whether memory that was given back is slow again; judged on huge pages, since a
/// host takes memory back in blocks of that size.
fn recooled(report: &FaultReport) -> Option<Recooled> {
    let again = report.find(Way::Transparent, Phase::Again)?;
    let after = report.find(Way::Transparent, Phase::AfterWait)?;
    let slow = |series: &FaultSeries| series.slow_share(again.p50_ns);
    Some(Recooled {
        waited_s: report.waited_s,
        before_slow_share: slow(again)?,
        after_slow_share: slow(after)?,
        after_p50_ns: after.p50_ns,
        reported_to_host_bytes: report.reported_bytes,
    })
}

fn cache(level: &CacheLevel) -> CacheSeen {
    CacheSeen {
        level: level.level,
        measured: level.measured,
        sysfs_bytes: level.sysfs_bytes,
        cpuid_bytes: level.cpuid_bytes,
        libc_bytes: level.libc_bytes,
    }
}

fn translation(seen: &Seen, virtualized: bool) -> Option<TranslationSeen> {
    let found = seen.translation.as_ref()?.translation.as_ref()?;
    Some(TranslationSeen {
        size_bytes: found.size_bytes,
        base_ns: found.base_ns.clone(),
        huge_ns: found.huge_ns.clone(),
        virtualized,
    })
}

fn device(place: &Place, report: &DeviceReport, virtualized: bool) -> DeviceSeen {
    let disk = place.disk.as_ref();
    DeviceSeen {
        name: disk.map_or_else(|| place.mount.fs_type.clone(), |disk| disk.name.clone()),
        path: place.directory.display().to_string(),
        tier: place.name(),
        rotational: disk.and_then(|disk| disk.rotational),
        scheduler: disk.and_then(|disk| disk.scheduler.clone()),
        read_ahead_bytes: disk.and_then(|disk| disk.read_ahead_bytes),
        transport: disk.and_then(|disk| disk.transport.clone()),
        random_read_ns: report.latency_ns.clone(),
        depth: report
            .depths
            .iter()
            .map(|depth| DepthSeen {
                depth: depth.depth,
                block_bytes: depth.block_bytes,
                requests_per_s: depth.requests_per_s.median,
                bytes_per_s: depth.bytes_per_s.median,
                p50_ns: depth.latency.p50_ns,
            })
            .collect(),
        read_bytes_per_s: report.read_bytes_per_s.clone(),
        write_bytes_per_s: report.write_bytes_per_s.clone(),
        series_spread: report
            .read_bytes_per_s
            .as_ref()
            .and_then(|rate| rate.spread),
        served_by: served_word(report.served.by).to_owned(),
        raw_refused: report.raw_reason.clone(),
        raw_read_ns: report.raw.as_ref().and_then(|raw| raw.raw.latency()),
        virtualized,
        page_cache_read_bytes_per_s: report
            .page_cache
            .as_ref()
            .and_then(|cached| cached.read_bytes_per_s.clone()),
    }
}

/// The word that the rules know; empty where no counter tells.
fn served_word(by: ServedBy) -> &'static str {
    match by {
        // A host's cache answers for the device; comparing with the raw one is a rule's part.
        ServedBy::Device | ServedBy::HostCacheSuspected => SERVED_BY_DEVICE,
        ServedBy::PageCache | ServedBy::Both => "page cache",
        ServedBy::Ram => "RAM",
        ServedBy::Unknown => "",
    }
}

fn ram_disk(
    place: &Place,
    report: &RamDiskReport,
    cached_read: &Option<Estimate>,
    root: &Root,
) -> RamDiskSeen {
    RamDiskSeen {
        tier: tiers::ram_disk_name(place),
        path: place.directory.display().to_string(),
        read_bytes_per_s: report.cached.read_bytes_per_s.clone(),
        write_bytes_per_s: report.write_bytes_per_s.clone(),
        page_cache_read_bytes_per_s: cached_read.clone(),
        huge_setting: huge_setting(place).or_else(|| machine::memory::read(root).thp.shmem_enabled),
    }
}

/// The `huge=` option of a tmpfs mount, which overrides the machine's setting.
fn huge_setting(place: &Place) -> Option<String> {
    let options = place.mount.super_options.split(',');
    options
        .filter_map(|option| option.strip_prefix("huge="))
        .next_back()
        .map(str::to_owned)
}

fn processor(seen: &Seen, facts: &MachineFacts) -> ProcessorSeen {
    let counters: &Processor = &seen.processor;
    let cpus = f64::from(facts.online_cpus.max(1));
    ProcessorSeen {
        steal_share: counters
            .stolen_ns
            .map(|stolen| stolen as f64 / counters.wall_ns.max(1) as f64 / cpus),
        run_delay_share: seen.tally().run_delay_share(),
        periods: counters.periods.map(|(periods, _)| periods),
        throttled_periods: counters.periods.map(|(_, throttled)| throttled),
        throttled_s: counters.throttled_ns.map(|ns| ns as f64 / 1e9),
        quota_cores: counters.quota_cores,
        cgroup: counters.cgroup.clone(),
        usable_cpus: facts.usable_cpus,
        online_cpus: facts.online_cpus,
    }
}

fn swap_seen(areas: &[SwapTier], root: &Root) -> SwapSeen {
    SwapSeen {
        areas: areas
            .iter()
            .map(|area| SwapAreaSeen {
                path: area.path.clone(),
                device: area.disk.clone(),
                size_bytes: area.size_bytes,
                used_bytes: area.used_bytes,
                rotational: area.rotational,
                random_read_ns: area.latency_ns.as_ref().map(|latency| latency.median),
                compressed: area.compressed,
            })
            .collect(),
        memory_bytes: machine::memory::read(root).total.map_or(0, |total| total.0),
    }
}

/// The spread of every quantity that repeated trials gave.
fn noise(seen: &Seen, tiers: &[Tier]) -> Vec<NoiseSeen> {
    let mut noise = Vec::new();
    for tier in tiers {
        let level = seen
            .levels
            .iter()
            .find(|level| tiers::level_name(&level.name) == tier.name);
        let one_at_a_time = seen
            .devices
            .iter()
            .filter(|(place, _)| place.name() == tier.name)
            .find_map(|(_, report)| report.depths.iter().find(|depth| depth.depth == 1))
            .map(|depth| &depth.requests_per_s);
        let latency = level
            .and_then(|level| level.load_ns.as_ref())
            .or(one_at_a_time);
        let quantities = [
            ("latency", latency),
            ("read", tier.read_bytes_per_s.as_ref()),
            ("write", tier.write_bytes_per_s.as_ref()),
            ("copy", tier.copy_bytes_per_s.as_ref()),
        ];
        for (quantity, estimate) in quantities {
            let Some((estimate, spread)) = estimate.and_then(|e| Some((e, e.spread?))) else {
                continue;
            };
            noise.push(NoiseSeen {
                tier: tier.name.clone(),
                quantity: quantity.to_owned(),
                spread,
                kept: estimate.trials,
                discarded: estimate.discarded,
                run_delay_share: level.and_then(|level| level.tally.run_delay_share()),
                steal_share: level.and_then(|level| level.tally.steal_share()),
            });
        }
    }
    noise
}

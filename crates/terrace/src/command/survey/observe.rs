//! The input of the rules of `explain`, and the points of the page's pictures, from what the probes
//! returned. Pure: devices, RAM disks, caches, swap and the processor's load are passed on as they
//! are; points are sorted into curves, none is computed and none is measured for a picture.

use super::run::{SurveyResults, SurveyedMachine};
use super::tiers;
use crate::output::prose::grouped;
use explain::observed::{
    CopySeen, FaultKind, FaultsSeen, NoiseSeen, Observed, PagesSeen, Recooled, SwapSeen,
    TranslationSeen,
};
use measure::faults::{FaultReport, FaultSeries, TouchMethod, TouchPhase};
use measure::memory::PageKind;
use measure::memory::latency::LatencyReport;
use measure::memory::levels::LevelReport;
use model::Tier;
use model::curves::{
    CopyCurve, CopyPoint, Curves, DeviceRates, FaultHistogram, LatencyCurve, LatencyPoint,
};
use model::machine::MachineFacts;
use model::probe::RamDiskReport;

/// Everything for the rules.
pub fn observed(seen: &SurveyResults, tiers: &[Tier], machine: &SurveyedMachine) -> Observed {
    let facts = &machine.facts;
    let virtualized = facts.virtualization.is_some();
    let mut devices = seen.devices.iter();
    let cached_read = devices.find_map(|report| report.page_cache_read_bytes_per_s.clone());
    let ladder = seen.ladder.as_ref();
    Observed {
        copies: seen.levels.iter().filter_map(|level| copy(level, seen, facts)).collect(),
        faults: seen.faults.as_ref().map(|report| faults(report, virtualized)),
        caches: ladder.map_or_else(Vec::new, |ladder| ladder.caches.clone()),
        pages: seen.granted.map(|granted| PagesSeen {
            thp_setting: facts.thp.clone(),
            asked_bytes: granted.bytes,
            granted_bytes: granted.huge_bytes,
        }),
        translation: translation(seen, virtualized),
        devices: seen.devices.clone(),
        ram_disks: seen
            .ram_disks
            .iter()
            .map(|report| RamDiskReport {
                page_cache_read_bytes_per_s: cached_read.clone(),
                ..report.clone()
            })
            .collect(),
        processor: Some(seen.processor.clone()),
        swap: Some(SwapSeen {
            areas: seen.swap.clone(),
            memory_bytes: machine.memory.total.map_or(0, |total| total.0),
        }),
        noise: noise(seen, tiers),
    }
}

fn copy(level: &LevelReport, seen: &SurveyResults, facts: &MachineFacts) -> Option<CopySeen> {
    let (libc, best) = (level.libc_copy.as_ref()?, level.copy.as_ref()?);
    let l3 = seen.ladder.as_ref()?.caches.iter().find(|cache| cache.level == 3);
    Some(CopySeen {
        size_bytes: level.size_bytes / 2,
        libc: facts.libc.clone().unwrap_or_else(|| "the C library".to_owned()),
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
    let again = |way| report.find(way, TouchPhase::Again)?.p50_ns;
    FaultsSeen {
        base: kind(TouchMethod::Base, TouchPhase::First),
        huge: kind(TouchMethod::Transparent, TouchPhase::First),
        again_ns: again(TouchMethod::Base),
        huge_again_ns: again(TouchMethod::Transparent),
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
    let again = report.find(TouchMethod::Transparent, TouchPhase::Again)?;
    let after = report.find(TouchMethod::Transparent, TouchPhase::AfterWait)?;
    let slow = |series: &FaultSeries| series.slow_share(again.p50_ns);
    Some(Recooled {
        waited_s: report.waited_s,
        before_slow_share: slow(again)?,
        after_slow_share: slow(after)?,
        after_p50_ns: after.p50_ns,
        reported_to_host_bytes: report.reported_bytes,
    })
}

fn translation(seen: &SurveyResults, virtualized: bool) -> Option<TranslationSeen> {
    let found = seen.translation.as_ref()?.translation.as_ref()?;
    Some(TranslationSeen {
        size_bytes: found.size_bytes,
        base_ns: found.base_ns.clone(),
        huge_ns: found.huge_ns.clone(),
        virtualized,
    })
}

/// The spread of every quantity that repeated trials gave.
fn noise(seen: &SurveyResults, tiers: &[Tier]) -> Vec<NoiseSeen> {
    let mut noise = Vec::new();
    for tier in tiers {
        let level = seen.levels.iter().find(|level| tiers::level_name(&level.name) == tier.name);
        let one_at_a_time = seen
            .devices
            .iter()
            .find(|report| report.tier == tier.name)
            .and_then(|report| report.random_reads_per_s.as_ref());
        let latency = level.and_then(|level| level.load_ns.as_ref()).or(one_at_a_time);
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

/// Every curve that `seen` has points of.
pub fn curves(seen: &SurveyResults) -> Curves {
    let ladder = seen.ladder.as_ref();
    Curves {
        copies: copies(seen),
        latencies: latencies(&[ladder, seen.translation.as_ref()]),
        caches: ladder.map_or_else(Vec::new, |ladder| ladder.caches.clone()),
        faults: fault_histograms(seen),
        devices: seen
            .devices
            .iter()
            .map(|report| DeviceRates {
                tier: report.tier.clone(),
                reads: report.reads.clone(),
                writes: report.writes.clone(),
            })
            .collect(),
    }
}

/// A copy goes from one half of a level's size to the other.
fn copies(seen: &SurveyResults) -> Vec<CopyCurve> {
    let copies = seen.levels.iter().flat_map(|level| {
        level.copies.iter().map(|reached| {
            let bytes_per_s = reached.bytes_per_s.clone();
            (reached.method.clone(), CopyPoint { size_bytes: level.size_bytes / 2, bytes_per_s })
        })
    });
    let curves = grouped(copies).into_iter();
    curves.map(|(method, points)| CopyCurve { method, points }).collect()
}

/// The ladder, and the one size at which both kinds of pages were measured for longer: its
/// points stand in for the ladder's.
fn latencies(reports: &[Option<&LatencyReport>]) -> Vec<LatencyCurve> {
    let rows = reports.iter().flatten().flat_map(|report| &report.rows);
    let curve = |pages: PageKind| {
        let mut points: Vec<LatencyPoint> = Vec::new();
        for row in rows.clone().filter(|row| row.pages == pages) {
            let Some(load_ns) = row.load_ns.clone() else {
                continue;
            };
            points.retain(|point| point.size_bytes != row.size_bytes);
            points.push(LatencyPoint {
                size_bytes: row.size_bytes,
                load_ns,
                noisy: row.noisy.clone(),
            });
        }
        LatencyCurve { pages: pages.to_string(), points }
    };
    [PageKind::Transparent, PageKind::Base]
        .map(curve)
        .into_iter()
        .filter(|curve| !curve.points.is_empty())
        .collect()
}

fn fault_histograms(seen: &SurveyResults) -> Vec<FaultHistogram> {
    let series = seen.faults.iter().flat_map(|report| &report.series);
    series
        .map(|series| FaultHistogram {
            pages: series.way.name().to_owned(),
            phase: series.phase.name().to_owned(),
            touch_bytes: series.touch_bytes,
            bars: series.bars.clone(),
        })
        .collect()
}

//! The points of the survey's pictures, from what the probes returned. Pure: points are
//! sorted into curves, none is computed and none is measured for a picture.

use super::run::SurveyResults;
use measure::memory::PageKind;
use measure::memory::latency::LatencyReport;
use model::curves::{
    CopyCurve, CopyPoint, Curves, DeviceRates, FaultHistogram, LatencyCurve, LatencyPoint,
};

/// Every curve that `seen` has points of.
pub fn curves(seen: &SurveyResults) -> Curves {
    let ladder = seen.ladder.as_ref();
    Curves {
        copies: copies(seen),
        latencies: latencies(&[ladder, seen.translation.as_ref()]),
        caches: ladder.map_or_else(Vec::new, |ladder| ladder.caches.clone()),
        faults: faults(seen),
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
    let mut curves: Vec<CopyCurve> = Vec::new();
    for level in &seen.levels {
        for reached in &level.copies {
            let point = CopyPoint {
                size_bytes: level.size_bytes / 2,
                bytes_per_s: reached.bytes_per_s.clone(),
            };
            match curves.iter_mut().find(|c| c.method == reached.method) {
                Some(curve) => curve.points.push(point),
                None => {
                    curves.push(CopyCurve { method: reached.method.clone(), points: vec![point] })
                }
            }
        }
    }
    curves
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

fn faults(seen: &SurveyResults) -> Vec<FaultHistogram> {
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

//! The page and the row of `measure iolat`: ioping's closing lines, then percentiles,
//! who served the requests, and the histogram.

use super::{PageText, Report, histogram, interrupted};
use crate::output::csv::Sheet;
use crate::output::figure::{self, Digits, precise_rate, precise_time};
use crate::output::json::word;
use measure::storage::iolat::EndReason;
use measure::storage::latency::RequestLatency;
use measure::storage::{IolatReport, Served, ServedBy, TargetFacts, TargetKind};
use model::Bytes;
use model::error_chain;
use serde::Serialize;

/// Warm-up requests on the page; the JSON has all of them.
const SHOWN_WARM_UP: usize = 4;

/// Requests one at a time, and who served them.
#[derive(Debug, Serialize)]
pub struct IolatResult {
    /// `-q`: a page without the histogram.
    #[serde(skip)]
    pub quiet: bool,
    #[serde(flatten)]
    pub report: IolatReport,
}

impl Report for IolatResult {
    const COMMAND: &'static str = "measure iolat";
    const SCHEMA: &'static str = "terrace.measure.iolat/1";

    fn write_page(&self, out: &mut PageText) {
        let report = &self.report;
        let requests = &report.requests;
        out.heading(&format!(
            "terrace measure iolat: {} of {}, {}, {}",
            operation(report.write),
            Bytes(report.request_bytes),
            word(&report.access),
            place(&report.target),
        ));
        out.sentence(&rates(
            requests.requests,
            report.region_bytes,
            requests.wall_s,
            requests.requests_per_s.zip(requests.bytes_per_s),
        ));
        latency_lines(out, &requests.latency);
        out.sentence(&served(&report.served));
        out.notes(warm_up(&requests.first_ns));
        out.notes(&report.notes);
        if !self.quiet {
            out.lines(|page| histogram(page, &requests.latency.bars));
        }
    }

    fn csv(&self) -> Option<String> {
        let sheet = Sheet::of(std::slice::from_ref(&self.report))
            .column("path", |report| report.target.path.display().to_string())
            .column("access", |report| word(&report.access))
            .column("operation", |report| operation(report.write))
            .column("request_bytes", |report| report.request_bytes)
            .column("region_bytes", |report| report.region_bytes)
            .column("requests", |report| report.requests.requests)
            .column("failed", |report| report.requests.failed)
            .column("bytes", |report| report.requests.bytes)
            .column("wall_s", |report| report.requests.wall_s)
            .column("requests_per_s", |report| report.requests.requests_per_s)
            .column("bytes_per_s", |report| report.requests.bytes_per_s)
            .latency(|report| &report.requests.latency)
            .column("served_by", |report| word(&report.served.by));
        Some(sheet.render())
    }

    fn shortfall(&self) -> Option<String> {
        let failure = self.report.requests.failure.as_ref();
        let failed = failure.map(|error| {
            format!("{} requests failed: {}", self.report.requests.failed, error_chain(error))
        });
        failed.or_else(|| interrupted(self.report.requests.ended == EndReason::Interrupted))
    }

    fn written_bytes(&self) -> u64 {
        let report = &self.report;
        let is_filled = report.target.kind == TargetKind::Directory;
        let filled_bytes = if is_filled { report.region_bytes } else { 0 };
        filled_bytes + if report.write { report.requests.bytes } else { 0 }
    }
}

/// The closing line of ioping, and the percentiles that it lacks.
pub(super) fn latency_lines(out: &mut PageText, latency: &RequestLatency) {
    let it = latency;
    let moments = [it.min_ns, it.mean_ns, it.max_ns, it.deviation_ns];
    let percentiles = [it.p50_ns, it.p90_ns, it.p99_ns, it.p99_9_ns];
    for (names, times) in [("min/avg/max/mdev", moments), ("p50/p90/p99/p99.9", percentiles)] {
        out.sentence(&format!("{names} = {}", times.map(precise_time).join(" / ")));
    }
}

/// `1000 requests over 64 MiB in 10 s, 98 a second, 402 kB/s`; `per_s` are requests and
/// bytes.
pub(super) fn rates(
    requests: u64,
    region_bytes: u64,
    wall_s: f64,
    per_s: Option<(f64, f64)>,
) -> String {
    let counted = format!(
        "{requests} requests over {} in {}",
        Bytes(region_bytes),
        precise_time(wall_s * 1e9),
    );
    match per_s {
        Some((requests_per_s, bytes_per_s)) => format!(
            "{counted}, {} a second, {}",
            figure::number(requests_per_s, Digits::Three),
            precise_rate(bytes_per_s)
        ),
        None => counted,
    }
}

/// The first requests, which are in none of the other figures.
fn warm_up(first_ns: &[u64]) -> Option<String> {
    let times = first_ns.iter().take(SHOWN_WARM_UP).map(|&ns| precise_time(ns as f64));
    let first: Vec<String> = times.collect();
    (!first.is_empty()).then(|| format!("not counted, to warm up: {}", first.join(", ")))
}

/// `served by the device: 1000 of 1000 requests reached vda`.
pub(super) fn served(served: &Served) -> String {
    let by = match served.by {
        ServedBy::Device => "by the device",
        ServedBy::PageCache => "by the page cache",
        ServedBy::Both => "partly by the device, partly by the page cache",
        ServedBy::Ram => "by RAM: the file system lives there",
        ServedBy::Unknown => "by something unknown",
    };
    format!("served {by}: {}", served.reason)
}

/// `/srv (ext4 on vdb)`.
pub(super) fn place(target: &TargetFacts) -> String {
    let path = target.path.display();
    match (&target.file_system, &target.disk) {
        (Some(system), Some(disk)) => format!("{path} ({system} on {disk})"),
        (Some(only), None) | (None, Some(only)) => format!("{path} ({only})"),
        (None, None) => path.to_string(),
    }
}

fn operation(write: bool) -> &'static str {
    if write { "write" } else { "read" }
}

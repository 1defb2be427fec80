//! The page and the rows of `measure iolat`: the pace first, since it decides; ioping's closing
//! lines and percentiles of each pace, who served the requests, and the histograms.

use super::{PageText, Report, histogram, runs_note, stopped};
use crate::output::csv::Sheet;
use crate::output::figure::{self, Digits, or_absent, percent, precise_rate, precise_time};
use crate::output::json::word;
use measure::storage::iolat::EndReason;
use measure::storage::latency::RequestLatency;
use measure::storage::{PaceReport, PacesReport, Served, ServedBy, TargetFacts};
use model::{Bytes, Estimate, error_chain};
use serde::Serialize;

/// Warm-up requests on the page; the JSON has all of them.
const SHOWN_WARM_UP: usize = 4;

/// A pace that answers this many times slower than back to back is said to. Picked: runs of one
/// pace differ by less.
const SLOWER: f64 = 1.5;

/// Requests one at a time, and who served them.
#[derive(Debug, Serialize)]
pub struct IolatResult {
    /// `-q`: a page without the histogram.
    #[serde(skip)]
    pub quiet: bool,
    #[serde(flatten)]
    pub report: PacesReport,
}

impl Report for IolatResult {
    const COMMAND: &'static str = "measure iolat";
    const SCHEMA: &'static str = "terrace.measure.iolat/2";

    fn write_page(&self, out: &mut PageText) {
        let report = &self.report;
        let paces: Vec<String> = report.paces.iter().map(pace).collect();
        out.heading(&format!(
            "terrace measure iolat: {}: {} of {}, {}, {}",
            paces.join(", then "),
            operation(report.write),
            Bytes(report.request_bytes),
            word(&report.access),
            place(&report.target),
        ));
        for of_pace in &report.paces {
            let requests = &of_pace.requests;
            let rates = rates(
                requests.requests,
                report.region_bytes,
                requests.wall_s,
                requests.requests_per_s.as_ref().zip(requests.bytes_per_s),
            );
            out.sentence(&format!("{}: {rates}", pace(of_pace)));
            latency_lines(out, &requests.latency);
        }
        out.sentences(asleep(&report.paces));
        out.sentence(&served(&report.served));
        runs_note(out, &report.runs);
        let first_ns = report.paces.iter().flat_map(|pace| &pace.requests.first_ns);
        out.notes(warm_up(first_ns.copied()));
        out.notes(&report.notes);
        if !self.quiet {
            for of_pace in &report.paces {
                if report.paces.len() > 1 {
                    out.sentence(&format!("{}:", pace(of_pace)));
                }
                out.lines(|page| histogram(page, &of_pace.requests.latency.bars));
            }
        }
    }

    fn csv(&self) -> Option<String> {
        let report = &self.report;
        let sheet = Sheet::of(&report.paces)
            .column("path", |_| report.target.path.display().to_string())
            .column("access", |_| word(&report.access))
            .column("operation", |_| operation(report.write))
            .column("request_bytes", |_| report.request_bytes)
            .column("region_bytes", |_| report.region_bytes)
            .column("interval_s", |pace| pace.interval_s)
            .column("requests", |pace| pace.requests.requests)
            .column("failed", |pace| pace.requests.failed)
            .column("bytes", |pace| pace.requests.bytes)
            .column("wall_s", |pace| pace.requests.wall_s)
            .rate("requests_per_s", |pace| pace.requests.requests_per_s.as_ref())
            .column("bytes_per_s", |pace| pace.requests.bytes_per_s)
            .latency(|pace| &pace.requests.latency)
            .column("runs", |_| report.runs.counted)
            .column("served_by", |_| word(&report.served.by));
        Some(sheet.render())
    }

    fn shortfall(&self) -> Option<String> {
        let failed = self.report.paces.iter().find_map(|pace| {
            let failure = pace.requests.failure.as_ref()?;
            let many = pace.requests.failed;
            Some(format!("{many} requests failed: {}", error_chain(failure)))
        });
        let is_interrupted =
            self.report.paces.iter().any(|pace| pace.requests.ended == EndReason::Interrupted);
        failed.or_else(|| stopped(is_interrupted, &self.report.runs))
    }

    fn written_bytes(&self) -> u64 {
        self.report.written_bytes
    }
}

/// `back to back`, `one request each 10 ms`.
fn pace(of: &PaceReport) -> String {
    match of.interval_s {
        0.0 => "back to back".to_owned(),
        interval_s => format!("one request each {}", precise_time(interval_s * 1e9)),
    }
}

/// Says that paced requests take longer, where they do.
fn asleep(paces: &[PaceReport]) -> Option<String> {
    let [first, .., last] = paces else { return None };
    let times = last.requests.latency.p50_ns? / first.requests.latency.p50_ns?;
    (first.interval_s == 0.0 && times > SLOWER).then(|| {
        format!(
            "{} takes {} times as long as back to back: what falls asleep in between (processor, \
             device, host) must wake up first",
            pace(last),
            figure::number(times, Digits::Two),
        )
    })
}

/// The closing line of ioping, and the percentiles that it lacks.
pub(super) fn latency_lines(out: &mut PageText, latency: &RequestLatency) {
    let it = latency;
    let moments = [it.min_ns, it.mean_ns, it.max_ns, it.deviation_ns];
    let percentiles = [it.p50_ns, it.p90_ns, it.p99_ns, it.p99_9_ns];
    let error = or_absent(it.relative_error(), percent);
    out.sentence(&format!("min/avg/max/mdev = {}", moments.map(precise_time).join(" / ")));
    out.sentence(&format!(
        "p50/p90/p99/p99.9 = {}, p50 +- {error}",
        percentiles.map(precise_time).join(" / ")
    ));
}

/// `1000 requests over 64 MiB in 10 s, 98 a second (+- 2 %), 402 kB/s`; `per_s` are requests and
/// bytes.
pub(super) fn rates(
    requests: u64,
    region_bytes: u64,
    wall_s: f64,
    per_s: Option<(&Estimate, f64)>,
) -> String {
    let counted = format!(
        "{requests} requests over {} in {}",
        Bytes(region_bytes),
        precise_time(wall_s * 1e9),
    );
    match per_s {
        Some((requests_per_s, bytes_per_s)) => format!(
            "{counted}, {} a second{}, {}",
            figure::number(requests_per_s.median, Digits::Three),
            requests_per_s
                .relative_error()
                .map(|error| format!(" (+- {})", percent(error)))
                .unwrap_or_default(),
            precise_rate(bytes_per_s)
        ),
        None => counted,
    }
}

/// The first requests, which are in none of the other figures.
fn warm_up(first_ns: impl Iterator<Item = u64>) -> Option<String> {
    let times = first_ns.take(SHOWN_WARM_UP).map(|ns| precise_time(ns as f64));
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

//! The page and the row of `measure iolat --iodepth`: requests a second, percentiles,
//! the processor time of a request, who served them, and the histogram.

use super::iolat::{latency_lines, place, rates, served};
use super::{PageText, Report, histogram, interrupted, runs_note};
use crate::output::csv::Sheet;
use crate::output::figure;
use crate::output::json::word;
use measure::runs::{Repeatable, Runs};
use measure::storage::{RandomReport, Served, TargetFacts};
use model::Bytes;
use model::error_chain;
use serde::{Deserialize, Serialize};

/// Random reads with several requests in flight, and who served them.
#[derive(Debug, Serialize, Deserialize)]
pub struct RandomResult {
    /// `-q`: a page without the histogram.
    #[serde(skip)]
    pub quiet: bool,
    pub target: TargetFacts,
    /// Bytes of the region that the requests went to.
    pub region_bytes: u64,
    pub random: RandomReport,
    pub served: Served,
    /// Bytes written to files, all of them removed again.
    pub written_bytes: u64,
    /// How many runs of the probe are in it.
    pub runs: Runs,
    pub notes: Vec<String>,
}

impl Repeatable for RandomResult {
    fn has_failed(&self) -> bool {
        self.random.failure.is_some()
    }

    fn combine(mut reports: Vec<Self>, runs: Runs) -> Self {
        let written_bytes = reports.iter().map(|report| report.written_bytes).sum();
        let served = Served::of_runs(reports.iter().map(|report| &report.served));
        let first = reports.remove(0);
        let others = reports.into_iter().map(|report| report.random);
        let random = RandomReport::between_runs(first.random, others, runs.span_s);
        let served = served.unwrap_or(first.served);
        Self { random, served, written_bytes, runs, ..first }
    }
}

impl Report for RandomResult {
    const COMMAND: &'static str = "measure iolat";
    const SCHEMA: &'static str = "terrace.measure.iolat/2";

    fn write_page(&self, out: &mut PageText) {
        let random = &self.random;
        out.heading(&format!(
            "terrace measure iolat: random reads of {}, {} in flight, direct, {}",
            Bytes(random.block_bytes),
            random.depth,
            place(&self.target)
        ));
        out.sentence(&rates(
            random.requests,
            self.region_bytes,
            random.wall_s,
            random.requests_per_s.as_ref().zip(random.bytes_per_s),
        ));
        latency_lines(out, &random.latency);
        out.sentences(
            random
                .cpu_ns_per_request
                .map(|ns| format!("{} of processor time a request", figure::precise_time(ns))),
        );
        out.sentence(&served(&self.served));
        out.notes(&self.notes);
        runs_note(out, &self.runs);
        if !self.quiet {
            out.lines(|page| histogram(page, &random.latency.bars));
        }
    }

    fn csv(&self) -> Option<String> {
        let sheet = Sheet::of(std::slice::from_ref(self))
            .column("path", |report| report.target.path.display().to_string())
            .column("depth", |report| report.random.depth)
            .column("request_bytes", |report| report.random.block_bytes)
            .column("region_bytes", |report| report.region_bytes)
            .column("requests", |report| report.random.requests)
            .column("wall_s", |report| report.random.wall_s)
            .rate("requests_per_s", |report| report.random.requests_per_s.as_ref())
            .column("bytes_per_s", |report| report.random.bytes_per_s)
            .latency(|report| &report.random.latency)
            .column("cpu_ns_per_request", |report| report.random.cpu_ns_per_request)
            .column("served_by", |report| word(&report.served.by));
        Some(sheet.render())
    }

    fn shortfall(&self) -> Option<String> {
        let failed = self.random.failure.as_ref().map(|error| {
            format!("ended after {} requests: {}", self.random.requests, error_chain(error))
        });
        failed.or_else(|| interrupted(sys::interrupt::requested()))
    }

    fn written_bytes(&self) -> u64 {
        self.written_bytes
    }
}

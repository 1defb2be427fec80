//! The page and the row of `measure iolat --iodepth`: requests a second, percentiles,
//! the processor time of a request, who served them, and the histogram.

use super::iolat::{latency_lines, place, rates, served};
use super::{Report, heading, histogram, interrupted, note, sentence};
use crate::output::Page;
use crate::output::csv::Sheet;
use crate::output::figure::{self, Digits};
use crate::output::json::word;
use measure::storage::{RandomReport, Served, TargetFacts, TargetKind};
use model::Bytes;
use model::error_chain;
use serde::Serialize;

/// Random reads with several requests in flight, and who served them.
#[derive(Debug, Serialize)]
pub struct RandomResult {
    /// `-q`: a page without the histogram.
    #[serde(skip)]
    pub quiet: bool,
    pub target: TargetFacts,
    /// Bytes of the region that the requests went to.
    pub region_bytes: u64,
    pub random: RandomReport,
    pub served: Served,
    pub notes: Vec<String>,
}

impl Report for RandomResult {
    const COMMAND: &'static str = "measure iolat";
    const SCHEMA: &'static str = "terrace.measure.iolat/1";

    fn page(&self, page: Page) -> String {
        let random = &self.random;
        let title = format!(
            "terrace measure iolat: random reads of {}, {} in flight, direct, {}",
            Bytes(random.block_bytes),
            random.depth,
            place(&self.target)
        );
        let mut text = heading(page, &title);
        let line = rates(
            random.requests,
            self.region_bytes,
            random.wall_s,
            random.requests_per_s.zip(random.bytes_per_s),
        );
        text.push_str(&sentence(page, &line));
        text.push_str(&latency_lines(page, &random.latency));
        if let Some(cpu_ns) = random.cpu_ns_per_request {
            let cpu = figure::time(cpu_ns, Digits::Three);
            text.push_str(&sentence(page, &format!("{cpu} of processor time a request")));
        }
        text.push_str(&served(page, &self.served));
        for line in &self.notes {
            text.push_str(&note(page, line));
        }
        if !self.quiet {
            text.push_str(&histogram(page, &random.latency.bars));
        }
        text
    }

    fn csv(&self) -> Option<String> {
        let sheet = Sheet::of(std::slice::from_ref(self))
            .column("path", |report| report.target.path.display().to_string())
            .column("depth", |report| report.random.depth)
            .column("request_bytes", |report| report.random.block_bytes)
            .column("region_bytes", |report| report.region_bytes)
            .column("requests", |report| report.random.requests)
            .column("wall_s", |report| report.random.wall_s)
            .column("requests_per_s", |report| report.random.requests_per_s)
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
        match self.target.kind {
            TargetKind::Directory => self.region_bytes,
            TargetKind::File | TargetKind::BlockDevice => 0,
        }
    }
}

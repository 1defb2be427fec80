//! The page and the row of `measure iolat --iodepth`: requests a second, percentiles,
//! the processor time of a request, who served them, and the histogram.

use super::iolat::{latency_lines, place, rates, served, served_key};
use super::{Report, heading, histogram, interrupted, note, sentence};
use crate::output::Page;
use crate::output::csv::Sheet;
use crate::output::figure::{self, Digits};
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
    /// What was asked.
    pub target: TargetFacts,
    /// Bytes of the region that the requests went to.
    pub region_bytes: u64,
    /// The figures.
    pub random: RandomReport,
    /// Who served them.
    pub served: Served,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl Report for RandomResult {
    const NAME: &'static str = "iolat";

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
            text.push_str(&sentence(
                page,
                &format!("{cpu} of processor time a request"),
            ));
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

    fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(&[
            "path",
            "depth",
            "request_bytes",
            "region_bytes",
            "requests",
            "wall_s",
            "requests_per_s",
            "bytes_per_s",
            "min_ns",
            "mean_ns",
            "max_ns",
            "deviation_ns",
            "p50_ns",
            "p90_ns",
            "p99_ns",
            "p99_9_ns",
            "cpu_ns_per_request",
            "served_by",
        ]);
        let (random, latency) = (&self.random, &self.random.latency);
        sheet.row(&[
            &self.target.path.display().to_string(),
            &random.depth,
            &random.block_bytes,
            &self.region_bytes,
            &random.requests,
            &random.wall_s,
            &random.requests_per_s,
            &random.bytes_per_s,
            &latency.min_ns,
            &latency.mean_ns,
            &latency.max_ns,
            &latency.deviation_ns,
            &latency.p50_ns,
            &latency.p90_ns,
            &latency.p99_ns,
            &latency.p99_9_ns,
            &random.cpu_ns_per_request,
            &served_key(self.served.by),
        ]);
        sheet
    }

    fn shortfall(&self) -> Option<String> {
        let failed = self.random.failure.as_ref().map(|error| {
            format!(
                "ended after {} requests: {}",
                self.random.requests,
                error_chain(error)
            )
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

//! Random reads with several requests in flight.
//!
//! One ring: all ended requests are taken, replaced and handed over a few at a time, and the kernel
//! is asked to wait only when none has ended. A request's time runs from being queued to being seen
//! ended; requests that are seen ended together share one reading of the clock.

use super::latency::RequestLatency;
use super::order::RequestOrder;
use super::{failed_request, of_one_run, per_second, seconds};
use crate::{Budget, Error, ErrorKind, Result};
use model::estimate::Better;
use model::{Estimate, Histogram, statistics};
use serde::{Deserialize, Serialize};
use std::fs::File;
use sys::uring::{Completion, IoRequest, Queue};

/// Requests handed to the kernel in one call. Measured at depth 32 on a virtio disk against fio,
/// which hands over each alone: all at once lets the device run dry (0.83x its requests a second),
/// 4 at a time is even with it at two thirds of the processor time.
const HANDED_OVER: u64 = 4;

/// What random reads at one depth gave.
#[derive(Debug, Serialize, Deserialize)]
pub struct RandomReport {
    /// Requests kept in flight.
    pub depth: u32,
    /// Bytes of each.
    pub block_bytes: u64,
    /// Requests that succeeded.
    pub requests: u64,
    /// Wall time, seconds.
    pub wall_s: f64,
    /// Requests a second; `None` where no time passed.
    pub requests_per_s: Option<Estimate>,
    /// Bytes a second.
    pub bytes_per_s: Option<f64>,
    /// From queued to seen ended.
    pub latency: RequestLatency,
    /// Processor time of the process for each request, nanoseconds.
    pub cpu_ns_per_request: Option<f64>,
    /// The first failure, which ended it.
    #[serde(with = "super::failure_text")]
    pub failure: Option<Error>,
}

impl RandomReport {
    /// The requests of several runs: of `first` and `others`, the last of which began `span_s`
    /// after `first`.
    pub fn between_runs(first: Self, others: impl IntoIterator<Item = Self>, span_s: f64) -> Self {
        let mut runs: Vec<Self> = std::iter::once(first).chain(others).collect();
        let latencies: Vec<&RequestLatency> = runs.iter().map(|run| &run.latency).collect();
        let latency = RequestLatency::between_runs(&latencies, span_s);
        let rates = runs.iter().filter_map(|run| run.requests_per_s.as_ref());
        let requests_per_s = Estimate::between_runs(rates, Better::Higher, span_s);
        let cpu: Vec<f64> = runs.iter().filter_map(|run| run.cpu_ns_per_request).collect();
        let requests = runs.iter().map(|run| run.requests).sum();
        let wall_s = runs.iter().map(|run| run.wall_s).sum();
        let failure = runs.iter_mut().find_map(|run| run.failure.take());
        let first = runs.swap_remove(0);
        let block_bytes = first.block_bytes as f64;
        Self {
            requests,
            wall_s,
            bytes_per_s: requests_per_s.as_ref().map(|rate| rate.median * block_bytes),
            requests_per_s,
            latency,
            cpu_ns_per_request: statistics::median(&statistics::sorted(&cpu)),
            failure,
            ..first
        }
    }
}

/// Keeps `depth` reads of `block_bytes` in flight over the first `region_bytes` of
/// `file` (opened with `O_DIRECT` for the device's own figures) until `budget` ends.
///
/// # Errors
/// `Impossible` where io_uring is missing or forbidden; `Usage` where the region is
/// smaller than one block. A failed request ends the run and is in the report.
pub fn random_read(
    file: &File,
    region_bytes: u64,
    depth: u32,
    block_bytes: u64,
    budget: &Budget,
) -> Result<RandomReport> {
    let mut reader = RandomReader::new(file, region_bytes, depth, block_bytes)?;
    let mut histogram = Histogram::new();
    let run = reader.run(budget, &mut histogram);
    Ok(run.report(&histogram, depth, block_bytes))
}

/// Random reads that can be run again and again, each time going on in the order.
#[derive(Debug)]
pub(super) struct RandomReader {
    queue: Queue,
    /// Its index in the queue.
    file: usize,
    order: RequestOrder,
    turn: u64,
    block_bytes: usize,
}

/// The figures of one run.
#[derive(Debug)]
pub(super) struct RandomRun {
    pub(super) requests: u64,
    pub(super) wall_ns: u64,
    pub(super) cpu_ns: Option<u64>,
    pub(super) failure: Option<Error>,
}

impl RandomRun {
    fn report(self, histogram: &Histogram, depth: u32, block_bytes: u64) -> RandomReport {
        let requests_per_s = per_second(self.requests, self.wall_ns);
        RandomReport {
            depth,
            block_bytes,
            requests: self.requests,
            wall_s: seconds(self.wall_ns),
            requests_per_s: requests_per_s.and_then(|rate| of_one_run(rate, Better::Higher)),
            bytes_per_s: requests_per_s.map(|rate| rate * block_bytes as f64),
            latency: RequestLatency::from(histogram),
            cpu_ns_per_request: (self.cpu_ns)
                .filter(|_| self.requests > 0)
                .map(|cpu| cpu as f64 / self.requests as f64),
            failure: self.failure,
        }
    }
}

impl RandomReader {
    pub(super) fn new(file: &File, region: u64, depth: u32, block_bytes: u64) -> Result<Self> {
        let impossible = |e: sys::Error| Error::io(ErrorKind::Impossible, e.operation, &e.source);
        if block_bytes == 0 || depth == 0 || region < block_bytes {
            let reason = "block and depth must be at least 1 and the region at least one block";
            return Err(Error::new(ErrorKind::Usage, "read at random", reason));
        }
        let block = usize::try_from(block_bytes).unwrap_or(usize::MAX);
        let mut queue = Queue::new(depth, block).map_err(impossible)?;
        let file = queue.add_file(file).map_err(impossible)?;
        Ok(Self {
            queue,
            file,
            order: RequestOrder::new(
                region / block_bytes,
                sys::random::seed().map_err(impossible)?,
            ),
            turn: 0,
            block_bytes: block,
        })
    }

    /// Runs until `budget` ends, counting each request's time in `histogram`.
    pub(super) fn run(&mut self, budget: &Budget, histogram: &mut Histogram) -> RandomRun {
        let before = histogram.len();
        let cpu_before = super::cpu_ns();
        let start_ns = sys::clock::now_ns();
        let mut failure = None;
        loop {
            if failure.is_none() && !budget.over() {
                failure = self.refill().err();
            }
            if self.queue.in_flight() == 0 {
                break;
            }
            let mut ended = false;
            while let Some(done) = self.queue.complete() {
                ended = true;
                match self.time_ns(done) {
                    Ok(ns) => histogram.add(ns),
                    Err(error) => {
                        failure.get_or_insert(error);
                    }
                }
            }
            if !ended && let Err(e) = self.queue.enter(1) {
                failure = Some(failed_request("wait for requests of", None, &e.source));
                break;
            }
        }
        let wall_ns = sys::clock::now_ns() - start_ns;
        RandomRun {
            requests: histogram.len() - before,
            wall_ns,
            cpu_ns: super::cpu_ns_since(cpu_before),
            failure,
        }
    }

    /// Queues a request for every idle slot; the last few start with the next wait.
    fn refill(&mut self) -> Result<()> {
        while let Some(slot) = self.queue.idle_slot() {
            let offset = self.order.at(self.turn) * self.block_bytes as u64;
            self.turn += 1;
            let request = IoRequest::read(self.file, offset, self.block_bytes);
            self.queue
                .submit(slot, request)
                .map_err(|e| failed_request("queue a request", Some(offset), &e.source))?;
            // Shallow queues go in with the wait: handing over apart would be a second
            // system call for one request in four.
            let is_deep = self.queue.depth() as u64 > HANDED_OVER;
            if is_deep && self.turn.is_multiple_of(HANDED_OVER) {
                self.queue
                    .enter(0)
                    .map_err(|e| failed_request("hand over requests", Some(offset), &e.source))?;
            }
        }
        Ok(())
    }

    fn time_ns(&self, done: Completion) -> Result<u64> {
        match done.result {
            Ok(bytes) if bytes == self.block_bytes => Ok(done.completed_ns - done.submitted_ns),
            Ok(_) => Err(shortened(done.request.offset)),
            Err(e) => Err(failed_request("read", Some(done.request.offset), &e.source)),
        }
    }
}

fn shortened(offset: u64) -> Error {
    let operation = format!("read at byte {offset} of");
    Error::new(ErrorKind::Failed, operation, "the file became shorter meanwhile")
}

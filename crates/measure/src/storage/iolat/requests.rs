//! The requests themselves: one at a time on any device, timed by two readings of the
//! clock with the bare call in between, counted until the plan or the budget ends.

use super::{IolatPlan, MOST_FAILURES, MOST_RAW};
use crate::storage::latency::RequestLatency;
use crate::storage::order::RequestOrder;
use crate::storage::target::StorageTarget;
use crate::storage::{failed_request, fill, of_one_run, per_second, seconds};
use crate::{Budget, Error, ErrorKind, Result};
use model::device::BlockDevice;
use model::estimate::Better;
use model::{Estimate, Histogram};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use sys::memory::AlignedBuffer;

/// The longest sleep between looks at the budget, so that Ctrl-C is obeyed at once.
const NAP: Duration = Duration::from_millis(50);

/// Why the requests ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// As many as planned.
    Count,
    /// The budget.
    Budget,
    /// The person asked for it.
    Interrupted,
    /// Too many failures, or one that leaves nothing to measure.
    Failure,
}

/// The figures of a run of requests.
#[derive(Debug, Serialize, Deserialize)]
pub struct RequestReport {
    /// Why they ended.
    pub ended: EndReason,
    /// Times of the warm-up requests, nanoseconds; in none of the other figures.
    pub first_ns: Vec<u64>,
    /// Requests that succeeded, warm-up not counted.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Bytes that the successful ones moved.
    pub bytes: u64,
    /// Their times.
    pub latency: RequestLatency,
    /// Requests a second of the wall time, pauses included: what was done.
    pub requests_per_s: Option<Estimate>,
    /// Bytes a second of that time.
    pub bytes_per_s: Option<f64>,
    /// Wall time of everything, pauses included, seconds.
    pub wall_s: f64,
    /// Every single time in order, nanoseconds, if asked for.
    pub raw_ns: Option<Vec<u64>>,
    /// The first failure.
    #[serde(with = "crate::storage::failure_text")]
    pub failure: Option<Error>,
}

impl RequestReport {
    /// The requests of several runs, the last of which began `span_s` after the first.
    pub(super) fn between_runs(mut runs: Vec<Self>, span_s: f64) -> Option<Self> {
        let latencies: Vec<&RequestLatency> = runs.iter().map(|run| &run.latency).collect();
        let latency = RequestLatency::between_runs(&latencies, span_s);
        let rates = runs.iter().filter_map(|run| run.requests_per_s.as_ref());
        let requests_per_s = Estimate::between_runs(rates, Better::Higher, span_s);
        let sum = |count: fn(&Self) -> u64| runs.iter().map(count).sum::<u64>();
        let (requests, failed, bytes) =
            (sum(|run| run.requests), sum(|run| run.failed), sum(|run| run.bytes));
        let wall_s = runs.iter().map(|run| run.wall_s).sum();
        let first_ns = runs.iter().flat_map(|run| run.first_ns.iter().copied()).collect();
        let is = |reason| runs.iter().any(|run| run.ended == reason);
        let ended = [EndReason::Failure, EndReason::Interrupted].into_iter().find(|why| is(*why));
        let failure = runs.iter_mut().find_map(|run| run.failure.take());
        let first = runs.into_iter().next()?;
        let request_bytes = bytes as f64 / requests.max(1) as f64;
        Some(Self {
            ended: ended.unwrap_or(first.ended),
            bytes_per_s: requests_per_s.as_ref().map(|rate| rate.median * request_bytes),
            latency,
            requests_per_s,
            requests,
            failed,
            bytes,
            wall_s,
            first_ns,
            failure,
            ..first
        })
    }
}

/// One request at a time on any device.
#[derive(Debug)]
pub struct Prober<D> {
    device: D,
    order: RequestOrder,
    turn: u64,
    buffer: AlignedBuffer,
    write: bool,
    seed: u64,
}

impl<D: BlockDevice> Prober<D> {
    /// A prober of the first `region_bytes` of `device`; `plan` says which requests.
    ///
    /// # Errors
    /// `Impossible` where the buffer does not fit into memory.
    pub fn new(device: D, region_bytes: u64, plan: &IolatPlan, seed: u64) -> Result<Self> {
        let bytes = plan.request.0 as usize;
        let mut buffer = AlignedBuffer::new(bytes)
            .map_err(|e| Error::io(ErrorKind::Impossible, "prepare a buffer", &e.source))?;
        // Also touches every page, so that no request pays for a fault.
        fill::fill(&mut buffer, seed, u64::from(u32::MAX));
        Ok(Self {
            device,
            order: RequestOrder::new(region_bytes / plan.request.0.max(1), seed),
            turn: 0,
            buffer,
            write: plan.write,
            seed,
        })
    }

    /// Whether the next request is the first of a new pass over the region.
    pub fn starts_pass(&self) -> bool {
        self.turn.is_multiple_of(self.order.blocks())
    }

    /// Makes the next request; its time in nanoseconds.
    ///
    /// # Errors
    /// `Failed` when the device fails or ends early; the order goes on behind it.
    pub fn request(&mut self) -> Result<u64> {
        let bytes = self.buffer.len();
        let offset = self.order.at(self.turn) * bytes as u64;
        self.turn += 1;
        if self.write {
            fill::stamp(&mut self.buffer, self.seed, offset);
        }
        let start_ns = sys::clock::now_ns();
        let answer = if self.write {
            self.device.write_at(&self.buffer, offset)
        } else {
            self.device.read_at(&mut self.buffer, offset)
        };
        let time_ns = sys::clock::now_ns() - start_ns;
        match answer {
            Ok(moved) if moved == bytes => Ok(time_ns),
            Ok(_) => Err(Error::new(
                ErrorKind::Failed,
                format!("transfer all of {bytes} bytes at byte {offset} of"),
                "it ends before: it became shorter or is full",
            )),
            Err(e) => Err(failed_request(e.operation, Some(offset), &e.source)),
        }
    }
}

/// Runs the plan on `prober`. `evicted_each_pass` is dropped from the cache before the
/// order repeats, so that a cold request stays one.
pub fn run<D: BlockDevice>(
    prober: &mut Prober<D>,
    plan: &IolatPlan,
    budget: &Budget,
    evicted_each_pass: Option<&StorageTarget>,
) -> RequestReport {
    let mut seen = Seen::new(plan);
    let start = Instant::now();
    let mut started: u32 = 0;
    let ended = loop {
        if budget.over() {
            break if budget.interrupted() { EndReason::Interrupted } else { EndReason::Budget };
        }
        if plan.count.is_some_and(|count| seen.histogram.len() + seen.failed >= count) {
            break EndReason::Count;
        }
        if let Some(target) = evicted_each_pass
            && started > 0
            && prober.starts_pass()
        {
            // Its success was noted before the first pass.
            let _ = target.evict();
        }
        let due = plan.interval.saturating_mul(started);
        if !sleep_until(start, due, budget) {
            continue;
        }
        started = started.saturating_add(1);
        seen.take(prober.request(), u64::from(started) <= plan.warmup);
        if seen.failed >= MOST_FAILURES {
            break EndReason::Failure;
        }
    };
    seen.into_requests(ended, start.elapsed(), plan)
}

/// Sleeps until `due` after `start`; false when the budget ended first.
fn sleep_until(start: Instant, due: Duration, budget: &Budget) -> bool {
    loop {
        let wait = due.saturating_sub(start.elapsed());
        if wait.is_zero() {
            return true;
        }
        if budget.over() {
            return false;
        }
        std::thread::sleep(wait.min(NAP).min(budget.left()));
    }
}

/// What has been seen so far; everything is allocated before the first request.
struct Seen {
    histogram: Histogram,
    first_ns: Vec<u64>,
    raw_ns: Option<Vec<u64>>,
    failed: u64,
    failure: Option<Error>,
}

impl Seen {
    fn new(plan: &IolatPlan) -> Self {
        let room = |count: u64| usize::try_from(count).unwrap_or(MOST_RAW).min(MOST_RAW);
        Self {
            histogram: Histogram::new(),
            first_ns: Vec::with_capacity(room(plan.warmup)),
            raw_ns: (plan.raw).then(|| Vec::with_capacity(room(plan.count.unwrap_or(u64::MAX)))),
            failed: 0,
            failure: None,
        }
    }

    fn take(&mut self, answer: Result<u64>, warmup: bool) {
        match answer {
            Ok(time_ns) if warmup => self.first_ns.push(time_ns),
            Ok(time_ns) => {
                self.histogram.add(time_ns);
                if let Some(raw) = self.raw_ns.as_mut().filter(|raw| raw.len() < MOST_RAW) {
                    raw.push(time_ns);
                }
            }
            Err(error) => {
                self.failed += 1;
                self.failure.get_or_insert(error);
            }
        }
    }

    fn into_requests(self, ended: EndReason, wall: Duration, plan: &IolatPlan) -> RequestReport {
        let requests = self.histogram.len();
        let bytes = requests * plan.request.0;
        let wall_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
        // The first requests took their part of the time.
        let made_per_s = per_second(requests + self.first_ns.len() as u64, wall_ns);
        let requests_per_s = made_per_s.filter(|_| requests > 0);
        RequestReport {
            ended,
            first_ns: self.first_ns,
            requests,
            failed: self.failed,
            bytes,
            latency: RequestLatency::from(&self.histogram),
            requests_per_s: requests_per_s.and_then(|rate| of_one_run(rate, Better::Higher)),
            bytes_per_s: requests_per_s.map(|rate| rate * plan.request.0 as f64),
            wall_s: seconds(wall_ns),
            raw_ns: self.raw_ns,
            failure: self.failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::device::{Alignment, DeviceError};
    use std::cell::RefCell;
    use std::ops::Range;

    /// Remembers the offsets it was asked for; fails on every `fails_every`th.
    struct Recorder {
        asked: RefCell<Vec<u64>>,
        fails_every: usize,
    }

    impl BlockDevice for Recorder {
        fn size_bytes(&self) -> std::result::Result<u64, DeviceError> {
            Ok(1 << 20)
        }
        fn alignment(&self) -> Alignment {
            Alignment::NONE
        }
        fn read_at(
            &self,
            buffer: &mut [u8],
            offset: u64,
        ) -> std::result::Result<usize, DeviceError> {
            self.asked.borrow_mut().push(offset);
            if self.fails_every > 0 && self.asked.borrow().len().is_multiple_of(self.fails_every) {
                return Err(DeviceError {
                    operation: "read",
                    offset: Some(offset),
                    source: std::io::Error::from_raw_os_error(5),
                });
            }
            Ok(buffer.len())
        }
        fn write_at(&self, buffer: &[u8], _: u64) -> std::result::Result<usize, DeviceError> {
            Ok(buffer.len())
        }
        fn discard(&self, _: Range<u64>) -> std::result::Result<(), DeviceError> {
            Ok(())
        }
        fn flush(&self) -> std::result::Result<(), DeviceError> {
            Ok(())
        }
    }

    fn probe(plan: &IolatPlan, fails_every: usize, limit: Duration) -> (RequestReport, Vec<u64>) {
        let device = Recorder { asked: RefCell::default(), fails_every };
        let mut prober = Prober::new(&device, 1 << 20, plan, 5).unwrap();
        let requests = run(&mut prober, plan, &Budget::of(limit), None);
        (requests, device.asked.into_inner())
    }

    fn back_to_back(count: Option<u64>) -> IolatPlan {
        IolatPlan { count, interval: Duration::ZERO, ..IolatPlan::default() }
    }

    #[test]
    fn the_count_leaves_the_warm_up_out_and_no_block_comes_twice() {
        let plan = IolatPlan { raw: true, ..back_to_back(Some(255)) };
        let (requests, mut asked) = probe(&plan, 0, Duration::from_secs(60));
        assert_eq!(requests.ended, EndReason::Count);
        assert_eq!((requests.requests, requests.first_ns.len()), (255, 1));
        assert_eq!(requests.raw_ns.unwrap().len(), 255);
        asked.sort_unstable();
        assert!(asked.iter().enumerate().all(|(i, &o)| o == i as u64 * 4096));
    }

    #[test]
    fn failures_are_counted_and_end_it_when_there_are_too_many() {
        let (requests, _) = probe(&back_to_back(Some(20)), 7, Duration::from_secs(60));
        assert_eq!((requests.requests, requests.failed), (17, 3));
        assert_eq!(requests.ended, EndReason::Count);
        let failure = requests.failure.unwrap();
        assert_eq!(failure.kind, ErrorKind::Failed);
        let (requests, asked) = probe(&back_to_back(None), 1, Duration::from_secs(60));
        assert_eq!(requests.ended, EndReason::Failure);
        assert_eq!(asked.len() as u64, MOST_FAILURES);
        assert_eq!(requests.latency.p50_ns, None);
    }

    #[test]
    fn the_interval_is_kept_and_the_budget_ends_it() {
        let plan = IolatPlan { interval: Duration::from_millis(20), ..back_to_back(Some(4)) };
        let (requests, _) = probe(&plan, 0, Duration::from_secs(60));
        // 5 requests, warm-up included, have 4 pauses between them.
        assert!(requests.wall_s >= 0.080, "{}", requests.wall_s);
        let plan = IolatPlan { interval: Duration::from_secs(3600), ..plan };
        let (requests, _) = probe(&plan, 0, Duration::from_millis(30));
        assert_eq!((requests.ended, requests.requests), (EndReason::Budget, 0));
    }
}

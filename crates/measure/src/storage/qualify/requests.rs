//! Random requests, one at a time, as a cache makes them: reads of 4 KiB, writes of 512 KiB, and
//! the reads while another thread makes such writes.
//!
//! Nothing but the request is timed. Requests in sequence are a trial; the rate of a trial is
//! exact, because each request's own time is known.

use super::candidate::Candidate;
use crate::storage::failed_request;
use crate::storage::iolat::{IolatPlan, Prober};
use crate::storage::latency::RequestLatency;
use crate::storage::served::{Direction, ServedWatch};
use crate::{Budget, Error, ErrorKind, Result};
use model::Bytes;
use model::Histogram;
use model::estimate::{Better, Estimate};
use model::qualification::{READ_BLOCK_BYTES, RequestFigures, WRITE_BLOCK_BYTES};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use sys::device::FileDevice;

/// Trials of a step, where there are requests enough for as many.
const TRIALS: usize = 20;
/// How many single times are kept at most: a minute of the fastest devices.
const MOST_TIMES: usize = 8 << 20;

/// Reads of 4 KiB at random places of the first `bytes` bytes.
pub(super) fn read(
    candidate: &Candidate<'_>,
    bytes: u64,
    budget: &Budget,
) -> Result<RequestFigures> {
    timed(candidate, bytes, Direction::Read, budget, &mut |_| true)
}

/// Writes of 512 KiB at random places of the first `bytes` bytes of the own file, as many bytes at
/// most; adds to `written` what it wrote.
pub(super) fn write(
    candidate: &Candidate<'_>,
    bytes: u64,
    budget: &Budget,
    written: &mut u64,
) -> Result<RequestFigures> {
    candidate.target.require_own()?;
    let mut last = 0;
    let figures = timed(candidate, bytes, Direction::Write, budget, &mut |requests| {
        *written += (requests - last) * WRITE_BLOCK_BYTES;
        last = requests;
        requests * WRITE_BLOCK_BYTES < bytes
    })?;
    sys::file::sync_data(candidate.target.file())
        .map_err(|error| failed_request("sync", None, &error.source))?;
    Ok(figures)
}

/// The reads while another thread writes, until that has written `bytes` bytes; adds to `written`
/// what it wrote.
pub(super) fn read_while_writing(
    candidate: &Candidate<'_>,
    bytes: u64,
    budget: &Budget,
    written: &mut u64,
) -> Result<RequestFigures> {
    candidate.target.require_own()?;
    let mut writer = prober(candidate, bytes, Direction::Write)?;
    let (is_over, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let figures = thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut answer = Ok(());
            while answer.is_ok() && !is_over.load(Relaxed) && count.load(Relaxed) < bytes {
                answer = writer.request().map(drop);
                count.fetch_add(if answer.is_ok() { WRITE_BLOCK_BYTES } else { 0 }, Relaxed);
            }
            is_over.store(true, Relaxed);
            answer
        });
        let mut goes_on = |_| !is_over.load(Relaxed);
        let figures = timed(candidate, bytes, Direction::Read, budget, &mut goes_on);
        is_over.store(true, Relaxed);
        writing.join().unwrap_or_else(|_| {
            let reason = "the thread that wrote panicked";
            Err(Error::new(ErrorKind::Failed, "write while reading", reason))
        })?;
        figures
    });
    *written += count.load(Relaxed);
    figures
}

fn prober(
    candidate: &Candidate<'_>,
    bytes: u64,
    direction: Direction,
) -> Result<Prober<FileDevice>> {
    let device = candidate.direct()?;
    let write = direction == Direction::Write;
    let plan = IolatPlan { request: Bytes(block_bytes(direction)), write, ..IolatPlan::default() };
    candidate.target.check_direct(device.file(), plan.request, write)?;
    Prober::new(device, bytes, &plan, candidate.target.draw_seed()?)
}

fn block_bytes(direction: Direction) -> u64 {
    match direction {
        Direction::Read => READ_BLOCK_BYTES,
        Direction::Write => WRITE_BLOCK_BYTES,
    }
}

/// Requests until the budget ends or `goes_on`, called with the number until then, returns false.
fn timed(
    candidate: &Candidate<'_>,
    bytes: u64,
    direction: Direction,
    budget: &Budget,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<RequestFigures> {
    let block_bytes = block_bytes(direction);
    let mut prober = prober(candidate, bytes, direction)?;
    let watch = ServedWatch::start(candidate.root, &candidate.target);
    let mut times_ns: Vec<u64> = Vec::new();
    let mut histogram = Histogram::new();
    while !budget.over() && times_ns.len() < MOST_TIMES && goes_on(times_ns.len() as u64) {
        let ns = prober.request()?;
        histogram.add(ns);
        times_ns.push(ns);
    }
    let requests = times_ns.len() as u64;
    let served = watch.finish(direction, requests * block_bytes);
    Ok(RequestFigures {
        block_bytes,
        requests,
        bytes_per_s: rate(&times_ns, block_bytes),
        service_ns: RequestLatency::from(&histogram).latency(),
        mean_ns: histogram.mean_ns(),
        served_by: served.by.answered().to_owned(),
        served_reason: served.reason,
    })
}

/// The rate of trials of as many requests each; those left over at the end are in none.
fn rate(times_ns: &[u64], block_bytes: u64) -> Option<Estimate> {
    let each = (times_ns.len() / TRIALS).max(1);
    let trial = |times: &[u64]| {
        let ns = times.iter().sum::<u64>().max(1);
        (times.len() as u64 * block_bytes) as f64 * 1e9 / ns as f64
    };
    let rates: Vec<f64> = times_ns.chunks_exact(each).map(trial).collect();
    Estimate::from_values(&rates, Better::Higher, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_bytes_over_the_time_of_its_requests() {
        let times: Vec<u64> = (0..400).map(|_| 1_000_000).collect();
        let rate_of = |times: &[u64]| rate(times, 4096).unwrap();
        assert_eq!((rate_of(&times).median, rate_of(&times).trials), (4_096_000.0, 20));
        let few = rate_of(&times[..3]);
        assert_eq!((few.trials, few.low), (3, None));
        assert_eq!(rate(&[], 4096), None);
    }
}

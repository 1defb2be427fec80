//! Sequential reads waited for a slow device piece by piece: the read-ahead is small.
//!
//! The requests are as large as the read-ahead, few are in flight, and each takes long. A
//! device that is full instead has many in flight, and gains nothing.

use super::device::{Direction, Traffic, busiest};
use super::run_view::{ratio, series_of};
use super::waits::ReadWait;
use super::{RunVerdict, RunView};
use crate::verdict::NoFinding;
use crate::wording::{count, times};
use model::duration::show_ns;
use model::explanation::Cause;
use model::{Bytes, Evidence, Finding, Grade};

/// From here on a read-ahead is not small. Picked: 2 MiB are read in a stride by all but
/// the widest arrays.
const SMALL_BYTES: u64 = 1 << 20;

/// Requests of this share of the read-ahead on show that it sets their size.
const LEAST_FILLED: f64 = 0.6;

/// A device that answers faster gains little. Picked: the processor needs about as long
/// for the data.
const LEAST_LATENCY_NS: f64 = 1e6;

/// More requests than this in flight fill a device. Picked: read-ahead keeps two.
const MOST_IN_FLIGHT: f64 = 4.0;

/// Fewer requests say nothing.
const LEAST_REQUESTS: u64 = 100;

pub(super) fn check(run: &RunView) -> RunVerdict {
    let ReadWait::Ns { ns, .. } = run.read_wait() else {
        return Err(NoFinding::Nothing);
    };
    let traffic =
        busiest(run, Direction::Read).filter(|_| run.hurts(ns)).ok_or(NoFinding::Nothing)?;
    let ahead = traffic.facts.and_then(|facts| facts.read_ahead_bytes).ok_or(NoFinding::Nothing)?;
    let request = traffic.request_bytes();
    let measured = Evidence::new("mean read", request, "bytes", "/proc/diskstats")
        .seen_in(series_of(&traffic.evidence));
    if !is_small(run, &traffic, ahead) {
        return Err(NoFinding::Cleared(measured));
    }
    let claim = format!(
        "Reads of {} came {} at a time: read-ahead is {}, {} reads of {}",
        traffic.place(),
        Bytes(request as u64),
        Bytes(ahead),
        count(traffic.requests),
        show_ns(traffic.latency_ns().unwrap_or(0.0)),
    );
    let setting = format!("/sys/block/{}/queue/read_ahead_kb", traffic.name);
    let evidence = vec![
        measured,
        Evidence::bytes("read-ahead", ahead, setting.clone()),
        Evidence::new(
            "reads in flight",
            in_flight(run, &traffic.name).unwrap_or(0.0),
            "count",
            "/proc/diskstats",
        )
        .seen_in(["weighted_ns", "io_ns"].map(|what| format!("disk.{}.{what}", traffic.name))),
    ];
    let finding = Finding::new(Grade::Inferred, claim, evidence).remedy(format!(
        "A larger read-ahead: try {} times as much in {setting}. Risk: random reads of mapped \
         files fetch more than they need.",
        times(8.0),
    ));
    Ok(Cause::new(Some(ns), finding))
}

fn is_small(run: &RunView, traffic: &Traffic, ahead: u64) -> bool {
    let room = traffic.facts.and_then(|facts| facts.max_request_bytes);
    let request = traffic.request_bytes();
    (1..SMALL_BYTES).contains(&ahead)
        && traffic.requests >= LEAST_REQUESTS
        && request >= ahead as f64 * LEAST_FILLED
        && room.is_none_or(|room| room > ahead)
        && traffic.latency_ns().is_some_and(|ns| ns >= LEAST_LATENCY_NS)
        && in_flight(run, &traffic.name).is_some_and(|n| n <= MOST_IN_FLIGHT)
}

/// Requests in flight while the device worked, on average.
fn in_flight(run: &RunView, device: &str) -> Option<f64> {
    let weighted = run.growth(&format!("disk.{device}.weighted_ns"))?;
    let busy = run.growth(&format!("disk.{device}.io_ns"))?;
    (busy > 0).then(|| ratio(weighted as f64, busy as f64))
}

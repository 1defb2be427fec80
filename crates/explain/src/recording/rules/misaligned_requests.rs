//! Requests that do not fit the blocks of their medium.
//!
//! A disk that takes 512 bytes at a time often keeps them in blocks of 4,096: a write inside
//! of a block makes it read that block first, a read gets all of it. Events tell which
//! requests began or ended inside of one; their share of the device's requests is their share
//! of the waits.

use super::device::{Direction, Traffic, busiest};
use super::run_view::{part_of, ratio};
use super::{RunVerdict, RunView};
use crate::verdict::{NoFinding, clear_count};
use crate::wording::{count, long_time};
use model::explanation::Cause;
use model::{Bytes, Evidence, Finding, Grade};

/// Fewer happen by chance. Picked.
const LEAST_REQUESTS: u64 = 64;

/// The requests in one direction.
struct Misaligned<'a> {
    direction: Direction,
    traffic: Traffic<'a>,
    requests: u64,
    ns: u64,
    counted: Evidence,
}

pub(super) fn check(run: &RunView) -> RunVerdict {
    let both = [Direction::Read, Direction::Write].map(|direction| misaligned(run, direction));
    let worst =
        both.into_iter().flatten().max_by_key(|found| found.ns).ok_or(NoFinding::Nothing)?;
    if worst.requests < LEAST_REQUESTS || !run.hurts(worst.ns) {
        return clear_count(Some(worst.counted), "requests");
    }
    let (requests, effect) = match worst.direction {
        Direction::Read => ("reads", "it reads whole ones"),
        Direction::Write => ("writes", "it must read a block before it can write a part"),
    };
    let block = worst.traffic.facts.and_then(|facts| facts.physical_block_bytes);
    let blocks = block.map_or("blocks".to_owned(), |bytes| format!("blocks of {}", Bytes(bytes)));
    let claim = format!(
        "{} {requests} do not fit the {blocks} of {}, {} of waiting: {effect}",
        count(worst.requests),
        worst.traffic.name,
        long_time(worst.ns as f64),
    );
    let finding =
        Finding::new(Grade::Inferred, claim, [worst.counted]).and(worst.traffic.evidence).remedy(
            "Align partitions, files and direct I/O to the block, and ask for whole blocks. Risk: \
             larger requests move more bytes.",
        );
    Ok(Cause::new(Some(worst.ns), finding))
}

/// What of the device that was busiest this way did not fit; `None` if not counted.
fn misaligned<'a>(run: &RunView<'a>, direction: Direction) -> Option<Misaligned<'a>> {
    let traffic = busiest(run, direction)?;
    let (name, waited) = match direction {
        Direction::Read => ("reads", run.read_wait_ns()),
        Direction::Write => ("writes", run.write_wait_ns().unwrap_or(0)),
    };
    let series = format!("trace.block.{}.misaligned_{name}", traffic.name);
    let requests = run.growth(&series)?;
    let share = ratio(requests as f64, traffic.requests as f64);
    Some(Misaligned {
        direction,
        requests,
        ns: part_of(waited, share),
        counted: run.evidence(&series, requests as f64),
        traffic,
    })
}

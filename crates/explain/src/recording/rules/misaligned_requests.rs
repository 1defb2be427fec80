//! Requests that do not fit the blocks of their medium.
//!
//! A disk that takes 512 bytes at a time often keeps them in blocks of 4,096: a write inside
//! of a block makes it read that block first, a read gets all of it. Events tell which
//! requests began or ended inside of one; their share of the device's requests is their share
//! of the waits.

use super::accused::Accused;
use super::case::{clear_count, part_of, ratio};
use super::device::{Traffic, Way, busiest};
use super::{Case, Rank, Rule, Verdict, reads_from_device, writes_to_device};
use crate::wording::{count, long_time};
use model::{Bytes, Evidence, Grade};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: "misaligned_requests",
    suspect: "misaligned requests",
    within: &["reads_from_device", "small_sync_writes", "writes_to_device"],
    rank: Rank::Timed,
    check,
};

/// Fewer are nobody's habit. Picked.
const LEAST_REQUESTS: u64 = 64;

/// The requests in one direction.
struct Misaligned<'a> {
    way: Way,
    traffic: Traffic<'a>,
    requests: u64,
    ns: u64,
    counted: Evidence,
}

fn check(case: &Case) -> Verdict {
    let found = [Way::Read, Way::Write].map(|way| misaligned(case, way));
    let worst = found.into_iter().flatten().max_by_key(|found| found.ns);
    let Some(worst) = worst else {
        return Verdict::Silent;
    };
    if worst.requests < LEAST_REQUESTS || !case.hurts(worst.ns) {
        return clear_count(Some(worst.counted), "requests");
    }
    let (requests, effect) = match worst.way {
        Way::Read => ("reads", "it reads whole ones"),
        Way::Write => ("writes", "it must read a block before it can write a part"),
    };
    let facts = worst.traffic.facts;
    let block = facts.and_then(|facts| facts.physical_block_bytes);
    let blocks = match block {
        Some(bytes) => format!("blocks of {}", Bytes(bytes)),
        None => "blocks".to_owned(),
    };
    let claim = format!(
        "{} {requests} do not fit the {blocks} of {}, {} of waiting: {effect}",
        count(worst.requests),
        worst.traffic.name,
        long_time(worst.ns as f64),
    );
    let mut evidence = vec![worst.counted];
    evidence.extend(worst.traffic.evidence.iter().cloned());
    Accused::new(RULE.id, Some(worst.ns), Grade::Inferred, claim, evidence)
        .remedy(
            "Align partitions, files and direct I/O to the block, and ask for whole blocks. Risk: \
             larger requests move more bytes.",
        )
        .blame()
}

/// What of the device that was busiest this way did not fit; `None` where nobody counted.
fn misaligned<'a>(case: &Case<'a>, way: Way) -> Option<Misaligned<'a>> {
    let traffic = busiest(case, way)?;
    let (name, waited) = match way {
        Way::Read => ("reads", reads_from_device::waited_ns(case)),
        Way::Write => ("writes", writes_to_device::waited(case).unwrap_or(0)),
    };
    let series = format!("trace.block.{}.misaligned_{name}", traffic.name);
    let requests = case.grew(&series)?;
    let share = ratio(requests as f64, traffic.requests as f64);
    Some(Misaligned {
        way,
        requests,
        ns: part_of(waited, share),
        counted: case.evidence(&series, requests as f64),
        traffic,
    })
}

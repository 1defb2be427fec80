//! The suite `warm`: how fast memory that was pushed out comes back, beside demand, `swapoff` and a
//! read in the order of addresses.
//!
//! Everything but `noting` and `beside` happens in a guest of [`crate::vm`]: whole-machine pressure
//! by `terrace hog`, disks modelled by service time. The program of the guest is the example
//! `warm-guest`; it hands back a line of JSON for each way. The guest is emulated, so only figures
//! that a disk decides count.

use std::iter;

use serde_json::Value;

use super::record::{Record, Series, Target};
use super::{Measure, Session, SuiteRequest};
use crate::error::Error;

mod anonymous;
pub(super) mod beside;
mod databases;
mod guest;
mod noting;
mod others;
mod recovery;
mod short;

use guest::Guest;

/// Parts on the host's own processors, in the order of work, with their function.
const ON_THE_HOST: &[(&str, Measure)] = &[("noting", noting::measure), ("beside", beside::measure)];

/// Parts that need a guest, likewise.
const IN_A_GUEST: &[(&str, MeasureInGuest)] = &[
    ("scattered", anonymous::scattered),
    ("contiguous", anonymous::contiguous),
    ("fast", anonymous::fast),
    ("mapped", others::mapped),
    ("snapshot", others::snapshot),
    ("sqlite", databases::sqlite),
    ("postgres", databases::postgres),
    ("recovery", recovery::measure),
    ("short", short::measure),
];

type MeasureInGuest = fn(&Guest, &mut Session) -> Result<(), Error>;

/// What a slow disk's part is multiplied by to be tried in a minute.
const QUICK_PART: u64 = 4;

/// Runs the parts that are asked for.
///
/// # Errors
/// When a program is missing or fails, or the guest gives no figures.
pub(super) fn run(session: &mut Session) -> Result<(), Error> {
    if session.request.is_quick {
        session.record.notes.push("quick: a quarter of the size, to try".to_owned());
    }
    session.run(ON_THE_HOST)?;
    let mut parts = IN_A_GUEST.iter().filter(|(name, _)| session.request.includes(name)).peekable();
    if parts.peek().is_none() {
        return Ok(());
    }
    let guest = Guest::build(session)?;
    let wanted: Vec<_> = parts.collect();
    wanted.into_iter().try_for_each(|(_, measure)| measure(&guest, session))
}

/// `mib`, or the part of it that a quick run takes.
fn scaled(request: &SuiteRequest, mib: u64) -> u64 {
    if request.is_quick { mib / QUICK_PART } else { mib }
}

/// The number at `key` of every line of `way`.
fn values(lines: &[Value], way: &str, key: &str) -> Vec<f64> {
    let of_way = lines.iter().filter(|line| line["way"] == way);
    of_way.map(|line| line[key].as_f64().unwrap_or(f64::NAN)).collect()
}

/// One row of what the tool's own way gave.
fn alone(
    record: &mut Record,
    lines: &[Value],
    (what, unit, key): (&str, &'static str, &str),
    target: Option<Target>,
) -> Result<(), Error> {
    record.add_alone(what, unit, Series::new("terrace", &values(lines, "restore", key)), target)
}

/// One row for each of `peers`: how many times as fast as that way the tool's own is, in all. Where
/// that was tried more often in a guest, each time is held against the one of the peer there.
fn faster_than(
    record: &mut Record,
    lines: &[Value],
    what: &str,
    peers: &[(&str, &str, Option<Target>)],
) -> Result<(), Error> {
    let rates = |way: &str| -> Vec<f64> {
        values(lines, way, "total_s").iter().map(|seconds| seconds.recip()).collect()
    };
    for (way, name, target) in peers {
        let (ours, theirs) = (rates("restore"), rates(way));
        let times = ours.len() / theirs.len().max(1);
        let theirs: Vec<f64> =
            theirs.iter().flat_map(|rate| iter::repeat_n(*rate, times)).collect();
        let pair = (Series::new("terrace", &ours), Series::new(name, &theirs));
        record.add_against(&format!("{what}: over {name}"), "/s", pair, *target)?;
    }
    Ok(())
}

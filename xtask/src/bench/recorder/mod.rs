//! The suite `record`: what watching costs, beside other recorders, and what it costs the watched;
//! whether all events are seen; whether processor time is divided as by perf; how large a recording
//! is beside a desktop and while a compiler runs; whether samples are lost while memory is short;
//! and how long an hour takes to explain.
//!
//! The cost of a recorder is the time that its threads were on a processor, as the kernel
//! charged it in nanoseconds, over a window that opens after it has settled.

use std::time::Duration;

use super::Measure;
use super::peer::Peer;
use crate::error::Error;

mod contender;
mod cost;
pub(crate) mod crowd;
pub(crate) mod desktop;
pub(crate) mod events;
mod explained;
mod exported;
mod pcp;
mod pressure;
pub(in crate::bench) mod running;
mod size;
pub(crate) mod split;
pub(crate) mod switches;

pub(super) const PARTS: &[(&str, Measure)] = &[
    ("cost", cost::measure),
    ("switches", switches::measure),
    ("events", events::measure),
    ("split", split::measure),
    ("crowd", crowd::measure),
    ("groups", crowd::measure_groups),
    ("desktop", desktop::measure),
    ("size", size::measure),
    ("pressure", pressure::measure),
    ("explained", explained::measure),
];

/// No command of Terrace's own takes longer than the hour's recording and this.
const LIMIT: Duration = Duration::from_secs(120);

/// What `terrace explain --json` says of a recording.
fn explained_json(terrace: &Peer, file: &str) -> Result<serde_json::Value, Error> {
    super::report::run(terrace, &["explain", file], LIMIT)
}

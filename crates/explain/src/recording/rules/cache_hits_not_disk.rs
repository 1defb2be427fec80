//! Read calls were answered by the page cache: a test of a disk measured memory.
//!
//! Much was asked for, next to nothing came from a device, and copying it is a large part of
//! the time. Pipes and /dev/zero look alike; where as much was written, nothing is said.

use super::run_view::ratio;
use super::{RunVerdict, RunView};
use crate::verdict::NoFinding;
use crate::wording::percent;
use model::explanation::Cause;
use model::{Bytes, Evidence, Finding, Grade};

/// The most that may have come from devices, of what was asked for.
const MOST_FROM_DEVICE: f64 = 0.1;

/// Where this share was written as well, it may have been a pipe or a copy.
const MOST_WRITTEN: f64 = 0.5;

/// What copying a byte out of the cache takes at the least: 10 GB/s.
const COPY_BYTE_NS: f64 = 0.1;

pub(super) fn check(run: &RunView) -> RunVerdict {
    let (Some(asked), Some(read)) = (run.read_chars(), run.read_bytes()) else {
        return Err(NoFinding::Nothing);
    };
    let copy_ns = ((asked as f64 * COPY_BYTE_NS) as u64).min(run.run_ns());
    let from_device = ratio(read as f64, asked as f64);
    let written = ratio(run.write_chars().unwrap_or(0) as f64, asked as f64);
    if from_device > MOST_FROM_DEVICE || written > MOST_WRITTEN || !run.hurts_by_estimate(copy_ns) {
        return Err(NoFinding::Nothing);
    }
    let claim = format!(
        "Read {}, {} of it from a device: the page cache answered",
        Bytes(asked),
        percent(from_device),
    );
    let evidence = vec![
        Evidence::bytes("rchar", asked, "/proc/PID/io").seen_in(["tree.read_chars"]),
        Evidence::bytes("read_bytes", read, "/proc/PID/io").seen_in(["tree.read_bytes"]),
    ];
    Ok(Cause::new(None, Finding::new(Grade::Inferred, claim, evidence)))
}

//! Much more was read from the device than was used: the read-ahead is large for it.
//!
//! Used is at most what read calls asked for and what page faults mapped, 64 KiB around
//! each; bytes beyond several times that were fetched for nothing.

use super::device::{Direction, busiest};
use super::run_view::{part_of, ratio};
use super::waits::ReadWait;
use super::{RunVerdict, RunView};
use crate::verdict::NoFinding;
use crate::wording::{long_time, times};
use model::explanation::Cause;
use model::{Bytes, Evidence, Finding, Grade};

/// What the kernel maps around a fault, if it is in the cache.
const AROUND_BYTES: u64 = 64 << 10;

/// The least number of times that what was read exceeds what was used.
const LEAST_TIMES: f64 = 4.0;

/// Reading less than this in vain costs little. Picked.
const LEAST_BYTES: u64 = 16 << 20;

pub(super) fn check(run: &RunView) -> RunVerdict {
    let ReadWait::Ns { ns, .. } = run.read_wait() else {
        return Err(NoFinding::Nothing);
    };
    let (Some(read), Some(asked)) = (run.read_bytes(), run.read_chars()) else {
        return Err(NoFinding::Nothing);
    };
    if !run.hurts(ns) {
        return Err(NoFinding::Nothing);
    }
    let major = run.major_faults().unwrap_or(0);
    let faults = major.saturating_add(run.minor_faults().unwrap_or(0));
    let used = asked.saturating_add(faults.saturating_mul(AROUND_BYTES));
    let measured = Evidence::new(
        "read for each byte that can have been used",
        ratio(read as f64, used as f64),
        "ratio",
        "/proc/PID/io",
    )
    .seen_in(["tree.read_bytes", "tree.read_chars"]);
    let waste = ratio(read as f64, used as f64);
    let lost = part_of(ns, 1.0 - ratio(used as f64, read as f64));
    if waste < LEAST_TIMES || read < LEAST_BYTES || !run.hurts(lost) {
        return Err(NoFinding::Cleared(measured));
    }
    let device = busiest(run, Direction::Read);
    let ahead = device.as_ref().and_then(|device| device.facts?.read_ahead_bytes);
    let claim = format!(
        "Read {} and used at most {}: about {} for {} times as much",
        Bytes(read),
        Bytes(used),
        long_time(lost as f64),
        times(waste),
    );
    let mut evidence = vec![
        measured,
        Evidence::bytes("read_bytes", read, "/proc/PID/io").seen_in(["tree.read_bytes"]),
        Evidence::count("major faults", major, "/proc/PID/stat").seen_in(["tree.major_faults"]),
    ];
    evidence.extend(ahead.map(|ahead| Evidence::bytes("read-ahead", ahead, "read_ahead_kb")));
    let finding = Finding::new(Grade::Inferred, claim, evidence).remedy(
        "Let the program say that it reads at random (MADV_RANDOM, POSIX_FADV_RANDOM), or \
         make the device's read-ahead smaller. Risk: sequential readers become slower.",
    );
    Ok(Cause::new(Some(lost), finding))
}

//! Many calls to read or write, each for a few bytes: the price is that of the calls.
//!
//! How much time the calls took is sampled, without what other findings account for: freeing
//! memory, page faults, interrupts, requests to a device, filling the page cache. How small they
//! were is what all of them moved, over their number.

use super::run_view::ratio;
use super::{RunVerdict, RunView};
use crate::recording::accounting::processor_samples::SampledTime;
use crate::verdict::NoFinding;
use crate::wording::{count, long_time};
use model::explanation::Cause;
use model::recording::CallPurpose;
use model::{Bytes, Evidence, Finding, Grade};

/// Calls that read.
pub(super) const READS: &[&str] = CallPurpose::Read.calls();

/// Calls that write.
pub(super) const WRITES: &[&str] = CallPurpose::Write.calls();

/// Calls that make what was written safe.
pub(super) const SYNCS: &[&str] =
    &["fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync"];

/// A call of up to so many bytes is small. Picked: copying a page takes about as long as the call
/// itself, 0.2 to 0.5 us.
const SMALL_BYTES: f64 = 4096.0;

/// Fewer calls are none of a storm. Picked.
const LEAST_CALLS: u64 = 1_000;

/// What a direction is called, and what would help.
struct Words {
    verb: &'static str,
    calls: &'static str,
    bytes: &'static str,
    remedy: &'static str,
}

pub(super) fn reads(run: &RunView) -> RunVerdict {
    let words = Words {
        verb: "read",
        calls: "tree.read_calls",
        bytes: "tree.read_chars",
        remedy: "Read more at a time, into a buffer of 64 KiB or more. Risk: where data arrives \
                 piece by piece, nothing; from a device, more is read than may be used.",
    };
    judge(run, run.sampled_transfers(READS), run.read_calls(), run.read_chars(), words)
}

pub(super) fn writes(run: &RunView) -> RunVerdict {
    let words = Words {
        verb: "write",
        calls: "tree.write_calls",
        bytes: "tree.write_chars",
        remedy: "Gather output in a buffer of 64 KiB or more (a standard stream that is no terminal \
                 does). Risk: what is in the buffer comes later, and is lost in a crash.",
    };
    let time = run.sampled_transfers(WRITES);
    judge(run, time, run.write_calls(), run.write_chars(), words)
}

fn judge(
    run: &RunView,
    time: Option<SampledTime>,
    calls: Option<u64>,
    bytes: Option<u64>,
    words: Words,
) -> RunVerdict {
    let (Some(time), Some(calls), Some(bytes)) = (time, calls, bytes) else {
        return Err(NoFinding::Nothing);
    };
    let each = ratio(bytes as f64, calls as f64);
    if !run.hurts(time.low_ns) || calls < LEAST_CALLS || each > SMALL_BYTES {
        return Err(time.cleared());
    }
    let claim = format!(
        "Took {} in {} small {} calls: {} each",
        long_time(time.ns as f64),
        count(calls),
        words.verb,
        Bytes(each as u64),
    );
    let finding = Finding::new(Grade::Measured, claim, time.evidence)
        .and([
            Evidence::count(format!("{} calls", words.verb), calls, "/proc/PID/io")
                .seen_in([words.calls]),
            Evidence::bytes("moved by them", bytes, "/proc/PID/io").seen_in([words.bytes]),
        ])
        .remedy(words.remedy);
    Ok(Cause::new(Some(time.ns), finding))
}

//! A large stream went through the page cache and evicted what the subject reads often.
//!
//! What was read again had been evicted; beside it many times as much was read or written
//! once, by the subject itself or by somebody else.

use super::caused::CausedRun;
use super::refaults::{StreamOf, counted, refaults};
use super::{RunVerdict, RunView};
use crate::verdict::{NoFinding, clear_count};
use crate::wording::{count, long_time};
use model::explanation::Cause;
use model::{Bytes, Evidence, Finding, Grade};

pub(super) fn check(run: &RunView) -> RunVerdict {
    let again = refaults(run).ok_or(NoFinding::Nothing)?;
    let Some(stream) = again.stream.filter(|_| run.hurts(again.ns)) else {
        let number = counted(run).filter(|_| !run.hurts(again.ns));
        return clear_count(number, "refaults");
    };
    let whose = match stream.of {
        StreamOf::Own => "its own stream",
        StreamOf::Others => "somebody else's stream",
        StreamOf::OneProcess => "a stream",
    };
    let caused = CausedRun::of(run, run.sampled_device_reads(), again.share);
    let claim = format!(
        "About {} re-read data that {whose} of {} had evicted: {} pages{}",
        long_time(again.ns as f64),
        Bytes(stream.bytes),
        count(again.pages),
        caused.words(),
    );
    let read = || run.names_between("disk.", ".read_bytes");
    let (source, series) = match stream.of {
        StreamOf::Own => ("/proc/PID/io", vec!["tree.read_bytes", "tree.write_bytes"]),
        StreamOf::Others => ("/proc/diskstats", read()),
        StreamOf::OneProcess => ("page cache of one process", read()),
    };
    let once = Evidence::bytes("read or written once", stream.bytes, source).seen_in(series);
    let finding = Finding::new(Grade::Inferred, claim, again.evidence)
        .and([once])
        .and(run.all_grown(&["vmstat.pgsteal_file"]))
        .remedy(
            "Let the stream bypass the cache (O_DIRECT; RWF_DONTCACHE from Linux 6.14 on), or run \
             it in a group with a memory limit. Risk: it then reads nothing ahead, or its own \
             data twice.",
        );
    Ok(caused.add_to(Cause::new(Some(again.ns), finding)))
}

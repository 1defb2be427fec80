//! Waits for block I/O of the file system itself: its own reads, its journal, write-back that has
//! to end first, and a device below another one. By the kernel's stack at the wait.

use super::device::{Direction, busiest};
use super::{RunVerdict, RunView};
use crate::verdict::NoFinding;
use model::Finding;
use model::explanation::{Cause, TimePart};

pub(super) fn metadata(run: &RunView) -> RunVerdict {
    let from = busiest(run, Direction::Read)
        .map_or_else(String::new, |traffic| format!(" from {}", traffic.place()));
    judge(
        run,
        TimePart::BlockMetadata,
        |waited| {
            format!(
                "{waited} for the file system's own reads{from}: inode tables, directories, bitmaps"
            )
        },
        Some(
            "Visit files in the order of their inode numbers, keep inodes in memory (a lower \
             vm.vfs_cache_pressure), or walk the tree once before it matters. Risk: memory for \
             inodes is missing elsewhere.",
        ),
    )
}

pub(super) fn journal(run: &RunView) -> RunVerdict {
    judge(
        run,
        TimePart::BlockJournal,
        |waited| format!("{waited} for the file system's journal"),
        Some(
            "Change more in each commit: fewer syncs, or a longer commit interval of the mount. \
             Risk: what is not committed is lost in a crash.",
        ),
    )
}

pub(super) fn writeback(run: &RunView) -> RunVerdict {
    judge(
        run,
        TimePart::WritebackWait,
        |waited| format!("{waited} for write-back of its pages to end"),
        Some(
            "Leave data alone while it is written back: write a new file and rename it, instead \
             of changing or truncating the old one. Risk: there must be room for both.",
        ),
    )
}

pub(super) fn lower(run: &RunView) -> RunVerdict {
    judge(
        run,
        TimePart::LowerDevice,
        |waited| format!("{waited} for the device below another one (device mapper, RAID, loop)"),
        None,
    )
}

fn judge(
    run: &RunView,
    part: TimePart,
    claim: impl Fn(&str) -> String,
    remedy: Option<&str>,
) -> RunVerdict {
    let ns = run.part_ns(part).ok_or(NoFinding::Nothing)?;
    let Some(measured) = run.part_evidence(part) else {
        return Err(NoFinding::Nothing);
    };
    if !run.hurts(ns) {
        return Err(NoFinding::Cleared(measured));
    }
    let sampled = run.accounts.part(part).into_iter().flat_map(|part| part.evidence.iter().skip(1));
    let finding = run.part_finding(part, claim(&run.waited(ns))).and(sampled.cloned());
    let remedy = remedy.map(str::to_owned);
    Ok(Cause::new(Some(ns), Finding { remedy, ..finding }))
}

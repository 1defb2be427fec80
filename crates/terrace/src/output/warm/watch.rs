//! The lines of `warm watch`: what it watches, each shortage, each restore. One line each, for a
//! terminal or a journal. Pure.

use super::{kind_name, receipt};
use crate::output::clean::escaped;
use crate::output::prose::{count, long_time};
use model::Bytes;
use place::workingset::restore::{MemoryKind, RestoreReport, RestoredSource};
use place::workingset::targets::Selection;
use place::workingset::watch::{ShortageSigns, SwapPlacement};
use std::time::Duration;

/// The state after a shortage that left little in swap.
pub const LITTLE_IN_SWAP: &str =
    "memory is no longer short; it left less in swap than is worth a restore";

/// What is watched.
pub fn started(
    processes: &str,
    kinds: &[MemoryKind],
    quiet: Duration,
    swap: SwapPlacement,
    absent: Option<&str>,
) -> String {
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind_name(*kind)).collect();
    let quiet = long_time(u64::try_from(quiet.as_nanos()).unwrap_or(u64::MAX));
    let mut line = format!(
        "watching: {processes} ({}); restores when memory has not been short for {quiet}",
        kinds.join(", ")
    );
    match swap {
        SwapPlacement::OnDisk => {}
        other => line.push_str(&format!("; {}", without_disk(other))),
    }
    if let Some(why) = absent {
        line.push_str(&format!("; not there yet: {}", escaped(why)));
    }
    line.push('\n');
    line
}

/// The processes of a selection.
pub fn processes(selection: &Selection) -> String {
    let words = match selection {
        Selection::All => return "all processes".to_owned(),
        Selection::Processes(pids) if pids.len() == 1 => format!("process {}", pids[0]),
        Selection::Processes(pids) => {
            let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
            format!("processes {}", pids.join(", "))
        }
        Selection::Group(group) => format!("group {}", group.display()),
        Selection::Application(name) => format!("processes of {name}"),
    };
    escaped(&words).into_owned()
}

/// Where swap is now, as opposed to before.
pub fn swap_changed(swap: SwapPlacement) -> String {
    match swap {
        SwapPlacement::OnDisk => "swap on a disk is in use now\n".to_owned(),
        other => format!("{}\n", without_disk(other)),
    }
}

/// Why there is nothing to restore by now.
fn without_disk(swap: SwapPlacement) -> &'static str {
    match swap {
        SwapPlacement::InRam => {
            "all swap is in RAM (zram), where a restore gains nothing: waits for swap on a disk"
        }
        _ => "no swap is in use: waits for one",
    }
}

/// What showed that memory is short.
pub fn shortage(signs: &ShortageSigns) -> String {
    let mut parts = Vec::new();
    if signs.evicted_pages > 0 {
        parts.push(format!("{} evicted to swap", bytes_of(signs.evicted_pages)));
    }
    if signs.direct_reclaims > 0 {
        let times = if signs.direct_reclaims == 1 { "time" } else { "times" };
        parts
            .push(format!("tasks waited for free memory {} {times}", count(signs.direct_reclaims)));
    }
    if signs.stalled_permille > 0 {
        parts.push(format!("tasks stalled {} % of the time", signs.stalled_permille / 10));
    }
    format!("memory is short: {}; {} are available\n", parts.join(", "), signs.available)
}

/// Why a restore has to wait.
pub fn no_room(needed: Bytes, available: Bytes) -> String {
    format!(
        "memory is no longer short, but what was evicted has no room: {needed} must be available, \
         {available} are\n"
    )
}

/// What a restore read, what is there, how long it took, why it ended.
pub fn restored(report: &RestoreReport, in_swap: Bytes) -> String {
    let sum = |of: fn(&RestoredSource) -> u64| report.parts.iter().map(of).sum::<u64>();
    let read = Bytes(sum(|part| part.bytes));
    let ended = receipt::why(report.stop);
    let left = format!("{in_swap} are in swap still; ended: {ended}\n");
    if read == Bytes(0) {
        return format!("restored: no page was read, {left}");
    }
    let present = bytes_of(sum(|part| part.present_pages));
    let elapsed = long_time(report.elapsed_ns);
    format!("restored: read {read} in {elapsed}, {present} of it are in memory now, {left}")
}

/// Why a restore read nothing.
pub fn not_restored(why: &str) -> String {
    format!("restored nothing: {}\n", escaped(why))
}

/// The last line of a watch of processes by their numbers.
pub fn processes_ended() -> String {
    "all processes that were named have ended\n".to_owned()
}

fn bytes_of(pages: u64) -> Bytes {
    Bytes(pages.saturating_mul(sys::process::page_bytes() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use place::background::StopReason;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_first_line_says_what_is_watched_and_what_is_missing() {
        let line = |selection: &Selection, swap, absent| {
            let kinds = [MemoryKind::Anonymous, MemoryKind::Shared];
            started(&processes(selection), &kinds, Duration::from_secs(10), swap, absent)
        };
        assert_eq!(
            line(&Selection::All, SwapPlacement::OnDisk, None),
            "watching: all processes (anonymous, shared); restores when memory has not been short for 10 s\n"
        );
        let text = line(&Selection::Processes(vec![7, 8]), SwapPlacement::Absent, None);
        assert!(text.starts_with("watching: processes 7, 8 ("), "{text}");
        assert!(text.ends_with("; no swap is in use: waits for one\n"), "{text}");
        let name = Selection::Application("a\u{1b}b\n".to_owned());
        let text = line(&name, SwapPlacement::InRam, Some("no process is called a\u{1b}b\n"));
        assert!(text.contains("all swap is in RAM (zram)"), "{text}");
        assert!(text.contains("; not there yet: no process"), "{text}");
        assert!(!text.contains('\u{1b}') && text.matches('\n').count() == 1, "{text}");
    }

    #[test]
    fn a_shortage_names_its_signs() {
        let page_bytes = sys::process::page_bytes() as u64;
        let signs = ShortageSigns {
            evicted_pages: 12 * MIB / page_bytes,
            direct_reclaims: 1,
            stalled_permille: 234,
            available: Bytes(40 * MIB),
        };
        assert_eq!(
            shortage(&signs),
            "memory is short: 12 MiB evicted to swap, tasks waited for free memory 1 time, \
             tasks stalled 23 % of the time; 40 MiB are available\n"
        );
        let signs = ShortageSigns { evicted_pages: 0, stalled_permille: 0, ..signs };
        assert!(shortage(&signs).starts_with("memory is short: tasks waited"));
    }

    #[test]
    fn a_restore_has_a_receipt_of_one_line() {
        let page_bytes = sys::process::page_bytes() as u64;
        let part = RestoredSource {
            kind: MemoryKind::Anonymous,
            source: "/dev/sda2".to_owned(),
            method: None,
            bytes: 64 * MIB,
            present_pages: 63 * MIB / page_bytes,
            pages: 64 * MIB / page_bytes,
            gone_pages: 0,
            elapsed_ns: 0,
            avoided_faults: 0,
            avoided_ns: None,
        };
        let mut report = RestoreReport {
            stop: StopReason::Done,
            parts: vec![part],
            elapsed_ns: 1_200_000_000,
            paused_ns: 0,
            notes: Vec::new(),
        };
        assert_eq!(
            restored(&report, Bytes(3 * MIB)),
            "restored: read 64 MiB in 1.2 s, 63 MiB of it are in memory now, 3 MiB are in swap \
             still; ended: all was done\n"
        );
        (report.parts, report.stop) = (Vec::new(), StopReason::Floor);
        assert_eq!(
            restored(&report, Bytes(0)),
            "restored: no page was read, 0 B are in swap still; ended: free memory came down to \
             the floor\n"
        );
        assert_eq!(not_restored("a\nb"), "restored nothing: a\\nb\n");
    }
}

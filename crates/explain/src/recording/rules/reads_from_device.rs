//! Threads waited for reads from a device.
//!
//! With events the kernel's stack at each wait says that it was a read. Without them block
//! I/O is a wait for reads only where bytes were read and few were written, as writers that
//! are held back wait in the same state.

use super::accused::Accused;
use super::case::{clear, needs_events, part_of};
use super::device::{Way, busiest};
use super::refaults::refaults;
use super::{Case, Rank, Rule, Verdict};
use crate::wording::{long_time, survey_path};
use model::{Evidence, Grade};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: "reads_from_device",
    suspect: "reads",
    within: &[],
    rank: Rank::Timed,
    check,
};

/// Without events, reads explain the waits where not more than this many times as many
/// bytes were written. Picked: a copy writes what it reads.
const MOST_WRITTEN: u64 = 1;

/// The wait for reads.
#[derive(Clone, Debug)]
pub(super) enum Waited {
    /// So long.
    Ns {
        /// How long, summed over threads.
        ns: u64,
        /// How it is known.
        grade: Grade,
    },
    /// Nothing was read.
    Nothing,
    /// It cannot be told from other waits.
    Unclear(&'static str),
}

/// How long the subject waited for reads from devices, swap left out. A wait that was told by
/// no event is the kernel's charge for all block I/O, which can be far too long (a wait counted
/// from a wrong start); so it is no more than the devices can have kept the subject waiting.
pub(super) fn waited(case: &Case) -> Waited {
    let charged = charged(case);
    let Waited::Ns {
        ns,
        grade: Grade::Inferred,
    } = charged
    else {
        return charged;
    };
    match case.most_device_wait_ns() {
        Some(most) if most < ns && !case.hurts(most) => {
            Waited::Unclear("more waiting was charged than the devices took for all requests")
        }
        Some(most) => Waited::Ns {
            ns: ns.min(most),
            grade: Grade::Inferred,
        },
        None => charged,
    }
}

fn charged(case: &Case) -> Waited {
    let read = case.read_bytes();
    let written = case.write_bytes().unwrap_or(0);
    if let Some(ns) = case.part_ns("block_read") {
        let direct = case.part_ns("direct_io").unwrap_or(0);
        let is_read = read.unwrap_or(0) >= written;
        return Waited::Ns {
            ns: ns.saturating_add(if is_read { direct } else { 0 }),
            grade: case.part_grade("block_read"),
        };
    }
    let Some(read) = read else {
        return Waited::Unclear("bytes read were not counted");
    };
    if read == 0 {
        return Waited::Nothing;
    }
    let known = ["dirty_throttle", "flush", "block_write", "swap_in"];
    let others = known.iter().filter_map(|part| case.part_ns(part));
    let others = others.fold(0, u64::saturating_add);
    let ns = case.accounts.thread("block_io").saturating_sub(others);
    let has_block_io = !case
        .accounts
        .bars
        .thread
        .iter()
        .all(|s| s.name != "block_io");
    if !has_block_io {
        return Waited::Unclear("the kernel did not count waits for block I/O");
    }
    if written > read.saturating_mul(MOST_WRITTEN) {
        return Waited::Unclear("without events waits for reads and for writes look alike");
    }
    Waited::Ns {
        ns,
        grade: Grade::Inferred,
    }
}

/// The same as a time; 0 where it is not known.
pub(super) fn waited_ns(case: &Case) -> u64 {
    match waited(case) {
        Waited::Ns { ns, .. } => ns,
        Waited::Nothing | Waited::Unclear(_) => 0,
    }
}

fn check(case: &Case) -> Verdict {
    let read = case.read_bytes();
    let counted = read.map(|bytes| {
        Evidence::new("read_bytes", bytes as f64, "bytes", "/proc/PID/io")
            .seen_in(["tree.read_bytes"])
    });
    let (mut ns, grade) = match waited(case) {
        Waited::Ns { ns, grade } => (ns, grade),
        Waited::Nothing => return clear(counted),
        Waited::Unclear(why) => return unclear(case, why, counted),
    };
    // What a memory limit made it read again is told with the limit.
    let again = refaults(case).filter(|again| again.are_most_reads_at_a_limit());
    let again = again.filter(|again| case.hurts(again.ns));
    if let Some(again) = &again {
        ns -= part_of(ns, again.share);
    }
    if !case.hurts(ns) {
        if again.is_some() {
            return Verdict::Silent;
        }
        return Verdict::Clear(told(case, ns));
    }
    let traffic = busiest(case, Way::Read);
    let mut claim = format!("Waited {} for reads", long_time(ns as f64));
    if again.is_some() {
        claim.push_str(" of data not read before");
    }
    let mut evidence = vec![told(case, ns)];
    evidence.extend(counted);
    if let Some(traffic) = &traffic {
        claim.push_str(&format!(
            " from {}: {}",
            traffic.place(),
            traffic.told("reads")
        ));
        evidence.extend(traffic.evidence.iter().cloned());
    }
    let accused = Accused::new(RULE.id, Some(ns), grade, claim, evidence);
    match traffic.and_then(|traffic| traffic.mount) {
        Some(mount) => accused.confirm(survey_path(mount)).blame(),
        None => accused.blame(),
    }
}

/// The wait as evidence: of the events, or of all block I/O where it was concluded from that.
fn told(case: &Case, ns: u64) -> Evidence {
    let parts = ["block_read", "direct_io"];
    let series = parts.iter().flat_map(|part| case.part_series(part));
    Evidence::new("waited for reads", ns as f64, "ns", "block I/O")
        .seen_in(series.chain(case.slice_series("block_io")))
}

/// Unseen only where there was a wait that could be one for reads.
fn unclear(case: &Case, why: &'static str, counted: Option<Evidence>) -> Verdict {
    let accounts = case.accounts;
    let nameless = accounts
        .thread("block_io")
        .saturating_add(accounts.thread("unexplained"));
    if case.hurts(nameless) {
        needs_events(why)
    } else {
        clear(counted)
    }
}

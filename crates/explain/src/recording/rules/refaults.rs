//! What was read again because it had been evicted, and why it had been.
//!
//! The kernel counts pages that come back (`workingset_refault_file`). Their share of the
//! bytes read is their share of the time waited for reads; where the processes of a machine were
//! watched, each has its own share. They were evicted by a limit, by data that streamed through
//! the cache, or because the cache is too small.

use super::RunView;
use super::limits::{LimitHit, reached};
use super::run_view::{part_of, ratio};
use super::swapped::swapped;
use super::waits::ReadWait;
use crate::recording::who::shares;
use crate::recording::who::sums::ProcessSum;
use model::Evidence;

/// A stream is this many times what was read again. Picked: a loop over a file too large
/// for the cache reads most of it again and again, a stream reads it once.
const STREAM_TIMES: u64 = 3;

/// A stream is this many times what the cache can hold. Picked: the first reading of a
/// working set that does not fit is once through as well, and is no stream.
const CACHE_TIMES: u64 = 3;

/// What came back is hardly any of what was written up to one part of so many. Picked: 1.4 % was
/// seen of a program that only writes.
const WRITTEN_PARTS: u64 = 20;

/// From this share of the reads on, eviction is the cause of the reads.
const MOST_OF_READS: f64 = 0.5;

/// What was read again.
#[derive(Clone, Debug)]
pub(super) struct Refaults {
    /// Pages.
    pub(super) pages: u64,
    /// The same in bytes.
    pub(super) bytes: u64,
    /// The time waited for them.
    pub(super) ns: u64,
    /// Their share of the waits for reads.
    pub(super) share: f64,
    /// The counters.
    pub(super) evidence: Vec<Evidence>,
    /// The memory limit that evicted them.
    pub(super) hit: Option<LimitHit>,
    /// The stream that evicted them.
    pub(super) stream: Option<Stream>,
}

impl Refaults {
    /// Whether most waits for reads were for what had been evicted.
    pub(super) fn are_most_reads(&self) -> bool {
        self.share >= MOST_OF_READS
    }

    /// Whether a memory limit is the cause of most of the reads.
    pub(super) fn are_most_reads_at_a_limit(&self) -> bool {
        self.hit.is_some() && self.stream.is_none() && self.are_most_reads()
    }
}

/// Data that went through the cache once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// How much.
    pub(super) bytes: u64,
    /// Who read or wrote it.
    pub(super) of: StreamOf,
}

/// Whose a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamOf {
    /// The subject's.
    Own,
    /// That of processes outside of the subject.
    Others,
    /// That of one process of the machine.
    OneProcess,
}

/// What the subject read again; `None` where that or the wait for reads is not known.
pub(super) fn refaults(run: &RunView) -> Option<Refaults> {
    let ReadWait::Ns { ns: waited_ns, .. } = run.read_wait() else {
        return None;
    };
    let name = counter(run)?;
    let pages = run.growth(name)?;
    let bytes = pages.saturating_mul(run.page_bytes());
    let own = run.read_bytes().unwrap_or(0);
    let machine = run.growth_between("disk.", ".read_bytes").unwrap_or(0);
    let hit = reached(run);
    let groups = &run.facts().groups;
    let is_own_group = name.starts_with("group")
        && (hit.is_some() || groups.first().is_some_and(|group| group.made));
    // A count of the whole machine is shared out by everybody's reads.
    let read = if is_own_group { own } else { own.max(machine) };
    let of_bytes = part_of(waited_ns, ratio(bytes as f64, read as f64));
    let ns = by_process(run).map_or(of_bytes, |ns| ns.min(waited_ns));
    Some(Refaults {
        pages,
        bytes,
        ns,
        share: ratio(ns as f64, waited_ns as f64),
        evidence: run.grown(name).into_iter().collect(),
        stream: if run.is_machine() {
            stream_of_a_process(run.process_sums(), bytes)
        } else {
            stream(run, bytes, own, machine, hit.as_ref())
        },
        hit,
    })
}

/// Whether what a limit evicted was written once and not needed again: the writes fill the limit
/// several times over, nothing was swapped, and hardly a page came back. More memory then only
/// holds more of it, for a while.
pub(super) fn is_written_stream(run: &RunView, limit_bytes: u64) -> bool {
    let written = run.write_bytes().unwrap_or(0);
    let again = counter(run).and_then(|name| run.growth(name));
    let again_bytes = again.map(|pages| pages.saturating_mul(run.page_bytes()));
    let is_hardly_any = |bytes: u64| bytes <= written / WRITTEN_PARTS;
    let swapped = swapped(run).is_none_or(|swap| swap.ins == 0 && swap.zero_ins == 0);
    written >= limit_bytes.saturating_mul(CACHE_TIMES)
        && again_bytes.is_some_and(is_hardly_any)
        && swapped
}

/// The number that clears.
pub(super) fn counted(run: &RunView) -> Option<Evidence> {
    run.grown(counter(run)?)
}

fn counter(run: &RunView) -> Option<&'static str> {
    let of_group =
        ["group0.memory.stat.workingset_refault_file", "group0.memory.stat.workingset_refault"];
    let of_machine = ["vmstat.workingset_refault_file", "vmstat.workingset_refault"];
    let groups = of_group.iter().filter(|_| !run.is_machine());
    let mut names = groups.chain(of_machine.iter());
    names.find(|name| run.growth(name).is_some()).copied()
}

/// The waits of a machine's processes, each by its own share.
fn by_process(run: &RunView) -> Option<u64> {
    run.is_machine().then(|| shares::refault_wait_ns(run.process_sums())).flatten()
}

/// The stream of one of these processes that evicted so many bytes: all reads of a machine
/// together are no stream.
pub(super) fn stream_of_a_process(sums: &[ProcessSum], again: u64) -> Option<Stream> {
    let bytes = shares::largest_stream_bytes(sums)?;
    let is_stream = again > 0 && bytes >= again.saturating_mul(STREAM_TIMES);
    is_stream.then_some(Stream { bytes, of: StreamOf::OneProcess })
}

fn stream(
    run: &RunView,
    again: u64,
    own: u64,
    machine: u64,
    hit: Option<&LimitHit>,
) -> Option<Stream> {
    let written = run.write_bytes().unwrap_or(0);
    let own_stream = own.saturating_sub(again).saturating_add(written);
    // Somebody else's pages cannot push ours out of a group that is at its own limit.
    let others = if hit.is_some() { 0 } else { machine.saturating_sub(own) };
    let bytes = own_stream.max(others);
    let is_many = bytes >= again.saturating_mul(STREAM_TIMES);
    let is_stream = match hit.and_then(|hit| hit.limit_bytes) {
        // What was written and fills a group several times over went through it once,
        // however much was read again meanwhile. Of what was read that cannot be said: a
        // loop over a large file reads its first pass only once, too.
        Some(limit) => {
            let full = limit.saturating_mul(CACHE_TIMES);
            written >= full || (is_many && bytes >= full)
        }
        None => is_many,
    };
    let of = if own_stream >= others { StreamOf::Own } else { StreamOf::Others };
    (again > 0 && is_stream).then_some(Stream { bytes, of })
}

//! The suspects: one file per rule; each finds a cause, clears the suspect, or says what it lacks.
//!
//! A rule blames on its own evidence only, and only for time that matters
//! ([`LEAST_SHARE`]). [`RULES`] is the table of all: id, name, and the findings that its own lie
//! inside of. [`judge`] asks them all and puts what they said in order: a finding that lies inside
//! another one follows it. docs/findings.md lists the rules.

mod asleep;
mod block_classes;
mod cache_evicted_by_stream;
mod cache_hits_not_disk;
mod cache_too_small;
mod call_storms;
mod caused;
mod children_wait;
mod compaction;
mod copy_on_write;
mod cost;
mod cpu_bound;
mod cpu_contention;
mod cpu_limit;
mod device;
mod direct_io_odd;
mod dirty_throttle;
mod disk;
mod first_touch;
mod io_limit;
mod kernel_work;
mod limited;
mod limits;
mod lock_contention;
mod memory_backed_lazily;
mod memory_limit;
mod misaligned_requests;
mod numa_remote;
mod out_of_memory;
mod process_limit;
mod processor_stolen;
mod read_ahead_large;
mod read_ahead_small;
mod reads_from_device;
mod reclaim_direct;
mod reclaim_throttled;
mod refaults;
mod remainder;
mod remedies;
mod run_view;
mod served_by;
mod small_calls;
mod small_sync_writes;
mod swapped;
mod swapping;
mod thp_fallback;
mod touched;
mod waits;
mod writeback_burst;
mod writes_to_device;
mod zero_pages_swapped;

use super::coverage::Coverage;
use super::witness;
use crate::verdict::{Verdict, Verdicts};
pub(super) use asleep::asleep_ns;
use model::explanation::{Cause, Explanation, TimePart, TimeSlice, Unseen};
pub use run_view::RunView;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What a rule concludes from a recording.
pub type RunVerdict = Verdict<Cause>;

/// The part of its time by which a remainder stands among the causes.
const REMAINDER_SHARE: u64 = 4;

/// The rank of a rule's findings among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Before everything that is counted in time: the command was killed.
    Decisive,
    /// By its time.
    Timed,
    /// By a quarter of its time: what remains names no cause. No reason to leave a fallback out.
    Remainder,
    /// By its time, and only where nothing else accounts for much.
    Fallback,
}

/// Where the time of a rule's findings lies in the bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Anywhere in a slice.
    Slice(TimeSlice),
    /// In a part.
    Part(TimePart),
    /// On a processor, inside of these system calls.
    Calls(&'static [&'static str]),
}

/// How a rule judges.
#[derive(Clone, Copy, Debug)]
enum Check {
    /// By the recording alone.
    Alone(fn(&RunView) -> RunVerdict),
    /// By what the findings of all others leave.
    Rest(fn(&RunView, &Coverage) -> RunVerdict),
}

/// One suspect.
#[derive(Clone, Copy, Debug)]
pub struct RunRule {
    /// A stable name for scripts: `cache_too_small`.
    pub id: &'static str,
    /// Its name in the list of cleared suspects: `small page cache`.
    pub suspect: &'static str,
    /// The rules inside of whose findings this one lies, the likeliest first; it stands
    /// alone where none of them found anything.
    pub within: &'static [&'static str],
    /// Whether a finding that is longer than the one that it would lie in stands alone: that one
    /// then has the rest.
    pub stands_alone_if_longer: bool,
    /// Where the time of its findings lies, the first place filled first; empty where that is
    /// user code, or the finding has no time of its own.
    pub of: &'static [Place],
    /// Where the processor time lies that its waits cause.
    pub on_processor: &'static [Place],
    /// Where its findings stand among the others.
    pub rank: Rank,
    check: Check,
}

impl RunRule {
    const fn new(
        id: &'static str,
        suspect: &'static str,
        check: fn(&RunView) -> RunVerdict,
    ) -> Self {
        Self::asked(id, suspect, Rank::Timed, Check::Alone(check))
    }

    /// A rule that judges what the others leave.
    const fn rest(
        id: &'static str,
        suspect: &'static str,
        check: fn(&RunView, &Coverage) -> RunVerdict,
    ) -> Self {
        Self::asked(id, suspect, Rank::Remainder, Check::Rest(check))
    }

    const fn asked(id: &'static str, suspect: &'static str, rank: Rank, check: Check) -> Self {
        let stands_alone_if_longer = false;
        Self {
            id,
            suspect,
            within: &[],
            stands_alone_if_longer,
            of: &[],
            on_processor: &[],
            rank,
            check,
        }
    }

    const fn of(self, of: &'static [Place]) -> Self {
        Self { of, ..self }
    }

    const fn on_processor(self, on_processor: &'static [Place]) -> Self {
        Self { on_processor, ..self }
    }

    const fn within(self, outer: &'static [&'static str]) -> Self {
        Self { within: outer, ..self }
    }

    const fn alone_if_longer(self) -> Self {
        Self { stands_alone_if_longer: true, ..self }
    }

    const fn rank(self, rank: Rank) -> Self {
        Self { rank, ..self }
    }

    /// Judges, if it is the turn of such rules: before all others are judged (`coverage` is
    /// `None`) or after. A finding bears the rule's id.
    fn judge(&self, run: &RunView, coverage: Option<&Coverage>) -> Option<RunVerdict> {
        let verdict = match (self.check, coverage) {
            (Check::Alone(check), None) => check(run),
            (Check::Rest(check), Some(coverage)) => check(run, coverage),
            _ => return None,
        };
        Some(verdict.map(|mut cause| {
            self.id.clone_into(&mut cause.finding.id);
            cause
        }))
    }
}

/// Less than this share of the time that a subject is judged by is no finding. Picked: one
/// part in twenty is what a person may hope to notice.
pub const LEAST_SHARE: f64 = 0.05;

/// The same for wall time in which all threads slept, which is seldom shared.
pub const LEAST_ASLEEP_SHARE: f64 = 0.02;

/// A finding whose time is an estimate needs a wider margin. Picked: the estimate of a
/// fault's price is right within a factor of three.
pub const LEAST_ESTIMATED_SHARE: f64 = 0.2;

/// Less than this is no finding, however short the command was. Picked: too short to notice.
pub const LEAST_NS: u64 = 5_000_000;

/// A fallback is reported if no other finding has this share of its time.
const FALLBACK_SHARE: f64 = 0.25;

/// Where waits for reads lie; without events all block I/O may be such.
const READS: &[Place] = &[
    Place::Part(TimePart::BlockRead),
    Place::Part(TimePart::DirectIo),
    Place::Slice(TimeSlice::BlockIo),
];

/// Where the kernel asks for reads.
const ASKS_FOR_READS: &[Place] =
    &[Place::Calls(small_calls::READS), Place::Part(TimePart::FileFault)];

/// Where it asks for writes, and for what was written to be safe.
const ASKS_FOR_WRITES: &[Place] =
    &[Place::Calls(small_calls::SYNCS), Place::Calls(small_calls::WRITES)];

/// Where it takes pages back from swap.
const IN_SWAP_FAULTS: &[Place] = &[Place::Part(TimePart::SwapFault)];

/// Every suspect, in the order in which cleared ones are listed.
pub const RULES: &[RunRule] = &[
    RunRule::new("out_of_memory", "out of memory", out_of_memory::check).rank(Rank::Decisive),
    RunRule::new("process_limit", "process limit", process_limit::check).rank(Rank::Decisive),
    RunRule::new("swapping", "swap", swapping::check)
        .within(&["memory_limit"])
        .of(&[
            Place::Part(TimePart::SwapIn),
            Place::Part(TimePart::ReclaimRun),
            Place::Part(TimePart::DirectReclaim),
        ])
        .on_processor(IN_SWAP_FAULTS),
    RunRule::new("processor_stolen", "steal", processor_stolen::check)
        .of(&[Place::Slice(TimeSlice::Steal)]),
    RunRule::new("cpu_limit", "CPU limit", cpu_limit::check).of(&[Place::Part(TimePart::CpuLimit)]),
    RunRule::new("io_limit", "I/O limit", io_limit::check)
        .within(&["reads_from_device", "small_sync_writes", "writes_to_device", "dirty_throttle"])
        .of(&[
            Place::Part(TimePart::BlockRead),
            Place::Part(TimePart::DirectIo),
            Place::Part(TimePart::BlockWrite),
            Place::Part(TimePart::Flush),
            Place::Part(TimePart::DirtyThrottle),
        ]),
    RunRule::new("memory_limit", "memory limit", memory_limit::check)
        .of(&[
            Place::Part(TimePart::SwapIn),
            Place::Part(TimePart::ReclaimRun),
            Place::Part(TimePart::DirectReclaim),
            Place::Part(TimePart::ReclaimThrottle),
            Place::Part(TimePart::BlockRead),
        ])
        .on_processor(&[
            Place::Part(TimePart::SwapFault),
            Place::Calls(small_calls::READS),
            Place::Part(TimePart::FileFault),
        ]),
    RunRule::new("dirty_throttle", "dirty throttle", dirty_throttle::check)
        .of(&[Place::Part(TimePart::DirtyThrottle), Place::Slice(TimeSlice::BlockIo)]),
    RunRule::new("reads_from_device", "reads", reads_from_device::check)
        .of(READS)
        .on_processor(ASKS_FOR_READS),
    RunRule::new("cache_too_small", "small page cache", cache_too_small::check)
        .within(&["memory_limit", "reads_from_device"])
        .alone_if_longer()
        .of(READS)
        .on_processor(ASKS_FOR_READS),
    RunRule::new(
        "cache_evicted_by_stream",
        "streams through the cache",
        cache_evicted_by_stream::check,
    )
    .within(&["reads_from_device"])
    .alone_if_longer()
    .of(READS)
    .on_processor(ASKS_FOR_READS),
    RunRule::new("read_ahead_small", "read-ahead", read_ahead_small::check)
        .within(&["reads_from_device"])
        .of(READS),
    RunRule::new("read_ahead_large", "read-ahead beyond need", read_ahead_large::check)
        .within(&["reads_from_device"])
        .of(READS),
    RunRule::new("direct_io_odd", "direct I/O", direct_io_odd::check)
        .within(&["reads_from_device"])
        .of(READS),
    RunRule::new("misaligned_requests", "misaligned requests", misaligned_requests::check)
        .within(&["reads_from_device", "small_sync_writes", "writes_to_device"])
        .of(&[
            Place::Part(TimePart::BlockRead),
            Place::Part(TimePart::BlockWrite),
            Place::Part(TimePart::Flush),
        ]),
    RunRule::new("writes_to_device", "writes", writes_to_device::check)
        .of(&[
            Place::Part(TimePart::Flush),
            Place::Part(TimePart::BlockWrite),
            Place::Part(TimePart::DirectIo),
        ])
        .on_processor(ASKS_FOR_WRITES),
    RunRule::new("small_sync_writes", "small synchronous writes", small_sync_writes::check)
        .of(&[Place::Part(TimePart::Flush)])
        .on_processor(ASKS_FOR_WRITES),
    RunRule::new("writeback_burst", "write-back bursts", writeback_burst::check)
        .within(&["dirty_throttle", "small_sync_writes", "writes_to_device"])
        .of(&[
            Place::Part(TimePart::DirtyThrottle),
            Place::Part(TimePart::Flush),
            Place::Part(TimePart::BlockWrite),
        ]),
    RunRule::new("metadata_reads", "the file system's own reads", block_classes::metadata)
        .of(&[Place::Part(TimePart::BlockMetadata)]),
    RunRule::new("journal_wait", "the journal", block_classes::journal)
        .within(&["small_sync_writes", "writes_to_device"])
        .of(&[Place::Part(TimePart::BlockJournal)]),
    RunRule::new("writeback_wait", "write-back", block_classes::writeback)
        .within(&["dirty_throttle", "small_sync_writes", "writes_to_device"])
        .of(&[Place::Part(TimePart::WritebackWait)]),
    RunRule::new("lower_device_wait", "a device below", block_classes::lower)
        .of(&[Place::Part(TimePart::LowerDevice)]),
    RunRule::new("cpu_contention", "CPU contention", cpu_contention::check)
        .of(&[Place::Slice(TimeSlice::Queue)]),
    RunRule::new("reclaim_direct", "direct reclaim", reclaim_direct::check)
        .within(&["swapping"])
        .of(&[Place::Part(TimePart::ReclaimRun), Place::Part(TimePart::DirectReclaim)]),
    RunRule::new("reclaim_throttled", "reclaim throttle", reclaim_throttled::check)
        .within(&["memory_limit", "reclaim_direct", "swapping"])
        .of(&[Place::Part(TimePart::ReclaimThrottle)]),
    RunRule::new("zero_pages_swapped", "swapped zeros", zero_pages_swapped::check)
        .within(&["memory_limit", "swapping", "reclaim_direct"])
        .of(&[Place::Part(TimePart::ReclaimRun), Place::Part(TimePart::DirectReclaim)])
        .on_processor(IN_SWAP_FAULTS),
    RunRule::new("served_by_zram", "compressed RAM disk", served_by::zram).within(&[
        "swapping",
        "memory_limit",
        "reclaim_direct",
    ]),
    RunRule::new("served_by_zswap", "compressed swap", served_by::zswap).within(&[
        "swapping",
        "memory_limit",
        "reclaim_direct",
    ]),
    RunRule::new("served_by_flash", "flash behind swap", served_by::flash)
        .within(&["swapping", "memory_limit"]),
    RunRule::new("memory_backed_lazily", "memory backed by the host", memory_backed_lazily::check)
        .of(&[Place::Part(TimePart::FirstTouch), Place::Part(TimePart::Kernel)]),
    RunRule::new("first_touch", "first touch of memory", first_touch::check)
        .of(&[Place::Part(TimePart::FirstTouch)]),
    RunRule::new("thp_fallback", "huge pages", thp_fallback::check)
        .within(&["first_touch"])
        .of(&[Place::Part(TimePart::FirstTouch)]),
    RunRule::new("copy_on_write", "copies on write", copy_on_write::check)
        .of(&[Place::Part(TimePart::CopyOnWrite)]),
    RunRule::new("compaction", "compaction", compaction::check)
        .within(&["thp_fallback"])
        .of(&[Place::Part(TimePart::Compaction)]),
    RunRule::new("numa_remote", "remote memory", numa_remote::check),
    RunRule::new("cache_hits_not_disk", "cache hits", cache_hits_not_disk::check),
    // The command slept on purpose; a wait with a time limit counts where it waited.
    RunRule::new("timer_sleep", "timers", |run| asleep::judge(run, TimePart::Timer, "on a timer"))
        .of(&[Place::Part(TimePart::Timer)]),
    // The peer or the network between is slow; which one cannot be seen from here.
    RunRule::new("socket_wait", "sockets", |run| {
        asleep::judge(run, TimePart::Socket, "on a socket")
    })
    .of(&[Place::Part(TimePart::Socket)]),
    // The process at the other end of a pipe is slow; its own findings say why.
    RunRule::new("pipe_wait", "pipes", |run| asleep::judge(run, TimePart::Pipe, "on a pipe"))
        .of(&[Place::Part(TimePart::Pipe)]),
    // poll, select or epoll; the stack does not say on which descriptor.
    RunRule::new("poll_wait", "polling", |run| {
        asleep::judge(run, TimePart::Poll, "in poll or epoll")
    })
    .of(&[Place::Part(TimePart::Poll)]),
    RunRule::new("lock_contention", "locks", lock_contention::check)
        .of(&[Place::Part(TimePart::Lock)]),
    // Another process held the lock; /proc/locks names it while it lasts, a recording does not.
    RunRule::new("file_lock_wait", "file locks", |run| {
        asleep::judge(run, TimePart::FileLock, "on a file lock")
    })
    .of(&[Place::Part(TimePart::FileLock)]),
    // The locks of the file system, room in its journal, or the server behind it. The cause is
    // mostly a write of another task; block I/O of the command itself is counted apart.
    RunRule::new("file_system_wait", "the file system", |run| {
        asleep::judge(run, TimePart::FileSystem, "inside the file system")
    })
    .within(&["dirty_throttle", "small_sync_writes", "writes_to_device"])
    .of(&[Place::Part(TimePart::FileSystem)]),
    RunRule::new("children_wait", "own children", children_wait::check)
        .of(&[Place::Slice(TimeSlice::Sleep)]),
    RunRule::new("small_reads", "small reads", small_calls::reads)
        .of(&[Place::Calls(small_calls::READS)]),
    RunRule::new("small_writes", "small writes", small_calls::writes)
        .of(&[Place::Calls(small_calls::WRITES)]),
    RunRule::new("file_storm", "work on many files", call_storms::files)
        .of(&[Place::Calls(call_storms::FILES)]),
    RunRule::new("exec_storm", "new processes", call_storms::exec)
        .of(&[Place::Calls(call_storms::EXEC)]),
    RunRule::new("mmap_storm", "mapping of memory", call_storms::mmap)
        .of(&[Place::Calls(call_storms::MMAP)]),
    RunRule::new("page_clearing", "clearing of pages", kernel_work::clearing)
        .within(&["memory_backed_lazily", "first_touch"])
        .of(&[Place::Part(TimePart::KernelClearing)]),
    RunRule::new("kernel_copying", "copying by the kernel", kernel_work::copying)
        .within(&["copy_on_write", "small_reads", "small_writes"])
        .of(&[Place::Part(TimePart::KernelCopying)]),
    RunRule::new("kernel_locks", "locks of the kernel", kernel_work::locks)
        .within(&["file_storm", "mmap_storm", "exec_storm", "first_touch"])
        .of(&[Place::Part(TimePart::KernelLocks)]),
    RunRule::new("network_processing", "network", kernel_work::network)
        .of(&[Place::Part(TimePart::KernelNetwork)]),
    RunRule::new("thread_switching", "switches between threads", kernel_work::switching)
        .of(&[Place::Part(TimePart::KernelScheduling)]),
    RunRule::new("interrupts", "interrupts", kernel_work::interrupts)
        .within(&["network_processing"])
        .of(&[Place::Part(TimePart::Interrupts), Place::Part(TimePart::SoftInterrupts)]),
    RunRule::rest("kernel_time", "other kernel time", remainder::kernel_time)
        .of(&[Place::Slice(TimeSlice::Run)]),
    RunRule::rest("other_block_io", "other block I/O", remainder::block_io)
        .of(&[Place::Slice(TimeSlice::BlockIo)]),
    RunRule::rest("other_sleep", "other sleep", remainder::sleep)
        .of(&[Place::Slice(TimeSlice::Sleep)]),
    RunRule::rest("cpu_bound", "CPU time", cpu_bound::check).rank(Rank::Fallback),
];

/// Asks every rule. Of the explanation only what they said is filled: the findings, worst first,
/// what would help, how much they account for, what is cleared, and what could not be judged.
#[must_use]
pub fn judge(run: &RunView) -> Explanation {
    let ask = |coverage: Option<&Coverage>| {
        RULES.iter().filter_map(|rule| Some((rule, rule.judge(run, coverage)?))).collect()
    };
    let mut verdicts: Verdicts<&'static RunRule, Cause> = ask(None);
    let coverage = covered_by(run, &verdicts.found);
    let Verdicts { found, cleared, unseen, .. } = ask(Some(&coverage));
    verdicts.found.extend(found);
    verdicts.cleared.extend(cleared);
    verdicts.unseen.extend(unseen);
    let Verdicts { mut found, cleared, unseen, .. } = verdicts;
    drop_fallbacks(&mut found);
    let coverage = covered_by(run, &found);
    for (rule, cause) in &mut found {
        cause.accounts_for = coverage.of_rule(rule);
    }
    let covered = coverage.share(|ns| run.hurts(ns));
    let not_judged = unseen.into_iter().map(|(rule, why, remedy)| Unseen {
        what: rule.id.to_owned(),
        why,
        remedy,
    });
    let mut unseen: Vec<Unseen> = not_judged.collect();
    let cleared = cleared.into_iter().filter_map(|(rule, number)| {
        let watched = witness::watched(run, rule.id, Some(&number));
        let is_counted = number.value > 0.0 && number.unit != "ns" && number.unit != "ratio";
        let cost_ns = is_counted.then(|| cost::cost_ns(run, rule.id)).flatten();
        watched
            .map(|watched| watched.clear(rule, number, cost_ns))
            .map_err(|one| unseen.push(*one))
            .ok()
    });
    let excluded = cleared.collect();
    let mut findings = in_order(found);
    let remedies = remedies::propose(run, &mut findings);
    Explanation {
        cleared: excluded,
        disk: disk::verdict(run, &findings),
        findings,
        remedies,
        covered,
        unseen,
        ..Explanation::default()
    }
}

/// What the findings account for.
fn covered_by(run: &RunView, found: &[(&'static RunRule, Cause)]) -> Coverage {
    let lengths = lengths(found);
    Coverage::of(run, found, |rule| root(rule, &lengths) != rule.id)
}

/// Leaves out the fallbacks beside which something else accounts for much.
fn drop_fallbacks(found: &mut Vec<(&'static RunRule, Cause)>) {
    let others = found
        .iter()
        .filter(|(rule, _)| !matches!(rule.rank, Rank::Fallback | Rank::Remainder))
        .filter_map(|(_, cause)| cause.ns.max(cause.order_ns))
        .max()
        .unwrap_or(0);
    found.retain(|(rule, cause)| {
        let own = cause.ns.unwrap_or(0) as f64;
        rule.rank != Rank::Fallback || (others as f64) < own * FALLBACK_SHARE
    });
}

/// Roots by rank and time, each followed by what lies inside of it.
fn in_order(mut found: Vec<(&'static RunRule, Cause)>) -> Vec<Cause> {
    // Stable: equals stay in the order of the rules.
    let weight = |rule: &RunRule, cause: &Cause| {
        let share = if rule.rank == Rank::Remainder { REMAINDER_SHARE } else { 1 };
        cause.order_ns.or(cause.ns).map(|ns| ns / share)
    };
    found.sort_by_key(|(rule, cause)| (rule.rank != Rank::Decisive, Reverse(weight(rule, cause))));
    let lengths = lengths(&found);
    let is_root = |rule: &'static RunRule| root(rule, &lengths) == rule.id;
    let (roots, inside): (Vec<_>, Vec<_>) = found.iter().partition(|(rule, _)| is_root(rule));
    let mut ordered: Vec<Cause> = roots.into_iter().map(|(_, cause)| cause.clone()).collect();
    for (rule, cause) in inside {
        let of = root(rule, &lengths);
        let outer = ordered.iter().rposition(|other| other.finding.id == of);
        let mut at = outer.map_or(ordered.len(), |at| at + 1);
        while ordered.get(at).is_some_and(|next| next.within_previous) {
            at += 1;
        }
        let mut cause = cause.clone();
        cause.within_previous = outer.is_some();
        ordered.insert(at, cause);
    }
    ordered
}

/// The time of each finding, by its rule.
type Lengths = BTreeMap<&'static str, Option<u64>>;

fn lengths(found: &[(&'static RunRule, Cause)]) -> Lengths {
    found.iter().map(|(rule, cause)| (rule.id, cause.ns)).collect()
}

/// The outermost of the findings that this rule's lie in; its own where it stands alone.
fn root(rule: &RunRule, found: &Lengths) -> &'static str {
    let is_around = |inner: &RunRule, outer: &str| {
        found.get(outer).is_some_and(|length| {
            let own = found.get(inner.id).copied().flatten();
            !inner.stands_alone_if_longer || own <= *length
        })
    };
    let mut at = rule;
    // No chain is longer than the list of rules, whatever `within` says.
    for _ in RULES {
        let outer = at.within.iter().find(|outer| is_around(at, outer));
        match outer.and_then(|id| RULES.iter().find(|known| known.id == *id)) {
            Some(next) => at = next,
            None => break,
        }
    }
    at.id
}

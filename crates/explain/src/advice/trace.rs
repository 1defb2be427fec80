//! Traces of other tools, judged as the block reads of a recording are.
//!
//! 1. [`TraceReads`] keeps the reads of a trace, and when at least one was under way.
//! 2. [`observe_trace`] cuts the time into pieces. A trace without the times of its disk has none,
//!    unless those of a measured disk are given: then the reads follow each other.
//! 3. [`judge`] simulates each size: hits by policy, and the time that an LRU cache in memory would
//!    have spared. `flash` does the same for a stick and an SSD.
//!
//! A trace says nothing of who waited: seconds are those in which the disk was reading.

mod reads;

pub use reads::TraceReads;

use super::blocks::{Observation, TimeBlock, piece_count, total};
use super::flash::{self, BlockReads, CacheDevice, Reads, Simulated, scaled};
use super::{AdviceRequest, answer, memory};
use model::advice::{MemoryAdvice, MemoryGain, PolicyShare, TraceAdvice, TraceSize, TraceTimes};
use model::text::count;
use policy::EvictionPolicy;
use policy::admission::Always;
use policy::simulate::Sweep;
use policy::trace::TraceForm;
use reads::{BusyTime, piece_of};
use std::collections::{BTreeMap, HashSet};

/// Sizes that the policies are compared at if none is named: halves, from all blocks on downwards.
const USUAL_STEPS: u32 = 7;

/// So many of the largest are judged in seconds.
pub(super) const JUDGED_SIZES: u32 = 4;

/// The smallest size that is judged without being named.
const LEAST_BYTES: u64 = 1 << 20;

/// What a disk was measured to take for 4 KiB at a random place.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskTime {
    /// Its mean.
    pub read_ns: f64,
    /// Which disk, in words.
    pub name: String,
}

/// What of a trace is not in its reads.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TraceFacts {
    form: TraceForm,
    times: TraceTimes,
    /// Where times come from that are not the trace's.
    times_from: Option<String>,
    reads: u64,
    timed_reads: u64,
    unseen_reads: u64,
    read_bytes: u64,
    writes: u64,
    span_ns: u64,
}

/// Reduces a trace to what advice needs; `disk` is taken where the trace has no times.
#[must_use]
pub fn observe_trace(trace: TraceReads, disk: Option<&DiskTime>) -> Observation {
    let mut times_from = None;
    let has_times = trace.has_times();
    let mut kept = trace.kept;
    let (times, blocks) = if has_times {
        (TraceTimes::Trace, timed_blocks(&kept, trace.end_ns, &trace.busy))
    } else if let Some(disk) = disk {
        times_from = Some(format!(
            "each read counts with {:.2} ms, as boost qualify measured of {}, one after the other: \
             reads in sequence take less, so the seconds are an upper end",
            disk.read_ns / 1e6,
            disk.name
        ));
        (TraceTimes::Measured, priced_blocks(&mut kept, disk.read_ns))
    } else {
        (TraceTimes::None, Vec::new())
    };
    let (name, form) = (&trace.name, trace.form);
    Observation {
        subject: format!("the trace {name} ({})", form.name()),
        is_machine: true,
        trace: Some(TraceFacts {
            form,
            times,
            times_from,
            reads: trace.reads,
            timed_reads: trace.timed_reads,
            unseen_reads: trace.unseen_reads,
            read_bytes: trace.read_bytes,
            writes: trace.writes,
            span_ns: trace.end_ns,
        }),
        page_bytes: flash::BLOCK_BYTES,
        wall_ns: trace.end_ns,
        blocks,
        reads: Some(kept),
        ..Observation::default()
    }
}

impl Observation {
    /// What a trace is of, without its name; `None` of a recording.
    #[must_use]
    pub fn nameless_trace(&self) -> Option<String> {
        self.trace.as_ref().map(|facts| format!("a trace ({})", facts.form.name()))
    }
}

/// Pieces of the trace's own time.
fn timed_blocks(kept: &BlockReads, span_ns: u64, busy: &BusyTime) -> Vec<TimeBlock> {
    let count = piece_count(span_ns);
    let mut waits = vec![0_u64; count as usize];
    for read in &kept.reads {
        let wait = &mut waits[piece_of(read.at_ns, span_ns, count)];
        *wait = wait.saturating_add(read.latency_ns);
    }
    let mut begin_ns = 0;
    let pieces = (1..=count).zip(busy.pieces(span_ns, count)).zip(waits);
    let blocks = pieces.map(|((number, busy_ns), waited_ns)| {
        let end = u128::from(span_ns) * u128::from(number) / u128::from(count);
        let end_ns = u64::try_from(end).unwrap_or(span_ns);
        let length_ns = end_ns - std::mem::replace(&mut begin_ns, end_ns);
        let waited_ns = scaled(waited_ns, kept);
        TimeBlock { length_ns, disk_ns: busy_ns.min(length_ns), waited_ns, ..TimeBlock::default() }
    });
    blocks.filter(|block| block.length_ns > 0).collect()
}

/// Pieces of the time that the reads would take one after the other on another disk.
fn priced_blocks(kept: &mut BlockReads, read_ns: f64) -> Vec<TimeBlock> {
    let latency_ns = read_ns.clamp(1.0, 60e9) as u64;
    let step_ns = scaled(latency_ns, kept);
    for (number, read) in (0_u64..).zip(&mut kept.reads) {
        (read.at_ns, read.latency_ns) = (number.saturating_mul(step_ns), latency_ns);
    }
    let reads = kept.reads.len() as u64;
    let count = piece_count(reads.saturating_mul(step_ns));
    let lengths = (0..count).map(|number| {
        let [from, to] = [number, number + 1].map(|at| reads * at / count);
        (to - from).saturating_mul(step_ns)
    });
    let of_length = |length_ns| TimeBlock {
        length_ns,
        disk_ns: length_ns,
        waited_ns: length_ns,
        ..TimeBlock::default()
    };
    lengths.filter(|length_ns| *length_ns > 0).map(of_length).collect()
}

/// Whether these are traces of other tools.
pub(super) fn is_trace(observations: &[Observation]) -> bool {
    observations.iter().any(|one| one.trace.is_some())
}

/// Why no seconds of a trace are known.
pub(super) fn without_times(observations: &[Observation]) -> Option<String> {
    let mut facts = observations.iter().filter_map(|one| one.trace.as_ref());
    let timeless = facts.find(|facts| facts.times == TraceTimes::None)?;
    Some(answer::no_times(timeless.form.name()))
}

/// Sizes by halves, from all that is read downwards; `steps` of them, the smallest first.
pub(super) fn usual_sizes(reads: &Reads, steps: u32) -> Vec<u64> {
    let most = distinct_bytes(reads).max(LEAST_BYTES).next_power_of_two();
    let sizes = (0..steps).rev().map(|step| most >> step);
    sizes.filter(|bytes| *bytes >= LEAST_BYTES).collect()
}

/// The bytes of all blocks that are read, those of each trace.
fn distinct_bytes(reads: &Reads) -> u64 {
    total(reads.keys(|_| true).map(|(kept, keys)| {
        let distinct: HashSet<u64> = keys.collect();
        scaled(distinct.len() as u64, kept).saturating_mul(flash::BLOCK_BYTES)
    }))
}

/// Judges traces; `None` if these are recordings.
pub(super) fn judge(
    observations: &[Observation],
    pooled: &Observation,
    request: &AdviceRequest,
) -> Option<(MemoryAdvice, TraceAdvice)> {
    let facts: Vec<&TraceFacts> =
        observations.iter().filter_map(|one| one.trace.as_ref()).collect();
    let first = *facts.first()?;
    let reads = Reads::of(observations);
    let sum = |of: fn(&TraceFacts) -> u64| total(facts.iter().map(|facts| of(facts)));
    let mut trace = TraceAdvice {
        form: first.form.name().to_owned(),
        times: facts.iter().map(|facts| facts.times).max().unwrap_or_default(),
        times_from: facts.iter().find_map(|facts| facts.times_from.clone()),
        span_ns: sum(|facts| facts.span_ns),
        reads: sum(|facts| facts.reads),
        timed_reads: sum(|facts| facts.timed_reads),
        unseen_reads: sum(|facts| facts.unseen_reads),
        read_bytes: sum(|facts| facts.read_bytes),
        writes: sum(|facts| facts.writes),
        distinct_bytes: distinct_bytes(&reads),
        counts_objects: facts.iter().any(|facts| facts.form == TraceForm::OracleGeneral),
        sizes: Vec::new(),
    };
    if reads.kept_count() < flash::READS_MIN {
        let text = answer::few_kept(reads.kept_count(), trace.reads, flash::READS_MIN);
        return Some((MemoryAdvice { text, ..MemoryAdvice::default() }, trace));
    }
    let asked = request.more_bytes.iter().filter_map(|bytes| u64::try_from(*bytes).ok());
    let mut sizes: Vec<u64> = asked.chain(request.flash_bytes.iter().copied()).collect();
    if sizes.is_empty() {
        sizes = usual_sizes(&reads, USUAL_STEPS);
    }
    let caches = Caches::of(&reads, &sizes);
    trace.sizes = caches.sizes(&reads);
    let advice = caches.memory(&reads, pooled, request, without_times(observations));
    Some((advice, trace))
}

/// An LRU cache of each size, and the time that the disk took.
struct Caches {
    by_bytes: BTreeMap<u64, Simulated>,
    all_ns: Vec<u64>,
}

impl Caches {
    fn of(reads: &Reads, sizes: &[u64]) -> Self {
        let simulated = |bytes: &u64| (*bytes, reads.simulated(*bytes, |_| true, || Always));
        Self { by_bytes: sizes.iter().map(simulated).collect(), all_ns: reads.read_times() }
    }

    /// What each policy would have hit.
    fn sizes(&self, reads: &Reads) -> Vec<TraceSize> {
        let sizes = self.by_bytes.iter();
        sizes
            .map(|(&bytes, simulated)| TraceSize {
                bytes,
                served_reads: simulated.hits,
                policies: hit_shares(reads, bytes, simulated),
            })
            .collect()
    }

    /// What so much more memory would have spared: it keeps what the disk was asked for last.
    fn memory(
        &self,
        reads: &Reads,
        pooled: &Observation,
        request: &AdviceRequest,
        without_times: Option<String>,
    ) -> MemoryAdvice {
        let gain = |more_bytes: i64| self.gain(reads, more_bytes, without_times.as_ref());
        let named = request.more_bytes.iter().copied();
        let largest = self.by_bytes.keys().rev().take(JUDGED_SIZES as usize).rev();
        let usual = largest.filter_map(|bytes| i64::try_from(*bytes).ok());
        let sizes: Vec<MemoryGain> = if request.more_bytes.is_empty() {
            usual.map(gain).collect()
        } else {
            named.map(gain).collect()
        };
        let mut advice = MemoryAdvice { reach_bytes: u64::MAX, sizes, ..MemoryAdvice::default() };
        if let Some(why) = without_times {
            advice.text = answer::of_hits(&self.by_bytes, reads.count(), &why);
            return advice;
        }
        let curve = self.by_bytes.keys().filter_map(|bytes| i64::try_from(*bytes).ok());
        advice.curve = [0].into_iter().chain(curve).map(gain).collect();
        memory::name(&mut advice, reads.span_ns(), true);
        advice.text = answer::of_memory(&advice, pooled);
        advice
    }

    fn gain(&self, reads: &Reads, more_bytes: i64, without_times: Option<&String>) -> MemoryGain {
        let Ok(bytes) = u64::try_from(more_bytes) else {
            let unproven = Some(answer::NO_HITS_OF_TRACE.to_owned());
            return MemoryGain { more_bytes, unproven, ..MemoryGain::default() };
        };
        let none = (bytes == 0).then(|| reads.simulated(0, |_| false, || Always));
        let Some(simulated) = self.by_bytes.get(&bytes).or(none.as_ref()) else {
            return MemoryGain { more_bytes, ..MemoryGain::default() };
        };
        let spared = reads.spared(&CacheDevice::memory(), simulated, &self.all_ns);
        let is_timed = without_times.is_none();
        MemoryGain {
            more_bytes,
            kept_bytes: Some(simulated.hit_bytes),
            kept_low_bytes: None,
            spared: is_timed.then_some(spared),
            threads_ns: is_timed.then(|| reads.hit_ns(simulated)),
            unproven: without_times.cloned(),
            ..MemoryGain::default()
        }
    }
}

/// The share of the blocks that a cache of each policy would have had; `lru` is simulated already.
fn hit_shares(reads: &Reads, bytes: u64, lru: &Simulated) -> Vec<PolicyShare> {
    let traces: Vec<(&BlockReads, Vec<u64>)> =
        reads.keys(|_| true).map(|(kept, keys)| (kept, keys.collect())).collect();
    let requests = total(traces.iter().map(|(kept, keys)| scaled(keys.len() as u64, kept)));
    let hits = |policy| {
        // One cache after the other: all of them at a time would take gigabytes.
        total(traces.iter().map(|(kept, keys)| {
            let Some(slots) = flash::slots_of(bytes, kept, keys.len() as u64) else {
                return 0;
            };
            let mut sweep = Sweep::new(&[policy], &[slots]);
            sweep.requests(keys);
            scaled(sweep.points().iter().map(|point| point.counts.hits).sum(), kept)
        }))
    };
    let share = |policy: EvictionPolicy| {
        let hits = if policy == EvictionPolicy::Lru { lru.hit_blocks } else { hits(policy) };
        PolicyShare {
            policy: policy.name().to_owned(),
            hit_share: hits as f64 / requests.max(1) as f64,
        }
    };
    EvictionPolicy::ALL.into_iter().map(share).collect()
}

/// What a trace is of, and what its figures leave out.
pub(super) fn notes(trace: &TraceAdvice) -> Vec<String> {
    let mut notes = Vec::new();
    if trace.times == TraceTimes::Trace {
        notes.push(
            "the times are those that the disk took: who waited for it is not in a trace"
                .to_owned(),
        );
    }
    notes.extend(trace.times_from.clone());
    if trace.times == TraceTimes::Trace && trace.timed_reads < trace.reads {
        let [timed, all] = [trace.timed_reads, trace.reads].map(count);
        notes.push(format!("{timed} of {all} reads have times, the others count as nothing"));
    }
    if trace.unseen_reads > 0 {
        let [seen, all] = [trace.reads, trace.reads + trace.unseen_reads].map(count);
        notes.push(format!("judged by the first {seen} of {all} reads: more were not kept"));
    }
    if trace.counts_objects {
        notes.push("each object counts as one block of 4 KiB, whatever its size".to_owned());
    }
    notes.push(
        "a cache begins empty and keeps what was read; writes neither fill nor empty it".to_owned(),
    );
    notes
}

/// Whether the seconds are of real time, so that a day can be concluded from them.
pub(super) fn is_of_real_time(trace: &TraceAdvice) -> bool {
    trace.times == TraceTimes::Trace
}

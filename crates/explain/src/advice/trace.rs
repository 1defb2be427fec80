//! Traces of other tools, judged as the block reads of a recording are.
//!
//! 1. [`TraceReads`] keeps the reads of a trace, of a long one those to a share of the regions, and
//!    in which part of the time at least one was under way.
//! 2. [`observe_trace`] cuts the time into pieces. A trace without the times of its disk has none,
//!    unless those of a measured disk are given: then the reads follow each other.
//! 3. [`judge`] simulates each size: hits by policy, and the time that an LRU cache in memory would
//!    have spared. `flash` does the same for a stick and an SSD.
//!
//! A trace says nothing of who waited: seconds are those in which the disk was reading.

use super::blocks::{Observation, TimeBlock, piece_count, total};
use super::flash::{self, BlockAccess, BlockReads, CacheDevice, Reads, Simulated, scaled};
use super::{AdviceRequest, answer, memory};
use model::advice::{MemoryAdvice, MemoryGain, PolicyShare, TraceAdvice, TraceSize, TraceTimes};
use model::text::count;
use policy::EvictionPolicy;
use policy::admission::Always;
use policy::simulate::Sweep;
use policy::trace::{TraceForm, TraceRequest};
use std::collections::{BTreeMap, HashSet};

/// More blocks of a trace are thinned: each is simulated some fifty times.
const BLOCKS_MAX: u64 = 2 << 20;

/// Blocks of a region that is kept or not as one, as a power of two: 1 MiB, so that runs stay runs.
const REGION_SHIFT: u32 = 8;

/// The smallest share.
const SHIFT_MAX: u8 = 30;

/// With fewer regions chance would decide what is seen: then the first reads are judged.
const REGIONS_MIN: usize = 64;

/// Sizes that the policies are compared at if none is named: halves, from all blocks on downwards.
const USUAL_STEPS: u32 = 7;

/// So many of the largest are judged in seconds.
pub(super) const JUDGED_SIZES: u32 = 4;

/// The smallest size that is judged without being named.
const LEAST_BYTES: u64 = 1 << 20;

/// The trace of another tool, its reads alone.
#[derive(Clone, Debug)]
pub struct TraceReads {
    name: String,
    form: TraceForm,
    kept: BlockReads,
    kept_blocks: u64,
    /// Beyond so many blocks a smaller share is tried.
    thin_at: u64,
    /// Whether no more could be kept: the requests before are judged.
    has_ended: bool,
    /// Reads after that.
    unseen_reads: u64,
    reads: u64,
    read_bytes: u64,
    writes: u64,
    timed_reads: u64,
    end_ns: u64,
    busy: BusyTime,
}

impl TraceReads {
    /// No request yet of the trace `name`.
    #[must_use]
    pub fn new(name: &str, form: TraceForm) -> Self {
        Self {
            name: name.to_owned(),
            form,
            kept: BlockReads::default(),
            kept_blocks: 0,
            thin_at: BLOCKS_MAX,
            has_ended: false,
            unseen_reads: 0,
            reads: 0,
            read_bytes: 0,
            writes: 0,
            timed_reads: 0,
            end_ns: 0,
            busy: BusyTime::default(),
        }
    }

    /// Adds a request, in blocks of 4 KiB; no earlier one may follow.
    pub fn add(&mut self, request: &TraceRequest) {
        if self.has_ended {
            self.unseen_reads += u64::from(!request.is_write);
            return;
        }
        let took_ns = request.latency_ns.unwrap_or(0);
        let (from_ns, to_ns) = match self.form {
            TraceForm::BlkparseCompleted => (request.at_ns.saturating_sub(took_ns), request.at_ns),
            _ => (request.at_ns, request.at_ns.saturating_add(took_ns)),
        };
        self.end_ns = self.end_ns.max(to_ns);
        if request.is_write {
            self.writes += 1;
            return;
        }
        self.reads += 1;
        self.read_bytes =
            self.read_bytes.saturating_add(u64::from(request.blocks) * flash::BLOCK_BYTES);
        if request.latency_ns.is_some() {
            self.timed_reads += 1;
            self.busy.add(from_ns, to_ns);
        }
        let access = access(request, took_ns);
        if is_followed(&access, self.region_shift(), self.kept.shift) {
            self.keep(access);
        }
    }

    fn keep(&mut self, access: BlockAccess) {
        self.kept_blocks += blocks_of(&access);
        self.kept.reads.push(access);
        while self.kept_blocks > self.thin_at && !self.has_ended {
            if self.thin() {
                self.thin_at = BLOCKS_MAX;
            } else if self.thin_at == BLOCKS_MAX {
                // Some regions are read all the time; others may follow.
                self.thin_at = 2 * BLOCKS_MAX;
            } else {
                self.has_ended = true;
            }
        }
    }

    /// Halves the share; whether that leaves enough regions.
    fn thin(&mut self) -> bool {
        let (region_shift, shift) = (self.region_shift(), self.kept.shift + 1);
        let is_in = |read: &&BlockAccess| is_followed(read, region_shift, shift);
        let left = self.kept.reads.iter().filter(is_in);
        let regions: HashSet<u64> = left.map(|read| region(read, region_shift)).collect();
        if shift > SHIFT_MAX || regions.len() < REGIONS_MIN {
            return false;
        }
        self.kept.shift = shift;
        self.kept.reads.retain(|read| is_in(&read));
        self.kept_blocks = total(self.kept.reads.iter().map(blocks_of));
        true
    }

    /// Objects have numbers without an order: each is kept or not by itself.
    fn region_shift(&self) -> u32 {
        if self.form == TraceForm::OracleGeneral { 0 } else { REGION_SHIFT }
    }

    /// Whether half of the reads or more say what the disk took.
    #[must_use]
    pub fn has_times(&self) -> bool {
        self.reads > 0 && self.timed_reads >= self.reads.div_ceil(2)
    }
}

/// A place of a trace as one of a disk: no two keys are the same block.
fn access(request: &TraceRequest, latency_ns: u64) -> BlockAccess {
    let block = request.first_key & ((1 << flash::DISK_SHIFT) - 1);
    let sectors = u64::from(request.blocks).saturating_mul(flash::BLOCK_SECTORS);
    BlockAccess {
        at_ns: request.at_ns,
        disk: (request.first_key >> flash::DISK_SHIFT) as u32,
        sector: block * flash::BLOCK_SECTORS,
        sectors: u32::try_from(sectors).unwrap_or(u32::MAX),
        latency_ns,
    }
}

fn blocks_of(access: &BlockAccess) -> u64 {
    u64::from(access.sectors).div_ceil(flash::BLOCK_SECTORS)
}

/// Whether a read is kept when one region in two to the power of `shift` is; shares are nested.
fn is_followed(access: &BlockAccess, region_shift: u32, shift: u8) -> bool {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = region(access, region_shift).wrapping_mul(ODD);
    (mixed ^ mixed >> 29).wrapping_mul(ODD) >> 32 & ((1 << shift) - 1) == 0
}

/// The number of a region, among those of all disks.
fn region(access: &BlockAccess, region_shift: u32) -> u64 {
    (access.sector / flash::BLOCK_SECTORS) >> region_shift ^ u64::from(access.disk) << 40
}

/// When at least one read was under way, in at most [`BusyTime::STEPS_MAX`] steps of one length.
#[derive(Clone, Debug)]
struct BusyTime {
    /// Their length, as a power of two.
    step_shift: u32,
    steps: Vec<u64>,
    until_ns: u64,
}

impl Default for BusyTime {
    fn default() -> Self {
        Self { step_shift: 10, steps: Vec::new(), until_ns: 0 }
    }
}

impl BusyTime {
    const STEPS_MAX: u64 = 1 << 17;

    /// Adds a read. What is before the end of an earlier one is taken as added; of reads that are
    /// not in the order of their start this is less than the truth.
    fn add(&mut self, from_ns: u64, to_ns: u64) {
        let mut at_ns = from_ns.max(self.until_ns);
        if to_ns <= at_ns {
            return;
        }
        self.until_ns = to_ns;
        while to_ns >> self.step_shift >= Self::STEPS_MAX {
            self.step_shift += 1;
            self.steps = self.steps.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        self.steps.resize((to_ns >> self.step_shift) as usize + 1, 0);
        while at_ns < to_ns {
            let step = at_ns >> self.step_shift;
            let step_end = (step + 1).checked_shl(self.step_shift).unwrap_or(to_ns).min(to_ns);
            let end_ns = if step_end <= at_ns { to_ns } else { step_end };
            self.steps[step as usize] += end_ns - at_ns;
            at_ns = end_ns;
        }
    }

    /// The busy time of each of `count` pieces of `span_ns`.
    fn pieces(&self, span_ns: u64, count: u64) -> Vec<u64> {
        let mut pieces = vec![0_u64; count as usize];
        for (step, busy_ns) in (0_u64..).zip(&self.steps) {
            let middle_ns = (step << self.step_shift) + (1 << self.step_shift) / 2;
            let piece = piece_of(middle_ns, span_ns, count);
            pieces[piece] = pieces[piece].saturating_add(*busy_ns);
        }
        pieces
    }
}

/// Which of `count` pieces of `span_ns` a time is in.
fn piece_of(at_ns: u64, span_ns: u64, count: u64) -> usize {
    let piece = u128::from(at_ns) * u128::from(count) / u128::from(span_ns.max(1));
    piece.min(u128::from(count.saturating_sub(1))) as usize
}

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
        let bytes: Vec<u64> = self.by_bytes.keys().copied().collect();
        let shares = hit_shares(reads, &bytes);
        let sizes = self.by_bytes.iter().zip(shares);
        sizes
            .map(|((&bytes, simulated), policies)| TraceSize {
                bytes,
                served_reads: simulated.hits,
                policies,
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
        }
    }
}

/// The share of the blocks that each policy would have had, at each size in its order.
fn hit_shares(reads: &Reads, sizes: &[u64]) -> Vec<Vec<PolicyShare>> {
    let traces: Vec<(&BlockReads, Vec<u64>)> =
        reads.keys(|_| true).map(|(kept, keys)| (kept, keys.collect())).collect();
    let requests = total(traces.iter().map(|(kept, keys)| scaled(keys.len() as u64, kept)));
    let hits = |policy, bytes| {
        // One cache after the other: all of them at a time would take gigabytes.
        total(traces.iter().map(|(kept, keys)| {
            let slots = flash::slots_of(bytes, kept, keys.len() as u64);
            let mut sweep = Sweep::new(&[policy], &[slots]);
            sweep.requests(keys);
            scaled(sweep.points().iter().map(|point| point.counts.hits).sum(), kept)
        }))
    };
    let share = |policy: EvictionPolicy, bytes| PolicyShare {
        policy: policy.name().to_owned(),
        hit_share: hits(policy, bytes) as f64 / requests.max(1) as f64,
    };
    let of_size = |bytes: &u64| EvictionPolicy::ALL.iter().map(|&one| share(one, *bytes)).collect();
    sizes.iter().map(of_size).collect()
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

/// What no seconds are known of.
pub(super) fn is_timeless(trace: &TraceAdvice) -> bool {
    trace.times == TraceTimes::None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_is_the_union_in_steps_that_grow() {
        let mut busy = BusyTime::default();
        for (from, to) in [(0, 3000), (1000, 2000), (2000, 4000), (1 << 40, (1 << 40) + 512)] {
            busy.add(from, to);
        }
        assert_eq!(busy.steps.iter().sum::<u64>(), 4512);
        assert!(busy.steps.len() as u64 <= BusyTime::STEPS_MAX);
        assert_eq!(busy.pieces((1 << 40) + 512, 2), [4000, 512]);
        let mut huge = BusyTime::default();
        huge.add(0, u64::MAX);
        huge.add(5, u64::MAX);
        assert_eq!(huge.steps.iter().fold(0, |sum: u128, ns| sum + u128::from(*ns)), (1 << 64) - 1);
    }

    #[test]
    fn a_trace_of_few_regions_is_judged_by_its_first_reads() {
        let mut trace = TraceReads::new("a", TraceForm::Msr);
        let of = |number: u64| TraceRequest {
            at_ns: number * 1000,
            // A region, and one block of it after the other.
            first_key: number % 256,
            blocks: 1,
            is_write: false,
            latency_ns: Some(500),
        };
        let all = 2 * BLOCKS_MAX + 1000;
        (0..all).for_each(|number| trace.add(&of(number)));
        assert_eq!((trace.kept.shift, trace.kept.lost), (0, 0));
        assert_eq!(trace.reads + trace.unseen_reads, all);
        assert_eq!(trace.kept.reads.len() as u64, trace.reads);
        assert_eq!(trace.unseen_reads, 999);
        // What follows has no part in the time either.
        assert_eq!(trace.end_ns, (trace.reads - 1) * 1000 + 500);
        let observed = observe_trace(trace, None);
        assert!(observed.blocks.iter().all(|block| block.waited_ns > 0));
    }

    #[test]
    fn keys_of_a_trace_stay_apart() {
        let place = |first_key| {
            let request =
                TraceRequest { at_ns: 0, first_key, blocks: 1, is_write: false, latency_ns: None };
            let access = access(&request, 0);
            (access.disk, access.sector)
        };
        let keys = [0, 1, 1 << 43, 1 << 44, 1 << 51, 1 << 63, u64::MAX];
        let places: HashSet<_> = keys.map(place).into_iter().collect();
        assert_eq!(places.len(), keys.len());
    }
}

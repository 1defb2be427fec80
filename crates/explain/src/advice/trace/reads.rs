//! The reads of a trace of another tool, of a long one those to a share of the regions.
//!
//! [`TraceReads`] takes one request after the other. It keeps reads and counts the rest, and in
//! which part of the time at least one read was under way. What is kept is thinned by regions, so
//! that runs stay runs; a trace of few regions is judged by its first reads.

use crate::advice::blocks::total;
use crate::advice::flash::{self, BlockAccess, BlockReads};
use policy::trace::{TraceForm, TraceRequest};
use std::collections::HashSet;

/// More blocks of a trace are thinned: each is simulated some fifty times.
const BLOCKS_MAX: u64 = 2 << 20;

/// Blocks of a region that is kept or not as one, as a power of two: 1 MiB, so that runs stay runs.
const REGION_SHIFT: u32 = 8;

/// The smallest share.
const SHIFT_MAX: u8 = 30;

/// With fewer regions chance would decide what is seen: then the first reads are judged.
const REGIONS_MIN: usize = 64;

/// The trace of another tool, its reads alone.
#[derive(Clone, Debug)]
pub struct TraceReads {
    pub(super) name: String,
    pub(super) form: TraceForm,
    pub(super) kept: BlockReads,
    kept_blocks: u64,
    /// Beyond so many blocks a smaller share is tried.
    thin_at: u64,
    /// Whether no more could be kept: the requests before are judged.
    has_ended: bool,
    /// Reads after that.
    pub(super) unseen_reads: u64,
    pub(super) reads: u64,
    pub(super) read_bytes: u64,
    pub(super) writes: u64,
    pub(super) timed_reads: u64,
    pub(super) end_ns: u64,
    pub(super) busy: BusyTime,
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
pub(super) struct BusyTime {
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
    pub(super) fn pieces(&self, span_ns: u64, count: u64) -> Vec<u64> {
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
pub(super) fn piece_of(at_ns: u64, span_ns: u64, count: u64) -> usize {
    let piece = u128::from(at_ns) * u128::from(count) / u128::from(span_ns.max(1));
    piece.min(u128::from(count.saturating_sub(1))) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::trace::observe_trace;

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

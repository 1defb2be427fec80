//! What a cache on a stick or an SSD would have spared of the disk time.
//!
//! The block reads of a recording with accesses go through a simulated cache (LRU, which keeps long
//! runs out). A read of which all blocks hit costs the time of that device instead of the time that
//! the disk was seen to take. Of the waits for disks in each piece of the recording that share
//! would have been spared. The judge is time, not the share of hits.

use super::blocks::Observation;
use super::{GIB, answer, interval, memory};
use model::advice::{AdviceState, FlashAdvice, FlashGain, SparedTime};
use policy::admission::ShortRuns;
use policy::eviction::Lru;
use policy::simulate::SimulatedCache;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

/// Blocks of a cache.
const BLOCK_BYTES: u64 = 4096;

/// Sectors of a block.
const BLOCK_SECTORS: u64 = BLOCK_BYTES / 512;

/// Blocks of a disk have smaller numbers than two to the power of this: 64 PiB.
const DISK_SHIFT: u32 = 44;

/// Longer runs stay on the disk: 256 KiB. Picked: a disk reads so much in less than a seek.
const RUN_BLOCKS: u64 = 64;

/// No cache is simulated with more blocks: 64 GiB, a slot takes tens of bytes. A larger one gains
/// at least as much.
const SLOTS_MAX: u64 = 1 << 24;

/// Fewer reads say nothing. Picked, as of pages that came back.
const READS_MIN: u64 = 1_000;

/// Sizes that are judged if none is named.
const USUAL_SIZES: [u64; 4] = [4 * GIB, 8 * GIB, 16 * GIB, 32 * GIB];

/// The smallest size with this share of the best is the one that the answer names.
const NAMED_SHARE: f64 = 0.9;

/// A request to a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockAccess {
    /// When, since the start of its recording.
    pub at_ns: u64,
    /// Which disk.
    pub disk: u32,
    /// Its first sector of 512 bytes.
    pub sector: u64,
    /// How many sectors.
    pub sectors: u32,
    /// What the disk took for it.
    pub latency_ns: u64,
}

/// The reads of a recording in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockReads {
    /// Those that were kept: one region in two to the power of `shift`.
    pub reads: Vec<BlockAccess>,
    /// See `reads`.
    pub shift: u8,
    /// Requests that were lost.
    pub lost: u64,
    /// Why they end before the recording does.
    pub damage: Option<String>,
}

/// A device that a cache could be on.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheDevice {
    /// `stick` or `ssd`.
    pub kind: String,
    /// What it takes for 4 KiB at a random place.
    pub read_ns: f64,
    /// Its rate beyond that.
    pub bytes_per_s: f64,
    /// Where both come from, in words.
    pub times_from: String,
    /// Whether they are assumed.
    pub is_assumed: bool,
}

impl CacheDevice {
    /// A usual stick: assumed.
    #[must_use]
    pub fn usual_stick() -> Self {
        Self::assumed("stick", 900e3, 100e6, "0.9 ms and 100 MB/s, as a usual stick")
    }

    /// A usual SSD: assumed.
    #[must_use]
    pub fn usual_ssd() -> Self {
        Self::assumed("ssd", 90e3, 500e6, "0.09 ms and 500 MB/s, as a usual SSD")
    }

    fn assumed(kind: &str, read_ns: f64, bytes_per_s: f64, words: &str) -> Self {
        let (kind, times_from) = (kind.to_owned(), format!("assumed: {words}"));
        Self { kind, read_ns, bytes_per_s, times_from, is_assumed: true }
    }

    fn time_ns(&self, hits: HitSums) -> f64 {
        let beyond = hits.bytes.saturating_sub(hits.hits * BLOCK_BYTES) as f64;
        hits.hits as f64 * self.read_ns + beyond / self.bytes_per_s.max(1.0) * 1e9
    }
}

/// The reads of one piece of a recording that a cache would have served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HitSums {
    hits: u64,
    bytes: u64,
    /// What the disk took for them.
    disk_ns: u64,
}

/// Judges each device.
pub(super) fn judge(
    seen: &Observation,
    devices: &[CacheDevice],
    sizes: &[u64],
) -> Vec<FlashAdvice> {
    let sizes = if sizes.is_empty() { &USUAL_SIZES[..] } else { sizes };
    let why = if seen.has_others_reads { answer::ONE_ALONE } else { answer::NO_ACCESSES };
    let Some(reads) = &seen.reads else {
        return devices.iter().map(|device| unproven(device, why.to_owned())).collect();
    };
    if let Some(why) = reads.damage.as_ref().filter(|_| reads.reads.is_empty()) {
        let text = answer::unreadable(why);
        return devices.iter().map(|device| unproven(device, text.clone())).collect();
    }
    if (reads.reads.len() as u64) < READS_MIN {
        let text = answer::few_reads(reads.reads.len() as u64, READS_MIN);
        return devices.iter().map(|device| unproven(device, text.clone())).collect();
    }
    let disks = disk_numbers(reads);
    let blocks = reads.reads.iter().filter(|read| is_short(read)).map(|read| keys(read, &disks));
    let most = blocks.map(|keys| keys.count() as u64).fold(0, u64::saturating_add).min(SLOTS_MAX);
    let of_size = |bytes: &u64| {
        let wanted = (*bytes / BLOCK_BYTES) >> reads.shift.min(31);
        let slots = u32::try_from(wanted.min(most)).unwrap_or(u32::MAX);
        (*bytes, simulated(seen, reads, &disks, NonZeroU32::new(slots).unwrap_or(NonZeroU32::MIN)))
    };
    let sums: Vec<_> = sizes.iter().map(of_size).collect();
    devices.iter().map(|device| of_device(seen, reads, device, &sums)).collect()
}

fn unproven(device: &CacheDevice, text: String) -> FlashAdvice {
    FlashAdvice {
        kind: device.kind.clone(),
        state: AdviceState::Unproven,
        text,
        times_from: device.times_from.clone(),
        is_assumed: device.is_assumed,
        ..FlashAdvice::default()
    }
}

/// The hits of each piece, and how many blocks were written to the cache.
type Simulated = (Vec<HitSums>, u64);

fn simulated(
    seen: &Observation,
    reads: &BlockReads,
    disks: &Disks,
    slots: NonZeroU32,
) -> Simulated {
    let ends = block_ends(seen);
    let mut sums = vec![HitSums::default(); ends.len()];
    let mut cache = SimulatedCache::with_admission(Lru::new(slots), ShortRuns::new(RUN_BLOCKS));
    for read in reads.reads.iter().filter(|read| is_short(read)) {
        let mut is_hit = true;
        for key in keys(read, disks) {
            is_hit &= cache.request(key);
        }
        let piece = ends.partition_point(|end| *end <= read.at_ns);
        if let Some(sum) = sums.get_mut(piece).filter(|_| is_hit) {
            sum.hits += 1;
            sum.bytes += u64::from(read.sectors) * 512;
            sum.disk_ns = sum.disk_ns.saturating_add(read.latency_ns);
        }
    }
    (sums, cache.counts().admitted)
}

/// A request that is a long run of its own goes past the cache.
fn is_short(read: &BlockAccess) -> bool {
    u64::from(read.sectors) <= RUN_BLOCKS * BLOCK_SECTORS
}

/// A small number for each disk.
type Disks = BTreeMap<u32, u64>;

fn disk_numbers(reads: &BlockReads) -> Disks {
    let disks: BTreeSet<u32> = reads.reads.iter().map(|read| read.disk).collect();
    disks.into_iter().zip(0..).collect()
}

/// Blocks of a request: the number of the disk is above that of the block.
fn keys(read: &BlockAccess, disks: &Disks) -> impl Iterator<Item = u64> + use<> {
    let first = read.sector / BLOCK_SECTORS;
    let last = read.sector.saturating_add(u64::from(read.sectors.max(1)) - 1) / BLOCK_SECTORS;
    let disk = disks.get(&read.disk).copied().unwrap_or(0) << DISK_SHIFT;
    (first..=last).map(move |block| disk ^ block)
}

fn block_ends(seen: &Observation) -> Vec<u64> {
    let mut end = 0_u64;
    let ends = seen.blocks.iter().map(|block| {
        end = end.saturating_add(block.gap_ns).saturating_add(block.length_ns);
        end
    });
    ends.collect()
}

fn of_device(
    seen: &Observation,
    reads: &BlockReads,
    device: &CacheDevice,
    sums: &[(u64, Simulated)],
) -> FlashAdvice {
    let all_ns = read_times(seen, reads);
    let gain = |(bytes, (hits, admitted)): &(u64, Simulated)| FlashGain {
        bytes: *bytes,
        spared: spared(seen, reads, device, hits, &all_ns),
        hits: hits.iter().map(|sum| sum.hits).sum::<u64>() << reads.shift.min(31),
        reads: (reads.reads.len() as u64) << reads.shift.min(31),
        written_bytes: (admitted * BLOCK_BYTES) << reads.shift.min(31),
    };
    let mut advice = unproven(device, String::new());
    advice.sizes = sums.iter().map(gain).collect();
    let most = advice.sizes.iter().map(|gain| gain.spared.ns).max().unwrap_or(0);
    let is_enough = |gain: &&FlashGain| gain.spared.ns as f64 >= most as f64 * NAMED_SHARE;
    let state = |gain: &FlashGain| memory::state_of(&gain.spared, seen.span_ns());
    let is_worth = |gain: &&FlashGain| state(gain) != AdviceState::Nothing;
    let enough = advice.sizes.iter().filter(is_enough).min_by_key(|gain| gain.bytes);
    let Some(gain) = enough.filter(is_worth).or_else(|| widest(&advice.sizes)) else {
        return advice;
    };
    (advice.state, advice.named_bytes, advice.text) = match state(gain) {
        AdviceState::Nothing => {
            let text =
                answer::spared_by_cache(answer::a_device(&device.kind), gain, seen.span_ns());
            (AdviceState::Nothing, None, text)
        }
        state => (state, Some(gain.bytes), answer::of_flash(device, gain, seen.span_ns())),
    };
    advice
}

/// The size that may have spared the most, the smallest of several.
pub(super) fn widest(sizes: &[FlashGain]) -> Option<&FlashGain> {
    sizes.iter().max_by_key(|gain| (gain.spared.high_ns, Reverse(gain.bytes)))
}

/// What the disk took for all reads of each piece.
fn read_times(seen: &Observation, reads: &BlockReads) -> Vec<u64> {
    let ends = block_ends(seen);
    let mut sums = vec![0_u64; ends.len()];
    for read in &reads.reads {
        if let Some(sum) = sums.get_mut(ends.partition_point(|end| *end <= read.at_ns)) {
            *sum = sum.saturating_add(read.latency_ns);
        }
    }
    sums
}

/// The share of the read time that goes, of the waits in each piece.
fn spared(
    seen: &Observation,
    reads: &BlockReads,
    device: &CacheDevice,
    hits: &[HitSums],
    all_ns: &[u64],
) -> SparedTime {
    let pieces = seen.blocks.iter().zip(hits).zip(all_ns);
    let walls: Vec<f64> = pieces
        .map(|((block, hits), all_ns)| {
            let gained = hits.disk_ns as f64 - device.time_ns(*hits);
            let share = gained / (*all_ns).max(1) as f64;
            block.waited_ns.min(block.disk_ns) as f64 * share
        })
        .collect();
    let ns = walls.iter().sum::<f64>().clamp(0.0, seen.disk_ns() as f64);
    let kept = reads.reads.len() as f64;
    let lost = reads.lost as f64 / (kept + reads.lost as f64).max(1.0);
    let (low, high) = interval::of_sum(&walls).unwrap_or((0.0, seen.disk_ns() as f64));
    let low = (low * (1.0 - lost)).clamp(0.0, ns);
    let high = (high * (1.0 + lost)).clamp(ns, (seen.disk_ns() as f64).max(ns));
    SparedTime { ns: ns as u64, low_ns: low as u64, high_ns: high as u64 }
}

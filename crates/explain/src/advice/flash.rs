//! What a cache on a stick or an SSD would have spared of the disk time.
//!
//! The block reads of a recording with accesses go through a simulated cache (LRU, which keeps long
//! runs out). A read of which all blocks hit costs the time of that device instead of the time that
//! the disk was seen to take. Of the waits for disks in each piece of the recording that share
//! would have been spared. The judge is time, not the share of hits.
//!
//! Of several recordings each begins with an empty cache: what happened between them is not known,
//! so that what the cache holds is never taken for more than was seen. Their pieces are summed up.

use super::blocks::{Observation, TimeBlock, total};
use super::{GIB, answer, interval, memory, trace};
use model::advice::{AdviceState, FlashAdvice, FlashGain, SparedTime};
use policy::admission::{Admission, ShortRuns};
use policy::eviction::Lru;
use policy::simulate::SimulatedCache;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;

/// Blocks of a cache.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// Sectors of a block.
pub(super) const BLOCK_SECTORS: u64 = BLOCK_BYTES / 512;

/// Blocks of a disk have smaller numbers than two to the power of this: 64 PiB.
pub(super) const DISK_SHIFT: u32 = 44;

/// Longer runs stay on the disk: 256 KiB. Picked: a disk reads so much in less than a seek.
const RUN_BLOCKS: u64 = 64;

/// Sectors of a region that is kept or not as one, as a power of two: 1 MiB.
const REGION_SHIFT: u32 = 11;

/// No cache is simulated with more blocks: 64 GiB, a slot takes tens of bytes. A larger one gains
/// at least as much.
const SLOTS_MAX: u64 = 1 << 24;

/// Fewer reads say nothing. Picked, as of pages that came back.
pub(super) const READS_MIN: u64 = 1_000;

/// Sizes that are judged if none is named.
const USUAL_SIZES: [u64; 4] = [4 * GIB, 8 * GIB, 16 * GIB, 32 * GIB];

/// The smallest size with this share of the best is the one that the answer names.
pub(super) const NAMED_SHARE: f64 = 0.9;

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
    /// Why none were kept.
    pub absent: Option<String>,
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

    /// Memory: what is in it costs no time of a device.
    pub(super) fn memory() -> Self {
        Self::assumed("memory", 0.0, f64::INFINITY, "")
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

/// The recordings that kept block reads, in their order.
pub(super) struct Reads<'a> {
    parts: Vec<Part<'a>>,
}

/// One of them.
struct Part<'a> {
    seen: &'a Observation,
    reads: &'a BlockReads,
    disks: Disks,
    /// The ends of its pieces.
    ends: Vec<u64>,
}

/// What one cache would have done.
#[derive(Default)]
pub(super) struct Simulated {
    /// Of the pieces of all recordings.
    pieces: Vec<HitSums>,
    /// Reads of which all blocks hit.
    pub(super) hits: u64,
    /// Their bytes.
    pub(super) hit_bytes: u64,
    /// Blocks that hit, also of reads of which others did not.
    pub(super) hit_blocks: u64,
    /// Blocks that were written to the cache.
    admitted: u64,
    /// Of recordings of which a share was kept: the reads that hit, by region.
    regions: Regions<HitSums>,
}

/// Something of each region that was kept: the number of its recording, its disk, its place.
type Regions<T> = HashMap<(usize, u32, u64), T>;

/// The region that a read of the recording with this number is in.
fn region(number: usize, read: &BlockAccess) -> (usize, u32, u64) {
    (number, read.disk, read.sector >> REGION_SHIFT)
}

impl<'a> Reads<'a> {
    pub(super) fn of(observations: &'a [Observation]) -> Self {
        let part = |seen: &'a Observation| {
            let reads = seen.reads.as_ref().filter(|reads| !reads.reads.is_empty())?;
            Some(Part { seen, reads, disks: disk_numbers(reads), ends: block_ends(seen) })
        };
        Self { parts: observations.iter().filter_map(part).collect() }
    }

    /// How many recordings these are.
    pub(super) fn recordings(&self) -> usize {
        self.parts.len()
    }

    /// What was kept of them.
    pub(super) fn kept(&self) -> impl Iterator<Item = &'a BlockReads> + '_ {
        self.parts.iter().map(|part| part.reads)
    }

    fn blocks(&self) -> impl Iterator<Item = &'a TimeBlock> + '_ {
        self.parts.iter().flat_map(|part| &part.seen.blocks)
    }

    pub(super) fn span_ns(&self) -> u64 {
        total(self.blocks().map(|block| block.length_ns))
    }

    pub(super) fn disk_ns(&self) -> u64 {
        total(self.blocks().map(|block| block.disk_ns))
    }

    /// All reads, of which a share may have been kept.
    pub(super) fn count(&self) -> u64 {
        total(self.kept().map(|reads| scaled(reads.reads.len() as u64, reads)))
    }

    /// Those that were kept.
    pub(super) fn kept_count(&self) -> u64 {
        total(self.kept().map(|reads| reads.reads.len() as u64))
    }

    /// The share of the requests that was lost, 0 to 1.
    fn lost_share(&self) -> f64 {
        let lost = total(self.kept().map(|reads| reads.lost)) as f64;
        lost / (self.kept_count() as f64 + lost).max(1.0)
    }

    /// The keys of the blocks of each recording that `is_wanted`, with what one key stands for.
    pub(super) fn keys(
        &self,
        is_wanted: fn(&BlockAccess) -> bool,
    ) -> impl Iterator<Item = (&'a BlockReads, impl Iterator<Item = u64>)> {
        self.parts.iter().map(move |part| {
            let wanted = part.reads.reads.iter().filter(move |read| is_wanted(read));
            (part.reads, wanted.flat_map(|read| keys(read, &part.disks)))
        })
    }

    /// Simulates a cache of `bytes` bytes, empty at the start of each recording, that reads which
    /// are not wanted go past.
    pub(super) fn simulated<A: Admission>(
        &self,
        bytes: u64,
        is_wanted: fn(&BlockAccess) -> bool,
        admission: impl Fn() -> A,
    ) -> Simulated {
        let mut all = Simulated::default();
        for (number, part) in self.parts.iter().enumerate() {
            let wanted = part.reads.reads.iter().filter(|read| is_wanted(read));
            let blocks = total(wanted.map(|read| keys(read, &part.disks).count() as u64));
            let Some(slots) = slots_of(bytes, part.reads, blocks) else {
                all.pieces.resize(all.pieces.len() + part.ends.len(), HitSums::default());
                continue;
            };
            let mut cache = SimulatedCache::with_admission(Lru::new(slots), admission());
            part.simulate(&mut cache, is_wanted, number, &mut all);
            let counts = cache.counts();
            all.admitted = all.admitted.saturating_add(scaled(counts.admitted, part.reads));
            all.hit_blocks = all.hit_blocks.saturating_add(scaled(counts.hits, part.reads));
        }
        all
    }

    /// What the disks took for the reads that hit.
    pub(super) fn hit_ns(&self, simulated: &Simulated) -> u64 {
        let mut pieces = simulated.pieces.iter();
        total(self.parts.iter().map(|part| {
            let of_part = pieces.by_ref().take(part.ends.len());
            scaled(total(of_part.map(|sum| sum.disk_ns)), part.reads)
        }))
    }

    /// What the disk took for all reads of each piece.
    pub(super) fn read_times(&self) -> Vec<u64> {
        let mut sums = Vec::new();
        for part in &self.parts {
            let begin = sums.len();
            sums.resize(begin + part.ends.len(), 0_u64);
            for read in &part.reads.reads {
                if let Some(sum) = sums[begin..].get_mut(part.piece(read)) {
                    *sum = sum.saturating_add(read.latency_ns);
                }
            }
        }
        sums
    }

    /// The share of the read time that goes, of the waits in each piece.
    pub(super) fn spared(
        &self,
        device: &CacheDevice,
        simulated: &Simulated,
        all_ns: &[u64],
    ) -> SparedTime {
        let pieces = self.blocks().zip(&simulated.pieces).zip(all_ns);
        let walls: Vec<f64> = pieces
            .map(|((block, hits), all_ns)| {
                let gained = hits.disk_ns as f64 - device.time_ns(*hits);
                let share = gained / (*all_ns).max(1) as f64;
                block.waited_ns.min(block.disk_ns) as f64 * share
            })
            .collect();
        let most = self.disk_ns() as f64;
        let ns = walls.iter().sum::<f64>().clamp(0.0, most);
        let (low, high) = interval::of_sum(&walls).unwrap_or((0.0, most));
        let error = self.lost_share() + self.sampling_error(device, simulated);
        let low = (low * (1.0 - error)).clamp(0.0, ns);
        let high = (high * (1.0 + error)).clamp(ns, most.max(ns));
        SparedTime { ns: ns as u64, low_ns: low as u64, high_ns: high as u64 }
    }
}

impl Reads<'_> {
    /// The half of the 95 % interval of the share of the read time that goes, as a part of that
    /// share: of the regions only some were kept. How much each gains for its read time differs, by
    /// the estimate of a ratio from a sample of clusters.
    fn sampling_error(&self, device: &CacheDevice, simulated: &Simulated) -> f64 {
        let shift = self.kept().map(|reads| reads.shift).max().unwrap_or(0);
        if shift == 0 {
            return 0.0;
        }
        let mut read_ns: Regions<f64> = HashMap::new();
        for (number, part) in self.parts.iter().enumerate().filter(|(_, part)| part.reads.shift > 0)
        {
            for read in &part.reads.reads {
                *read_ns.entry(region(number, read)).or_default() += read.latency_ns as f64;
            }
        }
        let gained = |key: &(usize, u32, u64)| {
            let hits = simulated.regions.get(key).copied().unwrap_or_default();
            hits.disk_ns as f64 - device.time_ns(hits)
        };
        let all: f64 = read_ns.values().sum();
        let share = read_ns.keys().map(gained).sum::<f64>() / all.max(1.0);
        if share <= 0.0 {
            return 1.0;
        }
        let squares = read_ns.iter().map(|(key, ns)| (gained(key) - share * ns).powi(2));
        let kept = 0.5_f64.powi(i32::from(shift));
        let spread = (squares.sum::<f64>() * (1.0 - kept)).sqrt() / all.max(1.0);
        (1.96 * spread / share).min(1.0)
    }
}

impl BlockAccess {
    fn bytes(&self) -> u64 {
        u64::from(self.sectors) * 512
    }
}

impl HitSums {
    fn add(&mut self, read: &BlockAccess) {
        self.hits += 1;
        self.bytes += read.bytes();
        self.disk_ns = self.disk_ns.saturating_add(read.latency_ns);
    }
}

impl Part<'_> {
    fn piece(&self, read: &BlockAccess) -> usize {
        self.ends.partition_point(|end| *end <= read.at_ns)
    }

    fn simulate<A: Admission>(
        &self,
        cache: &mut SimulatedCache<Lru, A>,
        is_wanted: fn(&BlockAccess) -> bool,
        number: usize,
        all: &mut Simulated,
    ) {
        let begin = all.pieces.len();
        all.pieces.resize(begin + self.ends.len(), HitSums::default());
        let (mut hits, mut hit_bytes) = (0, 0);
        for read in self.reads.reads.iter().filter(|read| is_wanted(read)) {
            let mut is_hit = true;
            for key in keys(read, &self.disks) {
                is_hit &= cache.request(key);
            }
            if !is_hit {
                continue;
            }
            hits += 1;
            hit_bytes += read.bytes();
            if let Some(sum) = all.pieces[begin..].get_mut(self.piece(read)) {
                sum.add(read);
            }
            if self.reads.shift > 0 {
                all.regions.entry(region(number, read)).or_default().add(read);
            }
        }
        all.hits = all.hits.saturating_add(scaled(hits, self.reads));
        all.hit_bytes = all.hit_bytes.saturating_add(scaled(hit_bytes, self.reads));
    }
}

/// What a number of kept reads stands for.
pub(super) fn scaled(kept: u64, reads: &BlockReads) -> u64 {
    kept.saturating_mul(1 << reads.shift.min(31))
}

/// The slots of a cache of `bytes` bytes for the share of the reads that was kept; more than all
/// of their `blocks` are not needed. `None` if not even one block fits.
pub(super) fn slots_of(bytes: u64, reads: &BlockReads, blocks: u64) -> Option<NonZeroU32> {
    let wanted = (bytes / BLOCK_BYTES) >> reads.shift.min(31);
    NonZeroU32::new(u32::try_from(wanted.min(blocks).min(SLOTS_MAX)).unwrap_or(u32::MAX))
}

/// Judges each device.
pub(super) fn judge(
    observations: &[Observation],
    devices: &[CacheDevice],
    sizes: &[u64],
) -> Vec<FlashAdvice> {
    let reads = Reads::of(observations);
    if let Some(why) = unproven_reason(observations, &reads) {
        return devices.iter().map(|device| unproven(device, why.clone())).collect();
    }
    let sizes = match (sizes, trace::is_trace(observations)) {
        ([], true) => trace::usual_sizes(&reads, trace::JUDGED_SIZES),
        ([], false) => USUAL_SIZES.to_vec(),
        (sizes, _) => sizes.to_vec(),
    };
    let of_size =
        |bytes: &u64| (*bytes, reads.simulated(*bytes, is_short, || ShortRuns::new(RUN_BLOCKS)));
    let sums: Vec<_> = sizes.iter().map(of_size).collect();
    let all_ns = reads.read_times();
    devices.iter().map(|device| of_device(&reads, device, &sums, &all_ns)).collect()
}

/// Why no device is judged.
fn unproven_reason(observations: &[Observation], reads: &Reads) -> Option<String> {
    if reads.recordings() == 0 {
        let mut kept = observations.iter().filter_map(|one| one.reads.as_ref());
        if let Some(why) = kept.clone().find_map(|reads| reads.absent.clone()) {
            return Some(why);
        }
        return Some(match kept.find_map(|reads| reads.damage.as_ref()) {
            Some(why) => answer::unreadable(why),
            None if trace::is_trace(observations) || keeps_accesses(observations) => {
                answer::few_reads(0, READS_MIN)
            }
            None => answer::NO_ACCESSES.to_owned(),
        });
    }
    if reads.kept_count() < READS_MIN {
        return Some(answer::few_reads(reads.kept_count(), READS_MIN));
    }
    trace::without_times(observations)
}

fn keeps_accesses(observations: &[Observation]) -> bool {
    observations.iter().any(|one| one.reads.is_some())
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
    reads: &Reads,
    device: &CacheDevice,
    sums: &[(u64, Simulated)],
    all_ns: &[u64],
) -> FlashAdvice {
    let gain = |(bytes, simulated): &(u64, Simulated)| FlashGain {
        bytes: *bytes,
        spared: reads.spared(device, simulated, all_ns),
        hits: simulated.hits,
        reads: reads.count(),
        written_bytes: simulated.admitted.saturating_mul(BLOCK_BYTES),
    };
    let span_ns = reads.span_ns();
    let mut advice = FlashAdvice { span_ns, ..unproven(device, String::new()) };
    advice.sizes = sums.iter().map(gain).collect();
    let most = advice.sizes.iter().map(|gain| gain.spared.ns).max().unwrap_or(0);
    let is_enough = |gain: &&FlashGain| gain.spared.ns as f64 >= most as f64 * NAMED_SHARE;
    let state = |gain: &FlashGain| memory::state_of(&gain.spared, span_ns);
    let is_worth = |gain: &&FlashGain| state(gain) != AdviceState::Nothing;
    let enough = advice.sizes.iter().filter(is_enough).min_by_key(|gain| gain.bytes);
    let Some(gain) = enough.filter(is_worth).or_else(|| widest(&advice.sizes)) else {
        return advice;
    };
    (advice.state, advice.named_bytes, advice.text) = match state(gain) {
        AdviceState::Nothing => {
            let text = answer::spared_by_cache(answer::a_device(&device.kind), gain, span_ns);
            (AdviceState::Nothing, None, text)
        }
        state => (state, Some(gain.bytes), answer::of_flash(device, gain, span_ns)),
    };
    advice
}

/// The size that may have spared the most, the smallest of several.
pub(super) fn widest(sizes: &[FlashGain]) -> Option<&FlashGain> {
    sizes.iter().max_by_key(|gain| (gain.spared.high_ns, Reverse(gain.bytes)))
}

//! The journal on a trusted disk: which frames of the medium are fresh, and what is marked since.
//!
//! A root, two bases and a ring of records. The root names the cache: what carries another name
//! counts for nothing, so one sector ends all that an older cache listed. It also names the medium,
//! which a cold start keeps, so that a cut can leave no medium without a name. A base lists, for
//! one instant, the sequence of each segment, which of its frames are fresh, and which regions are
//! marked. A record adds marks. A base says from which record on it needs them; the bases are
//! written in turn, so that one is always whole. Nothing here does I/O; a journal that is damaged
//! gives an error, and the cache is cold.

use model::frame::FileHeader;

use crate::format::{BLOCK_BYTES, Geometry, u32_at, u64_at};

/// Blocks of the ring of records.
pub(crate) const RECORDS: u64 = 256;

/// Ranges of the volume that identify its content.
pub(crate) const WITNESSES_MAX: usize = 8;

/// Marks in one record.
pub(crate) const MARKS_MAX: usize = 900;

/// The first bytes of a journal.
pub(crate) const ROOT_HEADER: FileHeader = FileHeader { magic: *b"TERCJRNL", major: 1, minor: 0 };

/// The first bytes of a base.
const HEADER: FileHeader = FileHeader { magic: *b"TERCBASE", major: 1, minor: 0 };

/// Bytes of a root: one sector, which a power cut leaves whole or as it was.
pub(crate) const ROOT_BYTES: usize = 512;
/// Bytes of a root that its checksum covers.
const ROOT_COVERED_BYTES: usize = 92;

const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"TCJ1");
/// Bytes of a base before its witnesses.
const BASE_FIXED_BYTES: usize = 128;
const LISTED_BYTES: usize = 32;
const WITNESSES_BYTES: usize = WITNESSES_MAX * LISTED_BYTES;
const RECORD_FIXED_BYTES: usize = 24;
const RECORD_WITNESS_BYTES: usize = 20;

/// The first half of a SHA-256.
pub(crate) type Digest = [u8; 16];

/// A range that identifies the content of the volume, and what it held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedWitness {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) digest: Digest,
}

/// A range that identifies the content of the volume, with each digest that it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownWitness {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) digests: Vec<Digest>,
}

/// What a journal is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) cache_id: [u8; 16],
    /// Names the medium: it stays when the cache starts cold.
    pub(crate) medium_id: [u8; 16],
    pub(crate) volume_id: [u8; 16],
    pub(crate) geometry: Geometry,
}

impl Root {
    /// Writes it to `bytes`, which are [`ROOT_BYTES`] or more.
    pub(crate) fn write(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        let mut out = Cursor { bytes: &mut *bytes, at: 0 };
        out.put(&ROOT_HEADER.to_bytes());
        out.put(&self.cache_id);
        out.put(&self.medium_id);
        out.put(&self.volume_id);
        put_geometry(&mut out, &self.geometry);
        let sum = crc32c::crc32c(&bytes[..ROOT_COVERED_BYTES]);
        bytes[ROOT_COVERED_BYTES..ROOT_COVERED_BYTES + 4].copy_from_slice(&sum.to_le_bytes());
    }

    /// Reads the root of a journal; `None` if it has none.
    pub(crate) fn read(journal: &[u8]) -> Option<Self> {
        let bytes = journal.get(..ROOT_BYTES)?;
        let covered = bytes.get(..ROOT_COVERED_BYTES)?;
        if u32_at(bytes, ROOT_COVERED_BYTES) != crc32c::crc32c(covered) {
            return None;
        }
        let mut header = [0; 16];
        header.copy_from_slice(&bytes[..16]);
        ROOT_HEADER.check(&header, "journal of a cache").ok()?;
        let [mut cache_id, mut medium_id, mut volume_id] = [[0; 16]; 3];
        cache_id.copy_from_slice(&bytes[16..32]);
        medium_id.copy_from_slice(&bytes[32..48]);
        volume_id.copy_from_slice(&bytes[48..64]);
        Some(Self { cache_id, medium_id, volume_id, geometry: geometry_of(&bytes[64..92]) })
    }
}

/// What the journal lists for one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    /// Grows with each base.
    pub(crate) generation: u64,
    /// Names the cache: a cold one has another.
    pub(crate) cache_id: [u8; 16],
    /// Names the volume.
    pub(crate) volume_id: [u8; 16],
    pub(crate) geometry: Geometry,
    /// The number of the attach that wrote it.
    pub(crate) attach: u32,
    /// Whether the volume was detached, with nothing left to do.
    pub(crate) is_detached: bool,
    /// Segments of this sequence and later ones are not listed: they were begun after it.
    pub(crate) threshold: u64,
    /// The first record that adds to it.
    pub(crate) first_record: u64,
    /// The ranges that identify the content of the volume, with their digests.
    pub(crate) witnesses: Vec<ListedWitness>,
    /// The sequence of each segment, and how many of its frames are listed.
    pub(crate) segments: Vec<(u64, u16)>,
    /// For each segment one bit a frame: whether it is fresh.
    pub(crate) fresh: Vec<u8>,
    /// One bit a region: whether it is marked.
    pub(crate) marked: Vec<u8>,
}

/// The journal as it was read.
#[derive(Clone, Debug)]
pub(crate) struct JournalState {
    /// The latest base, with the marks of the records.
    pub(crate) base: Base,
    /// The number that the next record gets.
    pub(crate) next_record: u64,
    /// Whether anything was recorded since the base.
    pub(crate) has_records: bool,
    /// The ranges that identify the content.
    pub(crate) witnesses: Vec<KnownWitness>,
}

/// Bytes of `fresh` for one segment.
fn bits_bytes(geometry: &Geometry) -> usize {
    geometry.entries_max().div_ceil(8) as usize
}

/// Bytes of a base.
pub(crate) fn base_bytes(geometry: &Geometry) -> u32 {
    let segments = geometry.segments as usize * (10 + bits_bytes(geometry));
    let bytes = BASE_FIXED_BYTES + WITNESSES_BYTES + segments + geometry.regions().div_ceil(8);
    (bytes as u32).next_multiple_of(BLOCK_BYTES)
}

/// Bytes of a journal of these sizes.
#[must_use]
pub fn journal_bytes(geometry: &Geometry) -> u64 {
    record_start(geometry, 0) + RECORDS * u64::from(BLOCK_BYTES)
}

/// Where the base of a generation is written.
pub(crate) fn base_start(geometry: &Geometry, generation: u64) -> u64 {
    u64::from(BLOCK_BYTES) + generation % 2 * u64::from(base_bytes(geometry))
}

/// Where the record of a number is written.
pub(crate) fn record_start(geometry: &Geometry, number: u64) -> u64 {
    base_start(geometry, 0)
        + 2 * u64::from(base_bytes(geometry))
        + number % RECORDS * u64::from(BLOCK_BYTES)
}

pub(crate) fn bit(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

pub(crate) fn set_bit(bits: &mut [u8], at: usize) {
    if let Some(byte) = bits.get_mut(at / 8) {
        *byte |= 1 << (at % 8);
    }
}

impl Base {
    /// Lists nothing.
    pub(crate) fn empty(geometry: Geometry, cache_id: [u8; 16], volume_id: [u8; 16]) -> Self {
        let segments = geometry.segments as usize;
        Self {
            generation: 0,
            cache_id,
            volume_id,
            geometry,
            attach: 0,
            is_detached: false,
            threshold: 0,
            first_record: 0,
            witnesses: Vec::with_capacity(WITNESSES_MAX),
            segments: vec![(0, 0); segments],
            fresh: vec![0; segments * bits_bytes(&geometry)],
            marked: vec![0; geometry.regions().div_ceil(8)],
        }
    }

    /// The memory of its lists.
    pub(crate) fn bytes(&self) -> u64 {
        let segments = size_of_val(&*self.segments);
        (segments + self.fresh.len() + self.marked.len()) as u64
    }

    /// Forgets all segments, frames and marks.
    pub(crate) fn clear(&mut self) {
        self.segments.fill((0, 0));
        self.fresh.fill(0);
        self.marked.fill(0);
    }

    fn fresh_bit(&self, segment: u32, ordinal: u16) -> usize {
        segment as usize * bits_bytes(&self.geometry) * 8 + usize::from(ordinal)
    }

    /// Lists a frame as fresh.
    pub(crate) fn set_fresh(&mut self, segment: u32, ordinal: u16) {
        let at = self.fresh_bit(segment, ordinal);
        set_bit(&mut self.fresh, at);
    }

    /// Whether a frame of a segment that was found is fresh, apart from marks of its region.
    pub(crate) fn is_fresh(&self, segment: u32, sequence: u64, ordinal: u16) -> bool {
        let (listed, count) = self.segments[segment as usize];
        if sequence >= self.threshold {
            return true;
        }
        sequence == listed
            && (ordinal >= count || bit(&self.fresh, self.fresh_bit(segment, ordinal)))
    }

    /// Writes it to `bytes`, which are [`base_bytes`].
    pub(crate) fn write(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        let covered = bytes.len() - 4;
        let mut out = Cursor { bytes: &mut bytes[..covered], at: 0 };
        out.put(&HEADER.to_bytes());
        out.put(&self.generation.to_le_bytes());
        out.put(&self.cache_id);
        out.put(&self.volume_id);
        put_geometry(&mut out, &self.geometry);
        out.put(&self.attach.to_le_bytes());
        out.put(&self.threshold.to_le_bytes());
        out.put(&self.first_record.to_le_bytes());
        out.put(&[u8::from(self.is_detached), self.witnesses.len() as u8]);
        out.at = BASE_FIXED_BYTES;
        for listed in &self.witnesses {
            out.put(&listed.offset.to_le_bytes());
            out.put(&u64::from(listed.len).to_le_bytes());
            out.put(&listed.digest);
        }
        out.at = BASE_FIXED_BYTES + WITNESSES_BYTES;
        for (sequence, count) in &self.segments {
            out.put(&sequence.to_le_bytes());
            out.put(&count.to_le_bytes());
        }
        out.put(&self.fresh);
        out.put(&self.marked);
        let sum = crc32c::crc32c(&bytes[..covered]);
        bytes[covered..].copy_from_slice(&sum.to_le_bytes());
    }

    /// Reads one that was written with these sizes; `None` if it is damaged or of other sizes.
    fn read(bytes: &[u8], geometry: &Geometry) -> Option<Self> {
        let (fixed, rest) = bytes.split_at_checked(BASE_FIXED_BYTES)?;
        let covered = bytes.len() - 4;
        if u32_at(bytes, covered) != crc32c::crc32c(&bytes[..covered]) {
            return None;
        }
        let mut header = [0; 16];
        header.copy_from_slice(&fixed[..16]);
        HEADER.check(&header, "base of a cache").ok()?;
        if geometry_of(&fixed[56..84]) != *geometry {
            return None;
        }
        let mut ids = [[0; 16]; 2];
        ids[0].copy_from_slice(&fixed[24..40]);
        ids[1].copy_from_slice(&fixed[40..56]);
        let mut base = Self::empty(*geometry, ids[0], ids[1]);
        base.generation = u64_at(fixed, 16);
        base.attach = u32_at(fixed, 84);
        base.threshold = u64_at(fixed, 88);
        base.first_record = u64_at(fixed, 96);
        base.is_detached = fixed[104] == 1;
        let (witnesses, lists) = rest.split_at_checked(WITNESSES_BYTES)?;
        let listed = witnesses.get(..usize::from(fixed[105]) * LISTED_BYTES)?;
        base.witnesses.extend(listed.chunks_exact(LISTED_BYTES).map(|listed| {
            let mut digest = Digest::default();
            digest.copy_from_slice(&listed[16..]);
            ListedWitness { offset: u64_at(listed, 0), len: u32_at(listed, 8), digest }
        }));
        let (segments, bits) = lists.split_at_checked(base.segments.len() * 10)?;
        for (segment, listed) in base.segments.iter_mut().zip(segments.chunks_exact(10)) {
            *segment = (u64_at(listed, 0), u16::from_le_bytes([listed[8], listed[9]]));
        }
        let (fresh, marked) = bits.split_at_checked(base.fresh.len())?;
        base.fresh.copy_from_slice(fresh);
        base.marked.copy_from_slice(marked.get(..geometry.regions().div_ceil(8))?);
        Some(base)
    }
}

fn put_geometry(out: &mut Cursor<'_>, geometry: &Geometry) {
    out.put(&geometry.volume_bytes.to_le_bytes());
    out.put(&geometry.region_bytes.to_le_bytes());
    out.put(&geometry.frame_bytes.to_le_bytes());
    out.put(&geometry.segment_bytes.to_le_bytes());
    out.put(&geometry.segments.to_le_bytes());
}

/// The sizes in these 28 bytes.
fn geometry_of(numbers: &[u8]) -> Geometry {
    Geometry {
        volume_bytes: u64_at(numbers, 0),
        region_bytes: u64_at(numbers, 8),
        frame_bytes: u32_at(numbers, 16),
        segment_bytes: u32_at(numbers, 20),
        segments: u32_at(numbers, 24),
    }
}

/// One record: marks and digests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'r> {
    pub(crate) number: u64,
    /// The attach that wrote it.
    pub(crate) attach: u32,
    /// Regions that are marked.
    pub(crate) marks: &'r [u32],
    /// Ranges that are about to have this digest.
    pub(crate) witnesses: &'r [(u8, Digest)],
}

impl Record<'_> {
    /// Writes it to a block.
    pub(crate) fn write(&self, cache_id: &[u8; 16], bytes: &mut [u8]) {
        bytes.fill(0);
        let mut out = Cursor { bytes: &mut *bytes, at: 0 };
        out.put(&RECORD_MAGIC.to_le_bytes());
        out.at = 8;
        out.put(&self.number.to_le_bytes());
        out.put(&self.attach.to_le_bytes());
        out.put(&(self.marks.len() as u16).to_le_bytes());
        out.put(&[self.witnesses.len() as u8, 0]);
        for (which, digest) in self.witnesses {
            out.put(&u32::from(*which).to_le_bytes());
            out.put(digest);
        }
        self.marks.iter().for_each(|mark| out.put(&mark.to_le_bytes()));
        let sum = record_sum(cache_id, bytes);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
    }
}

/// The checksum of a record, which is of one cache.
fn record_sum(cache_id: &[u8; 16], block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(cache_id), &block[8..])
}

/// The number of a record, if the block holds one of this cache.
fn record_number(cache_id: &[u8; 16], block: &[u8]) -> Option<u64> {
    let is_one =
        u32_at(block, 0) == RECORD_MAGIC && u32_at(block, 4) == record_sum(cache_id, block);
    is_one.then(|| u64_at(block, 8))
}

/// Why a journal proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalFault {
    /// It has no base.
    Empty,
    /// It was written with these other sizes.
    Sizes(Geometry),
    /// It is damaged.
    Damaged,
}

/// Reads a journal that was written with these sizes.
pub(crate) fn read(bytes: &[u8], geometry: &Geometry) -> Result<JournalState, JournalFault> {
    let Some(root) = Root::read(bytes) else {
        let is_empty = bytes.iter().take(ROOT_BYTES).all(|byte| *byte == 0);
        return Err(if is_empty { JournalFault::Empty } else { JournalFault::Damaged });
    };
    if root.geometry != *geometry {
        return Err(JournalFault::Sizes(root.geometry));
    }
    let size = base_bytes(geometry) as usize;
    let starts = [0, 1].map(|slot| base_start(geometry, slot) as usize);
    let slots = starts.into_iter().filter_map(|start| bytes.get(start..start + size));
    let bases = slots.filter_map(|slot| Base::read(slot, geometry)).filter(|base| {
        // What an older cache listed counts for nothing.
        base.cache_id == root.cache_id && base.volume_id == root.volume_id
    });
    // No cache gets there: numbers that could overflow were made by something else.
    let is_possible = |base: &Base| {
        base.attach < u32::MAX / 2 && base.generation.max(base.first_record) < u64::MAX / 2
    };
    let Some(latest) = bases.filter(is_possible).max_by_key(|base| base.generation) else {
        return Err(JournalFault::Damaged);
    };
    let ring = bytes.get(record_start(geometry, 0) as usize..).unwrap_or_default();
    if ring.len() < RECORDS as usize * BLOCK_BYTES as usize {
        return Err(JournalFault::Damaged);
    }
    let mut state = JournalState {
        next_record: latest.first_record,
        has_records: false,
        witnesses: latest.witnesses.iter().map(KnownWitness::of).collect(),
        base: latest,
    };
    let block_of = |number: u64| {
        let start = (number % RECORDS) as usize * BLOCK_BYTES as usize;
        &ring[start..start + BLOCK_BYTES as usize]
    };
    let id = state.base.cache_id;
    while record_number(&id, block_of(state.next_record)) == Some(state.next_record) {
        state.add(block_of(state.next_record)).ok_or(JournalFault::Damaged)?;
        state.next_record += 1;
    }
    let blocks = ring.chunks_exact(BLOCK_BYTES as usize).take(RECORDS as usize);
    let last = blocks.filter_map(|block| record_number(&id, block)).max();
    // Records follow each other without a gap: a later one means that some were lost.
    if last.is_some_and(|last| last >= state.next_record) {
        return Err(JournalFault::Damaged);
    }
    Ok(state)
}

impl KnownWitness {
    fn of(listed: &ListedWitness) -> Self {
        Self { offset: listed.offset, len: listed.len, digests: vec![listed.digest] }
    }
}

impl JournalState {
    /// Adds what a record says.
    fn add(&mut self, block: &[u8]) -> Option<()> {
        self.has_records = true;
        self.base.attach = self.base.attach.max(u32_at(block, 16)).min(u32::MAX / 2);
        let marks = usize::from(u16::from_le_bytes([block[20], block[21]]));
        let (digests, rest) = block[RECORD_FIXED_BYTES..]
            .split_at_checked(usize::from(block[22]) * RECORD_WITNESS_BYTES)?;
        for entry in digests.chunks_exact(RECORD_WITNESS_BYTES) {
            let mut digest = Digest::default();
            digest.copy_from_slice(&entry[4..]);
            self.witnesses.get_mut(u32_at(entry, 0) as usize)?.digests.push(digest);
        }
        for mark in rest.get(..marks * 4)?.chunks_exact(4) {
            set_bit(&mut self.base.marked, u32_at(mark, 0) as usize);
        }
        Some(())
    }
}

/// Writes one thing after the other.
struct Cursor<'b> {
    bytes: &'b mut [u8],
    at: usize,
}

impl Cursor<'_> {
    fn put(&mut self, data: &[u8]) {
        self.bytes[self.at..self.at + data.len()].copy_from_slice(data);
        self.at += data.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry() -> Geometry {
        Geometry::fit(64 << 20, 16 << 20, 1 << 20).unwrap()
    }

    fn sample() -> Base {
        let mut base = Base::empty(geometry(), [1; 16], [2; 16]);
        base.generation = 4;
        base.attach = 3;
        base.threshold = 3 << 32;
        base.first_record = 250;
        base.witnesses.push(ListedWitness { offset: 1024, len: 512, digest: [9; 16] });
        base.segments[2] = (77, 3);
        base.set_fresh(2, 1);
        set_bit(&mut base.marked, 5);
        base
    }

    fn journal(base: &Base, records: &[(u64, &[u32])]) -> Vec<u8> {
        let geometry = base.geometry;
        let mut bytes = vec![0; journal_bytes(&geometry) as usize];
        let Base { cache_id, volume_id, .. } = *base;
        let root = Root { cache_id, medium_id: [4; 16], volume_id, geometry };
        root.write(&mut bytes[..BLOCK_BYTES as usize]);
        let start = base_start(&geometry, base.generation) as usize;
        base.write(&mut bytes[start..start + base_bytes(&geometry) as usize]);
        for (number, marks) in records {
            let witnesses = &[(0, [8; 16])];
            let record = Record { number: *number, attach: 6, marks, witnesses };
            let at = record_start(&geometry, *number) as usize;
            record.write(&base.cache_id, &mut bytes[at..at + BLOCK_BYTES as usize]);
        }
        bytes
    }

    #[test]
    fn a_base_and_its_records_are_read_as_written() {
        let base = sample();
        let bytes = journal(&base, &[(249, &[1]), (250, &[7, 8]), (251, &[])]);
        let state = read(&bytes, &geometry()).unwrap();
        assert_eq!((state.next_record, state.base.attach), (252, 6));
        let marked: Vec<usize> =
            (0..geometry().regions()).filter(|at| bit(&state.base.marked, *at)).collect();
        assert_eq!(marked, [5, 7, 8]);
        let digests = vec![[9; 16], [8; 16], [8; 16]];
        assert_eq!(state.witnesses, [KnownWitness { offset: 1024, len: 512, digests }]);
        let read_back = Base { attach: 3, marked: base.marked.clone(), ..state.base };
        assert_eq!(read_back, base);
    }

    #[test]
    fn frames_are_fresh_by_the_list_or_by_a_later_sequence() {
        let base = sample();
        assert!(base.is_fresh(2, 77, 1) && !base.is_fresh(2, 77, 0));
        assert!(base.is_fresh(2, 77, 3), "was added after the list was made");
        assert!(!base.is_fresh(2, 76, 1), "an older segment that came back");
        assert!(base.is_fresh(0, 3 << 32, 0) && !base.is_fresh(0, (3 << 32) - 1, 0));
    }

    #[test]
    fn the_later_base_counts_and_damage_is_found() {
        let older = sample();
        let later = Base { generation: 5, first_record: 251, ..sample() };
        let mut bytes = journal(&older, &[(250, &[7])]);
        let start = base_start(&geometry(), 5) as usize;
        let size = base_bytes(&geometry()) as usize;
        later.write(&mut bytes[start..start + size]);
        assert_eq!(read(&bytes, &geometry()).unwrap().base.generation, 5);
        bytes[start + 200] ^= 1;
        let state = read(&bytes, &geometry()).unwrap();
        assert_eq!((state.base.generation, state.next_record), (4, 251));
        bytes[BLOCK_BYTES as usize + 200] ^= 1;
        assert_eq!(read(&bytes, &geometry()).unwrap_err(), JournalFault::Damaged);
    }

    #[test]
    fn a_root_of_another_cache_ends_all_that_was_listed() {
        let mut bytes = journal(&sample(), &[(250, &[1])]);
        assert!(read(&bytes, &geometry()).is_ok());
        let ids = ([3; 16], [4; 16], [2; 16]);
        let (cache_id, medium_id, volume_id) = ids;
        let root = Root { cache_id, medium_id, volume_id, geometry: geometry() };
        root.write(&mut bytes[..ROOT_BYTES]);
        assert_eq!(read(&bytes, &geometry()).unwrap_err(), JournalFault::Damaged);
        assert_eq!(Root::read(&bytes), Some(root));
    }

    #[test]
    fn a_lost_record_makes_all_cold() {
        let bytes = journal(&sample(), &[(250, &[1]), (252, &[2])]);
        assert_eq!(read(&bytes, &geometry()).unwrap_err(), JournalFault::Damaged);
    }

    #[test]
    fn other_sizes_are_named() {
        let bytes = journal(&sample(), &[]);
        let other = Geometry { volume_bytes: 128 << 20, ..geometry() };
        assert_eq!(read(&bytes, &other).unwrap_err(), JournalFault::Sizes(geometry()));
        assert_eq!(read(&[0; 9000], &other).unwrap_err(), JournalFault::Empty);
        assert_eq!(read(&[], &other).unwrap_err(), JournalFault::Empty);
        assert!(read(&[1; 99], &other).is_err());
    }

    #[test]
    fn a_journal_changed_in_any_byte_never_panics() {
        let bytes = journal(&sample(), &[(250, &[1, 2, 3])]);
        let mut random = testkit::Random(3);
        for _ in 0..2000 {
            let mut changed = bytes.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(changed.len() as u64) as usize;
                changed[at] ^= 1 << random.below(8);
            }
            changed.truncate(random.below(2 * bytes.len() as u64) as usize);
            let _ = read(&changed, &geometry());
        }
    }
}

//! The bytes on the medium: one header, then segments of one summary and frames.
//!
//! Nothing here does I/O or keeps state; `docs/cache-format.md` draws it. Whatever is read may be
//! damaged, old or hostile: each reader checks all that it uses and allocates nothing by what it
//! read.

use std::ops::Range;

use model::frame::FileHeader;

use crate::seal::{Cipher, Salt, TAG_BYTES};

/// What I/O of the medium is aligned to.
pub const BLOCK_BYTES: u32 = 4096;

/// Offsets of frames in a segment are multiples of this.
pub(crate) const GRANULE_BYTES: u32 = 64;

/// The largest segment: offsets are 16 bits of granules.
pub const SEGMENT_BYTES_MAX: u32 = GRANULE_BYTES << 16;

/// The largest frame.
pub const FRAME_BYTES_MAX: u32 = 16 << 10;

/// Frames that a segment has room for in its summary, for each that fits uncompressed.
const ENTRIES_PER_FRAME: u32 = 4;

/// The first bytes of a medium.
pub const HEADER: FileHeader = FileHeader { magic: *b"TERCACHE", major: 1, minor: 0 };

const SUMMARY_MAGIC: u32 = u32::from_le_bytes(*b"TCS1");
/// Bytes of a summary before its tag.
const SUMMARY_HEAD_BYTES: usize = 56;
/// Bytes of a summary before its entries.
const SUMMARY_FIXED_BYTES: usize = SUMMARY_HEAD_BYTES + TAG_BYTES;
const ENTRY_BYTES: usize = 8;
/// The number that stands for the summary where a frame has its own.
const SUMMARY_ORDINAL: u32 = u32::MAX;

/// The sizes of a cache and of its volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// The volume, in bytes.
    pub volume_bytes: u64,
    /// A frame: what has one entry in the index, and is filled ahead as a whole. A power of two, 4
    /// to 16 KiB.
    pub frame_bytes: u32,
    /// A segment: what is written together, whole erase blocks.
    pub segment_bytes: u32,
    /// How many segments.
    pub segments: u32,
    /// A region: what is marked together before it is written. A power of two of frames.
    pub region_bytes: u64,
}

impl Geometry {
    /// The sizes that fit a volume and a medium of so many bytes, with segments of the given size.
    ///
    /// # Errors
    /// Why a cache of these sizes cannot be made, as a sentence.
    pub fn fit(volume_bytes: u64, medium_bytes: u64, segment_bytes: u32) -> Result<Self, String> {
        /// More would cost 3 MB of memory; fewer would drop more than was written after a cut.
        const REGIONS_MAX: u64 = 1 << 18;
        /// 64 KiB: smaller ones would have to be marked at every other write.
        const REGION_BYTES_MIN: u64 = 64 << 10;
        let segments = (medium_bytes / u64::from(segment_bytes.max(1))).saturating_sub(1);
        let regions = volume_bytes.div_ceil(REGIONS_MAX).next_power_of_two();
        let geometry = Self {
            volume_bytes,
            frame_bytes: FRAME_BYTES_MAX,
            segment_bytes,
            segments: segments.min(u64::from(u16::MAX)) as u32,
            region_bytes: regions.max(REGION_BYTES_MIN),
        };
        geometry.check().map(|()| geometry)
    }

    /// Whether the sizes are such that every number of the format fits.
    ///
    /// # Errors
    /// Which does not, as a sentence.
    pub fn check(&self) -> Result<(), String> {
        let frames = self.volume_bytes.div_ceil(u64::from(self.frame_bytes.max(1)));
        let frame_is_right = self.frame_bytes.is_power_of_two()
            && (BLOCK_BYTES..=FRAME_BYTES_MAX).contains(&self.frame_bytes);
        let checks = [
            (frame_is_right, "a frame is 4, 8 or 16 KiB"),
            (self.segment_bytes <= SEGMENT_BYTES_MAX, "a segment has at most 4 MiB"),
            (self.segment_bytes.is_multiple_of(BLOCK_BYTES), "a segment is a multiple of 4 KiB"),
            (self.segment_bytes / 8 >= self.frame_bytes, "a segment has at least 8 frames"),
            ((4..=u32::from(u16::MAX)).contains(&self.segments), "a cache has 4 to 65535 segments"),
            (frames > 0 && frames < u64::from(u32::MAX), "a volume has 1 to 2^32 - 2 frames"),
            (self.volume_bytes.is_multiple_of(512), "a volume is a multiple of 512 bytes"),
            (
                self.region_bytes.is_power_of_two()
                    && self.region_bytes >= u64::from(self.frame_bytes),
                "a region is a power of two and at least a frame",
            ),
        ];
        let broken = checks.iter().find(|(holds, _)| !holds);
        broken.map_or(Ok(()), |(_, rule)| Err((*rule).to_owned()))
    }

    /// How many frames the volume has.
    pub(crate) fn frames(&self) -> u32 {
        self.volume_bytes.div_ceil(u64::from(self.frame_bytes)) as u32
    }

    /// How many regions the volume has.
    pub(crate) fn regions(&self) -> usize {
        self.volume_bytes.div_ceil(self.region_bytes) as usize
    }

    /// The bytes of the volume that belong to a frame; the last frame may be shorter.
    pub(crate) fn frame_range(&self, key: u32) -> Range<u64> {
        let start = u64::from(key) * u64::from(self.frame_bytes);
        start..(start + u64::from(self.frame_bytes)).min(self.volume_bytes)
    }

    /// The bytes of the volume that an extent of a frame has; the last block may be shorter.
    pub(crate) fn extent_range(&self, key: u32, extent: Extent) -> Range<u64> {
        let frame = self.frame_range(key);
        let block_start = |block| frame.start + u64::from(block) * u64::from(BLOCK_BYTES);
        block_start(extent.first).min(frame.end)..block_start(extent.end()).min(frame.end)
    }

    /// The blocks of a frame that have any of these bytes of the volume.
    pub(crate) fn extent_of(&self, key: u32, bytes: &Range<u64>) -> Option<Extent> {
        let frame = self.frame_range(key);
        let (start, end) = (bytes.start.max(frame.start), bytes.end.min(frame.end));
        let block = u64::from(BLOCK_BYTES);
        (start < end).then(|| {
            let first = ((start - frame.start) / block) as u8;
            Extent { first, count: (end - frame.start).div_ceil(block) as u8 - first }
        })
    }

    /// The blocks of a frame that have none but these bytes of the volume.
    pub(crate) fn extent_within(&self, key: u32, bytes: &Range<u64>) -> Option<Extent> {
        let frame = self.frame_range(key);
        let block = u64::from(BLOCK_BYTES);
        let start = bytes.start.max(frame.start).next_multiple_of(block);
        // The last block of the volume is whole at its end.
        let end = if bytes.end >= frame.end { frame.end } else { bytes.end / block * block };
        if start < end { self.extent_of(key, &(start..end)) } else { None }
    }

    /// Whether the frame has these blocks.
    pub(crate) fn has(&self, key: u32, extent: Extent) -> bool {
        self.extent_of(key, &self.frame_range(key)).is_some_and(|whole| whole.holds(extent))
    }

    /// The region of a frame.
    pub(crate) fn region(&self, key: u32) -> usize {
        (u64::from(key) * u64::from(self.frame_bytes) / self.region_bytes) as usize
    }

    /// The most frames of a segment.
    pub(crate) fn entries_max(&self) -> u32 {
        self.segment_bytes / self.frame_bytes * ENTRIES_PER_FRAME
    }

    /// The bytes before the first frame of a segment.
    pub(crate) fn summary_bytes(&self) -> u32 {
        let bytes = SUMMARY_FIXED_BYTES as u32 + self.entries_max() * ENTRY_BYTES as u32;
        bytes.next_multiple_of(BLOCK_BYTES)
    }

    /// The first byte of a segment on the medium.
    pub(crate) fn segment_start(&self, segment: u32) -> u64 {
        (u64::from(segment) + 1) * u64::from(self.segment_bytes)
    }
}

/// The header of a medium; the rest of its block is zero.
pub(crate) fn header(geometry: &Geometry, medium_id: &[u8; 16]) -> Vec<u8> {
    let mut bytes = HEADER.to_bytes().to_vec();
    bytes.extend_from_slice(medium_id);
    bytes.extend_from_slice(&geometry.frame_bytes.to_le_bytes());
    bytes.extend_from_slice(&geometry.segment_bytes.to_le_bytes());
    bytes.extend_from_slice(&geometry.segments.to_le_bytes());
    model::frame::append_checksum(&mut bytes);
    bytes.resize(BLOCK_BYTES as usize, 0);
    bytes
}

/// The name of the medium that a header is of, whatever its sizes; `None` if it is not a header.
pub(crate) fn header_id(block: &[u8]) -> Option<[u8; 16]> {
    const COVERED: usize = 44;
    let fixed = block.get(..COVERED + 4)?;
    let mut header = [0; 16];
    header.copy_from_slice(&fixed[..16]);
    HEADER.check(&header, "cache").ok()?;
    let mut id = [0; 16];
    id.copy_from_slice(&fixed[16..32]);
    (u32_at(fixed, COVERED) == crc32c::crc32c(&fixed[..COVERED])).then_some(id)
}

/// Blocks of a frame, one after the other: what of it is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The first one, 0 to 3.
    pub(crate) first: u8,
    /// How many: 1 to 4.
    pub(crate) count: u8,
}

impl Extent {
    fn end(self) -> u8 {
        self.first + self.count
    }

    /// Whether it has all blocks of the other one.
    pub(crate) fn holds(self, other: Self) -> bool {
        self.first <= other.first && other.end() <= self.end()
    }

    /// The smallest extent that has the blocks of both.
    pub(crate) fn hull(self, other: Self) -> Self {
        let first = self.first.min(other.first);
        Self { first, count: self.end().max(other.end()) - first }
    }

    /// In four bits.
    pub(crate) fn to_bits(self) -> u8 {
        self.first | (self.count - 1) << 2
    }

    pub(crate) fn of_bits(bits: u8) -> Self {
        Self { first: bits & 3, count: (bits >> 2 & 3) + 1 }
    }
}

/// A frame in a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The number of the frame on the volume.
    pub(crate) key: u32,
    /// Its blocks that are there.
    pub(crate) extent: Extent,
    /// Its bytes on the medium, with the tag.
    pub(crate) stored: u16,
    /// Whether they are compressed.
    pub(crate) is_compressed: bool,
}

impl Entry {
    fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..4].copy_from_slice(&self.key.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.stored.to_le_bytes());
        bytes[6] = u8::from(self.is_compressed);
        bytes[7] = self.extent.to_bits();
        bytes
    }

    fn of(bytes: &[u8]) -> Self {
        Self {
            key: u32_at(bytes, 0),
            stored: u16::from_le_bytes([bytes[4], bytes[5]]),
            is_compressed: bytes[6] == 1,
            extent: Extent::of_bits(bytes[7]),
        }
    }

    /// The bytes that it takes in a segment.
    pub(crate) fn room(self) -> u32 {
        u32::from(self.stored).next_multiple_of(GRANULE_BYTES)
    }
}

/// What a summary says before anything in it is authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SummaryHead {
    /// The sequence of the segment: larger than that of each one written before.
    pub(crate) sequence: u64,
    /// The salt of the attach that wrote it.
    pub(crate) salt: Salt,
    /// Its frames.
    pub(crate) count: u16,
    /// Whether it is of the main queue.
    pub(crate) is_main: bool,
}

impl SummaryHead {
    fn to_bytes(self, segment: u32) -> [u8; SUMMARY_HEAD_BYTES] {
        let mut bytes = [0; SUMMARY_HEAD_BYTES];
        bytes[..4].copy_from_slice(&SUMMARY_MAGIC.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.count.to_le_bytes());
        bytes[6] = u8::from(self.is_main);
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..48].copy_from_slice(&self.salt);
        bytes[48..52].copy_from_slice(&segment.to_le_bytes());
        let sum = crc32c::crc32c(&bytes[..52]);
        bytes[52..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads the head of the summary of `segment`; `None` if it is not one.
    pub(crate) fn read(bytes: &[u8], segment: u32) -> Option<Self> {
        let head = bytes.get(..SUMMARY_HEAD_BYTES)?;
        let is_one = u32_at(head, 0) == SUMMARY_MAGIC
            && u32_at(head, 48) == segment
            && u32_at(head, 52) == crc32c::crc32c(&head[..52]);
        let mut salt = Salt::default();
        salt.copy_from_slice(&head[16..48]);
        is_one.then(|| Self {
            sequence: u64_at(head, 8),
            salt,
            count: u16::from_le_bytes([head[4], head[5]]),
            is_main: head[6] == 1,
        })
    }
}

/// Writes the summary of a segment whose frames are in place behind it.
pub(crate) fn write_summary(
    bytes: &mut [u8],
    segment: u32,
    head: SummaryHead,
    entries: impl Iterator<Item = Entry>,
    cipher: &Cipher,
) {
    bytes.fill(0);
    let (fixed, rest) = bytes.split_at_mut(SUMMARY_FIXED_BYTES);
    let plain = head.to_bytes(segment);
    let listed = &mut rest[..usize::from(head.count) * ENTRY_BYTES];
    for (place, entry) in listed.chunks_exact_mut(ENTRY_BYTES).zip(entries) {
        place.copy_from_slice(&entry.to_bytes());
    }
    let tag = cipher.seal(head.sequence, SUMMARY_ORDINAL, &plain, listed);
    fixed[..SUMMARY_HEAD_BYTES].copy_from_slice(&plain);
    fixed[SUMMARY_HEAD_BYTES..].copy_from_slice(&tag);
}

/// Authenticates the entries of a summary in place, and gives them. `None` if they are not those
/// that were written with this head.
pub(crate) fn open_summary<'b>(
    bytes: &'b mut [u8],
    geometry: &Geometry,
    cipher: &Cipher,
    head: SummaryHead,
) -> Option<impl Iterator<Item = Entry> + 'b> {
    let (fixed, rest) = bytes.split_at_mut_checked(SUMMARY_FIXED_BYTES)?;
    if u32::from(head.count) > geometry.entries_max() {
        return None;
    }
    let listed = rest.get_mut(..usize::from(head.count) * ENTRY_BYTES)?;
    let (plain, tag) = fixed.split_at(SUMMARY_HEAD_BYTES);
    cipher.open(head.sequence, SUMMARY_ORDINAL, plain, listed, tag).then_some(())?;
    Some(listed.chunks_exact(ENTRY_BYTES).map(Entry::of))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::Master;

    #[test]
    fn a_summary_is_read_as_it_was_written_and_nothing_else_is() {
        let geometry = Geometry::fit(1 << 30, 64 << 20, 1 << 20).unwrap();
        let cipher = Master::new(&[7; 32], &[1; 16], &[2; 16]).cipher(&[3; 32]);
        let head = SummaryHead { sequence: 9, salt: [3; 32], count: 2, is_main: true };
        let entries = [
            Entry {
                key: 5,
                extent: Extent { first: 0, count: 4 },
                stored: 16400,
                is_compressed: false,
            },
            Entry {
                key: 1,
                extent: Extent { first: 3, count: 1 },
                stored: 99,
                is_compressed: true,
            },
        ];
        let mut bytes = vec![0; geometry.summary_bytes() as usize];
        write_summary(&mut bytes, 4, head, entries.into_iter(), &cipher);
        assert_eq!(SummaryHead::read(&bytes, 4), Some(head));
        assert_eq!(SummaryHead::read(&bytes, 5), None, "of another segment");
        for at in 0..SUMMARY_FIXED_BYTES + 2 * ENTRY_BYTES {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let read = SummaryHead::read(&changed, 4);
            let is_open = read
                .is_some_and(|head| open_summary(&mut changed, &geometry, &cipher, head).is_some());
            assert!(!is_open, "byte {at}");
        }
        let opened = open_summary(&mut bytes, &geometry, &cipher, head).unwrap();
        assert!(opened.eq(entries));
    }

    #[test]
    fn extents_are_of_blocks_of_the_frame_and_of_the_volume() {
        let volume = (1 << 30) - (16 << 10) + 4096 + 512;
        let geometry = Geometry::fit(volume, 64 << 20, 1 << 20).unwrap();
        let at = |first, count| Some(Extent { first, count });
        let frame = 16 << 10;
        let of = |bytes: Range<u64>| geometry.extent_of(1, &bytes);
        let within = |bytes: Range<u64>| geometry.extent_within(1, &bytes);
        assert_eq!(of(0..1 << 20), at(0, 4));
        assert_eq!(of(frame + 4095..frame + 4097), at(0, 2));
        assert_eq!(of(frame + 8192..frame + 8193), at(2, 1));
        assert_eq!((of(0..frame), of(2 * frame..3 * frame)), (None, None));
        assert_eq!(within(0..1 << 20), at(0, 4));
        assert_eq!(within(frame + 1..2 * frame - 1), at(1, 2));
        assert_eq!((within(frame..frame + 4095), within(0..frame)), (None, None));
        let last = geometry.frames() - 1;
        assert_eq!(geometry.extent_of(last, &(0..u64::MAX)), at(0, 2));
        assert_eq!(geometry.extent_within(last, &(volume - 600..volume)), at(1, 1));
        assert_eq!(geometry.extent_range(last, Extent { first: 1, count: 1 }).end, volume);
        assert!(geometry.has(last, Extent { first: 0, count: 2 }));
        assert!(!geometry.has(last, Extent { first: 1, count: 2 }));
        for bits in 0..16 {
            let extent = Extent::of_bits(bits);
            assert_eq!(extent.to_bits(), bits);
            assert!(extent.hull(Extent { first: 1, count: 1 }).holds(extent));
        }
    }

    #[test]
    fn a_header_names_its_medium_and_nothing_else_does() {
        let geometry = Geometry::fit(1 << 30, 64 << 20, 1 << 20).unwrap();
        let mut block = header(&geometry, &[5; 16]);
        assert_eq!(header_id(&block), Some([5; 16]));
        block[33] ^= 1;
        assert_eq!(header_id(&block), None);
        assert_eq!(header_id(&[0; 4096]), None);
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let fits = |volume, medium, segment| Geometry::fit(volume, medium, segment).is_ok();
        assert!(fits(1 << 40, 4 << 30, 2 << 20) && fits(4096, 8 << 20, 1 << 20));
        assert!(!fits(0, 4 << 30, 2 << 20) && !fits(1 << 40, 4 << 20, 2 << 20));
        assert!(!fits(1 << 40, 4 << 30, 8 << 20) && !fits(1 << 40, 4 << 30, 0));
        assert_eq!(Geometry::fit(1 << 40, 4 << 30, 2 << 20).unwrap().region_bytes, 4 << 20);
    }
}

//! What a cache is attached with, and why it may start cold: the judgement on the journal that the
//! driver read, and on the content of the volume.

use std::fmt;

use model::engine::{ChangeProof, Witness};
use model::frame::{FILE_HEADER_BYTES, FileHeader};

use crate::format::{self, BLOCK_BYTES, Geometry};
use crate::journal::{Digest, JournalFault, JournalState, KnownWitness, ListedWitness};
use crate::journal::{Root, WITNESSES_MAX};
use crate::seal;

/// How much a cache may take, and how long it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that may be written to the medium in a day; what is not used is kept for one day.
    pub budget_bytes_per_day: u64,
    /// Frames of a sequential run that are cached; the rest is read from the disk.
    pub run_frames_max: u64,
    /// The share of the medium, in percent, that may be in use while a first read is cached too. In
    /// a fuller cache a frame has to be read twice before it is worth the write.
    pub first_reads_percent: u32,
    /// The medium may take so long; then the disk is read.
    pub medium_timeout_ns: u64,
    /// The least time between two lists of fresh frames in the journal.
    pub base_interval_ns: u64,
    /// Frames that can be cached: 35 bytes each, of which the index is 23.
    pub frames_max: u32,
    /// Frames that are compared with the volume when the cache was recovered.
    pub sampled_frames: u32,
    /// Buffers for reads of the medium and for fills.
    pub io_buffers: u32,
}

impl Limits {
    /// What fits a cache of these sizes, for a medium that may be written once a day.
    #[must_use]
    pub fn fit(geometry: &Geometry) -> Self {
        let medium = u64::from(geometry.segment_bytes) * u64::from(geometry.segments);
        // Frames of one block as it is, or of two that compress as text and programs do.
        let frames = medium / u64::from(BLOCK_BYTES.min(geometry.frame_bytes / 2));
        Self {
            budget_bytes_per_day: medium,
            run_frames_max: 64,
            first_reads_percent: 50,
            medium_timeout_ns: 2_000_000_000,
            base_interval_ns: 10_000_000_000,
            frames_max: frames.min(u64::from(u32::MAX - 1)) as u32,
            sampled_frames: 32,
            io_buffers: 32,
        }
    }
}

/// What a cache is attached with. The same volume, key and sizes give a warm cache.
#[derive(Clone)]
pub struct Setup {
    /// The sizes.
    pub geometry: Geometry,
    /// Names the volume: a hash of its identity, and of nothing that changes.
    pub volume_id: [u8; 16],
    /// The key, which never leaves the host.
    pub key: [u8; 32],
    /// Drawn at random for this attach.
    pub salt: [u8; 32],
    /// Drawn at random for this attach: names the cache if it starts cold.
    pub new_cache_id: [u8; 16],
    /// Ranges that identify the content, in an order that stays. Other ranges than at the last
    /// attach are a change.
    pub witnesses: Vec<Witness>,
    /// When they show a change. More than 8 ranges show none.
    pub proof: ChangeProof,
    /// Whether the medium that is there now may be made one of this cache whatever it holds: the
    /// driver has made it, or a person said so. Without it, only what is one of this cache already
    /// is written: what has the name of its medium, whatever its sizes are.
    pub may_format: bool,
    /// The limits.
    pub limits: Limits,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("geometry", &self.geometry).finish_non_exhaustive()
    }
}

/// How a cache starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// What is on the medium is recovered.
    Warm,
    /// Nothing that is on the medium is used.
    Cold(Cold),
}

/// Why a cache starts cold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cold {
    /// It has no journal yet.
    New,
    /// Its journal is damaged.
    Journal,
    /// It was made with these other sizes.
    Sizes(Geometry),
    /// It is the cache of another volume.
    Volume,
    /// The volume was written elsewhere: this byte of it begins a range that differs.
    Changed(u64),
    /// Nothing is known that would show a change of the volume.
    Unproved,
}

impl fmt::Display for Cold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("the cache is new"),
            Self::Journal => f.write_str("its journal is damaged or was never finished"),
            Self::Sizes(was) => write!(
                f,
                "it was made for a volume of {} bytes with {} segments of {} bytes",
                was.volume_bytes, was.segments, was.segment_bytes
            ),
            Self::Volume => f.write_str("it is the cache of another volume"),
            Self::Changed(offset) => {
                write!(f, "the volume was written elsewhere: it differs at byte {offset}")
            }
            Self::Unproved => f.write_str(
                "nothing would show that the volume was written elsewhere since: it holds content \
                 that is not known, or one that shows it only after a proved detach",
            ),
        }
    }
}

/// Which safety rules are kept: all. The simulation breaks one at a time, to show that it finds
/// what the rule prevents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A write is sent only after its region is marked durably, if a start could find frames of it.
    pub mark_before_write: bool,
    /// A frame of a region with writes that a power cut could take back is kept only after the
    /// region is marked durably.
    pub mark_before_keeping: bool,
    /// What a start could find of a region is what the base lists and what was kept since, also if
    /// it left the index meanwhile.
    pub mark_what_a_start_finds: bool,
    /// What was read while the region was written is not cached.
    pub drop_raced_fills: bool,
    /// A segment is recovered only if its sequence is the one that the journal lists, or later.
    pub check_sequences: bool,
    /// A mark is removed only after a flush of the backing device.
    pub flush_before_clearing: bool,
    /// Writes drop frames while the medium is away, too.
    pub drop_while_away: bool,
    /// The volume's content is compared at attach.
    pub compare_content: bool,
    /// A flush is answered when the backing device was flushed.
    pub flush_before_answer: bool,
    /// When the journal fails, it is made useless before writes go on without marks.
    pub revoke_before_unmarked: bool,
    /// A medium is written only after its header was compared.
    pub compare_medium: bool,
}

impl Rules {
    /// All of them.
    pub const KEPT: Self = Self {
        mark_before_write: true,
        mark_before_keeping: true,
        mark_what_a_start_finds: true,
        drop_raced_fills: true,
        check_sequences: true,
        flush_before_clearing: true,
        drop_while_away: true,
        compare_content: true,
        flush_before_answer: true,
        revoke_before_unmarked: true,
        compare_medium: true,
    };

    /// Each with another rule broken, and what that is called.
    pub const BROKEN: [(&'static str, Self); 11] = [
        ("writes before the mark", Self { mark_before_write: false, ..Self::KEPT }),
        ("keeps what a cut takes back", Self { mark_before_keeping: false, ..Self::KEPT }),
        ("asks the index for marks", Self { mark_what_a_start_finds: false, ..Self::KEPT }),
        ("keeps raced fills", Self { drop_raced_fills: false, ..Self::KEPT }),
        ("takes old segments", Self { check_sequences: false, ..Self::KEPT }),
        ("clears without a flush", Self { flush_before_clearing: false, ..Self::KEPT }),
        ("forgets writes while away", Self { drop_while_away: false, ..Self::KEPT }),
        ("takes a changed volume", Self { compare_content: false, ..Self::KEPT }),
        ("answers Flush without flushing", Self { flush_before_answer: false, ..Self::KEPT }),
        ("writes on without a journal", Self { revoke_before_unmarked: false, ..Self::KEPT }),
        ("writes to a stranger's medium", Self { compare_medium: false, ..Self::KEPT }),
    ];
}

/// A range that identifies the content, as the engine follows it.
#[derive(Clone, Debug)]
pub(crate) struct FollowedWitness {
    pub(crate) offset: u64,
    /// What it holds when all writes that were requested have ended.
    pub(crate) bytes: Vec<u8>,
    /// A part of it was discarded: it may hold anything.
    pub(crate) is_unknown: bool,
}

/// What a write leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written<D> {
    /// These bytes.
    Data(D),
    /// Zeros.
    Zeros,
    /// Anything: it was discarded.
    Anything,
}

impl FollowedWitness {
    pub(crate) fn of(Witness { offset, bytes }: Witness) -> Self {
        Self { offset, bytes, is_unknown: false }
    }

    /// What identifies its content; zeros, which is nothing's digest, if that is not known.
    pub(crate) fn digest(&self) -> Digest {
        if self.is_unknown { Digest::default() } else { seal::digest(&self.bytes) }
    }

    pub(crate) fn listed(&self) -> ListedWitness {
        let len = self.bytes.len() as u32;
        ListedWitness { offset: self.offset, len, digest: self.digest() }
    }

    /// Puts a write over it; whether it touches it.
    pub(crate) fn write(&mut self, offset: u64, len: u64, written: Written<&[u8]>) -> bool {
        let end = self.offset + self.bytes.len() as u64;
        let (from, upto) = (offset.max(self.offset), (offset + len).min(end));
        if from >= upto {
            return false;
        }
        let place = (from - self.offset) as usize..(upto - self.offset) as usize;
        let is_whole = place.len() == self.bytes.len();
        match written {
            Written::Data(data) => self.bytes[place]
                .copy_from_slice(&data[(from - offset) as usize..(upto - offset) as usize]),
            Written::Zeros => self.bytes[place].fill(0),
            Written::Anything => self.is_unknown = true,
        }
        self.is_unknown &= !is_whole || written == Written::Anything;
        true
    }
}

/// Reads the journal and judges whether what it lists can be trusted.
pub(crate) fn judge(setup: &Setup, journal: &[u8], rules: Rules) -> Result<JournalState, Cold> {
    let state = crate::journal::read(journal, &setup.geometry).map_err(|fault| match fault {
        JournalFault::Empty => Cold::New,
        JournalFault::Damaged => Cold::Journal,
        JournalFault::Sizes(was) => Cold::Sizes(was),
    })?;
    if state.base.volume_id != setup.volume_id {
        return Err(Cold::Volume);
    }
    let is_detached = state.base.is_detached && !state.has_records;
    let is_shown = match proof(setup) {
        ChangeProof::Always => true,
        ChangeProof::AfterDetach => is_detached,
        ChangeProof::Never => false,
    };
    // After a crash, what shows a change only after a detach was not even listed.
    let changed = changed(&setup.witnesses, &state.witnesses).filter(|_| is_shown);
    match changed {
        Some(offset) if rules.compare_content => Err(Cold::Changed(offset)),
        _ if !is_shown => Err(Cold::Unproved),
        _ => Ok(state),
    }
}

/// When the witnesses show a change: as the driver says, if there are any and all can be listed.
pub(crate) fn proof(setup: &Setup) -> ChangeProof {
    let is_followed = setup.proof == ChangeProof::Always && setup.witnesses.is_empty();
    if is_followed || setup.witnesses.len() > WITNESSES_MAX {
        return ChangeProof::Never;
    }
    setup.proof
}

/// Where the content of the volume differs from what is known of it. Another number of ranges is a
/// difference, and so is a range elsewhere: the content is of another kind then.
fn changed(now: &[Witness], known: &[KnownWitness]) -> Option<u64> {
    for (witness, known) in now.iter().zip(known) {
        let is_same = witness.offset == known.offset
            && witness.bytes.len() as u64 == u64::from(known.len)
            && known.digests.contains(&seal::digest(&witness.bytes));
        if !is_same {
            return Some(witness.offset);
        }
    }
    let further = now.get(known.len()).map(|witness| witness.offset);
    further.or_else(|| known.get(now.len()).map(|known| known.offset))
}

/// The version of a journal or a medium that is newer than what is known here, by its first bytes.
#[must_use]
pub fn newer_version(bytes: &[u8]) -> Option<u16> {
    let header: &[u8; FILE_HEADER_BYTES] = bytes.first_chunk()?;
    let mut headers = [format::HEADER, crate::journal::ROOT_HEADER].into_iter();
    let known = headers.find(|known| header[..8] == known.magic)?;
    let major = u16::from_le_bytes([header[8], header[9]]);
    let as_found =
        FileHeader { major, minor: u16::from_le_bytes([header[10], header[11]]), ..known };
    (major > known.major && as_found.to_bytes() == *header).then_some(major)
}

/// The name of the medium: what the journal says, of whatever sizes it is, else what follows from
/// the key and the volume. So it is the same at each start, however the one before ended.
pub(crate) fn medium_id(setup: &Setup, journal: &[u8]) -> [u8; 16] {
    let named = Root::read(journal).map(|root| root.medium_id);
    named.unwrap_or_else(|| seal::medium_id(&setup.key, &setup.volume_id))
}

impl Setup {
    /// The first block of a medium of this cache, for a driver that makes one: a file that has it
    /// from the moment when it has its name can never be taken for that of something else.
    #[must_use]
    pub fn medium_header(&self, journal: &[u8]) -> Vec<u8> {
        format::header(&self.geometry, &medium_id(self, journal))
    }

    /// How a cache with this journal will start.
    #[must_use]
    pub fn start(&self, journal: &[u8]) -> Start {
        judge(self, journal, Rules::KEPT).map_or_else(Start::Cold, |_| Start::Warm)
    }

    /// Whether this first block of a medium is that of this cache, of whatever sizes; `None` if it
    /// is not one of a medium.
    #[must_use]
    pub fn owns_medium(&self, journal: &[u8], block: &[u8]) -> Option<bool> {
        format::header_id(block).map(|id| id == medium_id(self, journal))
    }
}

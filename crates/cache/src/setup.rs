//! What a cache is attached with, and why it may start cold: the judgement on the journal that the
//! driver read, and on the content of the volume.

use std::fmt;

use crate::format::Geometry;
use crate::journal::{Digest, JournalFault, JournalState, WITNESSES_MAX};
use crate::seal;

/// A range of the volume that identifies its content, such as a superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Its first byte.
    pub offset: u64,
    /// What it holds now.
    pub bytes: Vec<u8>,
}

/// How much a cache may take, and how long it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that may be written to the medium in a day; what is not used is kept for one day.
    pub budget_bytes_per_day: u64,
    /// Frames of a sequential run that are cached; the rest is read from the disk.
    pub run_frames_max: u64,
    /// The medium may take so long; then the disk is read.
    pub medium_timeout_ns: u64,
    /// The least time between two lists of fresh frames in the journal.
    pub base_interval_ns: u64,
    /// Frames that can be cached: 23 bytes each.
    pub frames_max: u32,
    /// Buffers for reads of the medium and for fills.
    pub io_buffers: u32,
}

impl Limits {
    /// What fits a cache of these sizes, for a medium that may be written once a day.
    #[must_use]
    pub fn fit(geometry: &Geometry) -> Self {
        let medium = u64::from(geometry.segment_bytes) * u64::from(geometry.segments);
        // Half of a frame, as text and programs compress to; at least what fits uncompressed.
        let frames = medium / u64::from(geometry.frame_bytes / 2);
        Self {
            budget_bytes_per_day: medium,
            run_frames_max: 64,
            medium_timeout_ns: 2_000_000_000,
            base_interval_ns: 10_000_000_000,
            frames_max: frames.min(u64::from(u32::MAX - 1)) as u32,
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
    /// Ranges that identify the content, the first 8. Without one, a cache that was not detached is
    /// cold at the next attach.
    pub witnesses: Vec<Witness>,
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
    /// It was not detached, and nothing is known that would show a change of the volume.
    Unproved,
}

impl fmt::Display for Cold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("the cache is new"),
            Self::Journal => f.write_str("its journal is damaged"),
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
                "it was not detached, and the volume has no known superblock that would show a \
                 write elsewhere",
            ),
        }
    }
}

/// Which safety rules are kept: all. The simulation breaks one at a time, to show that it finds
/// what the rule prevents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A write is sent only after its region is marked durably.
    pub mark_before_write: bool,
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
}

impl Rules {
    /// All of them.
    pub const KEPT: Self = Self {
        mark_before_write: true,
        drop_raced_fills: true,
        check_sequences: true,
        flush_before_clearing: true,
        drop_while_away: true,
        compare_content: true,
    };

    /// Each with another rule broken, and what that is called.
    pub const BROKEN: [(&'static str, Self); 6] = [
        ("writes before the mark", Self { mark_before_write: false, ..Self::KEPT }),
        ("keeps raced fills", Self { drop_raced_fills: false, ..Self::KEPT }),
        ("takes old segments", Self { check_sequences: false, ..Self::KEPT }),
        ("clears without a flush", Self { flush_before_clearing: false, ..Self::KEPT }),
        ("forgets writes while away", Self { drop_while_away: false, ..Self::KEPT }),
        ("takes a changed volume", Self { compare_content: false, ..Self::KEPT }),
    ];
}

/// A range that identifies the content, as the engine follows it.
#[derive(Clone, Debug)]
pub(crate) struct FollowedWitness {
    pub(crate) offset: u64,
    /// What it holds when all writes that were requested have ended.
    pub(crate) bytes: Vec<u8>,
}

impl FollowedWitness {
    pub(crate) fn digest(&self) -> Digest {
        seal::digest(&self.bytes)
    }

    /// Puts a write over it; whether it touches it. Without data, zeros.
    pub(crate) fn write(&mut self, offset: u64, len: u64, data: Option<&[u8]>) -> bool {
        let end = self.offset + self.bytes.len() as u64;
        let (from, upto) = (offset.max(self.offset), (offset + len).min(end));
        if from >= upto {
            return false;
        }
        let place = (from - self.offset) as usize..(upto - self.offset) as usize;
        match data {
            Some(data) => self.bytes[place]
                .copy_from_slice(&data[(from - offset) as usize..(upto - offset) as usize]),
            None => self.bytes[place].fill(0),
        }
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
    let witnesses = setup.witnesses.iter().take(WITNESSES_MAX);
    let changed = witnesses.clone().enumerate().find(|(which, witness)| {
        let known = state.witnesses.get(*which);
        !known.is_some_and(|known| known.contains(&seal::digest(&witness.bytes)))
    });
    let is_proved = state.base.is_detached && !state.has_records;
    match changed {
        Some((_, witness)) if rules.compare_content => Err(Cold::Changed(witness.offset)),
        _ if !is_proved && setup.witnesses.is_empty() => Err(Cold::Unproved),
        _ => Ok(state),
    }
}

//! Whether a disk is as large as it claims, before much is written to it.
//!
//! A fake drops the high bits of an address: what is written at P lands at P modulo a power of two.
//! 1. The block's place is found (FIEMAP, FIBMAP), and its aliases are read; the disk is open for
//!    reading only. Not where a file system keeps a second copy of data.
//! 2. The block is written to the own file: 4 KiB that equal no other block.
//! 3. The aliases are read again. If one holds exactly this block, the block is written once more
//!    with other content: only if the alias follows does the disk lie.
//! 4. Then what the alias held is written back (`sys::block::undo_change`, only over our own
//!    block), and the disk is refused. On a sound disk no alias can follow, so this never happens.

use super::candidate::Candidate;
use crate::storage::{failed, failed_request, fill};
use crate::{Budget, Error, ErrorKind, Result};
use model::bytes::MIB;
use model::device::BlockDevice;
use model::qualification::{CapacityCheck, CapacityOutcome};
use std::fs::File;
use std::time::Duration;
use sys::device::FileDevice;
use sys::memory::AlignedBuffer;

/// The block that is written.
pub(super) const BLOCK_BYTES: u64 = fill::BLOCK_BYTES as u64;
/// The smallest power of two: no fake has less.
const LEAST_ALIAS: u64 = MIB;
/// In a file that grows from its start, how far apart blocks are tried: so much may land elsewhere
/// on a disk that ends in between.
const STRIDE: u64 = 16 * MIB;
/// The most that reading aliases may take each time.
const LONGEST: Duration = Duration::from_secs(5);

/// The contents of such blocks: numbers that the rest of the file does not use.
const FIRST_PATTERN: u64 = 1 << 40;

/// In which order the file's blocks can be written without writing others for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileOrder {
    /// Any: its space is reserved and its places are known.
    Any,
    /// From its start.
    Ascending,
}

/// How the place of a block on the disk is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceSource {
    /// FIEMAP: ext4, XFS.
    Extents,
    /// FIBMAP: FAT, exFAT.
    Blocks,
}

/// The check over the whole run.
#[derive(Debug)]
pub(super) struct AliasCheck {
    order: FileOrder,
    /// What reads the disk and knows the places; the reason without it.
    reader: std::result::Result<PlaceReader, String>,
    report: CapacityCheck,
    file_bytes: u64,
    seed: u64,
}

#[derive(Debug)]
struct PlaceReader {
    disk: FileDevice,
    source: PlaceSource,
    /// Where the partition begins on the disk.
    start: u64,
}

/// One other place, before the block was written.
struct Alias {
    place: u64,
    before: Vec<u8>,
}

impl AliasCheck {
    /// Reserves the file's space where that can be done without writing, and opens the disk.
    pub(super) fn prepare(candidate: &Candidate<'_>, size: model::Bytes, seed: u64) -> Self {
        let claimed = candidate.facts.claimed_bytes;
        let mut report = CapacityCheck::not_tried(claimed, "nothing was read back");
        let reader = PlaceReader::open(candidate);
        report.aliases_unseen = reader.as_ref().err().cloned();
        let file = candidate.target.file();
        let order = match reader.as_ref().map(|reader| reader.source) {
            Ok(PlaceSource::Extents) if sys::file::allocate(file, size.0).is_ok() => FileOrder::Any,
            Ok(PlaceSource::Blocks) => {
                // So that places are known before they are written; exFAT cannot.
                let _ = sys::file::reserve(file, size.0);
                FileOrder::Ascending
            }
            _ => FileOrder::Ascending,
        };
        Self { order, reader, report, file_bytes: size.0, seed }
    }

    /// The order in which it wants the file written.
    pub(super) fn order(&self) -> FileOrder {
        self.order
    }

    /// What is known until now.
    pub(super) fn report(&self) -> CapacityCheck {
        self.report.clone()
    }

    /// Whether the disk is refused.
    pub(super) fn is_refused(&self) -> bool {
        self.report.outcome == CapacityOutcome::Refused
    }

    /// Tries the block of the file that is highest on the disk.
    pub(super) fn highest_block(&mut self, candidate: &Candidate<'_>) -> Result<()> {
        let file = candidate.target.file();
        let extents = sys::fiemap::extents(file, 0..self.file_bytes).unwrap_or_default();
        let highest = extents
            .iter()
            .filter_map(|extent| {
                let end = (extent.offset + extent.bytes).min(self.file_bytes);
                let offset = (end / BLOCK_BYTES * BLOCK_BYTES).checked_sub(BLOCK_BYTES)?;
                let place = extent.physical? + offset.checked_sub(extent.offset)?;
                Some((place, offset))
            })
            .max();
        match highest {
            Some((_, offset)) => self.check_block(candidate, offset),
            None => {
                let reason = "the file system does not say where its file is";
                self.report.aliases_unseen = Some(reason.to_owned());
                Ok(())
            }
        }
    }

    /// Before the file is written from `offset` on: how far that may go until the next call, or
    /// `None` if the disk is refused.
    pub(super) fn next_block(
        &mut self,
        candidate: &Candidate<'_>,
        offset: u64,
    ) -> Result<Option<u64>> {
        if self.order == FileOrder::Any || self.reader.is_err() {
            return Ok(Some(u64::MAX));
        }
        self.check_block(candidate, offset)?;
        Ok((!self.is_refused()).then_some((offset / STRIDE + 1) * STRIDE))
    }

    fn check_block(&mut self, candidate: &Candidate<'_>, offset: u64) -> Result<()> {
        let own = Block { candidate, file: candidate.direct()?, seed: self.seed, offset };
        let Ok(reader) = &self.reader else { return own.write(0).map(drop) };
        // Where it will be; exFAT says only where the block before it is.
        let expected = reader.place(candidate.target.file(), offset, BLOCK_BYTES).or_else(|| {
            let before = reader.place(candidate.target.file(), offset.checked_sub(BLOCK_BYTES)?, 1);
            Some(before? + BLOCK_BYTES)
        });
        let aliases = expected.map_or_else(Vec::new, |place| reader.read_aliases(place));
        let content = own.write(0)?;
        let Some(place) = reader.place(candidate.target.file(), offset, BLOCK_BYTES) else {
            let reason = "the file system does not say where its file is";
            self.report.aliases_unseen = Some(reason.to_owned());
            return Ok(());
        };
        self.report.highest_place = self.report.highest_place.max(Some(place));
        let is_expected = expected == Some(place);
        let after = reader.read_aliases(place);
        self.report.aliases_read += after.len() as u32;
        let Some(suspect) = after.iter().find(|alias| alias.before == content) else {
            return own.read_back(&content).map(|wrong| self.refuse_if(wrong));
        };
        self.confirm(&own, suspect.place, place, is_expected.then_some(&aliases))
    }

    /// Writes the block again with other content; if the alias follows, the disk is refused, and
    /// what was there is put back.
    fn confirm(
        &mut self,
        own: &Block<'_, '_>,
        suspect: u64,
        place: u64,
        aliases: Option<&Vec<Alias>>,
    ) -> Result<()> {
        let Ok(reader) = &self.reader else { return Ok(()) };
        let second = own.write(1)?;
        let file = own.candidate.target.file();
        if reader.read(suspect).as_deref() != Some(&*second)
            || reader.place(file, own.offset, BLOCK_BYTES) != Some(place)
        {
            // A second copy that the file system made once: nothing is proved, nothing is touched.
            return Ok(());
        }
        let before = aliases.into_iter().flatten().find(|alias| alias.place == suspect);
        // The alias of an own block has nothing that must be kept; else it is what was there.
        let is_restored = before.is_some_and(|alias| {
            own.candidate.disk_node().is_some_and(|node| {
                sys::block::undo_change(&node, suspect, &second, &alias.before).unwrap_or(false)
            })
        });
        self.report.damaged_place = Some(suspect);
        self.report.is_restored = Some(is_restored);
        self.refuse_if(Some(format!(
            "what is written at {} of the disk changes what is at {}",
            model::Bytes(place),
            model::Bytes(suspect)
        )));
        Ok(())
    }

    fn refuse_if(&mut self, reason: Option<String>) {
        if let Some(reason) = reason {
            self.report.outcome = CapacityOutcome::Refused;
            self.report.reason = Some(reason);
        }
    }
}

impl PlaceReader {
    /// Opens the whole disk for reading; the error says in words why aliases cannot be read.
    fn open(candidate: &Candidate<'_>) -> std::result::Result<Self, String> {
        let (mount, disk) = (candidate.mount.as_ref(), candidate.disk.as_ref());
        let (Some(mount), Some(disk)) = (mount, disk) else {
            return Err("no disk is known behind it".to_owned());
        };
        let options = format!("{},{}", mount.options, mount.super_options);
        let source = match mount.fs_type.as_str() {
            "ext2" | "ext3" | "ext4" if !options.contains("data=journal") => PlaceSource::Extents,
            "xfs" if !options.contains("rtdev") => PlaceSource::Extents,
            "vfat" | "exfat" => PlaceSource::Blocks,
            other => {
                return Err(format!("on {other} the place of a file on the disk is not known"));
            }
        };
        if !disk.members.is_empty() || candidate.is_device() {
            return Err(format!("{} is made of other devices", disk.name));
        }
        let (major, minor) = candidate.target.device().ok_or("its device is not known")?;
        let start = machine::block::start_on_disk(candidate.root, major, minor);
        Ok(Self { disk: candidate.raw()?, source, start })
    }

    /// Where the `bytes` bytes (of which FIEMAP needs one) at `offset` of the file are on the disk.
    fn place(&self, file: &File, offset: u64, bytes: u64) -> Option<u64> {
        let physical = match self.source {
            PlaceSource::Extents => {
                let all = sys::fiemap::extents(file, offset..offset + bytes).ok()?;
                let extent = all.first()?;
                let within = offset.checked_sub(extent.offset)?;
                (within + bytes <= extent.bytes).then_some(extent.physical? + within)?
            }
            PlaceSource::Blocks => {
                sys::fibmap::place(file, offset, bytes.max(BLOCK_BYTES)).ok().flatten()?
            }
        };
        physical.checked_add(self.start)
    }

    /// The places that a fake of any power of two has for `place`, with what they hold.
    fn read_aliases(&self, place: u64) -> Vec<Alias> {
        let budget = Budget::of(LONGEST);
        let powers = (LEAST_ALIAS.trailing_zeros()..u64::BITS).map(|bits| 1_u64 << bits);
        let mut places: Vec<u64> = powers
            .take_while(|power| *power <= place)
            .map(|power| place % power)
            // Not what is beside the block itself.
            .filter(|alias| alias + BLOCK_BYTES <= place)
            .collect();
        places.dedup();
        places
            .into_iter()
            .take_while(|_| !budget.over())
            .filter_map(|place| Some(Alias { place, before: self.read(place)? }))
            .collect()
    }

    fn read(&self, place: u64) -> Option<Vec<u8>> {
        let mut buffer = AlignedBuffer::new(BLOCK_BYTES as usize).ok()?;
        let read = self.disk.read_at(&mut buffer, place).ok()?;
        (read == buffer.len()).then(|| buffer.to_vec())
    }
}

/// The block of the own file.
struct Block<'c, 'r> {
    candidate: &'c Candidate<'r>,
    file: FileDevice,
    seed: u64,
    offset: u64,
}

impl Block<'_, '_> {
    /// Writes it with the content of number `pattern`, until it is durable; what was written.
    fn write(&self, pattern: u64) -> Result<Vec<u8>> {
        let mut buffer = AlignedBuffer::new(BLOCK_BYTES as usize)
            .map_err(|e| Error::io(ErrorKind::Impossible, "prepare a buffer", &e.source))?;
        fill::fill(&mut buffer, self.seed, FIRST_PATTERN + pattern);
        fill::stamp(&mut buffer, self.seed, self.offset);
        let answer = self.file.write_at(&buffer, self.offset);
        let written = answer.map_err(|e| failed_request("write", e.offset, &e.source))?;
        if written != buffer.len() {
            let reason = "only a part was taken: the disk is full";
            return Err(Error::new(ErrorKind::Failed, "write", reason));
        }
        let path = self.candidate.target.path();
        sys::file::sync_data(self.candidate.target.file()).map_err(|e| failed("sync", path, e))?;
        Ok(buffer.to_vec())
    }

    /// Reads it past the page cache; the reason to refuse the disk if it is not `content`.
    fn read_back(&self, content: &[u8]) -> Result<Option<String>> {
        let path = self.candidate.target.path();
        self.candidate.target.evict().map_err(|e| failed("evict", path, e))?;
        let mut buffer = AlignedBuffer::new(content.len())
            .map_err(|e| Error::io(ErrorKind::Impossible, "prepare a buffer", &e.source))?;
        let read = self.file.read_at(&mut buffer, self.offset);
        read.map_err(|e| failed_request("read", e.offset, &e.source))?;
        let is_there = *buffer == *content;
        Ok((!is_there).then(|| "the first block that was written is not there".to_owned()))
    }
}

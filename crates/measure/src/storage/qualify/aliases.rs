//! Whether a disk is as large as it claims, before much is written to it.
//!
//! A fake drops the high bits of an address: what is written at P lands at P modulo a power of two.
//! 1. The block's place is found (FIEMAP, FIBMAP), and its aliases are read; the disk is open for
//!    reading only. Not where a file system keeps a second copy of data. A disk that the kernel
//!    does not let this program write to is refused before: nothing could be put back there.
//! 2. The block is written to the own file: 4 KiB that equal no other block.
//! 3. The aliases are read again. If one holds exactly this block, the block is written once more
//!    with other content: if the alias is read and does not follow, the disk is not to blame.
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
    written_bytes: u64,
    /// Other places of all blocks, and those of them that were not read before and after.
    places: usize,
    unread: usize,
}

#[derive(Debug)]
struct PlaceReader {
    disk: FileDevice,
    source: PlaceSource,
    /// Where the partition begins on the disk.
    start: u64,
}

/// One other place, and what it holds.
struct Alias {
    place: u64,
    content: Vec<u8>,
}

/// Another place that holds exactly the block that was just written.
struct Suspicion {
    place: u64,
    content: Vec<u8>,
    /// Where the block itself is.
    expected: Option<u64>,
}

impl AliasCheck {
    /// Reserves the file's space where that can be done without writing, and opens the disk.
    ///
    /// # Errors
    /// `Impossible` where aliases can be read, and what a fake overwrites could not be put back.
    pub(super) fn prepare(
        candidate: &Candidate<'_>,
        size: model::Bytes,
        seed: u64,
    ) -> Result<Self> {
        let claimed = candidate.facts.claimed_bytes;
        let mut report = CapacityCheck::not_tried(claimed, "nothing was read back");
        let reader = PlaceReader::open(candidate);
        if reader.is_ok() {
            check_undo(candidate)?;
        }
        report.aliases_unseen = reader.as_ref().err().cloned();
        let file = candidate.target.file();
        // What others wrote before is neither measured nor waited for later.
        let _ = sys::file::sync_file_system(file);
        let order = match reader.as_ref().map(|reader| reader.source) {
            Ok(PlaceSource::Extents) if sys::file::allocate(file, size.0).is_ok() => FileOrder::Any,
            Ok(PlaceSource::Blocks) => {
                // So that places are known before they are written; exFAT cannot.
                let _ = sys::file::reserve(file, size.0);
                FileOrder::Ascending
            }
            _ => FileOrder::Ascending,
        };
        let file_bytes = size.0;
        let (written_bytes, places, unread) = (0, 0, 0);
        Ok(Self { order, reader, report, file_bytes, seed, written_bytes, places, unread })
    }

    /// The order in which it wants the file written.
    pub(super) fn order(&self) -> FileOrder {
        self.order
    }

    /// What is known until now.
    pub(super) fn report(&self) -> CapacityCheck {
        let mut report = self.report.clone();
        if self.unread > 0 {
            let (unread, all) = (self.unread, self.places);
            let reason = || format!("{unread} of {all} were not read before and after, or in time");
            report.aliases_unseen.get_or_insert_with(reason);
        }
        if report.aliases_read == 0 && report.highest_place.is_some() {
            let reason = "a fake would have no other place for its file";
            report.aliases_unseen.get_or_insert_with(|| reason.to_owned());
        }
        report
    }

    /// Bytes that its blocks wrote to the own file.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written_bytes
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

    /// Writes the block at `offset` and looks whether another place of the disk changed with it.
    /// However the write ends, what it changed elsewhere is put back.
    fn check_block(&mut self, candidate: &Candidate<'_>, offset: u64) -> Result<()> {
        let own = Block { candidate, file: candidate.direct()?, seed: self.seed, offset };
        let content = own.content(0);
        let Ok(reader) = &self.reader else {
            own.write(&content)?;
            self.written_bytes += BLOCK_BYTES;
            return Ok(());
        };
        let file = candidate.target.file();
        // What this file system has not written yet is put back as well, not what was before it.
        let path = candidate.target.path();
        sys::file::sync_file_system(file).map_err(|error| failed("sync", path, error))?;
        // Where it will be; exFAT says only where the block before it is.
        let expected = reader.place(file, offset, BLOCK_BYTES).or_else(|| {
            let before = reader.place(file, offset.checked_sub(BLOCK_BYTES)?, 1);
            Some(before? + BLOCK_BYTES)
        });
        let before = expected.map_or_else(Vec::new, |place| reader.read_aliases(place, &[]));
        // From here on the disk may hold our block where the user's was.
        let _hold = sys::interrupt::hold();
        let written = own.write(&content);
        self.written_bytes += if written.is_ok() { BLOCK_BYTES } else { 0 };
        let place = reader.place(file, offset, BLOCK_BYTES);
        let seen_at = place.or(expected);
        let after = seen_at.map_or_else(Vec::new, |place| reader.read_aliases(place, &before));
        // The block may have come to be where an alias was expected: exFAT.
        let is_ours = |alias: &&Alias| Some(alias.place) != place && alias.content == content;
        if let Some(suspect) = after.iter().find(is_ours) {
            let suspicion = Suspicion { place: suspect.place, content, expected: seen_at };
            let is_refused = self.confirm(&own, &suspicion, &before);
            return if is_refused { Ok(()) } else { written.and(readable_still(&before, &after)) };
        }
        written?;
        readable_still(&before, &after)?;
        let Some(place) = place else {
            let reason = "the file system does not say where its file is";
            self.report.aliases_unseen = Some(reason.to_owned());
            return Ok(());
        };
        self.report.highest_place = self.report.highest_place.max(Some(place));
        self.count_pairs(&alias_places(place), &before, &after);
        own.read_back(&content).map(|wrong| self.refuse_if(wrong))
    }

    /// Counts the places that were read before and after the block was written, and those that
    /// were not.
    fn count_pairs(&mut self, places: &[u64], before: &[Alias], after: &[Alias]) {
        let is_in = |all: &[Alias], place: u64| all.iter().any(|alias| alias.place == place);
        let is_pair = |place: &&u64| is_in(before, **place) && is_in(after, **place);
        let pairs = places.iter().filter(is_pair).count();
        self.report.aliases_read += pairs as u32;
        self.places += places.len();
        self.unread += places.len() - pairs;
    }

    /// Writes the block again with other content. Only if the alias is read again and does not
    /// follow, nothing is proved and nothing touched. Else the disk is refused, and what was there
    /// is put back. Whether it was refused.
    fn confirm(&mut self, own: &Block<'_, '_>, suspicion: &Suspicion, before: &[Alias]) -> bool {
        let Ok(reader) = &self.reader else { return false };
        let suspect = suspicion.place;
        let second = own.content(1);
        let is_written = own.write(&second).is_ok();
        self.written_bytes += if is_written { BLOCK_BYTES } else { 0 };
        let now = reader.read(suspect);
        let file = own.candidate.target.file();
        let is_in_place = reader.place(file, own.offset, BLOCK_BYTES) == suspicion.expected;
        if is_written && is_in_place && now.is_some_and(|now| now != second) {
            // A second copy that the file system made once.
            let place = model::Bytes(suspect);
            let reason = format!("the place at {place} held this block once and did not follow it");
            self.report.aliases_unseen = Some(reason);
            return false;
        }
        let before = before.iter().find(|alias| alias.place == suspect);
        let disk = own.candidate.disk.as_ref().zip(own.candidate.disk_node());
        // It holds the one or the other: the second write may have failed on its way.
        let is_restored = before.zip(disk).is_some_and(|(alias, (disk, node))| {
            let numbers = (disk.major, disk.minor);
            [&second, &suspicion.content].into_iter().any(|ours| {
                let content = &alias.content;
                sys::block::undo_change(&node, numbers, suspect, ours, content).unwrap_or(false)
            })
        });
        self.report.damaged_place = Some(suspect);
        self.report.is_restored = Some(is_restored);
        self.report.highest_place = self.report.highest_place.max(suspicion.expected);
        let place = suspicion.expected.unwrap_or_default();
        self.refuse_if(Some(format!(
            "what is written at {} of the disk changes what is at {}",
            model::Bytes(place),
            model::Bytes(suspect)
        )));
        true
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

    /// What the other places of the block at `place` hold. Those that were read `before` are read
    /// again however long that takes, after Ctrl-C too: one of them may have changed.
    fn read_aliases(&self, place: u64, before: &[Alias]) -> Vec<Alias> {
        let budget = Budget::of(LONGEST);
        let is_known = |place: &u64| before.iter().any(|alias| alias.place == *place);
        let mut places: Vec<u64> = before.iter().map(|alias| alias.place).collect();
        places.extend(alias_places(place).into_iter().filter(|place| !is_known(place)));
        places
            .into_iter()
            .filter(|place| is_known(place) || !budget.is_past())
            .filter_map(|place| {
                let content = self.read(place).or_else(|| self.read(place))?;
                Some(Alias { place, content })
            })
            .collect()
    }

    fn read(&self, place: u64) -> Option<Vec<u8>> {
        let mut buffer = AlignedBuffer::new(BLOCK_BYTES as usize).ok()?;
        let read = self.disk.read_at(&mut buffer, place).ok()?;
        (read == buffer.len()).then(|| buffer.to_vec())
    }
}

/// Fails unless what a fake overwrites can be put back.
fn check_undo(candidate: &Candidate<'_>) -> Result<()> {
    let Some((disk, node)) = candidate.disk.as_ref().zip(candidate.disk_node()) else {
        return Ok(());
    };
    sys::block::check_undo(&node, (disk.major, disk.minor)).map_err(|error| {
        let (node, why) = (node.display(), sys::plain_reason(&error.source));
        let reason = format!(
            "{node} cannot be opened for writing ({why}): what a fake would overwrite could not be \
             put back, so nothing was written; name {node} itself to have it only read"
        );
        Error::new(ErrorKind::Impossible, "qualify", reason)
    })
}

/// Fails if a place that was read before the block was written cannot be read after it: whether
/// that changed is not known, and to write on could change more.
fn readable_still(before: &[Alias], after: &[Alias]) -> Result<()> {
    let is_read = |place: u64| after.iter().any(|alias| alias.place == place);
    let Some(lost) = before.iter().find(|alias| !is_read(alias.place)) else { return Ok(()) };
    let place = model::Bytes(lost.place);
    let reason = format!(
        "the place at {place} of the disk was read before a block was written and cannot be read \
         after it"
    );
    Err(Error::new(ErrorKind::Failed, "read the disk", reason))
}

/// The places that a fake of any power of two has for `place`.
fn alias_places(place: u64) -> Vec<u64> {
    let powers = (LEAST_ALIAS.trailing_zeros()..u64::BITS).map(|bits| 1_u64 << bits);
    let mut places: Vec<u64> = powers
        .take_while(|power| *power <= place)
        .map(|power| place % power)
        // Not what is beside the block itself.
        .filter(|alias| alias + BLOCK_BYTES <= place)
        .collect();
    places.dedup();
    places
}

/// The block of the own file.
struct Block<'c, 'r> {
    candidate: &'c Candidate<'r>,
    file: FileDevice,
    seed: u64,
    offset: u64,
}

impl Block<'_, '_> {
    /// Its content of number `pattern`.
    fn content(&self, pattern: u64) -> Vec<u8> {
        let mut buffer = vec![0; BLOCK_BYTES as usize];
        fill::fill(&mut buffer, self.seed, FIRST_PATTERN + pattern);
        fill::stamp(&mut buffer, self.seed, self.offset);
        buffer
    }

    /// Writes it until it is durable.
    fn write(&self, content: &[u8]) -> Result<()> {
        let mut buffer = AlignedBuffer::new(content.len())
            .map_err(|e| Error::io(ErrorKind::Impossible, "prepare a buffer", &e.source))?;
        buffer.copy_from_slice(content);
        let answer = self.file.write_at(&buffer, self.offset);
        let written = answer.map_err(|e| failed_request("write", e.offset, &e.source))?;
        if written != buffer.len() {
            let reason = "only a part was taken: the disk is full";
            return Err(Error::new(ErrorKind::Failed, "write", reason));
        }
        let path = self.candidate.target.path();
        sys::file::sync_data(self.candidate.target.file()).map_err(|e| failed("sync", path, e))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_power_of_two_up_to_the_place_has_its_other_place() {
        let place = (1 << 30) + 5 * MIB + 8192;
        assert_eq!(alias_places(place), [8192, MIB + 8192, 5 * MIB + 8192]);
        assert!(alias_places(MIB - 4096).is_empty());
        assert_eq!(alias_places(MIB), [0]);
    }

    #[test]
    fn a_place_that_cannot_be_read_any_more_ends_the_run() {
        let alias = |place| Alias { place, content: vec![7; 4] };
        let before = [alias(0), alias(MIB)];
        assert!(readable_still(&before, &[alias(MIB), alias(0), alias(2 * MIB)]).is_ok());
        let error = readable_still(&before, &[alias(0)]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Failed);
        assert!(error.to_string().contains("1 MiB"), "{error}");
    }
}

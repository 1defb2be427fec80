//! `boost qualify`: what a stick or a disk gives a cache, measured in one nameless file beside the
//! user's files, or only by reading where a block device is named.
//!
//! 1. `candidate` opens what the path names, and refuses memory, networks and overlays.
//! 2. `aliases` writes one block and looks whether other places of the disk change with it.
//! 3. `transfers` writes the file in sequence, `knee` finds where the rate falls, and every byte is
//!    read back past the caches: that is the capacity that is proved.
//! 4. `requests` times random requests; `erase` reads across boundaries; `compared` asks the disk
//!    that the stick would help.
//!
//! It judges nothing (`explain` does) and writes to nothing but its own file, but for one block
//! that `aliases` puts back.

mod aliases;
mod candidate;
mod compared;
mod erase;
mod knee;
mod requests;
mod transfers;

use crate::{Budget, Error, ErrorKind, Result};
use aliases::{AliasCheck, FileOrder};
use candidate::Candidate;
use machine::Root;
use model::Bytes;
use model::bytes::{GIB, MIB};
use model::link::DeviceLink;
use model::qualification::{
    CapacityCheck, CapacityOutcome, EraseBlock, Qualification, QualificationVerdict,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The smallest file on which the figures mean anything.
const LEAST_FILE: Bytes = Bytes(16 * MIB);
/// What a file of FAT can hold, less one step.
const FAT_MOST: u64 = 4 * GIB - MIB;

/// Shares of the whole time, in percent.
const WRITE_PERCENT: u32 = 40;
const READ_PERCENT: u32 = 20;
const RANDOM_READ_PERCENT: u32 = 8;
const RANDOM_WRITE_PERCENT: u32 = 10;
const MIXED_PERCENT: u32 = 8;
const ERASE_PERCENT: u32 = 6;
const DISK_PERCENT: u32 = 6;

/// The most that any step but writing and reading all takes, also with `--full`.
const LONGEST_STEP: Duration = Duration::from_secs(20);

/// What will be measured.
#[derive(Clone, Debug)]
pub struct QualifyPlan {
    /// Bytes of the file, if there is room.
    pub size: Bytes,
    /// The time of all of it.
    pub budget: Duration,
    /// Whether to fill all the room there is and read it back, however long that takes.
    pub full: bool,
    /// The disk to compare with: a block device, or a directory on it; `None`: that of the root
    /// file system.
    pub compare_with: Option<PathBuf>,
}

impl QualifyPlan {
    /// Refuses what makes no sense for any target.
    ///
    /// # Errors
    /// `Usage`.
    pub fn check(&self) -> Result<()> {
        if self.size < LEAST_FILE {
            let reason = format!("the file must have at least {LEAST_FILE}");
            return Err(Error::new(ErrorKind::Usage, "qualify", reason));
        }
        Ok(())
    }

    /// The time of a step from now on. One that waited long for the disk does not take it from
    /// those that follow: all of them together have less than the whole.
    fn share(&self, percent: u32) -> Budget {
        Budget::of((self.budget * percent / 100).min(LONGEST_STEP))
    }

    /// The time of a step that moves the whole file.
    fn long_share(&self, percent: u32) -> Budget {
        let longest = model::duration::LONGEST;
        Budget::of(if self.full { longest } else { self.budget * percent / 100 })
    }
}

/// Measures what `path` names; `begin` is called with each step that begins.
///
/// # Errors
/// `Usage` for what is not a directory or a block device; `Impossible` for memory, networks and
/// overlays, without direct I/O, without room or permission. A failure after that is in the result.
pub fn qualify(
    path: &Path,
    plan: &QualifyPlan,
    root: &Root,
    begin: &mut dyn FnMut(&str),
) -> Result<Qualification> {
    plan.check()?;
    let candidate = Candidate::open(path, root)?;
    let mut result = empty(&candidate);
    let outcome = if candidate.is_device() {
        device(&candidate, plan, begin, &mut result)
    } else {
        directory(&candidate, plan, begin, &mut result)
    };
    match outcome {
        Ok(()) => {}
        // Before the first byte there is nothing to report.
        Err(error) if result.written_bytes == 0 && result.sequential_read.is_none() => {
            return Err(error.at(path));
        }
        Err(error) => result.failure = Some(model::error_chain(&error.at(path))),
    }
    let is_wanted = result.capacity.outcome != CapacityOutcome::Refused;
    if is_wanted && !sys::interrupt::requested() {
        begin("reading the disk that it would help");
        let part = plan.share(DISK_PERCENT);
        let written = &mut result.written_bytes;
        match compared::measure(plan.compare_with.as_deref(), &candidate, &part, written) {
            Ok(disk) => result.disk = Some(disk),
            Err(reason) => result.disk_unseen = Some(reason),
        }
    }
    result.is_cut_short |= sys::interrupt::requested();
    Ok(result)
}

fn empty(candidate: &Candidate<'_>) -> Qualification {
    let claimed = candidate.facts.claimed_bytes;
    let disk = candidate.facts.disk.as_deref();
    let link = disk.and_then(|disk| machine::usb::link_of(candidate.root, disk));
    let unseen = "it is on no USB device and no memory card: its link is not looked at";
    Qualification {
        target: candidate.facts.clone(),
        file_bytes: None,
        random_read: None,
        random_write: None,
        read_while_writing: None,
        sequential_read: None,
        sequential_write: None,
        burst: None,
        sustained_write: None,
        capacity: CapacityCheck::not_tried(claimed, "nothing was read back"),
        link_unseen: link.is_none().then(|| unseen.to_owned()),
        erase_block: reported_erase_block(link.as_ref()),
        link: link.map(|link| link.to_stick_link()),
        disk: None,
        disk_unseen: None,
        verdict: QualificationVerdict::default(),
        written_bytes: 0,
        notes: candidate.notes.clone(),
        failure: None,
        is_cut_short: false,
    }
}

/// What a memory card says about the unit by which it is best erased.
fn reported_erase_block(link: Option<&DeviceLink>) -> EraseBlock {
    let bytes = match link {
        Some(DeviceLink::Mmc(card)) => card.preferred_erase_bytes,
        _ => None,
    };
    EraseBlock { bytes, source: bytes.map(|_| "reported".to_owned()), unseen: None }
}

/// The erase block by read times; what the device reported stays where these say nothing.
fn seen_erase_block(reported: &EraseBlock, found: EraseBlock) -> EraseBlock {
    if found.bytes.is_none() && reported.bytes.is_some() { reported.clone() } else { found }
}

/// The part that only reads, of a block device.
fn device(
    candidate: &Candidate<'_>,
    plan: &QualifyPlan,
    begin: &mut dyn FnMut(&str),
    result: &mut Qualification,
) -> Result<()> {
    let claimed = candidate.facts.claimed_bytes;
    let reason = "a device is only read: name a directory on it to have bytes written";
    result.capacity = CapacityCheck::not_tried(claimed, reason);
    let bytes = candidate.target.bytes()?;
    begin("reading in sequence");
    let part = plan.share(READ_PERCENT);
    result.sequential_read = Some(transfers::read_device(candidate, bytes, &part)?);
    begin("reading at random");
    let part = plan.share(RANDOM_READ_PERCENT);
    result.random_read = Some(requests::read(candidate, bytes, &part)?);
    begin("reading across erase blocks");
    let part = plan.share(ERASE_PERCENT);
    let found = erase::find(candidate, None, &part);
    result.erase_block = seen_erase_block(&result.erase_block, found);
    Ok(())
}

/// All of it, in an own file.
fn directory(
    candidate: &Candidate<'_>,
    plan: &QualifyPlan,
    begin: &mut dyn FnMut(&str),
    result: &mut Qualification,
) -> Result<()> {
    let size = file_size(candidate, plan, &mut result.notes)?;
    let mut transfers = transfers::OwnFile::new(candidate, size)?;
    begin("looking whether it is as large as it claims");
    let mut check = AliasCheck::prepare(candidate, size, transfers.seed())?;
    // The blocks of the check take their time from the writing.
    let part = plan.long_share(WRITE_PERCENT);
    let is_any = check.order() == FileOrder::Any;
    let tried = if is_any { check.highest_block(candidate) } else { Ok(()) };
    result.capacity = check.report();
    result.written_bytes = check.written_bytes();
    tried?;
    if check.is_refused() {
        return Ok(());
    }
    begin("writing in sequence");
    let written = transfers.write(&part, &mut |offset| check.next_block(candidate, offset))?;
    result.capacity = check.report();
    result.file_bytes = Some(written.bytes);
    result.written_bytes = check.written_bytes() + written.bytes;
    (result.burst, result.sustained_write) = (written.burst, written.sustained);
    result.sequential_write = Some(written.figures);
    if let Some(failure) = written.failure {
        return Err(failure);
    }
    if check.is_refused() {
        return Ok(());
    }
    result.is_cut_short |= written.bytes < size.0;
    if written.bytes < LEAST_FILE.0 {
        return Ok(());
    }
    begin("reading all of it back");
    let part = plan.long_share(READ_PERCENT);
    let read = transfers.read_back(&part)?;
    read.judge(&mut result.capacity);
    let is_whole = read.figures.bytes >= written.bytes;
    result.sequential_read = Some(read.figures);
    if let Some(failure) = read.failure {
        return Err(failure);
    }
    if result.capacity.outcome == CapacityOutcome::Refused {
        return Ok(());
    }
    result.is_cut_short |= !is_whole;
    requests(candidate, plan, written.bytes, begin, result)
}

/// The random requests, over a file of `bytes` bytes.
fn requests(
    candidate: &Candidate<'_>,
    plan: &QualifyPlan,
    bytes: u64,
    begin: &mut dyn FnMut(&str),
    result: &mut Qualification,
) -> Result<()> {
    begin("reading at random");
    let part = plan.share(RANDOM_READ_PERCENT);
    result.random_read = Some(requests::read(candidate, bytes, &part)?);
    // Before the random writes, which may move the file on the disk.
    begin("reading across erase blocks");
    let part = plan.share(ERASE_PERCENT);
    let found = erase::find(candidate, Some(bytes), &part);
    result.erase_block = seen_erase_block(&result.erase_block, found);
    begin("writing at random");
    let part = plan.share(RANDOM_WRITE_PERCENT);
    let write = requests::write(candidate, bytes, &part, &mut result.written_bytes)?;
    result.random_write = Some(write);
    begin("reading while writing");
    let part = plan.share(MIXED_PERCENT);
    let written = &mut result.written_bytes;
    let read = requests::read_while_writing(candidate, bytes, &part, written)?;
    result.read_while_writing = Some(read);
    Ok(())
}

/// How large the file becomes: what was asked for, or less where there is less room.
fn file_size(
    candidate: &Candidate<'_>,
    plan: &QualifyPlan,
    notes: &mut Vec<String>,
) -> Result<Bytes> {
    let wanted = if plan.full { Bytes(u64::MAX) } else { plan.size };
    let (fitted, note) = candidate.target.fit(candidate.root, wanted, LEAST_FILE)?;
    if !plan.full {
        notes.extend(note);
    }
    let is_fat = candidate.facts.file_system.as_deref() == Some("vfat");
    let most = if is_fat { FAT_MOST } else { u64::MAX };
    if fitted.0 > most {
        notes.push("FAT holds no file of more than 4 GiB: no more than that is proved".to_owned());
    }
    Ok(Bytes(fitted.0.min(most) / MIB * MIB))
}

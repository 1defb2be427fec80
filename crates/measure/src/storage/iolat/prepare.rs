//! Before the requests: the region is filled, the device opened, the cache brought into
//! the state that the plan names. Nothing of the user's is written or evicted.

use super::{Access, DEFAULT_REGION, IolatPlan};
use crate::storage::stream::{Stream, TransferMode};
use crate::storage::target::StorageTarget;
use crate::storage::{failed, fill};
use crate::{Budget, Error, ErrorKind, Result};
use machine::Root;
use model::Bytes;
use model::bytes::MIB;
use sys::device::FileDevice;
use sys::file::CacheAdvice;

/// The share of the budget that filling the file may take: one over this.
const FILL_SHARE: u32 = 3;
/// Block and depth of that filling.
const FILL_BLOCK: u64 = MIB;
const FILL_DEPTH: u32 = 4;
/// Bytes between two syncs while filling: 3 s of a disk that writes 10 MB/s.
const FILL_STEP: u64 = 32 * MIB;

/// The region that the requests go to: filled in the own file, else what is there.
pub(super) fn region(
    target: &StorageTarget,
    plan: &IolatPlan,
    seed: u64,
    budget: &Budget,
    root: &Root,
    notes: &mut Vec<String>,
) -> Result<u64> {
    let region = if target.is_own() {
        let wanted = plan.region.unwrap_or(DEFAULT_REGION.max(plan.request));
        let (fitted, note) = target.fit(root, wanted, plan.request)?;
        notes.extend(note);
        let filled = fill_own(target, fitted, seed, &budget.part(budget.left() / FILL_SHARE))?;
        if filled < plan.request.0 {
            let reason = "the time ended before one request's worth was written";
            return Err(
                Error::new(ErrorKind::Failed, "fill a test file in", reason).at(target.path())
            );
        }
        if filled < fitted.0 && !budget.interrupted() {
            notes.push(format!(
                "the working set is {} instead of {fitted}: writing it took a third of the time",
                Bytes(filled)
            ));
        }
        filled
    } else {
        let there = target.bytes()?;
        plan.region.map_or(there, |region| region.0.min(there))
    };
    if region < plan.request.0 {
        let reason = format!("its {} are less than one request of {}", Bytes(region), plan.request);
        return Err(Error::new(ErrorKind::Usage, "measure", reason).at(target.path()));
    }
    Ok(region)
}

/// Fills the target's own file with incompressible data, because a read of unwritten blocks never
/// reaches a disk, and makes it durable. Returns how many bytes the budget allowed.
///
/// # Errors
/// `Failed` when a write or a sync fails.
pub fn fill_own(target: &StorageTarget, size: Bytes, seed: u64, budget: &Budget) -> Result<u64> {
    let path = target.path();
    let whole = size.0.next_multiple_of(fill::BLOCK_BYTES as u64);
    let mut stream = match target.direct() {
        Ok(file) => Stream::new(&file, TransferMode::Direct, FILL_BLOCK, FILL_DEPTH, seed)?,
        Err(_) => Stream::new(target.file(), TransferMode::Buffered, FILL_BLOCK, 1, seed)?,
    };
    // Made durable in steps: buffered writes end at once, and one sync of them all could
    // outlast any budget on a slow disk.
    let mut until = 0;
    while until < whole && !budget.over() {
        let part = until..(until + FILL_STEP).min(whole);
        let moved = stream.write(part, budget).checked().map_err(|error| error.at(path))?;
        sys::file::sync_data(target.file()).map_err(|e| failed("sync", path, e))?;
        if moved.whole_until <= until {
            break;
        }
        until = moved.whole_until;
    }
    Ok(until.min(size.0))
}

/// The device that the requests go to, opened as the plan says.
pub(super) fn device(target: &StorageTarget, plan: &IolatPlan) -> Result<FileDevice> {
    if plan.access == Access::Direct {
        let device = target.direct_device()?;
        target.check_direct(device.file(), plan.request, plan.write)?;
        return Ok(device);
    }
    let device = target.cached_device()?;
    let is_durable = plan.write && plan.access == Access::Cold;
    Ok(if is_durable { device.durable() } else { device })
}

/// Brings the own file's pages into the state that the plan names.
pub(super) fn cache(
    target: &StorageTarget,
    plan: &IolatPlan,
    region_bytes: u64,
    budget: &Budget,
    notes: &mut Vec<String>,
) -> Result<()> {
    let path = target.path();
    if plan.access != Access::Direct && !plan.write {
        // Without this a cold request would fetch its neighbours as well.
        sys::file::advise(target.file(), 0, 0, CacheAdvice::Random)
            .map_err(|e| failed("advise on", path, e))?;
    }
    match plan.access {
        Access::Direct => {}
        Access::Cold | Access::Cached if !target.is_own() => notes.push(
            "the file is not this tool's own: its cached pages were left as they are".to_owned(),
        ),
        Access::Cold => {
            let left = target.evict().map_err(|e| failed("evict", path, e))?;
            if let Some(left) = left.filter(|left| *left > 0 && !target.in_ram()) {
                notes.push(format!("{} of the file stayed in the page cache", Bytes(left)));
            }
        }
        Access::Cached => {
            let mut stream = Stream::new(target.file(), TransferMode::Buffered, MIB, 1, 0)?;
            stream.read(0..region_bytes, budget).checked().map_err(|error| error.at(path))?;
        }
    }
    Ok(())
}

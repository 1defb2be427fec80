//! XFS: its superblock, and the log around its head.
//!
//! Mounting, writing and syncing leave the superblock as it was; only unmounting changes it. But
//! nothing is written before the log is: each block of it begins with the number of its round, and
//! the next write goes to the head, where the number drops. A log is written too often to be
//! followed, so these ranges show a change only if they were read after the last write.

use model::device::DeviceError;
use model::engine::{ChangeProof, Witness};

use super::{Area, Content, big};

const SECTOR: u64 = 512;
const MAGIC: u64 = 0x5846_5342;
const RECORD_MAGIC: u64 = 0xfeed_babe;

/// Blocks of the log on each side of its head.
const AROUND: u64 = 8;

pub(super) fn read(area: &Area<'_>) -> Result<Option<Content>, DeviceError> {
    let Some(superblock) = area.witness(0, SECTOR)? else { return Ok(None) };
    if big::<4>(&superblock.bytes, 0) != MAGIC {
        return Ok(None);
    }
    let Some(log) = Log::of(&superblock.bytes) else { return Ok(Some(Content::unknown())) };
    let Some(head) = log.head(area)? else { return Ok(Some(Content::unknown())) };
    let mut witnesses = vec![superblock];
    for blocks in log.around(head) {
        let Some(witness) = log.witness(area, blocks)? else {
            return Ok(Some(Content::unknown()));
        };
        witnesses.push(witness);
    }
    Ok(Some(Content::of("XFS", witnesses, ChangeProof::AfterDetach)))
}

/// The log inside.
struct Log {
    start: u64,
    blocks: u64,
}

impl Log {
    /// By the superblock; `None` if it is elsewhere or cannot be true.
    fn of(fields: &[u8]) -> Option<Self> {
        let [block_shift, group_shift] = [fields[120], fields[124]].map(u32::from);
        let start = big::<8>(fields, 48);
        if start == 0 || !(9..=16).contains(&block_shift) || !(1..=32).contains(&group_shift) {
            return None;
        }
        let group_blocks = big::<4>(fields, 84);
        let group = (start >> group_shift).checked_mul(group_blocks)?;
        let first = group.checked_add(start & ((1 << group_shift) - 1))?;
        let blocks = (big::<4>(fields, 96) << block_shift) / SECTOR;
        let start = first.checked_mul(1 << block_shift)?;
        (blocks >= 2 * AROUND).then_some(Self { start, blocks })
    }

    /// The number of the round in which a block was written.
    fn round(&self, area: &Area<'_>, block: u64) -> Result<Option<u64>, DeviceError> {
        let bytes = area.read(self.start.saturating_add(block * SECTOR), 8)?;
        Ok(bytes.map(|bytes| match big::<4>(&bytes, 0) {
            RECORD_MAGIC => big::<4>(&bytes, 4),
            round => round,
        }))
    }

    /// The block that is written next: the first one of the former round.
    fn head(&self, area: &Area<'_>) -> Result<Option<u64>, DeviceError> {
        let (Some(first), Some(last)) = (self.round(area, 0)?, self.round(area, self.blocks - 1)?)
        else {
            return Ok(None);
        };
        if first == last {
            return Ok(Some(0));
        }
        let (mut of_first, mut of_last) = (0, self.blocks - 1);
        while of_last - of_first > 1 {
            let middle = of_first + (of_last - of_first) / 2;
            let Some(round) = self.round(area, middle)? else { return Ok(None) };
            if round == last {
                of_last = middle;
            } else {
                of_first = middle;
            }
        }
        Ok(Some(of_last))
    }

    /// The blocks before and from the head on; those at the end if it is at the start.
    fn around(&self, head: u64) -> Vec<std::ops::Range<u64>> {
        let around = head.saturating_sub(AROUND)..(head + AROUND).min(self.blocks);
        let end = (head == 0).then_some(self.blocks - AROUND..self.blocks);
        std::iter::once(around).chain(end).collect()
    }

    fn witness(
        &self,
        area: &Area<'_>,
        blocks: std::ops::Range<u64>,
    ) -> Result<Option<Witness>, DeviceError> {
        let len = (blocks.end - blocks.start) * SECTOR;
        area.witness(self.start.saturating_add(blocks.start * SECTOR), len)
    }
}

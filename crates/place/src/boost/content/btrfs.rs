//! btrfs: its superblock. Whatever is made durable changes it, a commit as well as a log of one
//! file; a log is replayed by a commit. What a cut leaves of writes in place that were never made
//! durable may be read as before or after them, so that a frame of before is right as well.

use model::device::DeviceError;
use model::engine::ChangeProof;

use super::{Area, Content};

const SUPERBLOCK: u64 = 64 << 10;
const SUPERBLOCK_BYTES: u64 = 4096;

pub(super) fn read(area: &Area<'_>) -> Result<Option<Content>, DeviceError> {
    let superblock = area.witness(SUPERBLOCK, SUPERBLOCK_BYTES)?;
    let is_one = |bytes: &[u8]| bytes.get(64..72) == Some(b"_BHRfS_M");
    let found = superblock.filter(|superblock| is_one(&superblock.bytes));
    Ok(found.map(|superblock| Content::of("btrfs", vec![superblock], ChangeProof::Always)))
}

//! What is not a file system of its own but a part or the outside of another device: encrypted
//! (LUKS), a member of an array (md), of a pool (ZFS), of a volume group (LVM), or of the file
//! systems and caches bcachefs and bcache.
//!
//! Nothing in such a place is compared: what is written through the other device, or restored into
//! it by an array that was without it, may leave no trace that comes first. But it is known by its
//! name, and a file system that seems to be there too is not believed: a mirror with its metadata
//! at the end looks like what it holds.

use model::device::DeviceError;
use model::engine::ChangeProof;

use super::{Area, Content, big, little};

const LUKS: &[u8] = b"LUKS\xba\xbe";
const MD_MAGIC: u64 = 0xa92b_4efc;
const LVM: &[u8] = b"LABELONE";
/// Where bcache and bcachefs have their superblock, and the place of its magic number.
const BCACHE_AT: u64 = 4096 + 24;
const BCACHE: [u8; 16] = 0xc685_73f6_4e1a_45ca_8265_f57f_48ba_6d81_u128.to_be_bytes();
const BCACHEFS: [u8; 16] = 0xc685_73f6_66ce_90a9_d96a_60cf_803d_f7ef_u128.to_be_bytes();
/// ZFS has two labels of this size at the start and two at the end; the second half of each is a
/// ring of uberblocks.
const ZFS_LABEL: u64 = 256 << 10;
const ZFS_STEP: usize = 1 << 10;
const ZFS_MAGIC: u64 = 0x00ba_b10c;

/// The kinds that an area looks like, each of which proves nothing.
pub(super) fn read(area: &Area<'_>) -> Result<Vec<Content>, DeviceError> {
    let found = [
        ("LUKS", is_luks(area)?),
        ("md", is_md(area)?),
        ("ZFS", is_zfs(area)?),
        ("LVM", is_lvm(area)?),
        ("bcachefs", has(area, BCACHE_AT, &BCACHEFS)?),
        // Also bcachefs in its first years.
        ("bcache", has(area, BCACHE_AT, &BCACHE)?),
    ];
    let of = |(kind, is_one): (&'static str, bool)| {
        is_one.then(|| Content::of(kind, Vec::new(), ChangeProof::Never))
    };
    Ok(found.into_iter().filter_map(of).collect())
}

fn has(area: &Area<'_>, offset: u64, bytes: &[u8]) -> Result<bool, DeviceError> {
    Ok(area.read(offset, bytes.len() as u64)?.as_deref() == Some(bytes))
}

fn is_luks(area: &Area<'_>) -> Result<bool, DeviceError> {
    has(area, 0, LUKS)
}

fn is_lvm(area: &Area<'_>) -> Result<bool, DeviceError> {
    // In one of the first four sectors.
    for sector in 0..4 {
        if has(area, sector * 512, LVM)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Metadata of version 1 is at the start, 4 KiB from it, or 8 KiB before the end; that of version
/// 0.90 in the last whole 64 KiB, in the byte order of its machine.
fn is_md(area: &Area<'_>) -> Result<bool, DeviceError> {
    let bytes = area.bytes();
    let at_end = (bytes / 512).saturating_sub(16) / 8 * 8 * 512;
    for (offset, version) in [(0, 1), (4096, 1), (at_end, 1)] {
        let Some(head) = area.read(offset, 8)? else { continue };
        if little::<4>(&head, 0) == MD_MAGIC && little::<4>(&head, 4) == version {
            return Ok(true);
        }
    }
    let old = (bytes / (64 << 10) * (64 << 10)).saturating_sub(64 << 10);
    let Some(head) = area.read(old, 12)? else { return Ok(false) };
    let of_version_0 = |fields: [u64; 3]| fields == [MD_MAGIC, 0, 90];
    Ok(of_version_0([0, 4, 8].map(|at| little::<4>(&head, at)))
        || of_version_0([0, 4, 8].map(|at| big::<4>(&head, at))))
}

fn is_zfs(area: &Area<'_>) -> Result<bool, DeviceError> {
    let end = area.bytes() / ZFS_LABEL * ZFS_LABEL;
    let labels = [0, ZFS_LABEL, end.saturating_sub(2 * ZFS_LABEL), end.saturating_sub(ZFS_LABEL)];
    for label in labels {
        let Some(ring) = area.read(label + ZFS_LABEL / 2, ZFS_LABEL / 2)? else { continue };
        let is_one =
            |block: &[u8]| little::<8>(block, 0) == ZFS_MAGIC || big::<8>(block, 0) == ZFS_MAGIC;
        if ring.chunks_exact(ZFS_STEP).any(is_one) {
            return Ok(true);
        }
    }
    Ok(false)
}

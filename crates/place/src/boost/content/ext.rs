//! ext2, ext3 and ext4: the superblock, and that of the log inside.
//!
//! Each mount for writing changes the superblock before anything else is written
//! (`ext4_setup_super` counts mounts and notes the time), and so do the tools of e2fsprogs. A log
//! that is replayed is written before that, by a mount for reading too: its own superblock then
//! changes. A log on another device is replayed without a trace here that comes first: such a
//! volume proves nothing.
//!
//! Two bytes of a magic number are in one of 65,536 random blocks. A superblock is one if its
//! checksum is right, or where it has none if its sizes can be those of a file system that is
//! mounted from there.

use model::device::DeviceError;
use model::engine::ChangeProof;

use super::{Area, Content, big, little};

const SUPERBLOCK: u64 = 1024;
const SUPERBLOCK_BYTES: u64 = 1024;
const MAGIC: u64 = 0xef53;
const HAS_LOG: u64 = 0x4;
const IS_LOG: u64 = 0x8;
const IS_64_BIT: u64 = 0x80;
const LOG_MAGIC: u64 = 0xc03b_3998;
const EXTENTS_MAGIC: u64 = 0xf30a;
/// `metadata_csum`, and where the checksum of the superblock is: CRC-32C of all before it.
const HAS_CHECKSUM: u64 = 0x400;
const CHECKSUM: usize = 1020;

pub(super) fn read(area: &Area<'_>) -> Result<Option<Content>, DeviceError> {
    let Some(superblock) = area.witness(SUPERBLOCK, SUPERBLOCK_BYTES)? else { return Ok(None) };
    let fields = superblock.bytes.clone();
    if little::<2>(&fields, 56) != MAGIC || !is_superblock(&fields, area.bytes()) {
        return Ok(None);
    }
    if little::<4>(&fields, 0x60) & IS_LOG != 0 {
        return Ok(Some(Content::unknown()));
    }
    if little::<4>(&fields, 0x5c) & HAS_LOG == 0 {
        return Ok(Some(Content::of("ext2", vec![superblock], ChangeProof::Always)));
    }
    let Some(log) = log_start(area, &fields)? else { return Ok(Some(Content::unknown())) };
    let Some(log) = area.witness(log, SUPERBLOCK_BYTES)? else {
        return Ok(Some(Content::unknown()));
    };
    if big::<4>(&log.bytes, 0) != LOG_MAGIC {
        return Ok(Some(Content::unknown()));
    }
    Ok(Some(Content::of("ext4", vec![superblock, log], ChangeProof::Always)))
}

/// Whether the kernel would take these fields for a superblock of a file system that has room in
/// so many bytes.
fn is_superblock(fields: &[u8], bytes: u64) -> bool {
    let field = |at| little::<4>(fields, at);
    let [inodes, shift, per_group, inodes_per_group] = [0, 24, 32, 40].map(field);
    let [revision, first_data_block] = [76, 20].map(field);
    if shift > 6 || revision > 1 {
        return false;
    }
    let block = 1024_u64 << shift;
    let is_64_bit = field(0x60) & IS_64_BIT != 0;
    let high = if is_64_bit { field(0x150) } else { 0 };
    let blocks = high << 32 | field(4);
    let inode_bytes = if revision == 0 { 128 } else { little::<2>(fields, 88) };
    let is_sized = inodes > 0
        && blocks > first_data_block
        && blocks.checked_mul(block).is_some_and(|end| end <= bytes)
        && first_data_block <= 1
        && per_group >= 8
        && (1..=8 * block).contains(&inodes_per_group)
        && (128..=block).contains(&inode_bytes)
        && inode_bytes.is_power_of_two();
    let has_checksum = field(0x64) & HAS_CHECKSUM != 0;
    // The kernel's sum is not inverted at its end.
    let sum = u64::from(!crc32c::crc32c(&fields[..CHECKSUM]));
    is_sized && (!has_checksum || sum == field(CHECKSUM))
}

/// The first byte of the log, which is the file of an inode; `None` if it is not found inside.
fn log_start(area: &Area<'_>, fields: &[u8]) -> Result<Option<u64>, DeviceError> {
    let shift = little::<4>(fields, 24);
    let inode = little::<4>(fields, 0xe0);
    let per_group = little::<4>(fields, 40);
    if shift > 6 || inode == 0 || per_group == 0 || inode > per_group {
        return Ok(None);
    }
    let block = 1024 << shift;
    // The first descriptor of a group is in the block behind the superblock's.
    let descriptors = (little::<4>(fields, 20) + 1) * block;
    let Some(descriptor) = area.read(descriptors, 64)? else { return Ok(None) };
    let is_64_bit = little::<4>(fields, 0x60) & IS_64_BIT != 0;
    let high = if is_64_bit { little::<4>(&descriptor, 0x28) } else { 0 };
    let table = high << 32 | little::<4>(&descriptor, 8);
    let is_old = little::<4>(fields, 76) == 0;
    let inode_bytes = if is_old { 128 } else { little::<2>(fields, 88) };
    let Some(start) = table.checked_mul(block) else { return Ok(None) };
    let at = start.saturating_add((inode - 1) * inode_bytes);
    let Some(inode) = area.read(at, 128)? else { return Ok(None) };
    first_block(area, &inode[40..100], block)
}

/// The first byte of a file, by the 60 bytes of its inode that say where its blocks are.
fn first_block(area: &Area<'_>, map: &[u8], block: u64) -> Result<Option<u64>, DeviceError> {
    const DEPTH_MAX: usize = 5;
    if little::<2>(map, 0) != EXTENTS_MAGIC {
        // Of ext3: the numbers of the first blocks themselves.
        return Ok(little::<4>(map, 0).checked_mul(block).filter(|start| *start > 0));
    }
    let mut node = map.to_vec();
    for _ in 0..=DEPTH_MAX {
        if little::<2>(&node, 0) != EXTENTS_MAGIC || little::<2>(&node, 2) == 0 {
            return Ok(None);
        }
        // An entry of 12 bytes: the block of the file, then where it is.
        let is_leaf = little::<2>(&node, 6) == 0;
        let found = if is_leaf {
            little::<2>(&node, 18) << 32 | little::<4>(&node, 20)
        } else {
            little::<2>(&node, 20) << 32 | little::<4>(&node, 16)
        };
        let Some(start) = found.checked_mul(block).filter(|start| *start > 0) else {
            return Ok(None);
        };
        if is_leaf {
            return Ok((little::<4>(&node, 12) == 0).then_some(start));
        }
        let Some(next) = area.read(start, block)? else { return Ok(None) };
        node = next;
    }
    Ok(None)
}

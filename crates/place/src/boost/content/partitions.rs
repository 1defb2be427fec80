//! A partition table, GPT or MBR: the table itself, and what each partition holds. A partition
//! whose content is not known makes the whole volume unknown; logical partitions are not looked
//! into.

use model::device::DeviceError;
use model::engine::ChangeProof;

use super::{Area, Content, file_systems, little, only};

/// Sectors of a table with GPT: the protective one, the header and 128 entries.
const GPT_SECTORS: u64 = 34;

pub(super) fn read(volume: &Area<'_>) -> Result<Option<Content>, DeviceError> {
    let mut table = None;
    for sector in [512, 4096] {
        table = match table {
            None => gpt(volume, sector)?,
            found => found,
        };
    }
    let table = match table {
        None => mbr(volume)?,
        found => found,
    };
    let Some(Table { kind, bytes, partitions }) = table else { return Ok(None) };
    let Some(witness) = volume.witness(0, bytes)? else { return Ok(Some(Content::unknown())) };
    let mut whole = Content::of(kind, vec![witness], ChangeProof::Always);
    for (start, end) in partitions {
        let is_inside = start >= bytes && start < end && end <= volume.bytes();
        let content = if is_inside {
            let range = volume.range.start + start..volume.range.start + end;
            only(file_systems(&Area { device: volume.device, range })?)
        } else {
            Content::unknown()
        };
        whole.kinds.extend(content.kinds);
        whole.witnesses.extend(content.witnesses);
        whole.proof = weaker(whole.proof, content.proof);
    }
    Ok(Some(whole))
}

/// A table, and where its partitions begin and end.
struct Table {
    kind: &'static str,
    bytes: u64,
    partitions: Vec<(u64, u64)>,
}

fn weaker(one: ChangeProof, other: ChangeProof) -> ChangeProof {
    use ChangeProof::{AfterDetach, Always, Never};
    match (one, other) {
        (Always, Always) => Always,
        (Never, _) | (_, Never) => Never,
        (AfterDetach, _) | (_, AfterDetach) => AfterDetach,
    }
}

fn gpt(volume: &Area<'_>, sector: u64) -> Result<Option<Table>, DeviceError> {
    let Some(header) = volume.read(sector, 512)? else { return Ok(None) };
    if header.get(..8) != Some(b"EFI PART") {
        return Ok(None);
    }
    let bytes = GPT_SECTORS * sector;
    let [first, entry_bytes] = [little::<8>(&header, 72), little::<4>(&header, 84)];
    let count = little::<4>(&header, 80);
    // Any other shape is not compared as a whole: its partitions would not be known.
    let is_usual = first == 2 && entry_bytes == 128 && (1..=128).contains(&count);
    let entries = if is_usual { volume.read(2 * sector, count * 128)? } else { None };
    let Some(entries) = entries else {
        return Ok(Some(Table { kind: "GPT", bytes, partitions: vec![(0, 0)] }));
    };
    let used = entries.chunks_exact(128).filter(|entry| entry[..16].iter().any(|byte| *byte != 0));
    let place = |entry: &[u8]| {
        let start = little::<8>(entry, 32).saturating_mul(sector);
        (start, little::<8>(entry, 40).saturating_add(1).saturating_mul(sector))
    };
    Ok(Some(Table { kind: "GPT", bytes, partitions: used.map(place).collect() }))
}

fn mbr(volume: &Area<'_>) -> Result<Option<Table>, DeviceError> {
    const SECTOR: u64 = 512;
    let Some(table) = volume.read(0, SECTOR)? else { return Ok(None) };
    let entries: Vec<&[u8]> = table[446..510].chunks_exact(16).collect();
    // The boot sector of a file system has the same end, and other bytes here.
    let is_one = table[510..] == [0x55, 0xaa]
        && entries.iter().all(|entry| entry[0] & 0x7f == 0)
        && entries.iter().any(|entry| entry[4] != 0);
    if !is_one {
        return Ok(None);
    }
    let place = |entry: &&[u8]| {
        let start = little::<4>(entry, 8) * SECTOR;
        (start, start + little::<4>(entry, 12) * SECTOR)
    };
    let used = entries.iter().filter(|entry| entry[4] != 0);
    Ok(Some(Table { kind: "MBR", bytes: SECTOR, partitions: used.map(place).collect() }))
}

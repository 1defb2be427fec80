//! libCacheSim's binary form: records of 24 bytes, little endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0 to 3 | time in seconds |
//! | 4 to 11 | id |
//! | 12 to 15 | size in bytes |
//! | 16 to 23 | number of the next record with this id, from 1; -1 if none follows |

use std::collections::HashMap;

use super::{RawPlace, RawRequest, sectors};

/// The length of a record.
pub(super) const RECORD_BYTES: usize = 24;

/// Decodes one record; ids are objects, or sectors.
pub(super) fn decode(record: &[u8], of_sectors: bool) -> Result<RawRequest<'static>, String> {
    let cut = || format!("it is cut after {} of {RECORD_BYTES} bytes", record.len());
    let whole: &[u8; RECORD_BYTES] = record.try_into().map_err(|_| cut())?;
    let field = |from: usize, len: usize| {
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(&whole[from..from + len]);
        u64::from_le_bytes(bytes)
    };
    let (seconds, id, bytes) = (field(0, 4), field(4, 8), field(12, 4));
    let place = if of_sectors { sectors(id, bytes)? } else { RawPlace::Object(id) };
    // The form does not say which requests write.
    let at_ns = seconds * 1_000_000_000;
    Ok(RawRequest { at_ns, file: "", place, is_write: false, latency_ns: None })
}

/// Encodes requests, each a time in seconds and a key, for blocks of `block_bytes` bytes.
pub fn encode_oracle_general(requests: &[(u32, u64)], block_bytes: u32) -> Vec<u8> {
    let mut later = HashMap::new();
    let mut next: Vec<i64> = (1..=requests.len() as i64)
        .rev()
        .map(|number| later.insert(requests[number as usize - 1].1, number).unwrap_or(-1))
        .collect();
    next.reverse();
    let mut bytes = Vec::with_capacity(requests.len() * RECORD_BYTES);
    for ((at_s, key), next) in requests.iter().zip(next) {
        bytes.extend(at_s.to_le_bytes());
        bytes.extend(key.to_le_bytes());
        bytes.extend(block_bytes.to_le_bytes());
        bytes.extend(next.to_le_bytes());
    }
    bytes
}

/// Encodes requests record by record: the key of each and its time in seconds, for blocks of
/// `block_bytes` bytes. Takes 8 bytes of memory for each request.
pub fn oracle_general_records<'t>(
    times_s: &'t [u32],
    keys: &'t [u64],
    block_bytes: u32,
) -> impl Iterator<Item = [u8; RECORD_BYTES]> + use<'t> {
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    order.sort_unstable_by_key(|&at| (keys[at as usize], at));
    let mut next = vec![u32::MAX; keys.len()];
    for pair in order.windows(2) {
        if keys[pair[0] as usize] == keys[pair[1] as usize] {
            next[pair[0] as usize] = pair[1];
        }
    }
    times_s.iter().zip(keys).zip(next).map(move |((at_s, key), next)| {
        let number = if next == u32::MAX { -1 } else { i64::from(next) + 1 };
        let mut record = [0; RECORD_BYTES];
        record[..4].copy_from_slice(&at_s.to_le_bytes());
        record[4..12].copy_from_slice(&key.to_le_bytes());
        record[12..16].copy_from_slice(&block_bytes.to_le_bytes());
        record[16..].copy_from_slice(&number.to_le_bytes());
        record
    })
}

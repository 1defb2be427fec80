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
    Ok(RawRequest { at_ns: seconds * 1_000_000_000, file: "", place, is_write: false })
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

//! The framing of recordings and snapshots, written and read for attacks.
//!
//! `docs/recording.md` and `docs/snapshot.md` are followed, not the code of `record` and `place`: a
//! suite that used their writers could only make what they make. Nothing is checked here.

use serde_json::Value;

pub(super) const FACTS: u8 = 1;
pub(super) const SCHEMA: u8 = 2;
pub(super) const SAMPLES: u8 = 3;
pub(super) const SPANS: u8 = 4;
pub(super) const TASKS: u8 = 5;
pub(super) const OUTCOME: u8 = 6;
pub(super) const IDENTITIES: u8 = 8;
pub(super) const GROWTHS: u8 = 9;
pub(super) const ACCESSES: u8 = 10;

const MAGIC: &[u8] = b"\x89TREC\r\n\x1a";
const HEADER_BYTES: usize = 16;
const CHUNK_HEADER_BYTES: usize = 32;
/// The reader takes no larger chunk either.
const RAW_BYTES_MAX: usize = 16 << 20;

/// One chunk, unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) kind: u8,
    pub(super) raw: Vec<u8>,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
}

impl Chunk {
    /// A chunk of no particular time.
    pub(super) fn new(kind: u8, raw: Vec<u8>) -> Self {
        Self { kind, raw, first_ns: 0, last_ns: 0 }
    }

    /// A chunk of JSON lines.
    pub(super) fn lines(kind: u8, lines: &[Value]) -> Self {
        Self::new(kind, json_lines(lines))
    }

    /// The JSON lines that it holds; those that are none are left out.
    pub(super) fn values(&self) -> Vec<Value> {
        let lines = self.raw.split(|byte| *byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }
}

/// JSON values, one a line.
pub(super) fn json_lines(lines: &[Value]) -> Vec<u8> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    text.into_bytes()
}

/// The header of a file of this version.
pub(super) fn header(major: u16, minor: u16) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(major.to_le_bytes());
    bytes.extend(minor.to_le_bytes());
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

/// A chunk as in a file, packed at `level` if that makes it smaller.
pub(super) fn encode(chunk: &Chunk, level: Option<i32>) -> Vec<u8> {
    let packed = level
        .and_then(|level| zstd::bulk::compress(&chunk.raw, level).ok())
        .filter(|packed| packed.len() < chunk.raw.len());
    let payload = packed.as_ref().unwrap_or(&chunk.raw);
    let mut bytes = vec![chunk.kind, u8::from(packed.is_some()), 0, 0];
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend((chunk.raw.len() as u32).to_le_bytes());
    bytes.extend(chunk.first_ns.to_le_bytes());
    bytes.extend(chunk.last_ns.to_le_bytes());
    let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes), payload);
    bytes.extend(sum.to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// A whole file of these chunks.
pub(super) fn file(chunks: &[Chunk]) -> Vec<u8> {
    let mut bytes = header(1, 2);
    for chunk in chunks {
        bytes.extend(encode(chunk, Some(3)));
    }
    bytes
}

/// The chunks of a file that is whole.
pub(super) fn parse(bytes: &[u8]) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut rest = bytes.get(HEADER_BYTES..).unwrap_or_default();
    while let Some((head, after)) = rest.split_at_checked(CHUNK_HEADER_BYTES) {
        let number =
            |at: usize| head[at..at + 8].iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
        let bytes = (number(4) & 0xffff_ffff) as usize;
        let Some((payload, next)) = after.split_at_checked(bytes) else {
            break;
        };
        let raw = match head[1] & 1 {
            0 => payload.to_vec(),
            _ => zstd::bulk::decompress(payload, RAW_BYTES_MAX).unwrap_or_default(),
        };
        chunks.push(Chunk { kind: head[0], raw, first_ns: number(12), last_ns: number(20) });
        rest = next;
    }
    chunks
}

/// A snapshot of these lines.
pub(super) fn snapshot(lines: &[u8]) -> Vec<u8> {
    let mut bytes = b"terrace snapshot 1\n".to_vec();
    bytes.extend(zstd::bulk::compress(lines, 3).unwrap_or_default());
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

/// LEB128: seven bits a byte, lowest first.
pub(super) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A signed number, zigzag coded before.
pub(super) fn signed(value: i64) -> Vec<u8> {
    varint(((value << 1) ^ (value >> 63)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let chunks = vec![
            Chunk::new(FACTS, b"{}".to_vec()),
            Chunk { kind: SAMPLES, raw: vec![7; 5000], first_ns: 5, last_ns: u64::MAX },
        ];
        assert_eq!(parse(&file(&chunks)), chunks);
    }

    #[test]
    fn numbers_are_coded_as_documented() {
        assert_eq!([0, -1, 1, -2].map(signed), [[0], [1], [2], [3]]);
        assert_eq!(varint(300), [0xac, 2]);
    }
}

//! How a copy went, by what it counted of itself (`copy.*`) and by the machine beside it: what a
//! recording says of it, in figures and in sentences.

use serde::{Deserialize, Serialize};

/// What a recording says of the copy that it is of. Times count from the copy's first byte.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CopyReport {
    /// What it was bound by: `read`, `write`, `rate_limit`, `background`, `turns`, `processor`,
    /// `small_files`, `unproven`.
    pub limit: String,
    /// All that follows in sentences; the first says what it was bound by.
    pub lines: Vec<String>,
    /// From its first byte to the last change of its counters.
    pub ns: u64,
    /// Bytes that the source gave.
    pub read_bytes: u64,
    /// Bytes of completed writes.
    pub written_bytes: u64,
    /// Bytes that were safe on the target's disk at the end.
    pub durable_bytes: u64,
    /// Files that were complete at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// When the disk that was written most reached its full speed; absent where that cannot be
    /// said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_speed_ns: Option<u64>,
    /// How long reads waited for writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readers_waited_ns: Option<u64>,
    /// How long writes waited for reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writers_waited_ns: Option<u64>,
    /// When it said that it was done, by its mark `done`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_ns: Option<u64>,
    /// When all that it wrote was safe on the disk; absent if that was not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable_ns: Option<u64>,
    /// Bytes of file pages that the kernel took back meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_dropped_bytes: Option<u64>,
    /// Bytes of file pages that were cached when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_before_bytes: Option<u64>,
}

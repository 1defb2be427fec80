//! How pages of another process are restored from swap: what a person can choose, and what a report
//! says was used.

use serde::{Deserialize, Serialize};

/// A method that makes the kernel bring pages of another process back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreMethod {
    /// One thread reads a byte of each page, in slot order.
    RemoteRead,
    /// As many threads, each with its own part of the slots.
    RemoteReaders(u8),
    /// `process_madvise(MADV_WILLNEED)` in slot order, and a byte of each page read behind it.
    WillNeed,
    /// The advice alone, where no process may be read: the pages come into the swap cache, and
    /// the first touch of each maps it without the device.
    AdviceOnly,
}

//! Which slot of a full cache gives way, by six algorithms behind one trait.
//!
//! The caller owns the slots, what they hold and where each key is ([`crate::Index`]); a policy
//! orders the numbers of the slots. A request is answered in one call: `hit` if its key has a slot,
//! else `admit`. All memory is allocated by `new`; no call allocates, reads a clock or draws a
//! random number. FIFO and LRU take 8 bytes a slot, SIEVE 9, W-TinyLFU 25 to 33, S3-FIFO and ARC
//! 18 and 17 beside ghosts of 41 to 65.

use std::num::NonZeroU32;

mod arc;
mod fifo;
pub(crate) mod ghosts;
mod log_s3_fifo;
mod lru;
mod s3_fifo;
mod sieve;
mod sketch;
mod w_tiny_lfu;

pub use arc::Arc;
pub use fifo::Fifo;
pub use log_s3_fifo::{LogQueue, LogS3Fifo};
pub use lru::Lru;
pub use s3_fifo::S3Fifo;
pub use sieve::Sieve;
pub use w_tiny_lfu::WTinyLfu;

/// The slot that a new key gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The slot held nothing.
    Free(u32),
    /// What the slot held is evicted.
    Evicted(u32),
}

impl Placement {
    /// The slot, whatever it held.
    #[inline]
    pub fn slot(self) -> u32 {
        match self {
            Self::Free(slot) | Self::Evicted(slot) => slot,
        }
    }
}

/// An order of slots.
///
/// Slots are numbered from 0. The caller guarantees that `hit` and `remove` name a slot that is
/// held, and that a key which is admitted has no slot. The implementation must evict only when all
/// slots are held, and hold each slot at most once.
pub trait Eviction {
    /// The slots, free and held.
    fn slots(&self) -> u32;

    /// What is in `slot` was requested.
    fn hit(&mut self, slot: u32);

    /// `key` was requested and has no slot: gives it one.
    fn admit(&mut self, key: u64) -> Placement;

    /// What is in `slot` is no longer wanted (deleted, overwritten): frees the slot. A removal is
    /// not an eviction and leaves no ghost.
    fn remove(&mut self, slot: u32);
}

/// The policies, as options and reports name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvictionPolicy {
    /// [`Fifo`].
    Fifo,
    /// [`Lru`].
    Lru,
    /// [`Sieve`].
    Sieve,
    /// [`S3Fifo`].
    S3Fifo,
    /// [`Arc`].
    Arc,
    /// [`WTinyLfu`].
    WTinyLfu,
}

impl EvictionPolicy {
    /// All of them, the simplest first.
    pub const ALL: [Self; 6] =
        [Self::Fifo, Self::Lru, Self::Sieve, Self::S3Fifo, Self::Arc, Self::WTinyLfu];

    /// The name in its paper.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "FIFO",
            Self::Lru => "LRU",
            Self::Sieve => "SIEVE",
            Self::S3Fifo => "S3-FIFO",
            Self::Arc => "ARC",
            Self::WTinyLfu => "W-TinyLFU",
        }
    }
}

/// `share` hundredths of `slots`, rounded down.
fn percent(slots: NonZeroU32, share: u32) -> u32 {
    (u64::from(slots.get()) * u64::from(share) / 100) as u32
}

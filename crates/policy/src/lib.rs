//! What a cache keeps, and what another size of cache would have kept.
//!
//! One code path serves a live cache and a simulation: a policy orders slots by number and knows
//! neither what they hold nor where. Everything is pure: no I/O, no clock, no threads. Memory is
//! allocated once, at the start, and the same requests give the same decisions.

#![forbid(unsafe_code)]

pub mod admission;
pub mod distances;
pub mod eviction;
pub mod ghost;
pub mod index;
mod lists;
mod rank;
pub mod ranking;
pub mod recent;
pub mod shards;
pub mod simulate;
pub mod trace;

pub use distances::Distances;
pub use eviction::{Eviction, EvictionPolicy, Placement};
pub use ghost::Ghost;
pub use index::Index;
pub use ranking::Ranking;
pub use recent::RecentKeys;
pub use shards::Shards;

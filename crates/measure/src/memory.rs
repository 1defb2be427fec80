//! The probes of main memory and its caches: copies, and chains of dependent loads,
//! each on memory that is resident and whose page size was verified.

pub mod arena;
pub mod classic;
pub mod copy;
pub mod latency;
pub mod levels;
pub mod mover;
pub mod technique;

pub use arena::{Arena, PageKind, PagesGranted};

use serde::{Deserialize, Serialize};

/// A method, size or kind of page that was left out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SkippedMethod {
    /// Its name, or the size.
    pub name: String,
    /// Why.
    pub reason: String,
}

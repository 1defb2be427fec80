//! The order of dependent loads, as the command line and the results of `measure memlat` name it.
//! What it costs is measured elsewhere.

use serde::{Deserialize, Serialize};

/// The order in which a chase visits the cache lines of its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChaseOrder {
    /// At random over the whole buffer.
    Random,
    /// At random within a page, page after page.
    InPage,
}

impl ChaseOrder {
    /// The word on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::InPage => "in-page",
        }
    }
}

//! No swap at all.
//!
//! Then memory that was not touched for days stays, only caches can make room, and
//! a machine that runs full kills a program. Some machines want just that, so it
//! is told as a setting.

use super::Outcome;
use crate::finding::{Class, Finding, Severity, Told};
use crate::observed::Observed;
use model::{Bytes, Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "no_swap";

/// Memory without swap behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct NoSwap {
    /// Main memory.
    pub memory_bytes: u64,
}

/// Looks for any area.
pub fn check(observed: &Observed) -> Outcome {
    let Some(swap) = &observed.swap else {
        return Outcome::unchecked("the swap areas could not be read");
    };
    if swap.areas.iter().any(|area| area.size_bytes > 0) {
        return Outcome::Fine;
    }
    Outcome::found(Finding::NoSwap(NoSwap {
        memory_bytes: swap.memory_bytes,
    }))
}

impl Told for NoSwap {
    fn report(&self) -> model::Finding {
        model::Finding {
            id: ID.to_owned(),
            claim: format!(
                "There is no swap (0 B beside {} of memory): when memory is full, a program is killed.",
                Bytes(self.memory_bytes)
            ),
            tier: Some("RAM".to_owned()),
            evidence: vec![
                Evidence::new("swap", 0.0, "bytes", "/proc/swaps"),
                Evidence::new("memory", self.memory_bytes as f64, "bytes", "/proc/meminfo"),
            ],
            grade: Grade::Measured,
            remedy: Some(
                "Add some: compressed RAM (zram), or a swap file on flash. \
                 Risk: a machine that runs full becomes slow instead of losing a program."
                    .to_owned(),
            ),
            confirm: None,
        }
    }

    fn severity(&self) -> Severity {
        Severity::new(Class::Setting, 1.1)
    }
}

//! No swap at all.
//!
//! Without swap, memory that was not touched for days stays resident, only caches
//! can make room, and a full machine kills a program. Some machines want just
//! that, so it ranks as a setting.

use super::Outcome;
use crate::finding::{Class, RankedFinding};
use crate::observed::Observed;
use model::{Bytes, Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "no_swap";

/// Finds that there is no area.
pub fn check(observed: &Observed) -> Outcome {
    let swap = observed.swap.as_ref();
    let swap = swap.ok_or("the swap areas could not be read")?;
    if swap.areas.iter().any(|area| area.size_bytes > 0) {
        return Ok(Vec::new());
    }
    let memory = swap.memory_bytes;
    let finding = model::Finding {
        id: ID.to_owned(),
        claim: format!(
            "There is no swap (0 B beside {} of memory): when memory is full, a program is killed.",
            Bytes(memory)
        ),
        tier: Some("RAM".to_owned()),
        evidence: vec![
            Evidence::new("swap", 0.0, "bytes", "/proc/swaps"),
            Evidence::new("memory", memory as f64, "bytes", "/proc/meminfo"),
        ],
        grade: Grade::Measured,
        remedy: Some(
            "Add some: compressed RAM (zram), or a swap file on flash. \
             Risk: a machine that runs full becomes slow instead of losing a program."
                .to_owned(),
        ),
        confirm: None,
    };
    Ok(vec![RankedFinding::new(Class::Setting, 1.1, finding)])
}

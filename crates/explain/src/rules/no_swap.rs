//! No swap at all.
//!
//! Without swap, memory that was not touched for days stays resident, only caches
//! can make room, and a full machine kills a program. Some machines want just
//! that, so it ranks as a setting.

use super::SurveyVerdict;
use crate::finding::{Class, found};
use crate::observed::Observed;
use crate::verdict::NoFinding;
use model::{Bytes, Evidence, Finding, Grade};

pub(super) fn check(observed: &Observed) -> SurveyVerdict {
    let swap = observed.swap.as_ref().ok_or("the swap areas could not be read")?;
    if swap.areas.iter().any(|area| area.size_bytes > 0) {
        return Err(NoFinding::Nothing);
    }
    let memory = swap.memory_bytes;
    let claim = format!(
        "There is no swap (0 B beside {} of memory): when memory is full, a program is killed.",
        Bytes(memory)
    );
    let evidence = [
        Evidence::new("swap", 0.0, "bytes", "/proc/swaps"),
        Evidence::bytes("memory", memory, "/proc/meminfo"),
    ];
    let finding = Finding::new(Grade::Measured, claim, evidence).tier("RAM").remedy(
        "Add some: compressed RAM (zram), or a swap file on flash. \
         Risk: a machine that runs full becomes slow instead of losing a program.",
    );
    found(Class::Setting, 1.1, finding)
}

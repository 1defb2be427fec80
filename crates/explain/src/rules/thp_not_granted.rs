//! Huge pages that were asked for and did not come.
//!
//! The setting allows them, the memory was asked for in them and touched, and
//! smaps shows how much of it really lies in them. Fragmented memory is the usual
//! cause; a process can also have been barred from huge pages.

use super::Outcome;
use crate::finding::{Class, RankedFinding};
use crate::numbers::bytes;
use crate::observed::Observed;
use crate::wording::percent;
use model::bytes::MIB;
use model::{Bytes, Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "thp_not_granted";

/// Below this share of what was asked for, too little came. The ends of a buffer
/// that is not aligned cost up to two blocks, 6 % of the least that is judged.
pub const LEAST_SHARE: f64 = 0.75;

/// Less memory than this is not judged: 32 blocks of 2 MiB.
pub const LEAST_ASKED_BYTES: u64 = 64 * MIB;

/// Compares what was asked for with what was granted.
pub fn check(observed: &Observed) -> Outcome {
    let pages = observed.pages.as_ref();
    let pages = pages.ok_or("no memory was asked for in huge pages")?;
    if !matches!(pages.thp_setting.as_deref(), Some("always" | "madvise")) {
        return Err("huge pages are switched off, or their setting is not known".to_owned());
    }
    let enough = |&asked: &u64| asked >= LEAST_ASKED_BYTES;
    let asked = bytes(Some(pages.asked_bytes)).filter(enough).ok_or_else(|| {
        let least = Bytes(LEAST_ASKED_BYTES);
        format!("less than {least} was asked for in huge pages")
    })?;
    let granted = pages.granted_bytes;
    let granted = granted.ok_or("what came in huge pages could not be read from smaps")?;
    let share = granted as f64 / asked as f64;
    if share >= LEAST_SHARE {
        return Ok(Vec::new());
    }
    let evidence = |name, value: u64| Evidence::new(name, value as f64, "bytes", "smaps");
    let finding = model::Finding {
        id: ID.to_owned(),
        claim: format!(
            "Of {} asked for in huge pages only {} came ({}): free memory seems too scattered.",
            Bytes(asked),
            Bytes(granted),
            percent(share),
        ),
        tier: Some("RAM".to_owned()),
        evidence: vec![
            evidence("asked for in huge pages", asked),
            evidence("given in huge pages", granted),
        ],
        // The amount is read; that scattered memory is the cause is concluded.
        grade: Grade::Inferred,
        remedy: Some(
            "Before a program that needs them starts: echo 1 | sudo tee /proc/sys/vm/compact_memory. \
             Risk: it moves memory for seconds and holds up others meanwhile."
                .to_owned(),
        ),
        confirm: Some("terrace measure memlat".to_owned()),
    };
    Ok(vec![RankedFinding::new(Class::Setting, 2.0 - share, finding)])
}

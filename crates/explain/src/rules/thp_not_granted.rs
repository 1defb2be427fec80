//! Huge pages that were asked for and did not come.
//!
//! The setting allows them, the memory was asked for in them and touched, and
//! smaps shows how much of it really lies in them. Fragmented memory is the usual
//! cause; a process can also have been barred from huge pages.

use super::SurveyVerdict;
use crate::finding::{Class, found};
use crate::numbers::bytes;
use crate::observed::Observed;
use crate::verdict::NoFinding;
use crate::wording::percent;
use model::bytes::MIB;
use model::{Bytes, Evidence, Finding, Grade};

/// Below this share of what was asked for, too little came. The ends of a buffer
/// that is not aligned cost up to two blocks, 6 % of the least that is judged.
const LEAST_SHARE: f64 = 0.75;

/// Less memory than this is not judged: 32 blocks of 2 MiB.
const LEAST_ASKED_BYTES: u64 = 64 * MIB;

pub(super) fn check(observed: &Observed) -> SurveyVerdict {
    let pages = observed.pages.as_ref().ok_or("no memory was asked for in huge pages")?;
    if !matches!(pages.thp_setting.as_deref(), Some("always" | "madvise")) {
        return Err("huge pages are switched off, or their setting is not known".into());
    }
    let enough = |&asked: &u64| asked >= LEAST_ASKED_BYTES;
    let asked = bytes(Some(pages.asked_bytes)).filter(enough).ok_or_else(|| {
        let least = Bytes(LEAST_ASKED_BYTES);
        format!("less than {least} was asked for in huge pages")
    })?;
    let granted =
        pages.granted_bytes.ok_or("what came in huge pages could not be read from smaps")?;
    let share = granted as f64 / asked as f64;
    if share >= LEAST_SHARE {
        return Err(NoFinding::Nothing);
    }
    let evidence = |name, value: u64| Evidence::bytes(name, value, "smaps");
    let claim = format!(
        "Of {} asked for in huge pages only {} came ({}): free memory seems too scattered.",
        Bytes(asked),
        Bytes(granted),
        percent(share),
    );
    let evidence =
        [evidence("asked for in huge pages", asked), evidence("given in huge pages", granted)];
    // The amount is read; that scattered memory is the cause is concluded.
    let finding = Finding::new(Grade::Inferred, claim, evidence)
        .tier("RAM")
        .remedy(
            "Before a program that needs them starts: echo 1 | sudo tee \
             /proc/sys/vm/compact_memory. Risk: it moves memory for seconds and holds up others \
             meanwhile.",
        )
        .confirm("terrace measure memlat");
    found(Class::Setting, 2.0 - share, finding)
}

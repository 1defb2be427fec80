//! Huge pages that were asked for and did not come.
//!
//! The setting allows them, the memory was asked for in them and touched, and
//! smaps shows how much of it really lies in them. Fragmented memory is the usual
//! cause; a process can also have been barred from huge pages.

use super::Outcome;
use crate::finding::{Class, Finding, Severity, Told};
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

/// Huge pages asked for and given.
#[derive(Clone, Debug, PartialEq)]
pub struct ThpNotGranted {
    /// Asked for.
    pub asked_bytes: u64,
    /// Given.
    pub granted_bytes: u64,
}

/// Compares what was asked for with what came.
pub fn check(observed: &Observed) -> Outcome {
    let Some(pages) = &observed.pages else {
        return Outcome::unchecked("no memory was asked for in huge pages");
    };
    if !matches!(pages.thp_setting.as_deref(), Some("always" | "madvise")) {
        return Outcome::unchecked("huge pages are switched off, or their setting is not known");
    }
    let Some(asked_bytes) = bytes(Some(pages.asked_bytes)).filter(|&b| b >= LEAST_ASKED_BYTES)
    else {
        return Outcome::unchecked(format!(
            "less than {} was asked for in huge pages",
            Bytes(LEAST_ASKED_BYTES)
        ));
    };
    let Some(granted_bytes) = pages.granted_bytes else {
        return Outcome::unchecked("what came in huge pages could not be read from smaps");
    };
    if granted_bytes as f64 >= LEAST_SHARE * asked_bytes as f64 {
        return Outcome::Fine;
    }
    Outcome::found(Finding::ThpNotGranted(ThpNotGranted {
        asked_bytes,
        granted_bytes,
    }))
}

impl ThpNotGranted {
    fn share(&self) -> f64 {
        self.granted_bytes as f64 / self.asked_bytes as f64
    }
}

impl Told for ThpNotGranted {
    fn report(&self) -> model::Finding {
        let evidence = |name, value: u64| Evidence::new(name, value as f64, "bytes", "smaps");
        model::Finding {
            id: ID.to_owned(),
            claim: format!(
                "Of {} asked for in huge pages only {} came ({}): free memory seems too scattered.",
                Bytes(self.asked_bytes),
                Bytes(self.granted_bytes),
                percent(self.share()),
            ),
            tier: Some("RAM".to_owned()),
            evidence: vec![
                evidence("asked for in huge pages", self.asked_bytes),
                evidence("given in huge pages", self.granted_bytes),
            ],
            // What came is read; that scattered memory is the cause is concluded.
            grade: Grade::Inferred,
            remedy: Some(
                "Before a program that needs them starts: echo 1 | sudo tee /proc/sys/vm/compact_memory. \
                 Risk: it moves memory for seconds and holds up others meanwhile."
                    .to_owned(),
            ),
            confirm: Some("terrace measure memlat".to_owned()),
        }
    }

    fn severity(&self) -> Severity {
        Severity::new(Class::Setting, 2.0 - self.share())
    }
}

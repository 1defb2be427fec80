//! Transparent huge pages switched off for the whole machine.
//!
//! With `never` even a program that asks gets small pages. Newer kernels have a
//! switch for each size as well, so what was granted counts for more than the word.

use super::SurveyVerdict;
use crate::finding::{Class, found};
use crate::numbers::bytes;
use crate::observed::Observed;
use crate::verdict::NoFinding;
use model::{Bytes, Evidence, Finding, Grade};

/// The kernel's switch.
const SWITCH: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

pub(super) fn check(observed: &Observed) -> SurveyVerdict {
    let pages = observed.pages.as_ref().ok_or("the setting of huge pages was not read")?;
    match pages.thp_setting.as_deref() {
        Some("never") if pages.granted_bytes.is_none_or(|granted| granted == 0) => {}
        Some("never" | "always" | "madvise") => return Err(NoFinding::Nothing),
        Some(word) => return Err(format!("`{word}` is no known setting of huge pages").into()),
        None => return Err("this kernel shows no setting of huge pages".into()),
    }
    let mut evidence = vec![Evidence::new("set to `never`", 1.0, "count", SWITCH)];
    let mut claim = "Huge pages of 2 MiB are switched off, so no program can get them".to_owned();
    if let Some(asked) = pages.granted_bytes.and(bytes(Some(pages.asked_bytes))) {
        let name = "asked for in huge pages";
        evidence.push(Evidence::bytes(name, asked, "smaps"));
        evidence.push(Evidence::new("given in huge pages", 0.0, "bytes", "smaps"));
        claim.push_str(&format!(": of {} asked for, 0 B came", Bytes(asked)));
    }
    claim.push('.');
    let finding = Finding::new(Grade::Measured, claim, evidence)
        .tier("RAM")
        .remedy(format!(
            "Let programs that ask have them: echo madvise | sudo tee {SWITCH} (until the next \
             boot). Risk: such programs take more memory, and some databases ask for `never`."
        ))
        .confirm("terrace measure memlat");
    // The cost is what translation_costly finds.
    found(Class::Setting, 1.5, finding)
}

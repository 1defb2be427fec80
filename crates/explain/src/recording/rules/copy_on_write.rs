//! Pages that were shared had to be copied before they could be written.
//!
//! Seen by samples of the processors, else by the kernel's own account of such copies, which
//! counts also what a thread waited for meanwhile.

use super::{RunVerdict, RunView};
use crate::verdict::{NoFinding, clear_count};
use crate::wording::{count, long_time};
use model::explanation::{Cause, TimePart};
use model::{Finding, Grade};

pub(super) fn check(run: &RunView) -> RunVerdict {
    let part = run.accounts.part(TimePart::CopyOnWrite);
    let copies = part.and_then(|part| part.count);
    let (ns, grade, evidence) = match run.sampled(TimePart::CopyOnWrite) {
        Some(time) if run.hurts(time.low_ns) => (time.ns, Grade::Measured, time.evidence),
        Some(time) => return Err(time.cleared()),
        None => {
            let part = part.ok_or(NoFinding::Nothing)?;
            let measured = run.part_evidence(TimePart::CopyOnWrite);
            if !run.hurts(part.ns) {
                return clear_count(measured, "copies");
            }
            (part.ns, part.grade, measured.into_iter().collect())
        }
    };
    let mut claim =
        format!("Took {} to copy pages that were shared and then written", long_time(ns as f64));
    if let Some(copies) = copies.filter(|copies| *copies > 0) {
        claim.push_str(&format!(": {} copies", count(copies)));
    }
    let finding = Finding::new(grade, claim, evidence).and(run.grown("tree.minor_faults")).remedy(
        "Start other programs without fork (posix_spawn), fork before memory is filled, or write \
         less of it while a forked child lives. Risk: a child that starts early lacks what came \
         later.",
    );
    Ok(Cause::new(Some(ns), finding))
}

//! Why writing to a RAM disk was slow: passes and counters in, one verdict out, with who else
//! was looked at and what clears them. Pure.
//!
//! 1. What others took of the processor is subtracted from every touch.
//! 2. What is left over the usual touch, the median, is time lost to memory.
//! 3. The suspects are asked in an order in which each is seen by counters of its own; the host,
//!    which no counter of a guest shows, is last and only by the shape of the times.
//! 4. The larger of the two times gives the verdict. Time that nobody accounts for is unproven.

pub mod course;
mod host;
mod ramdisk_view;
mod remedies;
mod suspects;
#[cfg(test)]
mod tests;

use crate::verdict::{NoFinding, Verdicts};
use crate::wording::times;
use model::duration::show_ns;
use model::explanation::Cause;
use model::ramdisk::{ExcludedCause, RamDiskObservation, RamDiskVerdict, Reason, Round};
use model::{Evidence, Finding, Grade};
use ramdisk_view::RamDiskView;
use std::cmp::Reverse;

/// Judges what was seen.
#[must_use]
pub fn judge(seen: &RamDiskObservation) -> RamDiskVerdict {
    let view = RamDiskView::new(seen);
    let Verdicts { found, cleared, unseen, .. } =
        suspects::ALL.into_iter().map(|(reason, check)| (reason, check(&view))).collect();
    // What holds and cost nothing has no time.
    let (mut causes, cheap): (Vec<(Reason, Cause)>, Vec<_>) =
        found.into_iter().partition(|(_, cause)| cause.ns.is_some());
    let mut excluded: Vec<ExcludedCause> =
        cleared.into_iter().map(|(reason, evidence)| ExcludedCause { reason, evidence }).collect();
    let named = |(reason, why, _): (Reason, String, _)| format!("{}: {why}", reason.words());
    let mut unseen: Vec<String> = unseen.into_iter().map(named).collect();
    match host::check(&view, &causes) {
        Ok(cause) => causes.push(cause),
        Err(NoFinding::Cleared(evidence)) => {
            let both =
                host::REASONS.map(|reason| ExcludedCause { reason, evidence: evidence.clone() });
            excluded.extend(both);
        }
        Err(NoFinding::Unseen { why, .. }) => unseen.push(format!("the host: {why}")),
        Err(NoFinding::Nothing) => {}
    }
    // The sort is stable: of equal times the suspect that was asked first counts.
    causes.sort_by_key(|(_, cause)| Reverse(cause.ns));
    if causes.is_empty() {
        let (reason, finding) = no_cause(&view);
        causes.push((reason, Cause::new(None, finding)));
    }
    RamDiskVerdict {
        verdict: causes[0].0,
        grade: causes[0].1.finding.grade,
        usual_ns: view.usual_ns,
        findings: causes
            .into_iter()
            .chain(cheap)
            .map(|(reason, cause)| Finding { id: reason.id().to_owned(), ..cause.finding })
            .collect(),
        excluded,
        unseen,
        tried: remedies::judge(&view),
    }
}

/// The verdict if no suspect is the cause.
fn no_cause(view: &RamDiskView) -> (Reason, Finding) {
    let unproven =
        |claim: String, evidence| (Reason::Unproven, Finding::new(Grade::Unseen, claim, evidence));
    let Some(first) = view.first.filter(|_| view.usual_ns.is_some()) else {
        let none = Evidence::new("pages written", 0.0, "pages", "the process that wrote");
        return unproven("Nothing was written, so nothing can be said.".to_owned(), vec![none]);
    };
    let each = first.mean_ns().unwrap_or(0.0);
    let mean = view.touch_evidence();
    if view.seen.killed {
        let claim = "The process that wrote was killed, and no group says that it did it.";
        return unproven(claim.to_owned(), mean);
    }
    if view.is_lost() {
        let claim = format!(
            "A page takes {}, {} times the usual one, and nothing that can be seen says why.",
            show_ns(each),
            times(each / view.usual_ns.unwrap_or(each)),
        );
        return unproven(claim, mean);
    }
    let copying = view.seen.pass(Round::Rewrite).and_then(|pass| pass.mean_ns());
    let parts = copying.map_or(String::new(), |copying| {
        let getting = (each - copying).max(0.0);
        format!(
            ": {} for the copy and {} to get the page",
            show_ns(copying.min(each)),
            show_ns(getting)
        )
    });
    let claim = format!("The memory was there. A page takes {}{parts}.", show_ns(each));
    (Reason::AlreadyBacked, Finding::new(Grade::Measured, claim, mean))
}

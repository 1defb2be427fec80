//! Why writing to a RAM disk was slow: passes and counters in, one verdict out, with who else
//! was looked at and what clears them. Pure.
//!
//! 1. What others took of the processor is subtracted from every touch.
//! 2. What is left over the usual touch, the median, is time lost to memory.
//! 3. The suspects are asked in an order in which each is seen by counters of its own; the host,
//!    which no counter of a guest shows, is last and only by the shape of the times.
//! 4. The larger of the two times gives the verdict. Time that nobody accounts for is unproven.

mod case;
pub mod course;
mod host;
mod remedies;
mod suspects;
#[cfg(test)]
mod tests;

use case::{Answer, Case, RamDiskCause};
use model::ramdisk::{ExcludedCause, RamDiskObservation, RamDiskVerdict, Reason, Round};
use model::{Evidence, Finding, Grade};

use crate::wording::times;
use model::duration::show_ns;

/// Judges what was seen.
#[must_use]
pub fn judge(seen: &RamDiskObservation) -> RamDiskVerdict {
    let case = Case::new(seen);
    let mut judged = RamDiskVerdict {
        verdict: Reason::Unproven,
        grade: Grade::Unseen,
        usual_ns: case.usual_ns,
        findings: Vec::new(),
        excluded: Vec::new(),
        unseen: Vec::new(),
        tried: remedies::judge(&case),
    };
    let mut causes: Vec<(Reason, RamDiskCause)> = Vec::new();
    let mut moved = Vec::new();
    for (reason, check) in suspects::ALL {
        match check(&case) {
            Answer::Found(cause) => causes.push((reason, cause)),
            Answer::Cheap(finding) => moved.push(finding),
            Answer::Clear(evidence) => judged.excluded.push(ExcludedCause { reason, evidence }),
            Answer::Unseen(why) => judged.unseen.push(format!("{}: {why}", reason.words())),
        }
    }
    host::ask(&case, &mut causes, &mut judged);
    // The sort is stable: of equal times the suspect that was asked first counts.
    causes.sort_by_key(|(_, cause)| std::cmp::Reverse(cause.ns));
    judged.findings = causes.iter().map(|(_, cause)| cause.finding.clone()).collect();
    judged.verdict = match causes.first() {
        Some((reason, _)) => *reason,
        None => {
            let (reason, finding) = no_cause(&case);
            judged.findings.push(finding);
            reason
        }
    };
    judged.findings.extend(moved);
    judged.grade = judged.findings[0].grade;
    judged
}

/// The verdict if no suspect is the cause.
fn no_cause(case: &Case) -> (Reason, Finding) {
    let Some(first) = case.first.filter(|_| case.usual_ns.is_some()) else {
        let claim = "Nothing was written, so nothing can be said.".to_owned();
        let none = Evidence::new("pages written", 0.0, "pages", "the process that wrote");
        return (
            Reason::Unproven,
            case::finding(Reason::Unproven, claim, Grade::Unseen, vec![none]),
        );
    };
    let each = first.mean_ns().unwrap_or(0.0);
    let mean = case.touch_evidence();
    if case.seen.killed {
        let claim =
            "The process that wrote was killed, and no group says that it did it.".to_owned();
        return (Reason::Unproven, case::finding(Reason::Unproven, claim, Grade::Unseen, mean));
    }
    if case.is_lost() {
        let claim = format!(
            "A page takes {}, {} times the usual one, and nothing that can be seen says why.",
            show_ns(each),
            times(each / case.usual_ns.unwrap_or(each)),
        );
        let finding = case::finding(Reason::Unproven, claim, Grade::Unseen, mean);
        return (Reason::Unproven, finding);
    }
    let copying = case.seen.pass(Round::Rewrite).and_then(|pass| pass.mean_ns());
    let parts = copying.map_or(String::new(), |copying| {
        let getting = (each - copying).max(0.0);
        format!(
            ": {} for the copy and {} to get the page",
            show_ns(copying.min(each)),
            show_ns(getting)
        )
    });
    let claim = format!("The memory was there. A page takes {}{parts}.", show_ns(each));
    let finding = case::finding(Reason::AlreadyBacked, claim, Grade::Measured, mean);
    (Reason::AlreadyBacked, finding)
}

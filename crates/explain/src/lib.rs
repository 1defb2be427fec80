//! What is odd about a machine: observations in, findings with evidence out.
//!
//! [`survey`] runs every rule of [`rules`] on one [`Observed`] and sorts the findings
//! by severity. Everything is pure: no I/O, no clock, no errors. A rule that lacks
//! an input reports which; an absent number never counts as a good one.

pub mod advice;
pub mod comparison;
pub mod copying;
pub mod doctor;
pub mod finding;
mod numbers;
pub mod observed;
pub mod qualification;
pub mod ramdisk;
pub mod receipt;
pub mod recording;
pub mod rules;
pub mod transfer;
pub mod verdict;
mod wording;

pub use finding::{Class, RankedFinding, Severity};
pub use observed::Observed;
pub use rules::{RULES, SurveyRule};
pub use verdict::{NoFinding, Verdict};

use model::survey::Unchecked;

/// The conclusions of all rules from one survey. Each rule's id is in exactly one
/// of the three lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// What is odd, what hurts most first ([`Severity`]).
    pub findings: Vec<model::Finding>,
    /// The ids of the rules that could judge and found nothing.
    pub fine: Vec<String>,
    /// The rules that could not judge, with what was missing.
    pub unchecked: Vec<Unchecked>,
}

/// Runs every rule on `observed`.
pub fn survey(observed: &Observed) -> Judgement {
    let verdicts: verdict::Verdicts<&SurveyRule, _> =
        RULES.iter().map(|rule| (rule, rule.judge(observed))).collect();
    let mut found: Vec<RankedFinding> =
        verdicts.found.into_iter().flat_map(|(_, found)| found).collect();
    // The sort is stable: equals stay in the order of the rules, so that two
    // runs on one machine list them alike.
    found.sort_by(|a, b| a.severity.worst_first(&b.severity));
    let cleared = verdicts.cleared.into_iter().map(|(rule, _)| rule);
    let unseen = verdicts.unseen.into_iter();
    Judgement {
        findings: found.into_iter().map(|ranked| ranked.finding).collect(),
        fine: verdicts.nothing.into_iter().chain(cleared).map(|rule| rule.id.to_owned()).collect(),
        unchecked: unseen
            .map(|(rule, reason, _)| Unchecked { id: rule.id.to_owned(), reason })
            .collect(),
    }
}

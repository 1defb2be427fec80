//! What is odd about a machine: observations in, findings with evidence out.
//!
//! [`survey`] runs every rule of [`rules`] on one [`Observed`] and sorts the findings
//! by severity. Everything is pure: no I/O, no clock, no errors. A rule that lacks
//! an input reports which; an absent number never counts as a good one.

pub mod comparison;
pub mod copying;
pub mod finding;
mod numbers;
pub mod observed;
pub mod ramdisk;
pub mod recording;
pub mod rules;
mod wording;

pub use finding::{Class, RankedFinding, Severity};
pub use observed::Observed;
pub use rules::{Outcome, RULES, Rule};

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
    let mut judgement = Judgement::default();
    let mut found = Vec::new();
    for rule in &RULES {
        let id = rule.id.to_owned();
        match (rule.check)(observed) {
            Ok(findings) if findings.is_empty() => judgement.fine.push(id),
            Ok(findings) => found.extend(findings),
            Err(reason) => judgement.unchecked.push(Unchecked { id, reason }),
        }
    }
    // The sort is stable: equals stay in the order of the rules, so that two
    // runs on one machine list them alike.
    found.sort_by(|a, b| a.severity.worst_first(&b.severity));
    judgement.findings = found.into_iter().map(|ranked| ranked.finding).collect();
    judgement
}

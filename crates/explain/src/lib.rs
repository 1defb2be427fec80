//! What is odd about a machine: observations in, findings with evidence out.
//!
//! [`survey`] asks every rule of [`rules`] about one [`Observed`] and puts what
//! they found in the order of how much it hurts. Everything is pure: no I/O, no
//! clock, nothing that can fail. A rule that lacks its numbers says what is
//! missing; it never takes an absent number for a good one.

pub mod comparison;
pub mod copying;
pub mod finding;
mod numbers;
pub mod observed;
pub mod ramdisk;
pub mod recording;
pub mod rules;
mod wording;

pub use finding::{Class, Finding, Severity};
pub use observed::Observed;
pub use rules::{Outcome, RULES, Rule};

use model::survey::Unchecked;

/// What all rules together say of one survey. Each rule's id is in exactly one
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

/// Asks every rule about `observed`.
pub fn survey(observed: &Observed) -> Judgement {
    let mut judgement = Judgement::default();
    let mut found = Vec::new();
    for rule in &RULES {
        match (rule.check)(observed) {
            Outcome::Found(findings) => found.extend(findings),
            Outcome::Fine => judgement.fine.push(rule.id.to_owned()),
            Outcome::Unchecked(reason) => judgement.unchecked.push(Unchecked {
                id: rule.id.to_owned(),
                reason,
            }),
        }
    }
    // The sort is stable: equals stay in the order of the rules, so that two
    // runs of one machine list them alike.
    found.sort_by(|a, b| a.severity().worst_first(&b.severity()));
    judgement.findings = found.iter().map(Finding::report).collect();
    judgement
}

//! What the sources that were tried amount to: for each whether it works, why not, and the line
//! that would allow it.
//!
//! 1. `needs` has a row for each source: what it takes, and what it costs if it is missing. The
//!    rows are in one file a family.
//! 2. `diagnosis` finds the obstacle from the error number and the surroundings.
//! 3. `lines` writes what would allow it, for the place where the program runs.
//! 4. `denials` does so for what a security module refused, by the kernel's messages.
//!
//! Pure: what was tried comes in, nothing is tried here. Never inferred from a version: only an
//! attempt says that something works.

mod accounting;
mod denials;
mod devices;
mod diagnosis;
mod events;
mod groups;
mod lines;
mod memory;
mod needs;

use crate::wording::list;
use diagnosis::Diagnosis;
use model::doctor::{Obstacle, SourceAttempt, SourceHealth, SourceId, SourceReport, Surroundings};
use needs::{PermitText, SourceNeeds};
use std::collections::BTreeMap;

pub use denials::{denial_reports, denial_sentence, unread};
pub use needs::CAPABILITIES;

/// Every source with its needs, in the order of the report.
fn table() -> impl Iterator<Item = &'static SourceNeeds> {
    [events::ROWS, accounting::ROWS, memory::ROWS, groups::ROWS, devices::ROWS]
        .into_iter()
        .flatten()
}

/// Judges what came of the attempts, in the order of the table. A source that was not tried is left
/// out.
pub fn judge(
    attempts: &BTreeMap<SourceId, SourceAttempt>,
    surroundings: &Surroundings,
) -> Vec<SourceReport> {
    let tried = table().filter_map(|needs| Some((needs, attempts.get(&needs.source)?)));
    tried.map(|(needs, attempt)| report(needs, attempt, surroundings)).collect()
}

fn report(
    needs: &SourceNeeds,
    attempt: &SourceAttempt,
    surroundings: &Surroundings,
) -> SourceReport {
    let refusal = attempt.refusals.first();
    let health = match (refusal, attempt.is_idle) {
        (None, false) => SourceHealth::Works,
        (None, true) => SourceHealth::Idle,
        (Some(_), _) if attempt.seen.is_empty() => SourceHealth::Missing,
        (Some(_), _) => SourceHealth::Partly,
    };
    let diagnosis = refusal.map(|refusal| Diagnosis::of(needs, refusal, surroundings));
    let lines = match &diagnosis {
        Some(diagnosis) => lines::of(needs, diagnosis, surroundings),
        None if health == SourceHealth::Idle => needs.set_up.iter().map(PermitText::line).collect(),
        None => Vec::new(),
    };
    SourceReport {
        source: needs.source,
        title: needs.title.to_owned(),
        health,
        seen: attempt.seen.clone(),
        why: diagnosis.as_ref().map(|diagnosis| diagnosis.why.clone()),
        errno: refusal.and_then(|refusal| refusal.errno).map(diagnosis::errno_name),
        obstacle: diagnosis.map(|diagnosis| diagnosis.obstacle),
        lines,
        cost: needs.cost(),
    }
}

/// The first sentence: `18 of 21 sources work here; 2 need a permission, 1 needs another kernel.`
#[must_use]
pub fn summary(reports: &[SourceReport]) -> String {
    let count = |health| reports.iter().filter(|report| report.health == health).count();
    let mut obstacles: BTreeMap<Obstacle, usize> = BTreeMap::new();
    for obstacle in reports.iter().filter_map(|report| report.obstacle) {
        *obstacles.entry(obstacle).or_default() += 1;
    }
    let mut parts: Vec<String> =
        obstacles.into_iter().map(|(obstacle, many)| needed(obstacle, many)).collect();
    match count(SourceHealth::Idle) {
        0 => {}
        1 => parts.push("1 is allowed and not set up".to_owned()),
        many => parts.push(format!("{many} are allowed and not set up")),
    }
    let working = count(SourceHealth::Works);
    let verb = if working == 1 { "works" } else { "work" };
    let first = match reports.len() {
        all if all == working => format!("All {all} sources work here"),
        all => format!("{working} of {all} sources {verb} here"),
    };
    let rest = list(&parts);
    if rest.is_empty() { format!("{first}.") } else { format!("{first}; {rest}.") }
}

/// `2 need a permission`.
fn needed(obstacle: Obstacle, many: usize) -> String {
    let need = if many == 1 { "needs" } else { "need" };
    let is = if many == 1 { "is" } else { "are" };
    match obstacle {
        Obstacle::Permission => format!("{many} {need} a permission"),
        Obstacle::Setting => format!("{many} {need} a setting"),
        Obstacle::Mount => format!("{many} {need} a mount"),
        Obstacle::Module => format!("{many} {need} a module of the kernel"),
        Obstacle::Container => format!("{many} {is} closed by a container or namespace"),
        Obstacle::Filter => format!("{many} {is} closed by a filter of system calls"),
        Obstacle::Lockdown => format!("{many} {is} closed by the kernel's lockdown"),
        Obstacle::Kernel => format!("{many} {need} another kernel"),
        Obstacle::Unknown => format!("{many} failed for an unknown reason"),
    }
}

#[cfg(test)]
mod tests;

//! Surveys of two sides: each figure of each tier.
//!
//! 1. Where both sides have runs enough, ranks decide.
//! 2. Else how much that figure varied between other surveys of the same machine decides.
//! 3. Else the trials inside of each survey must disagree, and by more than is usual.

use super::judge::{Figure, can_prove, median};
use super::sentence;
use model::compared::{Basis, ComparedFigure, Comparison, ComparisonSubject, SCHEMA, Side};
use model::comparison::{DifferenceVerdict, LEAST_DIFFERENCE, Noise};
use model::estimate::Better;
use model::machine::MachineFacts;
use model::survey::Survey;
use model::{Tier, TierKind};

/// One figure of a tier with the interval that its trials gave.
struct Trial {
    of: String,
    name: &'static str,
    unit: &'static str,
    better: Better,
    is_device: bool,
    median: f64,
    interval: Option<(f64, f64)>,
}

/// Compares the surveys of two sides; `kept` are others of the first side's machine, from
/// which its noise is learnt. Those that are compared teach nothing.
#[must_use]
pub fn surveys(first: &[Survey], second: &[Survey], kept: &[Survey]) -> Comparison {
    let compared = |survey: &Survey| {
        let mut all = first.iter().chain(second);
        all.any(|other| other.started_unix_s == survey.started_unix_s)
    };
    let same_machine = machines(first, second).len() <= 1;
    let kept: Vec<Trial> =
        kept.iter().filter(|survey| same_machine && !compared(survey)).flat_map(trials).collect();
    let firsts: Vec<Trial> = first.iter().flat_map(trials).collect();
    let seconds: Vec<Trial> = second.iter().flat_map(trials).collect();
    let mut items: Vec<ComparedFigure> = Vec::new();
    for trial in firsts.iter().chain(&seconds) {
        let is_known = |item: &ComparedFigure| item.of == trial.of && item.name == trial.name;
        if !items.iter().any(is_known) {
            items.push(judged(trial, &firsts, &seconds, &kept));
        }
    }
    let notes = notes(first, second, &items);
    Comparison {
        schema: SCHEMA.to_owned(),
        what: ComparisonSubject::Surveys,
        first: side(first),
        second: side(second),
        sentence: sentence::of_surveys(&items),
        items,
        split: None,
        aligned: None,
        tried: None,
        notes,
    }
}

fn side(surveys: &[Survey]) -> Side {
    let name = surveys.first().map(|survey| machine(&survey.machine));
    Side { name: name.unwrap_or_default(), files: Vec::new(), runs: surveys.len() as u32 }
}

/// `AMD EPYC, 2 cores, 24 GiB, Linux 6.12`.
fn machine(facts: &MachineFacts) -> String {
    let cores = match facts.usable_cpus {
        1 => "1 core".to_owned(),
        many => format!("{many} cores"),
    };
    let memory = facts.memory_bytes.map(|bytes| model::Bytes(bytes).to_string());
    let kernel = facts.kernel.as_ref().map(|release| format!("Linux {release}"));
    let parts = [facts.host.clone(), facts.cpu.clone(), Some(cores), memory, kernel];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The machines that any of these come from, by their fingerprints.
fn machines(first: &[Survey], second: &[Survey]) -> Vec<String> {
    let all = first.iter().chain(second);
    let mut prints: Vec<String> = all.map(|survey| survey.machine.fingerprint()).collect();
    prints.sort();
    prints.dedup();
    prints
}

fn trials(survey: &Survey) -> Vec<Trial> {
    survey.tiers.iter().flat_map(of_tier).collect()
}

fn of_tier(tier: &Tier) -> Vec<Trial> {
    let trial = |name, unit, better, median, interval| Trial {
        of: tier.name.clone(),
        name,
        unit,
        better,
        is_device: matches!(tier.kind, TierKind::Device | TierKind::Swap),
        median,
        interval,
    };
    let latency = tier.latency_ns.iter().map(|latency| {
        let interval = latency.low.zip(latency.high);
        trial("latency", "ns", Better::Lower, latency.median, interval)
    });
    let rates = [
        ("read", &tier.read_bytes_per_s),
        ("write", &tier.write_bytes_per_s),
        ("copy", &tier.copy_bytes_per_s),
    ]
    .into_iter()
    .filter_map(|(name, rate)| {
        let rate = rate.as_ref()?;
        let interval = rate.low.zip(rate.high);
        Some(trial(name, "bytes_per_s", Better::Higher, rate.median, interval))
    });
    latency.chain(rates).collect()
}

fn of<'a>(trial: &'a Trial, all: &'a [Trial]) -> impl Iterator<Item = &'a Trial> {
    all.iter().filter(move |other| other.of == trial.of && other.name == trial.name)
}

fn judged(trial: &Trial, firsts: &[Trial], seconds: &[Trial], kept: &[Trial]) -> ComparedFigure {
    let values = |all: &[Trial]| -> Vec<f64> { of(trial, all).map(|one| one.median).collect() };
    let figure = Figure {
        of: trial.of.clone(),
        name: trial.name.to_owned(),
        unit: trial.unit,
        better: Some(trial.better),
        first: values(firsts),
        second: values(seconds),
    };
    if can_prove(figure.first.len(), figure.second.len()) {
        return figure.by_ranks(LEAST_DIFFERENCE * median(&figure.first).unwrap_or(0.0));
    }
    if let Some(noise) = Noise::learn(&values(kept)) {
        return figure.by_noise(&noise, Basis::KeptRuns);
    }
    let (Some(first), Some(second)) = (hull(trial, firsts), hull(trial, seconds)) else {
        return figure.plain();
    };
    let item = figure.by_noise(&Noise::usual(trial.is_device), Basis::Trials);
    if first.1 < second.0 || second.1 < first.0 {
        item
    } else {
        ComparedFigure { verdict: DifferenceVerdict::Unproven, ..item }
    }
}

/// The interval that holds those of all surveys of a side; `None` where one has none.
fn hull(trial: &Trial, side: &[Trial]) -> Option<(f64, f64)> {
    let mut intervals = of(trial, side).map(|one| one.interval);
    let first = intervals.next()??;
    intervals.try_fold(first, |hull, next| {
        let next = next?;
        Some((hull.0.min(next.0), hull.1.max(next.1)))
    })
}

fn notes(first: &[Survey], second: &[Survey], items: &[ComparedFigure]) -> Vec<String> {
    let mut notes = Vec::new();
    if machines(first, second).len() > 1 {
        notes.push(
            "These surveys are of different machines, or of one that was changed.".to_owned(),
        );
    }
    let is = |basis| items.iter().any(|item| item.basis == basis);
    if is(Basis::Trials) {
        notes.push(
            "Fewer than 4 other surveys of this machine are kept, so its noise is not known: a \
             figure \
             differs where the trials inside of the surveys disagree and by more than is usual \
             (25 %, devices 50 %)."
                .to_owned(),
        );
    }
    let starts =
        |side: &[Survey]| -> Vec<u64> { side.iter().map(|one| one.started_unix_s).collect() };
    let (a, b) = (starts(first), starts(second));
    let before = |a: &[u64], b: &[u64]| a.iter().max() < b.iter().min();
    if is(Basis::Ranks) && (before(&a, &b) || before(&b, &a)) {
        notes.push(
            "All surveys of one side are older than those of the other: what the machine did \
             meanwhile \
             looks like a difference."
                .to_owned(),
        );
    }
    if first.iter().chain(second).any(|survey| survey.interrupted) {
        notes.push("A survey was interrupted and lacks figures.".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests;

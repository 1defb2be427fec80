//! Results whose trials disagree too much to be leant on, and why.
//!
//! The cause is the counter that moved in the same trials: time stolen by the
//! host, a CPU limit, or waiting for a processor, in this order, since each can
//! make the next one grow. Where none moved the cause is unknown, and said so.
//! Tiers with the same cause are one finding.

use super::{SurveyVerdict, processor_throttled};
use crate::finding::{Class, RankedFinding};
use crate::numbers::share;
use crate::observed::{NoiseSeen, Observed};
use crate::verdict::NoFinding;
use crate::wording::percent;
use model::{Evidence, Finding, Grade};

/// The spread (interquartile range over median) from which on a result is noisy.
/// Picked: repeats lay within 3 % on a quiet machine, up to 30 % apart beside
/// other work.
pub const NOISY_SPREAD: f64 = 0.2;

/// So is a result of which this share of the trials had to be thrown away.
pub const NOISY_DISCARDED: f64 = 0.5;

/// Below this many trials there is no spread to speak of.
pub const LEAST_TRIALS: u32 = 4;

/// The share of the trials' time from which on a counter names the cause.
pub const LEAST_CAUSE: f64 = 0.02;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "survey's trials";

/// Why trials disagree, as a share of their time (or periods).
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cause {
    /// The host took this share of the time.
    Stolen(f64),
    /// A CPU limit stopped this share of the periods.
    Throttled(f64),
    /// Other programs held the processor for this share of the time.
    Crowded(f64),
    /// No counter moved.
    Unknown,
}

/// Noisy results with one cause.
struct Group<'a> {
    /// Its share is that of the worst result.
    cause: Cause,
    worst: &'a NoiseSeen,
    others: Vec<&'a NoiseSeen>,
}

/// Compares the trials of every tier.
pub fn check(observed: &Observed) -> SurveyVerdict {
    let processor = observed.processor.as_ref();
    let limit = processor.and_then(processor_throttled::stopped_by_limit);
    let judged = |seen: &&NoiseSeen| trials(seen) >= u64::from(LEAST_TRIALS);
    if !observed.noise.iter().any(|seen| judged(&seen)) {
        return Err("no result has trials enough to disagree".into());
    }
    let mut groups: Vec<Group> = Vec::new();
    for seen in observed.noise.iter().filter(|seen| is_noisy(seen)) {
        let cause = cause(seen, limit);
        match groups.iter_mut().find(|group| group.cause.is_like(cause)) {
            Some(group) => group.add(seen, cause),
            None => groups.push(Group { cause, worst: seen, others: Vec::new() }),
        }
    }
    if groups.is_empty() {
        return Err(NoFinding::Nothing);
    }
    Ok(groups.iter().map(Group::finding).collect())
}

/// Whether this result alone would be part of a finding.
pub fn is_noisy(seen: &NoiseSeen) -> bool {
    trials(seen) >= u64::from(LEAST_TRIALS)
        && (differs(seen) || discarded_share(seen) >= NOISY_DISCARDED)
}

/// All trials, kept or thrown away.
fn trials(seen: &NoiseSeen) -> u64 {
    u64::from(seen.kept) + u64::from(seen.discarded)
}

/// The spread; `None` with fewer than [`LEAST_TRIALS`] kept.
fn spread(seen: &NoiseSeen) -> Option<f64> {
    share(seen.spread).filter(|_| seen.kept >= LEAST_TRIALS)
}

fn differs(seen: &NoiseSeen) -> bool {
    spread(seen).is_some_and(|spread| spread >= NOISY_SPREAD)
}

fn discarded_share(seen: &NoiseSeen) -> f64 {
    f64::from(seen.discarded) / trials(seen) as f64
}

/// How bad it is: the spread, or the share that had to be thrown away.
fn badness(seen: &NoiseSeen) -> f64 {
    spread(seen).unwrap_or(0.0).max(discarded_share(seen))
}

fn evidence(seen: &NoiseSeen) -> Vec<Evidence> {
    let number = |what: &str, value, unit| {
        let name = format!("{what}, {} ({})", seen.tier, seen.quantity);
        Evidence::new(name, value, unit, SOURCE)
    };
    let spread = spread(seen).map(|spread| number("spread", spread, "ratio"));
    let discarded = number("trials thrown away", f64::from(seen.discarded), "count");
    let all = number("trials", trials(seen) as f64, "count");
    spread.into_iter().chain([discarded, all]).collect()
}

/// What is noisy of a result, as the start of a claim.
fn complaint(seen: &NoiseSeen) -> String {
    let of = format!("{} ({})", seen.tier, seen.quantity);
    let (discarded, all) = (seen.discarded, trials(seen));
    match spread(seen).filter(|_| differs(seen)) {
        Some(spread) => {
            let spread = percent(spread);
            format!("The trials of {of} differ by {spread}, {discarded} of {all} were thrown away")
        }
        None => format!("Of the trials of {of} {discarded} of {all} had to be thrown away"),
    }
}

fn cause(seen: &NoiseSeen, limit: Option<f64>) -> Cause {
    let counted = |value: Option<f64>| {
        let value = value.and_then(share)?.min(1.0);
        (value >= LEAST_CAUSE).then_some(value)
    };
    if let Some(stolen) = counted(seen.steal_share) {
        Cause::Stolen(stolen)
    } else if let Some(stopped) = limit {
        Cause::Throttled(stopped)
    } else if let Some(waited) = counted(seen.run_delay_share) {
        Cause::Crowded(waited)
    } else {
        Cause::Unknown
    }
}

impl Cause {
    fn is_like(self, other: Cause) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    fn evidence(self) -> Option<Evidence> {
        let (name, value) = match self {
            Cause::Stolen(value) => ("time that the host took", value),
            Cause::Throttled(value) => ("periods stopped by the CPU limit", value),
            Cause::Crowded(value) => ("time spent waiting for a processor", value),
            Cause::Unknown => return None,
        };
        Some(Evidence::new(name, value, "ratio", SOURCE))
    }

    fn remedy(self) -> Option<&'static str> {
        match self {
            Cause::Stolen(_) => Some(
                "Survey again at another hour, or on a host of your own. Risk: none but the time.",
            ),
            Cause::Throttled(_) => Some(
                "Survey again outside the limit, or have it raised. Risk: others get less \
                 meanwhile.",
            ),
            Cause::Crowded(_) => {
                Some("Survey again when the other programs rest. Risk: none but the time.")
            }
            Cause::Unknown => None,
        }
    }

    fn sentence(self) -> String {
        match self {
            Cause::Stolen(share) => format!("the host took {} of the time", percent(share)),
            Cause::Throttled(share) => {
                let share = percent(share);
                format!("the CPU limit stopped {share} of the periods")
            }
            Cause::Crowded(share) => {
                let share = percent(share);
                format!("other programs held the processor {share} of the time")
            }
            Cause::Unknown => "no counter says why".to_owned(),
        }
    }
}

impl<'a> Group<'a> {
    fn add(&mut self, seen: &'a NoiseSeen, cause: Cause) {
        if badness(seen) > badness(self.worst) {
            self.cause = cause;
            self.others.push(std::mem::replace(&mut self.worst, seen));
        } else {
            self.others.push(seen);
        }
    }

    fn claim(&self) -> String {
        let mut claim = format!("{}: {}.", complaint(self.worst), self.cause.sentence());
        match self.others.len() {
            0 => {}
            1 => claim.push_str(" It is the same with 1 more result."),
            more => claim.push_str(&format!(" It is the same with {more} more results.")),
        }
        claim
    }

    fn finding(&self) -> RankedFinding {
        let tier = &self.worst.tier;
        let results = std::iter::once(&self.worst).chain(&self.others);
        let mut numbers: Vec<Evidence> = results.flat_map(|seen| evidence(seen)).collect();
        numbers.extend(self.cause.evidence());
        let one_tier = self.others.iter().all(|other| other.tier == *tier);
        // That they differ is counted; that the named counter is why is concluded.
        let grade = match self.cause {
            Cause::Unknown => Grade::Measured,
            _ => Grade::Inferred,
        };
        let finding = Finding {
            tier: one_tier.then(|| tier.clone()),
            remedy: self.cause.remedy().map(str::to_owned),
            ..Finding::new(grade, self.claim(), numbers)
        };
        RankedFinding::new(Class::Doubt, 1.0 + badness(self.worst), finding)
    }
}

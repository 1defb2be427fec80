//! Results whose trials disagree too much to be leant on, and why.
//!
//! The cause is the counter that moved in the same trials: time stolen by the
//! host, a CPU limit, or waiting for a processor, in this order, since each can
//! make the next one grow. Where none moved the cause is unknown, and said so.
//! Tiers with the same cause are one finding.

use super::{Outcome, processor_throttled};
use crate::finding::{Class, Finding, Severity, Told};
use crate::numbers::share;
use crate::observed::{NoiseSeen, Observed};
use crate::wording::percent;
use model::{Evidence, Grade};
use std::fmt;

/// The id of this rule's findings.
pub const ID: &str = "result_noisy";

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

/// Why trials disagree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause {
    /// The host took this share of the time.
    Stolen(f64),
    /// A CPU limit stopped this share of the periods.
    Throttled(f64),
    /// Other programs held the processor for this share of the time.
    Crowded(f64),
    /// No counter moved.
    Unknown,
}

/// One noisy result.
#[derive(Clone, Debug, PartialEq)]
pub struct Noisy {
    /// The tier's name.
    pub tier: String,
    /// `latency`, `read`, `write` or `copy`.
    pub quantity: String,
    /// Interquartile range over the median; `None` below [`LEAST_TRIALS`] kept.
    pub spread: Option<f64>,
    /// Trials kept.
    pub kept: u32,
    /// Trials thrown away.
    pub discarded: u32,
}

/// Noisy results with one cause.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultNoisy {
    /// Why; its share is that of the worst result.
    pub cause: Cause,
    /// The worst result.
    pub worst: Noisy,
    /// The others.
    pub others: Vec<Noisy>,
}

/// Looks at the trials of every tier.
pub fn check(observed: &Observed) -> Outcome {
    let limit = observed
        .processor
        .as_ref()
        .and_then(processor_throttled::stopped)
        .filter(|&share| share >= processor_throttled::LEAST_SHARE);
    let mut judged = false;
    let mut groups: Vec<ResultNoisy> = Vec::new();
    for seen in &observed.noise {
        let Some(result) = Noisy::judged(seen) else {
            continue;
        };
        judged = true;
        if !result.is_noisy() {
            continue;
        }
        let cause = cause(seen, limit);
        match groups.iter_mut().find(|group| group.cause.is_like(cause)) {
            Some(group) => group.add(result, cause),
            None => groups.push(ResultNoisy {
                cause,
                worst: result,
                others: Vec::new(),
            }),
        }
    }
    if !groups.is_empty() {
        Outcome::Found(groups.into_iter().map(Finding::ResultNoisy).collect())
    } else if judged {
        Outcome::Fine
    } else {
        Outcome::unchecked("no result has trials enough to disagree")
    }
}

/// Whether this result alone would be part of a finding.
pub fn is_noisy(seen: &NoiseSeen) -> bool {
    Noisy::judged(seen).is_some_and(|result| result.is_noisy())
}

impl Noisy {
    /// The result where it has trials enough to be judged.
    fn judged(seen: &NoiseSeen) -> Option<Self> {
        let all = u64::from(seen.kept) + u64::from(seen.discarded);
        (all >= u64::from(LEAST_TRIALS)).then(|| Self {
            tier: seen.tier.clone(),
            quantity: seen.quantity.clone(),
            spread: share(seen.spread).filter(|_| seen.kept >= LEAST_TRIALS),
            kept: seen.kept,
            discarded: seen.discarded,
        })
    }

    fn is_noisy(&self) -> bool {
        self.differs() || self.discarded_share() >= NOISY_DISCARDED
    }

    fn differs(&self) -> bool {
        self.spread.is_some_and(|spread| spread >= NOISY_SPREAD)
    }

    fn all(&self) -> u64 {
        u64::from(self.kept) + u64::from(self.discarded)
    }

    fn discarded_share(&self) -> f64 {
        f64::from(self.discarded) / self.all() as f64
    }

    /// How bad it is: the spread, or what had to be thrown away.
    fn badness(&self) -> f64 {
        self.spread.unwrap_or(0.0).max(self.discarded_share())
    }

    fn evidence(&self) -> Vec<Evidence> {
        let of = format!("{} ({})", self.tier, self.quantity);
        let discarded = f64::from(self.discarded);
        let mut evidence = vec![
            Evidence::new(
                format!("trials thrown away, {of}"),
                discarded,
                "count",
                SOURCE,
            ),
            Evidence::new(format!("trials, {of}"), self.all() as f64, "count", SOURCE),
        ];
        if let Some(spread) = self.spread {
            evidence.insert(
                0,
                Evidence::new(format!("spread, {of}"), spread, "ratio", SOURCE),
            );
        }
        evidence
    }
}

impl fmt::Display for Noisy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = format!("{} ({})", self.tier, self.quantity);
        let (discarded, all) = (self.discarded, self.all());
        match self.spread {
            Some(spread) if self.differs() => write!(
                f,
                "The trials of {of} differ by {}, {discarded} of {all} were thrown away",
                percent(spread)
            ),
            _ => write!(
                f,
                "Of the trials of {of} {discarded} of {all} had to be thrown away"
            ),
        }
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
                "Survey again outside the limit, or have it raised. Risk: others get less meanwhile.",
            ),
            Cause::Crowded(_) => {
                Some("Survey again when the other programs rest. Risk: none but the time.")
            }
            Cause::Unknown => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Stolen(share) => write!(f, "the host took {} of the time", percent(*share)),
            Cause::Throttled(share) => {
                write!(
                    f,
                    "the CPU limit stopped {} of the periods",
                    percent(*share)
                )
            }
            Cause::Crowded(share) => {
                write!(
                    f,
                    "other programs held the processor {} of the time",
                    percent(*share)
                )
            }
            Cause::Unknown => f.write_str("no counter says why"),
        }
    }
}

impl ResultNoisy {
    fn add(&mut self, result: Noisy, cause: Cause) {
        if result.badness() > self.worst.badness() {
            self.cause = cause;
            self.others.push(std::mem::replace(&mut self.worst, result));
        } else {
            self.others.push(result);
        }
    }

    fn claim(&self) -> String {
        let mut claim = format!("{}: {}.", self.worst, self.cause);
        match self.others.len() {
            0 => {}
            1 => claim.push_str(" It is the same with 1 more result."),
            more => claim.push_str(&format!(" It is the same with {more} more results.")),
        }
        claim
    }
}

impl Told for ResultNoisy {
    fn report(&self) -> model::Finding {
        let results = std::iter::once(&self.worst).chain(&self.others);
        let mut evidence: Vec<Evidence> = results.flat_map(Noisy::evidence).collect();
        evidence.extend(self.cause.evidence());
        let one_tier = self
            .others
            .iter()
            .all(|other| other.tier == self.worst.tier);
        model::Finding {
            id: ID.to_owned(),
            claim: self.claim(),
            tier: one_tier.then(|| self.worst.tier.clone()),
            evidence,
            // That they differ is counted; that the named counter is why is concluded.
            grade: match self.cause {
                Cause::Unknown => Grade::Measured,
                _ => Grade::Inferred,
            },
            remedy: self.cause.remedy().map(str::to_owned),
            confirm: None,
        }
    }

    fn severity(&self) -> Severity {
        Severity::new(Class::Doubt, 1.0 + self.worst.badness())
    }
}

//! A finding with its severity: the order in which a person should read findings.
//!
//! Each rule of [`crate::rules`] sets the severity together with the text.

use crate::rules::SurveyVerdict;
use std::cmp::Ordering;

/// What a finding is about, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It takes time from every program, whatever the program does.
    Everything,
    /// It makes one level slower than it could be.
    Level,
    /// It makes a figure of the survey mean less than it seems to.
    Doubt,
    /// A setting that costs nothing until something else happens.
    Setting,
}

/// How much a finding hurts: its class first, then the factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Severity {
    /// What it is about.
    pub class: Class,
    /// How many times slower (or further off) the thing is than it could be; at
    /// least 1, comparable only inside one class.
    pub factor: f64,
}

impl Severity {
    /// A severity; a `factor` that is not a number counts as 1.
    pub fn new(class: Class, factor: f64) -> Self {
        // `max` returns the other value when one is NaN.
        let factor = factor.max(1.0);
        Self { class, factor }
    }

    /// The order for a sort that puts the worst first.
    pub fn worst_first(&self, other: &Self) -> Ordering {
        self.class.cmp(&other.class).then(other.factor.total_cmp(&self.factor))
    }
}

/// A finding of a survey with its severity.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedFinding {
    /// How much it hurts.
    pub severity: Severity,
    /// The finding as it is shown.
    pub finding: model::Finding,
}

impl RankedFinding {
    /// `finding` with a severity of `class` and `factor` ([`Severity::new`]).
    pub fn new(class: Class, factor: f64, finding: model::Finding) -> Self {
        let severity = Severity::new(class, factor);
        Self { severity, finding }
    }
}

/// The verdict of a rule that found this alone.
pub(crate) fn found(class: Class, factor: f64, finding: model::Finding) -> SurveyVerdict {
    Ok(vec![RankedFinding::new(class, factor, finding)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_counts_before_the_factor() {
        let everything = Severity::new(Class::Everything, 1.1);
        let level = Severity::new(Class::Level, 10.0);
        let milder = Severity::new(Class::Level, 1.5);
        assert_eq!(everything.worst_first(&level), Ordering::Less);
        assert_eq!(level.worst_first(&milder), Ordering::Less);
        assert_eq!(Severity::new(Class::Level, f64::NAN).factor, 1.0);
    }
}

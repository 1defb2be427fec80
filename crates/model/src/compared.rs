//! Two sides, compared: what differs and by how much, what is only noise, and what made the
//! difference. This is the JSON of `terrace compare --json` (`terrace.compare/1`).
//!
//! A difference is always the second less the first, in the unit of the figure.

use crate::comparison::DifferenceVerdict;
use crate::estimate::Better;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "terrace.compare/1";

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonSubject {
    /// Surveys of a machine.
    Surveys,
    /// Recordings.
    #[default]
    Recordings,
}

/// One of the two sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// What it is, in words: a command line, a machine.
    pub name: String,
    /// The files that it was read from; empty for runs that were not kept.
    pub files: Vec<String>,
    /// How many runs it has.
    pub runs: u32,
}

/// What a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The runs of both sides, by the test of Mann and Whitney.
    Ranks,
    /// How much this figure varied between kept surveys of this machine.
    KeptRuns,
    /// The trials inside of each survey, and a usual noise between surveys.
    Trials,
    /// Blocks of time within recordings of what runs on, and how much neighbours resemble each
    /// other.
    Blocks,
    /// Nothing: too few runs, or one side lacks the figure. The verdict is unproven.
    Nothing,
}

/// One figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedFigure {
    /// What it is a figure of: a tier's name, `wall`, `slice`, `of_which`, `finding`; of recordings
    /// of what runs on `rate` (in a second) and `per_work` (for each unit of work).
    pub of: String,
    /// Its name there: `latency`, `block_io`, a finding's id.
    pub name: String,
    /// `ns`, `bytes_per_s`, `a second`, `bytes` or `count`.
    pub unit: String,
    /// Which end is the good one; `None` for a part of a whole, which is neither.
    pub better: Option<Better>,
    /// The median of the first side's runs; `None` where it has none.
    pub first: Option<f64>,
    /// The median of the second side's runs.
    pub second: Option<f64>,
    /// The second less the first: judged by ranks the median of all differences between a run of
    /// one side and a run of the other, else the difference of the medians.
    pub difference: Option<f64>,
    /// Lower end of the 95 % interval of the difference.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// How likely runs that do not differ are to differ so much, by ranks.
    pub p: Option<f64>,
    /// The least difference that can be proven here, as a share of the first: half of the interval
    /// where ranks decide, else what the noise between surveys leaves.
    pub provable: Option<f64>,
    /// How many runs of the first side have the figure.
    pub first_runs: u32,
    /// How many of the second.
    pub second_runs: u32,
    /// What can be said of the second beside the first.
    pub verdict: DifferenceVerdict,
    /// What that rests on.
    pub basis: Basis,
}

impl ComparedFigure {
    /// The difference as a share of the first; `None` where that is nothing.
    #[must_use]
    pub fn change(&self) -> Option<f64> {
        let first = self.first.filter(|first| *first > 0.0)?;
        Some(self.difference? / first)
    }

    /// By how much, as a share, the second is worse for sure; `None` where it is not.
    #[must_use]
    pub fn worse_by(&self) -> Option<f64> {
        let is_worse = matches!(
            (self.better?, self.verdict),
            (Better::Lower, DifferenceVerdict::Larger)
                | (Better::Higher, DifferenceVerdict::Smaller)
        );
        self.change().filter(|_| is_worse).map(f64::abs)
    }
}

/// One part of a difference in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DifferencePart {
    /// As in an explanation: `block_io`, `refault`.
    pub name: String,
    /// `None` for a slice of the wall time, which add up; for a part that lies
    /// inside of one, in thread time and overlapping others, the slice's name.
    pub within: Option<String>,
    /// Its length on the first side.
    pub first_ns: f64,
    /// Its length on the second side.
    pub second_ns: f64,
    /// The second less the first.
    pub difference_ns: f64,
    /// Lower end of the 95 % interval of the difference; `None` for few runs.
    pub low_ns: Option<f64>,
    /// Its upper end.
    pub high_ns: Option<f64>,
    /// Whether the part is longer or shorter for sure.
    pub verdict: DifferenceVerdict,
}

/// A difference in wall time, and the parts that add up to it.
///
/// Of what runs on it is that of one second, which is as long on both sides: its parts are shares.
/// Lengths of commands are means over the middle half of a side's runs by their wall time:
/// medians of parts do not add up to the median of the whole, these do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeDifference {
    /// The wall time of the first side.
    pub first_ns: f64,
    /// And of the second.
    pub second_ns: f64,
    /// The second less the first; the parts that are within nothing add up to it.
    pub difference_ns: f64,
    /// Lower end of the 95 % interval of the difference; `None` for few runs.
    pub low_ns: Option<f64>,
    /// Its upper end.
    pub high_ns: Option<f64>,
    /// The parts, those that moved most first; what lies inside of one follows it.
    pub parts: Vec<DifferencePart>,
}

/// One piece of the work that both did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// How much was done when it began.
    pub from: f64,
    /// How much when it ended.
    pub to: f64,
    /// How long the first took for it.
    pub first_ns: f64,
    /// How long the second took.
    pub second_ns: f64,
    /// The part of the wall time that differs most in it; `None` where it is too short
    /// to judge.
    pub most: Option<String>,
}

/// Two recordings compared at equal amounts of work, not at equal times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkAlignment {
    /// The series that counts the work.
    pub series: String,
    /// Its unit.
    pub unit: String,
    /// How much all of the first was.
    pub first_total: f64,
    /// And of the second.
    pub second_total: f64,
    /// Pieces of what both did, in order.
    pub sections: Vec<Section>,
}

/// A remedy that was tried: the second side had its change, the first did not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedChange {
    /// The id of the finding that it is for.
    pub finding: String,
    /// The change in words.
    pub words: String,
    /// The file of the setting; of a restore its command.
    pub path: String,
    /// What was there.
    pub before: String,
    /// What was tried.
    pub after: String,
    /// Whether it stays.
    pub kept: bool,
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// What was compared.
    pub what: ComparisonSubject,
    /// The first side.
    pub first: Side,
    /// The second side.
    pub second: Side,
    /// The verdict in a sentence or two.
    pub sentence: String,
    /// The figures.
    pub items: Vec<ComparedFigure>,
    /// What made the difference in time; `None` for surveys.
    pub split: Option<TimeDifference>,
    /// Where in the work it arose; `None` unless asked for.
    pub aligned: Option<WorkAlignment>,
    /// The remedy that the second side had; `None` unless one was tried (`--try`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<TriedChange>,
    /// What a reader must know to trust it.
    pub notes: Vec<String>,
}

impl Comparison {
    /// The figure that became worse by the largest proven share, with the share.
    #[must_use]
    pub fn worst(&self) -> Option<(&ComparedFigure, f64)> {
        self.items
            .iter()
            .filter_map(|item| Some((item, item.worse_by()?)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(better: Better, second: f64, verdict: DifferenceVerdict) -> ComparedFigure {
        ComparedFigure {
            of: "RAM".to_owned(),
            name: "latency".to_owned(),
            unit: "ns".to_owned(),
            better: Some(better),
            first: Some(100.0),
            second: Some(second),
            difference: Some(second - 100.0),
            low: None,
            high: None,
            p: None,
            provable: None,
            first_runs: 9,
            second_runs: 9,
            verdict,
            basis: Basis::Ranks,
        }
    }

    #[test]
    fn only_what_is_proven_and_of_the_bad_end_is_worse() {
        let worse = |better, second, verdict| item(better, second, verdict).worse_by();
        assert_eq!(worse(Better::Lower, 110.0, DifferenceVerdict::Larger), Some(0.1));
        assert_eq!(worse(Better::Higher, 80.0, DifferenceVerdict::Smaller), Some(0.2));
        assert_eq!(worse(Better::Lower, 110.0, DifferenceVerdict::Unproven), None);
        assert_eq!(worse(Better::Lower, 80.0, DifferenceVerdict::Smaller), None);
        assert_eq!(worse(Better::Higher, 110.0, DifferenceVerdict::Larger), None);
        let part = ComparedFigure {
            better: None,
            ..item(Better::Lower, 110.0, DifferenceVerdict::Larger)
        };
        assert_eq!(part.worse_by(), None);
    }

    #[test]
    fn of_nothing_there_is_no_share() {
        let from_nothing = ComparedFigure {
            first: Some(0.0),
            ..item(Better::Lower, 110.0, DifferenceVerdict::Larger)
        };
        assert_eq!(from_nothing.change(), None);
    }
}

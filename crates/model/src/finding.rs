//! A finding as it is shown: a claim, the evidence it rests on, how sure it is
//! and what to do. The rules that make findings live in `explain`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How a number or a claim is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Timed or counted directly.
    Measured,
    /// Concluded from measurements; something else could explain them too.
    Inferred,
    /// Cannot be seen from here; the reason says what would make it visible.
    Unseen,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Grade::Measured => "measured",
            Grade::Inferred => "inferred",
            Grade::Unseen => "unseen",
        })
    }
}

/// One number that a claim rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What was read or measured, in words: `memcpy, 256 MiB`.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// The unit of `value`: `ns`, `bytes_per_s`, `bytes`, `ratio`, `count`, or what is
    /// counted: `refaults`.
    pub unit: String,
    /// Where it came from: a probe (`measure memcpy`) or a kernel file.
    pub source: String,
    /// The series of the recording that it was computed from, or that moved with it, the
    /// most significant first; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
}

impl Evidence {
    /// A piece of evidence from its four parts.
    pub fn new(
        name: impl Into<String>,
        value: f64,
        unit: impl Into<String>,
        source: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            value,
            unit: unit.into(),
            source: source.into(),
            series: Vec::new(),
        }
    }

    /// A time in nanoseconds.
    pub fn time(name: impl Into<String>, ns: u64, source: impl Into<String>) -> Self {
        Self::new(name, ns as f64, "ns", source)
    }

    /// A plain count.
    pub fn count(name: impl Into<String>, count: u64, source: impl Into<String>) -> Self {
        Self::new(name, count as f64, "count", source)
    }

    /// A size in bytes.
    pub fn bytes(name: impl Into<String>, bytes: u64, source: impl Into<String>) -> Self {
        Self::new(name, bytes as f64, "bytes", source)
    }

    /// The same number with the series that it was computed from.
    #[must_use]
    pub fn seen_in<S: AsRef<str>>(mut self, series: impl IntoIterator<Item = S>) -> Self {
        for name in series {
            let name = name.as_ref();
            if !self.series.iter().any(|known| known == name) {
                self.series.push(name.to_owned());
            }
        }
        self
    }

    /// The same count with what it counts as its unit: `5 refaults`. What is no plain count
    /// has a unit already and keeps it.
    #[must_use]
    pub fn counting(mut self, of: &str) -> Self {
        if self.unit == "count" {
            of.clone_into(&mut self.unit);
        }
        self
    }
}

/// A claim about the machine with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// A stable name for scripts: `libc_copy_slow`.
    pub id: String,
    /// The claim in one or two sentences, with its most significant numbers.
    pub claim: String,
    /// The tier that it is about, by the tier's name, if it is about one.
    pub tier: Option<String>,
    /// The numbers it rests on; never empty.
    pub evidence: Vec<Evidence>,
    /// How sure it is.
    pub grade: Grade,
    /// What to do, with its risk; `None` where nothing is advised.
    pub remedy: Option<String>,
    /// A command that would confirm or refute it, if there is one.
    pub confirm: Option<String>,
}

impl Finding {
    /// A claim and what it rests on. Its id is that of the rule, which is set where the rules are
    /// asked; it has no tier, remedy or command yet.
    pub fn new(
        grade: Grade,
        claim: impl Into<String>,
        evidence: impl IntoIterator<Item = Evidence>,
    ) -> Self {
        Self {
            id: String::new(),
            claim: claim.into(),
            tier: None,
            evidence: evidence.into_iter().collect(),
            grade,
            remedy: None,
            confirm: None,
        }
    }

    /// The same with further evidence.
    #[must_use]
    pub fn and(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    /// The same of this tier.
    #[must_use]
    pub fn tier(self, name: impl Into<String>) -> Self {
        Self { tier: Some(name.into()), ..self }
    }

    /// The same with what to do and its risk.
    #[must_use]
    pub fn remedy(self, text: impl Into<String>) -> Self {
        Self { remedy: Some(text.into()), ..self }
    }

    /// The same with the command that would confirm or refute it.
    #[must_use]
    pub fn confirm(self, command: impl Into<String>) -> Self {
        Self { confirm: Some(command.into()), ..self }
    }
}

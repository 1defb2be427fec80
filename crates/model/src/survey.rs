//! The survey's result: what `terrace survey --json` prints, schema
//! `terrace.survey/1` (`docs/survey.schema.json`).

use crate::curves::Curves;
use crate::estimate::Estimate;
use crate::finding::Finding;
use crate::machine::MachineFacts;
use crate::tier::Tier;
use serde::{Deserialize, Serialize};

/// The name and version of the JSON that [`Survey`] prints.
pub const SCHEMA: &str = "terrace.survey/1";

/// All that one survey saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The version of the program.
    pub version: String,
    /// When it started, seconds since 1970 UTC.
    pub started_unix_s: u64,
    /// Whether it was stopped before its plan was done.
    pub interrupted: bool,
    /// The levels, nearest to the processor first.
    pub tiers: Vec<Tier>,
    /// What is unusual, most significant first.
    pub findings: Vec<Finding>,
    /// Checks that were made and found nothing, by the finding's id.
    pub fine: Vec<String>,
    /// Checks that could not be made, with the reason.
    pub unchecked: Vec<Unchecked>,
    /// Levels that were left out, with the reason.
    pub skipped: Vec<Skipped>,
    /// The processor alone: one step of the fractal control, nanoseconds; `None` when
    /// it was not measured.
    pub control_step_ns: Option<Estimate>,
    /// The points behind the pictures; empty in a survey of a version that kept none.
    #[serde(default)]
    pub curves: Curves,
    /// The machine.
    pub machine: MachineFacts,
    /// What the survey itself cost.
    pub cost: Cost,
}

/// A check that could not be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unchecked {
    /// The finding's id.
    pub id: String,
    /// What was missing.
    pub reason: String,
}

/// A level that was left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// What a run of this tool cost the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Wall time, seconds.
    pub wall_s: f64,
    /// Processor time of all threads, user and kernel, seconds.
    pub cpu_s: f64,
    /// Largest resident memory.
    pub max_resident_bytes: u64,
    /// Bytes written to files, all of them removed again.
    pub written_bytes: u64,
    /// Time of one reading of the clock, nanoseconds.
    pub timer_ns: f64,
    /// The harness's own time around one trial, nanoseconds; not part of any trial.
    pub bracket_ns: f64,
}

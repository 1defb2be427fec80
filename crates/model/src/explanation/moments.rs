//! Moments of a long recording that stood out against its own usual level, and its marks. What
//! stands out is found by `explain`.

use serde::{Deserialize, Serialize};

/// A moment that stood out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StandingOut {
    /// When it began, in the recording.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
    /// When it began by the clock of the recorded machine: `14:32:05`.
    pub time: String,
    /// What `terrace explain --at` takes to explain it: `14:32:05..14:33:10`.
    pub at: String,
    /// What was above its usual level, the furthest above first.
    pub figures: Vec<UnusualFigure>,
    /// The rule of the first finding of the moment; `None` without a finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// What that finding claims; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub claim: String,
    /// Who it was: `tar (pid 812) 88 % of read`; empty where that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub who: Vec<String>,
}

/// A figure above its usual level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnusualFigure {
    /// Which: `cpu_pressure`, `read`, `process_cpu`.
    pub id: String,
    /// Its name for people, with the name of a process or a group where it is of one.
    pub title: String,
    /// Its mean while it stood out.
    pub value: f64,
    /// Its usual level: the median over the recording.
    pub usual: f64,
    /// The unit of both: `ratio`, `bytes/s`, `per second`, `processors`, `ns`.
    pub unit: String,
}

/// A mark that was set while it was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownMark {
    /// When, in the recording.
    pub at_ns: u64,
    /// When, by the clock of the recorded machine: `14:32:05`.
    pub time: String,
    /// Its text.
    pub text: String,
}

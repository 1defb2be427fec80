//! Where the time of a recording went: two bars that add up to 100 %, their parts, the causes found
//! and excluded, and what could not be seen. This is the JSON of `terrace explain --json`
//! (`terrace.explain/1`).

mod actors;
mod awaited_server;
mod contradiction;
mod copy_report;
mod disk;
mod moments;
mod remedies;
mod slices;

use crate::finding::{Evidence, Finding, Grade};
pub use actors::{Actor, ActorRole, FigureUse, FileUse, ProcessUse, figure_title};
pub use awaited_server::AwaitedServer;
pub use contradiction::Contradiction;
pub use copy_report::CopyReport;
pub use disk::{DiskState, DiskVerdict};
pub use moments::{ShownMark, StandingOut, UnusualFigure};
pub use remedies::{EvictedMemory, ExpectedGain, Remedy, SettingChange};
use serde::{Deserialize, Serialize};
pub use slices::{CALL_PART, TimePart, TimeSlice, short_words};

/// The name of the JSON form.
pub const SCHEMA: &str = "terrace.explain/1";

/// One part of a bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// The id of a [`TimeSlice`].
    pub name: String,
    /// Its length.
    pub ns: u64,
    /// How it is known.
    pub grade: Grade,
    /// The counters it is made of, and what they said.
    pub evidence: Vec<Evidence>,
}

/// The two bars; the slices of each add up to its whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// Thread time, summed over threads: `run`, `queue`, `block_io`, `children`, `sleep`,
    /// `unexplained`; `run` is split in `user` and `kernel` among the of-which.
    pub thread: Vec<Slice>,
    /// The command's wall time: each instant belongs to the first that holds: some
    /// thread on a processor (`run`), some runnable (`queue`), some in block I/O
    /// (`block_io`), all asleep (`sleep`).
    pub wall: Vec<Slice>,
}

/// A part of the recording: the shortest that holds 90 % of the growth of the first counter
/// of the evidence that grew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Its first instant.
    pub from_ns: u64,
    /// Its last instant.
    pub to_ns: u64,
}

/// A part inside of a bar. Parts overlap, so they are never stacked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverlappingPart {
    /// The id of a [`TimePart`].
    pub name: String,
    /// The id of the slice of the thread bar that holds it: `sleep`.
    pub within: String,
    /// Its length in thread time.
    pub ns: u64,
    /// How many times, where that was counted.
    pub count: Option<u64>,
    /// How it is known.
    pub grade: Grade,
    /// The counters.
    pub evidence: Vec<Evidence>,
    /// When most of it happened; `None` where no counter of the evidence grew.
    pub span: Option<Interval>,
}

/// An impossible value and what was done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// What was wrong and what was taken instead, in a sentence.
    pub text: String,
    /// The value that the kernel reported.
    pub before_ns: u64,
    /// The value that was used.
    pub after_ns: u64,
}

/// Time of a bar that a finding accounts for. Several findings may account for the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountedTime {
    /// The id of the [`TimeSlice`].
    pub slice: String,
    /// The id of the [`TimePart`] of it; that of the slice where it is anywhere in it.
    pub part: String,
    /// How much, thread time; asleep wall time.
    pub ns: u64,
}

/// A finding and the time that it accounts for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// The claim, its evidence, its grade, its remedy.
    #[serde(flatten)]
    pub finding: Finding,
    /// The thread time that it accounts for, where that can be said; orders the list.
    pub ns: Option<u64>,
    /// Of that, processor time that its waits caused, as sampled; `None` where nothing says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_processor_ns: Option<u64>,
    /// Where in the bars the time lies that it accounts for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts_for: Vec<AccountedTime>,
    /// What orders it instead, where its time is more a consequence of other causes than one, or
    /// where more than its own time would go with it.
    #[serde(skip)]
    pub order_ns: Option<u64>,
    /// Whether it is inside of the finding before it ("of which").
    pub within_previous: bool,
    /// When most of it happened; `None` where no counter of the evidence grew.
    pub span: Option<Interval>,
    /// Who waited and who caused it, victims first; empty where that was not watched or cannot be
    /// said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actors: Vec<Actor>,
    /// The files behind it, the largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileUse>,
    /// Actors and files in sentences; also that there is no clear actor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub who: Vec<String>,
}

impl Cause {
    /// A finding that accounts for `ns` of thread time, where that can be said.
    #[must_use]
    pub fn new(ns: Option<u64>, finding: Finding) -> Self {
        Self {
            finding,
            ns,
            on_processor_ns: None,
            accounts_for: Vec::new(),
            order_ns: None,
            within_previous: false,
            span: None,
            actors: Vec::new(),
            files: Vec::new(),
            who: Vec::new(),
        }
    }
}

/// A cause that was checked and excluded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClearedCause {
    /// The rule that checked it.
    pub id: String,
    /// Its name for people: `swap`.
    pub name: String,
    /// The number that excludes it.
    pub evidence: Evidence,
    /// What it cost at most, where the number is a count: why so many are innocent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_ns: Option<u64>,
}

/// What could not be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// A rule's id or the name of a data source.
    pub what: String,
    /// Why.
    pub why: String,
    /// What would make it visible; `None` if nothing does.
    pub remedy: Option<String>,
}

/// How much the subject has done, by a counter of its own (`--work`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkDone {
    /// Its series: `work.xact_commit`.
    pub series: String,
    /// What is counted: `xact_commit`.
    pub name: String,
    /// Where the number comes from.
    pub source: String,
    /// How many were done.
    pub amount: u64,
    /// How many were done in a second.
    pub per_s: f64,
}

/// How the kernel's events reached the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventSource {
    /// Programs inside the kernel summed them up, so none can be lost on its way.
    InKernel,
    /// They came one by one through rings of samples, which may overflow, and which some kernels
    /// do not fill while a processor is idle.
    Ring,
}

/// What recording cost, and how it saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Watching {
    /// Share of one core, 0 to 1, over the time that was watched.
    pub core_share: Option<f64>,
    /// Samples taken.
    pub samples: u64,
    /// Samples due and not taken.
    pub missed: u64,
    /// How events came; `None` if there were none.
    #[serde(default)]
    pub events: Option<EventSource>,
}

/// Where the time went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was explained, in words: the command line, or `the whole machine`.
    pub subject: String,
    /// How it ended, in words: `exit 0`, `killed by signal 9`, `cut`.
    pub ending: String,
    /// When what is explained starts, in the recording.
    pub from_ns: u64,
    /// When it ends.
    pub to_ns: u64,
    /// The wall time; the wall bar adds up to it.
    pub wall_ns: u64,
    /// The lives of all threads; the thread bar adds up to it.
    pub thread_ns: u64,
    /// The bars.
    pub bars: Bars,
    /// The parts of the bars.
    pub of_which: Vec<OverlappingPart>,
    /// Impossible values.
    pub repairs: Vec<Repair>,
    /// What cost time, worst first.
    pub findings: Vec<Cause>,
    /// What would help, by what the subject is expected to gain, most first. What cannot work on
    /// this machine is not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
    /// What the subject did, by a counter of its own; `None` where none was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkDone>,
    /// How the copy went that the recording is of; `None` if it is of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopyReport>,
    /// Whether it was the disk; `None` where no disk can be involved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskVerdict>,
    /// The server of this machine that a command mostly waited for; `None` if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<AwaitedServer>,
    /// The share of the wall time outside user code that the findings account for, 0 to 1; `None`
    /// where there is too little such time to judge, or its length is not known.
    #[serde(default)]
    pub covered: Option<f64>,
    /// The causes that were checked and excluded.
    pub cleared: Vec<ClearedCause>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
    /// Why the numbers deserve less trust than usual: lost events, a cut file, lateness.
    pub doubts: Vec<String>,
    /// Doubts that change no verdict: what this kernel never reports, small differences of clocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usual_doubts: Vec<String>,
    /// Sources that cannot both be right, those that nothing decides first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<Contradiction>,
    /// The first users of each figure that was used much; empty where that was not watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<FigureUse>,
    /// Moments of a long recording that stood out against its usual level, in order of time; empty
    /// for a part, a command, or a short one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moments: Vec<StandingOut>,
    /// The marks of the part that is explained, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<ShownMark>,
    /// What recording cost.
    pub watching: Watching,
}

//! A recording in memory: what was watched, every value over time, every task's delays.
//!
//! The recorder fills one, the file format keeps one, `explain` reads one; the three never
//! share anything else. Times are nanoseconds since the recording started, on a clock that
//! never jumps. A value that the machine does not have is absent, never 0.

pub mod clock;
pub mod facts;
pub mod group_name;
pub mod limited_group;
pub mod outcome;
pub mod sampled;
pub mod series;
pub mod steps;
pub mod task;
pub mod wall_clock;
pub mod who;

pub use clock::ClockSet;
pub use facts::{
    DeviceFacts, DeviceKind, Facts, GroupFacts, MountFacts, NewMemoryPrice, ServerFacts,
    ServerLink, SourceState, Subject, SurveyedDevice,
};
pub use group_name::{GroupKind, GroupName};
pub use limited_group::{LIMITED, is_in_group, limited_directory, limited_group, path_in_source};
pub use outcome::{Ending, RecordingOutcome, Usage};
pub use sampled::{CallPurpose, CallShare, SampledPart};
pub use series::{Schema, Series, SeriesKind, SeriesStep};
pub use steps::{StepIter, Steps};
pub use task::{Delay, Task, TaskSource};
pub use wall_clock::{WallClock, date_and_time};
pub use who::{
    FileIdentity, FileRow, Process, ProcessFigure, ProcessRow, RequestRow, SampleRow, Who,
};

use serde::{Deserialize, Serialize};

/// When one sample was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// When it was due.
    pub due_ns: u64,
    /// When its reading began; later than `due_ns` by the recorder's own lateness.
    pub at_ns: u64,
}

/// A named instant or interval: a mark, a phase, a change that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// What it is: `mark`, `rate`, `clock_jump`, `device_added`, `device_removed`,
    /// `group_changed`, `events_stopped` (of older recorders), `events_paused`, `gap` (between the
    /// segments of a ring), `progress`, `imported` (from the text of another tool).
    pub kind: String,
    /// Its words for people.
    pub text: String,
    /// Its first instant.
    pub start_ns: u64,
    /// Its last instant; equal to `start_ns` for a point in time.
    pub end_ns: u64,
}

/// Everything that was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// What was watched, where, and with what sight.
    pub facts: Facts,
    /// The instants at which all values were read, in order.
    pub ticks: Vec<Tick>,
    /// One value over time each, in the order of their ids.
    pub series: Vec<Series>,
    /// Named instants and intervals, in order of their start.
    pub spans: Vec<Span>,
    /// What the kernel charged to each thread; empty where it could not be asked.
    pub tasks: Vec<Task>,
    /// What single processes used, and which files; empty where it was not watched.
    pub who: Who,
    /// How it ended; `None` for a recording that was cut, or that is still being written.
    pub outcome: Option<RecordingOutcome>,
    /// Whether its recorder still wrote to it when it was read.
    pub is_growing: bool,
    /// What was wrong with the file that it was read from, and what of it was more than a
    /// reader takes; empty when nothing was.
    pub damage: Vec<String>,
}

impl Recording {
    /// The series of this name.
    #[must_use]
    pub fn series(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.schema.name == name)
    }

    /// How long was watched: from the start to the end, or to the last sample of a
    /// recording that was cut.
    #[must_use]
    pub fn wall_ns(&self) -> u64 {
        let ended = self.outcome.as_ref().map(|outcome| outcome.ended_ns);
        ended.unwrap_or_else(|| self.ticks.last().map_or(0, |tick| tick.at_ns))
    }
}

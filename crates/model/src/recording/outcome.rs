//! How a recording ended: why, when, and what recording cost. A recording that was cut
//! has no outcome.

use serde::{Deserialize, Serialize};

/// Why it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ending {
    /// The time was over, the process had ended, or the user stopped it.
    #[default]
    Stopped,
    /// The command ended with this status.
    Exited {
        /// 0 to 255.
        code: i32,
    },
    /// A signal ended the command.
    Killed {
        /// The signal's number.
        signal: i32,
        /// The limit that was exceeded, if the kernel's out-of-memory killer sent it.
        out_of_memory: Option<String>,
    },
}

/// What `wait4` reports of a command and the children that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// The largest resident size of any one of them.
    pub max_rss_bytes: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
    /// Bytes read from devices.
    pub read_bytes: u64,
    /// Bytes written to devices.
    pub write_bytes: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

impl Usage {
    /// CPU time in both modes.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }
}

/// How a recording ended and what it cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordingOutcome {
    /// Why it ended.
    pub ending: Ending,
    /// When: for a command the instant at which it was found ended.
    pub ended_ns: u64,
    /// What `wait4` reported; for commands only.
    pub usage: Option<Usage>,
    /// Processes that were seen to belong to the subject.
    pub processes: u64,
    /// Ends of threads that are missing because the recorder did not read fast enough.
    pub lost_exits: u64,
    /// Events that were lost in the same way.
    pub lost_events: u64,
    /// Samples that were due and not taken.
    pub missed_samples: u64,
    /// Samples that were taken and could not be written for lack of space.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_samples: u64,
    /// For how long nothing could be written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_ns: u64,
    /// CPU time that the recorder used.
    pub own_cpu_ns: u64,
    /// Of that, what opening and closing cost, before the first and after the last sample.
    pub own_setup_ns: u64,
    /// Why the recorder stopped before the subject ended: `the disk is full`.
    pub stopped_early: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

//! Who used what: the actors of a finding, the files behind it, and the first users of each figure.
//!
//! docs/accounting.md defines an actor, how its share is taken, and how it is known.

use crate::finding::Grade;
use serde::{Deserialize, Serialize};

/// The part that an actor has in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorRole {
    /// It used what others waited for.
    Culprit,
    /// It waited.
    Victim,
}

/// A process, the processes of one program, or those of one control group, and how much of one
/// figure is theirs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// The id of the process in the recording; `None` of several.
    pub process: Option<u32>,
    /// The kernel's number of it; `None` of several.
    pub pid: Option<u32>,
    /// The name of the program; of a group whose processes have several names, the group's.
    pub name: String,
    /// What sentences call it: `backup.service (pid 812, tar)`.
    pub label: String,
    /// How many processes these are.
    pub processes: u64,
    /// The path of their control group; empty if it is not known.
    pub group: String,
    /// The unit, container or pod of that path, `backup.service`; `None` if it is not known.
    pub group_name: Option<String>,
    /// What is summed: the id of a `ProcessFigure`, `memory_growth`, `memory_held`,
    /// `cache_filled`, `device_bytes` or `lack_of_memory`; of samples of processors the name of a
    /// `SampledPart`, or `kernel`.
    pub figure: String,
    /// How much of it is theirs.
    pub value: u64,
    /// The unit of `value`: `ns`, `bytes`, `count` or `samples`.
    pub unit: String,
    /// Their part of what all processes used, 0 to 1.
    pub share: f64,
    /// The ends of the 95 % interval of `share`; absent where it is counted and not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_low: Option<f64>,
    /// The upper one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_high: Option<f64>,
    /// Measured where the process' own counters say so; inferred where the role is concluded from
    /// use at the same time, or where a good part of the value was shared out by time.
    pub grade: Grade,
}

/// The title of a figure of processes by its id: `CPU`, `block I/O wait`; an id of another version
/// with spaces.
#[must_use]
pub fn figure_title(id: &str) -> String {
    let title = match id {
        "cpu" => "CPU",
        "queue" => "run queue",
        "block_wait" => "block I/O wait",
        "reclaim" => "freeing memory",
        "read_bytes" => "read",
        "written_bytes" => "written",
        "cache_filled" => "added to page cache",
        "refaulted" => "read again",
        "swapped_in" => "back from swap",
        other => return other.replace('_', " "),
    };
    title.to_owned()
}

/// Who has a part in a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Actor {
    /// Which part.
    pub role: ActorRole,
    /// Who, and how much.
    #[serde(flatten)]
    pub used: ProcessUse,
}

/// A file, and how much of it moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileUse {
    /// Its path, or the end of it; `None` where it is not known.
    pub path: Option<String>,
    /// What sentences call it: its path, else `inode 77 of vda (254:0)`.
    pub label: String,
    /// Major and minor number of its file system's device: `254:0`.
    pub device: String,
    /// Its number there.
    pub inode: u64,
    /// What was done: `read` (added to the page cache), `refaulted` or `dirtied`.
    pub figure: String,
    /// How many bytes.
    pub bytes: u64,
    /// Their part of the bytes of all files that have rows, 0 to 1.
    pub share: f64,
    /// Who did most of it: its id in the recording.
    pub process: Option<u32>,
    /// The kernel's number of that one.
    pub pid: Option<u32>,
    /// Its name.
    pub name: String,
    /// How it is known; inferred where a good part was shared out by time.
    pub grade: Grade,
}

/// The first users of one figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureUse {
    /// Which, as in [`ProcessUse::figure`].
    pub figure: String,
    /// What all processes used.
    pub total: u64,
    /// The unit of `total`.
    pub unit: String,
    /// The first of them, the largest first.
    pub first: Vec<ProcessUse>,
    /// What is left: `total` less those.
    pub others: u64,
    /// The same by unit, container or other control group, the largest first.
    pub groups: Vec<ProcessUse>,
}

//! What does not change while a recording runs: subject, machine, and which data sources were open.
//! Written at the start, and again at the end for sources that closed during the run.

use crate::machine::MachineFacts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a recording is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Subject {
    /// The whole machine.
    #[default]
    Machine,
    /// A command that the recorder started, with its children.
    Command {
        /// The words of its command line, program first.
        argv: Vec<String>,
    },
    /// A process that ran already, with its children.
    Process {
        /// Its number.
        pid: u32,
        /// Its command line.
        argv: Vec<String>,
    },
    /// The processes of a control group.
    Group {
        /// Its path below the hierarchy's mount point.
        path: String,
        /// The service manager's name for it, if it was named so.
        unit: Option<String>,
    },
    /// A command of this program: `survey`, `measure iolat`.
    Probe {
        /// Its name.
        name: String,
    },
}

/// Whether a data source was open during the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SourceState {
    /// It was not requested.
    #[default]
    NotAsked,
    /// It was open from the start to the end.
    Open,
    /// It was closed, at least for a part.
    Closed {
        /// Why, as a clause: `only root may listen to exits`.
        why: String,
        /// What would open it: a command or a setting; `None` if nothing does.
        remedy: Option<String>,
    },
}

impl SourceState {
    /// Whether it was open all the time.
    #[must_use]
    pub fn is_open(&self) -> bool {
        *self == SourceState::Open
    }

    /// A source that is closed.
    #[must_use]
    pub fn closed(why: impl Into<String>, remedy: Option<&str>) -> Self {
        SourceState::Closed { why: why.into(), remedy: remedy.map(str::to_owned) }
    }
}

/// What kind of block device it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// A real or virtual disk.
    #[default]
    Disk,
    /// A file that plays a disk.
    Loop,
    /// Compressed memory.
    Zram,
    /// Memory that plays a disk.
    RamDisk,
    /// Made of other devices: device mapper, software RAID.
    Stacked,
}

/// One block device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Its name: `vda`. Its series are `disk.vda.*`.
    pub name: String,
    /// Its number: `254:0`.
    pub number: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Its size.
    pub size_bytes: Option<u64>,
    /// What the kernel believes: whether it has a head that must travel.
    pub rotational: Option<bool>,
    /// How far the kernel reads ahead on it.
    pub read_ahead_bytes: Option<u64>,
    /// The request scheduler in use.
    pub scheduler: Option<String>,
    /// The smallest unit for direct I/O.
    pub logical_block_bytes: Option<u64>,
    /// The unit that the medium writes.
    pub physical_block_bytes: Option<u64>,
    /// The largest request.
    pub max_request_bytes: Option<u64>,
    /// Whether it has a volatile write cache.
    pub write_back: Option<bool>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
}

/// One mounted file system that has a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountFacts {
    /// Where it is mounted.
    pub point: String,
    /// Its type: `ext4`, `tmpfs`.
    pub fs_type: String,
    /// The name of its device among the devices: `vda`; `None` for tmpfs and the like.
    pub device: Option<String>,
}

/// One control group whose series were recorded; level 0 is the subject's own, each next
/// one its parent. Its series are `group<level>.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupFacts {
    /// 0 for the subject's own group.
    pub level: u32,
    /// Which controllers' files were read, with the path of the group in that hierarchy:
    /// `memory` -> `/app`, `cpu` -> `/`, `unified` -> `/terrace-12`.
    pub paths: BTreeMap<String, String>,
    /// Whether the recorder made it for the command.
    pub made: bool,
}

/// What the first store to a page of new memory costs, by the newest survey of this machine that is
/// kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NewMemoryPrice {
    /// Median of one page, nanoseconds.
    pub page_ns: f64,
    /// How many pages were timed.
    pub pages: u32,
    /// When the survey started, seconds since 1970 UTC.
    pub surveyed_unix_s: u64,
}

/// How fast a device answers when idle, by the newest survey of this machine that is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SurveyedDevice {
    /// The name of the device: `vda`.
    pub name: String,
    /// Median of random reads of 4 KiB, one at a time, nanoseconds.
    pub p50_ns: f64,
    /// Their 99th percentile; `None` where too few were made.
    pub p99_ns: Option<f64>,
    /// When the survey started, seconds since 1970 UTC.
    pub surveyed_unix_s: u64,
}

/// How a command is connected to another process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerLink {
    /// By a Unix socket.
    #[default]
    UnixSocket,
    /// By TCP on this machine.
    Tcp,
    /// By the pipe that is its standard input.
    Pipe,
}

/// A process outside of the command that answers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// Its number; of one that forks for each connection, that of the first process.
    pub pid: u32,
    /// Its name, of an interpreter with the script.
    pub name: String,
    /// How they are connected.
    pub link: ServerLink,
    /// The path of the socket, or its port; empty if it has none.
    pub address: String,
    /// How often it was met.
    pub looks: u32,
    /// How many connections it had at most.
    pub connections: u32,
}

/// What was watched, where, and with what sight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The version of this program.
    pub version: String,
    /// When the recording started, nanoseconds since 1970; every other time counts from it.
    pub started_unix_ns: u64,
    /// Seconds east of Greenwich of the local clock, for `--at 14:32`.
    pub utc_offset_s: i32,
    /// What it is about.
    pub subject: Subject,
    /// The machine.
    pub machine: Option<MachineFacts>,
    /// What a survey of this machine, if one is kept, has of memory that was never touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_memory: Option<NewMemoryPrice>,
    /// What kept surveys of this machine have of its devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub surveyed_devices: Vec<SurveyedDevice>,
    /// Processors online.
    pub processors: u32,
    /// Bytes in a base page.
    pub page_bytes: u64,
    /// Samples due in a second.
    pub rate_hz: u32,
    /// Whether the recorder was root.
    pub root: bool,
    /// Whether whatever was personal in it was replaced.
    pub redacted: bool,
    /// Block devices at the start.
    pub devices: Vec<DeviceFacts>,
    /// Mounted file systems at the start.
    pub mounts: Vec<MountFacts>,
    /// Swap areas in use at the start: name, and the device behind it where it is one.
    pub swaps: Vec<String>,
    /// Control groups, the own one first.
    pub groups: Vec<GroupFacts>,
    /// Processes of this machine that a command was connected to, the one that was met most often
    /// first; known at its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerFacts>,
    /// Settings that explain numbers: `vm.dirty_bytes`, `vm.swappiness`, `thp.enabled`.
    pub settings: BTreeMap<String, String>,
    /// What could be seen, by name: `delay_accounting` (the kernel counts block I/O waits),
    /// `exits` (the kernel tells of every thread that ends), `events.sched`,
    /// `events.block`, `events.vmscan`, `events.writeback`, `events.faults`,
    /// `group_limits` (control groups of the machine that have a limit),
    /// `other_users` (the I/O of processes of others), `realtime`, `locked`, `own_group`,
    /// `marks`.
    pub sights: BTreeMap<String, SourceState>,
}

impl Facts {
    /// What could be seen of `name`; [`SourceState::NotAsked`] if it is not in the recording.
    #[must_use]
    pub fn sight(&self, name: &str) -> &SourceState {
        self.sights.get(name).unwrap_or(&SourceState::NotAsked)
    }
}

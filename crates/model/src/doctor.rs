//! What `terrace doctor` reports: the sources that commands read, whether each works here, what is
//! missing otherwise, and the line that would allow it.
//!
//! Nouns alone: the binary tries the sources, `explain::doctor` judges what came of it.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The command, as sentences name it.
pub const DOCTOR: &str = "`terrace doctor`";

/// How every page that cannot see something points to the report.
pub const POINTER: &str = "why: `terrace doctor`";

/// Something of the kernel that commands read or use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceId {
    /// Programs in the kernel that sum up its events.
    Ebpf,
    /// Events that are copied out of the kernel.
    Tracepoints,
    /// Samples of what processors do.
    ProcessorSamples,
    /// Counts of page faults.
    PageFaults,
    /// Pages of files that are used again while they are in memory.
    PageHits,
    /// The names of the kernel's functions, which say what a stack waits for.
    KernelSymbols,
    /// Reports of threads that end.
    Taskstats,
    /// Waits for block devices, charged to threads.
    DelayAccounting,
    /// What processes of other users do.
    OtherProcesses,
    /// Stalls by resource.
    Pressure,
    /// Real-time priority for the sampler.
    RealTime,
    /// Memory of the sampler that stays in memory.
    LockedMemory,
    /// Pages of a file in the page cache.
    Cachestat,
    /// Where the pages of a process are.
    Pagemap,
    /// Advice on the memory of another process.
    ProcessMemory,
    /// Transparent huge pages.
    TransparentHugePages,
    /// Huge pages of the reserved pool.
    HugePages,
    /// Swap areas.
    Swap,
    /// File systems that this process mounts.
    Mounts,
    /// Control groups, version 2.
    GroupsV2,
    /// Control groups, version 1.
    GroupsV1,
    /// Counters of block devices.
    DiskCounters,
    /// Block devices, opened for reading.
    BlockDevices,
    /// The kernel's queue of requests.
    IoUring,
    /// File systems in user space.
    Fuse,
    /// Loop devices.
    LoopDevices,
    /// Network block devices.
    Nbd,
}

/// Whether a source works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceHealth {
    /// It was used, and answered.
    Works,
    /// A part of it works.
    Partly,
    /// It is permitted, and nothing is set up that it could show.
    Idle,
    /// It cannot be used.
    Missing,
}

/// What prevents the use of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// A right of this user or process.
    Permission,
    /// A setting of the kernel.
    Setting,
    /// A file system that is not mounted, or is hidden by another mount.
    Mount,
    /// A module of the kernel that is not loaded.
    Module,
    /// The limits of a container or a namespace.
    Container,
    /// A filter of system calls.
    Filter,
    /// The lockdown of the kernel.
    Lockdown,
    /// A kernel without it.
    Kernel,
    /// Not known.
    Unknown,
}

/// The answer of a source that was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceAttempt {
    /// What was seen of it, as a clause; empty if nothing was.
    pub seen: String,
    /// Whether it is permitted, and nothing is set up that it could show.
    pub is_idle: bool,
    /// The refusals: of a part where something was seen, else of all.
    pub refusals: Vec<SourceRefusal>,
}

/// One refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceRefusal {
    /// Why, as a clause.
    pub why: String,
    /// The error number of the kernel, if it gave one.
    pub errno: Option<i32>,
    /// The file that was refused, if it is one.
    pub path: Option<String>,
    /// What is in the way, where no error number says it.
    pub known: Option<KnownObstacle>,
}

/// An obstacle that has no error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownObstacle {
    /// A setting is off.
    SettingOff,
    /// A file system is not mounted, and may not be mounted by this process.
    NotMounted,
    /// What a module would bring is not there.
    NotLoaded,
    /// The kernel has no such part.
    NotInKernel,
}

/// Where this program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPlace {
    /// On the machine itself.
    #[default]
    Host,
    /// In a container of Docker.
    Docker,
    /// In a container of Podman.
    Podman,
    /// In a pod of Kubernetes.
    Kubernetes,
    /// In namespaces of another tool.
    Namespace,
}

/// What this process is and may do, as far as it decides about sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// Where it runs.
    pub place: RunPlace,
    /// The effective user.
    pub uid: u32,
    /// The capabilities in effect, of those that any source needs: `BPF`, `SYS_ADMIN`.
    pub capabilities: BTreeSet<String>,
    /// Whether it is in the first user namespace, whose capabilities are those of the machine.
    pub first_user_namespace: bool,
    /// Whether it sees the process numbers of the machine.
    pub first_process_namespace: bool,
    /// Whether a filter of system calls is on.
    pub filtered: bool,
    /// The security modules that the kernel names: `apparmor`.
    pub security_modules: Vec<String>,
    /// The lockdown of the kernel: `none`, `integrity`, `confidentiality`.
    pub lockdown: Option<String>,
    /// Settings that close sources: `kernel.io_uring_disabled`.
    pub settings: BTreeMap<String, String>,
    /// The release of the kernel.
    pub kernel: Option<String>,
}

/// A line that would allow a source. It is printed and never run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermitLine {
    /// The command, option or setting.
    pub line: String,
    /// What it risks, in one sentence.
    pub risk: String,
}

/// What a missing source costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCost {
    /// The commands.
    pub commands: Vec<String>,
    /// What they do or say without it.
    pub then: String,
}

/// One source, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReport {
    /// Which one.
    pub source: SourceId,
    /// Its name for a person.
    pub title: String,
    /// Whether it works.
    pub health: SourceHealth,
    /// What was seen of it.
    pub seen: String,
    /// Why it does not work, or a part of it.
    pub why: Option<String>,
    /// The error of the kernel, by its name or number: `EPERM`.
    pub errno: Option<String>,
    /// What prevents it.
    pub obstacle: Option<Obstacle>,
    /// What would allow it; any one of them is enough.
    pub lines: Vec<PermitLine>,
    /// What it costs.
    pub cost: SourceCost,
}

impl SourceReport {
    /// Whether something is missing that one of its lines would allow.
    #[must_use]
    pub fn can_be_allowed(&self) -> bool {
        matches!(self.health, SourceHealth::Partly | SourceHealth::Missing)
            && !self.lines.is_empty()
    }
}

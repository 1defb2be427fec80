//! By which quantities the victims and the culprits of each finding are found.
//!
//! A row for each rule. A victim waited for a resource, or paid for it; a culprit used it. Where a
//! finding has neither, the test below has the reason.

use super::quantity::Quantity;
use model::recording::{ProcessFigure as Figure, SampledPart as Part};

/// What was done with the files behind a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFigure {
    /// Added to the page cache.
    Read,
    /// Read again soon after it had been evicted.
    Refaulted,
    /// Made dirty.
    Dirtied,
}

impl FileFigure {
    /// Its name in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Refaulted => "refaulted",
            Self::Dirtied => "dirtied",
        }
    }
}

/// Who is a victim and who is a culprit of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// What victims have much of; `None` if no process in particular suffers.
    pub victim: Option<Quantity>,
    /// What culprits have much of, in one unit; empty if they are not among the processes.
    pub culprit: &'static [Quantity],
    /// Whether culprits are concluded from what they did at the same time, rather than by a
    /// counter of just this.
    pub by_coincidence: bool,
    /// Whether the resource is the subject's own: no other process can have used it up.
    pub is_own_resource: bool,
    /// What was done with the files behind it.
    pub files: Option<FileFigure>,
    /// Whether requests to devices are behind it: `Some(true)` of writes, `Some(false)` of reads.
    pub requests: Option<bool>,
    /// What culprits have much of where samples have no process; empty if samples do not matter.
    pub without_samples: &'static [Quantity],
}

impl Roles {
    /// The roles where samples have no process: a share of all processor time is a conclusion,
    /// page faults are counted.
    pub fn unsampled(self) -> Self {
        let by_coincidence = self.without_samples == CPU;
        Self { culprit: self.without_samples, by_coincidence, ..self }
    }
}

impl Roles {
    const NONE: Self = Self {
        victim: None,
        culprit: &[],
        by_coincidence: false,
        is_own_resource: false,
        files: None,
        requests: None,
        without_samples: &[],
    };

    const fn victim(figure: Figure) -> Self {
        Self { victim: Some(Quantity::Figure(figure)), ..Self::NONE }
    }

    const fn used(culprit: &'static [Quantity]) -> Self {
        Self { culprit, ..Self::NONE }
    }

    /// The processes that the samples of a part met; else those that ran while they were taken.
    const fn sampled(culprit: &'static [Quantity]) -> Self {
        Self { culprit, without_samples: CPU, ..Self::NONE }
    }

    /// Where no sample says it, who had most page faults.
    const fn touching(self) -> Self {
        Self { without_samples: TOUCHES, ..self }
    }

    const fn culprit(self, culprit: &'static [Quantity]) -> Self {
        Self { culprit, ..self }
    }

    const fn by_coincidence(self) -> Self {
        Self { by_coincidence: true, ..self }
    }

    const fn own_resource(self) -> Self {
        Self { is_own_resource: true, ..self }
    }

    const fn reads(self) -> Self {
        Self { requests: Some(false), ..self }
    }

    const fn writes(self) -> Self {
        Self { requests: Some(true), ..self }
    }

    const fn files(self, files: FileFigure) -> Self {
        Self { files: Some(files), ..self }
    }
}

/// Who used the processors.
const CPU: &[Quantity] = &[Quantity::Figure(Figure::Cpu)];

/// Who took memory from others.
const MEMORY: &[Quantity] = &[Quantity::MemoryGrowth, Quantity::CacheFilled];

/// Who made memory dirty.
const WRITES: &[Quantity] = &[Quantity::Figure(Figure::WrittenBytes)];

/// Who kept the devices busy.
const DEVICES: &[Quantity] = &[Quantity::DeviceBytes];

/// Who touched new memory.
const TOUCHES: &[Quantity] = &[Quantity::Figure(Figure::MinorFaults)];

const FIRST_TOUCHES: &[Quantity] = &[Quantity::Sampled(Part::FaultFirstTouch)];
const COPIES_ON_WRITE: &[Quantity] = &[Quantity::Sampled(Part::FaultCopyOnWrite)];

/// The roles of each rule's findings.
const ROLES: &[(&str, Roles)] = &[
    ("out_of_memory", Roles::used(&[Quantity::MemoryHeld]).by_coincidence().own_resource()),
    ("swapping", Roles::victim(Figure::SwappedIn).culprit(MEMORY).by_coincidence()),
    ("cpu_limit", Roles::victim(Figure::Queue).culprit(CPU).own_resource()),
    ("io_limit", Roles::victim(Figure::BlockWait).culprit(DEVICES).own_resource()),
    (
        "memory_limit",
        Roles { victim: Some(Quantity::LackOfMemory), ..Roles::NONE }
            .culprit(MEMORY)
            .by_coincidence()
            .own_resource(),
    ),
    (
        "dirty_throttle",
        Roles::victim(Figure::BlockWait)
            .culprit(WRITES)
            .by_coincidence()
            .files(FileFigure::Dirtied)
            .writes(),
    ),
    (
        "reads_from_device",
        Roles::victim(Figure::BlockWait)
            .culprit(DEVICES)
            .by_coincidence()
            .files(FileFigure::Read)
            .reads(),
    ),
    (
        "cache_too_small",
        Roles::victim(Figure::Refaulted)
            .culprit(MEMORY)
            .by_coincidence()
            .files(FileFigure::Refaulted),
    ),
    (
        "cache_evicted_by_stream",
        Roles::victim(Figure::Refaulted)
            .culprit(&[Quantity::CacheFilled])
            .by_coincidence()
            .files(FileFigure::Refaulted),
    ),
    ("read_ahead_small", Roles::victim(Figure::BlockWait).files(FileFigure::Read)),
    ("read_ahead_large", Roles::victim(Figure::ReadBytes).files(FileFigure::Read)),
    ("misaligned_requests", Roles::victim(Figure::BlockWait).culprit(DEVICES).by_coincidence()),
    (
        "writes_to_device",
        Roles::victim(Figure::BlockWait)
            .culprit(WRITES)
            .by_coincidence()
            .files(FileFigure::Dirtied)
            .writes(),
    ),
    (
        "small_sync_writes",
        Roles::victim(Figure::BlockWait)
            .culprit(WRITES)
            .by_coincidence()
            .files(FileFigure::Dirtied)
            .writes(),
    ),
    (
        "writeback_burst",
        Roles::victim(Figure::BlockWait)
            .culprit(WRITES)
            .by_coincidence()
            .files(FileFigure::Dirtied),
    ),
    ("direct_io_odd", Roles::victim(Figure::BlockWait)),
    ("cpu_contention", Roles::victim(Figure::Queue).culprit(CPU)),
    ("reclaim_direct", Roles::victim(Figure::Reclaim).culprit(MEMORY).by_coincidence()),
    ("reclaim_throttled", Roles::victim(Figure::Reclaim).culprit(MEMORY).by_coincidence()),
    ("compaction", Roles::victim(Figure::Reclaim)),
    ("memory_backed_lazily", Roles::sampled(FIRST_TOUCHES).touching()),
    ("first_touch", Roles::sampled(FIRST_TOUCHES).touching()),
    ("thp_fallback", Roles::sampled(FIRST_TOUCHES).touching()),
    ("numa_remote", Roles::used(TOUCHES)),
    ("copy_on_write", Roles::sampled(COPIES_ON_WRITE).touching()),
    ("metadata_reads", Roles::victim(Figure::BlockWait).culprit(DEVICES).by_coincidence().reads()),
    ("journal_wait", Roles::victim(Figure::BlockWait).culprit(WRITES).by_coincidence()),
    ("writeback_wait", Roles::victim(Figure::BlockWait).culprit(WRITES).by_coincidence().writes()),
    ("lower_device_wait", Roles::victim(Figure::BlockWait).culprit(DEVICES).by_coincidence()),
    ("other_block_io", Roles::victim(Figure::BlockWait).culprit(DEVICES).by_coincidence()),
    ("small_reads", Roles::sampled(&[Quantity::Sampled(Part::ReadCalls)])),
    ("small_writes", Roles::sampled(&[Quantity::Sampled(Part::WriteCalls)])),
    ("file_storm", Roles::sampled(&[Quantity::Sampled(Part::FileCalls)])),
    ("exec_storm", Roles::sampled(&[Quantity::Sampled(Part::ProcessCalls)])),
    ("mmap_storm", Roles::sampled(&[Quantity::Sampled(Part::MappingCalls)])),
    ("page_clearing", Roles::sampled(&[Quantity::Sampled(Part::KernelClearing)])),
    ("kernel_copying", Roles::sampled(&[Quantity::Sampled(Part::KernelCopying)])),
    ("kernel_locks", Roles::sampled(&[Quantity::Sampled(Part::KernelLocks)])),
    ("network_processing", Roles::sampled(&[Quantity::Sampled(Part::KernelNetwork)])),
    ("thread_switching", Roles::sampled(&[Quantity::Sampled(Part::KernelScheduling)])),
    ("kernel_time", Roles::sampled(&[Quantity::SampledKernel])),
    ("cpu_bound", Roles::used(CPU)),
];

/// The roles of a finding of this rule; `None` if it has no actors.
pub fn of(rule: &str) -> Option<&'static Roles> {
    ROLES.iter().find(|(id, _)| *id == rule).map(|(_, roles)| roles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::rules::RULES;

    /// The rules whose findings have no actors, with the reason.
    const NO_ACTORS: &[(&str, &str)] = &[
        ("process_limit", "the kernel counts refusals by group"),
        ("processor_stolen", "the host took the time, from all alike"),
        ("zero_pages_swapped", "inside of a finding that names them"),
        ("served_by_zram", "a card names no actor"),
        ("served_by_zswap", "a card names no actor"),
        ("served_by_flash", "a card names no actor"),
        ("cache_hits_not_disk", "a card names no actor"),
        ("timer_sleep", "sleep is not a figure of a process"),
        ("socket_wait", "sleep is not a figure of a process"),
        ("pipe_wait", "sleep is not a figure of a process"),
        ("poll_wait", "sleep is not a figure of a process"),
        ("lock_contention", "sleep is not a figure of a process"),
        ("file_lock_wait", "sleep is not a figure of a process"),
        ("file_system_wait", "sleep is not a figure of a process"),
        ("children_wait", "sleep is not a figure of a process"),
        ("other_sleep", "sleep is not a figure of a process"),
        ("interrupts", "devices and timers cause them"),
    ];

    #[test]
    fn each_rule_has_roles_or_a_reason_for_none() {
        for rule in RULES {
            let has_roles = ROLES.iter().filter(|(id, _)| *id == rule.id).count();
            let has_reason = NO_ACTORS.iter().filter(|(id, _)| *id == rule.id).count();
            assert_eq!(has_roles + has_reason, 1, "{}", rule.id);
        }
        let known = |id: &str| RULES.iter().any(|rule| rule.id == id);
        assert!(
            ROLES
                .iter()
                .map(|(id, _)| id)
                .chain(NO_ACTORS.iter().map(|(id, _)| id))
                .all(|id| known(id))
        );
    }

    #[test]
    fn culprits_of_one_finding_are_compared_in_one_unit() {
        for (id, roles) in ROLES {
            let mut units = roles.culprit.iter().map(|quantity| quantity.unit());
            let first = units.next();
            assert!(units.all(|unit| Some(unit) == first), "{id}");
            assert!(roles.victim.is_some() || first.is_some(), "{id}");
        }
    }
}

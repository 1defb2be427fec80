//! The witnesses of each suspect: what would have shown it, in alternatives.
//!
//! docs/findings.md has the same table; a test compares them.

use super::Witness::{
    self, BlockCharges, Charges, Counted, CpuLimitsStill, Disks, Faults, GroupCpu, GroupIo,
    GroupMemory, IdleDisks, LimitedGroups, LimitedStill, MemoryLimitsStill, NoTimeLeft, Nodes,
    ProcessIo, ProcessLimitsStill, QueueTime, Reclaim, Requests, RunTime, Samples, Still, Switches,
    Who, Writeback,
};

/// What clears the suspect of one rule.
#[derive(Clone, Copy, Debug)]
pub struct WitnessRow {
    /// The rule.
    pub id: &'static str,
    /// Alternatives, the best first. All of one must have watched.
    pub by: &'static [&'static [Witness]],
}

const fn row(id: &'static str, by: &'static [&'static [Witness]]) -> WitnessRow {
    WitnessRow { id, by }
}

const SWAP: &[&str] = &["vmstat.pswpin", "vmstat.pswpout"];
const GROUP_SWAP: &[&str] = &["group0.memory.stat.pswpin", "group0.memory.stat.pswpout"];
const ZERO_SWAP: &[&str] = &["vmstat.swpout_zero"];
const REFAULTS: &[&str] = &["vmstat.workingset_refault_file"];
const GROUP_REFAULTS: &[&str] = &["group0.memory.stat.workingset_refault_file"];
const HUGE: &[&str] = &["vmstat.thp_fault_fallback", "vmstat.thp_fault_alloc"];

/// Waits that only the kernel's stack at the wait tells apart.
const BY_SWITCHES: &[&[Witness]] = &[&[Switches]];

/// What processors did.
const BY_SAMPLES: &[&[Witness]] = &[&[Samples, RunTime]];

/// Waits for what had been evicted.
const BY_REFAULTS: &[&[Witness]] = &[
    &[Still(GROUP_REFAULTS)],
    &[Still(REFAULTS)],
    &[Counted(GROUP_REFAULTS), Switches],
    &[Counted(REFAULTS), Switches],
    &[Counted(GROUP_REFAULTS), BlockCharges, ProcessIo],
    &[Counted(REFAULTS), BlockCharges, ProcessIo],
    &[IdleDisks],
    &[NoTimeLeft],
];

/// Every suspect that can be cleared.
pub const TABLE: &[WitnessRow] = &[
    row(
        "out_of_memory",
        &[&[Still(&["vmstat.oom_kill"])], &[Still(&["group0.memory.events.oom_kill"])]],
    ),
    row("process_limit", &[&[ProcessLimitsStill], &[LimitedStill("pids")]]),
    row(
        "swapping",
        &[
            &[Still(SWAP)],
            &[Still(GROUP_SWAP)],
            &[Counted(SWAP), Switches, Reclaim],
            &[Counted(GROUP_SWAP), Switches, Reclaim],
            &[Counted(SWAP), BlockCharges, Charges],
        ],
    ),
    row("processor_stolen", &[&[Counted(&["stat.cpu.steal_ns"]), RunTime]]),
    row(
        "cpu_limit",
        &[
            &[CpuLimitsStill],
            &[GroupCpu, QueueTime],
            &[LimitedStill("cpu")],
            &[LimitedGroups, QueueTime],
        ],
    ),
    row(
        "io_limit",
        &[
            &[GroupIo, Switches],
            &[GroupIo, BlockCharges],
            &[LimitedStill("io")],
            &[LimitedGroups, Switches],
            &[NoTimeLeft],
        ],
    ),
    row(
        "memory_limit",
        &[
            &[MemoryLimitsStill],
            &[GroupMemory, Counted(GROUP_REFAULTS), Switches, Reclaim],
            &[GroupMemory, Counted(GROUP_REFAULTS), BlockCharges, Charges, ProcessIo],
            &[LimitedStill("memory")],
            &[LimitedGroups, Who],
        ],
    ),
    row(
        "dirty_throttle",
        &[
            &[Switches],
            &[Writeback],
            &[Still(&["tree.write_bytes"]), ProcessIo],
            &[BlockCharges, ProcessIo],
            &[IdleDisks],
            &[NoTimeLeft],
        ],
    ),
    row(
        "reads_from_device",
        &[
            &[Switches],
            &[Still(&["tree.read_bytes"]), ProcessIo],
            &[BlockCharges, ProcessIo],
            &[IdleDisks],
            &[NoTimeLeft],
        ],
    ),
    row("cache_too_small", BY_REFAULTS),
    row("cache_evicted_by_stream", BY_REFAULTS),
    row("read_ahead_small", &[&[Disks]]),
    row(
        "read_ahead_large",
        &[&[ProcessIo, Counted(&["tree.read_chars", "tree.minor_faults", "tree.major_faults"])]],
    ),
    row("direct_io_odd", &[&[Switches, Requests, Disks]]),
    row("misaligned_requests", &[&[Requests, Switches]]),
    row(
        "writes_to_device",
        &[&[Switches], &[Still(&["tree.write_bytes"]), ProcessIo], &[BlockCharges, ProcessIo]],
    ),
    row("small_sync_writes", BY_SWITCHES),
    row("writeback_burst", &[&[Disks, Counted(&["vmstat.nr_dirty", "tree.write_bytes"])]]),
    row("metadata_reads", BY_SWITCHES),
    row("journal_wait", BY_SWITCHES),
    row("writeback_wait", BY_SWITCHES),
    row("lower_device_wait", BY_SWITCHES),
    row("cpu_contention", &[&[QueueTime]]),
    row("reclaim_direct", &[&[Reclaim], &[Charges]]),
    row("reclaim_throttled", &[&[Reclaim], &[Switches]]),
    row("zero_pages_swapped", &[&[Counted(ZERO_SWAP), Reclaim], &[Counted(ZERO_SWAP), Charges]]),
    row("served_by_zram", &[&[Disks]]),
    row("served_by_zswap", &[&[Counted(&["vmstat.zswpin", "vmstat.zswpout"])]]),
    row("served_by_flash", &[&[Counted(&["vmstat.pswpin"])]]),
    row("memory_backed_lazily", &[&[Faults]]),
    row("first_touch", &[&[Samples, RunTime], &[Faults]]),
    row("thp_fallback", &[&[Still(&["vmstat.thp_fault_fallback"])], &[Counted(HUGE), Faults]]),
    row("copy_on_write", &[&[Samples, RunTime], &[Charges]]),
    row("compaction", &[&[Still(&["vmstat.compact_stall"])], &[Reclaim], &[Charges]]),
    row("numa_remote", &[&[Nodes, RunTime]]),
    row("timer_sleep", BY_SWITCHES),
    row("socket_wait", BY_SWITCHES),
    row("pipe_wait", BY_SWITCHES),
    row("poll_wait", BY_SWITCHES),
    row("lock_contention", BY_SWITCHES),
    row("file_lock_wait", BY_SWITCHES),
    row("file_system_wait", BY_SWITCHES),
    row("children_wait", BY_SWITCHES),
    row("small_reads", &[&[Samples, RunTime, Counted(&["tree.read_calls", "tree.read_chars"])]]),
    row("small_writes", &[&[Samples, RunTime, Counted(&["tree.write_calls", "tree.write_chars"])]]),
    row("file_storm", BY_SAMPLES),
    row("exec_storm", BY_SAMPLES),
    row("mmap_storm", BY_SAMPLES),
    row("page_clearing", BY_SAMPLES),
    row("kernel_copying", BY_SAMPLES),
    row("kernel_locks", BY_SAMPLES),
    row("network_processing", BY_SAMPLES),
    row("thread_switching", BY_SAMPLES),
    row("interrupts", BY_SAMPLES),
    row("cpu_bound", &[&[RunTime]]),
];

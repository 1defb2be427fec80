//! The causes: for each the stage that makes it, what the verdict must say first, what it
//! must say too, and what it may say besides because it is true as well.

use crate::stage::{Made, make};
use model::explanation::ActorRole::{self, Culprit, Victim};

/// One cause.
pub struct Case {
    /// Its name, chosen by.
    pub name: &'static str,
    /// Findings of which one must come first.
    pub first: &'static [&'static str],
    /// Findings that must be there somewhere.
    pub also: &'static [&'static str],
    /// Findings that are true here as well; any other is false.
    pub besides: &'static [&'static str],
    /// Who the finding that comes first must name first in each role, by the program's name; empty
    /// where one command is recorded, which needs no name.
    pub actors: &'static [(ActorRole, &'static str)],
    /// Makes it: the limits, devices and neighbours, and the command to watch.
    pub make: fn() -> Result<Made, String>,
}

/// True of any run on a shared machine: the host took the processor, or neighbours did, and
/// nobody staged it. They neither come first nor are they false, where they are not staged. Nor
/// is what is left over by all findings, whose parts are named.
pub const SHARED: &[&str] = &[
    "processor_stolen",
    "cpu_contention",
    "cache_hits_not_disk",
    "kernel_time",
    "other_block_io",
    "other_sleep",
];

/// Cases whose bars are compared with the kernel's own trace as well: of each slice one in
/// which it is large, two of very many very short waits, and one of many short children.
pub const WITNESSED: &[&str] =
    &["cold_read", "hog_beside", "sleep", "lock_contention", "make_j2", "short_children"];

/// All of them, in the order of the issue that asked for them.
pub const CASES: &[Case] = &[
    Case {
        name: "cold_read",
        first: &["reads_from_device"],
        // Its device is slow because the group may read so much and no more.
        also: &["io_limit"],
        besides: &["read_ahead_small", "metadata_reads", "kernel_copying"],
        actors: &[],
        make: make::cold_read,
    },
    Case {
        name: "cold_mmap",
        first: &["reads_from_device"],
        also: &[],
        besides: &["cpu_bound", "read_ahead_small", "metadata_reads"],
        actors: &[],
        make: make::cold_mmap,
    },
    Case {
        name: "first_touch",
        first: &["first_touch", "memory_backed_lazily"],
        also: &[],
        // It gives the memory back, which takes a third as long.
        besides: &["cpu_bound", "first_touch", "thp_fallback", "page_clearing", "mmap_storm"],
        actors: &[],
        make: make::first_touch,
    },
    Case {
        name: "swap_random",
        first: &["swapping", "memory_limit"],
        also: &["swapping"],
        besides: &[
            "memory_limit",
            "reclaim_direct",
            "reclaim_throttled",
            "reads_from_device",
            "cpu_bound",
            "first_touch",
            "served_by_flash",
            "page_clearing",
        ],
        actors: &[],
        make: make::swap_random,
    },
    Case {
        name: "swap_zeros",
        first: &["zero_pages_swapped", "memory_limit", "reclaim_direct"],
        also: &["zero_pages_swapped"],
        besides: &["memory_limit", "reclaim_direct", "cpu_bound", "first_touch", "page_clearing"],
        actors: &[],
        make: make::swap_zeros,
    },
    Case {
        name: "limit_refaults",
        first: &["cache_too_small", "reads_from_device", "memory_limit"],
        also: &["cache_too_small"],
        besides: &[
            "reads_from_device",
            "memory_limit",
            "reclaim_direct",
            "reclaim_throttled",
            "cpu_bound",
            "kernel_copying",
        ],
        actors: &[],
        make: make::limit_refaults,
    },
    Case {
        name: "write_small_group",
        first: &["reclaim_throttled", "memory_limit", "dirty_throttle", "reclaim_direct"],
        also: &[],
        besides: &[
            "reclaim_throttled",
            "memory_limit",
            "dirty_throttle",
            "reclaim_direct",
            "cpu_bound",
            "writes_to_device",
            // The stage limits the group's writes, on a disk that could do more.
            "io_limit",
            "file_system_wait",
            "kernel_copying",
            "journal_wait",
            "writeback_wait",
        ],
        actors: &[],
        make: make::write_small_group,
    },
    Case {
        name: "dirty_throttle",
        first: &["dirty_throttle"],
        also: &[],
        besides: &[
            "cpu_bound",
            "writes_to_device",
            "file_system_wait",
            "kernel_copying",
            "journal_wait",
            "writeback_wait",
        ],
        actors: &[],
        make: make::dirty_throttle,
    },
    Case {
        name: "write_limit",
        first: &["writes_to_device", "small_sync_writes"],
        also: &["io_limit"],
        besides: &["journal_wait", "writeback_wait"],
        actors: &[],
        make: make::write_limit,
    },
    Case {
        name: "misaligned",
        first: &["writes_to_device", "small_sync_writes"],
        also: &["misaligned_requests"],
        // They are of 512 bytes; where the disk is fast their calls are a part of the time.
        besides: &["small_writes", "cpu_bound", "journal_wait", "writeback_wait"],
        actors: &[],
        make: make::misaligned,
    },
    Case {
        name: "hog_beside",
        first: &["cpu_contention"],
        also: &[],
        besides: &["cpu_bound"],
        actors: &[],
        make: make::hog_beside,
    },
    Case {
        name: "cpu_quota",
        first: &["cpu_limit"],
        also: &[],
        besides: &["cpu_bound"],
        actors: &[],
        make: make::cpu_quota,
    },
    Case {
        name: "lock_contention",
        first: &["lock_contention"],
        also: &[],
        besides: &["cpu_bound", "kernel_locks", "thread_switching"],
        actors: &[],
        make: make::lock_contention,
    },
    Case {
        name: "sleep",
        first: &["timer_sleep"],
        also: &[],
        besides: &[],
        actors: &[],
        make: make::sleep,
    },
    Case {
        name: "pipe_wait",
        first: &["pipe_wait"],
        also: &[],
        besides: &["thread_switching"],
        actors: &[],
        make: make::pipe_wait,
    },
    Case {
        name: "fsync_storm",
        first: &["small_sync_writes"],
        also: &[],
        besides: &["writes_to_device", "cpu_bound", "journal_wait", "writeback_wait"],
        actors: &[],
        make: make::fsync_storm,
    },
    Case {
        name: "copy_evicts",
        first: &["cache_evicted_by_stream", "cache_too_small", "reads_from_device"],
        also: &["cache_evicted_by_stream"],
        besides: &[
            "cache_too_small",
            "reads_from_device",
            "memory_limit",
            "reclaim_direct",
            "reclaim_throttled",
            "cpu_bound",
            "dirty_throttle",
            "kernel_copying",
            "journal_wait",
            "writeback_wait",
        ],
        actors: &[],
        make: make::copy_evicts,
    },
    Case {
        name: "make_j2",
        first: &["cpu_bound"],
        also: &[],
        besides: &[
            "first_touch",
            "children_wait",
            "exec_storm",
            "file_storm",
            "copy_on_write",
            "page_clearing",
        ],
        actors: &[],
        make: make::make_j2,
    },
    Case {
        // Told for its bars: neighbours get at each of 3,000 children.
        name: "short_children",
        first: &["cpu_bound", "cpu_contention", "exec_storm"],
        also: &[],
        besides: &[
            "thread_switching",
            "first_touch",
            "children_wait",
            "file_storm",
            "mmap_storm",
            "copy_on_write",
            "page_clearing",
        ],
        actors: &[],
        make: make::short_children,
    },
    Case {
        name: "untar",
        first: &["file_storm", "journal_wait", "metadata_reads", "writes_to_device"],
        also: &["file_storm"],
        besides: &[
            "small_writes",
            "kernel_time",
            "other_block_io",
            "writeback_wait",
            "writeback_burst",
        ],
        actors: &[],
        make: make::untar,
    },
    Case {
        name: "install_packages",
        first: &["file_storm"],
        also: &[],
        besides: &["kernel_time", "small_writes"],
        actors: &[],
        make: make::install_packages,
    },
    Case {
        name: "mappings",
        first: &["mmap_storm", "kernel_locks", "lock_contention"],
        also: &["mmap_storm"],
        besides: &["kernel_locks", "kernel_time", "first_touch"],
        actors: &[],
        make: make::mappings,
    },
    Case {
        name: "fork_storm",
        first: &["exec_storm"],
        also: &[],
        besides: &[
            "first_touch",
            "copy_on_write",
            "file_storm",
            "mmap_storm",
            "kernel_locks",
            "thread_switching",
        ],
        actors: &[(Culprit, "true")],
        make: make::fork_storm,
    },
    Case {
        name: "backup_evicts",
        first: &["cache_evicted_by_stream", "reads_from_device"],
        also: &["cache_evicted_by_stream"],
        besides: &["reads_from_device", "reclaim_direct", "kernel_copying"],
        actors: &[(Victim, "service"), (Culprit, "backup")],
        make: make::backup_evicts,
    },
    Case {
        name: "leak_swaps",
        // They share a group, and its limit is what makes them swap.
        first: &["memory_limit"],
        also: &["swapping"],
        besides: &["reclaim_direct", "served_by_flash", "first_touch", "page_clearing"],
        actors: &[(Victim, "database"), (Culprit, "leak")],
        make: make::leak_swaps,
    },
    Case {
        name: "analytics_touches",
        first: &["first_touch"],
        also: &[],
        besides: &["page_clearing", "mmap_storm", "cpu_bound"],
        actors: &[(Culprit, "analytics")],
        make: make::analytics_touches,
    },
    Case {
        name: "git_status_cold",
        first: &["metadata_reads", "reads_from_device"],
        also: &["metadata_reads"],
        besides: &["reads_from_device", "file_storm"],
        actors: &[],
        make: make::git_status_cold,
    },
    Case {
        name: "browser_starts",
        first: &["reads_from_device"],
        // Its device is slow because the group may read so much and no more.
        also: &["io_limit"],
        besides: &["metadata_reads", "read_ahead_small", "read_ahead_large"],
        actors: &[],
        make: make::browser_starts,
    },
    Case {
        name: "quota_turns",
        first: &["cpu_limit"],
        also: &[],
        besides: &["cpu_bound"],
        actors: &[(Victim, "shop-web")],
        make: make::quota_turns,
    },
    Case {
        name: "compile_jobs",
        first: &["cpu_contention"],
        also: &[],
        besides: &[
            "cpu_bound",
            "first_touch",
            "exec_storm",
            "file_storm",
            "copy_on_write",
            "page_clearing",
            "thread_switching",
        ],
        actors: &[(Culprit, "cc1"), (Victim, "editor")],
        make: make::compile_jobs,
    },
    Case {
        name: "cron_among_idle",
        first: &["cpu_contention"],
        also: &[],
        besides: &["cpu_bound", "thread_switching"],
        actors: &[(Culprit, "nightly-report"), (Victim, "api-server")],
        make: make::cron_among_idle,
    },
];

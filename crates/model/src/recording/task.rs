//! What the kernel charged to one thread, or to all threads of one process and name. The
//! categories of delay overlap; accounting decides what may be added up.

use serde::{Deserialize, Serialize};

/// One category of delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delay {
    /// How many waits.
    pub count: u64,
    /// Their sum.
    pub total_ns: u64,
    /// The longest one; `None` if the kernel does not report it (before taskstats version 16).
    pub max_ns: Option<u64>,
}

/// The source of a task's figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskSource {
    /// The kernel, when the thread ended (taskstats exit listener).
    #[default]
    Exit,
    /// The kernel, queried for a thread that still ran at the end.
    Asked,
    /// /proc/PID/schedstat and field 42 of stat: run, queue and block I/O only.
    Proc,
}

/// One thread; or, where a recording has more than it keeps, several of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The parent of the process.
    pub ppid: u32,
    /// The thread's name.
    pub comm: String,
    /// How many threads this row sums up; 1 for a plain row.
    pub threads: u64,
    /// Where the figures are from.
    pub source: TaskSource,
    /// Life within the recording, summed over the threads of the row.
    pub alive_ns: u64,
    /// On a processor, exactly.
    pub run_ns: u64,
    /// In user mode, as the tick saw it.
    pub user_ns: u64,
    /// In the kernel, as the tick saw it.
    pub system_ns: u64,
    /// Runnable, waiting for a processor.
    pub queue: Delay,
    /// Waiting for block I/O; also what writers wait for when too much is dirty. `None`
    /// where delay accounting is off.
    pub block_io: Option<Delay>,
    /// Of which: reading swapped pages back.
    pub swap_in: Option<Delay>,
    /// Of which: freeing memory for itself.
    pub reclaim: Option<Delay>,
    /// Of which: reading again what was evicted.
    pub thrash: Option<Delay>,
    /// Of which: compaction.
    pub compact: Option<Delay>,
    /// Of which: copying write-protected pages, the first touch of zero pages among them.
    pub copy_on_write: Option<Delay>,
    /// Of which: interrupts.
    pub interrupts: Option<Delay>,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Bytes read from devices.
    pub read_bytes: u64,
    /// Bytes written to devices.
    pub write_bytes: u64,
    /// Bytes asked for by `read` and its relatives.
    pub read_chars: u64,
    /// Bytes given to `write` and its relatives.
    pub write_chars: u64,
    /// Calls of `read` and its relatives.
    pub read_calls: u64,
    /// Calls of `write` and its relatives.
    pub write_calls: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

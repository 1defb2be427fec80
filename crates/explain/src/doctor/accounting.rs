//! Rows of the sources that count: what the kernel charges to threads, whether anything stalls, and
//! how steadily a recorder can read it.

use super::needs::{
    ClosingSetting, IPC_LOCK, NET_ADMIN, PermitText, SYS_NICE, SYS_PTRACE, SourceNeeds,
};
use model::doctor::SourceId;

pub(super) const ROWS: &[SourceNeeds] = &[
    SourceNeeds {
        capabilities: &[NET_ADMIN],
        first_user_namespace: true,
        first_process_namespace: true,
        kernel: "a kernel with CONFIG_TASKSTATS",
        commands: &["run", "record", "explain"],
        then: "threads that begin and end between two samples are missing from thread time",
        ..SourceNeeds::plain(SourceId::Taskstats, "ends of threads (taskstats)")
    },
    SourceNeeds {
        setting: Some(ClosingSetting {
            name: "kernel.task_delayacct",
            closed: &["0"],
            except: None,
        }),
        open_setting: Some(PermitText {
            line: "sudo sysctl kernel.task_delayacct=1",
            risk: "Every switch of threads takes a little longer; `--apply` sets it for one run.",
        }),
        kernel: "a kernel with CONFIG_TASK_DELAY_ACCT",
        commands: &["run", "record", "explain"],
        then: "waits for block devices are only inferred where events are not seen either",
        ..SourceNeeds::plain(SourceId::DelayAccounting, "waits for devices (delay accounting)")
    },
    SourceNeeds {
        capabilities: &[SYS_PTRACE],
        first_user_namespace: true,
        kernel: "a kernel with CONFIG_TASK_IO_ACCOUNTING",
        commands: &["record", "warm show", "top", "ramdisk status"],
        then: "I/O and memory of other users' processes are left out, and they say so",
        ..SourceNeeds::plain(SourceId::OtherProcesses, "processes of other users (/proc)")
    },
    SourceNeeds {
        kernel: "a kernel with CONFIG_PSI, not started with psi=0",
        commands: &["record", "explain", "copy", "warm restore"],
        then: "findings lack stalls as evidence, and background work does not stop for others",
        ..SourceNeeds::plain(SourceId::Pressure, "stalls by resource (/proc/pressure)")
    },
    SourceNeeds {
        capabilities: &[SYS_NICE],
        first_user_namespace: true,
        kernel: "a kernel with real-time groups switched off, or a budget for this one",
        commands: &["record", "run", "top"],
        then: "on a busy machine samples come late; they are marked so",
        ..SourceNeeds::plain(SourceId::RealTime, "real-time priority of the sampler")
    },
    SourceNeeds {
        capabilities: &[IPC_LOCK],
        first_user_namespace: true,
        commands: &["record", "run", "top"],
        then: "where memory is short the recorder itself may wait for its pages",
        ..SourceNeeds::plain(SourceId::LockedMemory, "locked memory of the sampler")
    },
];

//! Rows of the events of the kernel, by programs in it and by rings of samples, and of what a
//! recorder needs to understand them.

use super::needs::{BPF, ClosingSetting, PERFMON, PermitText, SYSLOG, SourceNeeds};
use model::doctor::SourceId;

/// How a container is shown the tracepoints.
const TRACEFS: (PermitText, &str) = (
    PermitText {
        line: "mount -t tracefs -o nosuid,nodev,noexec tracefs /sys/kernel/tracing",
        risk: "Root can switch events on there; other users see nothing of it.",
    },
    "--volume=/sys/kernel/tracing:/sys/kernel/tracing:ro",
);

pub(super) const ROWS: &[SourceNeeds] = &[
    SourceNeeds {
        capabilities: &[BPF, PERFMON],
        first_user_namespace: true,
        first_process_namespace: true,
        calls: "bpf perf_event_open",
        kernel: "Linux 5.18 or newer, with CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF",
        commands: &["record", "run", "top", "view", "advise"],
        then: "they name no process and no file behind a finding; root gets rings of samples \
               instead, which can lose events",
        ..SourceNeeds::plain(SourceId::Ebpf, "programs in the kernel (eBPF)")
    },
    SourceNeeds {
        capabilities: &[PERFMON],
        root: true,
        first_user_namespace: true,
        first_process_namespace: true,
        mount: Some(TRACEFS),
        calls: "perf_event_open",
        kernel: "a kernel with CONFIG_FTRACE and CONFIG_PERF_EVENTS",
        commands: &["record", "run", "top", "view"],
        then: "where the kernel runs no programs either, waits are `unexplained: cause cannot be \
               seen`",
        ..SourceNeeds::plain(SourceId::Tracepoints, "tracepoints (rings of samples)")
    },
    SourceNeeds {
        capabilities: &[PERFMON],
        first_user_namespace: true,
        first_process_namespace: true,
        calls: "perf_event_open",
        kernel: "a kernel with CONFIG_PERF_EVENTS",
        commands: &["run", "record", "top"],
        then: "time on processors is not divided into user code, the kernel's parts and idle time",
        ..SourceNeeds::plain(SourceId::ProcessorSamples, "samples of processors (perf cpu-clock)")
    },
    SourceNeeds {
        capabilities: &[PERFMON],
        root: true,
        first_user_namespace: true,
        calls: "perf_event_open",
        kernel: "a kernel with CONFIG_PERF_EVENTS",
        commands: &["run", "record"],
        then: "`--trace faults` counts nothing, and new memory is judged by sampled counters",
        ..SourceNeeds::plain(SourceId::PageFaults, "page faults (perf)")
    },
    SourceNeeds {
        capabilities: &[BPF, PERFMON],
        first_user_namespace: true,
        first_process_namespace: true,
        calls: "bpf",
        kernel: "a kernel that traces reads of the page cache (mm_filemap_get_pages)",
        commands: &["advise", "record"],
        then: "`--hits` records nothing, and `advise` does not say what less memory would cost",
        ..SourceNeeds::plain(SourceId::PageHits, "pages used again in memory (eBPF)")
    },
    SourceNeeds {
        capabilities: &[SYSLOG],
        root: true,
        first_user_namespace: true,
        setting: Some(ClosingSetting {
            name: "kernel.kptr_restrict",
            closed: &["2"],
            except: None,
        }),
        open_setting: Some(PermitText {
            line: "sudo sysctl kernel.kptr_restrict=1",
            risk: "Root then sees addresses of the kernel, which help attacks on it.",
        }),
        kernel: "a kernel with CONFIG_KALLSYMS",
        commands: &["run", "record", "top"],
        then: "waits have no purpose: a lock, a pipe and a timer are all `sleep`",
        ..SourceNeeds::plain(SourceId::KernelSymbols, "functions of the kernel (kallsyms)")
    },
];

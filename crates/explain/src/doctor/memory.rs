//! Rows of memory: what is in it and in swap, whose it is, whether others may restore it, and pages
//! of other sizes.

use super::needs::{
    ClosingSetting, FOWNER, PermitText, SYS_ADMIN, SYS_NICE, SYS_PTRACE, SourceNeeds,
};
use model::doctor::SourceId;

pub(super) const ROWS: &[SourceNeeds] = &[
    SourceNeeds {
        capabilities: &[FOWNER],
        calls: "cachestat",
        kernel: "Linux 6.5 or newer",
        commands: &["copy", "warm show", "warm snapshot", "ramdisk status"],
        then: "what is cached of files of others is found by `mincore` where that is true, or is \
               not known",
        ..SourceNeeds::plain(SourceId::Cachestat, "cached pages of a file (cachestat)")
    },
    SourceNeeds {
        capabilities: &[SYS_ADMIN, SYS_PTRACE],
        first_user_namespace: true,
        kernel: "a kernel with CONFIG_PROC_PAGE_MONITOR",
        commands: &["warm snapshot", "warm restore", "warm show", "hog"],
        then: "evicted pages of other processes are not listed, or not in the order of their device",
        ..SourceNeeds::plain(SourceId::Pagemap, "pages and swap slots of processes (pagemap)")
    },
    SourceNeeds {
        capabilities: &[SYS_PTRACE, SYS_NICE],
        first_user_namespace: true,
        calls: "process_madvise process_vm_readv",
        kernel: "Linux 5.10 or newer",
        commands: &["warm restore"],
        then: "memory of other processes is not restored: `impossible here`",
        ..SourceNeeds::plain(SourceId::ProcessMemory, "memory of other processes")
    },
    SourceNeeds {
        setting: Some(ClosingSetting { name: "thp.enabled", closed: &["never"], except: None }),
        open_setting: Some(PermitText {
            line: "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
            risk: "Programs that ask for huge pages may take more memory.",
        }),
        kernel: "a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
        commands: &["measure memlat", "measure memcpy", "survey"],
        then: "figures with huge pages are left out, with the reason",
        ..SourceNeeds::plain(SourceId::TransparentHugePages, "transparent huge pages")
    },
    SourceNeeds {
        kernel: "a kernel and processor with huge pages of 2 MiB (CONFIG_HUGETLBFS)",
        set_up: Some(PermitText {
            line: "sudo sysctl vm.nr_hugepages=64",
            risk: "128 MiB of memory are then kept from everything else.",
        }),
        commands: &["measure memlat", "measure memcpy", "measure faults"],
        then: "`--pages huge` finds no page",
        ..SourceNeeds::plain(SourceId::HugePages, "huge pages of the pool (MAP_HUGETLB)")
    },
    SourceNeeds {
        capabilities: &[SYS_ADMIN],
        root: true,
        first_user_namespace: true,
        calls: "swapon swapoff",
        kernel: "a kernel with CONFIG_SWAP",
        commands: &["lab run", "survey", "hog", "warm snapshot"],
        then: "`lab run recovery-2012` cannot make an area of its own; others report the areas \
               that there are",
        ..SourceNeeds::plain(SourceId::Swap, "swap areas")
    },
];

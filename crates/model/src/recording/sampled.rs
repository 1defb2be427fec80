//! What samples of processors are counted by: where the processor was, what the kernel worked at,
//! and the purpose of the system call that it was in.
//!
//! A sample has one origin, outside of user code one class as well, and in a call of a purpose
//! that one too. So the parts overlap, and only those of one kind add up.

use serde::{Deserialize, Serialize};

/// A part of processor time, in the order of [`super::SampleRow::samples`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "docs/accounting.md defines each by the name of its series")]
pub enum SampledPart {
    User,
    Call,
    FaultFirstTouch,
    FaultCopyOnWrite,
    FaultFile,
    FaultSwap,
    FaultOther,
    Reclaim,
    Interrupt,
    Softirq,
    KernelThread,
    Other,
    KernelCopying,
    KernelClearing,
    KernelFileSystem,
    KernelNetwork,
    KernelLocks,
    KernelMemory,
    KernelScheduling,
    KernelBlock,
    KernelOther,
    ReadCalls,
    WriteCalls,
    FileCalls,
    ProcessCalls,
    MappingCalls,
}

impl SampledPart {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Those by origin come first; they add up to all samples.
    pub const ORIGINS: usize = 12;

    /// Then those by class; they add up to the samples outside of user code.
    pub const CLASSES: usize = 9;

    /// All of them with their names: those of the first two kinds are the ends of the names of
    /// their series (`trace.cpu.in.user`).
    pub const ALL: [(Self, &str); 26] = [
        (Self::User, "in.user"),
        (Self::Call, "in.call"),
        (Self::FaultFirstTouch, "in.fault_first_touch"),
        (Self::FaultCopyOnWrite, "in.fault_copy_on_write"),
        (Self::FaultFile, "in.fault_file"),
        (Self::FaultSwap, "in.fault_swap"),
        (Self::FaultOther, "in.fault_other"),
        (Self::Reclaim, "in.reclaim"),
        (Self::Interrupt, "in.interrupt"),
        (Self::Softirq, "in.softirq"),
        (Self::KernelThread, "in.kernel_thread"),
        (Self::Other, "in.other"),
        (Self::KernelCopying, "kernel.copying"),
        (Self::KernelClearing, "kernel.clearing"),
        (Self::KernelFileSystem, "kernel.file_system"),
        (Self::KernelNetwork, "kernel.network"),
        (Self::KernelLocks, "kernel.locks"),
        (Self::KernelMemory, "kernel.memory"),
        (Self::KernelScheduling, "kernel.scheduling"),
        (Self::KernelBlock, "kernel.block"),
        (Self::KernelOther, "kernel.other"),
        (Self::ReadCalls, "calls.read"),
        (Self::WriteCalls, "calls.write"),
        (Self::FileCalls, "calls.files"),
        (Self::ProcessCalls, "calls.processes"),
        (Self::MappingCalls, "calls.mappings"),
    ];

    /// Its name in JSON: `kernel.copying`.
    #[must_use]
    pub const fn id(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// What programs make system calls for, as far as a finding is about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPurpose {
    /// To read. Its samples leave out what [`CallShare`] names.
    Read,
    /// To write, likewise.
    Write,
    /// To open, look up, list, name or remove files.
    Files,
    /// To make and end processes.
    Processes,
    /// To change what is mapped where.
    Mappings,
}

impl CallPurpose {
    const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Files, Self::Processes, Self::Mappings];

    /// The purpose of a call; `None` if no finding is about it.
    #[must_use]
    pub fn of(call: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.calls().contains(&call))
    }

    /// The part that its samples are counted in.
    #[must_use]
    pub const fn part(self) -> SampledPart {
        match self {
            Self::Read => SampledPart::ReadCalls,
            Self::Write => SampledPart::WriteCalls,
            Self::Files => SampledPart::FileCalls,
            Self::Processes => SampledPart::ProcessCalls,
            Self::Mappings => SampledPart::MappingCalls,
        }
    }

    /// The calls of this purpose, as programs name them.
    #[must_use]
    pub const fn calls(self) -> &'static [&'static str] {
        match self {
            Self::Read => &["read", "pread64", "readv", "preadv", "preadv2"],
            Self::Write => &["write", "pwrite64", "writev", "pwritev", "pwritev2"],
            Self::Processes => &[
                "execve",
                "execveat",
                "clone",
                "clone3",
                "fork",
                "vfork",
                "exit",
                "exit_group",
                "wait4",
                "waitid",
            ],
            Self::Mappings => &[
                "mmap", "munmap", "mremap", "mprotect", "madvise", "brk", "mlock", "mlock2",
                "munlock",
            ],
            Self::Files => FILE_CALLS,
        }
    }
}

const FILE_CALLS: &[&str] = &[
    "open",
    "openat",
    "openat2",
    "creat",
    "close",
    "stat",
    "lstat",
    "fstat",
    "newfstatat",
    "statx",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
    "getdents",
    "getdents64",
    "unlink",
    "unlinkat",
    "rename",
    "renameat",
    "renameat2",
    "mkdir",
    "mkdirat",
    "rmdir",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "chmod",
    "fchmod",
    "fchmodat",
    "chown",
    "fchown",
    "lchown",
    "fchownat",
    "utimensat",
    "truncate",
    "ftruncate",
    "getxattr",
    "lgetxattr",
    "fgetxattr",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "listxattr",
    "llistxattr",
];

/// What a call to read or write spends its time on without being the call itself: other findings
/// account for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallShare {
    /// Serving interrupts.
    Interrupt,
    /// Freeing memory.
    Reclaim,
    /// Page faults.
    Fault,
    /// Handing requests to a block device and its driver.
    Block,
    /// Taking pages for the page cache and reading them in.
    CacheFill,
}

impl CallShare {
    /// All of them with the ends of the names of their series: `trace.cpu.within.read.reclaim`.
    pub const ALL: [(Self, &str); 5] = [
        (Self::Interrupt, "interrupt"),
        (Self::Reclaim, "reclaim"),
        (Self::Fault, "fault"),
        (Self::Block, "block"),
        (Self::CacheFill, "cache_fill"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_in_the_order_of_their_numbers() {
        for (number, (part, _)) in SampledPart::ALL.iter().enumerate() {
            assert_eq!(*part as usize, number);
        }
        assert_eq!(SampledPart::KernelCopying as usize, SampledPart::ORIGINS);
        let first_purpose = SampledPart::ORIGINS + SampledPart::CLASSES;
        assert_eq!(SampledPart::ReadCalls as usize, first_purpose);
    }

    #[test]
    fn a_call_has_one_purpose() {
        for purpose in CallPurpose::ALL {
            for call in purpose.calls() {
                assert_eq!(CallPurpose::of(call), Some(purpose), "{call}");
            }
        }
        assert_eq!(CallPurpose::of("futex"), None);
    }
}

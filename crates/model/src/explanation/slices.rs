//! The slices of the bars and the parts inside of them: their ids in JSON, and the one
//! table of their words that text, terminal and page share.
//!
//! JSON carries the ids as strings: a recording of a newer version may hold others, which
//! are shown by their id.

/// Defines an enum whose variants have an id each.
macro_rules! ids {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $id:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = concat!("`", $id, "`.")] $variant),*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The id in JSON.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$variant => $id),*
                }
            }

            /// The one with this id; `None` for an id of another version.
            #[must_use]
            pub fn of(id: &str) -> Option<Self> {
                match id {
                    $($id => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl From<$name> for String {
            fn from(this: $name) -> Self {
                this.id().to_owned()
            }
        }

        impl PartialEq<$name> for String {
            fn eq(&self, other: &$name) -> bool {
                self == other.id()
            }
        }
    };
}

ids! {
    /// What a thread, or the command as a whole, did with a piece of its time: a slice of
    /// a bar.
    TimeSlice {
        Run = "run",
        User = "user",
        Kernel = "kernel",
        Queue = "queue",
        BlockIo = "block_io",
        Children = "children",
        Sleep = "sleep",
        Asleep = "asleep",
        Idle = "idle",
        Steal = "steal",
        Unexplained = "unexplained",
    }
}

ids! {
    /// Why a thread spent time: a part inside of the slices, which overlaps with others.
    TimePart {
        User = "user",
        Kernel = "kernel",
        Interrupts = "interrupts",
        Steal = "steal",
        CpuLimit = "cpu_limit",
        FirstTouch = "first_touch",
        CopyOnWrite = "copy_on_write",
        FileFault = "file_fault",
        SwapFault = "swap_fault",
        OtherFault = "other_fault",
        SystemCalls = "system_calls",
        ReclaimRun = "reclaim_run",
        SoftInterrupts = "soft_interrupts",
        KernelThread = "kernel_thread",
        OtherKernel = "other_kernel",
        KernelCopying = "kernel_copying",
        KernelClearing = "kernel_clearing",
        KernelFileSystem = "kernel_file_system",
        KernelNetwork = "kernel_network",
        KernelLocks = "kernel_locks",
        KernelMemory = "kernel_memory",
        KernelScheduling = "kernel_scheduling",
        KernelBlock = "kernel_block",
        KernelUnclassified = "kernel_unclassified",
        DirectReclaim = "direct_reclaim",
        ReclaimThrottle = "reclaim_throttle",
        Compaction = "compaction",
        Refault = "refault",
        SwapIn = "swap_in",
        BlockRead = "block_read",
        BlockWrite = "block_write",
        DirectIo = "direct_io",
        DirtyThrottle = "dirty_throttle",
        Flush = "flush",
        BlockMetadata = "block_metadata",
        BlockJournal = "block_journal",
        WritebackWait = "writeback_wait",
        LowerDevice = "lower_device",
        BlockOther = "block_other",
        Timer = "timer",
        Lock = "lock",
        Pipe = "pipe",
        Socket = "socket",
        Poll = "poll",
        Signal = "signal",
        FileLock = "file_lock",
        FileSystem = "file_system",
        Fault = "fault",
        KernelWait = "kernel_wait",
        OtherWait = "other_wait",
    }
}

impl TimeSlice {
    /// The short words (`run queue`), for labels, and the long ones (`waiting for a
    /// processor`), for legends.
    #[must_use]
    pub const fn words(self) -> (&'static str, &'static str) {
        match self {
            TimeSlice::Run => ("CPU", "on a processor"),
            TimeSlice::User => ("user", "in user mode"),
            TimeSlice::Kernel => ("kernel", "in the kernel"),
            TimeSlice::Queue => ("run queue", "waiting for a processor"),
            TimeSlice::BlockIo => ("block I/O", "waiting for block I/O"),
            TimeSlice::Children => ("children", "waiting for children"),
            TimeSlice::Sleep => ("sleep", "asleep"),
            TimeSlice::Asleep => ("asleep", "asleep"),
            TimeSlice::Idle => ("idle", "idle"),
            TimeSlice::Steal => ("steal", "taken by the host"),
            TimeSlice::Unexplained => ("unexplained", "unexplained"),
        }
    }
}

impl TimePart {
    /// The words of a part whose id says less than a person needs; `None` where the id's own
    /// words do.
    const fn words(self) -> Option<&'static str> {
        Some(match self {
            Self::FileFault => "faults on files",
            Self::SwapFault => "faults on swap",
            Self::OtherFault => "other faults",
            Self::ReclaimRun => "reclaim, running",
            Self::KernelThread => "kernel threads",
            Self::OtherKernel => "other kernel",
            Self::KernelCopying => "kernel: copying",
            Self::KernelClearing => "kernel: clearing pages",
            Self::KernelFileSystem => "kernel: file system",
            Self::KernelNetwork => "kernel: network",
            Self::KernelLocks => "kernel: locks",
            Self::KernelMemory => "kernel: memory",
            Self::KernelScheduling => "kernel: scheduling",
            Self::KernelBlock => "kernel: block layer",
            Self::KernelUnclassified => "kernel: other",
            Self::BlockMetadata => "file system's own reads",
            Self::BlockJournal => "journal commits",
            Self::WritebackWait => "write-back to end",
            Self::LowerDevice => "device below",
            _ => return None,
        })
    }
}

/// What the id of a part of one system call starts with: `call_openat`. Such parts are not in
/// [`TimePart`], as their names are the kernel's.
pub const CALL_PART: &str = "call_";

/// The short words for the id of a slice or part: `CPU`, `dirty throttle`, `openat call`.
#[must_use]
pub fn short_words(id: &str) -> String {
    if let Some(slice) = TimeSlice::of(id) {
        return slice.words().0.to_owned();
    }
    if let Some(words) = TimePart::of(id).and_then(TimePart::words) {
        return words.to_owned();
    }
    match id.strip_prefix(CALL_PART) {
        Some(call) => format!("{call} call"),
        None => id.replace('_', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_lead_back_to_their_variant() {
        for slice in TimeSlice::ALL {
            assert_eq!(TimeSlice::of(slice.id()), Some(*slice));
        }
        for part in TimePart::ALL {
            assert_eq!(TimePart::of(part.id()), Some(*part));
        }
        assert_eq!(TimeSlice::of("of_a_later_version"), None);
    }

    #[test]
    fn an_unknown_id_is_shown_by_its_words() {
        assert_eq!(short_words("queue"), "run queue");
        assert_eq!(short_words("of_a_later_version"), "of a later version");
        assert_eq!(short_words("kernel_locks"), "kernel: locks");
        assert_eq!(short_words("call_mq_open"), "mq_open call");
    }
}

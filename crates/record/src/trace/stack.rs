//! From a kernel stack to what its thread waits for, by the names of a few functions.
//!
//! Addresses of these functions are read from /proc/kallsyms once for the process; nothing
//! else of it is kept. A kernel that hides addresses leaves the table empty, and every wait
//! without a class. Names change between kernels, so each wait is known by several functions,
//! the system call among them.
//!
//! For a sleep the innermost function that has a class decides: a page fault inside of
//! `poll` is a fault. For block I/O the purpose decides, which is further out: a read inside
//! of `fsync` belongs to the flush. [`Purpose`] is in order of its weight.

use super::event::{Io, Sleep, State};
use std::collections::HashMap;
use std::io::BufRead;
use std::sync::OnceLock;

/// Bit 1 of a thread's state at a switch: asleep, not to be woken by signals.
const UNINTERRUPTIBLE: u64 = 2;
/// No function is longer; a table that is out of order shall not claim more.
const FUNCTION_BYTES_MAX: u64 = 64 << 10;

/// For a file of several megabytes that is read once.
const BUFFER_BYTES: usize = 64 << 10;

/// What block I/O is for; the first one that the stack holds decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Purpose {
    Reclaim,
    SwapIn,
    Dirty,
    Flush,
    Direct,
    Read,
    Write,
}

impl Purpose {
    fn io(self) -> Io {
        match self {
            Purpose::SwapIn => Io::SwapIn,
            Purpose::Dirty => Io::Dirty,
            Purpose::Flush => Io::Flush,
            Purpose::Direct => Io::Direct,
            Purpose::Read => Io::Read,
            // What reclaim waits for are pages that it writes.
            Purpose::Reclaim | Purpose::Write => Io::Write,
        }
    }
}

/// What a function in a stack says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meaning {
    sleep: Option<Sleep>,
    purpose: Option<Purpose>,
    is_io_wait: bool,
    is_children: bool,
}

/// Functions with one meaning for sleepers and one for block I/O.
type Group = (Option<Sleep>, Option<Purpose>, &'static [&'static str]);

const GROUPS: &[Group] = &[
    (Some(Sleep::Kernel), None, &["copy_process"]),
    (
        Some(Sleep::Timer),
        None,
        &["do_nanosleep", "hrtimer_nanosleep", "common_nsleep"],
    ),
    (
        Some(Sleep::Lock),
        None,
        &[
            "futex_wait",
            "__futex_wait",
            "futex_wait_queue",
            "futex_do_wait",
            "futex_lock_pi",
            "futex_wait_requeue_pi",
            "futex_wait_multiple",
            "do_futex",
            "do_semtimedop",
            "__do_semtimedop",
        ],
    ),
    (
        Some(Sleep::Pipe),
        None,
        &[
            "pipe_read",
            "pipe_write",
            "anon_pipe_read",
            "anon_pipe_write",
            "fifo_pipe_read",
            "fifo_pipe_write",
            "pipe_wait_readable",
            "pipe_wait_writable",
            "fifo_open",
            "wait_for_partner",
        ],
    ),
    (
        Some(Sleep::Poll),
        None,
        &[
            "ep_poll",
            "do_epoll_wait",
            "do_epoll_pwait",
            "__x64_sys_epoll_wait",
            "__x64_sys_epoll_pwait",
            "__arm64_sys_epoll_pwait",
            "do_poll",
            "do_sys_poll",
            "do_select",
            "core_sys_select",
            "poll_schedule_timeout",
            "eventfd_read",
            "timerfd_read",
            "timerfd_read_iter",
            "inotify_read",
            "fanotify_read",
            "n_tty_read",
            "io_cqring_wait",
            "read_events",
            "do_io_getevents",
        ],
    ),
    (
        Some(Sleep::Socket),
        None,
        &[
            "unix_stream_read_generic",
            "unix_stream_sendmsg",
            "unix_dgram_recvmsg",
            "__unix_dgram_recvmsg",
            "unix_wait_for_peer",
            "unix_accept",
            "sk_wait_data",
            "sk_stream_wait_memory",
            "sk_stream_wait_connect",
            "__skb_wait_for_more_packets",
            "sock_alloc_send_pskb",
            "inet_csk_accept",
            "inet_stream_connect",
            "inet_wait_for_connect",
            "tcp_recvmsg",
            "tcp_sendmsg",
            "sock_recvmsg",
            "sock_sendmsg",
            "__sock_sendmsg",
            "sock_read_iter",
            "sock_write_iter",
            "__sys_recvfrom",
            "__sys_sendto",
            "___sys_recvmsg",
            "___sys_sendmsg",
            "__sys_accept4",
            "do_accept",
            "__sys_connect",
        ],
    ),
    (
        Some(Sleep::Signal),
        None,
        &[
            "do_sigtimedwait",
            "sigsuspend",
            "__do_sys_pause",
            "__x64_sys_pause",
            "do_signal_stop",
            "ptrace_stop",
            "ptrace_do_notify",
            "do_freezer_trap",
        ],
    ),
    (
        Some(Sleep::Flush),
        Some(Purpose::Flush),
        &[
            "jbd2_log_wait_commit",
            "jbd2_complete_transaction",
            "blkdev_issue_flush",
            "ext4_sync_file",
            "ext4_fc_commit",
            "xfs_file_fsync",
            "btrfs_sync_file",
            "f2fs_sync_file",
            "blkdev_fsync",
            "vfs_fsync_range",
            "do_fsync",
            "file_write_and_wait_range",
            "sync_filesystem",
            "ksys_sync",
            "sync_inodes_sb",
            "ksys_sync_file_range",
            "sync_file_range",
            "generic_write_sync",
        ],
    ),
    (
        Some(Sleep::Reclaim),
        Some(Purpose::Reclaim),
        &[
            "reclaim_throttle",
            "shrink_folio_list",
            "shrink_inactive_list",
            "shrink_lruvec",
            "shrink_node",
            "try_to_free_pages",
            "try_to_free_mem_cgroup_pages",
            "throttle_direct_reclaim",
            "mem_cgroup_handle_over_high",
            "__mem_cgroup_handle_over_high",
            "mem_cgroup_oom_synchronize",
        ],
    ),
    (
        Some(Sleep::Fault),
        Some(Purpose::SwapIn),
        &[
            "do_swap_page",
            "swapin_readahead",
            "swap_cluster_readahead",
            "shmem_swapin_folio",
            "swap_vma_readahead",
        ],
    ),
    (
        Some(Sleep::File),
        Some(Purpose::Dirty),
        &[
            "balance_dirty_pages",
            "balance_dirty_pages_ratelimited_flags",
        ],
    ),
    (
        Some(Sleep::File),
        Some(Purpose::Direct),
        &[
            "__iomap_dio_rw",
            "iomap_dio_rw",
            "__blockdev_direct_IO",
            "blkdev_direct_IO",
            "__blkdev_direct_IO",
            "__blkdev_direct_IO_simple",
            "blkdev_direct_write",
        ],
    ),
    (Some(Sleep::Fault), Some(Purpose::Read), &["filemap_fault"]),
    (
        Some(Sleep::File),
        Some(Purpose::Read),
        &[
            "filemap_read",
            "filemap_get_pages",
            "filemap_update_page",
            "filemap_splice_read",
            "page_cache_ra_unbounded",
            "page_cache_ra_order",
            "page_cache_sync_ra",
            "page_cache_async_ra",
            "page_cache_sync_readahead",
            "force_page_cache_ra",
            "do_read_cache_folio",
            "read_cache_folio",
            "ext4_bread",
            "__ext4_sb_bread_gfp",
            "ext4_read_bh",
            "__bread_gfp",
            "bdev_getblk",
            "ext4_mpage_readpages",
            "mpage_readahead",
            "iomap_readahead",
            "ext4_find_entry",
            "__ext4_find_entry",
            "ext4_readdir",
            "ext4_get_inode_loc",
            "__ext4_get_inode_loc",
            "ext4_read_block_bitmap",
            "ext4_wait_block_bitmap",
            "ext4_read_inode_bitmap",
            "ext4_iget",
            "__ext4_iget",
            "vfs_read",
            "vfs_readv",
        ],
    ),
    (
        Some(Sleep::File),
        Some(Purpose::Write),
        &[
            "generic_perform_write",
            "iomap_file_buffered_write",
            "ext4_buffered_write_iter",
            "ext4_writepages",
            "ext4_do_writepages",
            "xfs_file_write_iter",
            "ext4_page_mkwrite",
            "folio_wait_writeback",
            "folio_wait_stable",
            "do_writepages",
            "wb_workfn",
            "jbd2_journal_commit_transaction",
            "kjournald2",
            "vfs_write",
            "vfs_writev",
            "ext4_setattr",
            "do_truncate",
        ],
    ),
    (
        Some(Sleep::FileLock),
        None,
        &[
            "flock_lock_inode_wait",
            "posix_lock_inode_wait",
            "locks_lock_inode_wait",
            "fcntl_setlk",
            "do_lock_file_wait",
            "__break_lease",
        ],
    ),
    (
        Some(Sleep::File),
        None,
        &[
            "do_sys_openat2",
            "do_filp_open",
            "filename_lookup",
            "do_unlinkat",
            "do_renameat2",
            "do_mkdirat",
            "iterate_dir",
            "vfs_statx",
            "vfs_fallocate",
            "start_this_handle",
            "wait_transaction_locked",
            "fuse_simple_request",
            "request_wait_answer",
            "nfs_wait_bit_killable",
            "rpc_wait_bit_killable",
        ],
    ),
    (
        Some(Sleep::Fault),
        None,
        &[
            "handle_userfault",
            "handle_mm_fault",
            "lock_mm_and_find_vma",
            "do_user_addr_fault",
            "exc_page_fault",
            "do_page_fault",
            "do_mem_abort",
            "__get_user_pages",
            "migration_entry_wait",
        ],
    ),
];

/// Where a wait for a block device begins.
const IO_WAITS: &[&str] = &["io_schedule", "io_schedule_timeout", "blk_io_schedule"];

/// Waits for one's own children; for a child of `vfork` until it runs its own program.
const CHILDREN: &[&str] = &[
    "do_wait",
    "__do_wait",
    "kernel_wait4",
    "kernel_wait",
    "__do_sys_waitid",
    "kernel_waitid",
    "wait_for_vfork_done",
    // What it waits for by itself is a child of vfork; its other waits are below copy_process.
    "kernel_clone",
];

/// The meanings by name.
fn names() -> HashMap<&'static str, Meaning> {
    let mut names: HashMap<&'static str, Meaning> = HashMap::new();
    for (sleep, purpose, functions) in GROUPS {
        for name in *functions {
            let meaning = names.entry(name).or_default();
            (meaning.sleep, meaning.purpose) = (*sleep, *purpose);
        }
    }
    for name in IO_WAITS {
        names.entry(name).or_default().is_io_wait = true;
    }
    for name in CHILDREN {
        names.entry(name).or_default().is_children = true;
    }
    names
}

/// The functions that matter, by name and by address.
#[derive(Debug)]
pub struct Table {
    names: HashMap<&'static str, Meaning>,
    /// Start, end and meaning, in order.
    ranges: Vec<(u64, u64, Meaning)>,
}

impl Table {
    /// The table of the running kernel, read on first use.
    pub fn of_kernel() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| match std::fs::File::open("/proc/kallsyms") {
            Ok(file) => Self::read(std::io::BufReader::with_capacity(BUFFER_BYTES, file)),
            Err(_) => Self::read(std::io::empty()),
        })
    }

    /// A table without addresses, for those who need no stacks.
    pub fn none() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| Self::read(std::io::empty()))
    }

    /// Reads lines of address, kind and name.
    fn read(mut source: impl BufRead) -> Self {
        let names = names();
        let shapes = Shapes::of(names.keys().copied());
        let mut ranges: Vec<(u64, u64, Meaning)> = Vec::new();
        let mut line = Vec::new();
        // Of the ranges, this many have their end; the others begin at the same address.
        let mut ended = 0;
        while source
            .read_until(b'\n', &mut line)
            .is_ok_and(|bytes| bytes > 0)
        {
            // A hundred thousand lines, of which two hundred matter: most are not looked at.
            let name = split_symbol(&line).filter(|(.., name)| shapes.may_have(name));
            let known = name.and_then(|(.., name)| names.get(std::str::from_utf8(name).ok()?));
            if (known.is_some() || ended < ranges.len())
                && let Some(address) = split_symbol(&line).and_then(function_address)
            {
                close(&mut ranges, &mut ended, address);
                ranges.extend(known.map(|meaning| (address, address.saturating_add(1), *meaning)));
            }
            line.clear();
        }
        ranges.sort_unstable_by_key(|(start, ..)| *start);
        Self { names, ranges }
    }

    fn meaning(&self, address: u64) -> Option<Meaning> {
        // A return address may be the first byte behind the function, never its first byte.
        let after = self.ranges.partition_point(|(start, ..)| *start < address);
        let (_, end, meaning) = self.ranges.get(after.checked_sub(1)?)?;
        (address <= *end).then_some(*meaning)
    }

    /// What a thread waits for that leaves its processor in `state` (the kernel's bits) with
    /// this stack. `None` for one that could go on.
    pub fn classify(&self, state: u64, stack: impl Iterator<Item = u64>) -> Option<State> {
        if state & 0xff == 0 {
            return None;
        }
        let mut judge = Judge::default();
        // Marks between parts of a stack are the largest numbers.
        for address in stack.filter(|address| *address < u64::MAX - 4095) {
            judge.frames += 1;
            if let Some(meaning) = self.meaning(address) {
                judge.add(meaning);
            }
        }
        let is_blocked = state & UNINTERRUPTIBLE != 0;
        let is_io = is_blocked && (judge.is_io_wait || self.ranges.is_empty());
        Some(judge.verdict(is_io, !self.ranges.is_empty()))
    }

    /// As [`Table::classify`] for a thread that sleeps already, from the text of
    /// /proc/PID/task/TID/stack, which leaves the scheduler's own functions out.
    pub fn classify_text(&self, is_blocked: bool, text: &str) -> State {
        let mut judge = Judge::default();
        for line in text.lines() {
            judge.frames += 1;
            let name = line.split_whitespace().last().unwrap_or_default();
            let name = name.split(['+', '.']).next().unwrap_or_default();
            if let Some(meaning) = self.names.get(name) {
                judge.add(*meaning);
            }
        }
        let is_io = is_blocked && judge.purpose.is_some();
        judge.verdict(is_io, true)
    }
}

/// What a stack has said so far.
#[derive(Default)]
struct Judge {
    frames: usize,
    sleep: Option<Sleep>,
    purpose: Option<Purpose>,
    is_io_wait: bool,
    is_children: bool,
}

impl Judge {
    /// Adds a function, from the innermost outwards.
    fn add(&mut self, meaning: Meaning) {
        if !self.is_children {
            self.sleep = self.sleep.or(meaning.sleep);
        }
        let purposes = [self.purpose, meaning.purpose];
        self.purpose = purposes.into_iter().flatten().min();
        self.is_io_wait |= meaning.is_io_wait;
        self.is_children |= meaning.is_children && self.sleep.is_none();
    }

    fn verdict(&self, is_io: bool, has_names: bool) -> State {
        if is_io {
            return State::BlockIo(self.purpose.map_or(Io::Other, Purpose::io));
        }
        if self.is_children {
            return State::Children;
        }
        let fallback = if self.frames > 0 && has_names {
            Sleep::Kernel
        } else {
            Sleep::Unknown
        };
        State::Sleep(self.sleep.unwrap_or(fallback))
    }
}

/// Gives the open ranges their end where another function begins.
fn close(ranges: &mut [(u64, u64, Meaning)], ended: &mut usize, address: u64) {
    let all = ranges.len();
    let open = &mut ranges[*ended..];
    if open.first().is_none_or(|(start, ..)| *start == address) {
        return;
    }
    for (start, end, _) in open {
        let most = start.saturating_add(FUNCTION_BYTES_MAX);
        *end = if address > *start {
            address.min(most)
        } else {
            most
        };
    }
    *ended = all;
}

/// A symbol's address, its kind, and its name without what a compiler added.
type Symbol<'a> = (&'a [u8], u8, &'a [u8]);

/// Reads `ffffffff81000000 T name.cold\t[module]`.
fn split_symbol(line: &[u8]) -> Option<Symbol<'_>> {
    let blank = line.iter().position(|byte| *byte == b' ')?;
    let (address, rest) = line.split_at(blank);
    let [_, kind, b' ', name @ ..] = rest else {
        return None;
    };
    let ends = |byte: &u8| matches!(byte, b'.' | b'\t' | b'\n' | b' ');
    let end = name.iter().position(ends).unwrap_or(name.len());
    Some((address, *kind, &name[..end]))
}

/// Where a function begins; `None` for data, and where the kernel hides addresses.
fn function_address((address, kind, _): Symbol<'_>) -> Option<u64> {
    let address = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    (address != 0 && matches!(kind, b't' | b'T' | b'w' | b'W')).then_some(address)
}

/// Which lengths the names have that begin with each byte: cheaper than a look-up for the
/// many that are no such name.
struct Shapes([u64; 256]);

impl Shapes {
    fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut shapes = Self([0; 256]);
        for name in names {
            if let Some(first) = name.as_bytes().first() {
                shapes.0[usize::from(*first)] |= 1 << name.len().min(63);
            }
        }
        shapes
    }

    fn may_have(&self, name: &[u8]) -> bool {
        let lengths = name.first().map_or(0, |first| self.0[usize::from(*first)]);
        lengths >> name.len().min(63) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "0000000000000000 A fixed\n\
        1000 T schedule\n1100 T io_schedule\n1200 t other\n\
        2000 t filemap_read.constprop.0\n2000 T alias\n2100 T ext4_sync_file\n2200 T pad\n\
        3000 T do_swap_page\n3100 T do_sys_poll\n3200 T handle_mm_fault\n3300 T do_wait\n\
        3400 T futex_wait\n3500 T end\n";

    fn classify(state: u64, stack: &[u64]) -> Option<State> {
        let table = Table::read(SYMBOLS.as_bytes());
        table.classify(state, stack.iter().copied())
    }

    #[test]
    fn block_io_is_named_by_its_purpose() {
        let mark = u64::MAX - 127;
        let read = [mark, 0x1010, 0x1110, 0x2010, 0x9999];
        assert_eq!(classify(2, &read), Some(State::BlockIo(Io::Read)));
        let flush = [0x1010, 0x1110, 0x2010, 0x2110];
        assert_eq!(classify(2, &flush), Some(State::BlockIo(Io::Flush)));
        let swap = [0x1110, 0x2010, 0x3010, 0x3210];
        assert_eq!(classify(0x102, &swap), Some(State::BlockIo(Io::SwapIn)));
        assert_eq!(classify(2, &[0x1110]), Some(State::BlockIo(Io::Other)));
    }

    #[test]
    fn sleeps_are_named_by_the_innermost_function() {
        let sleep = |stack: &[u64]| classify(1, stack);
        assert_eq!(sleep(&[0x1010, 0x3410]), Some(State::Sleep(Sleep::Lock)));
        let fault_in_poll = [0x1010, 0x3210, 0x3110];
        assert_eq!(sleep(&fault_in_poll), Some(State::Sleep(Sleep::Fault)));
        assert_eq!(sleep(&[0x1010, 0x3310]), Some(State::Children));
        assert_eq!(sleep(&[0x1010, 0x1210]), Some(State::Sleep(Sleep::Kernel)));
        assert_eq!(sleep(&[]), Some(State::Sleep(Sleep::Unknown)));
        // Without io_schedule it is no block I/O, whatever was read.
        assert_eq!(
            classify(2, &[0x1010, 0x2010]),
            Some(State::Sleep(Sleep::File))
        );
    }

    #[test]
    fn one_that_could_go_on_waits_for_nothing() {
        assert_eq!(classify(0, &[0x1010, 0x3410]), None);
        assert_eq!(classify(0x100, &[0x1010]), None, "preempted");
    }

    #[test]
    fn a_range_ends_where_the_next_symbol_begins() {
        let table = Table::read(SYMBOLS.as_bytes());
        assert!(table.meaning(0x2000).is_none(), "no call returns there");
        assert!(table.meaning(0x2001).is_some());
        assert!(
            table.meaning(0x2100).is_some(),
            "a call as the last instruction"
        );
        assert!(table.meaning(0x2201).is_none());
    }

    #[test]
    fn hidden_addresses_leave_waits_without_a_class() {
        let table = Table::read("0000000000000000 T io_schedule\n".as_bytes());
        let stack = [0x1110u64, 0x2010];
        let state = table.classify(2, stack.into_iter());
        assert_eq!(state, Some(State::BlockIo(Io::Other)));
        let state = table.classify(1, stack.into_iter());
        assert_eq!(state, Some(State::Sleep(Sleep::Unknown)));
    }

    #[test]
    fn a_stack_in_proc_is_read_by_name() {
        let table = Table::read(std::io::empty());
        let text = "[<0>] futex_do_wait+0x41/0x80\n[<0>] __futex_wait+0x8a/0x100\n";
        assert_eq!(table.classify_text(false, text), State::Sleep(Sleep::Lock));
        let text = "[<0>] folio_wait_bit_common+0x1/0x2\n[<0>] filemap_read.isra.0+0x1/0x2\n";
        assert_eq!(table.classify_text(true, text), State::BlockIo(Io::Read));
    }

    #[test]
    fn this_kernel_has_functions_of_each_class() {
        let table = Table::of_kernel();
        if table.ranges.is_empty() {
            return testkit::skip("/proc/kallsyms with addresses");
        }
        let has = |wanted: fn(&Meaning) -> bool| table.ranges.iter().any(|(.., m)| wanted(m));
        assert!(has(|meaning| meaning.is_io_wait));
        assert!(has(|meaning| meaning.is_children));
        assert!(has(|meaning| meaning.sleep == Some(Sleep::Lock)));
        assert!(has(|meaning| meaning.purpose == Some(Purpose::Read)));
    }
}

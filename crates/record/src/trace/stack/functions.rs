//! What a few functions of the kernel say of a thread that has them on its stack.
//!
//! Names change between kernels, so each wait is known by several functions, the system call
//! among them. For block I/O the purpose decides, which may be further out than the wait: a
//! read inside of `fsync` belongs to the flush. [`IoPurpose`] is in order of its weight.

use crate::trace::event::{Io, Sleep};
use std::collections::HashMap;

/// What block I/O is for; the first one that the stack holds decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum IoPurpose {
    Reclaim,
    SwapIn,
    Dirty,
    Journal,
    Flush,
    Lower,
    Direct,
    Metadata,
    Read,
    Writeback,
    Write,
}

impl IoPurpose {
    pub fn io(self) -> Io {
        match self {
            IoPurpose::SwapIn => Io::SwapIn,
            IoPurpose::Dirty => Io::Dirty,
            IoPurpose::Flush => Io::Flush,
            IoPurpose::Direct => Io::Direct,
            IoPurpose::Metadata => Io::Metadata,
            IoPurpose::Journal => Io::Journal,
            IoPurpose::Writeback => Io::Writeback,
            IoPurpose::Lower => Io::Lower,
            IoPurpose::Read => Io::Read,
            // What reclaim waits for are pages that it writes.
            IoPurpose::Reclaim | IoPurpose::Write => Io::Write,
        }
    }
}

/// What a function in a stack says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FunctionMeaning {
    pub sleep: Option<Sleep>,
    pub purpose: Option<IoPurpose>,
    /// Whether a wait for a block device begins here.
    pub is_io_wait: bool,
    /// Whether children are waited for.
    pub is_children: bool,
}

/// Functions, separated by white space, with one meaning for sleepers and one for block I/O.
type Group = (Option<Sleep>, Option<IoPurpose>, &'static str);

const GROUPS: &[Group] = &[
    (Some(Sleep::Kernel), None, "copy_process"),
    (Some(Sleep::Timer), None, "do_nanosleep hrtimer_nanosleep common_nsleep"),
    (
        Some(Sleep::Lock),
        None,
        "futex_wait __futex_wait futex_wait_queue futex_do_wait futex_lock_pi \
        futex_wait_requeue_pi futex_wait_multiple do_futex do_semtimedop __do_semtimedop",
    ),
    (
        Some(Sleep::Pipe),
        None,
        "pipe_read pipe_write anon_pipe_read anon_pipe_write fifo_pipe_read fifo_pipe_write \
        pipe_wait_readable pipe_wait_writable fifo_open wait_for_partner",
    ),
    (
        Some(Sleep::Poll),
        None,
        "ep_poll do_epoll_wait do_epoll_pwait __x64_sys_epoll_wait __x64_sys_epoll_pwait \
        __arm64_sys_epoll_pwait do_poll do_sys_poll do_select core_sys_select \
        poll_schedule_timeout eventfd_read timerfd_read timerfd_read_iter inotify_read \
        fanotify_read n_tty_read io_cqring_wait read_events do_io_getevents",
    ),
    (
        Some(Sleep::Socket),
        None,
        "unix_stream_read_generic unix_stream_sendmsg unix_dgram_recvmsg __unix_dgram_recvmsg \
        unix_wait_for_peer unix_accept sk_wait_data sk_stream_wait_memory sk_stream_wait_connect \
        __skb_wait_for_more_packets sock_alloc_send_pskb inet_csk_accept inet_stream_connect \
        inet_wait_for_connect tcp_recvmsg tcp_sendmsg sock_recvmsg sock_sendmsg __sock_sendmsg \
        sock_read_iter sock_write_iter __sys_recvfrom __sys_sendto ___sys_recvmsg ___sys_sendmsg \
        __sys_accept4 do_accept __sys_connect",
    ),
    (
        Some(Sleep::Signal),
        None,
        "do_sigtimedwait sigsuspend __do_sys_pause __x64_sys_pause do_signal_stop ptrace_stop \
        ptrace_do_notify do_freezer_trap",
    ),
    (
        Some(Sleep::Flush),
        Some(IoPurpose::Flush),
        "jbd2_log_wait_commit jbd2_complete_transaction blkdev_issue_flush ext4_sync_file \
        ext4_fc_commit xfs_file_fsync btrfs_sync_file f2fs_sync_file blkdev_fsync vfs_fsync_range \
        do_fsync file_write_and_wait_range sync_filesystem ksys_sync sync_inodes_sb \
        ksys_sync_file_range sync_file_range generic_write_sync",
    ),
    (
        Some(Sleep::Reclaim),
        Some(IoPurpose::Reclaim),
        "reclaim_throttle shrink_folio_list shrink_inactive_list shrink_lruvec shrink_node \
        try_to_free_pages try_to_free_mem_cgroup_pages throttle_direct_reclaim \
        mem_cgroup_handle_over_high __mem_cgroup_handle_over_high mem_cgroup_oom_synchronize",
    ),
    (
        Some(Sleep::Fault),
        Some(IoPurpose::SwapIn),
        "do_swap_page swapin_readahead swap_cluster_readahead shmem_swapin_folio \
        swap_vma_readahead",
    ),
    (
        Some(Sleep::File),
        Some(IoPurpose::Dirty),
        "balance_dirty_pages balance_dirty_pages_ratelimited_flags",
    ),
    (
        Some(Sleep::File),
        Some(IoPurpose::Direct),
        "__iomap_dio_rw iomap_dio_rw __blockdev_direct_IO blkdev_direct_IO __blkdev_direct_IO \
        __blkdev_direct_IO_simple blkdev_direct_write",
    ),
    (Some(Sleep::Fault), Some(IoPurpose::Read), "filemap_fault"),
    (
        Some(Sleep::File),
        Some(IoPurpose::Read),
        "filemap_read filemap_get_pages filemap_update_page filemap_splice_read \
        page_cache_ra_unbounded page_cache_ra_order page_cache_sync_ra page_cache_async_ra \
        page_cache_sync_readahead force_page_cache_ra ext4_mpage_readpages mpage_readahead \
        iomap_readahead vfs_read vfs_readv",
    ),
    (
        Some(Sleep::File),
        Some(IoPurpose::Metadata),
        "ext4_bread __ext4_sb_bread_gfp ext4_sb_bread ext4_read_bh ext4_read_bh_lock __bread_gfp \
        bdev_getblk __getblk_slow bh_read bh_submit_read __bh_read ext4_find_entry \
        __ext4_find_entry ext4_readdir ext4_get_inode_loc __ext4_get_inode_loc \
        ext4_read_block_bitmap ext4_wait_block_bitmap ext4_read_block_bitmap_nowait \
        ext4_read_inode_bitmap ext4_iget __ext4_iget read_extent_tree_block \
        __read_extent_tree_block ext4_ext_find_extent ext4_find_extent ext4_mb_init_cache \
        ext4_mb_load_buddy_gfp ext4_dx_find_entry htree_dirblock_to_tree xfs_buf_read_map \
        xfs_buf_iowait xfs_trans_read_buf_map xfs_imap_to_bp xfs_iget btrfs_read_extent_buffer \
        read_extent_buffer_pages read_tree_block btrfs_search_slot do_read_cache_folio \
        read_cache_folio fat__get_entry fat_get_entry fat_ent_bread fat_ent_read",
    ),
    (
        Some(Sleep::Flush),
        Some(IoPurpose::Journal),
        // Not kjournald2: it is in the stack of a journal's thread that has nothing to do.
        "jbd2_journal_commit_transaction journal_wait_on_commit_record jbd2_log_do_checkpoint __jbd2_log_wait_for_space jbd2_journal_get_write_access \
        do_get_write_access jbd2_journal_get_undo_access xlog_wait_on_iclog xlog_force_lsn \
        xfs_log_force btrfs_commit_transaction",
    ),
    (
        Some(Sleep::File),
        Some(IoPurpose::Writeback),
        "folio_wait_writeback folio_wait_stable __filemap_fdatawait_range \
        filemap_fdatawait_range_keep_errors truncate_inode_pages_range",
    ),
    (
        Some(Sleep::File),
        Some(IoPurpose::Lower),
        "lo_rw_aio loop_process_work lo_complete_rq dm_submit_bio __dm_destroy dm_wait_for_completion \
        md_submit_bio md_handle_request raid1_read_request raid10_read_request raid5_make_request \
        bcache_submit_bio cached_dev_submit_bio",
    ),
    (
        Some(Sleep::File),
        Some(IoPurpose::Write),
        "generic_perform_write iomap_file_buffered_write ext4_buffered_write_iter ext4_writepages \
        ext4_do_writepages xfs_file_write_iter ext4_page_mkwrite do_writepages wb_workfn \
        vfs_write vfs_writev ext4_setattr do_truncate",
    ),
    (
        Some(Sleep::FileLock),
        None,
        "flock_lock_inode_wait posix_lock_inode_wait locks_lock_inode_wait fcntl_setlk \
        do_lock_file_wait __break_lease",
    ),
    (
        Some(Sleep::File),
        None,
        "do_sys_openat2 do_filp_open filename_lookup do_unlinkat do_renameat2 do_mkdirat \
        iterate_dir vfs_statx vfs_fallocate start_this_handle wait_transaction_locked \
        fuse_simple_request request_wait_answer nfs_wait_bit_killable rpc_wait_bit_killable",
    ),
    (
        Some(Sleep::Fault),
        None,
        "handle_userfault handle_mm_fault lock_mm_and_find_vma do_user_addr_fault exc_page_fault \
        do_page_fault do_mem_abort __get_user_pages migration_entry_wait",
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

/// The functions that say something, by name.
pub(super) type FunctionNames = HashMap<&'static str, FunctionMeaning>;

/// All of them.
pub(super) fn names() -> FunctionNames {
    let mut names: FunctionNames = HashMap::new();
    for (sleep, purpose, functions) in GROUPS {
        for name in functions.split_ascii_whitespace() {
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

/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The parts of the kernel's types that are read, by name only: the loader finds their places in
 * the running kernel. `___old` marks the form of earlier kernels. Names are those of the kernel.
 */
#ifndef KERNEL_H
#define KERNEL_H

#include "helpers.h"

enum {
	PF_MEMALLOC = 0x800,	/* it frees memory now */
	PF_KTHREAD = 0x200000,
};

enum {	/* bits of a task's state */
	TASK_INTERRUPTIBLE = 1,
	TASK_UNINTERRUPTIBLE = 2,
	TASK_DEAD = 0x80,
	TASK_WAKING = 0x200,
	TASK_NEW = 0x800,
	TASK_FROZEN = 0x8000,	/* of a group that is paused; such a thread never waits for a processor */
	ASLEEP = (0xff & ~TASK_DEAD) | TASK_FROZEN,
};

KERNEL_STRUCT kuid_t { u32 val; };
KERNEL_STRUCT cred { struct kuid_t uid; };
KERNEL_STRUCT percpu_counter { s64 count; };
KERNEL_STRUCT mm_struct { struct percpu_counter rss_stat[4]; };
KERNEL_STRUCT atomic_count { s64 counter; };
KERNEL_STRUCT mm_rss_stat___old { struct atomic_count count[4]; };
KERNEL_STRUCT mm_struct___old { struct mm_rss_stat___old rss_stat; };
KERNEL_STRUCT task_io_accounting {
	u64 rchar, wchar, syscr, syscw;
	u64 read_bytes, write_bytes, cancelled_write_bytes;
};
KERNEL_STRUCT sched_entity { u64 sum_exec_runtime; };
KERNEL_STRUCT sched_info {
	unsigned long pcount;
	u64 run_delay;
};
KERNEL_STRUCT task_delay_info { u64 blkio_delay; };

KERNEL_STRUCT small_atomic { s32 counter; };
KERNEL_STRUCT signal_struct { struct small_atomic live; };
KERNEL_STRUCT task_struct {
	u32 __state;
	u32 flags;
	s32 on_cpu;
	s32 exit_state;
	s32 pid;
	s32 tgid;
	u32 in_iowait : 1;
	char comm[16];
	u64 start_boottime;
	u64 utime, stime;
	struct sched_entity se;
	struct sched_info sched_info;
	struct task_delay_info *delays;
	unsigned long min_flt, maj_flt;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	const struct cred *cred;
	struct mm_struct *mm;
	struct task_io_accounting ioac;
};

struct bio;
KERNEL_STRUCT gendisk { s32 major, first_minor; };
KERNEL_STRUCT queue_limits { u32 physical_block_size; };
KERNEL_STRUCT request_queue {
	struct gendisk *disk;
	struct queue_limits limits;
};
KERNEL_STRUCT request {
	struct request_queue *q;
	u32 cmd_flags;
	u32 __data_len;
	u64 __sector;
	struct bio *bio;
};

KERNEL_STRUCT hlist_node { struct hlist_node *next; };
KERNEL_STRUCT hlist_head { struct hlist_node *first; };
KERNEL_STRUCT super_block { u32 s_dev; };
KERNEL_STRUCT inode {
	u16 i_mode;
	u32 i_rdev;
	u64 i_size;
	unsigned long i_ino;
	struct super_block *i_sb;
	struct hlist_head i_dentry;
};
KERNEL_STRUCT address_space { struct inode *host; };
KERNEL_STRUCT qstr { const unsigned char *name; };
KERNEL_STRUCT dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	union { struct hlist_node d_alias; } d_u;
};
KERNEL_STRUCT folio {
	struct address_space *mapping;
	unsigned long index;
	unsigned long _flags_1;
};
KERNEL_STRUCT folio___old { u8 _folio_order; };
KERNEL_STRUCT page { unsigned long compound_head; };
enum pageflags { PG_head = 0xff, PG_swapbacked = 0xfe, PG_locked = 0xfd };
enum req_flag_bits { __REQ_SWAP = 0xff };
enum { BIO_CLONED = 1 };
KERNEL_STRUCT bio_vec { struct page *bv_page; };
KERNEL_STRUCT bvec_iter {
	u64 bi_sector;
	u32 bi_size;
};
KERNEL_STRUCT block_device { u32 bd_dev; };
KERNEL_STRUCT bio {
	struct block_device *bi_bdev;
	u32 bi_opf;
	u16 bi_flags;
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
};

KERNEL_STRUCT seq_file { u64 count; };
KERNEL_STRUCT bpf_iter_meta { struct seq_file *seq; };
KERNEL_STRUCT bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#endif

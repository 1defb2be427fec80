/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the kernel itself charged to all threads together, so that no file of any process has to be
 * read: of living ones at each walk over the tasks, of ended ones at their last switch. Only for
 * the whole machine. The sum of both is what the series `tree.*` hold.
 */
#ifndef TOTALS_H
#define TOTALS_H

#include "sums.h"

/* In the order of the sums in collect/tree.rs, and what else a walk counts. */
enum total {
	RUN_NS,
	QUEUE_NS,
	TIMESLICES,
	BLOCK_IO_NS,
	USER_NS,
	SYSTEM_NS,
	TOTAL_MINOR_FAULTS,
	TOTAL_MAJOR_FAULTS,
	READ_CHARS,
	WRITE_CHARS,
	READ_CALLS,
	WRITE_CALLS,
	TOTAL_READ_BYTES,
	TOTAL_WRITE_BYTES,
	CANCELLED_WRITE_BYTES,
	THREADS,
	PROCESSES,
	MEMORY_PAGES,
	TOTALS,
};
struct totals {
	u64 of[TOTALS];
};

/* Grows with each walk: the difference of two readings is what the walk between them found. */
struct {
	MAP_NUMBER(type, MAP_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct totals);
} living SECTION(".maps");

struct {
	MAP_NUMBER(type, MAP_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct totals);
} ended SECTION(".maps");

/* Resident pages of file, private and shared memory. */
INLINE u64 memory_pages(struct task_struct *task)
{
	u64 mm = (u64)READ_FIELD(task_struct, task, mm);
	s64 pages = 0;
	if (!mm)
		return 0;
	if (FIELD_EXISTS(((struct mm_struct *)0)->rss_stat[0].count)) {
		pages = READ_FIELD(mm_struct, mm, rss_stat[0].count) +
			READ_FIELD(mm_struct, mm, rss_stat[1].count) +
			READ_FIELD(mm_struct, mm, rss_stat[3].count);
	} else {
		pages = READ_FIELD(mm_struct___old, mm, rss_stat.count[0].counter) +
			READ_FIELD(mm_struct___old, mm, rss_stat.count[1].counter) +
			READ_FIELD(mm_struct___old, mm, rss_stat.count[3].counter);
	}
	return pages < 0 ? 0 : pages;
}

INLINE void add_charges(struct task_struct *task, struct totals *to)
{
	to->of[RUN_NS] += task->se.sum_exec_runtime;
	if (FIELD_EXISTS(task->sched_info.run_delay)) {
		to->of[QUEUE_NS] += task->sched_info.run_delay;
		to->of[TIMESLICES] += task->sched_info.pcount;
	}
	if (counts_delays) {
		u64 delays = (u64)READ_FIELD(task_struct, task, delays);
		if (delays)
			to->of[BLOCK_IO_NS] += READ_FIELD(task_delay_info, delays, blkio_delay);
	}
	to->of[USER_NS] += task->utime;
	to->of[SYSTEM_NS] += task->stime;
	to->of[TOTAL_MINOR_FAULTS] += task->min_flt;
	to->of[TOTAL_MAJOR_FAULTS] += task->maj_flt;
	if (FIELD_EXISTS(task->ioac.rchar)) {
		to->of[READ_CHARS] += task->ioac.rchar;
		to->of[WRITE_CHARS] += task->ioac.wchar;
		to->of[READ_CALLS] += task->ioac.syscr;
		to->of[WRITE_CALLS] += task->ioac.syscw;
	}
	to->of[TOTAL_READ_BYTES] += task->ioac.read_bytes;
	to->of[TOTAL_WRITE_BYTES] += task->ioac.write_bytes;
	to->of[CANCELLED_WRITE_BYTES] += task->ioac.cancelled_write_bytes;
	to->of[THREADS]++;
	to->of[PROCESSES] += task->pid == task->tgid;
}

INLINE void add_living(struct task_struct *task)
{
	u32 zero = 0;
	struct totals *to = map_lookup(&living, &zero);
	if (!to)
		return;
	add_charges(task, to);
	if (task->pid == task->tgid)
		to->of[MEMORY_PAGES] += memory_pages(task);
}

/* At the last switch of a thread, with interrupts off. */
INLINE void add_ended(struct task_struct *task)
{
	u32 zero = 0;
	struct totals *to = map_lookup(&ended, &zero);
	if (to)
		add_charges(task, to);
}

#endif

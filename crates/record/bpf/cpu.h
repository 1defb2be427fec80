/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What a processor did at a tick of its clock: the kernel stack, none in user code; and
 * for which process.
 */
#ifndef CPU_H
#define CPU_H

#include "sums.h"

SECTION("perf_event")
int processor_sampled(void *context)
{
	struct task_struct *task = current_task();
	struct scratch *scratch = scratch_for(SCRATCH_CPU);
	if (!scratch || !task->pid || !thread_of(task))
		return 0;
	struct cpu_record *record = &scratch->cpu;
	s64 bytes = get_stack(context, record->frames, sizeof(record->frames), 0);
	record->kind = NEWS_CPU;
	record->process = task->tgid;
	record->is_kernel_thread = !!(task->flags & PF_KTHREAD);
	record->frame_count = bytes > 0 ? bytes / sizeof(u64) : 0;
	u64 leader = (u64)READ_FIELD(task_struct, task, group_leader);
	u64 parent = (u64)READ_FIELD(task_struct, task, real_parent);
	record->parent = READ_FIELD(task_struct, parent, tgid);
	read_kernel_text(record->name, sizeof(record->name),
			 (void *)(leader + FIELD_OFFSET(task_struct, comm)));
	send(record, sizeof(*record));
	return 0;
}

#endif

/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What each thread used since it was last reported. A thread that uses much reports by itself when
 * it leaves its processor, and at a tick of it, a few times a second at most. A walk over all tasks
 * once a second has the rest, so an idle process costs nothing in between; and each thread reports
 * when it ends. Processes that were short and used little are summed by name and parent, so that
 * thousands of them a second cost no more than one.
 */
#ifndef REPORT_H
#define REPORT_H

#include "stacks.h"
#include "totals.h"

enum { FLAG_KERNEL = 1, FLAG_ENDED = 2 };

struct short_key {
	u32 parent;
	char name[16];
};
struct short_value {
	u64 processes;
	u64 figures[FIGURES];
};
struct {
	MAP_NUMBER(type, MAP_HASH);
	MAP_NUMBER(max_entries, 1024);
	MAP_TYPE(key, struct short_key);
	MAP_TYPE(value, struct short_value);
} short_processes SECTION(".maps");

/* All that a thread has used so far, the state that it is in included. */
INLINE void figures_of(struct task_struct *task, struct thread *thread, u64 now, u64 *figures)
{
	u64 word = thread->word;
	u64 ticks = now - since_of(word);
	__builtin_memcpy(figures, thread->kept, sizeof(thread->kept));
	figures[READ_BYTES] = task->ioac.read_bytes;
	figures[WRITTEN_BYTES] = task->ioac.write_bytes;
	figures[MAJOR_FAULTS] = task->maj_flt;
	figures[MINOR_FAULTS] = task->min_flt;
	if ((s64)ticks < 0)
		return;
	if (state_of(word) == RUN)
		figures[CPU_TICKS] += ticks;
	else if (state_of(word) == QUEUE)
		figures[QUEUE_TICKS] += ticks;
	else if (is_block(state_of(word)))
		figures[BLOCK_TICKS] += ticks;
}

/*
 * Turns what was used into what was used since the last report. Below 0 where another processor
 * was ahead; the Rust side makes 0 of it, as each branch here would double what is verified.
 */
INLINE void since_reported(struct thread *thread, u64 *figures)
{
	for (int figure = 0; figure < FIGURES; figure++)
		figures[figure] -= thread->reported[figure];
}

INLINE void mark_reported(struct thread *thread, const u64 *growth)
{
	for (int figure = 0; figure < FIGURES; figure++)
		thread->reported[figure] += growth[figure];
}

/* From what on a walk makes a record: 100 us of any time, or any byte or wait for a device. */
INLINE bool matters(const u64 *growth)
{
	const u64 least = 100000 >> TICK_SHIFT;
	return growth[CPU_TICKS] >= least || growth[QUEUE_TICKS] >= least ||
	       growth[BLOCK_TICKS] >= least || growth[RECLAIM_TICKS] >= least ||
	       growth[READ_BYTES] || growth[WRITTEN_BYTES] || growth[MAJOR_FAULTS] ||
	       growth[MINOR_FAULTS] >= 64 || growth[CACHE_ADDED] || growth[SWAPPED_IN];
}

/* From what on a thread reports by itself: what alone is worth a row of a tenth of a second. */
INLINE bool matters_at_once(const u64 *growth)
{
	const u64 least = 2000000 >> TICK_SHIFT, bytes = 256 << 10;
	return growth[CPU_TICKS] >= least || growth[QUEUE_TICKS] >= least ||
	       growth[BLOCK_TICKS] >= least || growth[RECLAIM_TICKS] >= least ||
	       growth[READ_BYTES] >= bytes || growth[WRITTEN_BYTES] >= bytes ||
	       growth[MAJOR_FAULTS] || growth[MINOR_FAULTS] >= 1024 ||
	       growth[CACHE_ADDED] >= bytes || growth[SWAPPED_IN];
}

/* Of two reports of one thread at once the second would tell the same again. */
INLINE bool may_report(struct thread *thread)
{
	return !__sync_lock_test_and_set(&thread->is_reporting, 1);
}

INLINE void has_reported(struct thread *thread)
{
	__sync_lock_test_and_set(&thread->is_reporting, 0);
}

INLINE void fill_identity(struct thread_record *record, struct task_struct *task)
{
	u64 leader = (u64)READ_FIELD(task_struct, task, group_leader);
	u64 parent = (u64)READ_FIELD(task_struct, task, real_parent);
	u64 cred = (u64)READ_FIELD(task_struct, task, cred);
	record->process = task->tgid;
	record->thread = task->pid;
	record->parent = READ_FIELD(task_struct, parent, tgid);
	record->user = READ_FIELD(cred, cred, uid.val);
	record->flags = task->flags & PF_KTHREAD ? FLAG_KERNEL : 0;
	record->started_ns = READ_FIELD(task_struct, leader, start_boottime);
	record->memory_pages = memory_pages(task);
	read_kernel_text(record->name, sizeof(record->name),
			 (void *)(leader + FIELD_OFFSET(task_struct, comm)));
}

/* Whether a process that has ended is only worth a place among others of its name. */
INLINE bool is_short(struct task_struct *task, const u64 *growth)
{
	const u64 little = 50000000 >> TICK_SHIFT;
	return task->pid == task->tgid && growth[CPU_TICKS] < little &&
	       growth[BLOCK_TICKS] < little && growth[READ_BYTES] < 1 << 20 &&
	       growth[WRITTEN_BYTES] < 1 << 20 && growth[CACHE_ADDED] < 1 << 20;
}

INLINE void add_to_others(const u64 *growth)
{
	struct sums *own = own_sums();
	for (int figure = 0; own && figure < FIGURES; figure++)
		ADD(own->others[figure], growth[figure]);
}

INLINE void add_short(struct thread_record *record)
{
	struct short_key key = { .parent = record->parent };
	struct short_value none = {};
	__builtin_memcpy(key.name, record->name, sizeof(key.name));
	struct short_value *value = map_lookup(&short_processes, &key);
	if (!value) {
		map_update(&short_processes, &key, &none, IF_ABSENT);
		value = map_lookup(&short_processes, &key);
	}
	if (!value) {
		add_to_others(record->figures);
		return;
	}
	ADD(value->processes, 1);
	for (int figure = 0; figure < FIGURES; figure++)
		ADD(value->figures[figure], record->figures[figure]);
}

/*
 * A thread reports what it used, if that is much and its last report is long enough ago. Half of
 * the ring is kept for what cannot be said again; what finds no room waits for the walk.
 */
INLINE void report_use(struct task_struct *task, struct thread *thread, u32 use, u64 now)
{
	if ((s64)(now - thread->reported_at) < (s64)report_ticks)
		return;
	thread->reported_at = now;
	struct scratch *scratch = scratch_for(use);
	if (!scratch || !may_report(thread))
		return;
	struct thread_record *record = &scratch->thread;
	figures_of(task, thread, now, record->figures);
	since_reported(thread, record->figures);
	if (matters_at_once(record->figures) && ring_query(&news, WAITING_BYTES) < NEWS_BYTES / 2) {
		record->kind = NEWS_USE;
		fill_identity(record, task);
		if (!ring_output(&news, record, sizeof(*record), NO_WAKEUP))
			mark_reported(thread, record->figures);
	}
	has_reported(thread);
}

/* For one that keeps its processor for long. */
SECTION("perf_event")
int use_reported(void *context)
{
	struct task_struct *task = current_task();
	struct thread *thread;
	if (task->pid && (thread = thread_of(task)))
		report_use(task, thread, SCRATCH_CPU, now_ticks());
	return 0;
}

/* A thread has ended: what it used since its last report. */
INLINE void report_end(struct task_struct *task, struct thread *thread, u64 now)
{
	struct scratch *scratch = scratch_for(SCRATCH_EVENTS);
	if (!scratch)
		return;
	struct thread_record *record = &scratch->thread;
	bool was_reported = thread->reported[CPU_TICKS];
	if (everyone)
		add_ended(task);
	fill_identity(record, task);
	figures_of(task, thread, now, record->figures);
	since_reported(thread, record->figures);
	if (!was_reported && is_short(task, record->figures)) {
		add_short(record);
		return;
	}
	record->kind = NEWS_END;
	u64 signal = (u64)READ_FIELD(task_struct, task, signal);
	if (READ_FIELD(signal_struct, signal, live.counter) == 0)
		record->flags |= FLAG_ENDED;
	if (ring_output(&news, record, sizeof(*record), NO_WAKEUP))
		add_to_others(record->figures);
}

/* The state of a task that is seen for the first time. */
INLINE u32 first_state(struct task_struct *task, struct thread *thread)
{
	u32 state = task->__state;
	if (task->exit_state || state & TASK_DEAD)
		return NO_STATE;
	if (state & ASLEEP)
		return guess_wait(thread, READ_BITS(task, in_iowait));
	return task->on_cpu ? RUN : QUEUE;
}

INLINE void meet(struct task_struct *task, struct thread *thread, struct sums *own, u64 now)
{
	u32 state = first_state(task, thread);
	u64 none = NO_STATE;
	figures_of(task, thread, now, thread->reported);
	thread->reported_at = now;
	if (state == NO_STATE ||
	    __sync_val_compare_and_swap(&thread->word, none, word_of(state, now)) != none)
		return;
	begin(own, state, now);
	own->counts[THREADS_SEEN]++;
	move_wall(wall_unit(state), now);
}

/* Looks at the stack of one that sleeps for long already, so that its wait has a class while
 * it lasts. */
INLINE void name_sleeper(struct task_struct *task, struct thread *thread, struct sums *own, u64 now)
{
	u64 word = thread->word;
	u32 guess = state_of(word);
	struct scratch *scratch = scratch_for(SCRATCH_REPORT);
	if (!scratch || !is_asleep(guess) || word & IS_SEEN ||
	    (s64)(now - since_of(word)) < (s64)long_wait_ticks)
		return;
	u32 id = stack_of(task, is_block(guess), scratch);
	u32 state = id == NO_STACK ? NO_STATE : state_of_stack(id);
	u64 since = since_of(word);
	if (state == NO_STATE ||
	    __sync_val_compare_and_swap(&thread->word, word, word_of(state, since) | IS_SEEN) !=
		    word)
		return;
	leave(own, guess, since);
	begin(own, state, since);
	if (is_block(guess))
		thread->last_block = state;
	else
		thread->last_sleep = state;
}

SECTION("iter/task")
int report(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	u32 zero = 0;
	struct sums *own = map_lookup(&report_sums, &zero);
	struct scratch *scratch = scratch_for(SCRATCH_REPORT);
	if (!task || !own || !scratch)
		return 0;
	u32 process = task->tgid;
	struct thread *thread = thread_of(task);
	u64 now = now_ticks();
	bool is_new = !thread;
	if (!thread) {
		if (!everyone && !map_lookup(&members, &process))
			return 0;
		thread = storage_of(&threads, task, 0, CREATE);
		if (!thread)
			return 0;
		meet(task, thread, own, now);
	}
	if (state_of(thread->word) == NO_STATE)
		return 0;
	if (everyone)
		add_living(task);
	if (is_new)
		return 0;
	name_sleeper(task, thread, own, now);
	if (!may_report(thread))
		return 0;
	struct thread_record *record = &scratch->thread;
	figures_of(task, thread, now, record->figures);
	since_reported(thread, record->figures);
	if (matters(record->figures)) {
		record->kind = 0;
		fill_identity(record, task);
		if (!seq_write(context->meta->seq, record, sizeof(*record)))
			mark_reported(thread, record->figures);
	}
	has_reported(thread);
	return 0;
}

#endif

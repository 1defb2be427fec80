/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Which state each thread of the subject is in. A thread gets its storage when it is forked, or by
 * the first report if it lives already: never at a switch, where no memory may be asked for.
 */
#ifndef THREADS_H
#define THREADS_H

#include "report.h"
#include "stacks.h"

SECTION("tp_btf/sched_process_fork")
int thread_forked(u64 *context)
{
	struct task_struct *parent = (void *)context[0], *child = (void *)context[1];
	if (!everyone && !thread_of(parent))
		return 0;
	storage_of(&threads, child, 0, CREATE);
	return 0;
}

/* The state of a thread that gives up its processor. */
INLINE u32 state_after(struct task_struct *task, struct thread *thread, bool is_preempted)
{
	u32 state = task->__state;
	if (state & TASK_DEAD)
		return NO_STATE;
	/* One that was woken since is not asleep any more. */
	if (is_preempted || !(state & ASLEEP))
		return QUEUE;
	return guess_wait(thread, READ_BITS(task, in_iowait));
}

/* Adds a state that is over to what the thread used. */
INLINE void keep(struct thread *thread, u32 state, u64 ticks)
{
	if (state == RUN)
		thread->kept[CPU_TICKS] += ticks;
	else if (state == QUEUE)
		thread->kept[QUEUE_TICKS] += ticks;
	else if (is_block(state))
		thread->kept[BLOCK_TICKS] += ticks;
}

/* Puts the thread into a state; what that changes of the wall. */
INLINE u64 change(struct thread *thread, struct sums *own, u32 state, u64 now)
{
	u64 old = __sync_lock_test_and_set(&thread->word, word_of(state, now));
	u32 before = state_of(old);
	u64 difference = 0;
	if (before != NO_STATE) {
		leave(own, before, now);
		keep(thread, before, now - since_of(old));
		difference -= wall_unit(before);
	}
	if (state != NO_STATE) {
		begin(own, state, now);
		difference += wall_unit(state);
		own->counts[THREADS_SEEN] += before == NO_STATE;
	}
	if (state == RUN && is_asleep(before)) {
		own->counts[WAITS]++;
		own->counts[UNTOLD_WAKEUPS]++;
	}
	return FORGET(difference, now);
}

SECTION("tp_btf/sched_wakeup_new")
int thread_begins(u64 *context)
{
	struct thread *thread = thread_of((void *)context[0]);
	struct sums *own = own_sums();
	if (!thread || !own || state_of(thread->word) != NO_STATE)
		return 0;
	u64 now = now_ticks();
	own->changes_begun++;
	own->counts[EVENTS]++;
	/* One that ends sooner is among the short ones. */
	thread->reported_at = now;
	u64 difference = change(thread, own, QUEUE, now);
	own->changes_done++;
	move_wall(difference, now);
	return 0;
}

SECTION("tp_btf/sched_switch")
int threads_switch(u64 *context)
{
	struct task_struct *prev = (void *)context[1], *next = (void *)context[2];
	struct thread *thread;
	struct sums *own = own_sums();
	u64 now = now_ticks(), difference = 0;
	if (!own)
		return 0;
	own->changes_begun++;
	own->counts[EVENTS]++;
	if (prev->pid && (thread = thread_of(prev))) {
		u32 state = state_after(prev, thread, context[0]);
		own->counts[SWITCHES]++;
		own->counts[BLOCK_WAITS] += is_block(state);
		difference += change(thread, own, state, now);
		if (state == NO_STATE)
			report_end(prev, thread, now);
		else
			report_use(prev, thread, SCRATCH_EVENTS, now);
	}
	if (next->pid && (thread = thread_of(next)))
		difference += change(thread, own, RUN, now);
	own->changes_done++;
	move_wall(difference, now);
	return 0;
}

SECTION("tp_btf/sched_waking")
int thread_wakes(u64 *context)
{
	struct task_struct *task = (void *)context[0];
	struct thread *thread = thread_of(task);
	struct sums *own = own_sums();
	if (!thread || !own)
		return 0;
	u64 now = now_ticks(), old = thread->word;
	u32 before = state_of(old);
	if (!is_asleep(before) ||
	    __sync_val_compare_and_swap(&thread->word, old, word_of(QUEUE, now)) != old)
		return 0;
	own->changes_begun++;
	own->counts[EVENTS]++;
	own->counts[WAITS]++;
	leave(own, before, now);
	begin(own, QUEUE, now);
	keep(thread, before, now - since_of(old));
	if (!(old & IS_SEEN))
		name_wait(task, thread, own, before, now - since_of(old));
	own->changes_done++;
	move_wall(wall_unit(QUEUE) - wall_unit(before), now);
	return 0;
}

#endif

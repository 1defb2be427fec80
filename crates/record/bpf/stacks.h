/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What a sleeper waits for, by its kernel stack. Different stacks are few: each gets a number, its
 * frames are sent once, and the Rust side answers with the state that they stand for.
 *
 * A stack is taken when its thread is woken and has waited for long, or at every 32nd short wait;
 * the short waits in between count as the last one of the same kind that was looked at.
 */
#ifndef STACKS_H
#define STACKS_H

#include "sums.h"

enum { STACKS = 2048, LOOK_EVERY = 32, NO_STACK = 0xffffffff };

struct {
	MAP_NUMBER(type, MAP_HASH);
	MAP_NUMBER(max_entries, STACKS);
	MAP_TYPE(key, struct stack_key);
	MAP_TYPE(value, u32);
} stacks SECTION(".maps");

/* By number: the state, NO_STATE while it is not known. Written by the Rust side alone. */
struct {
	MAP_NUMBER(type, MAP_ARRAY);
	MAP_NUMBER(max_entries, STACKS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} stack_states SECTION(".maps");

/* By number: time that counts as unknown, because the state was not known yet. */
struct {
	MAP_NUMBER(type, MAP_ARRAY);
	MAP_NUMBER(max_entries, STACKS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} stack_ticks SECTION(".maps");

struct {
	MAP_NUMBER(type, MAP_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} stack_numbers SECTION(".maps");

/* The number of the stack of a task that sleeps, which is sent if it is new. */
INLINE u32 stack_of(struct task_struct *task, bool is_block, struct scratch *scratch)
{
	struct stack_record *record = &scratch->stack;
	u32 zero = 0;
	__builtin_memset(&record->stack, 0, sizeof(record->stack));
	record->stack.is_block = is_block;
	if (get_task_stack(task, record->stack.frames, sizeof(record->stack.frames), 0) <= 0)
		return NO_STACK;
	u32 *known = map_lookup(&stacks, &record->stack);
	if (known)
		return *known;
	u32 *next = map_lookup(&stack_numbers, &zero);
	if (!next || *next >= STACKS)
		goto full;
	record->id = ADD(*next, 1);
	if (record->id >= STACKS)
		goto full;
	record->kind = NEWS_STACK;
	if (map_update(&stacks, &record->stack, &record->id, IF_ABSENT))
		return NO_STACK;	/* another processor was first; its number is found next time */
	if (send(record, sizeof(*record)))
		return record->id;
	/* Nothing understands the number: the next to sleep there gets another one. */
	map_delete(&stacks, &record->stack);
	return NO_STACK;
full:
	count(LOST_STACKS, 1);
	return NO_STACK;
}

/* The state of a stack; NO_STATE while it is not known. */
INLINE u32 state_of_stack(u32 id)
{
	u32 *state = map_lookup(&stack_states, &id);
	return state ? *state & (STATES - 1) : NO_STATE;
}

/* What a thread waits for until its stack is seen: what it last waited for. */
INLINE u32 guess_wait(struct thread *thread, bool is_block)
{
	u32 last = is_block ? thread->last_block : thread->last_sleep;
	return last ? last : is_block ? block_unknown : sleep_unknown;
}

/* The time of waits at a stack that is not understood yet; it is moved once it is. */
INLINE void add_new(u32 id, u64 ticks)
{
	u64 *known = map_lookup(&stack_ticks, &id);
	if (known)
		ADD(*known, ticks);
}

/* Keeps what a thread waited for, for its next waits. */
INLINE void keep_state(struct thread *thread, bool is_block, u32 state)
{
	if (is_block)
		thread->last_block = state;
	else
		thread->last_sleep = state;
}

/*
 * A short wait that is not looked at, of a thread whose first stack is new: it counts as that one,
 * whatever that will turn out to be.
 */
INLINE void name_as_new(struct thread *thread, struct sums *own, u32 guess, u64 ticks)
{
	bool block = is_block(guess);
	u32 *new = block ? &thread->new_block : &thread->new_sleep;
	if (!*new || guess != (block ? block_unknown : sleep_unknown))
		return;
	u32 state = state_of_stack(*new - 1);
	if (state == NO_STATE) {
		add_new(*new - 1, ticks);
		return;
	}
	*new = 0;
	keep_state(thread, block, state);
	move_ticks(own, guess, state, ticks);
}

/*
 * Corrects the class of a wait that is over: `guess` was what the last wait of the thread was.
 */
INLINE void name_wait(struct task_struct *task, struct thread *thread, struct sums *own, u32 guess,
		      u64 ticks)
{
	bool block = is_block(guess);
	if (ticks < long_wait_ticks && thread->short_waits++ % LOOK_EVERY) {
		own->counts[SAMPLED_TICKS] += ticks;
		name_as_new(thread, own, guess, ticks);
		return;
	}
	struct scratch *scratch = scratch_for(SCRATCH_EVENTS);
	if (!scratch)
		return;
	u32 id = stack_of(task, block, scratch);
	/* One that is woken while it still leaves its processor has none: not looked at. */
	if (id == NO_STACK && ticks < long_wait_ticks) {
		own->counts[SAMPLED_TICKS] += ticks;
		return;
	}
	u32 unknown = block ? block_unknown : sleep_unknown;
	u32 state = id == NO_STACK ? unknown : state_of_stack(id);
	if (state == NO_STATE) {
		add_new(id, ticks);
		if (block)
			thread->new_block = id + 1;
		else
			thread->new_sleep = id + 1;
		state = unknown;
	} else if (id != NO_STACK) {
		keep_state(thread, block, state);
	}
	move_ticks(own, guess, state, ticks);
}

#endif

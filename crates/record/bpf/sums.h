/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What all programs share: the states of a thread, the sums by processor, the maps.
 *
 * Times are in ticks of 16 ns since `epoch_ns`, so that a state, a flag and an instant fit in one
 * word that is exchanged at once. Each instant is rounded once and used for the state that ends and
 * for the one that begins, so no time is lost by it. 52 bits last for two years.
 *
 * The sum of a state is (instants at which it was left) - (instants at which it began), plus, at
 * any moment, the number of threads in it times now. So nothing has to be visited to know it.
 */
#ifndef SUMS_H
#define SUMS_H

#include "kernel.h"

/* Set by the loader; the numbers of states are those of the Rust side (trace/event.rs) and 1. */
const volatile u64 epoch_ns = 0;
const volatile u32 everyone = 1;
const volatile u32 page_shift = 12;
const volatile u64 long_wait_ticks = 1000000 / 16;
const volatile u64 report_ticks = 80000000 / 16;
const volatile u32 counts_delays = 0;
const volatile u32 first_block = 4;
const volatile u32 first_sleep = 15;
const volatile u32 block_unknown = 10;
const volatile u32 sleep_unknown = 27;

enum { TICK_SHIFT = 4 };
/* New storage is 0, so it has no state. */
enum { STATES = 32, NO_STATE = 0, RUN = 1, QUEUE = 2 };
/* A word: the state in bits 0 to 7, whether its class was seen, ticks from bit 12 on. */
enum { IS_SEEN = 0x100, WORD_SHIFT = 12 };

/* What a thread used, in the order of the Rust side's ProcessFigure. */
enum figure {
	CPU_TICKS,
	QUEUE_TICKS,
	BLOCK_TICKS,
	RECLAIM_TICKS,
	READ_BYTES,
	WRITTEN_BYTES,
	MAJOR_FAULTS,
	MINOR_FAULTS,
	CACHE_ADDED,
	REFAULTED,
	SWAPPED_IN,
	FIGURES,
};

/* What is counted by processor, in the order of the Rust side's Count. */
enum count {
	EVENTS,
	SWITCHES,
	BLOCK_WAITS,
	WAITS,
	UNTOLD_WAKEUPS,
	THREADS_SEEN,
	SAMPLED_TICKS,
	REQUESTS_ISSUED,
	RECLAIMS,
	RECLAIM_TIME,
	THROTTLES,
	THROTTLED_TIME,
	COMPACTIONS,
	COMPACTION_TIME,
	DIRTY_WAITS,
	DIRTY_WAIT_TIME,
	LOST_RECORDS,
	LOST_STACKS,
	LOST_REQUESTS,
	LOST_FILE_BYTES,
	COUNTS,
};

/*
 * Sums of one processor. They are changed with interrupts off, so in one piece for others on it.
 * A reader elsewhere copies from the first byte to the last: what it has is whole if both
 * numbers of changes are equal.
 */
struct sums {
	u64 changes_done;
	u64 ticks[STATES];
	u64 threads[STATES];
	u64 counts[COUNTS];
	u64 others[FIGURES];	/* of threads that had no room elsewhere */
	u64 changes_begun;
};

struct thread {
	u64 word;
	u64 reclaim_since, compaction_since;
	u64 reported_at;
	u32 short_waits, is_reporting;
	u8 last_block, last_sleep;
	u32 new_block, new_sleep;	/* numbers of stacks that were not understood yet, and 1 */
	u64 kept[FIGURES];
	u64 reported[FIGURES];
};

/* The subject as a whole: how many of its threads run, are runnable, wait for block I/O. */
enum { WALL_BITS = 21 };
struct wall {
	u64 counts, since;
	u64 ticks[4];
};

struct {
	MAP_NUMBER(type, MAP_TASK_STORAGE);
	MAP_NUMBER(map_flags, NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct thread);
} threads SECTION(".maps");

struct {
	MAP_NUMBER(type, MAP_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct sums);
} sums SECTION(".maps");

/* Changed by the report alone, which interrupts may cut in two. */
struct {
	MAP_NUMBER(type, MAP_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct sums);
} report_sums SECTION(".maps");

struct {
	MAP_NUMBER(type, MAP_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct wall);
} walls SECTION(".maps");

/* The subject's processes, where it is not everyone. */
struct {
	MAP_NUMBER(type, MAP_HASH);
	MAP_NUMBER(map_flags, NO_PREALLOC);
	MAP_NUMBER(max_entries, 16384);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} members SECTION(".maps");

/* What is sent at once: ends of threads and what they used, new stacks, samples of processors. */
enum { NEWS_BYTES = 1 << 20 };
struct {
	MAP_NUMBER(type, MAP_RINGBUF);
	MAP_NUMBER(max_entries, NEWS_BYTES);
} news SECTION(".maps");

enum news_kind { NEWS_END = 1, NEWS_STACK = 2, NEWS_CPU = 3, NEWS_USE = 4 };

/* Large values are made here: a program has 512 bytes of stack. One for each kind of program. */
enum scratch_use { SCRATCH_EVENTS, SCRATCH_REPORT, SCRATCH_CPU, SCRATCHES };
enum { FRAMES = 32 };
struct stack_key {
	u64 is_block;
	u64 frames[FRAMES];
};
struct thread_record {
	u32 kind, process, thread, parent, user, flags;
	u64 started_ns, memory_pages;
	char name[16];
	u64 figures[FIGURES];
};
struct stack_record {
	u32 kind, id;
	struct stack_key stack;
};
struct cpu_record {
	u32 kind, process, is_kernel_thread, frame_count;
	u64 frames[FRAMES];
	u32 parent;
	char name[16];
};
struct scratch {
	struct stack_record stack;
	struct thread_record thread;
	struct cpu_record cpu;
};
struct {
	MAP_NUMBER(type, MAP_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, SCRATCHES);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct scratch);
} scratches SECTION(".maps");

INLINE u64 now_ticks(void) { return (ktime_ns() - epoch_ns) >> TICK_SHIFT; }
INLINE u32 state_of(u64 word) { return word & 0xff; }
INLINE u64 since_of(u64 word) { return word >> WORD_SHIFT; }
INLINE u64 word_of(u32 state, u64 now) { return now << WORD_SHIFT | state; }
INLINE bool is_block(u32 state) { return state >= first_block && state < first_sleep; }
INLINE bool is_asleep(u32 state) { return state > QUEUE; }

INLINE struct sums *own_sums(void)
{
	u32 zero = 0;
	return map_lookup(&sums, &zero);
}

INLINE struct scratch *scratch_for(u32 use) { return map_lookup(&scratches, &use); }

INLINE struct thread *thread_of(struct task_struct *task)
{
	return storage_of(&threads, task, 0, 0);
}

INLINE struct thread *current_thread(void) { return thread_of(current_task()); }

INLINE void count(enum count what, u64 number)
{
	struct sums *own = own_sums();
	if (own)
		ADD(own->counts[what], number);
}

/* Whether there was room for it. */
INLINE bool send(void *record, u64 bytes)
{
	if (!ring_output(&news, record, bytes, NO_WAKEUP))
		return 1;
	count(LOST_RECORDS, 1);
	return 0;
}

/* One thread begins or leaves a state. */
INLINE void begin(struct sums *own, u32 state, u64 now)
{
	own->ticks[state & (STATES - 1)] -= now;
	own->threads[state & (STATES - 1)] += 1;
}

INLINE void leave(struct sums *own, u32 state, u64 now)
{
	own->ticks[state & (STATES - 1)] += now;
	own->threads[state & (STATES - 1)] -= 1;
}

INLINE void move_ticks(struct sums *own, u32 from, u32 to, u64 ticks)
{
	own->ticks[from & (STATES - 1)] -= ticks;
	own->ticks[to & (STATES - 1)] += ticks;
}

/* What a thread in this state adds to the counts of the wall. */
INLINE u64 wall_unit(u32 state)
{
	if (state == RUN)
		return 1;
	if (state == QUEUE)
		return 1ull << WALL_BITS;
	return is_block(state) ? 1ull << 2 * WALL_BITS : 0;
}

INLINE u32 wall_state(u64 counts)
{
	const u64 mask = (1 << WALL_BITS) - 1;
	if (counts & mask)
		return 0;
	if (counts >> WALL_BITS & mask)
		return 1;
	return counts >> 2 * WALL_BITS ? 2 : 3;
}

INLINE void move_wall(u64 difference, u64 now)
{
	u32 zero = 0;
	struct wall *wall = map_lookup(&walls, &zero);
	if (!wall || !difference)
		return;
	u64 before = ADD(wall->counts, difference);
	u32 old = wall_state(before);
	if (old != wall_state(before + difference)) {
		u64 since = __sync_lock_test_and_set(&wall->since, now);
		ADD(wall->ticks[old & 3], now - since);
	}
}

#endif

/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Memory: threads that free it for themselves or wait for write-back, pages that come back from
 * swap.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include "sums.h"

/* Reclaim of a group may be nested in that of the machine: the outer one counts. */
INLINE void begin_interval(u64 *since)
{
	if (!*since)
		*since = now_ticks();
}

INLINE u64 end_interval(u64 *since)
{
	u64 ticks = *since ? now_ticks() - *since : 0;
	*since = 0;
	return ticks;
}

INLINE int begin_reclaim(void)
{
	struct thread *thread = current_thread();
	if (thread)
		begin_interval(&thread->reclaim_since);
	return 0;
}

INLINE int end_reclaim(void)
{
	struct thread *thread = current_thread();
	if (!thread || !thread->reclaim_since)
		return 0;
	u64 ticks = end_interval(&thread->reclaim_since);
	thread->kept[RECLAIM_TICKS] += ticks;
	count(RECLAIMS, 1);
	count(RECLAIM_TIME, ticks);
	return 0;
}

SECTION("tp_btf/mm_vmscan_direct_reclaim_begin")
int reclaim_begins(u64 *context) { return begin_reclaim(); }
SECTION("tp_btf/mm_vmscan_direct_reclaim_end")
int reclaim_ends(u64 *context) { return end_reclaim(); }
SECTION("tp_btf/mm_vmscan_memcg_reclaim_begin")
int group_reclaim_begins(u64 *context) { return begin_reclaim(); }
SECTION("tp_btf/mm_vmscan_memcg_reclaim_end")
int group_reclaim_ends(u64 *context) { return end_reclaim(); }

SECTION("tp_btf/mm_vmscan_throttled")
int reclaim_throttled(u64 *context)
{
	s64 delay_us = (s32)context[2];
	if (!current_thread() || delay_us < 0)
		return 0;
	count(THROTTLES, 1);
	count(THROTTLED_TIME, delay_us * 1000 >> TICK_SHIFT);
	return 0;
}

SECTION("tp_btf/mm_compaction_begin")
int compaction_begins(u64 *context)
{
	struct thread *thread = current_thread();
	if (thread)
		begin_interval(&thread->compaction_since);
	return 0;
}

SECTION("tp_btf/mm_compaction_end")
int compaction_ends(u64 *context)
{
	struct thread *thread = current_thread();
	if (!thread || !thread->compaction_since)
		return 0;
	count(COMPACTION_TIME, end_interval(&thread->compaction_since));
	count(COMPACTIONS, 1);
	return 0;
}

INLINE int note_dirty_pause(s64 pause_ms)
{
	/* A pause of 0 or less is a note without a wait. */
	if (pause_ms <= 0 || !current_thread())
		return 0;
	count(DIRTY_WAITS, 1);
	count(DIRTY_WAIT_TIME, pause_ms * 1000000 >> TICK_SHIFT);
	return 0;
}

/* Two forms of one event: the kernel refuses the one that it does not have. */
SECTION("tp_btf/balance_dirty_pages")
int dirty_paused_long(u64 *context) { return note_dirty_pause(context[10]); }
SECTION("tp_btf/balance_dirty_pages")
int dirty_paused(u64 *context) { return note_dirty_pause(context[6]); }

#endif

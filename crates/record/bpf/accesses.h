/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Single accesses, where they are asked for: requests to devices, pages that enter the page cache,
 * leave it, and are asked for by a read. They are copied out, so there may be too many: then one
 * place in a power of two is followed. Which places these are depends on the place alone
 * (followed_page() of returns.h), and an event of many pages is kept if one of its pages is followed.
 *
 * These programs run before those of block.h at the same event, which forget the request.
 */
#ifndef ACCESSES_H
#define ACCESSES_H

#include "files.h"

enum access_class { ACCESS_REQUESTS, ACCESS_MOVES, ACCESS_TOUCHES, ACCESS_CLASSES };
/* In the order of the Rust side (trace/accesses.rs); the first ones are kinds of requests. */
enum access_kind { ACCESS_ADDED = 16, ACCESS_EVICTED, ACCESS_REMOVED, ACCESS_TOUCHED };
/* 1 MiB is followed as a whole. */
enum { REGION_SHIFT = 11 };
struct access_record {
	u64 at_ns;
	u64 place;	/* the sector, or the index of the page */
	u64 other;	/* the latency in ns, or the inode */
	u32 device, length, kind, thread;
};
/* Its size is that of the largest page of any kernel, unless the loader is asked for more. */
struct {
	MAP_NUMBER(type, MAP_RINGBUF);
	MAP_NUMBER(max_entries, 65536);
} accesses SECTION(".maps");

/* By class, all bits of the share: of each group of places one is followed. */
struct {
	MAP_NUMBER(type, MAP_ARRAY);
	MAP_NUMBER(max_entries, ACCESS_CLASSES);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} access_masks SECTION(".maps");

struct access_losses {
	u64 lost[ACCESS_CLASSES];
};
struct {
	MAP_NUMBER(type, MAP_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct access_losses);
} access_losses SECTION(".maps");

/* Whether one of so many places is followed: in the first group, in the last, or in one between. */
INLINE bool is_followed(u32 class, u64 hash, u64 place, u64 length)
{
	u32 *share = map_lookup(&access_masks, &class);
	if (!share)
		return 0;
	u64 mask = *share, last = place + length - 1;
	return followed_page(hash, place, mask) - place < length ||
		followed_page(hash, last, mask) - place < length ||
		(last & ~mask) - (place & ~mask) > mask + 1;
}

INLINE void keep_access(struct access_record *record, u32 class)
{
	u32 zero = 0;
	if (!ring_output(&accesses, record, sizeof(*record), NO_WAKEUP))
		return;
	struct access_losses *losses = map_lookup(&access_losses, &zero);
	if (losses)
		ADD(losses->lost[class], 1);
}

INLINE void keep_pages(struct inode *inode, u64 index, u64 pages, u32 class, u32 kind)
{
	struct access_record record = {
		.place = index,
		.other = inode->i_ino,
		.device = inode->i_sb->s_dev,
		.length = pages,
		.kind = kind,
		.thread = ((struct task_struct *)current_task())->pid,
	};
	if ((inode->i_mode & FILE_TYPE) == BLOCK_DEVICE) {
		record.device = inode->i_rdev;
		record.other = 0;
	}
	u64 hash = mix(record.other ^ (u64)record.device << 40);
	if (!is_followed(class, hash, index, pages))
		return;
	record.at_ns = ktime_ns();
	keep_access(&record, class);
}

SECTION("tp_btf/mm_filemap_add_to_page_cache")
int access_added(u64 *context)
{
	struct folio *folio = (void *)context[0];
	struct inode *inode = folio->mapping->host;
	u64 pages = bytes_of(folio) >> page_shift;
	keep_pages(inode, folio->index, pages, ACCESS_MOVES, ACCESS_ADDED);
	return 0;
}

SECTION("tp_btf/mm_filemap_delete_from_page_cache")
int access_deleted(u64 *context)
{
	struct folio *folio = (void *)context[0];
	struct inode *inode = folio->mapping->host;
	struct task_struct *task = current_task();
	u64 pages = bytes_of(folio) >> page_shift;
	u32 kind = task->flags & PF_MEMALLOC ? ACCESS_EVICTED : ACCESS_REMOVED;
	keep_pages(inode, folio->index, pages, ACCESS_MOVES, kind);
	return 0;
}

/* A read comes by here again for each batch of folios, with the end of the whole read. */
SECTION("tp_btf/mm_filemap_get_pages")
int access_read(u64 *context)
{
	struct address_space *mapping = (void *)context[0];
	u64 pages = pages_of_read(mapping->host, context[1], context[2]);
	if (pages)
		keep_pages(mapping->host, context[1], pages, ACCESS_TOUCHES, ACCESS_TOUCHED);
	return 0;
}

SECTION("tp_btf/mm_filemap_fault")
int access_faulted(u64 *context)
{
	struct address_space *mapping = (void *)context[0];
	keep_pages(mapping->host, context[1], 1, ACCESS_TOUCHES, ACCESS_TOUCHED);
	return 0;
}

SECTION("tp_btf/block_rq_complete")
int access_completed(u64 *context)
{
	u64 key = context[0];
	u32 bytes = context[2];
	struct request_state *state = map_lookup(&requests, &key);
	if (!state || !state->issued_ns || (bytes && bytes < state->left))
		return 0;
	if (state->direction == FLUSH || state->direction > DISCARD)
		return 0;
	u64 hash = mix(state->device), region = state->sector >> REGION_SHIFT;
	if (!is_followed(ACCESS_REQUESTS, hash, region, 1))
		return 0;
	u64 now = ktime_ns();
	struct access_record record = {
		.at_ns = now,
		.place = state->sector,
		.other = now - state->issued_ns,
		.device = state->device,
		.length = state->bytes >> SECTOR_SHIFT,
		.kind = state->direction,
	};
	keep_access(&record, ACCESS_REQUESTS);
	return 0;
}

#endif

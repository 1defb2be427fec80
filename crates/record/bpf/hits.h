/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Pages of files that are used again while they are in memory, and how far away their last use was:
 * how many other pages that are still in memory were used after it. With so much less memory that
 * these alone filled it the page would have had to be read again.
 *
 * Only where it is asked for, as a program runs at each read that the page cache serves. One order
 * for all that the subject uses; the page of each 16 that is followed is that of returns.h. A page
 * that is mapped is used where it faults, and no later use of it is seen.
 */
#ifndef HITS_H
#define HITS_H

#include "files.h"

/* Pages in memory, in slots as in returns.h; `number` says when it was last used. */
struct {
	MAP_NUMBER(type, MAP_ARRAY);
	/* The loader is asked for SLOTS where hits are. */
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct page_out);
} pages_in SECTION(".maps");

/*
 * As departures in returns.h, by the last use: what is `out` there is in memory here. Where many
 * pages are in memory, several uses in turn share a number, so that the numbers reach back for as
 * many turns of all pages, whatever these are.
 */
enum { USES_OF_FEW = 12 };
struct {
	MAP_NUMBER(type, MAP_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct departures);
} uses SECTION(".maps");

/*
 * Pages that the subject used again, by the classes of returns.h; what was used a moment ago is not
 * counted. Of pages that were in memory before anything was watched the first use: their class says
 * how many pages are known to have been used since, at least.
 */
struct hits {
	u64 again[DISTANCE_CLASSES];
	u64 first[DISTANCE_CLASSES];
	s64 in_memory;		/* followed pages in the order */
	u64 turns;
};
struct {
	MAP_NUMBER(type, MAP_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct hits);
} hits SECTION(".maps");

/* A use before fewer numbers than this keeps its place: most uses cost no more than a comparison. */
enum { NUMBERS_NEAR = 32 };
/* So many folios a read gets at once; those behind them may not be in memory yet. */
enum { FOLIOS_AT_ONCE = 31 };

/* The number of a page that is used now. */
INLINE u32 number_of_use(struct departures *all, struct hits *sums)
{
	u64 sharing = ((u64)sums->in_memory >> USES_OF_FEW & 0xfffff) + 1;
	u64 turn = ADD(sums->turns, 1);
	if (turn % sharing == 0 || !all->count)
		return next_number(all);
	u32 number = all->count - 1;
	ADD(all->out[block_of(number)], 1);
	ADD(all->out_of_row[block_of(number) >> ROW_SHIFT], 1);
	return number;
}

/* A page that is in the slot leaves the order; `mask` is 0 if it is none of these. */
INLINE void forget_use(struct departures *all, struct hits *sums, struct page_out *page, u32 mask)
{
	take_from(all, page->number, mask);
	ADD(sums->in_memory, -(s64)(mask & 1));
	page->name &= ~mask;
}

/*
 * The followed pages of a range are used; those among the first `at_once` are in memory. How many
 * had been used before and not a moment ago; from bit 8 on how many are used for the first time;
 * from bit 32 on the number of the last one's use before. It is added up without branches, as in
 * take_in() of returns.h.
 */
OWN_FRAME u64 note_use(u64 file, u64 index, u64 pages, u64 at_once)
{
	u32 zero = 0, again = 0, first = 0, number = 0;
	struct departures *all = map_lookup(&uses, &zero);
	struct hits *sums = map_lookup(&hits, &zero);
	if (!all || !sums)
		return 0;
	for (u32 at = 0; at < FOLLOWED_MOST && has_group(index, pages, at); at++) {
		u64 place = followed_in_range(file, index, at), hash = mix(file + place);
		u32 slot = hash & (SLOTS - 1), name = hash >> 32 | 1;
		struct page_out *page = map_lookup(&pages_in, &slot);
		if (!page || !is_in_range(place, index, pages))
			continue;
		u32 before = page->number, is_known = if_equal(page->name, name);
		u32 is_far = is_known & ~if_less((u32)all->count - before, NUMBERS_NEAR);
		u32 is_first = ~is_known & -(u32)is_in_range(place, index, at_once);
		again += is_far & 1;
		first += is_first & 1;
		number = (number & ~is_far) | (before & is_far);
		if (!(is_far | is_first))
			continue;
		forget_use(all, sums, page, ~if_equal(page->name, 0));
		page->name = name;
		page->number = number_of_use(all, sums);
		ADD(sums->in_memory, 1);
	}
	return FORGET(again | first << 8 | (u64)number << 32, file);
}

/* Pages of a file are used by this thread, or are added. */
OWN_FRAME u64 use_pages(struct inode *inode, u64 index, u64 pages, u64 at_once, bool is_used)
{
	u32 zero = 0;
	struct departures *all = map_lookup(&uses, &zero);
	struct hits *sums = map_lookup(&hits, &zero);
	/* Pages that only others use have no part in the subject's order. */
	if (!everyone && !current_thread())
		return 0;
	u64 noted = note_use(file_hash(inode), index, pages, at_once);
	if (!all || !sums || !is_used || !(u32)noted || !current_thread())
		return 0;
	u64 again = (noted & 0xff) * FOLLOWED_STEP, first = (noted >> 8 & 0xff) * FOLLOWED_STEP;
	u32 number = noted >> 32, class_of_first = distance_class(sums->in_memory);
	if (first && class_of_first < DISTANCE_CLASSES)
		ADD(sums->first[class_of_first], first);
	u32 class = TOO_FAR;
	if (again && (u32)all->count - number < KNOWN_MOST)
		class = distance_class(still_out(all, number));
	if (again && class < DISTANCE_CLASSES)
		ADD(sums->again[class], again);
	return 0;
}

SECTION("tp_btf/mm_filemap_add_to_page_cache")
int hit_added(u64 *context)
{
	struct folio *folio = (void *)context[0];
	u64 pages = bytes_of(folio) >> page_shift;
	return use_pages(folio->mapping->host, folio->index, pages, pages, 0);
}

/* Also what is truncated: it is in memory no longer. */
SECTION("tp_btf/mm_filemap_delete_from_page_cache")
int hit_deleted(u64 *context)
{
	struct folio *folio = (void *)context[0];
	u64 file = file_hash(folio->mapping->host), index = folio->index;
	u64 pages = bytes_of(folio) >> page_shift;
	u32 zero = 0;
	struct departures *all = map_lookup(&uses, &zero);
	struct hits *sums = map_lookup(&hits, &zero);
	if (!all || !sums)
		return 0;
	for (u32 at = 0; at < FOLLOWED_MOST && has_group(index, pages, at); at++) {
		u64 place = followed_in_range(file, index, at), hash = mix(file + place);
		u32 slot = hash & (SLOTS - 1), name = hash >> 32 | 1;
		struct page_out *page = map_lookup(&pages_in, &slot);
		if (page && is_in_range(place, index, pages))
			forget_use(all, sums, page, if_equal(page->name, name));
	}
	return 0;
}

/* A read comes by here again for each batch of folios, with the end of the whole read. */
SECTION("tp_btf/mm_filemap_get_pages")
int hit_read(u64 *context)
{
	struct address_space *mapping = (void *)context[0];
	u64 pages = pages_of_read(mapping->host, context[1], context[2]);
	return pages ? use_pages(mapping->host, context[1], pages, FOLIOS_AT_ONCE, 1) : 0;
}

/* Comes by before it is known whether the page is in memory. */
SECTION("tp_btf/mm_filemap_fault")
int hit_mapped(u64 *context)
{
	struct address_space *mapping = (void *)context[0];
	return use_pages(mapping->host, context[1], 1, 0, 1);
}

#endif

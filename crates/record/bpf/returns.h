/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Pages that left memory and came back, and how far away they were: how many other pages left
 * after them and are still out. With room for that many more they would have stayed.
 *
 * One order for the whole machine, for pages of files and of swap. Of each 16 pages one is followed
 * and stands for them. Which one depends on the file and the place alone and not on the folio, as
 * what leaves in a large folio comes back in small ones: see followed_page().
 */
#ifndef RETURNS_H
#define RETURNS_H

#include "sums.h"

/* A huge page has 32 groups; what does not begin with a group has part of one more. */
enum { FOLLOWED_STEP = 16, FOLLOWED_MOST = 33 };
enum page_kind { PAGES_OF_FILES, PAGES_OF_SWAP, PAGE_KINDS };

/*
 * A page that is out, in a slot that it shares with others. A later page takes the slot, so some
 * are forgotten; a name of 32 bits is not mistaken for another. `number` says when it left.
 */
enum { SLOTS = 1 << 20 };
struct page_out {
	u32 name, number;
};
struct {
	MAP_NUMBER(type, MAP_ARRAY);
	MAP_NUMBER(max_entries, SLOTS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct page_out);
} pages_out SECTION(".maps");

/*
 * Followed pages have numbers in the order in which they leave. Of each block of 32 numbers, and of
 * each row of 128 blocks, it is known how many are still out. The blocks are used in turns.
 */
enum { BLOCK_SHIFT = 5, ROW_SHIFT = 7, ROW = 1 << ROW_SHIFT, ROWS = 128, BLOCKS = ROW * ROWS };
struct departures {
	u64 count;
	u32 out[BLOCKS];
	u32 out_of_row[ROWS];
};
struct {
	MAP_NUMBER(type, MAP_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct departures);
} departures SECTION(".maps");

/*
 * Pages by their distance, in the order of the Rust side (trace/returns.rs): four classes for each
 * power of two, the last one for what is too far to know. `ordered` has the pages that are still
 * out, `plain` all that left.
 */
enum { SMALLEST_CLASS = 16, DISTANCE_CLASSES = 81, TOO_FAR = DISTANCE_CLASSES - 1 };
struct returns {
	u64 left[PAGE_KINDS];
	u64 came_back[PAGE_KINDS];
	u64 ordered[PAGE_KINDS][DISTANCE_CLASSES];
	u64 plain[PAGE_KINDS][DISTANCE_CLASSES];
};
struct {
	MAP_NUMBER(type, MAP_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct returns);
} returns SECTION(".maps");

INLINE u64 mix(u64 number)
{
	number = (number ^ number >> 32) * 0xd6e8feb86659fd93ull;
	return (number ^ number >> 29) * 0xd6e8feb86659fd93ull;
}

INLINE u64 file_hash(struct inode *inode)
{
	return mix(inode->i_ino ^ (u64)inode->i_sb->s_dev << 40);
}

/*
 * Of a group of pages, which share all bits of their index above `mask`, the one that is followed.
 * The hash of the file and of what is above decides four bits of the index, then with these the
 * next four. So the followed pages of large groups are some of those of small ones, each group has
 * one, and which one says nothing of that of the next group: what is read in strides is followed as
 * often as all else.
 */
enum { DRAWN_BITS = 4, DRAWN_MOST = 24 };
INLINE u64 followed_page(u64 file, u64 index, u64 mask)
{
	u64 page = index & ~mask;
#pragma clang loop unroll(full)
	for (s32 bit = DRAWN_MOST - DRAWN_BITS; bit >= 0; bit -= DRAWN_BITS) {
		u64 above = page >> (bit + DRAWN_BITS);
		u64 drawn = mix(file + (above << 5 | bit)) >> (64 - DRAWN_BITS);
		page |= drawn << bit & mask;
	}
	return page;
}

/* Of the group of pages at this place behind the first one of a range, the one that is followed. */
INLINE u64 followed_in_range(u64 file, u64 index, u32 at)
{
	return followed_page(file, index + at * FOLLOWED_STEP, FOLLOWED_STEP - 1);
}

/* Whether a range of pages reaches into that many groups, and one more. */
INLINE bool has_group(u64 index, u64 pages, u32 at)
{
	return (index & (FOLLOWED_STEP - 1)) + pages > at * FOLLOWED_STEP;
}

/*
 * Not 0 if the page is one of these. Calculated, and unknown to the verifier, which else follows
 * what each comparison says of the range.
 */
INLINE u64 is_in_range(u64 page, u64 index, u64 pages)
{
	u64 place = page - index, behind = place - pages;
	asm volatile("" : "+r"(place), "+r"(behind));
	return ~place >> 63 & behind >> 63;
}

INLINE u32 block_of(u64 number) { return number >> BLOCK_SHIFT & (BLOCKS - 1); }

/* A followed page leaves; its number. */
INLINE u32 next_number(struct departures *all)
{
	u64 number = ADD(all->count, 1);
	u32 block = block_of(number);
	/* Those of the turn before that are out still are too far to know from now on. */
	if (!(number & ((1 << BLOCK_SHIFT) - 1))) {
		u32 forgotten = __sync_lock_test_and_set(&all->out[block], 0);
		ADD(all->out_of_row[block >> ROW_SHIFT], -forgotten);
	}
	ADD(all->out[block], 1);
	ADD(all->out_of_row[block >> ROW_SHIFT], 1);
	return number;
}

/*
 * All bits if a < b < 2^31, else 0. Without a branch, also none of the compiler's: the verifier
 * would follow each of them.
 */
INLINE u32 if_less(u32 a, u32 b)
{
	u32 difference = a - b;
	asm volatile("" : "+r"(difference));
	u32 mask = -(difference >> 31);
	asm volatile("" : "+r"(mask));
	return mask;
}

/* All bits if they are equal, else 0. */
INLINE u32 if_equal(u32 a, u32 b)
{
	u64 difference = (u64)(a ^ b) - 1;
	asm volatile("" : "+r"(difference));
	u32 mask = -(u32)(difference >> 63);
	asm volatile("" : "+r"(mask));
	return mask;
}

/* Of a page that left before so many others it is not known which of them are out. */
enum { KNOWN_MOST = (BLOCKS - 1) << BLOCK_SHIFT };

/* Below 0 for a moment where a block began on two processors at once. */
INLINE u32 count_in(struct departures *all, u32 block)
{
	u32 count = all->out[block & (BLOCKS - 1)];
	return count & ~if_less(count, 0);
}

/* The page with this number is in again, or leaves once more; `mask` is 0 if it is not known. */
INLINE void take_from(struct departures *all, u32 number, u32 mask)
{
	u32 one_less = mask & if_less((u32)all->count - number, KNOWN_MOST);
	u32 block = block_of(number);
	ADD(all->out[block], one_less);
	ADD(all->out_of_row[block >> ROW_SHIFT], one_less);
}

/* How many followed pages left after the one with this number, and are still out. */
OWN_FRAME u64 still_out(struct departures *all, u32 number)
{
	u32 block = block_of(number), last = block_of(all->count - 1);
	u32 row = block >> ROW_SHIFT, last_row = last >> ROW_SHIFT;
	u32 first_place = block & (ROW - 1), last_place = last & (ROW - 1);
	/* In one row, the last one behind the first; else the way leads over the ends of two rows. */
	u32 in_one_row = if_equal(row, last_row) & ~if_less(last_place, first_place);
	u32 end = (last_place & in_one_row) | ((ROW - 1) & ~in_one_row);
	u32 rows_between = (last_row - row - 1) & (ROWS - 1) & ~in_one_row;
	/* On average half of its own block left after it. */
	u64 sum = count_in(all, block) / 2;
#pragma clang loop unroll(disable)
	for (u32 place = 0; place < ROW; place++) {
		u32 in_first = if_less(first_place, place) & if_less(place, end + 1);
		u32 in_last = if_less(place, last_place + 1) & ~in_one_row;
		u32 is_between = if_less((place - row - 1) & (ROWS - 1), rows_between);
		sum += count_in(all, row << ROW_SHIFT | place) & in_first;
		sum += count_in(all, last_row << ROW_SHIFT | place) & in_last;
		sum += all->out_of_row[place] & is_between;
	}
	return sum;
}

INLINE u32 distance_class(u64 followed)
{
	u64 pages = followed * FOLLOWED_STEP;
	u32 power = 0;
#pragma clang loop unroll(full)
	for (u32 step = 16; step; step >>= 1)
		power += step & ~if_equal(pages >> (power + step), 0);
	/* A page or none has the power 0 as well, and is in the first class. */
	u32 class = power * 4 + (pages * 4 >> power & 3) - SMALLEST_CLASS;
	class &= ~if_less(power, SMALLEST_CLASS / 4);
	u32 is_far = if_less(TOO_FAR, class);
	return (class & ~is_far) | (TOO_FAR & is_far);
}

/* Pages of a folio or a request leave memory. */
INLINE void leave_memory(enum page_kind kind, u64 file, u64 index, u64 bytes)
{
	u64 pages = bytes >> page_shift;
	u32 zero = 0;
	struct departures *all = map_lookup(&departures, &zero);
	struct returns *sums = map_lookup(&returns, &zero);
	if (!all || !sums)
		return;
	ADD(sums->left[kind], pages);
	for (u32 at = 0; at < FOLLOWED_MOST && has_group(index, pages, at); at++) {
		u64 place = followed_in_range(file, index, at), hash = mix(file + place);
		u32 slot = hash & (SLOTS - 1), name = hash >> 32 | 1;
		struct page_out *page = map_lookup(&pages_out, &slot);
		if (!page || !is_in_range(place, index, pages))
			continue;
		/* A slot of swap may be written again without having been read. */
		take_from(all, page->number, if_equal(page->name, name));
		page->name = name;
		page->number = next_number(all);
	}
}

/*
 * Of the followed pages of a folio or a request those that were out are in again. How many, and in
 * the upper half the number of the last one. With a frame of its own all ways through it are one
 * for the verifier when it returns.
 */
OWN_FRAME u64 take_in(struct departures *all, u64 file, u64 index, u64 pages)
{
	u32 had = 0, number = 0;
	for (u32 at = 0; at < FOLLOWED_MOST && has_group(index, pages, at); at++) {
		u64 place = followed_in_range(file, index, at), hash = mix(file + place);
		u32 slot = hash & (SLOTS - 1), name = hash >> 32 | 1;
		struct page_out *page = map_lookup(&pages_out, &slot);
		if (!page || !is_in_range(place, index, pages))
			continue;
		u32 is_known = if_equal(page->name, name);
		number = (number & ~is_known) | (page->number & is_known);
		page->name &= ~is_known;
		take_from(all, page->number, is_known);
		had += is_known & 1;
	}
	return FORGET(had | (u64)number << 32, file);
}

/*
 * Pages of a folio or a request come into memory. Those that were out are counted if a thread of
 * the subject brings them; how many bytes, estimated.
 */
OWN_FRAME u64 come_back(enum page_kind kind, u64 file, u64 index, u64 bytes, bool is_subject)
{
	u32 zero = 0;
	struct departures *all = map_lookup(&departures, &zero);
	struct returns *sums = map_lookup(&returns, &zero);
	if (!all || !sums)
		return 0;
	u64 taken = take_in(all, file, index, bytes >> page_shift);
	u64 had = (taken & 0xffffffff) * FOLLOWED_STEP;
	if (!had)
		return 0;
	u32 number = taken >> 32, age = (u32)all->count - number;
	u32 ordered = TOO_FAR, plain = TOO_FAR;
	if (age < KNOWN_MOST) {
		ordered = distance_class(still_out(all, number));
		plain = distance_class(age);
	}
	if (is_subject && ordered < DISTANCE_CLASSES && plain < DISTANCE_CLASSES) {
		ADD(sums->came_back[kind], had);
		ADD(sums->ordered[kind][ordered], had);
		ADD(sums->plain[kind][plain], had);
	}
	return had << page_shift;
}

#endif

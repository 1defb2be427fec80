/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Requests to block devices, from issue to completion: by device and direction, with the number of
 * requests in each class of latency, for the whole machine; reads and writes by process as well.
 *
 * Whose a request is shows where it is made: the thread that does so, or, for a thread of the
 * kernel that writes back a file, the process that last made that file dirty. Where the kernel does
 * not report that (before Linux 6.5) it is the thread that issues the request.
 */
#ifndef BLOCK_H
#define BLOCK_H

#include "sums.h"

enum { CLASSES = 20, FIRST_CLASS = 4, DIRECTIONS = 3, SECTOR_SHIFT = 9 };
enum { READ, WRITE, FLUSH, DISCARD, OTHER };	/* REQ_OP_READ to REQ_OP_DISCARD, and all else */
enum { OPERATION = 0xff };

/* `issued_ns` is 0 until it is issued. `process` is 0 for one outside of the subject. */
struct request_state {
	u64 issued_ns, sector;
	u32 device, bytes, left, direction;
	u64 block_bytes;
	u32 process, has_process;
};
struct {
	MAP_NUMBER(type, MAP_HASH);
	MAP_NUMBER(max_entries, 8192);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, struct request_state);
} requests SECTION(".maps");

struct device_key {
	u32 device, direction;
};
struct device_sums {
	u64 requests, bytes, latency_ns, misaligned;
	u64 classes[CLASSES];
};
struct {
	MAP_NUMBER(type, MAP_HASH);
	MAP_NUMBER(max_entries, 64 * DIRECTIONS);
	MAP_TYPE(key, struct device_key);
	MAP_TYPE(value, struct device_sums);
} devices SECTION(".maps");

/* Reads and writes of one process; the Rust side takes the entries away each second. */
struct user_key {
	u32 device, direction, process;
};
struct user_sums {
	u64 requests, bytes, latency_ns;
	u64 classes[CLASSES];
};
struct {
	MAP_NUMBER(type, MAP_HASH);
	MAP_NUMBER(max_entries, 4096);
	MAP_TYPE(key, struct user_key);
	MAP_TYPE(value, struct user_sums);
} device_users SECTION(".maps");

/* Which process last made a file dirty. */
struct dirtied_key {
	u32 device, unused;
	u64 inode;
};
struct {
	MAP_NUMBER(type, MAP_LRU_HASH);
	MAP_NUMBER(max_entries, 16384);
	MAP_TYPE(key, struct dirtied_key);
	MAP_TYPE(value, u32);
} dirtied_by SECTION(".maps");

/* The process whose pages a thread of the kernel writes; 0 where it is not known. */
INLINE u32 dirtier_of(struct request *request)
{
	const u64 is_tail = 1, is_no_file = 3;
	u64 bio = (u64)READ_FIELD(request, request, bio);
	u64 vector = (u64)READ_FIELD(bio, bio, bi_io_vec);
	u64 page = (u64)READ_FIELD(bio_vec, vector, bv_page);
	u64 head = READ_FIELD(page, page, compound_head);
	if (head & is_tail)
		page = head - is_tail;
	u64 mapping = (u64)READ_FIELD(folio, page, mapping);
	if (!mapping || mapping & is_no_file)
		return 0;
	u64 inode = (u64)READ_FIELD(address_space, mapping, host);
	u64 file_system = (u64)READ_FIELD(inode, inode, i_sb);
	struct dirtied_key key = {
		.device = READ_FIELD(super_block, file_system, s_dev),
		.inode = READ_FIELD(inode, inode, i_ino),
	};
	u32 *process = map_lookup(&dirtied_by, &key);
	return process ? *process : 0;
}

INLINE u32 process_of(struct request *request)
{
	struct task_struct *task = current_task();
	u32 dirtier = task->flags & PF_KTHREAD ? dirtier_of(request) : 0;
	if (dirtier)
		return dirtier;
	return thread_of(task) ? task->tgid : 0;
}

SECTION("tp_btf/block_io_start")
int request_made(u64 *context)
{
	u64 key = context[0];
	struct request_state state = {
		.process = process_of((void *)context[0]),
		.has_process = 1,
	};
	map_update(&requests, &key, &state, ANY);
	return 0;
}

INLINE u32 direction_of(struct request *request)
{
	u32 operation = request->cmd_flags & OPERATION;
	return operation > OTHER ? OTHER : operation;
}

SECTION("tp_btf/block_rq_issue")
int request_issued(u64 *context)
{
	struct request *request = (void *)context[0];
	u64 key = (u64)request, queue = (u64)READ_FIELD(request, request, q);
	u64 disk = (u64)READ_FIELD(request_queue, queue, disk);
	struct request_state state = {
		.issued_ns = ktime_ns(),
		.sector = request->__sector,
		.bytes = request->__data_len,
		.left = request->__data_len,
		.direction = direction_of(request),
		.block_bytes = READ_FIELD(request_queue, queue, limits.physical_block_size),
	};
	struct request_state *made = map_lookup(&requests, &key);
	if (disk)
		state.device = READ_FIELD(gendisk, disk, major) << 20 |
			       READ_FIELD(gendisk, disk, first_minor);
	if (made && made->has_process && !made->issued_ns)
		state.process = made->process;
	else
		state.process = process_of(request);
	count(EVENTS, 1);
	if (state.direction < DIRECTIONS)
		count(REQUESTS_ISSUED, 1);
	if (map_update(&requests, &key, &state, ANY))
		count(LOST_REQUESTS, 1);
	return 0;
}

SECTION("tp_btf/block_rq_requeue")
int request_requeued(u64 *context)
{
	u64 key = context[0];
	struct request_state *state = map_lookup(&requests, &key);
	if (!state)
		return 0;
	if (state->issued_ns && state->direction < DIRECTIONS)
		count(REQUESTS_ISSUED, -1);
	state->issued_ns = 0;
	state->has_process = 1;
	return 0;
}

/* The first class whose bound, a power of two in us, the latency does not exceed. */
INLINE u32 class_of(u64 latency_ns)
{
	u32 class = 0;
	while (class < CLASSES && latency_ns > 1000ull << (FIRST_CLASS + class))
		class++;
	return FORGET(class, latency_ns);
}

INLINE void add_to_user(const struct request_state *state, u64 latency_ns, u32 class)
{
	struct user_key key = {
		.device = state->device,
		.direction = state->direction,
		.process = state->process,
	};
	struct user_sums none = {};
	struct user_sums *user = map_lookup(&device_users, &key);
	if (!user) {
		map_update(&device_users, &key, &none, IF_ABSENT);
		user = map_lookup(&device_users, &key);
	}
	if (!user) {
		key.process = 0;
		map_update(&device_users, &key, &none, IF_ABSENT);
		user = map_lookup(&device_users, &key);
	}
	if (!user)
		return;	/* it is among those of the device */
	ADD(user->requests, 1);
	ADD(user->bytes, state->bytes);
	ADD(user->latency_ns, latency_ns);
	if (class < CLASSES)
		ADD(user->classes[class], 1);
}

INLINE void add_completed(const struct request_state *state)
{
	struct device_key key = { .device = state->device, .direction = state->direction };
	struct device_sums none = {};
	u64 latency_ns = ktime_ns() - state->issued_ns;
	struct device_sums *device = map_lookup(&devices, &key);
	if (!device) {
		map_update(&devices, &key, &none, IF_ABSENT);
		device = map_lookup(&devices, &key);
	}
	if (!device) {
		count(LOST_REQUESTS, 1);
		return;
	}
	u32 class = class_of(latency_ns);
	u64 mask = state->block_bytes - 1;
	ADD(device->requests, 1);
	ADD(device->bytes, state->bytes);
	ADD(device->latency_ns, latency_ns);
	if (class < CLASSES)
		ADD(device->classes[class], 1);
	if (state->block_bytes && ((state->sector << SECTOR_SHIFT | state->bytes) & mask))
		ADD(device->misaligned, 1);
	if (state->direction < FLUSH)
		add_to_user(state, latency_ns, class);
}

SECTION("tp_btf/block_rq_complete")
int request_completed(u64 *context)
{
	u64 key = context[0];
	u32 bytes = context[2];
	struct request_state *state = map_lookup(&requests, &key);
	count(EVENTS, 1);
	if (!state)
		return 0;
	if (!state->issued_ns) {
		/* It was made and needed no issue of its own, as a flush. */
		map_delete(&requests, &key);
		return 0;
	}
	if (bytes && bytes < state->left) {
		state->left -= bytes;
		return 0;
	}
	struct request_state done = *state;
	map_delete(&requests, &key);
	if (done.direction < DIRECTIONS)
		add_completed(&done);
	return 0;
}

#endif

/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Requests to block devices, from issue to completion: by device and direction, with the number of
 * requests in each class of latency, for the whole machine.
 */
#ifndef BLOCK_H
#define BLOCK_H

#include "sums.h"

enum { CLASSES = 20, FIRST_CLASS = 4, DIRECTIONS = 3, SECTOR_SHIFT = 9 };
enum { READ, WRITE, FLUSH, OTHER };	/* REQ_OP_READ to REQ_OP_FLUSH, and all else */
enum { OPERATION = 0xff };

struct request_state {
	u64 issued_ns, sector;
	u32 device, bytes, left, direction;
	u64 block_bytes;
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

INLINE u32 direction_of(struct request *request)
{
	u32 operation = request->cmd_flags & OPERATION;
	return operation > OTHER ? OTHER : operation;
}

SECTION("tp_btf/block_rq_issue")
int request_issued(u64 *context)
{
	struct request *request = (void *)context[0];
	struct gendisk *disk = request->q->disk;
	u64 key = (u64)request;
	struct request_state state = {
		.issued_ns = ktime_ns(),
		.sector = request->__sector,
		.bytes = request->__data_len,
		.left = request->__data_len,
		.direction = direction_of(request),
		.block_bytes = request->q->limits.physical_block_size,
	};
	if (disk)
		state.device = disk->major << 20 | disk->first_minor;
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
	if (state && state->direction < DIRECTIONS)
		count(REQUESTS_ISSUED, -1);
	map_delete(&requests, &key);
	return 0;
}

/* The first class whose bound, a power of two in us, the latency does not exceed. */
INLINE u32 class_of(u64 latency_ns)
{
	u32 class = 0;
	while (class < CLASSES && latency_ns > 1000ull << (FIRST_CLASS + class))
		class++;
	return class;
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

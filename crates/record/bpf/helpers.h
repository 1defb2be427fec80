/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What a program may call, by the numbers of the kernel's include/uapi/linux/bpf.h, and the forms
 * in which maps and programs are declared for a loader. Only what the recorder uses.
 */
#ifndef HELPERS_H
#define HELPERS_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef _Bool bool;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
/* A function with a frame of its own: all frames of a chain of calls share 512 bytes. */
#define OWN_FRAME static __attribute__((noinline))
#define MAP_NUMBER(name, number) int (*name)[number]
#define MAP_TYPE(name, type) __typeof__(type) *name

enum map_type {
	MAP_HASH = 1,
	MAP_ARRAY = 2,
	MAP_PERCPU_ARRAY = 6,
	MAP_LRU_HASH = 9,
	MAP_RINGBUF = 27,
	MAP_TASK_STORAGE = 29,
};

enum { NO_PREALLOC = 1 };		/* BPF_F_NO_PREALLOC */
enum { ANY = 0, IF_ABSENT = 1 };	/* BPF_ANY, BPF_NOEXIST */
enum { CREATE = 1 };			/* BPF_LOCAL_STORAGE_GET_F_CREATE */
enum { NO_WAKEUP = 1 };			/* BPF_RB_NO_WAKEUP */
enum { WAITING_BYTES = 0 };		/* BPF_RB_AVAIL_DATA */

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) =
	(void *)2;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u64 (*const ktime_ns)(void) = (void *)5;
static long (*const get_stack)(void *context, void *to, u32 bytes, u64 flags) = (void *)67;
static long (*const read_kernel)(void *to, u32 bytes, const void *from) = (void *)113;
static long (*const read_kernel_text)(void *to, u32 bytes, const void *from) = (void *)115;
static long (*const seq_write)(void *seq, const void *data, u32 bytes) = (void *)127;
static long (*const ring_output)(void *ring, void *data, u64 bytes, u64 flags) = (void *)130;
static u64 (*const ring_query)(void *ring, u64 flags) = (void *)134;
static long (*const get_task_stack)(void *task, void *to, u32 bytes, u64 flags) = (void *)141;
static void *(*const storage_of)(void *map, void *task, void *value, u64 flags) = (void *)156;
static void *(*const current_task)(void) = (void *)158;

/* Relocated by the loader to the running kernel: see clang's preserve_access_index. */
#define KERNEL_STRUCT struct __attribute__((preserve_access_index))
#define FIELD_EXISTS(field) __builtin_preserve_field_info(field, 2)
#define FIELD_OFFSET(type, field) __builtin_preserve_field_info(((struct type *)0)->field, 0)
#define ENUM_VALUE(type, value) __builtin_preserve_enum_value(*(enum type *)value, 1)

/* A field of bits, whatever its place is. */
#define READ_BITS(object, field) ({						\
	void *_at = (void *)(object) +						\
		__builtin_preserve_field_info((object)->field, 0);		\
	u64 _value = 0;								\
	switch (__builtin_preserve_field_info((object)->field, 1)) {		\
	case 1: _value = *(u8 *)_at; break;					\
	case 2: _value = *(u16 *)_at; break;					\
	case 4: _value = *(u32 *)_at; break;					\
	case 8: _value = *(u64 *)_at; break;					\
	}									\
	_value <<= __builtin_preserve_field_info((object)->field, 4);		\
	_value >>= __builtin_preserve_field_info((object)->field, 5);		\
	_value;									\
})

/*
 * A field behind an address. A load through a typed pointer that gives another pointer costs the
 * verifier a search among all types of the kernel; this does not, but is a call when it runs.
 */
#define READ_FIELD(type, address, field) ({					\
	__typeof__(((struct type *)0)->field) _field = 0;			\
	read_kernel(&_field, sizeof(_field),					\
		    (void *)((u64)(address) + FIELD_OFFSET(type, field)));	\
	_field;									\
})

/*
 * The same number, of which the verifier knows nothing any more. It follows each branch to the end
 * with what the branch made of a number; those that know nothing are alike and followed once.
 * `unknown` is any number that it does not know.
 */
#define FORGET(number, unknown) ({						\
	u64 _mixed = (u64)(number) ^ (unknown);					\
	asm volatile("" : "+r"(_mixed));					\
	_mixed ^ (unknown);							\
})

#define ADD(to, number) __sync_fetch_and_add(&(to), number)

#endif

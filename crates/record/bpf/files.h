/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Which files: what each process adds to the page cache, makes dirty, reads again after it was
 * evicted; and what of a file is evicted. The Rust side takes the entries away each second.
 */
#ifndef FILES_H
#define FILES_H

#include "block.h"
#include "returns.h"

enum { NAMES = 7, NAME_BYTES = 48 };
enum { FILE_TYPE = 0170000, BLOCK_DEVICE = 0060000 };

/* `process` is 0 for what was evicted: reclaim works for others. */
struct file_key {
	u32 device, process;
	u64 inode;
};
struct file_value {
	u64 added, refaulted, dirtied, evicted;
	char names[NAMES][NAME_BYTES];	/* its own, its directory's, and so on */
};
struct {
	MAP_NUMBER(type, MAP_HASH);
	MAP_NUMBER(max_entries, 4096);
	MAP_TYPE(key, struct file_key);
	MAP_TYPE(value, struct file_value);
} files SECTION(".maps");

INLINE u64 bytes_of(struct folio *folio)
{
	/* The flags are its first word, in every form of the type. */
	u64 flags = *(unsigned long *)folio;
	u32 order = 0;
	if (flags >> ENUM_VALUE(pageflags, PG_head) & 1) {
		struct folio___old *old = (void *)folio;
		if (FIELD_EXISTS(old->_folio_order))
			order = old->_folio_order;
		else
			order = folio->_flags_1 & 0xff;
	}
	return 1ull << (page_shift + (order & 31));
}

/*
 * The pages of a file from `index` to `last` that can be there: a read may ask for much that is
 * behind the end of the file.
 */
INLINE u64 pages_of_read(struct inode *inode, u64 index, u64 last)
{
	u64 end = (inode->i_size + (1ull << page_shift) - 1) >> page_shift;
	if (last >= end)
		last = end - 1;
	return end && last >= index ? last - index + 1 : 0;
}

INLINE u64 read_pointer(u64 at)
{
	u64 pointer = 0;
	read_kernel(&pointer, sizeof(pointer), (void *)at);
	return pointer;
}

/* The last names of a path, as the directory entries of an open file have them. */
INLINE void read_names(struct inode *inode, struct file_value *value)
{
	u64 alias = read_pointer((u64)inode + FIELD_OFFSET(inode, i_dentry.first));
	if (!alias)
		return;
	u64 dentry = alias - FIELD_OFFSET(dentry, d_u.d_alias);
	for (int level = 0; level < NAMES; level++) {
		u64 name = read_pointer(dentry + FIELD_OFFSET(dentry, d_name.name));
		read_kernel_text(value->names[level], NAME_BYTES, (void *)name);
		u64 parent = read_pointer(dentry + FIELD_OFFSET(dentry, d_parent));
		if (parent == dentry || !parent)
			return;
		dentry = parent;
	}
}

OWN_FRAME struct file_value *file_of(struct inode *inode, u32 process)
{
	struct file_key key = {
		.device = inode->i_sb->s_dev,
		.process = process,
		.inode = inode->i_ino,
	};
	if ((inode->i_mode & FILE_TYPE) == BLOCK_DEVICE) {
		key.device = inode->i_rdev;
		key.inode = 0;
	}
	struct file_value *value = map_lookup(&files, &key);
	if (value)
		return value;
	struct file_value none = {};
	read_names(inode, &none);
	map_update(&files, &key, &none, IF_ABSENT);
	return map_lookup(&files, &key);
}

SECTION("tp_btf/mm_filemap_add_to_page_cache")
int page_added(u64 *context)
{
	struct folio *folio = (void *)context[0];
	struct inode *inode = folio->mapping->host;
	struct task_struct *task = current_task();
	struct thread *thread = thread_of(task);
	u64 bytes = bytes_of(folio);
	u64 back = come_back(PAGES_OF_FILES, file_hash(inode), folio->index, bytes, !!thread);
	if (!thread)
		return 0;
	thread->kept[CACHE_ADDED] += bytes;
	thread->kept[REFAULTED] += back;
	struct file_value *file = file_of(inode, task->tgid);
	if (!file) {
		count(LOST_FILE_BYTES, bytes);
		return 0;
	}
	ADD(file->added, bytes);
	if (back)
		ADD(file->refaulted, back);
	return 0;
}

SECTION("tp_btf/mm_filemap_delete_from_page_cache")
int page_deleted(u64 *context)
{
	struct folio *folio = (void *)context[0];
	struct inode *inode = folio->mapping->host;
	struct task_struct *task = current_task();
	/* All else is a file that was truncated or dropped. */
	if (!(task->flags & PF_MEMALLOC))
		return 0;
	u64 bytes = bytes_of(folio);
	leave_memory(PAGES_OF_FILES, file_hash(inode), folio->index, bytes);
	struct file_value *file = everyone ? file_of(inode, 0) : 0;
	if (file)
		ADD(file->evicted, bytes);
	return 0;
}

/* Of a block device's own pages the last one says nothing: all files share them. */
INLINE void note_dirtier(struct inode *inode, u32 process)
{
	struct dirtied_key key = { .device = inode->i_sb->s_dev, .inode = inode->i_ino };
	u32 *known = map_lookup(&dirtied_by, &key);
	if (known && *known == process)
		return;
	if ((inode->i_mode & FILE_TYPE) != BLOCK_DEVICE)
		map_update(&dirtied_by, &key, &process, ANY);
}

SECTION("tp_btf/writeback_dirty_folio")
int page_dirtied(u64 *context)
{
	struct folio *folio = (void *)context[0];
	struct address_space *mapping = (void *)context[1];
	struct task_struct *task = current_task();
	if (!mapping || !thread_of(task))
		return 0;
	struct inode *inode = mapping->host;
	if (!(task->flags & PF_KTHREAD))
		note_dirtier(inode, task->tgid);
	struct file_value *file = file_of(inode, task->tgid);
	if (file)
		ADD(file->dirtied, bytes_of(folio));
	return 0;
}

/*
 * A request whose pages belong to no file: they leave for swap, or come back from it. A program's own
 * buffer is such a page too: it has no flag of swap when it is written past the cache, and is not
 * locked when it is read into. A device above another hands a copy of the request down, which is not
 * a second one.
 */
SECTION("tp_btf/block_bio_queue")
int swap_queued(u64 *context)
{
	struct bio *bio = (void *)context[0];
	u32 operation = bio->bi_opf & OPERATION, bytes = bio->bi_iter.bi_size;
	if (operation > WRITE || !bytes || bio->bi_flags >> BIO_CLONED & 1)
		return 0;
	if (operation == WRITE && !(bio->bi_opf >> ENUM_VALUE(req_flag_bits, __REQ_SWAP) & 1))
		return 0;
	u64 vector = (u64)READ_FIELD(bio, bio, bi_io_vec);
	u64 flags = read_pointer((u64)READ_FIELD(bio_vec, vector, bv_page));
	if (!(flags >> ENUM_VALUE(pageflags, PG_swapbacked) & 1))
		return 0;
	u64 device = mix(READ_FIELD(block_device, bio->bi_bdev, bd_dev));
	u64 slot = bio->bi_iter.bi_sector >> (page_shift - SECTOR_SHIFT);
	if (operation == WRITE) {
		leave_memory(PAGES_OF_SWAP, device, slot, bytes);
		return 0;
	}
	if (!(flags >> ENUM_VALUE(pageflags, PG_locked) & 1))
		return 0;
	struct thread *thread = current_thread();
	come_back(PAGES_OF_SWAP, device, slot, bytes, !!thread);
	if (thread)
		thread->kept[SWAPPED_IN] += bytes;
	return 0;
}

#endif

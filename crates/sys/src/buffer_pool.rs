//! Buffers of an engine (`model::engine::Buffers`) that threads read and write while requests to
//! devices are in flight.
//!
//! All memory is one mapping, made before the first request. A part of a buffer is leased to a
//! request: shared if a device is written from it, exclusive if a device is read into it. The pool
//! keeps a list of what is leased and hands out no reference that a lease forbids, so the
//! contract of an engine is checked, not trusted: a violation is a panic of the caller.

use crate::error::{Error, Result};
use crate::memory::{Mapping, Pages};
use model::engine::{BufferId, BufferRange, Buffers};
use std::sync::Arc;

/// Buffers start at multiples of this, as direct I/O needs.
const ALIGNMENT: usize = 4096;
/// Leases of one buffer that need no more memory.
const LEASES: usize = 16;

/// The buffers.
#[derive(Debug)]
pub struct BufferPool {
    memory: Arc<Mapping>,
    buffers: Vec<PooledBuffer>,
    /// What is not taken, by size, the smallest first.
    free: Vec<(u32, Vec<BufferId>)>,
}

#[derive(Debug)]
struct PooledBuffer {
    start: usize,
    bytes: u32,
    leases: Vec<LeasedRange>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LeasedRange {
    start: u32,
    len: u32,
    is_exclusive: bool,
}

/// A part of a buffer that a device is written from. It may be read elsewhere meanwhile.
#[derive(Debug)]
pub struct SharedPart(LeasedPart);

/// A part of a buffer that a device is read into. Nothing else touches it.
#[derive(Debug)]
pub struct ExclusivePart(LeasedPart);

#[derive(Debug)]
struct LeasedPart {
    memory: Arc<Mapping>,
    /// Its first byte in the mapping.
    at: usize,
    range: BufferRange,
}

impl BufferPool {
    /// Makes `count` buffers of each size: pairs of bytes and count. With `is_locked` they stay in
    /// memory.
    ///
    /// # Errors
    /// `NoMemory` if they do not fit, `Invalid` for no bytes at all.
    pub fn new(sizes: &[(u32, u32)], is_locked: bool) -> Result<Self> {
        let mut buffers = Vec::new();
        let mut free: Vec<(u32, Vec<BufferId>)> = Vec::new();
        let mut end = 0usize;
        for (bytes, count) in sizes {
            for _ in 0..*count {
                let id = BufferId(buffers.len() as u32);
                let leases = Vec::with_capacity(LEASES);
                buffers.push(PooledBuffer { start: end, bytes: *bytes, leases });
                end += (*bytes as usize).next_multiple_of(ALIGNMENT);
                match free.iter_mut().find(|(size, _)| size == bytes) {
                    Some((_, ids)) => ids.push(id),
                    None => free.push((*bytes, vec![id])),
                }
            }
        }
        free.sort_by_key(|(bytes, _)| *bytes);
        if end == 0 {
            return Err(Error::invalid("make buffers", "none was asked for"));
        }
        let mut memory = Mapping::anonymous(end, Pages::Base)?;
        if is_locked {
            memory.lock()?;
        } else {
            memory.populate_write()?;
        }
        Ok(Self { memory: Arc::new(memory), buffers, free })
    }

    /// Leases a part that a device is to be written from.
    ///
    /// # Panics
    /// If the part is not in its buffer, or a device is being read into it.
    pub fn share(&mut self, range: BufferRange) -> SharedPart {
        SharedPart(self.lease(range, false))
    }

    /// Leases a part that a device is to be read into.
    ///
    /// # Panics
    /// If the part is not in its buffer, or another request uses it.
    pub fn exclude(&mut self, range: BufferRange) -> ExclusivePart {
        ExclusivePart(self.lease(range, true))
    }

    /// Ends a lease.
    pub fn end_shared(&mut self, part: SharedPart) {
        self.end(&part.0, false);
    }

    /// Ends a lease.
    pub fn end_exclusive(&mut self, part: ExclusivePart) {
        self.end(&part.0, true);
    }

    fn lease(&mut self, range: BufferRange, is_exclusive: bool) -> LeasedPart {
        let at = self.place(range, |leased| leased.is_exclusive || is_exclusive);
        let leased = LeasedRange { start: range.start, len: range.len, is_exclusive };
        self.buffers[range.buffer.0 as usize].leases.push(leased);
        LeasedPart { memory: Arc::clone(&self.memory), at, range }
    }

    fn end(&mut self, part: &LeasedPart, is_exclusive: bool) {
        // A part of another pool is in no list of this one, or its memory would be.
        assert!(Arc::ptr_eq(&self.memory, &part.memory), "a part of another pool");
        let BufferRange { buffer, start, len } = part.range;
        let leases = &mut self.buffers[buffer.0 as usize].leases;
        let ended = LeasedRange { start, len, is_exclusive };
        if let Some(at) = leases.iter().position(|leased| *leased == ended) {
            leases.swap_remove(at);
        }
    }

    /// Where the range is in the mapping.
    fn place(&self, range: BufferRange, forbids: impl Fn(&LeasedRange) -> bool) -> usize {
        let buffer = &self.buffers[range.buffer.0 as usize];
        let end = range.start.checked_add(range.len);
        assert!(end.is_some_and(|end| end <= buffer.bytes), "a part of its buffer");
        let meets = |leased: &LeasedRange| {
            let (start, end) =
                (u64::from(range.start), u64::from(range.start) + u64::from(range.len));
            let leased_end = u64::from(leased.start) + u64::from(leased.len);
            start < leased_end && u64::from(leased.start) < end
        };
        let is_free = !buffer.leases.iter().any(|leased| meets(leased) && forbids(leased));
        assert!(is_free, "a range that a request in flight uses");
        buffer.start + range.start as usize
    }
}

impl Buffers for BufferPool {
    fn take(&mut self, bytes: u32) -> Option<BufferId> {
        self.free.iter_mut().filter(|(size, _)| *size >= bytes).find_map(|(_, ids)| ids.pop())
    }

    fn give_back(&mut self, buffer: BufferId) {
        let bytes = self.buffers[buffer.0 as usize].bytes;
        if let Some((_, ids)) = self.free.iter_mut().find(|(size, _)| *size == bytes) {
            ids.push(buffer);
        }
    }

    fn bytes(&self, range: BufferRange) -> &[u8] {
        let at = self.place(range, |leased| leased.is_exclusive);
        // SAFETY: `place` checked that the range is in its buffer, so in the mapping, and that no
        // request reads into it. A lease that would allow that needs `&mut self`, so none begins
        // while the reference lives.
        unsafe { std::slice::from_raw_parts(pointer(&self.memory, at), range.len as usize) }
    }

    fn bytes_mut(&mut self, range: BufferRange) -> &mut [u8] {
        let at = self.place(range, |_| true);
        // SAFETY: as for `bytes`; no lease of the range exists at all, and `&mut self` excludes
        // every other reference of this pool.
        unsafe { std::slice::from_raw_parts_mut(pointer(&self.memory, at), range.len as usize) }
    }
}

impl SharedPart {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let LeasedPart { memory, at, range } = &self.0;
        // SAFETY: the range was checked when it was leased, and the mapping lives as long as this
        // value. While the lease is listed the pool gives no other caller access to it.
        unsafe { std::slice::from_raw_parts(pointer(memory, *at), range.len as usize) }
    }
}

impl ExclusivePart {
    /// How many bytes it has.
    #[must_use]
    pub fn bytes_len(&self) -> usize {
        self.0.range.len as usize
    }

    /// The bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let LeasedPart { memory, at, range } = &mut self.0;
        // SAFETY: as for a shared part; while an exclusive lease is listed the pool gives no other
        // reference to the range, and this value is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(pointer(memory, *at), range.len as usize) }
    }
}

/// A pointer to a byte of the mapping.
fn pointer(memory: &Mapping, at: usize) -> *mut u8 {
    debug_assert!(at <= memory.len());
    // SAFETY: `at` is within the mapping: `place` has checked it.
    unsafe { memory.pointer().as_ptr().add(at) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn part(buffer: BufferId, start: u32, len: u32) -> BufferRange {
        BufferRange { buffer, start, len }
    }

    #[test]
    fn the_smallest_that_fits_is_taken_and_comes_back() {
        let mut pool = BufferPool::new(&[(8192, 1), (512, 2)], false).unwrap();
        let [first, second, third] = [100, 512, 512].map(|bytes| pool.take(bytes).unwrap());
        assert_eq!(pool.buffers[third.0 as usize].bytes, 8192);
        assert_eq!(pool.take(1), None);
        pool.give_back(second);
        assert_eq!(pool.take(513), None);
        assert_eq!(pool.take(512), Some(second));
        pool.bytes_mut(part(first, 0, 512)).fill(1);
        pool.bytes_mut(part(second, 0, 512)).fill(2);
        assert_eq!(pool.bytes(part(first, 511, 1)), [1]);
        assert!(BufferPool::new(&[], false).is_err());
    }

    #[test]
    fn what_is_leased_is_out_of_reach() {
        let mut pool = BufferPool::new(&[(4096, 1)], false).unwrap();
        let buffer = pool.take(4096).unwrap();
        let mut read = pool.exclude(part(buffer, 512, 512));
        let written = pool.share(part(buffer, 1024, 512));
        let refused = |pool: &mut BufferPool, call: fn(&mut BufferPool, BufferRange), range| {
            catch_unwind(AssertUnwindSafe(|| call(pool, range))).is_err()
        };
        let look: fn(&mut BufferPool, BufferRange) = |pool, range| {
            pool.bytes(range);
        };
        let change: fn(&mut BufferPool, BufferRange) = |pool, range| {
            pool.bytes_mut(range);
        };
        let exclude: fn(&mut BufferPool, BufferRange) = |pool, range| {
            let part = pool.exclude(range);
            pool.end_exclusive(part);
        };
        let share: fn(&mut BufferPool, BufferRange) = |pool, range| {
            let part = pool.share(range);
            pool.end_shared(part);
        };
        for (range, expected) in [
            // In order: look, change, exclude, share.
            (part(buffer, 0, 512), [false; 4]),
            (part(buffer, 0, 513), [true; 4]),
            (part(buffer, 1023, 1), [true; 4]),
            (part(buffer, 1024, 512), [false, true, true, false]),
            (part(buffer, 1536, 2560), [false; 4]),
            (part(buffer, 1536, 2561), [true; 4]),
            (part(buffer, u32::MAX, 2), [true; 4]),
        ] {
            let found = [look, change, exclude, share].map(|call| refused(&mut pool, call, range));
            assert_eq!(found, expected, "{range:?}");
        }
        read.bytes_mut().fill(9);
        assert_eq!(written.bytes(), [0; 512]);
        pool.end_exclusive(read);
        pool.end_shared(written);
        assert_eq!(pool.bytes(part(buffer, 512, 2)), [9, 9]);
        pool.bytes_mut(part(buffer, 0, 4096)).fill(3);
    }

    #[test]
    fn a_part_of_another_pool_is_refused() {
        let [mut one, mut other] = [(); 2].map(|()| BufferPool::new(&[(512, 1)], false).unwrap());
        let part = one.share(part(BufferId(0), 0, 512));
        assert!(catch_unwind(AssertUnwindSafe(|| other.end_shared(part))).is_err());
    }
}

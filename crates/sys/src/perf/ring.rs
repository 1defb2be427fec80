//! The ring of one processor: memory that the kernel writes records to and one reader empties.
//!
//! The kernel owns `data_head`, the reader `data_tail`. Bytes between the two do not change
//! until the reader moves its end, so records are decoded in place; one that wraps round the
//! end is copied first. The numbers are loaded with acquire and stored with release ordering,
//! as linux/perf_event.h asks.

use super::Event;
use super::record::{HEADER_BYTES, Record, length};
use crate::error::{Error, Result};
use crate::region::Region;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// `data_head` in the first page of the mapping; the layout is fixed by the kernel.
const HEAD_OFFSET: usize = 1024;
/// `data_tail`.
const TAIL_OFFSET: usize = 1032;
/// So often, in bytes, the reader gives room back while it reads.
const GIVE_BACK_BYTES: u64 = 128 << 10;

/// The ring of one processor.
#[derive(Debug)]
pub struct Ring {
    region: Region,
    page_bytes: usize,
    data_bytes: usize,
    /// The record that wraps round the end, put together; kept for its memory.
    wrapped: Vec<u8>,
}

impl Ring {
    /// Maps a ring of `pages` pages, a power of two, for the records of `event` and of those
    /// that share it.
    ///
    /// # Errors
    /// `Invalid` for a number that is no power of two; `Denied` or `NoMemory` where less
    /// memory may be locked.
    pub fn map(event: &Event, pages: usize) -> Result<Self> {
        const OPERATION: &str = "map a ring for kernel events";
        if !pages.is_power_of_two() {
            return Err(Error::invalid(OPERATION, "its size is no power of two"));
        }
        let page_bytes = crate::process::page_bytes();
        let too_large = || Error::invalid(OPERATION, "it is too large");
        let data_bytes = pages.checked_mul(page_bytes).ok_or_else(too_large)?;
        let bytes = data_bytes.checked_add(page_bytes).ok_or_else(too_large)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let region = Region::of_file(OPERATION, event.descriptor.as_fd(), access, 0, bytes)?;
        Ok(Self { region, page_bytes, data_bytes, wrapped: Vec::new() })
    }

    /// Hands over every record that was there when the call began, in the order of writing.
    pub fn drain(&mut self, mut take: impl FnMut(Record<'_>)) {
        let head = self.number(HEAD_OFFSET).load(Ordering::Acquire);
        let first = self.number(TAIL_OFFSET).load(Ordering::Relaxed);
        let (mut tail, mut given_back) = (first, first);
        while tail < head {
            let Some(bytes) = self.record(tail, head) else {
                // Not a record: nothing behind it can be found either.
                tail = head;
                break;
            };
            tail += bytes.len() as u64;
            take(Record::decode(bytes));
            if tail - given_back >= GIVE_BACK_BYTES {
                self.number(TAIL_OFFSET).store(tail, Ordering::Release);
                given_back = tail;
            }
        }
        self.number(TAIL_OFFSET).store(tail, Ordering::Release);
    }

    /// The whole record at `tail`; `None` if the ring is empty.
    fn record(&mut self, tail: u64, head: u64) -> Option<&[u8]> {
        let available = usize::try_from(head - tail).ok()?;
        if available < HEADER_BYTES || available > self.data_bytes {
            return None;
        }
        let mask = self.data_bytes as u64 - 1;
        let offset = usize::try_from(tail & mask).ok()?;
        // Records are multiples of 8 bytes, so a header never wraps.
        let bytes = length(self.data(offset, HEADER_BYTES)).filter(|bytes| *bytes <= available)?;
        let straight = bytes.min(self.data_bytes - offset);
        if straight == bytes {
            return Some(self.data(offset, bytes));
        }
        let mut wrapped = std::mem::take(&mut self.wrapped);
        wrapped.clear();
        wrapped.extend_from_slice(self.data(offset, straight));
        wrapped.extend_from_slice(self.data(0, bytes - straight));
        self.wrapped = wrapped;
        Some(&self.wrapped)
    }

    /// Bytes of the ring; the caller asks only for bytes between tail and head.
    fn data(&self, offset: usize, bytes: usize) -> &[u8] {
        assert!(offset + bytes <= self.data_bytes);
        // SAFETY: within the mapping by the check above. The kernel does not write between
        // tail and head, which is where `record` looks, until `drain`, which holds the only
        // mutable reference, moves the tail behind these bytes.
        unsafe {
            std::slice::from_raw_parts(
                self.region.start().as_ptr().add(self.page_bytes + offset),
                bytes,
            )
        }
    }

    fn number(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both offsets are in the first page, aligned to 8 bytes; the mapping lives as
        // long as `self`, and kernel and reader use the number atomically.
        unsafe { AtomicU64::from_ptr(self.region.start().as_ptr().add(offset).cast()) }
    }
}

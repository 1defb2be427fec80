//! Restores pages of other processes from swap, in the order given, for a bounded time.
//!
//! 1. Pages are taken from the front in calls; a call is one byte read from each of some pages of
//!    one process, as many as took 10 ms last time: what a call has begun it cannot leave.
//! 2. One reader takes the calls one after another; several take them from a common cursor, so
//!    the device always has that many requests and the order is still nearly that of the slots.
//! 3. With advice the kernel gets the pages a step ahead, and the reading only waits for them and
//!    maps them: without the reading it would be unknown whether they came.
//! 4. Where reading is forbidden, a call is advice for its pages. The queue of the device holds
//!    it up once that is full, so it is sized by its time as well.

use super::anonymous::SwappedPage;
use super::targets::TargetProcess;
use crate::background::batch::fitting;
use serde::{Deserialize, Serialize};
use std::ops::{Range, RangeInclusive};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use sys::clock::now_ns;
use sys::process_memory::{self, MAX_AT_ONCE, MemoryAdvice};

/// How long a call is to take.
const CALL_TIME: Duration = Duration::from_millis(10);
/// The first call: even if each page costs a slow disk's seek it stays short.
const FIRST_CALL_PAGES: usize = 4;
/// How far advice runs ahead: as many pages as came in this time. So long it may be held up at
/// the end by what is under way.
const AHEAD_TIME: Duration = Duration::from_millis(100);
/// At first, and enough requests for any flash.
const AHEAD_PAGES: RangeInclusive<usize> = 64..=1024;
/// Advice is given in parts of this many pages, so that a reader is never without.
const ADVISED_AT_ONCE: usize = 256;

/// A method that makes the kernel restore pages of another process from swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreMethod {
    /// One thread reads a byte of each page, in slot order.
    RemoteRead,
    /// As many threads, which take parts of the slots in turn.
    RemoteReaders(u8),
    /// `process_madvise(MADV_WILLNEED)` in slot order, and a byte of each page read behind it.
    WillNeed,
    /// The advice alone, where no process may be read: the pages come into the swap cache, and
    /// the first touch of each maps it without the device.
    AdviceOnly,
}

/// What a batch did.
#[derive(Debug, Default)]
pub(super) struct PageBatch {
    /// Pages taken from the front.
    pub taken: usize,
    /// Of these, pages that could be read.
    pub reached: usize,
    /// Why some process's could not, where it was a matter of rights.
    pub refused: Option<sys::Error>,
}

/// Reads with one method, batch after batch.
#[derive(Debug)]
pub(super) struct PageReader<'a> {
    targets: &'a [TargetProcess],
    method: RestoreMethod,
    /// Pages of one call: learnt from the last one.
    call_pages: AtomicUsize,
    /// Pages from the front that advice was given for.
    advised: usize,
    /// How many pages advice runs ahead: learnt from the last part.
    ahead_pages: usize,
}

impl<'a> PageReader<'a> {
    pub(super) fn new(targets: &'a [TargetProcess], method: RestoreMethod) -> Self {
        Self {
            targets,
            method,
            call_pages: AtomicUsize::new(FIRST_CALL_PAGES),
            advised: 0,
            ahead_pages: *AHEAD_PAGES.start(),
        }
    }

    pub(super) fn method(&self) -> RestoreMethod {
        self.method
    }

    /// Takes pages from the front of `pages` until they end or it is `until_ns`; those that are
    /// left come first in the next batch.
    pub(super) fn batch(&mut self, pages: &[SwappedPage], until_ns: u64) -> PageBatch {
        match self.method {
            RestoreMethod::RemoteReaders(readers) => self.read(pages, readers.max(1), until_ns),
            RestoreMethod::WillNeed => self.read_advised(pages, until_ns),
            RestoreMethod::RemoteRead | RestoreMethod::AdviceOnly => self.read(pages, 1, until_ns),
        }
    }

    /// The pages were changed at the front: what was advised is not known any more.
    pub(super) fn forget_advice(&mut self) {
        self.advised = 0;
    }

    fn read_advised(&mut self, pages: &[SwappedPage], until_ns: u64) -> PageBatch {
        let mut batch = PageBatch::default();
        while batch.taken < pages.len() && now_ns() < until_ns {
            let ahead = pages.len().min(batch.taken + self.ahead_pages);
            while self.advised < ahead {
                let end = ahead.min(self.advised + ADVISED_AT_ONCE);
                if let Err(error) = self.advise(&pages[self.advised..end]) {
                    batch.refused = Some(error);
                    return batch;
                }
                self.advised = end;
            }
            let end = ahead.min(batch.taken + ADVISED_AT_ONCE);
            let start = Instant::now();
            let part = self.read(&pages[batch.taken..end], 1, until_ns);
            let limits = *AHEAD_PAGES.start()..=(4 * self.ahead_pages).min(*AHEAD_PAGES.end());
            self.ahead_pages = fitting_pages(part.taken, start.elapsed(), AHEAD_TIME, limits);
            batch.taken += part.taken;
            batch.reached += part.reached;
            batch.refused = batch.refused.or(part.refused);
        }
        self.advised = self.advised.saturating_sub(batch.taken);
        batch
    }

    /// Advises the kernel that these will be needed. A process or mapping that is gone is not an
    /// error here: the reading finds it missing.
    fn advise(&self, pages: &[SwappedPage]) -> sys::Result<()> {
        for same in pages.chunk_by(|before, after| before.target == after.target) {
            let target = &self.targets[same[0].target as usize];
            let ranges: Vec<Range<u64>> = ranges(same).collect();
            let mut left: &[Range<u64>] = &ranges;
            while !left.is_empty() {
                let part = &left[..left.len().min(MAX_AT_ONCE)];
                let advised =
                    process_memory::advise(target.descriptor.as_fd(), part, MemoryAdvice::WillNeed);
                let bytes = match advised {
                    Ok(bytes) => bytes,
                    Err(error) if is_right(&error) => return Err(error),
                    Err(_) => break,
                };
                // The range at which it stopped is left out.
                left = &left[whole(part, bytes).saturating_add(1).min(left.len())..];
            }
        }
        Ok(())
    }

    fn read(&self, pages: &[SwappedPage], readers: u8, until_ns: u64) -> PageBatch {
        let cursor = AtomicUsize::new(0);
        let reached = AtomicUsize::new(0);
        let refused = Mutex::new(None);
        let work = || {
            while now_ns() < until_ns {
                let call = self.next_call(pages, &cursor);
                if call.is_empty() {
                    break;
                }
                let start = Instant::now();
                let called = match self.method {
                    RestoreMethod::AdviceOnly => self.advise(call).map(|()| call.len()),
                    _ => self.call(call),
                };
                match called {
                    Ok(pages) => {
                        reached.fetch_add(pages, Ordering::Relaxed);
                    }
                    Err(error) => {
                        let mut first = refused.lock().unwrap_or_else(PoisonError::into_inner);
                        first.get_or_insert(error);
                    }
                }
                self.learn(call.len(), start.elapsed());
            }
        };
        match readers {
            1 => work(),
            // They inherit its low priority; a scope waits for them all.
            _ => std::thread::scope(|scope| {
                for _ in 0..readers {
                    scope.spawn(work);
                }
            }),
        }
        PageBatch {
            taken: cursor.into_inner(),
            reached: reached.into_inner(),
            refused: refused.into_inner().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// The next pages of one process; none at the end.
    fn next_call<'p>(&self, pages: &'p [SwappedPage], cursor: &AtomicUsize) -> &'p [SwappedPage] {
        let wanted = self.call_pages.load(Ordering::Relaxed);
        let call = |start: usize| {
            let rest = &pages[start..];
            let is_same = |page: &&SwappedPage| page.target == rest[0].target;
            start..start + rest.iter().take(wanted).take_while(is_same).count()
        };
        let mut start = cursor.load(Ordering::Relaxed);
        loop {
            let range = call(start);
            let advanced = cursor.compare_exchange_weak(
                start,
                range.end,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match advanced {
                Ok(_) => return &pages[range],
                Err(now) => start = now,
            }
        }
    }

    /// Reads pages of one process; how many could be. A page that cannot is left out; that the
    /// process has ended, and only that, ends it early.
    fn call(&self, pages: &[SwappedPage]) -> sys::Result<usize> {
        let target = &self.targets[pages[0].target as usize];
        let addresses: Vec<u64> = pages.iter().map(|page| page.address).collect();
        let mut left: &[u64] = &addresses;
        let mut reached = 0;
        // The number is that of our process as long as the descriptor says that it lives.
        while !left.is_empty() && target.lives() {
            let read = match process_memory::touch(target.pid, left) {
                Ok(read) => read,
                Err(error) if is_right(&error) => return Err(error),
                Err(_) => break,
            };
            reached += read;
            left = &left[(read + 1).min(left.len())..];
        }
        Ok(reached)
    }

    /// Sizes the next call by this one; at most four times as many, since a call for pages
    /// that are in memory already is quick.
    fn learn(&self, pages: usize, took: Duration) {
        let limits = 1..=(4 * pages).clamp(1, MAX_AT_ONCE);
        let next = fitting_pages(pages, took, CALL_TIME, limits);
        self.call_pages.store(next, Ordering::Relaxed);
    }
}

/// As [`fitting`] in numbers of pages.
fn fitting_pages(
    pages: usize,
    took: Duration,
    time: Duration,
    limits: RangeInclusive<usize>,
) -> usize {
    let limits = *limits.start() as u64..=*limits.end() as u64;
    fitting(pages as u64, took, time, limits) as usize
}

/// Whether it was refused for want of a right or is not in this kernel, and so always will be.
fn is_right(error: &sys::Error) -> bool {
    matches!(error.kind, sys::ErrorKind::Denied | sys::ErrorKind::Unsupported)
}

/// How many of `ranges`, from the first on, make up `bytes`.
fn whole(ranges: &[Range<u64>], bytes: u64) -> usize {
    let mut left = bytes;
    ranges
        .iter()
        .take_while(|range| {
            let length = range.end - range.start;
            let fits = length <= left;
            left = left.saturating_sub(length);
            fits
        })
        .count()
}

/// Pages of one process that follow each other in this order and in the address space, as ranges.
pub(super) fn ranges(pages: &[SwappedPage]) -> impl Iterator<Item = Range<u64>> {
    let page_bytes = sys::process::page_bytes() as u64;
    let follows = move |before: &SwappedPage, after: &SwappedPage| {
        before.target == after.target
            && before.address.checked_add(page_bytes) == Some(after.address)
    };
    pages
        .chunk_by(follows)
        .map(move |run| run[0].address..run[0].address + run.len() as u64 * page_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_become_one_range() {
        let page = |address| SwappedPage { target: 0, area: 0, slot: 1, address };
        let bytes = sys::process::page_bytes() as u64;
        let pages = [1, 2, 4, 3, 4].map(|number| page(number * bytes));
        let expected = [1..3, 4..5, 3..5].map(|range| range.start * bytes..range.end * bytes);
        let ranges: Vec<_> = ranges(&pages).collect();
        assert_eq!(ranges, expected);
        assert_eq!(whole(&ranges, 3 * bytes), 2);
        assert_eq!(whole(&ranges, 3 * bytes - 1), 1);
        assert_eq!(whole(&ranges, u64::MAX), 3);
    }

    #[test]
    fn a_call_takes_as_many_pages_as_fit_into_its_time() {
        const MICROSECOND: Duration = Duration::from_micros(1);
        let reader = PageReader::new(&[], RestoreMethod::RemoteRead);
        let after = |pages, took| {
            reader.learn(pages, took);
            reader.call_pages.load(Ordering::Relaxed)
        };
        assert_eq!(after(8, 2 * CALL_TIME), 4);
        assert_eq!(after(4, MICROSECOND), 16, "at most four times");
        assert_eq!(after(512, MICROSECOND), 512);
        assert_eq!(after(4, 100 * CALL_TIME), 1);
    }
}

//! How long the subject waited for its reads and writes: quantities that several rules
//! share.
//!
//! With events the kernel's stack at each wait separates reads, writes and syncs. Without
//! them only the sum of all block I/O is known, so its split is inferred or unknown.

use super::RunView;
use crate::wording::long_time;
use model::Grade;
use model::explanation::{TimePart, TimeSlice};

/// Without events, reads explain the waits where not more than this many times as many
/// bytes were written. Picked: a copy writes what it reads.
const MOST_WRITTEN: u64 = 1;

/// The wait for reads from devices.
#[derive(Clone, Debug)]
pub(super) enum ReadWait {
    /// So long.
    Ns {
        /// How long, summed over threads.
        ns: u64,
        /// How it is known.
        grade: Grade,
    },
    /// Nothing was read.
    Nothing,
    /// It cannot be separated from other waits.
    Unclear(&'static str),
}

impl RunView<'_> {
    /// `Waited 7.4 s`; of more than the wall time it says that it is a sum over threads.
    pub(super) fn waited(&self, ns: u64) -> String {
        let whose = if ns > self.wall_ns() { "Threads together waited" } else { "Waited" };
        format!("{whose} {}", long_time(ns as f64))
    }

    /// How long the subject waited for reads from devices, without swap. A wait that no
    /// event reported is the kernel's charge for all block I/O, which can be far too long
    /// (a wait counted from a wrong start). So it is no more than the devices can have
    /// kept the subject waiting.
    pub(super) fn read_wait(&self) -> ReadWait {
        let charged = self.charged_read_wait();
        let ReadWait::Ns { ns, grade: Grade::Inferred } = charged else {
            return charged;
        };
        match self.most_device_wait_ns() {
            Some(most) if most < ns && !self.hurts(most) => {
                ReadWait::Unclear("more waiting was charged than the devices took for all requests")
            }
            Some(most) => ReadWait::Ns { ns: ns.min(most), grade: Grade::Inferred },
            None => charged,
        }
    }

    fn charged_read_wait(&self) -> ReadWait {
        let read = self.read_bytes();
        let written = self.write_bytes().unwrap_or(0);
        if let Some(ns) = self.part_ns(TimePart::BlockRead) {
            let direct = self.part_ns(TimePart::DirectIo).unwrap_or(0);
            let is_read = read.unwrap_or(0) >= written;
            return ReadWait::Ns {
                ns: ns.saturating_add(if is_read { direct } else { 0 }),
                grade: self.part_grade(TimePart::BlockRead),
            };
        }
        let Some(read) = read else {
            return ReadWait::Unclear("bytes read were not counted");
        };
        if read == 0 {
            return ReadWait::Nothing;
        }
        let mut slices = self.accounts.bars.thread.iter();
        if slices.all(|slice| slice.name != TimeSlice::BlockIo) {
            return ReadWait::Unclear("the kernel did not count waits for block I/O");
        }
        if written > read.saturating_mul(MOST_WRITTEN) {
            return ReadWait::Unclear("without events waits for reads and for writes look alike");
        }
        let known =
            [TimePart::DirtyThrottle, TimePart::Flush, TimePart::BlockWrite, TimePart::SwapIn];
        let others =
            known.iter().filter_map(|part| self.part_ns(*part)).fold(0, u64::saturating_add);
        ReadWait::Ns {
            ns: self.accounts.thread(TimeSlice::BlockIo).saturating_sub(others),
            grade: Grade::Inferred,
        }
    }

    /// The wait for reads; 0 if it is not known.
    pub(super) fn read_wait_ns(&self) -> u64 {
        match self.read_wait() {
            ReadWait::Ns { ns, .. } => ns,
            ReadWait::Nothing | ReadWait::Unclear(_) => 0,
        }
    }

    /// The wait for writes and syncs, if known; direct I/O that mostly wrote counts with
    /// them.
    pub(super) fn write_wait_ns(&self) -> Option<u64> {
        let is_written = self.write_bytes().unwrap_or(0) > self.read_bytes().unwrap_or(0);
        let direct = self.part_ns(TimePart::DirectIo).filter(|_| is_written);
        sum([self.cached_write_wait_ns(), direct])
    }

    /// The wait for writes and syncs of what went through the page cache.
    pub(super) fn cached_write_wait_ns(&self) -> Option<u64> {
        let mut written = self.part_ns(TimePart::BlockWrite);
        if self.part_grade(TimePart::BlockWrite) == Grade::Inferred {
            // All that was charged for block I/O, which can be too long.
            let most = self.most_device_wait_ns().unwrap_or(u64::MAX);
            written = written.map(|ns| ns.min(most));
        }
        sum([self.part_ns(TimePart::Flush), written])
    }
}

fn sum<const N: usize>(known: [Option<u64>; N]) -> Option<u64> {
    let known = known.into_iter().flatten();
    known.fold(None, |sum, ns| Some(sum.unwrap_or(0u64).saturating_add(ns)))
}

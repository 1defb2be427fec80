//! How long reads of a served cache take, those that the flash answered and those that the disk
//! did: from the request to its answer, on the clock of the service.
//!
//! Only reads of up to 128 KiB that belong to no long run are timed, since only such ones can be
//! answered by the flash; and none that begins during a fill, which lets reads wait for the disk.
//! Nothing is allocated; a read costs two looks at the clock.

use cache::Counters;
use model::engine::{BufferRange, Output, REQUESTS_MAX, Request, RequestId};
use std::time::Instant;

/// The largest read that the cache answers.
const TIMED_BYTES_MAX: u32 = 128 << 10;

/// Sums of timed reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimedReads {
    /// Reads that the flash answered.
    pub(super) hits: u64,
    /// How long they took together.
    pub(super) hit_ns: u64,
    /// Reads that the disk answered.
    pub(super) misses: u64,
    /// How long they took together.
    pub(super) miss_ns: u64,
}

/// The reads that are timed now, and those that were.
#[derive(Debug)]
pub(super) struct ReadTimes {
    /// By the number of the request; one that is open for very long loses its place to another.
    open: Box<[Option<(RequestId, Instant)>]>,
    timed: TimedReads,
    is_paused: bool,
}

impl Default for ReadTimes {
    fn default() -> Self {
        let open = vec![None; REQUESTS_MAX].into_boxed_slice();
        Self { open, timed: TimedReads::default(), is_paused: false }
    }
}

impl ReadTimes {
    /// The sums.
    pub(super) fn timed(&self) -> TimedReads {
        self.timed
    }

    /// No read that begins from now on is timed, or every one.
    pub(super) fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// A request came, and the engine counted it: one in a long run is left to the disk.
    pub(super) fn begin(&mut self, id: RequestId, request: &Request, is_in_run: bool) {
        if let Request::Read { data: BufferRange { len, .. }, .. } = request
            && *len <= TIMED_BYTES_MAX
            && !is_in_run
            && !self.is_paused
        {
            let place = self.place(id);
            self.open[place] = Some((id, Instant::now()));
        }
    }

    /// What the engine put out for one input, between these two counts of it.
    pub(super) fn end(&mut self, outputs: &[Output], before: &Counters, after: &Counters) {
        let answered = |output: &Output| match *output {
            Output::Complete { id, result } => Some((id, result.is_ok())),
            _ => None,
        };
        let ended = outputs.iter().filter_map(answered);
        let count = ended.clone().filter(|(id, _)| self.is_open(*id)).count() as u64;
        if count == 0 {
            return;
        }
        let hits = after.hits - before.hits;
        let now = Instant::now();
        for (id, is_ok) in ended {
            let place = self.place(id);
            let Some((_, since)) = self.open[place].take_if(|(open, _)| *open == id) else {
                continue;
            };
            let ns = now.duration_since(since).as_nanos() as u64;
            // Of several at once it is not known which one was a hit, unless all were or none.
            if is_ok && hits == count {
                self.timed.hits += 1;
                self.timed.hit_ns += ns;
            } else if is_ok && hits == 0 {
                self.timed.misses += 1;
                self.timed.miss_ns += ns;
            }
        }
    }

    fn place(&self, id: RequestId) -> usize {
        (id.0 % self.open.len() as u64) as usize
    }

    fn is_open(&self, id: RequestId) -> bool {
        self.open[self.place(id)].is_some_and(|(open, _)| open == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::engine::{BufferId, ErrorNumber};

    fn read(len: u32) -> Request {
        Request::Read { offset: 0, data: BufferRange::first(BufferId(0), len) }
    }

    fn done(id: u64) -> Output {
        Output::Complete { id: RequestId(id), result: Ok(()) }
    }

    #[test]
    fn hits_and_misses_are_timed_and_runs_and_failures_are_not() {
        let mut times = ReadTimes::default();
        let none = Counters::default();
        let hit = Counters { hits: 1, ..none };
        times.begin(RequestId(1), &read(4096), false);
        times.begin(RequestId(2), &read(4096), false);
        times.begin(RequestId(3), &read(4096), true);
        times.begin(RequestId(4), &read(256 << 10), false);
        times.begin(RequestId(5), &Request::Flush, false);
        times.pause(true);
        times.begin(RequestId(7), &read(4096), false);
        times.pause(false);
        times.begin(RequestId(6), &read(4096), false);
        times.end(&[done(1)], &none, &hit);
        times.end(&[done(2), done(3), done(4), done(5), done(7)], &none, &none);
        let failed = Output::Complete { id: RequestId(6), result: Err(ErrorNumber::EIO) };
        times.end(&[failed], &none, &none);
        let TimedReads { hits, misses, .. } = times.timed();
        assert_eq!((hits, misses), (1, 1));
        // One of two was a hit: which one is not known.
        times.begin(RequestId(7), &read(4096), false);
        times.begin(RequestId(8), &read(4096), false);
        times.end(&[done(7), done(8)], &none, &hit);
        // Another request has the place of an old one.
        times.begin(RequestId(9), &read(4096), false);
        times.begin(RequestId(9 + REQUESTS_MAX as u64), &read(4096), false);
        times.end(&[done(9)], &none, &none);
        let timed = times.timed();
        assert_eq!((timed.hits, timed.misses), (1, 1), "{timed:?}");
        times.end(&[done(9 + REQUESTS_MAX as u64)], &none, &none);
        assert_eq!(times.timed().misses, 2);
    }
}

//! S3-FIFO for a cache that is a log of segments: whole segments are reclaimed, the oldest first.
//!
//! 1. A new key enters a segment of the small queue; one whose ghost is found, of the main queue.
//! 2. If the main queue has at most 90 % of the segments, the oldest segment of the small queue is
//!    reclaimed: what was hit twice or more moves to the main queue, the rest goes out and becomes
//!    ghosts.
//! 3. Else the oldest segment of the main queue is: what was hit stays there, with one hit less.
//!
//! The caller owns the segments; this decides. The figures are those of [`super::S3Fifo`].

use std::num::NonZeroU32;

use model::Bytes;

use super::percent;
use crate::recent::RecentKeys;

/// Percent of the segments that the small queue has when the cache is full.
const SMALL_PERCENT: u32 = 10;

/// Hits that lead from the small queue to the main queue.
const PROMOTING_HITS: u8 = 2;

/// The queue that a segment is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogQueue {
    /// What is new.
    Small,
    /// What proved itself.
    Main,
}

/// The decisions, and the ghosts of the small queue.
#[derive(Clone, Debug)]
pub struct LogS3Fifo {
    ghosts: RecentKeys,
    main_segments: u32,
}

impl LogS3Fifo {
    /// For a log of so many segments that holds about `frames` keys.
    pub fn new(segments: NonZeroU32, frames: u32) -> Self {
        let small = percent(segments, SMALL_PERCENT).max(1);
        let ghosts = u64::from(frames) * u64::from(100 - SMALL_PERCENT) / 100;
        Self { ghosts: RecentKeys::new(ghosts as u32), main_segments: segments.get() - small }
    }

    /// The memory of its ghosts: 3.6 bytes a key that the log holds.
    pub fn bytes(&self) -> Bytes {
        self.ghosts.bytes()
    }

    /// The queue that a new key enters.
    pub fn enter(&mut self, key: u64) -> LogQueue {
        if self.ghosts.take(key) { LogQueue::Main } else { LogQueue::Small }
    }

    /// The queue whose oldest segment is to be reclaimed; one of them has a segment.
    pub fn reclaims(&self, small_segments: u32, main_segments: u32) -> LogQueue {
        let is_main = main_segments > self.main_segments || small_segments == 0;
        if is_main && main_segments > 0 { LogQueue::Main } else { LogQueue::Small }
    }

    /// What becomes of a key in a segment that is reclaimed: it moves to the main queue with these
    /// hits, or is evicted.
    pub fn keeps(&mut self, queue: LogQueue, key: u64, hits: u8) -> Option<u8> {
        match queue {
            LogQueue::Main => hits.checked_sub(1),
            LogQueue::Small if hits >= PROMOTING_HITS => Some(0),
            LogQueue::Small => {
                self.ghosts.push(key);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_decides_as_s3_fifo_does() {
        let mut log = LogS3Fifo::new(NonZeroU32::new(20).unwrap(), 100);
        assert_eq!(log.reclaims(2, 18), LogQueue::Small);
        assert_eq!(log.reclaims(1, 19), LogQueue::Main);
        assert_eq!(log.reclaims(0, 5), LogQueue::Main);
        assert_eq!(log.reclaims(5, 0), LogQueue::Small);
        assert_eq!(log.keeps(LogQueue::Small, 1, 2), Some(0));
        assert_eq!(log.keeps(LogQueue::Main, 1, 2), Some(1));
        assert_eq!(log.keeps(LogQueue::Main, 1, 0), None);
        assert_eq!(log.enter(1), LogQueue::Small, "evicted from the main queue: no ghost");
        assert_eq!(log.keeps(LogQueue::Small, 2, 1), None);
        assert_eq!([log.enter(2), log.enter(2)], [LogQueue::Main, LogQueue::Small]);
    }
}

//! Keeps long sequential runs out: a disk reads them well by itself, and they would evict what it
//! does not.
//!
//! Keys are block numbers. A few streams are followed, as several files are read at a time; a
//! request that continues one makes it longer, any other one starts a new stream in place of the
//! one that stood still the longest. The first blocks of a run are admitted, because no run is
//! known to be long before it is.

use super::Admission;

/// Streams that are followed at a time. Picked: more readers of a disk make its head seek anyway.
const STREAMS: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The block that would continue it.
    next: u64,
    /// Its blocks so far.
    blocks: u64,
}

/// Admits blocks until their run is longer than a limit.
#[derive(Clone, Debug)]
pub struct ShortRuns {
    /// The latest first.
    streams: [Stream; STREAMS],
    blocks_max: u64,
}

impl ShortRuns {
    /// Admits the first `blocks_max` blocks of each run.
    pub fn new(blocks_max: u64) -> Self {
        Self { streams: [Stream { next: u64::MAX, blocks: 0 }; STREAMS], blocks_max }
    }

    /// The blocks of the run that the last request belongs to.
    pub fn run_blocks(&self) -> u64 {
        self.streams[0].blocks
    }
}

impl Admission for ShortRuns {
    fn request(&mut self, key: u64) {
        // A block that is requested again, as two small reads of it do, neither continues nor ends
        // its run.
        let continued = |stream: &Stream| {
            stream.blocks > 0 && (stream.next == key || stream.next == key.wrapping_add(1))
        };
        let at = self.streams.iter().position(continued).unwrap_or(STREAMS - 1);
        let stream = self.streams[at];
        let blocks = if !continued(&stream) {
            1
        } else if stream.next == key {
            stream.blocks + 1
        } else {
            stream.blocks
        };
        self.streams.copy_within(0..at, 1);
        self.streams[0] = Stream { next: key.wrapping_add(1), blocks };
    }

    fn admits(&mut self, _key: u64) -> bool {
        self.run_blocks() <= self.blocks_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(runs: &mut ShortRuns, keys: impl IntoIterator<Item = u64>) -> Vec<bool> {
        let admit = |key| {
            runs.request(key);
            runs.admits(key)
        };
        keys.into_iter().map(admit).collect()
    }

    #[test]
    fn a_run_is_refused_past_the_limit() {
        let mut runs = ShortRuns::new(3);
        assert_eq!(admitted(&mut runs, 7..12), [true, true, true, false, false]);
        assert_eq!(admitted(&mut runs, [11, 500, 12]), [false, true, false]);
    }

    #[test]
    fn runs_that_alternate_are_both_seen() {
        let mut runs = ShortRuns::new(2);
        let keys = (0..4).flat_map(|step| (0..STREAMS as u64).map(move |run| run * 1000 + step));
        let all = admitted(&mut runs, keys);
        assert!(
            all[..2 * STREAMS].iter().all(|&is| is) && all[2 * STREAMS..].iter().all(|&is| !is)
        );
    }

    #[test]
    fn the_last_block_number_starts_no_run_and_fails_nothing() {
        let mut runs = ShortRuns::new(1);
        assert_eq!(admitted(&mut runs, [u64::MAX, u64::MAX, 0]), [true, true, false]);
    }
}

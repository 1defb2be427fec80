//! What `guest/use.py` wrote down of skewed requests: each request, and now and then what both
//! disks had done until then. Also the fewest misses that the same requests could have had.

use std::collections::{BTreeSet, HashMap};

use crate::bench::report::malformed;
use crate::error::Error;

pub(super) const BLOCK_BYTES: f64 = 4096.0;
const SECTOR_BYTES: f64 = 512.0;
/// Windows of so many requests are judged: of one with fewer chance would decide.
const WINDOW: usize = 500;

/// What a disk had done at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct DiskCounts {
    reads: f64,
    written_bytes: f64,
}

/// Requests between two looks at the disks.
#[derive(Clone, Debug, Default, PartialEq)]
struct Chunk {
    requests: usize,
    /// What the requests took.
    seconds: f64,
    /// Its end, since the first request.
    end_s: f64,
    /// Reads that reached the disk; those that the cache did not answer, where it says so.
    misses: f64,
}

/// A run of requests.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestLog {
    /// The block of each.
    pub(super) blocks: Vec<u64>,
    chunks: Vec<Chunk>,
    /// Bytes that were written to the stick meanwhile.
    pub(super) stick_written_bytes: f64,
}

impl RequestLog {
    /// # Errors
    /// [`Error::Malformed`] for lines that the script does not write.
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        let mut log = Self::default();
        let mut chunk = Chunk::default();
        let mut before: HashMap<&str, DiskCounts> = HashMap::new();
        let (mut hits, mut hits_before) = (None, 0.0);
        for line in text.lines() {
            let wrong = || malformed(format!("a line of requests: {line:?}"));
            let words: Vec<&str> = line.split(' ').collect();
            if let [block, us, "r" | "w"] = words[..] {
                log.blocks.push(block.parse().map_err(|_| wrong())?);
                chunk.requests += 1;
                chunk.seconds += us.parse::<f64>().map_err(|_| wrong())? / 1e6;
                continue;
            }
            if let ["at", seconds] = words[..] {
                chunk.end_s = seconds.parse().map_err(|_| wrong())?;
                continue;
            }
            if let ["hits", count] = words[..] {
                hits = Some(count.parse::<f64>().map_err(|_| wrong())?);
                continue;
            }
            let [device, reads, _, _, written] = words[..] else { return Err(wrong()) };
            let now = DiskCounts {
                reads: reads.parse().map_err(|_| wrong())?,
                written_bytes: written.parse::<f64>().map_err(|_| wrong())? * SECTOR_BYTES,
            };
            let grown = before.insert(device, now).map(|old| (now, old));
            match (device, grown) {
                ("disk", Some((now, old))) => {
                    chunk.misses = match hits {
                        Some(hits) => chunk.requests as f64 - (hits - hits_before),
                        None => now.reads - old.reads,
                    };
                    log.chunks.push(std::mem::take(&mut chunk));
                }
                ("stick", Some((now, old))) => {
                    log.stick_written_bytes += now.written_bytes - old.written_bytes;
                }
                ("disk" | "stick", None) => {}
                _ => return Err(wrong()),
            }
            hits_before = hits.unwrap_or_default();
        }
        Ok(log)
    }

    pub(super) fn misses(&self) -> f64 {
        self.chunks.iter().map(|chunk| chunk.misses).sum()
    }

    /// The share of requests that did not reach the disk.
    pub(super) fn hit_ratio(&self) -> f64 {
        1.0 - self.misses() / self.blocks.len().max(1) as f64
    }

    pub(super) fn hit_bytes(&self) -> f64 {
        (self.blocks.len() as f64 - self.misses()).max(0.0) * BLOCK_BYTES
    }

    /// Requests in a second.
    pub(super) fn rate(&self) -> f64 {
        self.blocks.len() as f64 / self.chunks.iter().map(|chunk| chunk.seconds).sum::<f64>()
    }

    /// The seconds after which a window first had so large a share of hits; all if none had.
    pub(super) fn seconds_until(&self, hit_ratio: f64) -> f64 {
        for (at, chunk) in self.chunks.iter().enumerate() {
            let mut requests = 0;
            let of_window = |chunk: &&Chunk| {
                let is_of = requests < WINDOW;
                requests += chunk.requests;
                is_of
            };
            let window: Vec<&Chunk> =
                self.chunks[..=at].iter().rev().take_while(of_window).collect();
            let all: usize = window.iter().map(|chunk| chunk.requests).sum();
            let misses: f64 = window.iter().map(|chunk| chunk.misses).sum();
            if all >= WINDOW && 1.0 - misses / all as f64 >= hit_ratio {
                return chunk.end_s;
            }
        }
        self.chunks.last().map_or(0.0, |chunk| chunk.end_s)
    }
}

/// The fewest misses among the requests behind the first `from`, with room for `slots` blocks: what
/// is next used last leaves, and what is used later than all that is there does not come in.
pub(super) fn fewest_misses(blocks: &[u64], from: usize, slots: usize) -> f64 {
    let mut next_use = vec![usize::MAX; blocks.len()];
    let mut seen = HashMap::new();
    for (at, block) in blocks.iter().enumerate().rev() {
        if let Some(next) = seen.insert(block, at) {
            next_use[at] = next;
        }
    }
    // By the next use, which no two blocks share but `MAX`.
    let mut kept: BTreeSet<(usize, u64)> = BTreeSet::new();
    let mut misses = 0;
    for (at, block) in blocks.iter().enumerate() {
        let is_hit = kept.remove(&(at, *block));
        misses += u32::from(!is_hit && at >= from);
        if next_use[at] < usize::MAX {
            kept.insert((next_use[at], *block));
        }
        if kept.len() > slots {
            kept.pop_last();
        }
    }
    f64::from(misses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_between_looks_at_the_disks() {
        let text = "at 0\ndisk 10 1 0 0\nstick 5 1 0 8\n7 1000 r\n7 3000 w\nat 2\n\
                    disk 11 9 0 0\nstick 6 9 0 12\n9 1000 r\nat 3.5\ndisk 11 9 0 0\n\
                    stick 6 9 0 12\n";
        let log = RequestLog::read(text).unwrap();
        assert_eq!((log.blocks.clone(), log.misses()), (vec![7, 7, 9], 1.0));
        assert_eq!((log.stick_written_bytes, log.hit_bytes()), (2048.0, 8192.0));
        assert_eq!(log.rate().round(), 600.0);
        assert_eq!((log.chunks[0].end_s, log.seconds_until(2.0)), (2.0, 3.5));
        assert!(RequestLog::read("at x\n").is_err());
        // What a cache answered is known better where the disk serves others too.
        let text = "hits 5\ndisk 10 1 0 0\n7 1 r\n7 1 r\n7 1 r\nhits 7\ndisk 99 9 0 0\n";
        assert_eq!(RequestLog::read(text).unwrap().misses(), 1.0);
        assert!(RequestLog::read("7 x r\n").is_err());
        assert!(RequestLog::read("7\n").is_err());
    }

    #[test]
    fn a_cache_is_warm_when_a_whole_window_hits() {
        let misses = [250.0, 0.0, 100.0, 0.0, 0.0].into_iter().zip(1..);
        let chunk =
            |(misses, at)| Chunk { requests: 250, seconds: 0.5, end_s: f64::from(at), misses };
        let chunks = misses.map(chunk).collect();
        let log = RequestLog { chunks, ..RequestLog::default() };
        assert_eq!(log.seconds_until(0.5), 2.0);
        assert_eq!(log.seconds_until(0.8), 3.0);
        assert_eq!(log.seconds_until(1.0), 5.0);
    }

    #[test]
    fn what_is_used_last_leaves() {
        // With room for one, 1 stays for its next use and 2 and 3 pass by.
        assert_eq!(fewest_misses(&[1, 2, 3, 1, 1], 0, 1), 3.0);
        assert_eq!(fewest_misses(&[1, 2, 3, 1, 1], 3, 1), 0.0);
        assert_eq!(fewest_misses(&[1, 2, 1, 2], 0, 0), 4.0);
    }
}

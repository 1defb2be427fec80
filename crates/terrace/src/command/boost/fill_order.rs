//! The order of a fill: parts of a volume by their rank, as whole blocks, each once, and in sweeps
//! over the disk.
//!
//! Pure. A disk with a head reads what is ranked alike fastest in one sweep; so a sweep is as small
//! as its rank is worth keeping, and sorted. Where the gaps between all that the cache has room for
//! are so short that the disk reads through them, it is one sweep.

use std::collections::BTreeMap;
use std::ops::Range;

/// The most of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchLimits {
    /// Bytes.
    pub(super) bytes: u64,
    /// Parts.
    pub(super) parts: usize,
}

/// The parts widened to whole blocks of the volume, without what an earlier part has.
pub(super) fn blocks_once(
    parts: impl IntoIterator<Item = Range<u64>>,
    block_bytes: u64,
    volume_bytes: u64,
) -> Vec<Range<u64>> {
    let mut taken = TakenParts::default();
    let mut ordered = Vec::new();
    for part in parts {
        let start = part.start / block_bytes * block_bytes;
        let wanted_end = part.end.min(volume_bytes);
        let end = wanted_end.next_multiple_of(block_bytes).min(volume_bytes);
        if part.start < wanted_end {
            taken.take(start..end, &mut ordered);
        }
    }
    ordered
}

/// Parts in their order as batches, each sorted by offset. A part that is too long is cut.
pub(super) fn batches(parts: &[Range<u64>], limits: BatchLimits) -> Vec<Vec<Range<u64>>> {
    let mut left = RankedParts::new(parts.to_vec());
    let mut batches = Vec::new();
    while !left.is_empty() {
        batches.push(left.take(limits));
    }
    batches
}

/// Parts by their rank, the most wanted first.
#[derive(Clone, Debug)]
pub(super) struct RankedParts {
    /// The other way around: the first is the last.
    left: Vec<Range<u64>>,
}

impl RankedParts {
    pub(super) fn new(mut parts: Vec<Range<u64>>) -> Self {
        parts.retain(|part| !part.is_empty());
        parts.reverse();
        Self { left: parts }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Takes the first ones, sorted by offset. A part that is too long is cut.
    pub(super) fn take(&mut self, limits: BatchLimits) -> Vec<Range<u64>> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while bytes < limits.bytes && taken.len() < limits.parts {
            let Some(part) = self.left.pop() else { break };
            let end = part.end.min(part.start.saturating_add(limits.bytes - bytes));
            if end < part.end {
                self.left.push(end..part.end);
            }
            bytes += end - part.start;
            taken.push(part.start..end);
        }
        taken.sort_unstable_by_key(|part| part.start);
        taken
    }

    /// Takes all that there is room for, as one sweep, if the gaps in it are no longer than
    /// `gap_bytes_max` on average. Looks at all parts, so it is for few sweeps.
    pub(super) fn take_dense(
        &mut self,
        room_bytes: u64,
        gap_bytes_max: u64,
    ) -> Option<Vec<Range<u64>>> {
        let mut rest = self.clone();
        let sweep = rest.take(BatchLimits { bytes: room_bytes, parts: usize::MAX });
        let is_dense = !sweep.is_empty() && mean_gap(&sweep) <= gap_bytes_max;
        is_dense.then(|| {
            *self = rest;
            sweep
        })
    }
}

/// The bytes between two parts, which are sorted, on average.
fn mean_gap(parts: &[Range<u64>]) -> u64 {
    let gaps = parts.windows(2).map(|two| two[1].start.saturating_sub(two[0].end));
    gaps.sum::<u64>() / (parts.len() as u64).saturating_sub(1).max(1)
}

/// What was taken so far: disjoint parts by their start, with their end.
#[derive(Debug, Default)]
struct TakenParts(BTreeMap<u64, u64>);

impl TakenParts {
    /// Takes a part, and adds what of it was not taken before to `new`.
    fn take(&mut self, part: Range<u64>, new: &mut Vec<Range<u64>>) {
        let (mut at, mut whole) = (part.start, part.clone());
        let before = self.0.range(..=part.start).next_back().map(|(start, end)| (*start, *end));
        if let Some((start, end)) = before.filter(|(_, end)| *end >= part.start) {
            self.0.remove(&start);
            whole = start..whole.end.max(end);
            at = at.max(end);
        }
        while let Some((start, end)) =
            self.0.range(part.start..=part.end).next().map(|(start, end)| (*start, *end))
        {
            self.0.remove(&start);
            if at < start {
                new.push(at..start);
            }
            at = at.max(end);
            whole.end = whole.end.max(end);
        }
        if at < part.end {
            new.push(at..part.end);
        }
        self.0.insert(whole.start, whole.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_block_comes_once_in_the_order_of_its_first_part() {
        let parts = [100..200, 4096..8192, 0..50, 8000..9000, 20_000..30_000];
        let ordered = blocks_once(parts, 4096, 25_000);
        assert_eq!(ordered, [0..4096, 4096..8192, 8192..12_288, 16_384..25_000]);
        assert!(blocks_once([30_000..40_000, 9..9], 4096, 25_000).len() <= 1);
    }

    #[test]
    fn a_sweep_is_dense_where_gaps_are_short() {
        // Each tenth frame, the last one first.
        let parts: Vec<Range<u64>> =
            (0..100).rev().map(|number| number * 1000..number * 1000 + 100).collect();
        let mut left = RankedParts::new(parts);
        assert_eq!((left.take_dense(5000, 899), left.take_dense(0, 900)), (None, None));
        let sweep = left.take_dense(5000, 900).unwrap();
        assert_eq!((sweep.len(), sweep[0].start), (50, 50_000));
        assert!(sweep.is_sorted_by_key(|part| part.start));
        let rest = left.take(BatchLimits { bytes: u64::MAX, parts: usize::MAX });
        assert_eq!((rest.len(), rest[0].start), (50, 0));
        assert!(left.is_empty() && left.take_dense(10, 10).is_none());
        // One that is too long is cut, and goes on in the next; one of nothing is none.
        let mut long = RankedParts::new(vec![0..2500, 7..7, 5000..5100]);
        let first = long.take(BatchLimits { bytes: 1000, parts: 9 });
        assert_eq!((first.len(), &first[0]), (1, &(0..1000)));
        assert_eq!(long.take_dense(10_000, 2500).unwrap(), [1000..2500, 5000..5100]);
    }

    #[test]
    fn any_parts_give_the_same_blocks_as_a_set() {
        let mut random = testkit::Random(3);
        for _ in 0..2000 {
            let parts: Vec<Range<u64>> = (0..random.below(12))
                .map(|_| {
                    let start = random.below(300);
                    start..start + random.below(60)
                })
                .collect();
            let ordered = blocks_once(parts.iter().cloned(), 8, 250);
            let mut seen = BTreeSet::new();
            for byte in ordered.iter().cloned().flatten() {
                assert!(seen.insert(byte), "{byte} twice: {parts:?} {ordered:?}");
            }
            let mut expected = BTreeSet::new();
            for part in parts.iter().filter(|part| part.start < part.end.min(250)) {
                let end = part.end.min(250).next_multiple_of(8).min(250);
                expected.extend(part.start / 8 * 8..end);
            }
            assert_eq!(seen, expected, "{parts:?}");
            let limits = BatchLimits { bytes: 24, parts: 3 };
            let cut = batches(&ordered, limits);
            let all: BTreeSet<u64> = cut.iter().flatten().cloned().flatten().collect();
            assert_eq!(all, expected);
            for batch in &cut {
                assert!(!batch.is_empty() && batch.len() <= 3);
                assert!(batch.iter().map(|part| part.end - part.start).sum::<u64>() <= 24);
                assert!(batch.is_sorted_by_key(|part| part.start));
            }
        }
    }
}

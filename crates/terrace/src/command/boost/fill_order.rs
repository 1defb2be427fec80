//! The order of a fill: parts of a volume by their rank, as whole frames, each once, and in batches
//! that are read in the order of the disk.
//!
//! Pure. A disk with a head reads what is ranked alike fastest in one sweep; so a batch is as small
//! as its rank is worth keeping, and sorted.

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

/// The parts widened to whole frames of the volume, without what an earlier part has.
pub(super) fn frames_once(
    parts: impl IntoIterator<Item = Range<u64>>,
    frame_bytes: u64,
    volume_bytes: u64,
) -> Vec<Range<u64>> {
    let mut taken = TakenParts::default();
    let mut ordered = Vec::new();
    for part in parts {
        let start = part.start / frame_bytes * frame_bytes;
        let wanted_end = part.end.min(volume_bytes);
        let end = wanted_end.next_multiple_of(frame_bytes).min(volume_bytes);
        if part.start < wanted_end {
            taken.take(start..end, &mut ordered);
        }
    }
    ordered
}

/// Parts in their order as batches, each sorted by offset. A part that is too long is cut.
pub(super) fn batches(parts: &[Range<u64>], limits: BatchLimits) -> Vec<Vec<Range<u64>>> {
    let mut batches: Vec<Vec<Range<u64>>> = Vec::new();
    let mut bytes = 0;
    for part in parts {
        let mut start = part.start;
        while start < part.end {
            let is_full = batches.last().is_none_or(|batch| batch.len() >= limits.parts);
            if is_full || bytes >= limits.bytes {
                batches.push(Vec::new());
                bytes = 0;
            }
            let end = part.end.min(start + (limits.bytes - bytes));
            if let Some(batch) = batches.last_mut() {
                batch.push(start..end);
            }
            bytes += end - start;
            start = end;
        }
    }
    batches.iter_mut().for_each(|batch| batch.sort_unstable_by_key(|part| part.start));
    batches
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
    fn each_frame_comes_once_in_the_order_of_its_first_part() {
        let parts = [100..200, 4096..8192, 0..50, 8000..9000, 20_000..30_000];
        let ordered = frames_once(parts, 4096, 25_000);
        assert_eq!(ordered, [0..4096, 4096..8192, 8192..12_288, 16_384..25_000]);
        assert!(frames_once([30_000..40_000, 9..9], 4096, 25_000).len() <= 1);
    }

    #[test]
    fn any_parts_give_the_same_frames_as_a_set() {
        let mut random = testkit::Random(3);
        for _ in 0..2000 {
            let parts: Vec<Range<u64>> = (0..random.below(12))
                .map(|_| {
                    let start = random.below(300);
                    start..start + random.below(60)
                })
                .collect();
            let ordered = frames_once(parts.iter().cloned(), 8, 250);
            let mut seen = BTreeSet::new();
            for frame in ordered.iter().cloned().flatten() {
                assert!(seen.insert(frame), "{frame} twice: {parts:?} {ordered:?}");
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

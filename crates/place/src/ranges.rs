//! Arithmetic of byte ranges. Pure: no file, no process.
//!
//! A list of ranges is ascending, and none of it is empty or touches the next.

use std::ops::Range;

/// The same bytes in the least ranges, ascending.
#[must_use]
pub fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut out = Vec::with_capacity(ranges.len());
    for range in ranges {
        push(&mut out, range);
    }
    out
}

/// Appends a range that begins no earlier than the last one, joining the two where they touch.
pub fn push(ranges: &mut Vec<Range<u64>>, next: Range<u64>) {
    match ranges.last_mut() {
        _ if next.is_empty() => {}
        Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
        _ => ranges.push(next),
    }
}

/// What is in `whole` and not in `taken`; both ascending and not touching, and so is the answer.
#[must_use]
pub fn without(whole: &[Range<u64>], taken: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut out = Vec::new();
    let mut taken = taken.iter().peekable();
    for range in whole {
        let mut start = range.start;
        while let Some(next) = taken.peek() {
            if next.end > start {
                if next.start >= range.end {
                    break;
                }
                push(&mut out, start..next.start.max(start));
                start = next.end;
                if next.end >= range.end {
                    break;
                }
            }
            taken.next();
        }
        push(&mut out, start..range.end);
    }
    out
}

/// How many bytes they hold together; files of 8 EiB each may be more than can be counted.
#[must_use]
pub fn total(ranges: &[Range<u64>]) -> u64 {
    sum(ranges.iter().map(|range| range.end - range.start))
}

/// The sum of numbers that other users decide on: the largest number where it is beyond.
#[must_use]
pub fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
        prop::collection::vec((0u64..60, 0u64..9), 0..12)
            .prop_map(|pairs| pairs.iter().map(|(start, length)| *start..start + length).collect())
    }

    fn members(ranges: &[Range<u64>]) -> BTreeSet<u64> {
        ranges.iter().cloned().flatten().collect()
    }

    fn is_canonical(ranges: &[Range<u64>]) -> bool {
        ranges.iter().all(|range| range.start < range.end)
            && ranges.windows(2).all(|pair| pair[0].end < pair[1].start)
    }

    proptest! {
        #[test]
        fn the_same_bytes_as_sets_of_numbers(one in ranges(), two in ranges()) {
            let (whole, taken) = (merged(one.clone()), merged(two.clone()));
            prop_assert!(is_canonical(&whole));
            prop_assert_eq!(members(&whole), members(&one));
            prop_assert_eq!(total(&whole), members(&one).len() as u64);
            let left = without(&whole, &taken);
            prop_assert!(is_canonical(&left), "{:?}", left);
            let expected: BTreeSet<u64> = members(&one).difference(&members(&two)).copied().collect();
            prop_assert_eq!(members(&left), expected);
        }
    }
}

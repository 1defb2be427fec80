//! Chunks of single accesses, as `docs/recording.md` draws them, with extreme numbers in every
//! column.
//!
//! Most of what is made here is believed by the reader, so that it reaches the simulated caches of
//! `advise` and the export; some has one column too many or too few.

use testkit::Random;

use super::mutate::{self, EXTREMES, chance, pick};
use super::trec::{self, Chunk};

/// `advise` judges no fewer reads.
const READS_MIN: u64 = 1_000;

/// A chunk that begins after `begin_us`, and where it ends.
pub(super) fn chunk(random: &mut Random, begin_us: u64) -> (Chunk, u64) {
    let from_us = begin_us.saturating_add(random.below(1000));
    let length_us = *pick(random, &[0, 1, 1_000_000, 10_000_000, u64::MAX >> 12]);
    let mut raw = [trec::varint(from_us), trec::varint(length_us)].concat();
    for _ in 0..3 {
        raw.extend(trec::varint(*pick(random, &[0, 0, 0, 1, 8, 22, 23, 255])));
    }
    for _ in 0..3 {
        let lost = if chance(random, 80) { random.below(3) } else { mutate::number(random) };
        raw.extend(trec::varint(lost));
    }
    raw.extend(requests(random, length_us));
    raw.extend(pages(random, length_us));
    let to_us = from_us.saturating_add(length_us);
    let [first_ns, last_ns] = [from_us, to_us].map(|us| us.saturating_mul(1000));
    (Chunk { kind: trec::ACCESSES, raw, first_ns, last_ns }, to_us)
}

/// Several that follow each other.
pub(super) fn chunks(random: &mut Random) -> Vec<Chunk> {
    let mut end_us = 0;
    let mut next = |_| {
        let (chunk, to_us) = chunk(random, end_us);
        end_us = to_us;
        chunk
    };
    (0..3).map(&mut next).collect()
}

fn requests(random: &mut Random, length_us: u64) -> Vec<u8> {
    let count = *pick(random, &[0, 1, READS_MIN, 2 * READS_MIN]);
    let mut bytes = trec::varint(claimed(random, count));
    times(random, count, length_us, &mut bytes);
    let is_wild = chance(random, 30);
    (0..count).for_each(|_| bytes.push(*pick(random, &[0, 0, 0, 1, 2, 3, 255])));
    column(&mut bytes, count, |at| trec::signed(if at == 0 { 8 << 20 } else { 0 }));
    let place = |random: &mut Random| {
        let near = random.below(1 << 20) as i64 - (1 << 19);
        if is_wild { mutate::number(random) as i64 } else { near }
    };
    column(&mut bytes, count, |_| trec::signed(place(random)));
    let longest = *pick(random, &[8, 64, 1024, u64::from(u32::MAX), u64::MAX]);
    column(&mut bytes, count, |_| trec::varint(longest));
    let latency_us = *pick(random, &[0, 1, 8_000, u64::MAX / 1000, u64::MAX]);
    column(&mut bytes, count, |_| trec::varint(latency_us));
    bytes
}

fn pages(random: &mut Random, length_us: u64) -> Vec<u8> {
    let files = *pick(random, &[0, 1, 3]);
    let mut bytes = trec::varint(files);
    for file in 0..files {
        bytes.extend(trec::varint(if file == 0 { 8 << 20 } else { 1 }));
        bytes.extend(trec::signed(*pick(random, EXTREMES) as i64));
    }
    let count = if files == 0 { 0 } else { *pick(random, &[0, 1, 100]) };
    bytes.extend(trec::varint(claimed(random, count)));
    times(random, count, length_us, &mut bytes);
    (0..count).for_each(|_| bytes.push(random.below(5) as u8));
    column(&mut bytes, count, |_| trec::signed(0));
    let place = *pick(random, EXTREMES) as i64;
    column(&mut bytes, count, |_| trec::signed(place));
    let longest = *pick(random, &[0, 1, 16, 1 << 20, (1 << 20) + 1, u64::MAX]);
    column(&mut bytes, count, |_| trec::varint(longest));
    bytes
}

/// The number that a table says it has: now and then not that of its rows.
fn claimed(random: &mut Random, count: u64) -> u64 {
    if chance(random, 95) { count } else { *pick(random, EXTREMES) }
}

/// Times in order, which now and then leave the interval.
fn times(random: &mut Random, count: u64, length_us: u64, bytes: &mut Vec<u8>) {
    let step = length_us / count.max(1);
    let late = chance(random, 3);
    column(bytes, count, |_| trec::varint(if late { length_us } else { step }));
}

fn column(bytes: &mut Vec<u8>, count: u64, mut value: impl FnMut(u64) -> Vec<u8>) {
    (0..count).for_each(|at| bytes.extend(value(at)));
}

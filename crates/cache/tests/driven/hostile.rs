//! A medium and a journal that another program wrote: the cache opens them, never panics, and,
//! whatever the medium holds, serves no wrong byte.

use cache::Start;
use testkit::Random;

use super::{FRAME, attach, read_all, used};

#[test]
fn a_medium_that_is_as_it_was_left_is_warm() {
    let (medium, journal) = used();
    let mut driver = attach(&medium, &journal, 2);
    assert_eq!(driver.engine.start(), Start::Warm);
    assert!(driver.engine.cached_frames() >= 24, "{}", driver.engine.cached_frames());
    read_all(&mut driver, 1);
    assert!(driver.engine.counters().hits >= 24, "{:?}", driver.engine.counters());
}

#[test]
fn a_hostile_medium_gives_no_wrong_byte() {
    let (medium, journal) = used();
    let mut random = Random(11);
    for round in 0..300 {
        let mut changed = medium.clone();
        for _ in 0..=random.below(6) {
            change(&mut changed, &mut random);
        }
        let mut driver = attach(&changed, &journal, 2);
        read_all(&mut driver, round);
    }
}

#[test]
fn a_damaged_journal_never_panics() {
    let (medium, journal) = used();
    let mut random = Random(12);
    for _ in 0..300 {
        let mut changed = journal.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(64 << 10).min(changed.len() as u64 - 1) as usize;
            changed[at] ^= 1 << random.below(8);
        }
        let mut driver = attach(&medium, &changed, 2);
        let _ = driver.read(0, FRAME);
        let _ = driver.write(0, &[1; 512]);
    }
}

/// Changes a byte, or the head of a summary with its checksum, or moves a segment.
fn change(medium: &mut [u8], random: &mut Random) {
    let segment = (32 << 10) * (1 + random.below(8) as usize);
    match random.below(4) {
        0 => {
            let at = random.below(medium.len() as u64) as usize;
            medium[at] = random.next_u64() as u8;
        }
        1 => {
            let at = segment + random.below(400) as usize;
            medium[at] ^= 1 << random.below(8);
        }
        2 => {
            medium[segment + 4 + random.below(44) as usize] = random.next_u64() as u8;
            let sum = crc32c::crc32c(&medium[segment..segment + 52]);
            medium[segment + 52..segment + 56].copy_from_slice(&sum.to_le_bytes());
        }
        _ => {
            let from = (32 << 10) * (1 + random.below(8) as usize);
            medium.copy_within(from..from + (32 << 10), segment);
            // Of its new place, as a forger would write it.
            let number = (segment / (32 << 10) - 1) as u32;
            medium[segment + 48..segment + 52].copy_from_slice(&number.to_le_bytes());
            let sum = crc32c::crc32c(&medium[segment..segment + 52]);
            medium[segment + 52..segment + 56].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

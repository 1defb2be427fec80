//! What the cache trusts: a journal that failed or is older than it was, a medium that is not its
//! own, and content of the volume that is of another kind.

use cache::{Cold, Limits, Setup, Start, Witness};
use model::engine::{CacheOff, ErrorNumber, Event, Input, Request};
use testkit::Random;

use super::{FRAME, VOLUME, attach, attach_to, attach_with, read_all, setup, used, volume};

fn stranger() -> Vec<u8> {
    let mut bytes = vec![0; 9 * (32 << 10)];
    Random(77).fill(&mut bytes);
    bytes
}

#[test]
fn a_journal_that_failed_makes_the_next_start_cold_and_writes_go_on() {
    let (medium, journal) = used();
    let mut driver = attach(&medium, &journal, 2);
    driver.journal.faults.fails_writes = true;
    driver.write(5 * u64::from(FRAME), &[9; 512]).unwrap();
    driver.write(6 * u64::from(FRAME), &[9; 512]).unwrap();
    assert!(driver.events.contains(&Event::CacheOff { why: CacheOff::Journal }));
    assert!(driver.medium.contents() == medium, "it is on no path of a write");
    assert_eq!(driver.read(5 * u64::from(FRAME), 512).unwrap(), [9; 512]);
    let again = attach(&medium, &driver.journal.contents(), 3);
    assert_eq!(again.engine.start(), Start::Cold(Cold::New));
    driver.input(Input::Detach);
    assert_eq!(driver.events.last(), Some(&Event::Detached { is_proved: false }));
}

#[test]
fn writes_that_could_never_be_proved_fail() {
    let (medium, journal) = used();
    let mut driver = attach(&medium, &journal, 2);
    driver.journal.faults.fails_writes = true;
    driver.journal.faults.fails_revokes = true;
    assert_eq!(driver.write(5 * u64::from(FRAME), &[9; 512]), Err(ErrorNumber::EIO));
    assert_eq!(driver.write(5 * u64::from(FRAME), &[9; 512]), Err(ErrorNumber::EIO));
    read_all(&mut driver, 1);
}

#[test]
fn another_kind_of_content_is_a_change_after_a_proved_detach_too() {
    let (medium, journal) = used();
    let with = |witnesses: Vec<Witness>| {
        attach_with(&Setup { witnesses, ..setup(2) }, &medium, &journal).engine.start()
    };
    let first = setup(2).witnesses[0].clone();
    let further = Witness { offset: 4096, bytes: volume()[4096..4608].to_vec() };
    assert_eq!(with(vec![first.clone()]), Start::Warm);
    assert_eq!(with(Vec::new()), Start::Cold(Cold::Unproved));
    assert_eq!(with(vec![first.clone(), further]), Start::Cold(Cold::Changed(4096)));
    let shorter = Witness { bytes: first.bytes[..256].to_vec(), ..first.clone() };
    assert_eq!(with(vec![shorter]), Start::Cold(Cold::Changed(0)));
    let moved = Witness { offset: 512, ..first };
    assert_eq!(with(vec![moved]), Start::Cold(Cold::Changed(512)));
}

#[test]
fn a_superblock_that_was_discarded_is_a_change() {
    let (medium, journal) = used();
    let mut driver = attach(&medium, &journal, 2);
    driver.request(Request::Discard { offset: 0, len: 512 }).unwrap();
    let journal = driver.journal.contents();
    let mut now = setup(3);
    now.witnesses[0].bytes = driver.backing.contents()[..512].to_vec();
    let start = attach_with(&now, &medium, &journal).engine.start();
    assert_eq!(start, Start::Cold(Cold::Changed(0)));
}

#[test]
fn a_medium_that_is_not_its_own_is_never_written() {
    let cold = Setup { may_format: false, ..setup(1) };
    let driver = attach_with(&cold, &stranger(), &[]);
    assert_eq!(driver.engine.start(), Start::Cold(Cold::New));
    let off = Event::CacheOff { why: CacheOff::AnotherMedium };
    assert_eq!(driver.events.last(), Some(&off));
    assert!(driver.medium.contents() == stranger());
    let (medium, journal) = used();
    for is_warm in [true, false] {
        let journal = if is_warm { journal.clone() } else { Vec::new() };
        let mut driver = attach(&medium, &journal, 2);
        driver.medium.replace(stranger());
        driver.input(Input::CacheReturned);
        assert_eq!(driver.events.last(), Some(&off), "compared although no error was seen");
        for round in 0..3 {
            read_all(&mut driver, round);
        }
        driver.write(0, &[1; 512]).unwrap();
        driver.input(Input::Detach);
        assert!(driver.medium.contents() == stranger());
    }
}

#[test]
fn a_cold_cache_takes_the_medium_of_the_one_that_it_replaces() {
    let (medium, journal) = used();
    let mut changed = Setup { may_format: false, ..setup(2) };
    changed.witnesses[0].bytes[100] ^= 1;
    let driver = attach_with(&changed, &medium, &journal);
    assert_eq!(driver.engine.start(), Start::Cold(Cold::Changed(0)));
    assert!(driver.engine.is_running());
    let of_another = attach_with(&Setup { key: [99; 32], ..setup(5) }, &[], &[]);
    let other_medium = of_another.medium.contents();
    let driver = attach_with(&changed, &other_medium, &journal);
    assert!(!driver.engine.is_running());
    assert!(driver.medium.contents() == other_medium);
}

#[test]
fn a_medium_is_known_without_its_journal_and_without_its_key() {
    let (medium, journal) = used();
    let without = Setup { may_format: false, ..setup(2) };
    let no_journal = attach_with(&without, &medium, &[]);
    assert_eq!(no_journal.engine.start(), Start::Cold(Cold::New));
    assert!(no_journal.engine.is_running(), "its name follows from the key");
    let lost = Setup { key: [99; 32], ..without.clone() };
    let mut no_key = attach_with(&lost, &medium, &journal);
    assert!(no_key.engine.is_running(), "its name is in the journal");
    assert_eq!(no_key.engine.cached_frames(), 0, "nothing opens");
    read_all(&mut no_key, 1);
    let neither = attach_with(&lost, &medium, &[]);
    assert!(!neither.engine.is_running() && neither.medium.contents() == medium);
}

#[test]
fn a_medium_of_other_sizes_is_made_anew_also_after_a_cut() {
    let (medium, journal) = used();
    let mut smaller = Setup { may_format: false, ..setup(2) };
    smaller.geometry.segments = 5;
    let mut driver = attach_with(&smaller, &medium, &journal);
    assert!(matches!(driver.engine.start(), Start::Cold(Cold::Sizes(_))));
    assert!(driver.engine.is_running());
    read_all(&mut driver, 1);
    // The journal is of the new sizes, and the medium still of the old ones.
    let cut = attach_with(&Setup { salt: [3; 32], ..smaller }, &medium, &driver.journal.contents());
    assert_eq!(cut.engine.start(), Start::Warm);
    assert!(cut.engine.is_running());
}

#[test]
fn a_medium_that_was_away_at_the_start_is_looked_for() {
    let (medium, journal) = used();
    let mut driver = attach_to(&setup(2), &medium, &journal, |devices| {
        devices[1].faults.is_gone = true;
    });
    driver.medium.faults.is_gone = false;
    driver.input(Input::Tick { now_ns: 59_000_000_000 });
    assert!(!driver.engine.is_running());
    driver.input(Input::Tick { now_ns: 60_000_000_000 });
    assert!(driver.engine.is_running() && driver.engine.cached_frames() >= 24);
}

#[test]
fn a_journal_that_was_rolled_back_is_found_by_what_the_medium_has() {
    let (medium, journal) = used();
    let mut driver = attach(&medium, &journal, 2);
    driver.request(Request::Prefetch { offset: 40 * u64::from(FRAME), len: 1 }).unwrap();
    driver.write(3 * u64::from(FRAME), &[9; 512]).unwrap();
    driver.input(Input::Detach);
    let disk = driver.backing.contents();
    let mut driver = attach_to(&setup(3), &driver.medium.contents(), &journal, |devices| {
        devices[0].replace(disk.clone());
    });
    assert_eq!(driver.engine.start(), Start::Warm);
    assert!(driver.events.contains(&Event::JournalRolledBack));
    assert_eq!(driver.engine.cached_frames(), 0);
    assert_eq!(driver.read(3 * u64::from(FRAME), 512).unwrap(), [9; 512]);
    driver.request(Request::Prefetch { offset: 0, len: 1 }).unwrap();
    driver.input(Input::Detach);
    let again = attach(&driver.medium.contents(), &driver.journal.contents(), 4);
    assert_eq!(again.engine.cached_frames(), 1);
}

#[test]
fn a_detach_during_the_recovery_waits_and_proves_nothing() {
    let (medium, journal) = used();
    let mut driver = attach_to(&setup(2), &medium, &journal, |devices| {
        devices[1].faults.is_gone = true;
    });
    driver.write(0, &[1; 512]).unwrap();
    driver.input(Input::Detach);
    assert_eq!(driver.events.last(), Some(&Event::Detached { is_proved: false }));
}

#[test]
fn content_that_changed_behind_the_same_superblock_makes_all_cold() {
    let (medium, journal) = used();
    let mut disk = volume();
    Random(3).fill(&mut disk[512..]);
    let mut driver = attach_to(&setup(2), &medium, &journal, |devices| {
        devices[0].replace(disk.clone());
    });
    assert_eq!(driver.engine.start(), Start::Warm);
    let is_change = |event: &Event| matches!(event, Event::VolumeChanged { .. });
    assert!(driver.events.iter().any(is_change), "{:?}", driver.events);
    assert_eq!((driver.engine.cached_frames(), driver.engine.is_running()), (0, true));
    assert!(driver.read(8192, 4096).unwrap() == disk[8192..12288]);
    driver.request(Request::Prefetch { offset: 8192, len: 1 }).unwrap();
    driver.input(Input::Detach);
    let again =
        attach_to(&setup(3), &driver.medium.contents(), &driver.journal.contents(), |all| {
            all[0].replace(disk.clone());
        });
    assert_eq!(again.engine.cached_frames(), 1);
}

#[test]
fn a_change_of_half_of_the_frames_is_found_in_a_cache_that_is_nearly_empty() {
    let roomy = |salt| {
        let limits = Limits { frames_max: 100_000, ..setup(salt).limits };
        Setup { limits, ..setup(salt) }
    };
    let mut driver = attach_with(&roomy(1), &[], &[]);
    for offset in (0..VOLUME / 2).step_by(FRAME as usize) {
        driver.request(Request::Prefetch { offset, len: u64::from(FRAME) }).unwrap();
    }
    driver.input(Input::Detach);
    let mut disk = volume();
    // What was cached first stays as it was.
    Random(3).fill(&mut disk[VOLUME as usize / 4..]);
    let (medium, journal) = (driver.medium.contents(), driver.journal.contents());
    let driver = attach_to(&roomy(2), &medium, &journal, |devices| {
        devices[0].replace(disk.clone());
    });
    let is_change = |event: &Event| matches!(event, Event::VolumeChanged { .. });
    assert!(driver.events.iter().any(is_change), "{:?}", driver.events);
}

#[test]
fn a_newer_journal_or_medium_is_known_by_its_first_bytes() {
    let (medium, journal) = used();
    assert_eq!(cache::newer_version(&medium), None);
    assert_eq!(cache::newer_version(&journal), None);
    for magic in [*b"TERCACHE", *b"TERCJRNL", *b"TERCBASE"] {
        let header = model::frame::FileHeader { magic, major: 2, minor: 1 };
        let known = magic != *b"TERCBASE";
        let mut bytes = header.to_bytes();
        assert_eq!(cache::newer_version(&bytes), known.then_some(2));
        bytes[9] ^= 1;
        assert_eq!(cache::newer_version(&bytes), None, "damaged");
    }
}

#[test]
fn a_cut_that_takes_a_superblock_back_leaves_the_cache_warm() {
    let (medium, journal) = used();
    let mut driver = attach(&medium, &journal, 2);
    driver.write(20 * u64::from(FRAME), &[8; 512]).unwrap();
    driver.request(Request::Flush).unwrap();
    driver.write(0, &[9; 512]).unwrap();
    let bases = driver.engine.counters().bases;
    driver.input(Input::Tick { now_ns: 11_000_000_000 });
    assert_eq!(driver.engine.counters().bases, bases, "the superblock is not flushed");
    // Whether the disk kept what was never flushed, or not.
    let kept = driver.backing.contents();
    let mut lost = kept.clone();
    lost[..512].copy_from_slice(&volume()[..512]);
    for disk in [lost, kept] {
        let mut now = setup(3);
        now.witnesses[0].bytes = disk[..512].to_vec();
        let again = attach_with(&now, &driver.medium.contents(), &driver.journal.contents());
        assert_eq!(again.engine.start(), Start::Warm);
    }
}

#[test]
fn a_list_that_waits_for_a_superblock_flushes_the_disk_itself() {
    let mut driver = attach(&[], &[], 1);
    let bases = driver.engine.counters().bases;
    for number in 0..200_u64 {
        // It changes with each write, and no client flushes.
        driver.write(0, &[number as u8; 512]).unwrap();
    }
    assert_eq!(driver.engine.counters().bases, bases, "a cut could take the last one back");
    driver.input(Input::Tick { now_ns: 1_000_000_000 });
    assert_eq!(driver.engine.counters().bases, bases + 1);
    driver.backing.faults.fails_writes = true;
    for number in 0..600_u64 {
        let _ = driver.write(0, &[number as u8; 512]);
        driver.input(Input::Tick { now_ns: (2 + number) * 1_000_000_000 });
    }
    assert!(driver.engine.counters().bases > bases + 1, "the records ran out");
}

#[test]
fn a_medium_that_was_read_wrongly_once_is_looked_at_again() {
    let (medium, journal) = used();
    let mut flipped = medium.clone();
    flipped[20] ^= 1;
    let mut driver = attach_with(&Setup { may_format: false, ..setup(2) }, &flipped, &journal);
    assert!(!driver.engine.is_running());
    let events = driver.events.len();
    driver.input(Input::Tick { now_ns: 60_000_000_000 });
    assert!(!driver.engine.is_running() && driver.events.len() == events, "said once");
    driver.medium.replace(medium);
    driver.input(Input::Tick { now_ns: 200_000_000_000 });
    assert!(driver.engine.is_running());
    assert!(driver.engine.cached_frames() > 0);
}

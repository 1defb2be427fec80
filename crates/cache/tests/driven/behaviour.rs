//! What the cache decides: what it keeps, what that costs, when it gives up its medium, and when it
//! starts cold.

use cache::{
    Cache, ChangeProof, Cold, Counters, FillRoom, Geometry, Limits, Setup, Start, Witness,
};
use model::engine::{
    BufferRange, Buffers, CacheOff, Device, Engine, ErrorNumber, Event, Input, Operation, Output,
    Request, RequestId,
};

use testkit::SimulatedDriver;

use super::{FRAME, VOLUME, attach, attach_with, read_all, setup, used, volume};

const SECOND_NS: u64 = 1_000_000_000;

fn frame_at(number: u64) -> u64 {
    number * u64::from(FRAME)
}

#[test]
fn the_second_read_is_cached_and_the_third_is_a_hit() {
    let mut driver = attach(&[], &[], 1);
    for _ in 0..3 {
        driver.read(frame_at(9) + 512, 1024).unwrap();
    }
    let counters = driver.engine.counters();
    assert_eq!((counters.refused_first, counters.filled, counters.hits), (1, 1, 1));
    assert_eq!(counters.hit_bytes, 1024);
}

/// Frames of four blocks.
fn in_blocks() -> Setup {
    let geometry = Geometry {
        frame_bytes: 16 << 10,
        segment_bytes: 128 << 10,
        segments: 4,
        ..setup(1).geometry
    };
    Setup { geometry, limits: Limits { io_buffers: 4, ..Limits::fit(&geometry) }, ..setup(1) }
}

#[test]
fn a_read_caches_its_blocks_and_a_read_of_others_caches_all_between() {
    let mut driver = attach_with(&in_blocks(), &[], &[]);
    let is_cached = |driver: &SimulatedDriver<Cache>| {
        [4, 5, 6, 7, 8].map(|block| driver.engine.is_cached(block * 4096))
    };
    let volume = volume();
    driver.read(5 * 4096 + 512, 512).unwrap();
    assert_eq!(is_cached(&driver), [false, true, false, false, false]);
    assert_eq!((driver.engine.cached_bytes(), driver.engine.counters().filled_bytes), (4096, 4096));
    let coverage = driver.engine.coverage(4 * 4096, 5 * 4096);
    assert_eq!((coverage.cached_bytes, coverage.read_once_bytes), (4096, 3 * 4096));
    // The block of the frame that follows is cached for itself.
    assert!(driver.read(7 * 4096, 8192).unwrap() == volume[7 * 4096..9 * 4096]);
    assert_eq!(is_cached(&driver), [false, true, true, true, true]);
    let before = driver.engine.counters();
    assert!(driver.read(5 * 4096, 4 * 4096).unwrap() == volume[5 * 4096..9 * 4096]);
    driver.read(4 * 4096, 4096).unwrap();
    let after = driver.engine.counters();
    assert_eq!((after.hits - before.hits, after.filled), (1, 4));
    assert_eq!(driver.engine.cached_frames(), 2, "an extent takes the place of the one before");
    assert_eq!((driver.engine.cached_bytes(), after.filled_bytes), (5 * 4096, 5 * 4096));
    // What a write does not touch stays, and what it has of a frame is cached again.
    driver.write(8 * 4096 + 4096, &[7; 512]).unwrap();
    assert!(driver.engine.is_cached(8 * 4096));
    driver.write(8 * 4096, &[8; 3 * 4096]).unwrap();
    let coverage = driver.engine.coverage(8 * 4096, 4 * 4096);
    assert_eq!((coverage.cached_bytes, coverage.read_once_bytes), (3 * 4096, 4096));
    assert_eq!(driver.read(8 * 4096 + 8191, 2).unwrap(), [8, 8]);
    driver.write(5 * 4096, &[9; 512]).unwrap();
    assert_eq!(is_cached(&driver), [false, false, false, false, true]);
}

#[test]
fn frames_that_are_cached_in_part_are_warm_after_a_detach() {
    let mut driver = attach_with(&in_blocks(), &[], &[]);
    let blocks = [1, 6, 11, 23, 40, 63];
    for block in blocks {
        driver.read(block * 4096, 4096).unwrap();
    }
    driver.input(Input::Detach);
    let setup = Setup { salt: [9; 32], ..in_blocks() };
    let (medium, journal) = (driver.medium.contents(), driver.journal.contents());
    let mut driver = attach_with(&setup, &medium, &journal);
    for block in blocks {
        let start = block * 4096;
        assert!(driver.read(start, 4096).unwrap() == volume()[start as usize..][..4096]);
        assert!(!driver.engine.is_cached((block ^ 1) * 4096), "block {block}");
    }
    assert_eq!(driver.engine.counters().hits, blocks.len() as u64);
}

#[test]
fn a_hit_reads_no_more_of_the_medium_than_its_device_asks_for() {
    let mut driver = attach_with(&in_blocks(), &[], &[]);
    // As many as there are buffers for what is not ended, and one for what is.
    let blocks = [6, 11, 40];
    for block in blocks {
        driver.read(block * 4096, 4096).unwrap();
    }
    driver.input(Input::Detach);
    let (medium, journal) = (driver.medium.contents(), driver.journal.contents());
    // What is read with this alignment, which is asked for.
    let read_bytes = |asked: u32, unit: u64| {
        let setup = Setup { salt: [9; 32], ..in_blocks() };
        let mut driver = attach_with(&setup, &medium, &journal);
        driver.engine.set_medium_read_bytes(asked);
        let mut bytes = 0;
        for block in blocks {
            let start = block * 4096;
            assert!(driver.read(start, 4096).unwrap() == volume()[start as usize..][..4096]);
            // Once more, and not ended: only to see what it would read.
            let data = BufferRange::first(driver.buffers.take(FRAME).unwrap(), 4096);
            let request = Request::Read { offset: start, data };
            let mut outputs = Vec::new();
            let input = Input::Request { id: RequestId(1000 + block), request };
            driver.engine.handle(input, &mut driver.buffers, &mut outputs);
            let Some(&Output::Operate { device: Device::Cache, operation, .. }) = outputs.first()
            else {
                panic!("{outputs:?}");
            };
            let Operation::Read { offset, data } = operation else { panic!("{operation:?}") };
            assert!(offset.is_multiple_of(unit) && u64::from(data.len).is_multiple_of(unit));
            bytes += data.len;
        }
        assert_eq!(driver.engine.counters().medium_wrong, 0);
        bytes
    };
    let [sectors, whole, larger] =
        [(512, 512), (4096, 4096), (1 << 20, 4096)].map(|(asked, unit)| read_bytes(asked, unit));
    assert!(sectors < whole * 2 / 3 && whole == larger, "{sectors} {whole} {larger}");
}

#[test]
fn first_reads_are_cached_until_half_of_the_medium_or_of_the_budget_is_used() {
    let usual = Limits { io_buffers: 4, ..Limits::fit(&setup(1).geometry) };
    let cached = |limits: Limits| {
        let mut driver = attach_with(&Setup { limits, ..setup(1) }, &[], &[]);
        // Backwards, which is no run.
        for number in (0..VOLUME / u64::from(FRAME)).rev() {
            driver.read(frame_at(number), FRAME).unwrap();
        }
        let counters = driver.engine.counters();
        assert_eq!(counters.filled, u64::from(driver.engine.cached_frames()));
        assert_eq!(counters.filled + counters.refused_first, VOLUME / u64::from(FRAME));
        counters.medium_bytes
    };
    let medium = usual.budget_bytes_per_day;
    let half = cached(Limits { budget_bytes_per_day: 1 << 40, ..usual });
    assert!(half > medium / 3 && half < medium * 3 / 4, "{half} of {medium}");
    let little = cached(Limits { budget_bytes_per_day: medium / 4, ..usual });
    assert!(little > 0 && little < medium / 4, "{little} of {medium}");
}

#[test]
fn a_frame_that_was_written_as_a_whole_is_cached_again_and_a_part_is_not() {
    let mut driver = attach(&[], &[], 1);
    for number in [9, 20] {
        driver.request(Request::Prefetch { offset: frame_at(number), len: 1 }).unwrap();
    }
    driver.write(frame_at(9), &[7; FRAME as usize]).unwrap();
    driver.write(frame_at(20), &[7; 512]).unwrap();
    assert!(driver.engine.is_cached(frame_at(9)) && !driver.engine.is_cached(frame_at(20)));
    assert_eq!(driver.read(frame_at(9), 512).unwrap(), [7; 512]);
    driver.read(frame_at(20), 512).unwrap();
    assert!(driver.engine.is_cached(frame_at(20)), "the next miss need not be the second one");
}

#[test]
fn only_what_a_start_could_find_is_marked_before_it_is_written() {
    let mut driver = attach(&[], &[], 1);
    driver.request(Request::Flush).unwrap();
    let region = setup(1).geometry.region_bytes;
    let records = |driver: &SimulatedDriver<Cache>| driver.engine.counters().records;
    let before = records(&driver);
    // Nothing of the second region is cached: it is written without a mark.
    driver.write(region, &[1; 512]).unwrap();
    assert_eq!(records(&driver), before);
    // What a power cut could take back is not kept before the region is marked.
    let kept = |driver: &mut SimulatedDriver<Cache>| {
        driver.read(region, 4096).unwrap();
        driver.engine.is_cached(region)
    };
    assert!(!kept(&mut driver), "the first read of a frame is not worth it");
    assert!(!kept(&mut driver));
    assert_eq!(records(&driver), before + 1, "the read asked for a mark");
    assert!(kept(&mut driver));
    // Nor does the third region need one, once what was written to it is durable.
    driver.write(2 * region, &[1; 512]).unwrap();
    driver.request(Request::Flush).unwrap();
    driver.read(2 * region, 4096).unwrap();
    driver.read(2 * region, 4096).unwrap();
    assert!(driver.engine.is_cached(2 * region));
    assert_eq!(records(&driver), before + 1);
    // From then on it does.
    driver.write(2 * region + 4096, &[1; 512]).unwrap();
    assert_eq!(records(&driver), before + 2);
}

#[test]
fn long_runs_are_read_from_the_disk_and_counted() {
    let limits = Limits { run_frames_max: 4, ..setup(1).limits };
    let mut driver = attach_with(&Setup { limits, ..setup(1) }, &[], &[]);
    for _ in 0..3 {
        for number in 0..32 {
            driver.read(frame_at(number), FRAME).unwrap();
        }
    }
    let counters = driver.engine.counters();
    assert_eq!(counters.bailed_out, 3 * 28);
    assert_eq!(driver.engine.cached_frames(), 4);
}

#[test]
fn the_budget_of_a_day_holds_and_comes_back() {
    let limits = Limits { budget_bytes_per_day: 64 << 10, ..setup(1).limits };
    let mut driver = attach_with(&Setup { limits, ..setup(1) }, &[], &[]);
    let fill = |driver: &mut testkit::SimulatedDriver<cache::Cache>| {
        for number in 0..VOLUME / u64::from(FRAME) {
            driver.request(Request::Prefetch { offset: frame_at(number), len: 1 }).unwrap();
        }
        driver.engine.counters()
    };
    let before = fill(&mut driver);
    assert!(before.refused_budget > 0 && before.medium_bytes <= 96 << 10, "{before:?}");
    driver.input(Input::Tick { now_ns: 86_400 * SECOND_NS });
    let after = fill(&mut driver);
    assert!(after.medium_bytes > before.medium_bytes, "{after:?}");
    assert!(after.medium_bytes <= 2 * (96 << 10), "{after:?}");
}

#[test]
fn the_third_error_in_a_minute_turns_the_cache_off_until_the_medium_returns() {
    let (medium, journal) = used();
    let mut driver = attach(&medium, &journal, 2);
    driver.medium.faults.fails_reads = true;
    for (number, at) in [(1, 1), (2, 70), (3, 80)] {
        driver.input(Input::Tick { now_ns: at * SECOND_NS });
        assert_eq!(
            driver.read(frame_at(number), 512).unwrap(),
            volume()[frame_at(number) as usize..][..512]
        );
    }
    assert!(driver.engine.is_running(), "two of them within a minute");
    driver.read(frame_at(7), 512).unwrap();
    assert!(driver.engine.is_running(), "at the same instant");
    driver.input(Input::Tick { now_ns: 81 * SECOND_NS });
    driver.read(frame_at(4), 512).unwrap();
    assert!(!driver.engine.is_running());
    assert_eq!(driver.events.last(), Some(&Event::CacheOff { why: CacheOff::Errors }));
    driver.write(frame_at(5), &[9; 512]).unwrap();
    driver.medium.faults.fails_reads = false;
    driver.input(Input::CacheReturned);
    assert!(driver.engine.is_running());
    assert!(!driver.engine.is_cached(frame_at(5)), "it was written meanwhile");
    let hits = driver.engine.counters().hits;
    driver.read(frame_at(6), 512).unwrap();
    assert_eq!(driver.engine.counters().hits, hits + 1, "the rest is warm");
    assert_eq!(driver.read(frame_at(5), 512).unwrap(), [9; 512]);
}

#[test]
fn errors_of_the_disk_pass_unchanged() {
    let mut driver = attach(&[], &[], 1);
    driver.read(frame_at(3), 512).unwrap();
    driver.backing.faults.fails_reads = true;
    assert_eq!(driver.read(frame_at(3), 512), Err(ErrorNumber(5)));
    driver.backing.faults.fails_reads = false;
    driver.backing.faults.is_full = true;
    assert_eq!(driver.write(frame_at(3), &[1; 512]), Err(ErrorNumber(28)));
    driver.backing.faults.is_full = false;
    read_all(&mut driver, 1);
}

#[test]
fn what_differs_is_said_and_all_is_cold() {
    let (medium, journal) = used();
    let start = |setup: &Setup| attach_with(setup, &medium, &journal).engine.start();
    assert_eq!(start(&setup(2)), Start::Warm);
    assert_eq!(start(&Setup { volume_id: [9; 16], ..setup(2) }), Start::Cold(Cold::Volume));
    let mut changed = setup(2);
    changed.witnesses[0].bytes[100] ^= 1;
    assert_eq!(start(&changed), Start::Cold(Cold::Changed(0)));
    let grown = Geometry { region_bytes: 32 << 10, ..setup(2).geometry };
    let Start::Cold(cold) = start(&Setup { geometry: grown, ..setup(2) }) else { panic!("warm") };
    assert!(cold.to_string().starts_with("it was made for a volume of 262144 bytes"), "{cold}");
    assert_eq!(attach(&medium, &[], 2).engine.start(), Start::Cold(Cold::New));
}

/// A cache that has room for half of the volume.
fn small() -> Setup {
    let geometry = Geometry { segments: 5, ..setup(1).geometry };
    Setup { geometry, ..setup(1) }
}

#[test]
fn a_budget_that_is_used_up_moves_nothing() {
    let limits = Limits { budget_bytes_per_day: 300 << 10, ..setup(1).limits };
    let mut driver = attach_with(&Setup { limits, ..small() }, &[], &[]);
    for round in 0..40 {
        for number in 0..VOLUME / u64::from(FRAME) {
            driver.request(Request::Prefetch { offset: frame_at(number), len: 1 }).unwrap();
            // Everything that is cached is hit, so that all of it is worth a move.
            for hit in (0..VOLUME / u64::from(FRAME)).filter(|hit| hit % 7 == round % 7) {
                driver.read(frame_at(hit), 512).unwrap();
            }
        }
    }
    let counters = driver.engine.counters();
    assert!(counters.moved > 0 && counters.hits > 1000, "{counters:?}");
    assert!(counters.medium_bytes <= (300 + 64) << 10, "{counters:?}");
}

#[test]
fn a_working_set_that_is_hit_all_the_time_is_not_rewritten_for_ever() {
    let limits = Limits { budget_bytes_per_day: 1 << 40, ..setup(1).limits };
    let mut driver = attach_with(&Setup { limits, ..small() }, &[], &[]);
    for _ in 0..20 {
        for number in 0..VOLUME / u64::from(FRAME) {
            driver.request(Request::Prefetch { offset: frame_at(number), len: 1 }).unwrap();
            for hit in 0..VOLUME / u64::from(FRAME) {
                if driver.engine.is_cached(frame_at(hit)) {
                    driver.read(frame_at(hit), 512).unwrap();
                }
            }
        }
    }
    let Counters { moved, filled, prefetched, reclaimed, .. } = driver.engine.counters();
    assert!(reclaimed > 20 && moved > 0, "{:?}", driver.engine.counters());
    // What is brought ahead begins in the main queue, where hits keep it for longer.
    assert!(moved <= 6 * (filled + prefetched), "{:?}", driver.engine.counters());
}

#[test]
fn all_memory_is_at_most_40_bytes_a_frame_and_25_a_region() {
    let geometry = Geometry::fit(1 << 40, 4 << 30, 2 << 20).unwrap();
    let limits = Limits { io_buffers: 4, ..Limits::fit(&geometry) };
    let setup = Setup { geometry, limits, ..setup(1) };
    let mut buffers = testkit::SimulatedBuffers::default();
    for (bytes, count) in cache::Cache::buffers(&geometry, &limits) {
        buffers.add(bytes, count);
    }
    let engine = cache::Cache::attach(&setup, &[], &mut buffers).unwrap();
    let frames = u64::from(limits.frames_max);
    let regions = geometry.volume_bytes / geometry.region_bytes;
    assert_eq!((frames, regions), (1_048_064, 1 << 18));
    assert!(engine.index_bytes() <= 24 * frames, "{}", engine.index_bytes());
    let lists = (2 << 20) / 8;
    assert!(
        engine.memory_bytes() <= 36 * frames + 25 * regions + lists,
        "{}",
        engine.memory_bytes()
    );
    println!("{} of index, {} in all", engine.index_bytes(), engine.memory_bytes());
}

#[test]
fn nothing_is_cached_before_what_the_disk_held_is_durable() {
    let mut driver = attach(&[], &[], 1);
    let again = |driver: &mut testkit::SimulatedDriver<cache::Cache>| {
        driver.request(Request::Prefetch { offset: frame_at(3), len: 1 }).unwrap();
        driver.engine.is_cached(frame_at(3))
    };
    assert!(again(&mut driver));
    let mut driver = super::attach_to(&setup(1), &[], &[], |devices| {
        devices[0].faults.fails_writes = true;
    });
    assert!(driver.engine.is_running() && !again(&mut driver));
    driver.backing.faults.fails_writes = false;
    driver.input(Input::Tick { now_ns: SECOND_NS });
    assert!(again(&mut driver));
}

#[test]
fn zeros_are_stored_and_what_was_discarded_is_read_from_the_disk() {
    let mut driver = attach(&[], &[], 1);
    for number in [9, 10] {
        driver.request(Request::Prefetch { offset: frame_at(number), len: 1 }).unwrap();
    }
    let len = u64::from(FRAME);
    driver.request(Request::WriteZeroes { offset: frame_at(9), len }).unwrap();
    driver.request(Request::Discard { offset: frame_at(10), len }).unwrap();
    assert!(!driver.engine.is_cached(frame_at(9)) && !driver.engine.is_cached(frame_at(10)));
    assert_eq!(driver.read(frame_at(9), FRAME).unwrap(), [0; FRAME as usize]);
    let junk = driver.read(frame_at(10), FRAME).unwrap();
    assert!(junk == driver.backing.contents()[frame_at(10) as usize..][..FRAME as usize]);
    assert!(junk.iter().any(|byte| *byte != 0));
}

/// What a cache of this proof leaves after a crash, and after a detach with these last witnesses.
fn ended(proof: ChangeProof, last: Option<Vec<Witness>>) -> [(Vec<u8>, Vec<u8>); 2] {
    let mut driver = attach_with(&Setup { proof, ..setup(1) }, &[], &[]);
    driver.request(Request::Prefetch { offset: 0, len: u64::from(FRAME) }).unwrap();
    let crashed = (driver.medium.contents(), driver.journal.contents());
    let is_proved = proof == ChangeProof::Always || last.is_some();
    if let Some(last) = last {
        driver.engine.take_last_witnesses(last);
    }
    driver.input(Input::Detach);
    assert_eq!(driver.events.last(), Some(&Event::Detached { is_proved }));
    [crashed, (driver.medium.contents(), driver.journal.contents())]
}

#[test]
fn what_shows_no_change_is_cold() {
    let start = |(medium, journal): &(Vec<u8>, Vec<u8>), proof, witnesses: &[Witness]| {
        let setup = Setup { proof, witnesses: witnesses.to_vec(), ..setup(2) };
        attach_with(&setup, medium, journal).engine.start()
    };
    let witnesses = setup(1).witnesses;
    let [crashed, detached] = ended(ChangeProof::Always, None);
    assert_eq!(start(&crashed, ChangeProof::Always, &witnesses), Start::Warm);
    assert_eq!(start(&detached, ChangeProof::Always, &witnesses), Start::Warm);
    assert_eq!(start(&detached, ChangeProof::Never, &witnesses), Start::Cold(Cold::Unproved));
    // Followed, but of another kind now.
    assert_eq!(start(&crashed, ChangeProof::AfterDetach, &witnesses), Start::Cold(Cold::Unproved));
    let proof = ChangeProof::AfterDetach;
    let [crashed, detached] = ended(proof, None);
    for ended in [&crashed, &detached] {
        assert_eq!(start(ended, proof, &witnesses), Start::Cold(Cold::Unproved));
    }
    let log = Witness { offset: 8192, bytes: volume()[8192..9216].to_vec() };
    let [_, detached] = ended(proof, Some(vec![log.clone()]));
    assert_eq!(start(&detached, proof, std::slice::from_ref(&log)), Start::Warm);
    let mut changed = log;
    changed.bytes[3] ^= 1;
    assert_eq!(start(&detached, proof, &[changed]), Start::Cold(Cold::Changed(8192)));
    assert_eq!(start(&detached, proof, &witnesses), Start::Cold(Cold::Changed(0)));
    // A person answered for it.
    let [_, detached] = ended(proof, Some(Vec::new()));
    assert_eq!(start(&detached, proof, &[]), Start::Warm);
}

#[test]
fn more_witnesses_than_can_be_listed_show_nothing() {
    let each = (0..9).map(|at| Witness { offset: at * 512, bytes: vec![0; 512] });
    let many = Setup { witnesses: each.collect(), ..setup(1) };
    let mut driver = attach_with(&many, &[], &[]);
    driver.input(Input::Detach);
    assert_eq!(driver.events.last(), Some(&Event::Detached { is_proved: false }));
    let journal = driver.journal.contents();
    let again = attach_with(&many, &driver.medium.contents(), &journal).engine.start();
    assert_eq!(again, Start::Cold(Cold::Unproved));
}

#[test]
fn a_fill_ahead_keeps_what_it_brought_first_and_says_when_the_budget_is_used() {
    let limits = Limits { budget_bytes_per_day: 1 << 40, ..small().limits };
    let mut driver = attach_with(&Setup { limits, ..small() }, &[], &[]);
    let frames = VOLUME / u64::from(FRAME);
    // The cache is full of others.
    for number in (frames / 2..frames).chain(frames / 2..frames) {
        driver.read(frame_at(number), FRAME).unwrap();
    }
    let limit = driver.engine.fill_bytes_max();
    let mut brought = Vec::new();
    for number in 0..frames / 2 {
        if driver.engine.counters().prefetched_bytes >= limit {
            break;
        }
        // A segment may have to be reclaimed first.
        while !driver.engine.is_cached(frame_at(number)) {
            assert!(matches!(driver.engine.fill_room(), FillRoom::Ready | FillRoom::Busy));
            driver.request(Request::Prefetch { offset: frame_at(number), len: 1 }).unwrap();
        }
        brought.push(number);
    }
    assert!(brought.len() > 4, "{brought:?} of {limit} bytes");
    for number in &brought {
        let coverage = driver.engine.coverage(frame_at(*number), u64::from(FRAME));
        assert_eq!(coverage.cached_bytes, u64::from(FRAME), "{number} of {brought:?}");
    }
    let limits = Limits { budget_bytes_per_day: 64 << 10, ..setup(1).limits };
    let mut driver = attach_with(&Setup { limits, ..setup(1) }, &[], &[]);
    for number in 0..frames {
        driver.request(Request::Prefetch { offset: frame_at(number), len: 1 }).unwrap();
    }
    assert_eq!(driver.engine.fill_room(), FillRoom::BudgetUsed);
    driver.medium.faults.fails_reads = true;
    driver.medium.faults.fails_writes = true;
    for at in [1, 2, 3] {
        driver.input(Input::Tick { now_ns: at * SECOND_NS });
        driver.read(frame_at(1), 512).unwrap();
    }
    assert_eq!(driver.engine.fill_room(), FillRoom::Off);
}

#[test]
fn coverage_is_of_the_bytes_asked_for_within_the_volume() {
    let mut driver = attach(&[], &[], 1);
    let frame = u64::from(FRAME);
    driver.request(Request::Prefetch { offset: frame_at(4), len: 2 * frame }).unwrap();
    driver.read(frame_at(6), 512).unwrap();
    let coverage = driver.engine.coverage(frame_at(4) + 100, 3 * frame);
    assert_eq!((coverage.cached_bytes, coverage.read_once_bytes), (2 * frame - 100, frame));
    for (offset, len) in [(VOLUME, 1), (u64::MAX, u64::MAX), (VOLUME - 1, u64::MAX)] {
        assert_eq!(driver.engine.coverage(offset, len).cached_bytes, 0);
    }
}

#[test]
fn a_hit_that_follows_the_read_before_is_no_seek() {
    let mut driver = attach(&[], &[], 1);
    driver.request(Request::Prefetch { offset: 0, len: VOLUME }).unwrap();
    for number in [1, 2, 3, 7, 8, 2] {
        driver.read(frame_at(number), FRAME).unwrap();
    }
    let counters = driver.engine.counters();
    assert_eq!((counters.hits, counters.hit_seeks), (5, 3), "{counters:?}");
}

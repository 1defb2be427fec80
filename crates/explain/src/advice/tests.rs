//! Advice from hand-made blocks of time, each with its waits and its distances, and from the series
//! of a hand-made recording.

use super::blocks::{KindReturns, Observation, TimeBlock};
use super::less::CacheUse;
use super::memory::kept;
use super::{
    AdviceRequest, BlockAccess, BlockReads, CacheDevice, DiskTime, GIB, MIB, TraceReads, advise,
    clash, observe, observe_trace,
};
use model::advice::{Advice, AdviceState};
use model::recording::{Recording, Schema, Series, SeriesKind, SourceState, Span, Steps, Tick};
use policy::trace::{TraceForm, TraceRequest};
use proptest::prelude::*;

const SECOND_NS: u64 = 1_000_000_000;

/// A block of five minutes in which threads waited `waited_s` for 1,000 MiB that came back, half of
/// it less than 1 GiB away and half less than 3 GiB by both orders of counting.
fn busy(waited_s: u64) -> TimeBlock {
    let distances = [(GIB, 500 * MIB), (3 * GIB, 500 * MIB)].into();
    let file = KindReturns {
        seen_bytes: 1000 * MIB,
        waited_ns: waited_s * SECOND_NS,
        distances: [distances, [(3 * GIB, 1000 * MIB)].into()],
        ..KindReturns::default()
    };
    TimeBlock {
        length_ns: 300 * SECOND_NS,
        disk_ns: 100 * SECOND_NS,
        waited_ns: waited_s * SECOND_NS,
        ran_ns: 30 * SECOND_NS,
        returns: [file, KindReturns::default()],
        ..TimeBlock::default()
    }
}

fn hour(blocks: Vec<TimeBlock>) -> Observation {
    Observation {
        blocks,
        has_returns: true,
        in_kernel: true,
        root: true,
        page_bytes: 4096,
        is_machine: true,
        ..Observation::default()
    }
}

fn asked(seen: &Observation, more_bytes: &[i64]) -> Advice {
    advise(
        std::slice::from_ref(seen),
        &AdviceRequest { more_bytes: more_bytes.to_vec(), ..AdviceRequest::default() },
    )
}

#[test]
fn seconds_are_the_share_of_the_waits_that_would_have_stayed() {
    let advice = asked(&hour(vec![busy(40); 12]), &[GIB as i64, 4 * GIB as i64]);
    let spared: Vec<_> = advice.memory.sizes.iter().map(|gain| gain.spared.unwrap()).collect();
    // Of 12 blocks of 40 s the half within 1 GiB, and all within 3 GiB; by the plain counter of
    // what left, nothing is within 1 GiB. One page in 16 was followed: 0.5 % more.
    assert_eq!((spared[0].ns, spared[0].low_ns), (240 * SECOND_NS, 0));
    assert_eq!(spared[1].ns, 480 * SECOND_NS);
    assert!(spared[1].low_ns > 470 * SECOND_NS && spared[1].high_ns < 490 * SECOND_NS);
    assert_eq!(advice.memory.knee_bytes, Some(3 * GIB));
    assert_eq!(
        advice.answer,
        "4 GiB more would have spared 480 s (478 to 482) of this hour; above 3 GiB hardly more"
    );
    assert_eq!(advice.per_day_ns, Some(480 * SECOND_NS * 24));
}

#[test]
fn no_more_is_spared_than_the_wall_time_waited() {
    // Eight threads waited for 400 s in each block, of which the wall bar has 100 s.
    let advice = asked(&hour(vec![busy(400); 12]), &[4 * GIB as i64]);
    let gain = &advice.memory.sizes[0];
    assert_eq!(gain.spared.unwrap().ns, 1200 * SECOND_NS);
    assert_eq!(gain.spared.unwrap().high_ns, advice.disk_ns);
    assert_eq!(gain.threads_ns, Some(4800 * SECOND_NS));
    assert!(
        advice.answer.contains("threads together would have waited 80 min less"),
        "{}",
        advice.answer
    );
}

#[test]
fn the_wall_time_is_shared_out_among_all_that_waited() {
    // A backup waited 100 s for what it read once, a server 60 s for what came back; the wall bar
    // has 100 s, of which the server has its share.
    let block = TimeBlock { waited_ns: 160 * SECOND_NS, ..busy(60) };
    let gain = asked(&hour(vec![block; 12]), &[4 * GIB as i64]).memory.sizes[0].clone();
    assert_eq!(gain.spared.unwrap().ns, 12 * 37_500_000_000);
    assert_eq!(gain.threads_ns, Some(720 * SECOND_NS));
}

#[test]
fn a_range_across_the_bar_is_unproven() {
    // 1 GiB would have spared 240 s by what is still out, and nothing by all that left.
    let advice = asked(&hour(vec![busy(40); 12]), &[GIB as i64]);
    assert_eq!((advice.state, advice.per_day_ns), (AdviceState::Unproven, None));
    let text = "unproven: 1 GiB more would have spared 240 s (0 to 242) of this hour";
    assert!(advice.answer.starts_with(text), "{}", advice.answer);
}

#[test]
fn what_came_back_from_unknown_distances_raises_the_upper_end_alone() {
    let far = |too_far: u64, counted: u64| {
        let mut block = busy(40);
        block.returns[0].distances = [0, 1]
            .map(|_| [(GIB, 1000 * MIB - too_far), (u64::MAX, too_far)].into_iter().collect());
        block.returns[0].counted_bytes = Some(counted);
        asked(&hour(vec![block; 12]), &[4 * GIB as i64])
    };
    let of = |advice: &Advice| advice.memory.sizes[0].spared.unwrap();
    let known = far(0, 1000 * MIB);
    assert_eq!((of(&known).ns, known.memory.knee_bytes), (480 * SECOND_NS, Some(GIB)));
    let too_far = far(500 * MIB, 1000 * MIB);
    assert_eq!(of(&too_far).ns, 240 * SECOND_NS);
    assert!(of(&too_far).high_ns >= 480 * SECOND_NS, "{too_far:?}");
    assert_eq!(too_far.memory.knee_bytes, None);
    assert!(too_far.notes[0].contains("further than the distances reach"), "{too_far:?}");
    let unseen = far(0, 2000 * MIB);
    assert_eq!(of(&unseen).ns, 240 * SECOND_NS);
    assert!(of(&unseen).high_ns >= 480 * SECOND_NS, "{unseen:?}");
    assert!(unseen.notes[0].contains("or was forgotten"), "{unseen:?}");
    // All came back from too far: more may help, and `none` would be wrong.
    assert_eq!(far(1000 * MIB, 1000 * MIB).state, AdviceState::Unproven);
}

#[test]
fn blocks_that_differ_and_lost_events_widen_the_interval() {
    let width = |seen: &Observation| {
        let spared = asked(seen, &[4 * GIB as i64]).memory.sizes[0].spared.unwrap();
        assert!(spared.low_ns <= spared.ns && spared.ns <= spared.high_ns);
        spared.high_ns - spared.low_ns
    };
    let alike = hour(vec![busy(40); 12]);
    let differing = hour((0..12).map(|at| busy(if at % 3 == 0 { 100 } else { 10 })).collect());
    assert!(width(&differing) > 10 * width(&alike));
    let few = hour((0..6).map(|at| busy(if at % 3 == 0 { 100 } else { 10 })).collect());
    assert!(width(&few) as f64 > 0.6 * width(&differing) as f64, "half the time, as unsure");
    let lossy = Observation { events: 900, lost: 100, ..alike.clone() };
    assert!(width(&lossy) > 5 * width(&alike));
    let notes = asked(&lossy, &[]).notes;
    assert!(notes[0].starts_with("100 kernel events were lost (10 %)"), "{notes:?}");
}

#[test]
fn what_does_not_say_it_is_unproven() {
    let answer = |seen: Observation| asked(&seen, &[]).answer;
    let short = TimeBlock { length_ns: SECOND_NS / 2, ..busy(0) };
    let text = answer(hour(vec![short; 6]));
    assert!(text.starts_with("unproven: 1,536,000 returns seen in 3 s, at least 10 s"), "{text}");
    let idle = TimeBlock { length_ns: 300 * SECOND_NS, ..TimeBlock::default() };
    let text = answer(hour(vec![idle; 12]));
    assert_eq!(text, "unproven: idle for nearly all of this hour, 0 returns seen");
    let mut cold = busy(40);
    cold.returns[0] = KindReturns { seen_bytes: 4096, ..KindReturns::default() };
    let text = answer(hour(vec![cold; 10]));
    assert!(text.starts_with("unproven: 10 returns seen, at least 1,000 are needed"), "{text}");
    let text = answer(Observation { has_returns: false, root: false, ..hour(vec![busy(40); 12]) });
    assert!(text.starts_with("unproven: what leaves memory is seen by root alone"), "{text}");
    let calm = TimeBlock { waited_ns: SECOND_NS / 4, ..busy(0) };
    assert_eq!(
        answer(hour(vec![calm; 12])),
        "none: threads waited 3 s of this hour for reads and swap"
    );
}

#[test]
fn less_memory_and_what_is_out_of_reach_are_unproven() {
    let advice = asked(&hour(vec![busy(40); 12]), &[-(GIB as i64), 64 * GIB as i64]);
    let why: Vec<_> =
        advice.memory.sizes.iter().map(|gain| gain.unproven.clone().unwrap()).collect();
    assert!(why[0].starts_with("what less memory would cost"), "{why:?}");
    assert!(why[1].starts_with("distances of more than 32"), "{why:?}");
    assert_eq!(advice.state, AdviceState::Unproven);
    let usual = asked(&hour(vec![busy(40); 12]), &[]);
    assert_eq!(usual.memory.sizes.len(), 4);
}

/// An hour in which 40 s were waited for 1,000 MiB in each block, with a cache of 4 GiB: 500 MiB
/// were used again within 2 GiB of others, and 200 MiB within 3 to 3.5 GiB.
fn cached(first: (u64, u64), too_far: u64) -> Observation {
    let again = [(2 * GIB, 500 * MIB), (7 * GIB / 2, 200 * MIB), (u64::MAX, too_far)];
    let cache = CacheUse {
        is_followed: true,
        closed: None,
        room_bytes: Some(4 * GIB),
        distances: [again.into(), [first].into()],
    };
    hour(vec![TimeBlock { cache, ..busy(40) }; 12])
}

#[test]
fn less_memory_costs_what_was_used_again_from_beyond_what_would_be_left() {
    let seen = cached((GIB, 0), 0);
    let sizes = asked(&seen, &[-(GIB as i64), -(GIB as i64 / 4), -(5 * GIB as i64 / 2)]);
    let of = |number: usize| sizes.memory.sizes[number].clone();
    let cost = |number: usize| of(number).cost.unwrap();
    // 1,000 MiB took 40 s: the 200 MiB of each of 12 blocks 96 s.
    assert_eq!((of(0).lost_bytes, cost(0).ns), (Some(2400 * MIB), 96 * SECOND_NS));
    assert!(cost(0).low_ns > 90 * SECOND_NS && cost(0).high_ns < 102 * SECOND_NS);
    assert_eq!((of(0).spared, of(0).threads_ns), (None, Some(96 * SECOND_NS)));
    assert_eq!((of(1).lost_bytes, cost(1).high_ns), (Some(0), 0));
    assert_eq!(of(2).lost_bytes, Some(12 * 700 * MIB), "all that was used again");
    assert_eq!(
        (sizes.state, sizes.memory.named_bytes),
        (AdviceState::Helps, Some(-5 * GIB as i64 / 2))
    );
    let alone = asked(&seen, &[-(GIB as i64)]);
    let text = "1 GiB less would have cost 96 s (95 to 97) of this hour";
    assert!(alone.answer.starts_with(text), "{}", alone.answer);
    let little = asked(&seen, &[-(GIB as i64 / 4)]);
    let text = "none: 256 MiB less would have cost 0 s (0 to 0) of this hour";
    assert!(little.answer.starts_with(text), "{}", little.answer);
    let both = asked(&seen, &[4 * GIB as i64, -(GIB as i64)]);
    assert!(both.answer.contains("; 1 GiB less would have cost 96 s"), "{}", both.answer);
}

#[test]
fn what_is_not_known_of_the_last_use_widens_the_cost_of_less_memory() {
    let cost = |seen: &Observation| asked(seen, &[-(GIB as i64)]).memory.sizes[0].cost.unwrap();
    let known = cost(&cached((GIB, 0), 0));
    let near = cost(&cached((GIB, 500 * MIB), 0));
    assert_eq!((near.ns, near.low_ns), (known.ns, known.low_ns));
    assert!(near.high_ns > known.high_ns + 200 * SECOND_NS, "{near:?}");
    let far = cost(&cached((7 * GIB / 2, 500 * MIB), 0));
    assert!(far.ns > known.ns + 200 * SECOND_NS && far.low_ns <= known.ns, "{far:?}");
    let too_far = cost(&cached((GIB, 0), 500 * MIB));
    assert!(too_far.ns > known.ns + 200 * SECOND_NS && too_far.low_ns <= known.ns, "{too_far:?}");
}

#[test]
fn less_memory_than_the_cache_has_and_a_disk_without_a_time_are_unproven() {
    let why = |seen: &Observation, less: u64| {
        let gain = asked(seen, &[-(less as i64)]).memory.sizes[0].clone();
        (gain.unproven.unwrap(), gain.lost_bytes)
    };
    let seen = cached((GIB, 0), 0);
    assert!(why(&seen, 4 * GIB).0.contains("had 4 GiB"), "{:?}", why(&seen, 4 * GIB));
    let mut unknown = seen.clone();
    unknown.blocks[3].cache.room_bytes = None;
    assert!(why(&unknown, GIB).0.contains("was not recorded"));
    let mut closed = seen.clone();
    closed.blocks.iter_mut().for_each(|block| block.cache.is_followed = false);
    assert!(why(&closed, GIB).0.contains("record --hits"), "{:?}", why(&closed, GIB));
    closed.blocks[0].cache.closed = Some("the kernel is older than 6.12".to_owned());
    assert!(why(&closed, GIB).0.ends_with("not seen: the kernel is older than 6.12"));
    let mut unread = seen.clone();
    unread.blocks.iter_mut().for_each(|block| block.returns = Default::default());
    let (text, lost) = why(&unread, GIB);
    assert!(text.contains("nothing was read"), "{text}");
    assert_eq!(lost, Some(2400 * MIB));
    // What was read for the first time says how long a disk takes, too.
    for block in &mut unread.blocks {
        (block.read_ns, block.read_bytes) = (2 * SECOND_NS, 100 * MIB);
    }
    let cost = asked(&unread, &[-(GIB as i64)]).memory.sizes[0].cost.unwrap();
    assert_eq!(cost.ns, 12 * 4 * SECOND_NS);
}

#[test]
fn compressed_memory_is_counted_and_not_priced() {
    let mut block = busy(40);
    block.returns.swap(0, 1);
    let seen = hour(vec![block; 12]);
    let sure = asked(&seen, &[4 * GIB as i64]);
    assert_eq!(sure.memory.sizes[0].spared.unwrap().ns, 480 * SECOND_NS);
    let mut zram = Observation { zram_bytes: GIB, ..seen };
    let mixed = asked(&zram, &[]).notes;
    assert!(mixed.iter().any(|note| note.contains("on zram and on disks")), "{mixed:?}");
    zram.blocks.iter_mut().for_each(|block| block.swap_is_zram = true);
    let advice = asked(&zram, &[4 * GIB as i64]);
    assert_eq!(advice.memory.sizes[0].spared.unwrap().ns, 0);
    assert_eq!(advice.memory.swap.came_back_bytes, 12_000 * MIB);
    assert_eq!(advice.state, AdviceState::Nothing);
    assert!(advice.notes[0].contains("not priced as disk"), "{:?}", advice.notes);
}

#[test]
fn several_recordings_are_judged_together() {
    let one = |start_s: u64| Observation {
        host: Some("db".to_owned()),
        started_unix_ns: start_s * SECOND_NS,
        wall_ns: 1800 * SECOND_NS,
        ..hour(vec![busy(40); 6])
    };
    let request = AdviceRequest { more_bytes: vec![4 * GIB as i64], ..AdviceRequest::default() };
    let both = [one(10_000), one(1_000)];
    assert_eq!(clash(&both), None);
    assert!(clash(&[one(1_000), one(2_000)]).unwrap().contains("the same time"));
    assert!(clash(&[one(1_000), one(1_000)]).unwrap().contains("the same time"));
    let other = Observation { host: Some("web".to_owned()), ..one(10_000) };
    assert!(clash(&[one(1_000), other]).unwrap().contains("two machines, db and web"));
    let advice = advise(&both, &request);
    assert_eq!((advice.blocks, advice.span_ns), (12, 3600 * SECOND_NS));
    assert_eq!(advice.memory.sizes[0].spared.unwrap().ns, 480 * SECOND_NS);
}

/// A minute in which one thread waited half of the time for reads, all of which came back within
/// 64 MiB.
fn recorded() -> Recording {
    let mut recording = Recording::default();
    recording.facts.page_bytes = 4096;
    recording.facts.processors = 1;
    recording.facts.root = true;
    for sight in ["events.in_kernel", "events.sched"] {
        recording.facts.sights.insert(sight.to_owned(), SourceState::Open);
    }
    let series = [
        ("trace.events", 1_000),
        ("trace.sched.run_ns", SECOND_NS / 20),
        ("trace.sched.block_io_ns", SECOND_NS / 20),
        ("trace.block_io.read_ns", SECOND_NS / 20),
        ("trace.wall.run_ns", SECOND_NS / 20),
        ("trace.wall.block_io_ns", SECOND_NS / 20),
        ("stat.cpu.user_ns", SECOND_NS / 20),
        ("stat.cpu.idle_ns", SECOND_NS / 20),
        ("tree.read_bytes", MIB),
        ("trace.returns.file.left_bytes", MIB),
        ("trace.returns.file.came_back_bytes", MIB),
        ("trace.returns.file.still_out_lt_65536kib", MIB),
        ("trace.returns.file.left_lt_131072kib", MIB),
    ];
    for (name, growth) in series {
        let name = name.to_owned();
        let schema = Schema { name, kind: SeriesKind::Counter, ..Schema::default() };
        let mut series = Series { schema, steps: Steps::new() };
        for sample in 0..=600_u32 {
            series.push(sample, Some(i64::from(sample) * growth as i64));
        }
        recording.series.push(series);
    }
    let tick = |number| Tick { due_ns: number * SECOND_NS / 10, at_ns: number * SECOND_NS / 10 };
    recording.ticks = (0..=600).map(tick).collect();
    recording
}

#[test]
fn the_series_of_a_recording_become_blocks() {
    let seen = observe(&recorded());
    assert_eq!((seen.blocks.len(), seen.span_ns()), (6, 60 * SECOND_NS));
    assert_eq!(seen.returned_pages(), 600 * 256);
    assert!(seen.doubts[0].contains("the recording was cut"), "{:?}", seen.doubts);
    let advice = asked(&seen, &[64 << 20, 32 << 20]);
    let [enough, half] = [0, 1].map(|at| advice.memory.sizes[at].clone());
    assert_eq!(enough.spared.unwrap().ns, 30 * SECOND_NS, "{advice:?}");
    assert_eq!((enough.kept_bytes, enough.kept_low_bytes), (Some(600 * MIB), Some(0)));
    assert_eq!(half.kept_bytes, Some(0));
    let without = Recording {
        series: recorded()
            .series
            .into_iter()
            .filter(|s| !s.schema.name.contains("returns"))
            .collect(),
        ..recorded()
    };
    assert_eq!(asked(&observe(&without), &[]).state, AdviceState::Unproven);
    assert_eq!(asked(&observe(&Recording::default()), &[]).state, AdviceState::Unproven);
}

#[test]
fn time_without_a_recorder_is_not_recorded_time() {
    let mut recording = recorded();
    let (start_ns, end_ns) = (5 * SECOND_NS, 45 * SECOND_NS);
    let span = Span { kind: "gap".to_owned(), start_ns, end_ns, text: "stopped".to_owned() };
    recording.spans.push(span);
    let seen = observe(&recording);
    assert_eq!(seen.span_ns(), 20 * SECOND_NS);
    assert_eq!(seen.sum(|block| block.gap_ns), 40 * SECOND_NS);
    assert_eq!(seen.blocks.len(), 3);
    assert!(asked(&seen, &[64 << 20]).answer.contains("fewer than four pieces"));
    assert!(seen.doubts.iter().any(|doubt| doubt.contains("no recorder ran")), "{seen:?}");
}

/// An hour in which the same 1,000 blocks, far apart, are read in each piece, each in 10 ms.
fn reading_again() -> BlockReads {
    let read = |number: u64| BlockAccess {
        at_ns: number / 1000 * 300 * SECOND_NS + number % 1000 * SECOND_NS / 10,
        disk: 8 << 20,
        sector: number * 7919 % 1000 * 100_000,
        sectors: 8,
        latency_ns: SECOND_NS / 100,
    };
    BlockReads { reads: (0..12_000).map(read).collect(), ..BlockReads::default() }
}

fn on_flash(reads: BlockReads, flash_bytes: u64) -> Advice {
    let devices = vec![CacheDevice::usual_stick(), CacheDevice::usual_ssd()];
    let request = AdviceRequest { flash_bytes: vec![flash_bytes], devices, ..Default::default() };
    advise(&[hour(vec![busy(40); 12]).with_reads(reads)], &request)
}

#[test]
fn a_cache_on_flash_spares_disk_time_less_its_own() {
    let advice = on_flash(reading_again(), GIB);
    // All but the first of 12 pieces hit; 0.9 ms instead of 10 ms; of 40 s in each piece.
    let [stick, ssd] = [0, 1].map(|at| advice.flash[at].sizes[0].clone());
    assert_eq!((stick.hits, stick.reads), (11_000, 12_000));
    assert_eq!(stick.spared.ns / 1_000_000_000, 11 * 40 * 91 / 100);
    assert!(ssd.spared.ns > stick.spared.ns && ssd.spared.high_ns <= advice.disk_ns);
    assert_eq!(stick.written_bytes, 1000 * 4096);
    assert!(
        advice.answer.contains("; a cache of 1 GiB on a stick would have spared 400 s ("),
        "{}",
        advice.answer
    );
    assert!(advice.answer.contains(") of this hour, if it takes"), "{}", advice.answer);
    assert!(advice.answer.contains("if it takes 0.9 ms for 4 KiB (assumed)"), "{}", advice.answer);
    assert!(advice.notes.iter().any(|note| note.contains("assumed: 0.9 ms")), "{:?}", advice.notes);
    // A cache of 100 blocks is swept clean by 1,000 in turn.
    let small = on_flash(reading_again(), 100 * 4096);
    assert_eq!((small.flash[0].sizes[0].hits, small.flash[0].state), (0, AdviceState::Nothing));
    let text =
        "; a cache of 400 KiB on a stick or an SSD would have spared 0 s (0 to 0) of this hour";
    assert!(small.answer.ends_with(text), "{}", small.answer);
}

/// Of four regions in a row one gains what the disk took, and the others hardly anything.
#[test]
fn a_share_of_the_regions_widens_the_range_by_what_differs_between_them() {
    let width = |shift: u8, is_alike: bool| {
        let mut reads = reading_again();
        for read in &mut reads.reads {
            let is_slow = is_alike || (read.sector >> 11) % 4 == 0;
            read.latency_ns = if is_slow { 10_000_000 } else { 1_000_000 };
        }
        let spared = on_flash(BlockReads { shift, ..reads }, GIB).flash[0].sizes[0].spared;
        (spared.high_ns - spared.low_ns) as f64 / spared.ns as f64
    };
    assert!((width(0, false) - width(0, true)).abs() < 0.01);
    let (alike, differing) = (width(3, true), width(3, false));
    assert!(alike - width(0, true) < 0.01, "{alike}");
    assert!(differing > width(0, false) + 0.02, "{differing} of {}", width(0, false));
}

#[test]
fn what_is_missing_of_the_block_reads_is_a_note() {
    let notes = |reads: BlockReads| on_flash(reads, GIB).notes.join("\n");
    assert!(!notes(reading_again()).contains("block requests"));
    let sampled = notes(BlockReads { shift: 1, ..reading_again() });
    assert!(sampled.contains("one region in 2 was kept"), "{sampled}");
    assert!(!sampled.contains("lost"), "{sampled}");
    let lossy = notes(BlockReads { lost: 7, ..reading_again() });
    assert!(lossy.contains("7 block requests were lost"), "{lossy}");
    assert!(!lossy.contains("one region"), "{lossy}");
    let absent = Some("no accesses were kept: no such event".to_owned());
    let none = on_flash(BlockReads { absent, ..BlockReads::default() }, GIB);
    assert_eq!(none.flash[0].text, "no accesses were kept: no such event");
    let damage = Some("a chunk is damaged".to_owned());
    let cut = notes(BlockReads { damage: damage.clone(), ..reading_again() });
    assert!(cut.contains("end early: a chunk is damaged"), "{cut}");
    let nothing = on_flash(BlockReads { damage, ..BlockReads::default() }, GIB);
    let why = &nothing.flash[0].text;
    assert!(why.starts_with("no accesses could be read (a chunk is damaged): record"), "{why}");
    let of_command = Observation { is_machine: false, ..hour(vec![busy(40); 12]) };
    let devices = vec![CacheDevice::usual_stick()];
    let request = AdviceRequest { flash_bytes: vec![GIB], devices, ..Default::default() };
    let notes = advise(&[of_command.with_reads(reading_again())], &request).notes.join("\n");
    assert!(notes.contains("those of the whole machine"), "{notes}");
}

/// A command is copied as it stands.
#[test]
fn a_command_ends_the_answer() {
    let mut reads = reading_again();
    reads.reads.iter_mut().for_each(|read| read.latency_ns = 50_000);
    let seen = Observation { has_returns: false, ..hour(vec![busy(40); 12]) };
    let request = AdviceRequest {
        flash_bytes: vec![GIB],
        devices: vec![CacheDevice::usual_stick()],
        ..Default::default()
    };
    let answer = advise(&[seen.with_reads(reads)], &request).answer;
    assert!(answer.starts_with("a cache of 1 GiB on a stick would have spared 0 s"), "{answer}");
    assert!(answer.contains("; more memory: unproven: "), "{answer}");
    assert!(answer.ends_with("-o hour.trec"), "{answer}");
}

#[test]
fn a_fast_disk_and_long_runs_gain_nothing() {
    let mut reads = reading_again();
    reads.reads.iter_mut().for_each(|read| read.latency_ns = 50_000);
    let fast = on_flash(reads, GIB);
    assert_eq!(fast.flash[0].state, AdviceState::Nothing, "the stick is slower than the disk");
    let mut runs = reading_again();
    for (number, read) in (0..).zip(&mut runs.reads) {
        (read.sector, read.sectors) = (number % 1000 * 1024, 1024);
    }
    let streamed = on_flash(runs, 16 * GIB);
    assert_eq!(streamed.flash[1].sizes[0].hits, 0, "{:?}", streamed.flash);
    let without = advise(
        &[hour(vec![busy(40); 12])],
        &AdviceRequest { devices: vec![CacheDevice::usual_stick()], ..AdviceRequest::default() },
    );
    assert!(without.flash[0].text.starts_with("record with --accesses"), "{:?}", without.flash);
}

#[test]
fn disks_do_not_share_blocks_and_a_flash_that_helps_comes_first() {
    let mut reads = reading_again();
    for (number, read) in (0..).zip(&mut reads.reads) {
        // Each piece reads the same sectors of another disk.
        read.disk = [8 << 20, 259 << 20, 254 << 20, 8 << 20 | 16][number / 1000 % 4];
    }
    let advice = on_flash(reads, GIB);
    assert_eq!(advice.flash[0].sizes[0].hits, 8_000, "the first of each disk misses");
    let mut huge = reading_again();
    huge.reads.iter_mut().for_each(|read| (read.sector, read.sectors) = (u64::MAX, u32::MAX));
    assert_eq!(on_flash(huge, u64::MAX).flash[0].sizes[0].hits, 0);
    let mut cold = busy(40);
    cold.returns[0] = KindReturns::default();
    let seen = hour(vec![cold; 12]).with_reads(reading_again());
    let devices = vec![CacheDevice::usual_stick()];
    let request = AdviceRequest { flash_bytes: vec![GIB], devices, ..Default::default() };
    let alone = advise(std::slice::from_ref(&seen), &request);
    assert!(alone.answer.starts_with("a cache of 1 GiB on a stick would"), "{}", alone.answer);
    assert!(alone.answer.contains("; more memory: unproven: 0 returns"), "{}", alone.answer);
    assert_eq!(alone.memory.state, AdviceState::Unproven);
}

/// Recordings with accesses are summed up; the cache begins each of them empty.
#[test]
fn several_recordings_with_accesses_are_summed_up() {
    let devices = vec![CacheDevice::usual_stick()];
    let request = AdviceRequest { flash_bytes: vec![GIB], devices, ..Default::default() };
    let one = hour(vec![busy(40); 12]).with_reads(reading_again());
    let of = |observations: &[Observation]| {
        let advice = advise(observations, &request);
        let flash = advice.flash[0].clone();
        (flash.sizes[0].clone(), flash.span_ns, advice)
    };
    let (alone, span_ns, _) = of(std::slice::from_ref(&one));
    let (twice, both_ns, advice) = of(&[one.clone(), one.clone()]);
    assert_eq!(both_ns, 2 * span_ns);
    assert_eq!((twice.hits, twice.reads), (2 * alone.hits, 2 * alone.reads));
    assert_eq!(twice.spared.ns, 2 * alone.spared.ns);
    assert!(twice.spared.low_ns > 2 * alone.spared.low_ns, "more pieces are surer: {twice:?}");
    let note = |advice: &Advice, text: &str| advice.notes.iter().any(|note| note.contains(text));
    assert!(note(&advice, "begins each of them empty"), "{:?}", advice.notes);
    assert!(advice.answer.contains("of these 2 h"), "{}", advice.answer);
    // Another one, in which nothing is read again, makes the range wider.
    let mut cold = reading_again();
    for (number, read) in (0..).zip(&mut cold.reads) {
        read.sector = number * 100_000;
    }
    let (mixed, _, _) = of(&[one.clone(), hour(vec![busy(40); 12]).with_reads(cold)]);
    assert_eq!(mixed.spared.ns, alone.spared.ns);
    let width = |gain: &model::advice::FlashGain| gain.spared.high_ns - gain.spared.low_ns;
    assert!(width(&mixed) > 2 * width(&alone), "{mixed:?} {alone:?}");
    // One without accesses is not judged, and not in the span.
    let without = hour(vec![busy(40); 12]);
    let (part, part_ns, advice) = of(&[without, one]);
    assert_eq!((part, part_ns), (alone, span_ns));
    assert!(note(&advice, "1 of 2 recordings kept accesses"), "{:?}", advice.notes);
    assert!(!note(&advice, "begins each of them empty"), "{:?}", advice.notes);
    assert!(advice.answer.contains(") of this hour, if it takes"), "{}", advice.answer);
}

/// A trace of an hour in which 1,000 blocks, far apart, are read again and again, and written once.
fn traced(form: TraceForm, latency_ns: Option<u64>) -> TraceReads {
    let mut trace = TraceReads::new("hm_0.csv", form);
    for number in 0..12_000_u64 {
        trace.add(&TraceRequest {
            at_ns: number * SECOND_NS * 3 / 10,
            first_key: number % 1000 * 1000,
            blocks: 1,
            is_write: false,
            latency_ns,
        });
    }
    trace.add(&TraceRequest {
        at_ns: 3600 * SECOND_NS,
        first_key: 7,
        blocks: 1,
        is_write: true,
        latency_ns,
    });
    trace
}

fn of_trace(trace: TraceReads, disk: Option<&DiskTime>, request: &AdviceRequest) -> Advice {
    advise(&[observe_trace(trace, disk)], request)
}

fn with_devices(flash_bytes: Vec<u64>) -> AdviceRequest {
    let devices = vec![CacheDevice::usual_stick(), CacheDevice::usual_ssd()];
    AdviceRequest { flash_bytes, devices, ..Default::default() }
}

#[test]
fn a_trace_with_the_times_of_its_disk_is_judged_in_seconds() {
    let trace = traced(TraceForm::Msr, Some(SECOND_NS / 10));
    let advice = of_trace(trace, None, &with_devices(Vec::new()));
    assert_eq!(advice.span_ns, 3600 * SECOND_NS + SECOND_NS / 10);
    // 12,000 reads of 0.1 s, none at the same time; the first of each block is spared by nothing.
    assert!(advice.disk_ns.abs_diff(1200 * SECOND_NS) < SECOND_NS, "{}", advice.disk_ns);
    let sizes: Vec<_> = advice.memory.sizes.iter().map(|gain| gain.more_bytes as u64).collect();
    assert_eq!(sizes, [MIB, 2 * MIB, 4 * MIB], "the blocks take 4 MB");
    let spared = advice.memory.sizes[2].spared.unwrap();
    assert!(spared.ns.abs_diff(1100 * SECOND_NS) < 2 * SECOND_NS, "{spared:?}");
    assert!(spared.high_ns <= advice.disk_ns);
    let stick = advice.flash[0].sizes.last().unwrap();
    let expected = 11_000 * (SECOND_NS / 10 - 900_000);
    assert!(stick.spared.ns.abs_diff(expected) < 2 * SECOND_NS, "{stick:?}");
    assert_eq!((stick.hits, stick.reads), (11_000, 12_000));
    assert_eq!(advice.state, AdviceState::Helps);
    assert!(
        advice.answer.starts_with("4 MiB more would have spared 18.3 min"),
        "{}",
        advice.answer
    );
    assert!(advice.answer.contains("of this hour"), "{}", advice.answer);
    let trace = advice.trace.unwrap();
    assert_eq!((trace.reads, trace.writes, trace.distinct_bytes), (12_000, 1, 1000 * 4096));
    let share = |size: usize, policy: &str| {
        let shares = &trace.sizes[size].policies;
        shares.iter().find(|one| one.policy == policy).unwrap().hit_share
    };
    // In turn, what is used last is what is evicted first: LRU keeps nothing of a loop.
    assert_eq!(share(0, "LRU"), 0.0);
    for policy in ["LRU", "FIFO", "SIEVE", "ARC"] {
        assert!((share(2, policy) - 11.0 / 12.0).abs() < 1e-9, "{policy}: {trace:?}");
    }
}

#[test]
fn a_cache_without_room_for_a_block_hits_nothing() {
    let mut trace = TraceReads::new("one", TraceForm::Msr);
    for number in 0..2_000_u64 {
        let at_ns = number * SECOND_NS;
        let latency_ns = Some(1_000_000);
        trace.add(&TraceRequest { at_ns, first_key: 7, blocks: 1, is_write: false, latency_ns });
    }
    let request = AdviceRequest { more_bytes: vec![4095, 4096], ..with_devices(vec![4095]) };
    let advice = of_trace(trace, None, &request);
    let sizes = advice.trace.unwrap().sizes;
    assert_eq!((sizes[0].served_reads, sizes[1].served_reads), (0, 1_999));
    assert!(sizes[0].policies.iter().all(|policy| policy.hit_share == 0.0), "{sizes:?}");
    let shares: Vec<f64> = sizes[1].policies.iter().map(|policy| policy.hit_share).collect();
    assert!(shares.iter().all(|share| *share == 1_999.0 / 2_000.0), "{sizes:?}");
    assert!(advice.flash.iter().all(|one| one.sizes[0].hits == 0), "{:?}", advice.flash);
}

#[test]
fn a_trace_without_times_has_hits_and_no_seconds() {
    let trace = || traced(TraceForm::Iolog, None);
    let advice = of_trace(trace(), None, &with_devices(vec![64 * MIB]));
    let begin = "a cache of 64 MiB would have served 91.7 % of 12,000 reads; the seconds are \
                 unproven: the fio iolog trace has no times of the disk";
    assert!(advice.answer.starts_with(begin), "{}", advice.answer);
    assert_eq!((advice.state, advice.per_day_ns), (AdviceState::Unproven, None));
    assert!(advice.flash.iter().all(|one| one.sizes.is_empty()), "{:?}", advice.flash);
    let disk = DiskTime { read_ns: 10e6, name: "sda".to_owned() };
    let priced = of_trace(trace(), Some(&disk), &with_devices(vec![64 * MIB]));
    assert_eq!((priced.span_ns, priced.disk_ns), (120 * SECOND_NS, 120 * SECOND_NS));
    let gain = &priced.flash[0].sizes[0];
    assert!(gain.spared.ns.abs_diff(11_000 * 9_100_000) < SECOND_NS, "{gain:?}");
    assert_eq!(priced.per_day_ns, None, "no time passed");
    let says = priced.notes.iter().any(|note| note.contains("10.00 ms") && note.contains("sda"));
    assert!(says, "{:?}", priced.notes);
    // Times of its own count more than those of another disk.
    let with_times = traced(TraceForm::Msr, Some(SECOND_NS / 10));
    let timed = of_trace(with_times, Some(&disk), &with_devices(vec![64 * MIB]));
    assert!(timed.disk_ns > 1000 * SECOND_NS);
}

#[test]
fn a_trace_of_little_or_of_other_things_says_so() {
    let empty = TraceReads::new("a", TraceForm::Msr);
    let advice = of_trace(empty, None, &with_devices(Vec::new()));
    assert_eq!(advice.answer, "unproven: 0 block reads seen, at least 1,000 are needed");
    let less =
        AdviceRequest { more_bytes: vec![-(GIB as i64), GIB as i64], ..with_devices(vec![]) };
    let advice = of_trace(traced(TraceForm::Msr, Some(1_000_000)), None, &less);
    let why = advice.memory.sizes[0].unproven.clone().unwrap();
    assert!(why.contains("what reached the disk alone"), "{why}");
    assert_eq!(advice.memory.sizes[1].unproven, None);
    let objects = of_trace(traced(TraceForm::OracleGeneral, None), None, &with_devices(vec![]));
    let text = objects.notes.join("; ");
    assert!(text.contains("each object counts as one block"), "{text}");
    let both = [hour(vec![busy(40)]), observe_trace(traced(TraceForm::Msr, None), None)];
    assert!(clash(&both).unwrap().contains("recordings and traces"));
    let named = observe_trace(traced(TraceForm::Msr, None), None);
    assert_eq!(named.subject, "the trace hm_0.csv (MSR CSV)");
    assert_eq!(named.nameless_trace().as_deref(), Some("a trace (MSR CSV)"));
}

#[test]
fn a_long_trace_is_thinned_and_scaled() {
    let mut trace = TraceReads::new("long", TraceForm::Blkparse);
    // 9 million blocks: each of 4,096 runs of 512 blocks, four times and some.
    for number in 0..18_000_u64 {
        trace.add(&TraceRequest {
            at_ns: number * SECOND_NS,
            first_key: number % 4096 * (1 << 20),
            blocks: 512,
            is_write: false,
            latency_ns: None,
        });
    }
    let sizes = AdviceRequest { more_bytes: vec![16 * GIB as i64], ..AdviceRequest::default() };
    let advice = of_trace(trace, None, &sizes);
    let trace = advice.trace.unwrap();
    assert_eq!(trace.reads, 18_000);
    let served = trace.sizes[0].served_reads as f64 / (18_000.0 - 4096.0);
    assert!((0.85..1.15).contains(&served), "{served}");
    assert!(advice.notes.iter().any(|note| note.contains("one region in")), "{:?}", advice.notes);
}

#[test]
fn a_sample_of_the_regions_is_scaled() {
    let whole = on_flash(reading_again(), GIB);
    let mut half = reading_again();
    half.reads.retain(|read| read.sector % 200_000 == 0);
    half.shift = 1;
    let half = on_flash(half, GIB);
    let [whole, half] = [whole, half].map(|advice| advice.flash[0].sizes[0].clone());
    assert_eq!((whole.hits, whole.written_bytes), (half.hits, half.written_bytes));
    assert!(whole.spared.ns.abs_diff(half.spared.ns) < SECOND_NS);
}

proptest! {
    #[test]
    fn more_memory_never_keeps_less(
        classes in prop::collection::btree_map(1_u64..1 << 40, 0_u64..1 << 40, 0..20),
        sizes in (0_u64..1 << 41, 0_u64..1 << 41),
    ) {
        let (small, large) = (sizes.0.min(sizes.1), sizes.0.max(sizes.1));
        prop_assert!(kept(&classes, small) <= kept(&classes, large));
        prop_assert!(kept(&classes, large) <= classes.values().sum());
    }

    #[test]
    fn no_recording_makes_it_panic(
        numbers in prop::collection::vec(any::<u64>(), 11),
        page_bytes in 1_u64..=65_536,
        blocks in 0_usize..9,
    ) {
        let mut block = busy(1);
        block.length_ns = numbers[0];
        block.disk_ns = numbers[1];
        block.returns[0].seen_bytes = numbers[2];
        block.returns[0].waited_ns = numbers[3];
        block.returns[0].distances[0].insert(numbers[4], numbers[5]);
        block.waited_ns = numbers[6];
        block.returns[0].distances[1].insert(numbers[5], numbers[4]);
        block.returns[1] = KindReturns {
            seen_bytes: numbers[7],
            counted_bytes: Some(numbers[8]),
            waited_ns: numbers[9],
            distances: [[(numbers[10], numbers[7])].into(), [(u64::MAX, numbers[8])].into()],
            ..KindReturns::default()
        };
        let seen = Observation { page_bytes, ..hour(vec![block; blocks]) };
        let advice = asked(&seen, &[1, i64::MAX, i64::MIN, GIB as i64]);
        for gain in &advice.memory.sizes {
            if let Some(spared) = gain.spared {
                prop_assert!(spared.low_ns <= spared.ns && spared.ns <= spared.high_ns);
                prop_assert!(spared.high_ns <= advice.disk_ns);
            }
        }
    }
}

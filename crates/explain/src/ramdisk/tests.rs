//! Every verdict from data: what fires it, and what nearly does, those included that cannot be
//! made on a test machine.

use super::judge;
use model::Grade;
use model::histogram::Histogram;
use model::ramdisk::{
    Effect, GroupLimit, Pass, PassEnd, RamDiskObservation, RamDiskVerdict, Reason, Round,
    TriedRemedy,
};

const TOUCHES: u64 = 100_000;

/// A pass whose touches are `shares` of the usual kind: (ns, share of touches).
fn pass(round: Round, shares: &[(u64, f64)]) -> Pass {
    let mut touches = Histogram::new();
    let mut pass = Pass::begun(round);
    for (ns, share) in shares {
        for number in 0..(TOUCHES as f64 * share).round() as u64 {
            let ns = ns + ns * (number % 21) / 200;
            touches.add(ns);
            pass.touch_ns += ns;
        }
    }
    pass.describe(&touches);
    pass.bytes = pass.touches * 4096;
    pass.waited_ns = Some(0);
    pass.stolen_ns = Some(0);
    pass.left_memory_bytes = Some(0);
    pass.end = Some(PassEnd::Whole);
    for name in [
        "vmstat.pswpout",
        "vmstat.swpout_zero",
        "vmstat.pgscan_direct",
        "vmstat.pgscan_kswapd",
        "vmstat.compact_stall",
        "vmstat.thp_file_fallback",
        "vmstat.numa_miss",
        "vmstat.numa_other",
        "vmstat.thp_file_alloc",
        "group0.memory.failcnt",
        "group0.memory.events.oom_kill",
    ] {
        pass.grew.insert(name.to_owned(), 0);
    }
    pass
}

const QUICK: [(u64, f64); 1] = [(2_000, 1.0)];
/// Half as slow again as usual, all in a tail below the host's shapes.
const SLOW: [(u64, f64); 2] = [(2_000, 0.96), (60_000, 0.04)];

fn seen(first: Pass) -> RamDiskObservation {
    let passes = vec![first, pass(Round::Again, &QUICK), pass(Round::Rewrite, &[(1_200, 1.0)])];
    RamDiskObservation {
        place: "shared memory".to_owned(),
        asked_bytes: TOUCHES * 4096,
        page_bytes: 4096,
        passes,
        repeats: Vec::new(),
        limits: vec![GroupLimit {
            level: 0,
            path: "/app".to_owned(),
            limit_bytes: 1 << 30,
            used_bytes: Some(0),
        }],
        killed: false,
        is_guest: Some(true),
        swap_areas: vec![("/swapfile".to_owned(), 64 << 20)],
        notes: Vec::new(),
    }
}

/// Judged on a kernel that does not tell what left memory, with these counters grown in a first
/// pass of these touches.
fn with_old_kernel(shares: &[(u64, f64)], grown: &[(&str, u64)]) -> RamDiskVerdict {
    let mut first = pass(Round::First, shares);
    first.left_memory_bytes = None;
    let grown = grown.iter().map(|(name, by)| ((*name).to_owned(), *by));
    first.grew.extend(grown);
    judge(&seen(first))
}

/// Judged, with these counters grown in a first pass of these touches.
fn with(shares: &[(u64, f64)], grown: &[(&str, u64)]) -> RamDiskVerdict {
    let mut first = pass(Round::First, shares);
    let grown = grown.iter().map(|(name, by)| ((*name).to_owned(), *by));
    first.grew.extend(grown);
    judge(&seen(first))
}

#[track_caller]
fn is(judged: &RamDiskVerdict, verdict: Reason) {
    assert_eq!(judged.verdict, verdict, "{judged:#?}");
    assert_eq!(judged.findings[0].id, verdict.id());
    assert!(!judged.findings[0].evidence.is_empty());
}

#[test]
fn memory_that_was_there_is_reported_with_its_parts() {
    let judged = with(&QUICK, &[]);
    is(&judged, Reason::AlreadyBacked);
    assert_eq!(judged.grade, Grade::Measured);
    let cleared: Vec<Reason> = judged.excluded.iter().map(|one| one.reason).collect();
    for reason in [
        Reason::CpuContention,
        Reason::CpuStolen,
        Reason::GroupLimit,
        Reason::GuestSwap,
        Reason::DirectReclaim,
        Reason::Compaction,
        Reason::Numa,
        Reason::BackedLazily,
        Reason::HostOvercommitted,
    ] {
        assert!(cleared.contains(&reason), "{reason:?}: {judged:#?}");
    }
    assert!(judged.findings[0].claim.contains("for the copy"), "{judged:#?}");
}

#[test]
fn others_on_the_processor_are_subtracted_and_named_from_a_fifth_on() {
    let taken = |waited_share: f64, stolen_share: f64| {
        let mut first = pass(Round::First, &QUICK);
        let own = first.touch_ns as f64;
        let whole = own / (1.0 - waited_share - stolen_share);
        first.touch_ns = whole as u64;
        first.waited_ns = Some((whole * waited_share) as u64);
        first.stolen_ns = Some((whole * stolen_share) as u64);
        judge(&seen(first))
    };
    is(&taken(0.3, 0.0), Reason::CpuContention);
    is(&taken(0.1, 0.4), Reason::CpuStolen);
    is(&taken(0.19, 0.19), Reason::AlreadyBacked);
    assert!(taken(0.3, 0.0).findings[0].claim.contains("takes 2.1 us"));
}

#[test]
fn a_limit_of_a_group_counts_when_it_cost_time() {
    let grown = [("group0.memory.failcnt", 57_498), ("vmstat.pswpout", 67_464)];
    let judged = with(&SLOW, &grown);
    is(&judged, Reason::GroupLimit);
    assert!(judged.findings[0].claim.contains("1 GiB of the group /app 57,498 times"));
    assert!(judged.findings.iter().any(|finding| finding.id == "guest_swap"));
    assert!(judged.unseen.iter().any(|why| why.contains("host")));
    // Clean page cache of the group was dropped for it.
    let cheap = with(&QUICK, &[("group0.memory.failcnt", 33_386)]);
    is(&cheap, Reason::AlreadyBacked);
    assert!(cheap.findings[1].claim.contains("cost nothing"), "{cheap:#?}");
}

#[test]
fn a_process_killed_at_its_limit_is_reported_as_that() {
    let killed = |grown: &[(&str, u64)]| {
        let mut first = pass(Round::First, &QUICK);
        first.end = None;
        first.left_memory_bytes = None;
        first.grew.extend(grown.iter().map(|(name, by)| ((*name).to_owned(), *by)));
        let mut seen = seen(first);
        seen.passes.truncate(1);
        seen.killed = true;
        judge(&seen)
    };
    let judged = killed(&[("group0.memory.failcnt", 53), ("group0.memory.events.oom_kill", 1)]);
    is(&judged, Reason::GroupLimit);
    assert!(judged.findings[0].claim.starts_with("Killed at the limit of 1 GiB"));
    is(&killed(&[]), Reason::Unproven);
}

#[test]
fn swap_reclaim_and_compaction_count_from_a_hundredth_of_the_pages_on() {
    for (name, enough, reason) in [
        ("vmstat.pswpout", 1_000, Reason::GuestSwap),
        ("vmstat.swpout_zero", 1_000, Reason::GuestSwap),
        ("vmstat.pgscan_direct", 1_000, Reason::DirectReclaim),
        ("vmstat.compact_stall", 2, Reason::Compaction),
        ("vmstat.thp_file_fallback", 2, Reason::Compaction),
    ] {
        is(&with_old_kernel(&SLOW, &[(name, enough)]), reason);
        let near = with_old_kernel(&SLOW, &[(name, enough - 1)]);
        is(&near, Reason::Unproven);
        assert!(near.findings.iter().all(|finding| finding.id != reason.id()));
        is(&with(&QUICK, &[(name, enough)]), Reason::AlreadyBacked);
    }
    let named = with_old_kernel(&SLOW, &[("vmstat.pswpout", 5_000)]);
    assert!(named.findings[0].claim.contains("to /swapfile"), "{named:#?}");
}

/// Seen: another program swapped meanwhile, in a group of its own.
#[test]
fn swap_of_others_is_no_cause_if_the_whole_file_is_in_memory() {
    let swapped = [("vmstat.pswpout", 5_000)];
    let judged = with(&SLOW, &swapped);
    is(&judged, Reason::Unproven);
    assert!(judged.excluded.iter().any(|one| one.reason == Reason::GuestSwap));
    // They may have been pushed out for it.
    let pushed = with(&SLOW, &[swapped[0], ("vmstat.pgscan_direct", 5_000)]);
    is(&pushed, Reason::GuestSwap);
    let mut ours = pass(Round::First, &SLOW);
    ours.grew.insert("vmstat.pswpout".to_owned(), 5_000);
    ours.left_memory_bytes = Some(5_000 * 4096);
    is(&judge(&seen(ours)), Reason::GuestSwap);
}

#[test]
fn memory_freed_in_the_background_is_cheap() {
    let judged = with(&QUICK, &[("vmstat.pgscan_kswapd", 5_000)]);
    is(&judged, Reason::AlreadyBacked);
    assert!(judged.findings[1].claim.contains("in the background"), "{judged:#?}");
}

#[test]
fn pages_of_another_node_count_from_a_tenth_on() {
    is(&with(&SLOW, &[("vmstat.numa_other", 10_000)]), Reason::Numa);
    is(&with(&SLOW, &[("vmstat.numa_other", 9_999)]), Reason::Unproven);
}

#[test]
fn a_host_that_backs_late_shows_by_slow_touches_that_vanish() {
    let cold = [(2_000, 0.56), (12_000, 0.44)];
    let judged = with(&cold, &[]);
    is(&judged, Reason::BackedLazily);
    assert_eq!(judged.grade, Grade::Inferred);
    assert!(judged.tried[0].before_ns > judged.tried[0].after_ns * 2.0);
    // All of it cold: the median is slow itself.
    is(&with(&[(12_000, 1.0)], &[]), Reason::BackedLazily);
    // A few cold pages are no reason.
    is(&with(&[(2_000, 0.96), (12_000, 0.04)], &[]), Reason::AlreadyBacked);
    // It does not vanish.
    let mut stays = seen(pass(Round::First, &cold));
    stays.passes[1] = pass(Round::Again, &cold);
    is(&judge(&stays), Reason::Unproven);
    // Bare metal has no host.
    let mut bare = seen(pass(Round::First, &cold));
    bare.is_guest = Some(false);
    is(&judge(&bare), Reason::Unproven);
    // A counter that moved is believed first.
    is(&with(&cold, &[("vmstat.pgscan_direct", 44_000)]), Reason::DirectReclaim);
    // Without a second pass it cannot be told.
    let mut once = seen(pass(Round::First, &cold));
    once.passes.truncate(1);
    is(&judge(&once), Reason::Unproven);
}

/// Seen on a machine whose processors others had for most of the time.
#[test]
fn the_host_is_not_judged_where_others_had_the_processor_for_longer() {
    let cold = [(2_000, 0.56), (12_000, 0.44)];
    let crowded = |waited_ns| {
        let mut first = pass(Round::First, &cold);
        first.touch_ns += waited_ns;
        first.waited_ns = Some(waited_ns);
        judge(&seen(first))
    };
    is(&crowded(300_000_000), Reason::BackedLazily);
    let judged = crowded(900_000_000);
    is(&judged, Reason::CpuContention);
    assert_eq!(judged.findings.len(), 1, "{judged:#?}");
    assert!(judged.unseen.iter().any(|why| why.contains("blurs")));
}

#[test]
fn a_host_that_backs_by_huge_pages_is_late_and_no_disk() {
    let shares = [(2_000, 1.0 - 1.0 / 512.0), (700_000, 1.0 / 512.0)];
    is(&with(&shares, &[]), Reason::BackedLazily);
}

#[test]
fn a_host_that_swaps_is_as_slow_as_a_disk() {
    let swapped = [(2_000, 0.9), (5_000_000, 0.1)];
    is(&with(&swapped, &[]), Reason::HostOvercommitted);
    let mut always = seen(pass(Round::First, &swapped));
    always.passes[1] = pass(Round::Again, &swapped);
    is(&judge(&always), Reason::HostOvercommitted);
    // Slices of a processor that others had are as long, and fewer.
    let mut crowded = pass(Round::First, &[(2_000, 0.998), (5_000_000, 0.002)]);
    crowded.waited_ns = Some(crowded.touch_ns * 8 / 10);
    is(&judge(&seen(crowded)), Reason::CpuContention);
}

#[test]
fn the_larger_of_two_causes_comes_first() {
    let both = |waited: u64| {
        let mut first = pass(Round::First, &SLOW);
        first.grew.insert("vmstat.pswpout".to_owned(), 4_000);
        first.left_memory_bytes = Some(4_000 * 4096);
        first.touch_ns += waited;
        first.waited_ns = Some(waited);
        judge(&seen(first))
    };
    is(&both(200_000_000), Reason::GuestSwap);
    is(&both(900_000_000), Reason::CpuContention);
    assert_eq!(both(900_000_000).findings[1].id, "guest_swap");
}

#[test]
fn huge_pages_count_as_tried_only_where_they_were_granted() {
    let tried = |granted: u64| {
        let mut seen = seen(pass(Round::First, &QUICK));
        let mut huge = pass(Round::Huge, &[(500, 1.0)]);
        huge.grew.insert("vmstat.thp_file_alloc".to_owned(), granted);
        seen.passes.push(huge);
        judge(&seen).tried.len()
    };
    assert_eq!((tried(195), tried(10)), (2, 1));
}

/// What is said of each remedy when new memory took `new_ns` a page, and the repeats took these.
fn effects(new_ns: u64, base_ns: &[u64], huge_ns: &[u64]) -> Vec<(Effect, bool)> {
    let whole = |round, ns| {
        let mut pass = pass(round, &[(ns, 1.0)]);
        pass.grew.insert("vmstat.thp_file_alloc".to_owned(), 200);
        pass
    };
    let mut seen = seen(whole(Round::First, new_ns));
    seen.passes[1] = whole(Round::Again, base_ns[0]);
    seen.passes.push(whole(Round::Huge, huge_ns[0]));
    let repeats =
        |round, means: &[u64]| -> Vec<Pass> { means.iter().map(|ns| whole(round, *ns)).collect() };
    seen.repeats = repeats(Round::Again, base_ns);
    seen.repeats.extend(repeats(Round::Huge, huge_ns));
    let tried = judge(&seen).tried;
    let effect = |tried: &TriedRemedy| (tried.effect, tried.before_range.is_some());
    tried.iter().map(effect).collect()
}

#[test]
fn a_remedy_counts_only_outside_of_its_noise() {
    let calm = [3_000, 3_050, 2_950, 3_020, 2_990];
    // Seen: "it helps" of 5.84 against 6.72 us, when one run differed from the next by as much.
    let noisy = [5_840, 6_700, 5_500, 6_900, 6_100];
    let half: Vec<u64> = calm.iter().map(|ns| ns / 2).collect();
    let as_noisy = [6_600, 5_700, 6_300, 5_900, 6_800];
    let both = |effect| vec![(effect, true), (effect, true)];
    assert_eq!(effects(6_000, &calm, &half), both(Effect::Helps));
    assert_eq!(effects(6_720, &noisy, &as_noisy), both(Effect::Unproven));
    assert_eq!(effects(1_500, &half, &calm)[1], (Effect::Harms, true));
    // Proven, and too small to do anything for it.
    let little: Vec<u64> = calm.iter().map(|ns| ns - 200).collect();
    assert_eq!(effects(3_200, &calm, &little), both(Effect::Unproven));
    // One run of each says nothing of the noise.
    let once = effects(6_720, &[5_840], &[2_000]);
    assert_eq!(once, vec![(Effect::Unproven, false); 2]);
}

#[test]
fn counters_that_are_absent_are_named_and_nothing_written_is_unproven() {
    let mut first = pass(Round::First, &QUICK);
    first.grew.clear();
    (first.waited_ns, first.stolen_ns) = (None, None);
    let judged = judge(&seen(first));
    is(&judged, Reason::AlreadyBacked);
    assert_eq!(judged.unseen.len(), 6, "{:?}", judged.unseen);
    let nothing =
        judge(&RamDiskObservation { passes: Vec::new(), ..seen(pass(Round::First, &QUICK)) });
    is(&nothing, Reason::Unproven);
}

//! Rates that prove each limit, and such as nearly do; loops that answer the question of 2001, and
//! such as leave it open.

use super::*;
use model::estimate::Better;

/// A rate in GB/s whose interval is `percent` to each side.
fn gb(median: f64, percent: f64) -> Estimate {
    let step = median * percent / 400.0;
    let values: Vec<f64> = (-4..=4).map(|i| (median + f64::from(i) * step) * 1e9).collect();
    let mut estimate = Estimate::from_values(&values, Better::Higher, 0).unwrap();
    estimate.low = Some(median * (1.0 - percent / 100.0) * 1e9);
    estimate.high = Some(median * (1.0 + percent / 100.0) * 1e9);
    estimate
}

/// A method that fetches, in GB/s: cached, from memory, by two cores, streamed.
fn seen(cached: f64, memory: f64, both: f64, streamed: f64, percent: f64) -> MethodRates {
    MethodRates {
        method: "memcpy".to_owned(),
        cached: Some((64 << 10, gb(cached, percent))),
        block: Some((16 << 20, gb(memory, percent))),
        memory: Some((128 << 20, gb(memory, percent))),
        two_cores: Some(gb(both, percent)),
        fetches: true,
        streamed: Some(("avx2-nt".to_owned(), gb(streamed, percent))),
    }
}

fn of(seen: &MethodRates) -> Limit {
    let verdict = limit(seen);
    assert_eq!(verdict.evidence.len(), 5, "{verdict:?}");
    verdict.limit
}

#[test]
fn a_loop_that_memory_does_not_slow_is_the_processors() {
    assert_eq!(of(&seen(4.0, 3.9, 7.8, 29.0, 2.0)), Limit::Processor);
    // As near, but the error bars allow a fifth less.
    let unsure = seen(4.0, 3.9, 4.4, 29.0, 12.0);
    assert_eq!(of(&unsure), Limit::Unproven);
    // The sitting in the cache was slowed, and one of its trials shows it.
    let mut slowed = seen(16.0, 17.0, 17.5, 17.0, 2.0);
    slowed.cached.as_mut().unwrap().1.best = 27e9;
    assert_ne!(of(&slowed), Limit::Processor);
    // A tenth and more is lost.
    assert_ne!(of(&seen(4.0, 3.5, 7.0, 29.0, 1.0)), Limit::Processor);
}

/// A neighbour of memory leaves the original's size to tell; what memory itself says counts more.
#[test]
fn the_original_size_tells_where_memory_was_disturbed() {
    let mut disturbed = seen(4.0, 3.9, 7.8, 29.0, 2.0);
    disturbed.memory.as_mut().unwrap().1.low = None;
    let verdict = limit(&disturbed);
    assert_eq!(verdict.limit, Limit::Processor);
    assert!(verdict.because.contains("16 MiB"), "{verdict:?}");
    let slower =
        MethodRates { memory: Some((128 << 20, gb(3.4, 8.0))), two_cores: None, ..disturbed };
    assert_eq!(limit(&slower).limit, Limit::Unproven);
}

#[test]
fn sparing_the_fetch_gains_a_half() {
    let slow = seen(110.0, 20.0, 36.0, 29.0, 2.0);
    assert_eq!(of(&slow), Limit::WriteAllocate);
    assert!(limit(&slow).because.contains("1.45 times (1.39 to 1.51)"));
    // Three times as fast is another reason; as fast is none.
    assert_ne!(of(&seen(110.0, 10.0, 18.0, 30.0, 2.0)), Limit::WriteAllocate);
    assert_ne!(of(&seen(110.0, 20.0, 36.0, 20.5, 2.0)), Limit::WriteAllocate);
    // Twice as far apart, but the error bars meet.
    assert_eq!(of(&seen(110.0, 20.0, 24.0, 29.0, 20.0)), Limit::Unproven);
    let streams = MethodRates { fetches: false, ..slow };
    assert_eq!(of(&streams), Limit::OneCore);
}

#[test]
fn a_second_core_tells_the_bus_from_the_core() {
    assert_eq!(of(&seen(110.0, 29.0, 29.5, 29.0, 2.0)), Limit::Bus);
    assert_eq!(of(&seen(110.0, 29.0, 42.0, 29.0, 2.0)), Limit::OneCore);
    // A little slower than in the cache: it hardly waits for memory at all.
    assert_ne!(of(&seen(30.0, 29.0, 58.0, 29.0, 2.0)), Limit::OneCore);
    // Two cores were slowed, and one of their trials shows it.
    let mut slowed = seen(110.0, 29.0, 20.0, 29.0, 2.0);
    slowed.two_cores.as_mut().unwrap().best = 40e9;
    assert_eq!(of(&slowed), Limit::Unproven);
    // Between the two: 10 % more is neither.
    assert_eq!(of(&seen(110.0, 29.0, 32.2, 29.0, 2.0)), Limit::Unproven);
}

#[test]
fn what_was_not_measured_proves_nothing() {
    let whole = seen(110.0, 29.0, 42.0, 29.0, 2.0);
    let alone = MethodRates { two_cores: None, ..whole.clone() };
    let verdict = limit(&alone);
    assert_eq!(verdict.limit, Limit::Unproven);
    assert!(verdict.because.contains("no second core"), "{verdict:?}");
    let mut few = whole;
    few.cached.as_mut().unwrap().1.low = None;
    assert_eq!(limit(&few).limit, Limit::Unproven);
    assert_eq!(limit(&MethodRates::default()).limit, Limit::Unproven);
}

#[test]
fn a_ratio_is_proven_where_the_error_bars_allow_no_one() {
    let ratio = |of, over, percent| Ratio::of(&gb(of, percent), &gb(over, percent)).unwrap();
    assert!(ratio(29.0, 20.0, 2.0).is_proven());
    assert!(ratio(20.0, 29.0, 2.0).is_proven());
    assert!(!ratio(20.5, 20.0, 2.0).is_proven());
    let mut few = gb(1.0, 1.0);
    few.low = None;
    assert_eq!(Ratio::of(&few, &gb(1.0, 1.0)), None);
}

fn pair(times: f64, percent: f64) -> Pair {
    Pair {
        method: "char".to_owned(),
        string_over_loop: Ratio::of(&gb(times, percent), &gb(1.0, percent)),
        compiled_over_loop: None,
    }
}

fn systems() -> [System; 2] {
    let of = |name: &str, rates: &[f64]| System { name: name.to_owned(), rates: rates.to_vec() };
    [of("Linux", &[173.6, 169.7, 170.0, 170.1]), of("Windows", &[132.1, 93.5, 102.5, 123.5])]
}

#[test]
fn a_compiler_suffices_where_it_makes_as_much_as_lay_between() {
    let said = |pairs: &[Pair]| answer(pairs, &systems());
    let more = said(&[pair(1.2, 1.0), pair(5.0, 2.0)]);
    assert_eq!(more.compiler_suffices, Some(true));
    assert!(more.now.contains("5 times (4.8 to 5.2)") && more.now.contains("1.81"));
    // Proven, but less than lay between: as it nearly is, it is open.
    assert_eq!(said(&[pair(1.3, 2.0)]).compiler_suffices, Some(false));
    assert_eq!(said(&[pair(1.8, 2.0)]).compiler_suffices, None);
    assert_eq!(said(&[pair(1.01, 2.0)]).compiler_suffices, Some(false));
    assert_eq!(said(&[]).compiler_suffices, None);
    assert!(
        more.then.contains("On Linux the loops of 1 to 8 bytes ran within 0.24 %"),
        "{}",
        more.then
    );
    assert!(more.then.contains("On Windows they were 1.32 times apart"), "{}", more.then);
}

#[test]
fn the_reach_is_where_small_pages_begin_to_cost() {
    let row = |mib: u64, small: f64, huge: f64| (mib << 20, gb(small, 1.0), gb(huge, 1.0));
    let rows = [row(1, 4.0, 4.0), row(4, 13.0, 12.0), row(16, 25.0, 17.0), row(64, 160.0, 140.0)];
    assert_eq!(reach(&rows), Some(16 << 20));
    assert_eq!(reach(&rows[..2]), None);
    // Where it costs nothing again at the end, it was something else.
    let late = [rows[2].clone(), row(64, 140.0, 140.0)];
    assert_eq!(reach(&late), None);
}

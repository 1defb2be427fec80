//! The cache in simulation: no byte is ever wrong, whatever its medium does and whenever the power
//! is cut; and each safety rule is needed: without it the same simulation finds wrong bytes.
//!
//! A share of what `cargo xtask bench boost --part simulation` runs. A seed that fails repeats.

mod scenario;
mod world;

use cache::Rules;
use scenario::Seen;

/// Seeds with faults.
const SEEDS: u64 = 150;

/// Seeds within which each broken rule is found.
const SEARCHED: u64 = 2000;

/// Scenarios that are cut at every write and flush.
const SCENARIOS: u64 = 1;

/// Scenarios whose second start is cut.
const SCENARIOS_AGAIN: u64 = 4;

#[test]
fn no_byte_is_wrong_whatever_the_medium_does() {
    let mut seen = Seen::default();
    for seed in 0..SEEDS {
        seen.add(scenario::faults(seed, Rules::KEPT).unwrap());
    }
    println!("{seen:?}");
    let Seen { hits, filled, moved, evicted, raced, wrong, warm_frames, colds, .. } = seen;
    for (what, count) in [
        ("hits", hits),
        ("filled", filled),
        ("moved", moved),
        ("evicted", evicted),
        ("raced", raced),
        ("wrong", wrong),
        ("warm frames", warm_frames),
        ("cold starts", colds),
    ] {
        assert!(count > 10, "the seeds never tried what gives {what}: {seen:?}");
    }
}

#[test]
fn no_byte_is_wrong_after_a_cut_at_any_write() {
    let mut seen = Seen::default();
    for seed in 0..SCENARIOS {
        for at in 1..=scenario::count(seed, Rules::KEPT).unwrap() {
            seen.add(scenario::cut(seed, at, Rules::KEPT).unwrap());
        }
    }
    println!("{seen:?}");
    assert!(seen.cuts > 50 && seen.warm_frames > 100 && seen.hits > 100, "{seen:?}");
}

#[test]
fn no_byte_is_wrong_after_a_cut_of_a_second_start() {
    let mut seen = Seen::default();
    for seed in 0..SCENARIOS_AGAIN {
        for at in 1..=30 {
            seen.add(scenario::cut_again(seed, at).unwrap());
        }
    }
    println!("{seen:?}");
    assert!(seen.colds > 30 && seen.warm_frames > 100, "{seen:?}");
}

#[test]
fn each_broken_rule_is_found() {
    for (name, rules) in Rules::BROKEN {
        let found = scenario::find(rules, SEARCHED);
        println!("{name}: {found:?}");
        assert!(found.is_some(), "{name} was not found");
    }
}

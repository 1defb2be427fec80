//! The curve of hits over sizes, by two ways that know nothing of each other, and what each policy
//! is there for.

#![allow(clippy::unwrap_used, reason = "a curve without requests must fail the test")]

use std::num::NonZeroU32;

use policy::simulate::{HitCounts, Sweep};
use policy::{EvictionPolicy, Shards};
use proptest::prelude::*;
use testkit::ZipfKeys;

fn slots(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

fn counts(policy: EvictionPolicy, size: u32, keys: &[u64]) -> HitCounts {
    let mut sweep = Sweep::new(&[policy], &[slots(size)]);
    sweep.requests(keys);
    sweep.points()[0].counts
}

proptest! {
    #[test]
    fn stack_distances_and_simulation_agree_on_lru(keys in prop::collection::vec(0_u64..60, 1..600)) {
        let mut shards = Shards::new(60);
        keys.iter().for_each(|&key| shards.request(key));
        for size in [1, 2, 3, 7, 20, 59, 60, 61] {
            let hits = shards.hit_ratio(u64::from(size)).unwrap() * keys.len() as f64;
            prop_assert_eq!(hits.round() as u64, counts(EvictionPolicy::Lru, size, &keys).hits);
        }
    }
}

#[test]
fn a_scan_passes_through_what_resists_it() {
    // A set of 80 blocks that is read again and again, with long scans between.
    let mut keys = Vec::new();
    for round in 0..200_u64 {
        keys.extend(0..80);
        keys.extend(0..80);
        keys.extend((0..60).map(|at| 1_000_000 + round * 60 + at));
    }
    let hits = |policy| counts(policy, 100, &keys).hits;
    let lru = hits(EvictionPolicy::Lru);
    assert_eq!(lru, 200 * 80, "only the second reading of a round");
    for policy in [EvictionPolicy::S3Fifo, EvictionPolicy::Arc, EvictionPolicy::WTinyLfu] {
        assert!(hits(policy) as f64 > 1.7 * lru as f64, "{}: {}", policy.name(), hits(policy));
    }
}

#[test]
fn skewed_requests_rank_the_policies_as_the_papers_do() {
    let mut zipf = ZipfKeys::new(20_000, 0.9, 5);
    let keys: Vec<u64> = (0..400_000).map(|_| zipf.next_key()).collect();
    let ratio = |policy| counts(policy, 1000, &keys).hit_ratio().unwrap();
    let [fifo, lru, sieve, s3, arc, tiny] = EvictionPolicy::ALL.map(ratio);
    assert!(fifo < lru && lru < arc && arc < sieve && arc < s3 && lru + 0.03 < tiny);
    // No order of 1,000 slots can hit more than the 1,000 most popular keys.
    let shares = |count: i32| (1..=count).map(|rank| f64::from(rank).powf(-0.9)).sum::<f64>();
    let most = shares(1000) / shares(20_000);
    assert!([sieve, s3, tiny].iter().all(|&ratio| ratio < most && ratio > most - 0.08));
}

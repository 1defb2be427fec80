//! Simulates caches over generated requests, for `cargo xtask bench advise`.
//!
//! - `simulate rate KEYS REQUESTS SLOTS`: requests a second of each policy, one line each.
//! - `simulate shards KEYS REQUESTS SKEW`: the mean error of the sampled curve at 64 sizes, the
//!   bytes of the sample, and the share of keys that it followed.

use std::error::Error;
use std::io::Write;
use std::num::NonZeroU32;
use std::time::Instant;

use policy::simulate::Sweep;
use policy::{EvictionPolicy, Shards};
use testkit::ZipfKeys;

/// The skew of the requests whose rate is measured: that of block traces is 0.7 to 1.2.
const SKEW: f64 = 1.0;

/// Requests that a sweep is given at a time.
const PART: usize = 4096;

/// Sizes at which the curves are compared.
const SIZES: u64 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let typed: Vec<String> = std::env::args().skip(1).collect();
    match typed.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["rate", keys, requests, slots] => rate(keys.parse()?, requests.parse()?, slots.parse()?),
        ["shards", keys, requests, skew] => shards(keys.parse()?, requests.parse()?, skew.parse()?),
        _ => Err("rate KEYS REQUESTS SLOTS or shards KEYS REQUESTS SKEW".into()),
    }
}

fn rate(keys: usize, requests: usize, slots: NonZeroU32) -> Result<(), Box<dyn Error>> {
    let mut zipf = ZipfKeys::new(keys, SKEW, 1);
    let all: Vec<u64> = (0..requests).map(|_| zipf.next_key()).collect();
    for policy in EvictionPolicy::ALL {
        let mut sweep = Sweep::new(&[policy], &[slots]);
        let started = Instant::now();
        all.chunks(PART).for_each(|part| sweep.requests(part));
        let seconds = started.elapsed().as_secs_f64();
        writeln!(std::io::stdout(), "{} {:.0}", policy.name(), requests as f64 / seconds)?;
    }
    Ok(())
}

fn shards(keys: usize, requests: usize, skew: f64) -> Result<(), Box<dyn Error>> {
    let mut zipf = ZipfKeys::new(keys, skew, 1);
    let mut sampled = Shards::default();
    let mut exact = Shards::new(keys as u32);
    for _ in 0..requests {
        let key = zipf.next_key();
        sampled.request(key);
        exact.request(key);
    }
    let error = |step: u64| {
        let slots = keys as u64 * step / SIZES;
        let ratios = [&sampled, &exact].map(|curve| curve.hit_ratio(slots).unwrap_or(0.0));
        (ratios[0] - ratios[1]).abs()
    };
    let mean = (1..=SIZES).map(error).sum::<f64>() / SIZES as f64;
    writeln!(std::io::stdout(), "{mean} {} {}", sampled.bytes().0, sampled.rate())?;
    Ok(())
}

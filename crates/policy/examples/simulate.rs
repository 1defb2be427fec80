//! Simulates caches over generated requests, for `cargo xtask bench advise`.
//!
//! - `simulate rate KEYS REQUESTS SLOTS`: requests a second of each policy, one line each.
//! - `simulate make KEYS REQUESTS SKEW FILE`: such requests, with a scan and a loop now and then,
//!   as an oracleGeneral file.
//! - `simulate misses FILE SLOTS...`: a line for each policy and number of slots: the policy, the
//!   slots, requests and misses.
//! - `simulate file FILE POLICY SLOTS`: requests a second from the file, as a peer reads it.
//! - `simulate iolog FILE SLOTS...`: the lines of `misses`, for the blocks of 4 KiB that
//!   `fio --write_iolog` wrote down.
//! - `simulate shards KEYS REQUESTS SKEW`: the mean error of the sampled curve at 64 sizes, the
//!   bytes of the sample, and the share of keys that it followed.

use std::error::Error;
use std::io::Write;
use std::num::NonZeroU32;
use std::time::Instant;

use policy::simulate::Sweep;
use policy::trace::{TraceForm, TraceReader, TraceRequest, encode_oracle_general};
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
        ["make", keys, requests, skew, path] => {
            make(keys.parse()?, requests.parse()?, skew.parse()?, path)
        }
        ["misses", path, ref sizes @ ..] => misses(&keys_of(path)?, sizes),
        ["iolog", path, ref sizes @ ..] => misses(&blocks_of(path)?, sizes),
        ["file", path, policy, slots] => file_rate(path, policy, slots.parse()?),
        _ => {
            Err("rate, make, misses, iolog, file or shards; the file's head has their words".into())
        }
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

/// Between scans and loops so many requests are skewed.
const SKEWED: usize = 5000;

/// Blocks of a scan and of a loop; neither is met again by chance.
const SEQUENTIAL: usize = 1000;

fn make(keys: usize, requests: usize, skew: f64, path: &str) -> Result<(), Box<dyn Error>> {
    let mut zipf = ZipfKeys::new(keys, skew, 1);
    let mut all = Vec::with_capacity(requests);
    while all.len() < requests {
        let round = (all.len() / SKEWED) as u64;
        all.extend((0..SKEWED).map(|_| zipf.next_key()));
        let scanned = 1 << 40 | round << 20;
        all.extend((0..SEQUENTIAL as u64).map(|block| scanned + block));
        all.extend((0..SEQUENTIAL as u64 / 2).cycle().take(SEQUENTIAL));
    }
    all.truncate(requests);
    let timed: Vec<(u32, u64)> =
        all.into_iter().enumerate().map(|(at, key)| ((at / 1000) as u32, key)).collect();
    Ok(std::fs::write(path, encode_oracle_general(&timed, 4096))?)
}

fn keys_of(path: &str) -> Result<Vec<u64>, Box<dyn Error>> {
    let mut requests = Vec::new();
    let mut reader = TraceReader::new(TraceForm::OracleGeneral, 4096);
    reader.read(&std::fs::read(path)?, &mut requests)?;
    reader.finish(&mut requests)?;
    Ok(requests.iter().map(|request| request.first_key).collect())
}

/// Every block that is read, once for each request for it.
fn blocks_of(path: &str) -> Result<Vec<u64>, Box<dyn Error>> {
    let mut requests = Vec::new();
    let mut reader = TraceReader::new(TraceForm::Iolog, 4096);
    reader.read(&std::fs::read(path)?, &mut requests)?;
    reader.finish(&mut requests)?;
    Ok(requests.iter().flat_map(TraceRequest::keys).collect())
}

fn misses(keys: &[u64], sizes: &[&str]) -> Result<(), Box<dyn Error>> {
    let sizes = sizes.iter().map(|size| size.parse()).collect::<Result<Vec<NonZeroU32>, _>>()?;
    let mut sweep = Sweep::new(&EvictionPolicy::ALL, &sizes);
    keys.chunks(PART).for_each(|part| sweep.requests(part));
    for point in sweep.points() {
        let (policy, slots, counts) = (point.policy.name(), point.slots, point.counts);
        let line = format!("{policy} {slots} {} {}", counts.requests, counts.misses());
        writeln!(std::io::stdout(), "{line}")?;
    }
    Ok(())
}

fn file_rate(path: &str, policy: &str, slots: NonZeroU32) -> Result<(), Box<dyn Error>> {
    let named = EvictionPolicy::ALL.into_iter().find(|known| known.name() == policy);
    let mut sweep = Sweep::new(&[named.ok_or("no such policy")?], &[slots]);
    let started = Instant::now();
    let keys = keys_of(path)?;
    keys.chunks(PART).for_each(|part| sweep.requests(part));
    let rate = keys.len() as f64 / started.elapsed().as_secs_f64();
    writeln!(std::io::stdout(), "{rate:.0}")?;
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

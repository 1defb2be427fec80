//! The simulation of the cache, for `cargo xtask bench boost --part simulation`: prints figures,
//! or the seed that gave a wrong byte.
//!
//! `faults COUNT`: seeds with every kind of fault. `cuts COUNT`: scenarios, each cut at every write
//! and flush. `broken COUNT`: each safety rule left out, until a wrong byte is found.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use cache::Rules;

use scenario::Seen;

#[path = "../tests/simulation/scenario.rs"]
mod scenario;
#[path = "../tests/simulation/world.rs"]
mod world;

/// Runs `each` for the numbers below `count` on all processors; the sum, or the first failure.
fn all(count: u64, each: impl Fn(u64) -> Result<Seen, String> + Sync) -> Result<Seen, String> {
    let next = AtomicU64::new(0);
    let sum = Mutex::new(Ok(Seen::default()));
    let worker = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let result = each(number);
            let mut sum = sum.lock().expect("no worker panics with it");
            match (&mut *sum, result) {
                (Ok(sum), Ok(seen)) => sum.add(seen),
                (Ok(_), Err(text)) => {
                    *sum = Err(text);
                    return;
                }
                (Err(_), _) => return,
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(worker))));
    sum.into_inner().expect("no worker panics with it")
}

fn cuts(scenario: u64) -> Result<Seen, String> {
    let mut seen = Seen::default();
    for at in 1..=scenario::count(scenario, Rules::KEPT)? {
        seen.add(scenario::cut(scenario, at, Rules::KEPT)?);
    }
    for at in 1..=30 {
        seen.add(scenario::cut_again(scenario, at)?);
    }
    Ok(seen)
}

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let count = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(100);
    let mut out = std::io::stdout().lock();
    let started = Instant::now();
    let result = match words.first().map(String::as_str) {
        Some("faults") => all(count, |seed| scenario::faults(seed, Rules::KEPT)),
        Some("cuts") => all(count, cuts),
        Some("broken") => {
            for (name, rules) in Rules::BROKEN {
                let begun = Instant::now();
                let is_found = scenario::find(rules, count).is_some();
                writeln!(out, "{} {} {name}", u8::from(is_found), begun.elapsed().as_secs_f64())?;
            }
            return Ok(());
        }
        _ => Err("faults, cuts or broken".to_owned()),
    };
    let taken_s = started.elapsed().as_secs_f64();
    match result {
        Ok(Seen { cuts, hits, warm_frames, .. }) => {
            writeln!(out, "0 {taken_s} {cuts} {hits} {warm_frames}")
        }
        Err(text) => writeln!(out, "1 {taken_s} {text}"),
    }
}

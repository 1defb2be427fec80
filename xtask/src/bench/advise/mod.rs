//! The policies and curves that advice is computed with: how fast they are and how right.
//!
//! - `policies`: requests a second on one core, of skewed requests for 1,000,000 blocks.
//! - `shards`: the curve of an LRU cache from a sample against the exact one.
//! - `misses`: misses and requests a second against libCacheSim, if `--cachesim` gives its program,
//!   on a trace that is made, and on one in the oracleGeneral form that `--trace` gives.
//! - `memory`: what more memory would keep, from a recording of a guest, against larger guests.
//! - `cost`: the recorder while 20,000 pages a second come and go; `hits`: beside cached reads.
//! - `flash`: a simulated LRU cache on a stick, against bcache in a guest.
//! - `qualify`: `boost qualify` against fio, and its verdicts on sticks that are drawn.
//!
//! The example `simulate` of the crate `policy`, in release mode, runs the first three and `flash`.

use std::time::Duration;

pub(crate) mod cost;
mod flash;
mod guest;
mod hits;
mod memory;
mod misses;
mod qualify;

use super::peer::Peer;
use super::record::{Series, Target};
use super::report::malformed;
use super::turns;
use super::{Measure, Session};
use crate::error::Error;
use crate::{process, workspace};

/// The parts, in their order.
pub(super) const PARTS: &[(&str, Measure)] = &[
    ("policies", policies),
    ("shards", shards),
    ("misses", misses::misses),
    ("memory", memory::measure),
    ("cost", cost::measure),
    ("hits", hits::measure),
    ("flash", flash::measure),
    ("qualify", qualify::measure),
];

/// Blocks, requests, and slots of the caches: a tenth of the blocks.
const RATE: [&str; 4] = ["rate", "1000000", "10000000", "100000"];

/// Policies whose hits move nothing.
const FIFO_FAMILY: [&str; 3] = ["FIFO", "SIEVE", "S3-FIFO"];

/// Skews of requests: from nearly even to a few blocks that have most.
const SKEWS: [&str; 4] = ["0.6", "0.8", "1.0", "1.2"];

/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(240);

/// The program, built in release mode.
fn simulate(session: &mut Session) -> Result<Peer, Error> {
    let mut build = workspace::cargo(&session.root);
    build.args(["build", "--release", "--locked", "--quiet", "-p", "policy"]);
    build.args(["--example", "simulate"]).arg("--target-dir").arg(&session.target);
    process::run(build, Duration::from_secs(600))?.success()?;
    let peer = Peer {
        name: "simulate".to_owned(),
        program: session.target.join("release/examples/simulate"),
        version: None,
        environment: Vec::new(),
    };
    session.record.program(peer.clone());
    Ok(peer)
}

/// The numbers of a line, after its first word if that is a name.
fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn policies(session: &mut Session) -> Result<(), Error> {
    let program = simulate(session)?;
    session.record.command(program.command_line(&RATE));
    let mut names = Vec::new();
    let turn = || {
        let printed = program.run(&RATE, LIMIT)?.stdout;
        let named = printed.lines().filter_map(|line| line.split_once(' '));
        let (all, rates): (Vec<_>, Vec<_>) = named.unzip();
        names = all.into_iter().map(str::to_owned).collect::<Vec<String>>();
        Ok(rates.into_iter().flat_map(numbers).collect())
    };
    let rounds = session.request.alternations;
    let all = turns::rotate("policies", rounds, &mut [Box::new(turn)])?;
    for (name, rates) in names.iter().zip(&all[0]) {
        let target = FIFO_FAMILY.contains(&name.as_str()).then_some(Target::AtLeast(10e6));
        let series = Series::new(name, rates);
        session.record.add_alone(&format!("{name}, skewed requests"), "/s", series, target)?;
    }
    Ok(())
}

fn shards(session: &mut Session) -> Result<(), Error> {
    let program = simulate(session)?;
    for skew in SKEWS {
        let words = ["shards", "1000000", "3000000", skew];
        session.record.command(program.command_line(&words));
        let printed = program.run(&words, LIMIT)?.stdout;
        let [error, bytes, rate] = numbers(&printed)[..] else {
            return Err(malformed(format!("shards: three numbers expected, not {printed:?}")));
        };
        let rows = [
            ("mean error of the hit ratio", "", error, Some(Target::AtMost(0.01))),
            ("state", "B", bytes, Some(Target::AtMost(f64::from(2 << 20)))),
            ("share of blocks that was followed", "", rate, None),
        ];
        for (what, unit, value, target) in rows {
            let series = Series::new("sample", &[value]);
            let what = format!("SHARDS, skew {skew}: {what}");
            session.record.add_alone(&what, unit, series, target)?;
        }
    }
    Ok(())
}

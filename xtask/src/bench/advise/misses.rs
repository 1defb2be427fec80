//! Misses of each policy at eight sizes, and requests a second, against libCacheSim's `cachesim`.
//!
//! The peer prints miss ratios of four digits, so the first 10,000 requests of a trace are compared
//! to the request and the whole of it to the digit. FIFO, LRU and SIEVE have one definition and
//! must be equal; the others may differ by half a point.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::bench::peer::{Peer, Version};
use crate::bench::record::{Series, Target};
use crate::bench::report::malformed;
use crate::bench::{Session, turns};
use crate::error::Error;
use crate::process;

use super::{LIMIT, numbers, simulate};

/// Slots of the caches.
const SIZES: [&str; 8] = ["100", "200", "500", "1000", "2000", "5000", "10000", "20000"];

/// Requests whose miss ratio the peer prints without rounding.
const EXACT: u64 = 10_000;

/// Keys, requests and skew of the made trace.
const MADE: [&str; 3] = ["50000", "2000000", "0.8"];

/// Slots of the caches whose speed is compared.
const RATE_SLOTS: &str = "20000";

/// Our policies, the peer's word for each, and the points of a hundred by which the miss ratios may
/// differ.
const PAIRS: [(&str, &str, f64); 6] = [
    ("FIFO", "fifo", 0.0),
    ("LRU", "lru", 0.0),
    ("SIEVE", "sieve", 0.0),
    ("S3-FIFO", "s3fifo", 0.5),
    ("ARC", "arc", 0.5),
    ("W-TinyLFU", "wtinylfu", 0.5),
];

const OTHER_TINY_LFU: &str = "cachesim's W-TinyLFU counts the candidate again at each eviction and \
    evicts until one loses, several slots for one miss; ours is the paper's";

/// Miss ratios by policy and slots, in ten-thousandths.
type Ratios = BTreeMap<(String, u64), f64>;

pub(super) fn misses(session: &mut Session) -> Result<(), Error> {
    let program = simulate(session)?;
    let peer = Peer::find_if_any(&session.request, "cachesim", Version::Unsaid)?;
    let Some(peer) = peer else {
        session.record.note("misses: cachesim of libCacheSim is not here".to_owned());
        return Ok(());
    };
    session.record.program(peer.clone());
    session.record.note(OTHER_TINY_LFU.to_owned());
    let made = absolute(session.directory.path())? + "/made.oracleGeneral";
    program.run(&[&["make"], &MADE[..], &[&made]].concat(), LIMIT)?;
    session.record.command(program.command_line(&[&["make"], &MADE[..], &["made"]].concat()));
    let mut traces = vec![made.clone()];
    if let Some(given) = &session.request.trace {
        traces.push(absolute(given)?);
    }
    for path in traces {
        let name = Path::new(&path).file_stem().map_or_else(String::new, |stem| {
            stem.to_string_lossy().split('.').next().unwrap_or_default().to_owned()
        });
        for exact in [true, false] {
            compare(session, (&program, &peer), (&name, &path), exact)?;
        }
    }
    speed(session, (&program, &peer), &made)
}

/// The largest differences of all policies on one trace, or on its first requests.
fn compare(
    session: &mut Session,
    (program, peer): (&Peer, &Peer),
    (name, path): (&str, &str),
    exact: bool,
) -> Result<(), Error> {
    let whole = std::fs::read(path).map_err(Error::io("read", Path::new(path)))?;
    let cut = absolute(session.directory.path())? + "/cut.oracleGeneral";
    let bytes = if exact { whole.len().min(EXACT as usize * 24) } else { whole.len() };
    std::fs::write(&cut, &whole[..bytes]).map_err(Error::io("write", Path::new(&cut)))?;
    let printed = program.run(&[&["misses", cut.as_str()], &SIZES[..]].concat(), LIMIT)?.stdout;
    let ours = our_ratios(&printed);
    let theirs = peer_ratios(session, peer, &cut)?;
    let requests = bytes / 24;
    for (policy, _, points_max) in PAIRS {
        let differences: Vec<f64> = SIZES
            .iter()
            .filter_map(|size| {
                let key = (policy.to_owned(), size.parse().ok()?);
                Some((ours.get(&key)? - theirs.get(&key)?).abs() / 100.0)
            })
            .collect();
        if differences.len() != SIZES.len() {
            return Err(malformed(format!("{policy}: a size is missing")));
        }
        let series = Series::new("difference", &[differences.into_iter().fold(0.0, f64::max)]);
        let what = format!("{policy}, {requests} requests of {name}: misses, 8 sizes");
        session.record.add_alone(&what, "points", series, Some(Target::AtMost(points_max)))?;
    }
    Ok(())
}

fn our_ratios(printed: &str) -> Ratios {
    let point = |line: &str| {
        let policy = line.split_whitespace().next()?.to_owned();
        let [slots, requests, misses] = numbers(line)[..] else {
            return None;
        };
        Some(((policy, slots as u64), (misses / requests * 10_000.0).round()))
    };
    printed.lines().filter_map(point).collect()
}

fn peer_ratios(session: &mut Session, peer: &Peer, path: &str) -> Result<Ratios, Error> {
    let sizes = SIZES.join(",");
    let mut ratios = Ratios::new();
    for (policy, word, _) in PAIRS {
        let line = [path, "oracleGeneral", word, &sizes];
        let options = ["--ignore-obj-size", "1", "--num-thread", "1"];
        let printed = peer_prints(session, peer, &[&line[..], &options].concat())?;
        session.record.command(peer.command_line(&[&["TRACE"], &line[1..], &options].concat()));
        for found in printed.lines() {
            let slots = word_after(found, "cache size").and_then(|word| word.parse().ok());
            let ratio = word_after(found, "miss ratio").and_then(|word| word.parse::<f64>().ok());
            if let (Some(slots), Some(ratio)) = (slots, ratio) {
                ratios.insert((policy.to_owned(), slots), (ratio * 10_000.0).round());
            }
        }
    }
    Ok(ratios)
}

/// The path from the root, as the peer runs in another directory.
fn absolute(path: &Path) -> Result<String, Error> {
    let whole = path.canonicalize().map_err(Error::io("find", path))?;
    Ok(whole.display().to_string())
}

/// What the peer prints, run where it may leave files: it makes some whatever its options say.
fn peer_prints(session: &Session, peer: &Peer, words: &[&str]) -> Result<String, Error> {
    let mut command = Command::new(&peer.program);
    command.args(words).current_dir(session.directory.path());
    Ok(process::run(command, LIMIT)?.success()?.stdout)
}

/// The word after a phrase, without a comma.
fn word_after<'t>(line: &'t str, phrase: &str) -> Option<&'t str> {
    let after = line.split_once(phrase)?.1.split_whitespace().next()?;
    Some(after.trim_end_matches(','))
}

/// Requests a second of both, each reading the same file.
fn speed(session: &mut Session, (program, peer): (&Peer, &Peer), path: &str) -> Result<(), Error> {
    for (policy, word, _) in PAIRS {
        let ours = ["file", path, policy, RATE_SLOTS];
        let theirs = [
            path,
            "oracleGeneral",
            word,
            RATE_SLOTS,
            "--ignore-obj-size",
            "1",
            "--num-thread",
            "1",
        ];
        let our_turn = || Ok(numbers(&program.run(&ours, LIMIT)?.stdout));
        let their_turn = || {
            let printed = peer_prints(session, peer, &theirs)?;
            let rate = word_after(&printed, "throughput").and_then(|word| word.parse::<f64>().ok());
            let millions = rate.ok_or_else(|| malformed("cachesim: no throughput".to_owned()))?;
            Ok(vec![millions * 1e6])
        };
        let mut programs: [turns::Turn<'_>; 2] = [Box::new(our_turn), Box::new(their_turn)];
        let all = turns::rotate(policy, session.request.alternations, &mut programs)?;
        drop(programs);
        let pair = (Series::new("terrace", &all[0][0]), Series::new("cachesim", &all[1][0]));
        let what = format!("{policy}: requests a second");
        session.record.add_against(&what, "/s", pair, Some(Target::AtLeast(1.0)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_outputs_are_read() {
        let ours = our_ratios("S3-FIFO 100 10000 8801\nLRU 200 3 1\n");
        assert_eq!(ours[&("S3-FIFO".to_owned(), 100)], 8801.0);
        assert_eq!(ours[&("LRU".to_owned(), 200)], 3333.0);
        let line =
            "result/a LRU cache size      100, 113872 req, miss ratio 0.8801, throughput 1.5 MQPS";
        assert_eq!(word_after(line, "cache size"), Some("100"));
        assert_eq!(word_after(line, "miss ratio"), Some("0.8801"));
        assert_eq!(word_after(line, "throughput"), Some("1.5"));
        assert_eq!(word_after(line, "no such"), None);
    }
}

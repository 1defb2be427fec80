//! Copies of 16 MiB, 256 MiB and 1 GiB against mbw, STREAM and tinymembench.
//!
//! 1. A pilot runs every method once and picks the fastest few: with all of them in each round most
//!    of the time would go to loops of 2001.
//! 2. In each round every program has its turn; the best median of ours stands against the best of
//!    theirs in the same round.
//! 3. Terrace chooses the pages of its arrays too (huge ones); what it reaches on the 4 KiB pages
//!    that the peers have is a row of its own.
//! 4. What Terrace's best makes of the C library's memcpy comes from Terrace's own interleaved
//!    trials.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::{mbw, stream, tinymembench};
use crate::bench::peer::{Peer, Version};
use crate::bench::record::{Comparison, Record, Series, Target};
use crate::bench::turns::{self, Turn};
use crate::bench::{Session, SuiteRequest, facts, report};
use crate::error::Error;

/// One size of array.
struct Size {
    name: &'static str,
    mib: u64,
    /// What `terrace` may take for it, its start not counted.
    budget: &'static str,
    /// The peer that is STREAM compiled for it.
    stream: &'static str,
    /// What the best must be of the C library's memcpy.
    over_libc: Option<Target>,
}

/// The sizes: inside most last-level caches, beyond all of them, and beyond what page walks cache.
const SIZES: &[Size] = &[
    Size { name: "16 MiB", mib: 16, budget: "4s", stream: "stream-16m", over_libc: None },
    Size {
        name: "256 MiB",
        mib: 256,
        budget: "10s",
        stream: "stream-256m",
        // Set for the machine of the first record, where libc leaves this much; elsewhere read the
        // ratio.
        over_libc: Some(Target::AtLeast(1.35)),
    },
    Size { name: "1 GiB", mib: 1024, budget: "30s", stream: "stream-1g", over_libc: None },
];

/// At least as fast as the best of the peers.
const TARGET: Target = Target::AtLeast(1.0);

/// Methods of Terrace that stay after the pilot, the C library's not counted.
const METHODS: usize = 4;

/// The C library's own.
const LIBC: &str = "memcpy";

/// The pilot's size and time: about thirty methods, twice each.
const PILOT: (&str, &str) = ("256m", "40s");

/// Arrays that the hungriest program (STREAM) needs at once, and one for the rest of the machine.
const ARRAYS: u64 = 4;

/// The longest budget, and as much again to make two arrays resident.
const LIMIT: Duration = Duration::from_secs(180);

/// What one size gave, round by round, in GB/s.
struct Rounds {
    /// The best of Terrace's methods: the median of its trials.
    ours: Vec<f64>,
    /// Which method that was, and in how many rounds.
    winners: BTreeMap<String, usize>,
    /// The best single trial of any method.
    ours_best_trial: Vec<f64>,
    /// The C library's memcpy, as Terrace measured it.
    libc: Vec<f64>,
    /// The best of Terrace's methods on pages of 4 KiB, which the peers' arrays have.
    ours_on_base_pages: Vec<f64>,
    peers: Vec<Series>,
    /// STREAM's own figure, from its best pass.
    stream_best: Option<Series>,
}

/// Measures every size into `record`.
///
/// # Errors
/// When no peer is there, or a program fails or prints what cannot be read.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let Session { request, terrace, record, .. } = session;
    let mbw = Peer::find(request, "mbw", Version::Package("mbw"))?;
    record.programs.push(mbw.clone());
    record.notes.push(mbw::EXCLUDED.to_owned());
    let methods = pilot(terrace, record)?;
    for size in SIZES {
        let needed = ARRAYS * (size.mib << 20);
        if facts::available_bytes(Path::new("/")).is_some_and(|available| available < needed) {
            let note = format!("copy, {}: skipped: needs {needed} bytes of memory", size.name);
            record.notes.push(note);
            continue;
        }
        let rounds = one_size(request, size, (terrace, &mbw), &methods, record)?;
        record.comparisons.extend(rows(size, &rounds)?);
        record.notes.push(winners(size, &rounds.winners));
    }
    beside_tinymembench(request, terrace, &methods, record)
}

/// The names of the fastest methods, and the C library's, for `--method`.
fn pilot(terrace: &Peer, record: &mut Record) -> Result<String, Error> {
    let (size, budget) = PILOT;
    let args =
        ["measure", "memcpy", "--operation", "copy", "--size", size, "--budget", budget, "--quick"];
    record.command(terrace.command_line(&args));
    eprintln!("copy: which methods are fastest");
    let rates = rates(&report::run(terrace, &args, LIMIT)?)?;
    let mut names: Vec<&str> = rates
        .iter()
        .map(|rate| rate.method.as_str())
        .filter(|name| *name != LIBC)
        .take(METHODS)
        .collect();
    names.push(LIBC);
    Ok(names.join(","))
}

fn ours<'a>(methods: &'a str, size: &'a str, budget: &'a str) -> Vec<&'a str> {
    let plain = ["measure", "memcpy", "--operation", "copy", "--method", methods];
    let rest = ["--size", size, "--budget", budget, "--quick"];
    plain.into_iter().chain(rest).collect()
}

fn one_size(
    request: &SuiteRequest,
    size: &Size,
    (terrace, mbw): (&Peer, &Peer),
    methods: &str,
    record: &mut Record,
) -> Result<Rounds, Error> {
    let mebibytes = format!("{}m", size.mib);
    let args = ours(methods, &mebibytes, size.budget);
    record.command(terrace.command_line(&args));
    let on_base_pages: Vec<&str> = args.iter().copied().chain(["--pages", "4k"]).collect();
    record.command(terrace.command_line(&on_base_pages));
    let stream = Peer::find_if_any(request, size.stream, Version::Unsaid)?;
    let winners = RefCell::new(BTreeMap::new());
    let mut names = Vec::new();
    let mut programs: Vec<Turn<'_>> = vec![Box::new(|| {
        let best = Best::of(&rates(&report::run(terrace, &args, LIMIT)?)?)?;
        *winners.borrow_mut().entry(best.method).or_default() += 1;
        Ok(vec![best.median, best.trial, best.libc])
    })];
    programs.push(Box::new(|| {
        let best = Best::of(&rates(&report::run(terrace, &on_base_pages, LIMIT)?)?)?;
        Ok(vec![best.median])
    }));
    for (option, method) in mbw::METHODS {
        let args = mbw::args(option, size.mib);
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        record.command(mbw.command_line(&words));
        names.push(format!("mbw {method}"));
        programs.push(Box::new(move || Ok(vec![mbw::run(mbw, &args, method)?])));
    }
    if let Some(stream) = &stream {
        let mut named = stream.clone();
        named.version = stream::run(stream, size.mib << 20)?.version;
        record.command(stream.command_line(&[]));
        record.programs.push(named);
        names.push("STREAM".to_owned());
        programs.push(Box::new(|| {
            let copied = stream::run(stream, size.mib << 20)?;
            Ok(vec![copied.mean, copied.best])
        }));
    } else {
        let note = format!("STREAM at {}: not given (--{} PROGRAM)", size.name, size.stream);
        record.notes.push(note);
    }
    let what = format!("copy, {}", size.name);
    let figures = turns::rotate(&what, request.alternations, &mut programs)?;
    drop(programs);
    Ok(rounds(&figures, &names, winners.into_inner()))
}

/// Sorts the figures of [`turns::rotate`]: Terrace, Terrace on small pages, then the peers in the
/// order of `names`.
fn rounds(figures: &[Vec<Vec<f64>>], names: &[String], winners: BTreeMap<String, usize>) -> Rounds {
    let peers = names.iter().zip(&figures[2..]);
    Rounds {
        ours: figures[0][0].clone(),
        ours_best_trial: figures[0][1].clone(),
        libc: figures[0][2].clone(),
        ours_on_base_pages: figures[1][0].clone(),
        winners,
        stream_best: peers
            .clone()
            .find_map(|(name, figures)| Some(Series::new(name, figures.get(1)?))),
        peers: peers.map(|(name, figures)| Series::new(name, &figures[0])).collect(),
    }
}

/// The comparisons of one size: against the best peer of each round, each peer, and the C library.
fn rows(size: &Size, rounds: &Rounds) -> Result<Vec<Comparison>, Error> {
    let what = format!("copy, {}", size.name);
    let ours = |values: &[f64]| Series::new("memcpy best", values);
    let best_peer: Vec<f64> = (0..rounds.ours.len())
        .map(|round| {
            let values = rounds.peers.iter().map(|peer| peer.values[round]);
            values.fold(0.0, f64::max)
        })
        .collect();
    let against = |what: &str, pair, target| Comparison::against(what, "GB/s", pair, target);
    let best_peer = Series::new("best peer", &best_peer);
    let best = (ours(&rounds.ours), best_peer.clone());
    let small = (ours(&rounds.ours_on_base_pages), best_peer);
    let mut rows = vec![
        against(&what, best, Some(TARGET))?,
        against(&format!("{what}, 4 KiB pages"), small, None)?,
    ];
    for peer in &rounds.peers {
        let pair = (ours(&rounds.ours), peer.clone());
        rows.push(against(&what, pair, None)?);
    }
    if let Some(stream) = &rounds.stream_best {
        let pair = (ours(&rounds.ours_best_trial), stream.clone());
        rows.push(against(&format!("{what}, best trials"), pair, None)?);
    }
    let libc = (ours(&rounds.ours), Series::new("libc memcpy", &rounds.libc));
    rows.push(against(&format!("{what}, over libc"), libc, size.over_libc)?);
    Ok(rows)
}

fn winners(size: &Size, winners: &BTreeMap<String, usize>) -> String {
    let counts: Vec<String> =
        winners.iter().map(|(method, rounds)| format!("{method} in {rounds}")).collect();
    format!("copy, {}: the best method was {}", size.name, counts.join(", "))
}

/// tinymembench takes ten minutes, so it runs once, with a run of ours before and after it.
fn beside_tinymembench(
    request: &SuiteRequest,
    terrace: &Peer,
    methods: &str,
    record: &mut Record,
) -> Result<(), Error> {
    let Some(mut peer) = Peer::find_if_any(request, "tinymembench", Version::Unsaid)? else {
        let note = "tinymembench: not given (--tinymembench PROGRAM)";
        record.notes.push(note.to_owned());
        return Ok(());
    };
    let args = ours(methods, tinymembench::SIZE, "4s");
    record.command(terrace.command_line(&args));
    record.command(peer.command_line(&[]));
    let own = || Best::of(&rates(&report::run(terrace, &args, LIMIT)?)?);
    eprintln!("copy, 32 MiB: tinymembench, once, about ten minutes");
    let before = own()?;
    let theirs = tinymembench::run(&peer)?;
    let after = own()?;
    peer.version = theirs.version;
    record.programs.push(peer);
    let pair = (
        Series::new("memcpy best", &[before.median, after.median]),
        Series::new(&format!("tinymembench {}", theirs.name), &[theirs.rate; 2]),
    );
    record.add_against("copy, 32 MiB", "GB/s", pair, Some(TARGET))?;
    record.notes.push(
        "tinymembench ran once, on its own 32 MiB, between two runs of ours; its figure is the best of \
         up to ten half seconds"
            .to_owned(),
    );
    Ok(())
}

/// One method's rates in GB/s.
#[derive(Debug, Clone, PartialEq)]
struct Rate {
    method: String,
    median: f64,
    best: f64,
}

/// The best of one run of ours.
#[derive(Debug, PartialEq)]
struct Best {
    method: String,
    median: f64,
    trial: f64,
    libc: f64,
}

impl Best {
    /// From rates sorted by median, the fastest first.
    fn of(rates: &[Rate]) -> Result<Self, Error> {
        let libc = rates.iter().find(|rate| rate.method == LIBC);
        let (Some(first), Some(libc)) = (rates.first(), libc) else {
            return Err(report::malformed(format!("no rate of {LIBC}")));
        };
        Ok(Self {
            method: first.method.clone(),
            median: first.median,
            trial: rates.iter().map(|rate| rate.best).fold(0.0, f64::max),
            libc: libc.median,
        })
    }
}

/// The rates of the copies that were measured and verified, the fastest median first.
fn rates(report: &Value) -> Result<Vec<Rate>, Error> {
    let mut rates = Vec::new();
    for row in report::list(report, "/result/rows")? {
        let is_copy = row["operation"] == "copy" && row["verified"] == true;
        // The budget may have ended before a method's first trial.
        if !is_copy || row["bytes_per_s"].is_null() {
            continue;
        }
        rates.push(Rate {
            method: report::text(row, "/method")?.to_owned(),
            median: report::number(row, "/bytes_per_s/median")? / 1e9,
            best: report::number(row, "/bytes_per_s/best")? / 1e9,
        });
    }
    rates.sort_by(|a, b| b.median.total_cmp(&a.median));
    Ok(rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `terrace measure memcpy --json` prints; fields that are not read are cut.
    const REPORT: &str = r#"{"schema": "terrace.measure.memcpy/1", "result": {"rows": [
        {"method": "char", "operation": "copy", "size_bytes": 16777216, "bytes_per_s":
            {"median": 3795671650.688679, "best": 3940038537.998443, "trials": 58}, "verified": true},
        {"method": "memcpy", "operation": "copy", "size_bytes": 16777216, "bytes_per_s":
            {"median": 20000000000.0, "best": 22000000000.0, "trials": 58}, "verified": true},
        {"method": "rep-movsb", "operation": "copy", "size_bytes": 16777216, "bytes_per_s":
            {"median": 28000000000.0, "best": 29000000000.0, "trials": 58}, "verified": true},
        {"method": "avx2-nt", "operation": "copy", "size_bytes": 16777216, "bytes_per_s":
            {"median": 27000000000.0, "best": 31000000000.0, "trials": 58}, "verified": true},
        {"method": "avx512-nt", "operation": "copy", "bytes_per_s": null, "verified": true},
        {"method": "sse2", "operation": "copy", "bytes_per_s":
            {"median": 99000000000.0, "best": 99000000000.0, "trials": 2}, "verified": false},
        {"method": "read-avx2", "operation": "read", "bytes_per_s":
            {"median": 90000000000.0, "best": 90000000000.0, "trials": 2}, "verified": true}]}}"#;

    fn series(name: &str, values: &[f64]) -> Series {
        Series::new(name, values)
    }

    fn rounds_of(ours: &[f64]) -> Rounds {
        Rounds {
            ours: ours.to_vec(),
            winners: BTreeMap::from([("rep-movsb".to_owned(), 3)]),
            ours_best_trial: vec![30.0; 3],
            libc: vec![20.0; 3],
            ours_on_base_pages: vec![24.0; 3],
            peers: vec![series("mbw DUMB", &[20.0, 29.0, 20.0]), series("STREAM", &[21.0; 3])],
            stream_best: Some(series("STREAM", &[22.0; 3])),
        }
    }

    #[test]
    fn the_best_is_a_verified_copy_that_was_measured() {
        let rates = rates(&report::parse(REPORT).unwrap()).unwrap();
        let names: Vec<&str> = rates.iter().map(|rate| rate.method.as_str()).collect();
        assert_eq!(names, ["rep-movsb", "avx2-nt", "memcpy", "char"]);
        let best = Best::of(&rates).unwrap();
        assert_eq!((best.median, best.trial, best.libc), (28.0, 31.0, 20.0));
        assert!(Best::of(&rates[..2]).is_err(), "libc is missing");
    }

    #[test]
    fn each_round_is_compared_with_the_best_peer_of_that_round() {
        let rows = rows(&SIZES[1], &rounds_of(&[28.0; 3])).unwrap();
        let (best, libc) = (&rows[0], rows.last().unwrap());
        // 28/21, 28/29, 28/21: one lucky round of a peer does not decide.
        assert!((best.figure.median - 28.0 / 21.0).abs() < 1e-9);
        assert!((best.figure.min - 28.0 / 29.0).abs() < 1e-9);
        assert_eq!((best.is_reached(), libc.is_reached()), (Some(true), Some(true)));
        assert_eq!(rows.len(), 6);
        assert!(rows[1..5].iter().all(|row| row.is_reached().is_none()));
    }

    #[test]
    fn a_slow_copy_misses_both_targets() {
        let rows = rows(&SIZES[1], &rounds_of(&[20.5; 3])).unwrap();
        let missed: Vec<_> = rows.iter().filter_map(Comparison::is_reached).collect();
        assert_eq!(missed, [false, false]);
        let libc = super::rows(&SIZES[0], &rounds_of(&[28.0; 3])).unwrap();
        assert_eq!(libc.last().unwrap().is_reached(), None);
    }

    #[test]
    fn figures_are_given_to_their_programs() {
        let figures = [
            vec![vec![1.0], vec![2.0], vec![3.0]],
            vec![vec![3.5]],
            vec![vec![4.0]],
            vec![vec![5.0], vec![6.0]],
        ];
        let names = ["mbw MEMCPY".to_owned(), "STREAM".to_owned()];
        let rounds = rounds(&figures, &names, BTreeMap::new());
        assert_eq!((rounds.ours[0], rounds.ours_best_trial[0], rounds.libc[0]), (1.0, 2.0, 3.0));
        assert_eq!(rounds.ours_on_base_pages, [3.5]);
        assert_eq!(rounds.peers[0], series("mbw MEMCPY", &[4.0]));
        assert_eq!(rounds.peers[1].values, [5.0]);
        assert_eq!(rounds.stream_best, Some(series("STREAM", &[6.0])));
    }
}

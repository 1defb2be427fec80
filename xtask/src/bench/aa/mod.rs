//! The suite `aa`: surveys of one unchanged machine against each other, and against slowed ones.
//!
//! 1. Plain and slowed surveys alternate; a slowed one was built so that each trial in memory takes
//!    15 % longer. The process of a survey, its time and what it leaves behind are looked at as
//!    well.
//! 2. `judged` compares every pair by the rule of `model::comparison`, with the noise learnt from
//!    the runs that are **not** judged.
//! 3. Every value is in the record, so that another rule can be tried on it later.
//! 4. `compared` lets `terrace compare` judge groups of the same surveys, and `against` lets
//!    `terrace run --against` judge a command beside itself and beside more work.
//! 5. `thrashed` makes quick surveys beside copies that take the shared caches.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use model::survey::{SCHEMA, Survey};

use super::peer::Peer;
use super::record::{Comparison, Series, Target};
use super::{Session, SuiteRequest, report};
use crate::error::Error;

mod against;
mod compared;
mod judged;
mod thrashed;

/// Noise is learnt from at least 4 runs beside the two that are judged.
pub const RUNS_MIN: usize = 6;

/// How much longer a slowed trial takes.
const SLOWDOWN: &str = "0.15";

/// What a survey promises to end within, seconds.
const WALL_S: f64 = 60.0;

/// The same for `--quick`.
const QUICK_WALL_S: f64 = 15.0;

/// Three times the promise: a survey that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(180);

/// What Terrace's own files are called where a file system has no unnamed ones.
const SCRATCH: &str = ".terrace";

/// One survey and the wall time of its process, seconds.
struct Run {
    survey: Survey,
    wall_s: f64,
}

/// Runs the parts that `request` asks for.
///
/// # Errors
/// When a build or a survey fails, or prints what cannot be read.
pub(super) fn run(session: &mut Session) -> Result<(), Error> {
    if session.request.includes("surveys") || session.request.includes("compare") {
        of_surveys(session)?;
    }
    let Session { request, terrace, directory, record, .. } = session;
    if request.includes("against") {
        record.command(terrace.command_line(&words(&against::shown())));
        record.comparisons.extend(against::measure(terrace, directory)?);
    }
    if request.includes("thrashed") {
        record.command(terrace.command_line(&thrashed::SHOWN));
        record.comparisons.extend(thrashed::measure(terrace, request.runs)?);
    }
    Ok(())
}

/// Makes the surveys and judges them, one by one and in groups.
fn of_surveys(session: &mut Session) -> Result<(), Error> {
    let Session { request, root, target, terrace: plain, directory, record } = session;
    let slowed = match request.slowed {
        0 => None,
        _ => Some(Peer::slowed_terrace(root, target, SLOWDOWN)?),
    };
    record.programs.extend(slowed.clone());
    let args = args(request)?;
    let shown = shown(&words(&args));
    for peer in [Some(&*plain), slowed.as_ref()].into_iter().flatten() {
        record.command(peer.command_line(&shown));
    }
    let before = left_behind(request);
    let (plains, sloweds) = surveys(request, plain, slowed.as_ref(), &words(&args))?;
    let left: Vec<PathBuf> = left_behind(request).difference(&before).cloned().collect();
    if request.includes("compare") && plains.len() >= 2 * compared::SIDE {
        let surveys: Vec<Survey> = plains.iter().map(|run| run.survey.clone()).collect();
        record.command(
            plain.command_line(&["compare", "--json", "--first", "A...", "--second", "B..."]),
        );
        record.comparisons.extend(compared::measure(plain, &surveys, directory)?);
    }
    record.comparisons.extend(rows(request, &plains, &sloweds, left.len())?);
    Ok(())
}

fn words(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

fn args(request: &SuiteRequest) -> Result<Vec<String>, Error> {
    let mut args = ["survey", "--no-keep", "--json"].map(str::to_owned).to_vec();
    if request.is_quick {
        args.push("--quick".to_owned());
    }
    if let Some(directory) = &request.directory {
        let path =
            directory.to_str().ok_or_else(|| Error::Usage("--path must be UTF-8".to_owned()))?;
        args.extend(["--path".to_owned(), path.to_owned()]);
    }
    Ok(args)
}

/// `args` without the path of this machine.
fn shown<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let mut shown = args.to_vec();
    if let Some(place) = shown.iter().position(|arg| *arg == "--path") {
        shown[place + 1] = "DIR";
    }
    shown
}

/// Plain surveys with the slowed ones spread evenly between them.
fn surveys(
    request: &SuiteRequest,
    plain: &Peer,
    slowed: Option<&Peer>,
    args: &[&str],
) -> Result<(Vec<Run>, Vec<Run>), Error> {
    let (mut plain_runs, mut slowed_runs) = (Vec::new(), Vec::new());
    for number in 1..=request.runs {
        eprintln!("survey: {number} of {}", request.runs);
        plain_runs.push(survey(plain, args)?);
        let due = request.slowed * number / request.runs;
        while let Some(slowed) = slowed.filter(|_| slowed_runs.len() < due) {
            eprintln!("slowed survey: {} of {}", slowed_runs.len() + 1, request.slowed);
            slowed_runs.push(survey(slowed, args)?);
        }
    }
    Ok((plain_runs, slowed_runs))
}

fn survey(peer: &Peer, args: &[&str]) -> Result<Run, Error> {
    let finished = peer.run(args, LIMIT)?;
    Ok(Run { survey: parse(&finished.stdout)?, wall_s: finished.elapsed.as_secs_f64() })
}

fn parse(text: &str) -> Result<Survey, Error> {
    let survey: Survey =
        serde_json::from_str(text).map_err(|error| report::malformed(error.to_string()))?;
    if survey.schema != SCHEMA || survey.interrupted {
        let why = format!("a whole survey of {SCHEMA} was expected");
        return Err(report::malformed(why));
    }
    Ok(survey)
}

/// Files of Terrace's own in the directories that a survey writes to.
fn left_behind(request: &SuiteRequest) -> BTreeSet<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let places = [
        std::env::current_dir().ok(),
        home,
        Some(std::env::temp_dir()),
        Some(PathBuf::from("/dev/shm")),
        request.directory.clone(),
    ];
    let entries = places.into_iter().flatten().filter_map(|place| fs::read_dir(place).ok());
    entries
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with(SCRATCH)
        })
        .collect()
}

/// The rows of the record, from what was surveyed.
fn rows(
    request: &SuiteRequest,
    plain: &[Run],
    slowed: &[Run],
    left: usize,
) -> Result<Vec<Comparison>, Error> {
    let of = |runs: &[Run]| -> Vec<Survey> { runs.iter().map(|run| run.survey.clone()).collect() };
    let quantities = judged::quantities(&of(plain));
    let equal = judged::equal(&quantities);
    let most = |share| Some(Target::AtMost(share));
    let mut rows = vec![
        one("equal runs: quantities called different", equal.quantities.share(), most(0.05))?,
        one("equal runs: tiers called different in any quantity", equal.tiers.share(), None)?,
    ];
    for found in judged::slower(&quantities, &judged::quantities(&of(slowed))) {
        let what = format!("15 % slower {}: found", found.tier);
        rows.push(one(&what, found.pairs.share(), Some(Target::AtLeast(0.9)))?);
    }
    let promise = if request.is_quick { QUICK_WALL_S } else { WALL_S };
    let longest_s = plain.iter().map(|run| run.wall_s).fold(0.0, f64::max);
    let longest = Series::new("survey", &[longest_s]);
    rows.push(Comparison::alone("longest survey", "s", longest, most(promise))?);
    rows.push(one("files left behind", left as f64, most(0.0))?);
    rows.extend(values("", &quantities)?);
    rows.extend(values("slowed, ", &judged::quantities(&of(slowed)))?);
    Ok(rows)
}

/// A row of one figure that has no unit.
fn one(what: &str, value: f64, target: Option<Target>) -> Result<Comparison, Error> {
    Comparison::alone(what, "", Series::new("terrace", &[value]), target)
}

/// Every value, with the noise that was learnt from all of them.
fn values(prefix: &str, quantities: &[judged::Quantity]) -> Result<Vec<Comparison>, Error> {
    let row = |quantity: &judged::Quantity| {
        let name = format!("{prefix}{} {}", quantity.tier, quantity.name);
        let series = Series::new("survey", &quantity.present());
        Comparison::alone(&quantity.describe(&name), quantity.unit, series, None)
    };
    quantities.iter().filter(|quantity| !quantity.present().is_empty()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench;
    use model::estimate::{Covers, Latency};
    use model::{Tier, TierKind};

    fn request(line: &str) -> SuiteRequest {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        bench::parse(&args).unwrap()
    }

    fn survey_of(latency_ns: f64) -> Survey {
        let mut tier = Tier::unseen("L2 cache", TierKind::CpuCache, "test");
        tier.latency_ns = Some(Latency {
            median: latency_ns,
            p50: None,
            p99: None,
            low: None,
            high: None,
            trials: 9,
            discarded: 0,
            covers: Covers::WithinRun,
        });
        let text = format!(
            r#"{{"schema": "terrace.survey/1", "version": "0", "started_unix_s": 0, "interrupted": false,
            "tiers": [{}], "findings": [], "fine": [], "unchecked": [], "skipped": [],
            "machine": {{"host": null, "cpu": "x", "usable_cpus": 2, "online_cpus": 2,
                "memory_bytes": 1, "kernel": "6", "virtualization": null, "libc": null, "thp": null,
                "features": [], "root": false}},
            "cost": {{"wall_s": 1.0, "cpu_s": 1.0, "max_resident_bytes": 1, "written_bytes": 0,
                "timer_ns": 1.0, "bracket_ns": 1.0}}}}"#,
            serde_json::to_string(&tier).unwrap()
        );
        parse(&text).unwrap()
    }

    fn runs(latencies: &[f64]) -> Vec<Run> {
        let run = |latency: &f64| Run { survey: survey_of(*latency), wall_s: 12.5 };
        latencies.iter().map(run).collect()
    }

    #[test]
    fn a_calm_machine_reaches_everything() {
        let plain = runs(&[3.0, 3.01, 3.02, 2.99, 3.0, 3.01, 2.98]);
        let slowed = runs(&[3.45, 3.46]);
        let rows = rows(&request("aa --pace quick"), &plain, &slowed, 0).unwrap();
        let mut record = bench::record::Record::start("aa");
        record.comparisons = rows;
        assert!(record.is_reached(), "{}", record.table());
        let table = record.table();
        for line in ["15 % slower L2 cache: found", "L2 cache latency", "slowed, L2 cache latency"]
        {
            assert!(table.contains(line), "{line} in {table}");
        }
        let json = record.json("2001-07-15");
        assert_eq!(json["comparisons"][2]["figure"]["median"], 1.0);
        assert_eq!(json["comparisons"][2]["target"], ">= 0.9");
    }

    #[test]
    fn a_slowdown_that_is_not_there_a_slow_survey_and_a_left_file_miss() {
        let plain = runs(&[3.0, 3.01, 3.02, 2.99, 3.0, 3.01, 2.98]);
        let mut late = runs(&[3.0, 3.01, 3.02, 2.99, 3.0, 3.01, 2.98]);
        late[3].wall_s = 61.0;
        let missed = |plain: &[Run], slowed: &[Run], left| {
            let rows = rows(&request("aa"), plain, slowed, left).unwrap();
            rows.iter().filter(|row| row.is_reached() == Some(false)).count()
        };
        assert_eq!(missed(&plain, &runs(&[3.45]), 0), 0);
        assert_eq!(missed(&plain, &runs(&[3.0]), 0), 1);
        assert_eq!(missed(&late, &runs(&[3.45]), 1), 2);
    }

    #[test]
    fn the_path_is_not_in_the_record() {
        let args = args(&request("aa --pace quick --path somewhere")).unwrap();
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        assert_eq!(shown(&words), ["survey", "--no-keep", "--json", "--quick", "--path", "DIR"]);
    }

    #[test]
    fn an_interrupted_survey_is_not_judged() {
        let text = serde_json::to_string(&survey_of(3.0)).unwrap();
        assert!(parse(&text).is_ok());
        let cut = text.replace(r#""interrupted":false"#, r#""interrupted":true"#);
        assert!(parse(&cut).is_err());
    }
}

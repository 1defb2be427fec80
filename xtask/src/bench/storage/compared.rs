//! The comparisons of the suite: which arguments give both programs the same work, and what is wanted.

use std::time::Duration;

use super::fio::{Figures, Job};
use super::{FILE_MIB, Place, ioping, ours};
use crate::bench::peer::Peer;
use crate::bench::record::{Comparison, Record, Series, Target};
use crate::bench::turns::{self, Turn};
use crate::bench::{Request, report};
use crate::error::Error;

/// Rates: a few percent are the devices' own noise.
const RATE: Target = Target::AtLeast(0.97);

/// Processor time of a request: no more than the peer's.
const CPU: Target = Target::AtMost(1.0);

/// Times of single requests.
const TIMES: Target = Target::Within(0.05);

/// A run of seconds, or a write, a sync and two reads of the file at 10 MB/s.
const LIMIT: Duration = Duration::from_secs(420);

/// Seconds of one run of random reads.
const RANDOM_S: u32 = 3;

/// Requests, and the pause between two starts, for the times of single requests: the device is idle in
/// between, as it is when one person waits for one file.
const LATENCY: (&str, &str) = ("1000", "2ms");

/// The programs whose rates are compared.
pub(super) struct Programs<'a> {
    pub(super) terrace: &'a Peer,
    pub(super) fio: &'a Peer,
}

/// One comparison of rates.
struct Contest {
    what: String,
    ours: Vec<String>,
    job: Job,
    /// What both read, or write anew each time.
    is_write: bool,
    read: fn(&serde_json::Value) -> Result<Figures, Error>,
    unit: Unit,
}

/// In what the rate of a contest is given.
#[derive(Clone, Copy)]
enum Unit {
    Requests,
    Bytes,
}

/// 4 KiB random reads: one at a time by plain calls and by io_uring, and 32 in flight.
pub(super) fn random(
    request: &Request,
    programs: &Programs<'_>,
    place: &Place,
    record: &mut Record,
) -> Result<(), Error> {
    for (engine, depth) in [("psync", 1), ("io_uring", 1), ("io_uring", 32)] {
        let mut args = words(&["measure", "iolat", &place.file, "-D", "-i", "0", "-s", "4k"]);
        args.extend(words(&["-w", &format!("{RANDOM_S}s")]));
        if engine == "io_uring" {
            args.extend(words(&["--iodepth", &depth.to_string()]));
        }
        let contest = Contest {
            what: format!("4 KiB random read, depth {depth}, {engine}"),
            ours: args,
            job: Job {
                rw: "randread",
                bs: "4k",
                engine,
                depth,
                seconds: Some(RANDOM_S),
            },
            is_write: false,
            read: ours::random,
            unit: Unit::Requests,
        };
        run(request, programs, place, &contest, record)?;
    }
    Ok(())
}

/// 1 MiB requests, 8 in flight: the file is read once, a new file is written once.
pub(super) fn sequential(
    request: &Request,
    programs: &Programs<'_>,
    place: &Place,
    record: &mut Record,
) -> Result<(), Error> {
    let size = format!("{FILE_MIB}m");
    let options = ["--direct", "--bs", "1m", "--iodepth", "8", "--size", &size];
    let contest = |is_write: bool| {
        let path = if is_write { &place.name } else { &place.file };
        let mut args = words(&["measure", "seqio", path]);
        args.extend(words(&options));
        let rw = if is_write { "write" } else { "read" };
        Contest {
            what: format!("1 MiB sequential {rw}, depth 8"),
            ours: args,
            job: Job {
                rw,
                bs: "1m",
                engine: "io_uring",
                depth: 8,
                seconds: None,
            },
            is_write,
            read: if is_write {
                |output| ours::phase(output, "write")
            } else {
                |output| ours::phase(output, "read")
            },
            unit: Unit::Bytes,
        }
    };
    run(request, programs, place, &contest(false), record)?;
    run(request, programs, place, &contest(true), record)
}

fn run(
    request: &Request,
    programs: &Programs<'_>,
    place: &Place,
    contest: &Contest,
    record: &mut Record,
) -> Result<(), Error> {
    let ours: Vec<&str> = contest.ours.iter().map(String::as_str).collect();
    record.command(programs.terrace.command_line(&place.anonymous(&ours)));
    let theirs = contest.job.args(&place.file);
    let shown: Vec<&str> = theirs.iter().map(String::as_str).collect();
    record.command(programs.fio.command_line(&place.anonymous(&shown)));
    let figures = |figures: Figures| {
        let rate = match contest.unit {
            Unit::Requests => figures.requests_per_s,
            Unit::Bytes => figures.bytes_per_s / 1e6,
        };
        vec![rate, figures.cpu_ns_per_request / 1e3]
    };
    let mut turns: [Turn<'_>; 2] = [
        Box::new(|| {
            let output = report::run(programs.terrace, &ours, LIMIT)?;
            Ok(figures((contest.read)(&output)?))
        }),
        Box::new(|| {
            let args = match contest.is_write {
                true => contest.job.args(&place.fresh()?),
                false => theirs.clone(),
            };
            let measured = contest.job.run(programs.fio, &args)?;
            place.fresh()?;
            Ok(figures(measured))
        }),
    ];
    let values = turns::rotate(&contest.what, request.alternations, &mut turns)?;
    record.comparisons.extend(rates(contest, &values[0], &values[1])?);
    Ok(())
}

/// Two rows: the rate, and the processor time of a request.
fn rates(
    contest: &Contest,
    ours: &[Vec<f64>],
    theirs: &[Vec<f64>],
) -> Result<[Comparison; 2], Error> {
    let (name, unit) = match contest.unit {
        Unit::Requests => ("iolat", "requests/s"),
        Unit::Bytes => ("seqio", "MB/s"),
    };
    let pair = |figure: usize| {
        (
            Series::new(name, &ours[figure]),
            Series::new("fio", &theirs[figure]),
        )
    };
    let cpu = format!("{}, CPU of a request", contest.what);
    Ok([
        Comparison::against(&contest.what, unit, pair(0), Some(RATE))?,
        Comparison::against(&cpu, "us", pair(1), Some(CPU))?,
    ])
}

/// Minimum and median of single 4 KiB reads against ioping.
pub(super) fn latency(
    request: &Request,
    (terrace, peer): (&Peer, &Peer),
    place: &Place,
    record: &mut Record,
) -> Result<(), Error> {
    let (count, interval) = LATENCY;
    let region = format!("{FILE_MIB}m");
    let common = ["-D", "-c", count, "-i", interval, "-s", "4k", "-S", &region];
    let ours: Vec<&str> = ["measure", "iolat", &place.file]
        .into_iter()
        .chain(common)
        .chain(["--budget", "60s"])
        .collect();
    let theirs: Vec<&str> = common.into_iter().chain(["-J", &place.file]).collect();
    record.command(terrace.command_line(&place.anonymous(&ours)));
    record.command(peer.command_line(&place.anonymous(&theirs)));
    let figures = |times: ioping::Times| vec![times.min_ns / 1e3, times.median_ns / 1e3];
    let mut turns: [Turn<'_>; 2] = [
        Box::new(|| Ok(figures(ours::times(&report::run(terrace, &ours, LIMIT)?)?))),
        Box::new(|| Ok(figures(ioping::run(peer, &theirs)?))),
    ];
    let values = turns::rotate("latency", request.alternations, &mut turns)?;
    for (figure, what) in ["4 KiB random read, shortest", "4 KiB random read, median"]
        .into_iter()
        .enumerate()
    {
        let pair = (
            Series::new("iolat", &values[0][figure]),
            Series::new("ioping", &values[1][figure]),
        );
        let row = Comparison::against(what, "us", pair, Some(TIMES))?;
        record.comparisons.push(row);
    }
    Ok(())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contest() -> Contest {
        Contest {
            what: "read".to_owned(),
            ours: Vec::new(),
            job: Job {
                rw: "randread",
                bs: "4k",
                engine: "io_uring",
                depth: 32,
                seconds: Some(RANDOM_S),
            },
            is_write: false,
            read: ours::random,
            unit: Unit::Requests,
        }
    }

    #[test]
    fn less_processor_time_is_better_and_fewer_requests_are_not() {
        let row = |rate: f64, cpu: f64| {
            let rows = rates(
                &contest(),
                &[vec![rate; 3], vec![cpu; 3]],
                &[vec![100.0; 3], vec![10.0; 3]],
            );
            rows.unwrap().map(|row| row.is_reached())
        };
        assert_eq!(row(97.5, 10.0), [Some(true), Some(true)]);
        assert_eq!(row(96.0, 10.5), [Some(false), Some(false)]);
        assert_eq!(row(150.0, 5.0), [Some(true), Some(true)]);
    }

    #[test]
    fn no_processor_time_is_no_measurement() {
        let rows = rates(&contest(), &[vec![1.0], vec![0.0]], &[vec![1.0], vec![1.0]]);
        assert!(rows.is_err());
    }
}

//! The comparisons of the suite: which arguments give both programs the same work, and what is
//! wanted. `fio`, `ioping` and `ours` know what a program prints; this file knows what is compared
//! with what.

use std::time::Duration;

use super::fio::{Figures, Job};
use super::{FILE_MIB, fio, fresh_file, ioping, ours, read_file};
use crate::bench::peer::{Peer, Version};
use crate::bench::record::{Comparison, Series, Target};
use crate::bench::turns::{self, Pick, Turn};
use crate::bench::{Session, report};
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

/// Requests of one turn, and the pause between two. Back to back: with a pause, waking up is a part
/// of the time, and ioping, which prints each request at once, is woken by its reader.
const LATENCY: (&str, &str) = ("5000", "0");

/// Turns of both programs in one alternation: a shared device changes its mind within seconds.
const LATENCY_TURNS: usize = 5;

/// One comparison of rates.
struct Contest {
    what: String,
    ours: Vec<String>,
    job: Job,
    /// What both read, or write anew each time.
    is_write: bool,
    read: fn(&serde_json::Value) -> Result<Figures, Error>,
    unit: Unit,
    /// Whether the rows have targets, or only inform.
    has_target: bool,
}

/// In what the rate of a contest is given.
#[derive(Clone, Copy)]
enum Unit {
    Requests,
    Bytes,
}

/// 4 KiB random reads: one at a time by plain calls and by io_uring, and 32 in flight.
pub(super) fn random(session: &mut Session) -> Result<(), Error> {
    let file = read_file(&session.directory);
    for (engine, depth) in [("psync", 1), ("io_uring", 1), ("io_uring", 32)] {
        let mut args = words(&["measure", "iolat", &file, "-D", "-i", "0", "-s", "4k", "--quick"]);
        args.extend(words(&["-w", &format!("{RANDOM_S}s")]));
        if engine == "io_uring" {
            args.extend(words(&["--iodepth", &depth.to_string()]));
        }
        let contest = Contest {
            what: format!("4 KiB random read, depth {depth}, {engine}"),
            ours: args,
            job: Job { rw: "randread", bs: "4k", engine, depth, seconds: Some(RANDOM_S) },
            is_write: false,
            read: match engine {
                "io_uring" => ours::in_flight,
                _ => ours::one_at_a_time,
            },
            unit: Unit::Requests,
            // Plain calls are shown beside: what was promised is against io_uring.
            has_target: engine == "io_uring",
        };
        run(session, &contest)?;
    }
    Ok(())
}

/// 1 MiB requests, 8 in flight: the file is read once, a new file is written once.
pub(super) fn sequential(session: &mut Session) -> Result<(), Error> {
    let file = read_file(&session.directory);
    let size = format!("{FILE_MIB}m");
    let options = ["--direct", "--bs", "1m", "--iodepth", "8", "--size", &size];
    let name = session.directory.name();
    let contest = |is_write: bool| {
        let path = if is_write { name } else { &file };
        let mut args = words(&["measure", "seqio", path, "--quick"]);
        args.extend(words(&options));
        let rw = if is_write { "write" } else { "read" };
        Contest {
            what: format!("1 MiB sequential {rw}, depth 8"),
            ours: args,
            job: Job { rw, bs: "1m", engine: "io_uring", depth: 8, seconds: None },
            is_write,
            read: if is_write {
                |output| ours::phase(output, "write")
            } else {
                |output| ours::phase(output, "read")
            },
            unit: Unit::Bytes,
            has_target: true,
        }
    };
    let (read, write) = (contest(false), contest(true));
    run(session, &read)?;
    run(session, &write)
}

/// Runs both programs in turn. fio also with its buffers on huge pages, as ours are, where that
/// matters.
fn run(session: &mut Session, contest: &Contest) -> Result<(), Error> {
    let Session { request, terrace, directory, record, .. } = session;
    let fio = super::fio(request)?;
    let fio_huge = fio::with_huge_pages(&fio);
    let ours: Vec<&str> = contest.ours.iter().map(String::as_str).collect();
    record.command(terrace.command_line(&directory.anonymous(&ours)));
    let theirs = contest.job.args(&read_file(directory));
    let shown: Vec<&str> = theirs.iter().map(String::as_str).collect();
    record.command(fio.command_line(&directory.anonymous(&shown)));
    let figures = |figures: Figures| {
        let rate = match contest.unit {
            Unit::Requests => figures.requests_per_s,
            Unit::Bytes => figures.bytes_per_s / 1e6,
        };
        vec![rate, figures.cpu_ns_per_request / 1e3]
    };
    let peer = |fio: &Peer| {
        let args = if contest.is_write {
            contest.job.args(&fresh_file(directory)?)
        } else {
            theirs.clone()
        };
        let measured = contest.job.run(fio, &args)?;
        fresh_file(directory)?;
        Ok(figures(measured))
    };
    let mut programs_in_turn: Vec<Turn<'_>> = vec![
        Box::new(|| {
            let output = report::run(terrace, &ours, LIMIT)?;
            Ok(figures((contest.read)(&output)?))
        }),
        Box::new(|| peer(&fio)),
    ];
    // Only large requests depend on how many pages their buffers have.
    if let Unit::Bytes = contest.unit {
        record.command(fio_huge.command_line(&directory.anonymous(&shown)));
        programs_in_turn.push(Box::new(|| peer(&fio_huge)));
    }
    let values = turns::rotate(&contest.what, request.alternations, &mut programs_in_turn)?;
    for (name, theirs) in ["fio", "fio, huge pages"].into_iter().zip(&values[1..]) {
        let rows = rates(contest, &values[0], (name, theirs))?;
        record.comparisons.extend(rows);
    }
    Ok(())
}

/// Two rows: the rate, and the processor time of a request.
fn rates(
    contest: &Contest,
    ours: &[Vec<f64>],
    (peer, theirs): (&str, &[Vec<f64>]),
) -> Result<[Comparison; 2], Error> {
    let (name, unit) = match contest.unit {
        Unit::Requests => ("iolat", "requests/s"),
        Unit::Bytes => ("seqio", "MB/s"),
    };
    let pair =
        |figure: usize| (Series::new(name, &ours[figure]), Series::new(peer, &theirs[figure]));
    let target = |target: Target| contest.has_target.then_some(target);
    let cpu = format!("{}, CPU of a request", contest.what);
    Ok([
        Comparison::against(&contest.what, unit, pair(0), target(RATE))?,
        Comparison::against(&cpu, "us", pair(1), target(CPU))?,
    ])
}

/// Minimum and median of single 4 KiB reads against ioping.
pub(super) fn latency(session: &mut Session) -> Result<(), Error> {
    let Session { request, terrace, directory, record, .. } = session;
    let peer = Peer::find(request, "ioping", Version::Option("-v"))?;
    record.programs.push(peer.clone());
    let file = read_file(directory);
    let (count, interval) = LATENCY;
    let region = format!("{FILE_MIB}m");
    let common = ["-D", "-c", count, "-i", interval, "-s", "4k", "-S", &region];
    let ours: Vec<&str> = ["measure", "iolat", &file]
        .into_iter()
        .chain(common)
        .chain(["--budget", "60s", "--quick"])
        .collect();
    let theirs: Vec<&str> = common.into_iter().chain(["-J", &file]).collect();
    record.command(terrace.command_line(&directory.anonymous(&ours)));
    record.command(peer.command_line(&directory.anonymous(&theirs)));
    let figures = |times: ioping::Times| vec![times.min_ns / 1e3, times.median_ns / 1e3];
    let mut turns: [Turn<'_>; 2] = [
        Box::new(|| Ok(figures(ours::times(&report::run(terrace, &ours, LIMIT)?)?))),
        Box::new(|| Ok(figures(ioping::run(&peer, &theirs)?))),
    ];
    let rounds = request.alternations * LATENCY_TURNS;
    let values = turns::rotate("latency", rounds, &mut turns)?;
    let summed_up: [(&str, Pick); 2] = [
        ("4 KiB random read, shortest", |turns| turns.min),
        ("4 KiB random read, median", |turns| turns.median),
    ];
    for (figure, (what, pick)) in summed_up.into_iter().enumerate() {
        let one = |program: usize| turns::grouped(&values[program][figure], LATENCY_TURNS, pick);
        let pair = (Series::new("iolat", &one(0)), Series::new("ioping", &one(1)));
        record.add_against(what, "us", pair, Some(TIMES))?;
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
            read: ours::in_flight,
            unit: Unit::Requests,
            has_target: true,
        }
    }

    #[test]
    fn less_processor_time_is_better_and_fewer_requests_are_not() {
        let row = |rate: f64, cpu: f64| {
            let rows = rates(
                &contest(),
                &[vec![rate; 3], vec![cpu; 3]],
                ("fio", &[vec![100.0; 3], vec![10.0; 3]]),
            );
            rows.unwrap().map(|row| row.is_reached())
        };
        assert_eq!(row(97.5, 10.0), [Some(true), Some(true)]);
        assert_eq!(row(96.0, 10.5), [Some(false), Some(false)]);
        assert_eq!(row(150.0, 5.0), [Some(true), Some(true)]);
    }

    #[test]
    fn no_processor_time_is_no_measurement() {
        let theirs = [vec![1.0], vec![1.0]];
        let rows = rates(&contest(), &[vec![1.0], vec![0.0]], ("fio", &theirs));
        assert!(rows.is_err());
    }
}

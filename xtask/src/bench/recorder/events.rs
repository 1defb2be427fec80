//! Whether the recorder sees all events: requests and wake-ups during 2,000 `fsync`s, of those that
//! `perf stat` counts on the same tracepoints in the same window.
//!
//! The program is this one again. It sleeps before and after, so that the window of perf, which is
//! known by its length and end, begins and ends while nothing happens; between two samples ours are
//! taken as even. A request that a device has no room for is put back and issued again; then it is
//! completed once. perf counts more completions than that: a flush completes the request that asked
//! for it, too, which no device was given.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::{LIMIT, exported, running};
use crate::bench::Session;
use crate::bench::peer::{Peer, Version};
use crate::bench::record::{Series, Target};
use crate::error::Error;
use crate::process;

const SYNCS: u64 = 2_000;
const SETTLE: Duration = Duration::from_secs(3);
/// Nothing happens for so long at both ends; perf begins to count in the middle of the first.
const QUIET: Duration = Duration::from_millis(800);
const PERF_DELAY_MS: &str = "400";
const GRACE: Duration = Duration::from_secs(10);
const EVENTS: [&str; 3] =
    ["block:block_rq_issue", "block:block_rq_requeue", "block:block_rq_complete"];
/// Discards have no series: a file system may send some after files were removed.
const NO_DISCARDS: &str = "!(rwbs ~ \"D*\")";
const WAKEUP: &str = "sched:sched_wakeup";
/// Requests that a device completed, and waits that a wake-up ended.
const REQUESTS: &[&str] = &["trace.block.reads", "trace.block.writes", "trace.block.flushes"];
const WAKEUPS: &[&str] = &["trace.sched.waits"];

/// What perf counted.
struct Counted {
    requests: f64,
    completions: f64,
    wakeups: f64,
    /// The window, in ns since 1970.
    from_ns: f64,
    to_ns: f64,
}

/// Measures the share of events that are seen.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let perf = Peer::find_if_any(&session.request, "perf", Version::Option("--version"))?;
    let Some(perf) = perf else {
        session.record.note("perf is not here: events are not counted".to_owned());
        return Ok(());
    };
    session.record.program(perf.clone());
    let (mut requests, mut wakeups) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for _ in 0..session.request.alternations {
        let (counted, recording) = count(session, &perf)?;
        let seen = |names| grown(&recording, names, counted.from_ns, counted.to_ns);
        requests[0].push(seen(REQUESTS)?);
        requests[1].push(counted.requests);
        wakeups[0].push(seen(WAKEUPS)?);
        wakeups[1].push(counted.wakeups);
        let more = counted.completions - counted.requests;
        session.record.note(format!("perf counted {more} completions more than issues"));
    }
    let record = &mut session.record;
    record.command("terrace record --for 60s -o events.trec".to_owned());
    let words = EVENTS.map(|event| format!("-e {event} --filter '{NO_DISCARDS}'")).join(" ");
    let options = format!("-a -D {PERF_DELAY_MS} {words} -e {WAKEUP}");
    record.command(format!("perf stat {options} -- fsyncs {SYNCS}"));
    for (what, [ours, theirs]) in [("requests completed", requests), ("wake-ups", wakeups)] {
        let what = format!("{what} seen during {SYNCS} fsyncs, of those that perf counts");
        let pair = (Series::new("terrace", &ours), Series::new("perf", &theirs));
        record.add_against(&what, "events", pair, Some(Target::AtLeast(0.999)))?;
    }
    Ok(())
}

/// One run: what perf counted, and the recording as JSON.
fn count(session: &Session, perf: &Peer) -> Result<(Counted, serde_json::Value), Error> {
    let Session { terrace, directory, .. } = session;
    let [file, counts] = ["events.trec", "perf.csv"].map(|name| directory.file(name));
    let mut command = Command::new(&terrace.program);
    command.args(["record", "--for", "60s", "--force", "-o", &file]);
    let recorder = running::start("terrace", command)?;
    std::thread::sleep(SETTLE);
    let own = std::env::current_exe().map_err(|error| Error::Failed(error.to_string()))?;
    let mut command = Command::new(&perf.program);
    command.args(["stat", "-a", "-x", ",", "-D", PERF_DELAY_MS, "-o", &counts]);
    for event in EVENTS {
        command.args(["-e", event, "--filter", NO_DISCARDS]);
    }
    command.args(["-e", WAKEUP, "--"]).arg(own).args([
        "fsyncs",
        &SYNCS.to_string(),
        &directory.file("synced"),
    ]);
    let printed = process::run(command, LIMIT)?.success()?.stdout;
    // The sample after the window.
    std::thread::sleep(QUIET);
    recorder.end(GRACE).map_err(|error| Error::Failed(error.to_string()))?;
    let counts = fs::read_to_string(&counts).unwrap_or_default();
    let malformed = || Error::Malformed { what: "the counts of perf stat", why: counts.clone() };
    let counted = parse(&counts, &printed).ok_or_else(malformed)?;
    Ok((counted, exported::read(terrace, &file)?))
}

/// Reads the counts (value, unit, event, time that it counted on all processors) and the end of the
/// program.
fn parse(counts: &str, printed: &str) -> Option<Counted> {
    let row = |name: &str| {
        let fields = counts.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let mut of = fields.filter(|fields| fields.get(2) == Some(&name));
        let fields = of.next()?;
        Some((fields.first()?.parse::<f64>().ok()?, fields.get(3)?.parse::<f64>().ok()?))
    };
    let [issued, requeued, completed] = EVENTS;
    let (issued, summed_ns) = row(issued)?;
    let requests = issued - row(requeued)?.0;
    let to_ns: f64 =
        printed.lines().find_map(|line| line.strip_prefix("fsyncs: "))?.parse().ok()?;
    let processors = std::thread::available_parallelism().ok()?.get() as f64;
    Some(Counted {
        requests,
        completions: row(completed)?.0,
        wakeups: row(WAKEUP)?.0,
        from_ns: to_ns - summed_ns / processors,
        to_ns,
    })
}

/// How much these series of a recording grew together between two instants.
fn grown(
    recording: &serde_json::Value,
    names: &[&str],
    from_ns: f64,
    to_ns: f64,
) -> Result<f64, Error> {
    let missing = || exported::malformed(format!("has not {names:?}"));
    let started_ns = recording["facts"]["started_unix_ns"].as_f64().ok_or_else(missing)?;
    let samples = recording["samples"].as_array().ok_or_else(missing)?;
    let at_ns: Vec<f64> = samples.iter().filter_map(|sample| sample["at_ns"].as_f64()).collect();
    let mut sum = 0.0;
    for name in names {
        let values = exported::steps(recording, name).ok_or_else(missing)?;
        let value = |instant_ns| value_at(&at_ns, &values, instant_ns - started_ns);
        sum += value(to_ns) - value(from_ns);
    }
    Ok(sum)
}

/// A value between two samples, as if it had grown evenly.
fn value_at(at_ns: &[f64], steps: &[(usize, f64)], instant_ns: f64) -> f64 {
    let of_sample = |sample: usize| {
        let after = steps.partition_point(|(first, _)| *first <= sample);
        after.checked_sub(1).map_or(0.0, |index| steps[index].1)
    };
    let next = at_ns.partition_point(|at_ns| *at_ns < instant_ns).clamp(1, at_ns.len().max(2) - 1);
    let (Some(before_ns), Some(after_ns)) = (at_ns.get(next - 1), at_ns.get(next)) else {
        return of_sample(0);
    };
    let share = ((instant_ns - before_ns) / (after_ns - before_ns)).clamp(0.0, 1.0);
    of_sample(next - 1) + (of_sample(next) - of_sample(next - 1)) * share
}

/// What perf runs: flushes a file `count` times between two quiet times; prints when it ended.
pub(crate) fn fsyncs(count: u64, path: &Path) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::Failed(format!("fsyncs: {error}"));
    std::thread::sleep(QUIET);
    let mut file = fs::File::create(path).map_err(failed)?;
    for _ in 0..count {
        file.write_all(&[7; 512]).and_then(|()| file.sync_all()).map_err(failed)?;
    }
    std::thread::sleep(QUIET);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    println!("fsyncs: {}", now.as_nanos());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_between_samples_are_even() {
        let (at_ns, steps) = ([0.0, 10.0, 20.0], [(0, 5.0), (2, 25.0)]);
        let value = |instant_ns| value_at(&at_ns, &steps, instant_ns);
        assert_eq!([value(0.0), value(10.0), value(15.0), value(99.0)], [5.0, 5.0, 15.0, 25.0]);
    }

    #[test]
    fn the_window_is_known_by_its_length_and_end() {
        let counts = "# started\n\n72,,block:block_rq_issue,2000,100.00,,\n\
                      2,,block:block_rq_requeue,2000,100.00,,\n\
                      90,,block:block_rq_complete,2000,100.00,,\n7,,sched:sched_wakeup,2000,1,,\n";
        let counted = parse(counts, "fsyncs: 5000\n").unwrap();
        assert_eq!((counted.requests, counted.completions, counted.wakeups), (70.0, 90.0, 7.0));
        assert!(counted.from_ns < counted.to_ns && counted.to_ns == 5000.0);
        assert!(parse(counts, "").is_none());
    }
}

//! Programs beside a restore: the time of a round while it runs, divided by that just before and
//! after it.
//!
//! With a processor left for the restore and with none; by workers in their processors' own caches
//! and by workers in memory. A pair is one restore: what disturbs the machine for longer disturbs
//! both its halves.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use testkit::WorkingSet;

use super::host::{self, Host};
use super::workers::{Span, Within, Workers, mean_round_s};
use super::{SLOWED_MIB, scaled};
use crate::bench::SuiteRequest;
use crate::bench::record::{Record, Series, Target};
use crate::error::Error;

/// Restores of an alternation: a shared host disturbs single ones by more than is looked for.
const RESTORES: usize = 8;
/// Where no processor is left a restore takes many times as long; it ends after this part of the
/// set.
const CROWDED_PART: u64 = 4;
/// What is left to the disk and its driver after the set was pushed out.
const SETTLE: Duration = Duration::from_millis(300);
/// Alone, before a restore and again after it: hundreds of rounds, so near that the machine is
/// still the same.
const ALONE: Duration = Duration::from_millis(1000);
const ALONE_CROWDED: Duration = Duration::from_millis(3000);

const MOST: Option<Target> = Some(Target::AtMost(1.05));

/// What the restores of one number of workers gave, one value for each.
#[derive(Default)]
struct Seen {
    beside_s: Vec<f64>,
    alone_s: Vec<f64>,
    restore_s: Vec<f64>,
}

/// Some workers, what is restored beside them, and what that gave.
struct Row {
    what: String,
    workers: (usize, Within),
    /// How much of the set is restored; all of it with `None`.
    most_mib: Option<u64>,
    alone: Duration,
    seen: Seen,
}

/// Measures every row in turn; how many pages were wrong in each alternation.
pub(super) fn measure(
    host: &Host,
    request: &SuiteRequest,
    record: &mut Record,
) -> Result<Vec<f64>, Error> {
    let mib = scaled(request, SLOWED_MIB);
    let mut owner = host.owner(mib)?;
    let mut rows = rows(host.processors, mib);
    let mut wrong = Vec::new();
    for alternation in 0..request.alternations {
        let first = alternation % rows.len();
        rows.rotate_left(first);
        for row in &mut rows {
            restores(host, &owner, row)?;
        }
        rows.rotate_right(first);
        wrong.push(host::wrong_pages(&mut owner)?);
    }
    let words = "terrace warm restore --pid PID --only anonymous --json";
    record.command(words.to_owned());
    record.command(format!("{words} --max-bytes {}m", mib / CROWDED_PART));
    for row in &rows {
        kept(record, row)?;
    }
    Ok(wrong)
}

/// Those of a machine with so many processors, for a set of so much.
fn rows(processors: usize, mib: u64) -> Vec<Row> {
    let row = |what: String, workers, most_mib, alone| Row {
        what: format!("beside: {what}"),
        workers,
        most_mib,
        alone,
        seen: Seen::default(),
    };
    let idle = format!("{mib} MiB brought back, nobody beside");
    let mut rows = vec![row(idle, (0, Within::Cache), None, ALONE)];
    for (within, place) in [(Within::Cache, "in their caches"), (Within::Memory, "in memory")] {
        if processors > 1 {
            let what = format!("{mib} MiB brought back, all processors but one busy {place}");
            rows.push(row(what, (processors - 1, within), None, ALONE));
        }
        let part = mib / CROWDED_PART;
        let what = format!("{part} MiB brought back, all processors busy {place}");
        rows.push(row(what, (processors, within), Some(part), ALONE_CROWDED));
    }
    rows
}

/// Several restores beside the workers of `row`.
fn restores(host: &Host, owner: &WorkingSet, row: &mut Row) -> Result<(), Error> {
    let (clock, over) = (Instant::now(), AtomicBool::new(false));
    let (windows, rounds) = thread::scope(|scope| {
        let workers = Workers::start(row.workers, scope, &over, clock);
        let windows: Result<Vec<Span>, Error> =
            (0..RESTORES).map(|_| restore(host, owner, row, clock)).collect();
        (windows, workers.rounds())
    });
    for window in windows? {
        row.seen.restore_s.push(window.end_s - window.start_s);
        if row.workers.0 == 0 {
            continue;
        }
        let alone = around(window, row.alone);
        let means = mean_round_s(&rounds, &[window]).zip(mean_round_s(&rounds, &alone));
        let (beside_s, alone_s) = means.ok_or_else(|| Error::Malformed {
            what: "the rounds of the workers",
            why: "none lies wholly within a restore: it is too short here".to_owned(),
        })?;
        row.seen.beside_s.push(beside_s);
        row.seen.alone_s.push(alone_s);
    }
    Ok(())
}

/// One restore, between two times alone; when it ran.
fn restore(host: &Host, owner: &WorkingSet, row: &Row, clock: Instant) -> Result<Span, Error> {
    host.evict(owner)?;
    thread::sleep(SETTLE + row.alone);
    let most = row.most_mib.map(|mib| format!("{mib}m"));
    let (options, wanted) = match &most {
        Some(most) => (vec!["--max-bytes", most], "budget"),
        None => (Vec::new(), "done"),
    };
    let start_s = clock.elapsed().as_secs_f64();
    let mut restore = host.restore(owner, &options)?;
    let stop = restore.stop_reason()?;
    let end_s = clock.elapsed().as_secs_f64();
    if stop != wanted {
        return Err(Error::Failed(format!("a restore stopped for {stop}")));
    }
    thread::sleep(row.alone);
    Ok(Span { start_s, end_s })
}

/// The times alone before and after `window`.
fn around(window: Span, alone: Duration) -> [Span; 2] {
    let alone_s = alone.as_secs_f64();
    let before = Span { start_s: window.start_s - alone_s, end_s: window.start_s };
    let after = Span { start_s: window.end_s, end_s: window.end_s + alone_s };
    [before, after]
}

fn kept(record: &mut Record, row: &Row) -> Result<(), Error> {
    let (what, seen) = (&row.what, &row.seen);
    if row.workers.0 > 0 {
        let pair = (Series::new("beside", &seen.beside_s), Series::new("alone", &seen.alone_s));
        record.add_against(&format!("{what}: a worker's round"), "s", pair, MOST)?;
    }
    let time = format!("{what}: its time");
    record.add_alone(&time, "s", Series::new("terrace", &seen.restore_s), None)
}

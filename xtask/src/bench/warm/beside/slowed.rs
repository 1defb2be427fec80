//! Who works beside a restore: the time of a round while one runs, over that just before and after it.
//!
//! Once with a processor left for the restore and once with none. A pair is one restore: what disturbs the
//! machine for longer than that disturbs both of its halves.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use super::stage::{self, Owner, Stage};
use super::workers::{Span, Workers, mean_round_s};
use super::{SLOWED_MIB, scaled};
use crate::bench::Request;
use crate::bench::record::{Comparison, Record, Series, Target};
use crate::error::Error;

/// Restores of an alternation: each lasts some seconds at most where swap is fast, and a shared host
/// disturbs single ones by more than is looked for.
const RESTORES: usize = 8;
/// The same where no processor is left: they last longer.
const RESTORES_CROWDED: usize = 4;
/// What is left to the disk and its driver after the set was pushed out.
const SETTLE: Duration = Duration::from_millis(300);
/// Alone, before a restore and after it.
const ALONE: Duration = Duration::from_millis(1000);

const MOST: Option<Target> = Some(Target::AtMost(1.05));

/// What the restores of one number of workers gave, one value for each.
#[derive(Default)]
struct Seen {
    beside_s: Vec<f64>,
    alone_s: Vec<f64>,
    restore_s: Vec<f64>,
}

/// Measures every number of workers in turn; how many pages were wrong in each alternation.
pub(super) fn measure(
    stage: &Stage,
    request: &Request,
    record: &mut Record,
) -> Result<Vec<f64>, Error> {
    let mib = scaled(request, SLOWED_MIB);
    let mut owner = stage.owner(mib)?;
    let counts = [0, stage.processors - 1, stage.processors];
    let mut seen = counts.map(|_| Seen::default());
    let mut wrong = Vec::new();
    for alternation in 0..request.alternations {
        for turn in 0..counts.len() {
            let row = (alternation + turn) % counts.len();
            restores(stage, &owner, counts[row], &mut seen[row])?;
        }
        wrong.push(owner.wrong_pages()?);
    }
    record.command("terrace warm restore --pid PID --only anonymous --json".to_owned());
    let what = format!("beside: {mib} MiB brought back");
    let [none, some, all] = &seen;
    if stage.processors > 1 {
        let busy = format!("{what}, all processors but one busy");
        rows(record, &busy, some)?;
    }
    rows(record, &format!("{what}, all processors busy"), all)?;
    let idle = format!("{what}, nobody beside: its time");
    stage::alone(record, &idle, "s", &none.restore_s, None)?;
    Ok(wrong)
}

/// Several restores beside `count` workers.
fn restores(stage: &Stage, owner: &Owner, count: usize, seen: &mut Seen) -> Result<(), Error> {
    let (clock, over) = (Instant::now(), AtomicBool::new(false));
    let times = match count < stage.processors {
        true => RESTORES,
        false => RESTORES_CROWDED,
    };
    let (windows, rounds) = thread::scope(|scope| {
        let workers = Workers::start(count, scope, &over, clock);
        let windows: Result<Vec<Span>, Error> =
            (0..times).map(|_| restore(stage, owner, clock)).collect();
        (windows, workers.rounds())
    });
    for window in windows? {
        seen.restore_s.push(window.end_s - window.start_s);
        if count == 0 {
            continue;
        }
        let means = mean_round_s(&rounds, &[window]).zip(mean_round_s(&rounds, &around(window)));
        let (beside_s, alone_s) = means.ok_or_else(|| Error::Malformed {
            what: "the rounds of the workers",
            why: "none lies wholly within a restore: it is too short here".to_owned(),
        })?;
        seen.beside_s.push(beside_s);
        seen.alone_s.push(alone_s);
    }
    Ok(())
}

/// One restore, between two times alone; when it ran.
fn restore(stage: &Stage, owner: &Owner, clock: Instant) -> Result<Span, Error> {
    stage.evict(owner)?;
    thread::sleep(SETTLE + ALONE);
    let start_s = clock.elapsed().as_secs_f64();
    let mut restore = stage.restore(owner, &[])?;
    let stop = restore.stop_reason()?;
    let end_s = clock.elapsed().as_secs_f64();
    if stop != "done" {
        return Err(Error::Failed(format!("a restore stopped for {stop}")));
    }
    thread::sleep(ALONE);
    Ok(Span { start_s, end_s })
}

/// The times alone before and after `window`.
fn around(window: Span) -> [Span; 2] {
    let alone_s = ALONE.as_secs_f64();
    let before = Span {
        start_s: window.start_s - alone_s,
        end_s: window.start_s,
    };
    let after = Span {
        start_s: window.end_s,
        end_s: window.end_s + alone_s,
    };
    [before, after]
}

fn rows(record: &mut Record, what: &str, seen: &Seen) -> Result<(), Error> {
    let round = format!("{what}: a worker's round");
    let pair = (
        Series::new("beside", &seen.beside_s),
        Series::new("alone", &seen.alone_s),
    );
    let row = Comparison::against(&round, "s", pair, MOST)?;
    record.comparisons.push(row);
    stage::alone(
        record,
        &format!("{what}: its time"),
        "s",
        &seen.restore_s,
        None,
    )
}

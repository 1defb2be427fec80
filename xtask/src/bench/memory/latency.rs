//! Load latency against multichase: L1, L2, L3 and memory, on the same pages and in the same order.
//!
//! Each level is a buffer that only this level holds on most machines. Both programs follow one
//! chain through all cache lines of the buffer in random order, each load needing the one before. A
//! shared last-level cache is at times lost to neighbours for seconds, so each alternation is
//! several short turns of both, and its figure the median of these.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::multichase;
use crate::bench::peer::{Peer, Version};
use crate::bench::record::{Comparison, Series, Target};
use crate::bench::turns::{self, Pick, Turn};
use crate::bench::{Session, report};
use crate::error::Error;

/// How far from the peer's a latency may be.
const TARGET: Target = Target::Within(0.07);

/// A level's name and the buffer that it holds, as both programs read sizes.
const LEVELS: &[(&str, &str)] = &[("L1", "16k"), ("L2", "256k"), ("L3", "4m"), ("DRAM", "256m")];

/// Turns of both programs in one alternation.
const TURNS: usize = 3;

/// Half of `--budget`'s default would do; memory that the host must bring first takes seconds.
const BUDGET: &str = "20s";

/// The budget and as much again for the start.
const LIMIT: Duration = Duration::from_secs(60);

/// Measures all levels into `record`; without multichase, notes that nothing was compared.
///
/// # Errors
/// When a program fails or prints what cannot be read.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let Session { request, terrace, record, .. } = session;
    let Some(multichase) = Peer::find_if_any(request, "multichase", Version::Unsaid)? else {
        let note = "latency: skipped: needs multichase, given with --multichase PROGRAM";
        record.notes.push(note.to_owned());
        return Ok(());
    };
    record.programs.push(multichase.clone());
    let mut kinds = vec![("4k", false)];
    if multichase::may_ask_for_huge_pages(Path::new("/")) {
        kinds.push(("thp", true));
    } else {
        let note = "huge pages: skipped: multichase would change the kernel's settings";
        record.notes.push(note.to_owned());
    }
    for (pages, is_huge) in kinds {
        for (level, size) in LEVELS {
            let theirs = multichase::args(size, is_huge);
            let ours = ours(size, pages);
            record.command(terrace.command_line(&ours));
            record.command(multichase.command_line(&theirs));
            let mut programs: [Turn<'_>; 2] = [
                Box::new(|| Ok(load_ns(&report::run(terrace, &ours, LIMIT)?)?.to_vec())),
                Box::new(|| Ok(multichase::run(&multichase, &theirs)?.to_vec())),
            ];
            let what = format!("{level}, {size}, {pages} pages");
            let values = turns::rotate(&what, request.alternations * TURNS, &mut programs)?;
            record.comparisons.extend(rows(&what, &values)?);
        }
    }
    Ok(())
}

fn ours<'a>(size: &'a str, pages: &'a str) -> Vec<&'a str> {
    let plain = ["measure", "memlat", "--size", size, "--pages", pages];
    let rest = ["--pattern", "random", "--budget", BUDGET, "--quick"];
    plain.into_iter().chain(rest).collect()
}

/// Two rows from `[program][median, best][turn]`: the medians, and the best beside them.
fn rows(what: &str, values: &[Vec<Vec<f64>>]) -> Result<[Comparison; 2], Error> {
    let pair = |figure: usize, pick: Pick| {
        let one = |program: usize| turns::grouped(&values[program][figure], TURNS, pick);
        (Series::new("memlat", &one(0)), Series::new("multichase", &one(1)))
    };
    let medians = pair(0, |turns| turns.median);
    let best = pair(1, |turns| turns.min);
    Ok([
        Comparison::against(what, "ns", medians, Some(TARGET))?,
        Comparison::against(&format!("{what}, best"), "ns", best, None)?,
    ])
}

/// Median and best of the one row that was asked for, nanoseconds.
fn load_ns(report: &Value) -> Result<[f64; 2], Error> {
    let of = |field: &str| report::number(report, &format!("/result/rows/0/load_ns/{field}"));
    Ok([of("median")?, of("best")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_read_from_the_report() {
        let report = report::parse(
            r#"{"schema": "terrace.measure.memlat/1", "result": {"rows": [{"size_bytes": 16384,
            "pages": "4k", "order": "random", "load_ns": {"median": 1.0320980498200822,
            "best": 1.0165660876456477, "trials": 9}, "noisy": null}]}}"#,
        );
        let expected = [1.0320980498200822, 1.0165660876456477];
        assert_eq!(load_ns(&report.unwrap()).unwrap(), expected);
        let none = report::parse(r#"{"result": {"rows": [{"load_ns": null}]}}"#).unwrap();
        assert!(load_ns(&none).is_err());
    }

    #[test]
    fn seven_percent_is_within_and_eight_is_not() {
        let reached = |ours: f64| {
            let one = |value: f64| vec![vec![value; 6]; 2];
            let rows = rows("L2", &[one(ours), one(3.5)]);
            rows.unwrap().map(|row| row.is_reached())
        };
        assert_eq!(reached(3.74), [Some(true), None]);
        assert_eq!(reached(3.8), [Some(false), None]);
        assert_eq!(reached(3.26), [Some(true), None]);
        assert_eq!(reached(3.2), [Some(false), None]);
    }

    #[test]
    fn an_alternation_is_the_median_of_its_turns() {
        let ours = vec![vec![13.0, 90.0, 13.5, 80.0, 14.0, 90.0], vec![12.0; 6]];
        let theirs = vec![vec![13.0; 6], vec![13.0, 12.5, 13.0, 13.0, 13.0, 12.0]];
        let [medians, best] = rows("L3", &[ours, theirs]).unwrap();
        assert_eq!(medians.figure.min, 13.5 / 13.0);
        assert_eq!(medians.figure.max, 80.0 / 13.0);
        assert_eq!((best.figure.min, best.figure.max), (12.0 / 12.5, 1.0));
    }
}

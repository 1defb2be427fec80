//! Load latency against multichase: L1, L2, L3 and memory, on the same pages and in the same order.
//!
//! Each level is a buffer that only this level holds on most machines. Both programs follow one chain
//! through all cache lines of the buffer in random order, each load needing the one before; both give the
//! median of their samples.

use std::path::Path;
use std::time::Duration;

use super::multichase;
use crate::bench::peer::{Peer, Version};
use crate::bench::record::{Comparison, Record, Series, Target};
use crate::bench::turns::{self, Turn};
use crate::bench::{Request, report};
use crate::error::Error;

/// How far from the peer's a latency may be.
const TARGET: Target = Target::Within(0.07);

/// A level's name and the buffer that it holds, as both programs read sizes.
const LEVELS: &[(&str, &str)] = &[("L1", "16k"), ("L2", "256k"), ("L3", "4m"), ("DRAM", "256m")];

/// Half of `--budget`'s default would do; memory that the host must bring first takes seconds.
const BUDGET: &str = "20s";

/// The budget and as much again for the start.
const LIMIT: Duration = Duration::from_secs(60);

/// Measures all levels into `record`; without multichase, notes that nothing was compared.
///
/// # Errors
/// When a program fails or prints what cannot be read.
pub fn measure(request: &Request, terrace: &Peer, record: &mut Record) -> Result<(), Error> {
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
                Box::new(|| Ok(vec![load_ns(&report::run(terrace, &ours, LIMIT)?)?])),
                Box::new(|| Ok(vec![multichase::run(&multichase, &theirs)?])),
            ];
            let what = format!("{level}, {size}, {pages} pages");
            let values = turns::rotate(&what, request.alternations, &mut programs)?;
            record.comparisons.push(row(&what, &values[0][0], &values[1][0])?);
        }
    }
    Ok(())
}

fn ours<'a>(size: &'a str, pages: &'a str) -> Vec<&'a str> {
    let plain = ["measure", "memlat", "--size", size, "--pages", pages];
    let rest = ["--pattern", "random", "--budget", BUDGET];
    plain.into_iter().chain(rest).collect()
}

fn row(what: &str, ours: &[f64], theirs: &[f64]) -> Result<Comparison, Error> {
    let pair = (Series::new("memlat", ours), Series::new("multichase", theirs));
    Ok(Comparison::against(what, "ns", pair, Some(TARGET))?)
}

/// The median load of the one row that was asked for, nanoseconds.
fn load_ns(report: &serde_json::Value) -> Result<f64, Error> {
    report::number(report, "/result/rows/0/load_ns/median")
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
        assert_eq!(load_ns(&report.unwrap()).unwrap(), 1.0320980498200822);
        let none = report::parse(r#"{"result": {"rows": [{"load_ns": null}]}}"#).unwrap();
        assert!(load_ns(&none).is_err());
    }

    #[test]
    fn seven_percent_is_within_and_eight_is_not() {
        let reached = |ours: f64| row("L2", &[ours; 3], &[3.5; 3]).unwrap().is_reached();
        assert_eq!((reached(3.74), reached(3.8)), (Some(true), Some(false)));
        assert_eq!((reached(3.26), reached(3.2)), (Some(true), Some(false)));
        assert!(row("L2", &[0.0], &[3.5]).is_err());
    }
}

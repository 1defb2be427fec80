//! Databases on a RAM disk after 210 power cuts of the disk that it is saved to: each alternation
//! is a load of its own and 30 cuts. The same without a freeze shows what the freeze is for.

use std::path::Path;
use std::time::Instant;

use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::steps::Steps;
use crate::database_cuts::{DatabaseCuts, DatabaseReport};
use crate::error::Error;

const CUTS_EACH: usize = 30;
const SAVES: usize = 12;
/// What a load gives.
const FIGURES: usize = 5;
/// Where among them the cuts with a fault are.
const FAULTY: usize = 1;
/// Faults that are named in the record.
const MOST_NAMED: usize = 5;

/// Each load is kept when it is done, so that the part goes on after an interruption.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let program = session.terrace.program.clone();
    let all = session.request.alternations;
    let parameters = format!("{SAVES} saves, {CUTS_EACH} cuts");
    let mut steps = Steps::open(&session.target, "databases", &program, &parameters, FIGURES)?;
    let mut rows: [Vec<f64>; FIGURES] = Default::default();
    for load in 0..all {
        let began = Instant::now();
        let step = steps.get(load, || one_load(&program, load as u64 + 1))?;
        for (row, value) in rows.iter_mut().zip(&step.values) {
            row.push(*value);
        }
        step.note_in(&mut session.record);
        let (seconds, faulty) = (began.elapsed().as_secs(), step.values[FAULTY]);
        eprintln!("load {} of {all}: {seconds} s, {faulty} cuts with a fault", load + 1);
    }
    // A fault is one too many in whichever load it is: these are sums, no medians.
    let sums = [
        ("power cuts while databases are saved, all loads", None),
        ("of them with a fault", Some(Target::AtMost(0.0))),
        ("of as many with a fault, without a freeze", None),
    ];
    for ((name, target), values) in sums.into_iter().zip(&rows) {
        let sum = [values.iter().sum()];
        session.record.add_alone(name, "cuts", Series::new("terrace", &sum), target)?;
    }
    let rest =
        [("commits under load", "commits"), ("databases frozen, the longest of a load", "s")];
    for ((name, unit), values) in rest.into_iter().zip(&rows[sums.len()..]) {
        session.record.add_alone(name, unit, Series::new("terrace", values), None)?;
    }
    steps.end(&mut session.record, "loads", all);
    Ok(())
}

/// One load with its cuts, frozen and not: the figures of the rows, and what is to be noted.
fn one_load(program: &Path, seed: u64) -> Result<(Vec<f64>, Vec<String>), Error> {
    let cuts = |freezes| {
        let began = Instant::now();
        let (saves, cuts, ignores_flushes) = (SAVES, CUTS_EACH, false);
        let cuts = DatabaseCuts { program, saves, cuts, seed, ignores_flushes, freezes };
        let report = cuts.run().map_err(Error::Failed)?;
        let (which, seconds) = (which(freezes), began.elapsed().as_secs());
        eprintln!("seed {seed}, {which}: {} cuts in {seconds} s", report.cuts);
        Ok::<_, Error>(report)
    };
    let (frozen, unfrozen) = (cuts(true)?, cuts(false)?);
    let values = vec![
        frozen.cuts as f64,
        frozen.faulty_cuts as f64,
        unfrozen.faulty_cuts as f64,
        frozen.acknowledged.iter().sum::<u64>() as f64,
        frozen.frozen_max_s,
    ];
    let notes = [(true, frozen), (false, unfrozen)];
    Ok((values, notes.iter().flat_map(|(freezes, report)| notes_of(report, *freezes)).collect()))
}

fn which(freezes: bool) -> &'static str {
    if freezes { "frozen" } else { "not frozen" }
}

fn notes_of(report: &DatabaseReport, freezes: bool) -> Vec<String> {
    let of =
        |fault: &String| format!("{}, {}: {fault}", which(freezes), report.databases.join(" and "));
    report.faults.iter().take(MOST_NAMED).map(of).collect()
}

//! Databases on a RAM disk after 210 power cuts of the disk that it is saved to: each alternation
//! is a load of its own and 30 cuts. The same without a freeze shows what the freeze is for.

use std::time::Instant;

use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::database_cuts::{DatabaseCuts, DatabaseReport};
use crate::error::Error;

const CUTS_EACH: usize = 30;
const SAVES: usize = 12;
/// Faults that are named in the record.
const MOST_NAMED: usize = 5;

pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let program = session.terrace.program.clone();
    let mut rows: [Vec<f64>; 5] = Default::default();
    for load in 0..session.request.alternations {
        let began = Instant::now();
        let cuts = |freezes| DatabaseCuts {
            program: &program,
            saves: SAVES,
            cuts: CUTS_EACH,
            seed: load as u64 + 1,
            ignores_flushes: false,
            freezes,
        };
        let frozen = cuts(true).run().map_err(Error::Failed)?;
        let unfrozen = cuts(false).run().map_err(Error::Failed)?;
        rows[0].push(frozen.cuts as f64);
        rows[1].push(frozen.faulty_cuts as f64);
        rows[2].push(unfrozen.faulty_cuts as f64);
        rows[3].push(frozen.acknowledged.iter().sum::<u64>() as f64);
        rows[4].push(frozen.frozen_max_s);
        note(session, &frozen, "frozen");
        note(session, &unfrozen, "not frozen");
        let seconds = began.elapsed().as_secs();
        eprintln!("load {} of {}: {seconds} s", load + 1, session.request.alternations);
    }
    let names = [
        ("power cuts while databases are saved", "cuts", None),
        ("of them with a fault", "cuts", Some(Target::AtMost(0.0))),
        ("of as many with a fault, without a freeze", "cuts", None),
        ("commits under load", "commits", None),
        ("databases frozen, the longest of a load", "s", None),
    ];
    for ((name, unit, target), values) in names.into_iter().zip(&rows) {
        session.record.add_alone(name, unit, Series::new("terrace", values), target)?;
    }
    Ok(())
}

fn note(session: &mut Session, report: &DatabaseReport, which: &str) {
    for fault in report.faults.iter().take(MOST_NAMED) {
        session.record.note(format!("{which}, {}: {fault}", report.databases.join(" and ")));
    }
}

//! What the cache costs where it has nothing: a long read, single reads, and writes, beside bcache,
//! dm-cache and the disk alone.

use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::steps::Steps;
use crate::error::Error;

use super::guest::{CACHE, DATA_MIB, ENGINES, boot, figure, quantile, sorted};

/// Figures of an engine, their unit, and what ours may be of the disk's.
pub(super) const FIGURES: [(&str, &str, Target); 4] = [
    ("seconds of 64 MiB in order", "s", Target::AtMost(1.0 / 0.95)),
    ("a read that is not cached, median", "us", Target::AtMost(1.05)),
    ("a write, median", "us", Target::AtMost(1.05)),
    ("a write, 99 of 100", "us", Target::AtMost(1.5)),
];

/// Compares the engines.
///
/// # Errors
/// When a guest fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let rounds = session.request.alternations;
    let (target, program) = (session.target.clone(), session.terrace.program.clone());
    let figures = FIGURES.len() * ENGINES.len();
    let mut steps = Steps::open(&target, "boost-disk", &program, DATA_MIB, figures)?;
    let mut all = vec![vec![Vec::new(); FIGURES.len()]; ENGINES.len()];
    for round in 0..rounds {
        let step = steps.get(round, || one_round(session, round))?;
        for (values, value) in all.iter_mut().flatten().zip(&step.values) {
            values.push(*value);
        }
    }
    let alone = ENGINES.len() - 1;
    for (at, (what, unit, target)) in FIGURES.iter().enumerate() {
        for engine in 0..alone {
            let series = |engine: usize| Series::new(ENGINES[engine], &all[engine][at]);
            let target = (engine == 0).then_some(*target);
            session.record.add_against(what, unit, (series(engine), series(alone)), target)?;
        }
    }
    steps.end(&mut session.record, "rounds", rounds);
    Ok(())
}

fn one_round(session: &mut Session, round: usize) -> Result<(Vec<f64>, Vec<String>), Error> {
    let mut all = vec![Vec::new(); ENGINES.len()];
    for turn in 0..ENGINES.len() {
        let engine = (turn + round) % ENGINES.len();
        boot(session, "disk", &["disk.sh", ENGINES[engine], CACHE, DATA_MIB], None)?;
        let (reads, writes) = (sorted(session, "read_us")?, sorted(session, "write_us")?);
        all[engine] = vec![
            figure(session, "rate_s")?,
            quantile(&reads, 0.5),
            quantile(&writes, 0.5),
            quantile(&writes, 0.99),
        ];
    }
    Ok((all.concat(), Vec::new()))
}

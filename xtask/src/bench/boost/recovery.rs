//! The experiment of 2012 with files: hogs take all memory 25 times, and the clock runs until pages
//! of a file are as fast as before; from the disk alone, with a cache that has nothing yet, and
//! with one that has met the set several times, as in 2012 after many rounds.

use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::report::malformed;
use crate::bench::steps::Steps;
use crate::error::Error;

use super::guest::{CACHE, DATA_MIB, boot, lines};

/// Pages of the file that are used, in MiB.
const SET_MIB: &str = "24";
/// After so many rounds the cache is filled.
const ROUNDS: usize = 4;
/// The disk alone is the same in each round.
const ROUNDS_OF_DISK: usize = 1;
/// What the flash cache of 2012 gave: 155 s without it, 35 s with one that was well filled.
const ORIGINAL: f64 = 155.0 / 35.0;

/// Compares the three.
///
/// # Errors
/// When a guest fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let rounds = session.request.alternations;
    let parameters = format!("{SET_MIB} MiB, {ROUNDS} rounds, {CACHE}");
    let (target, program) = (session.target.clone(), session.terrace.program.clone());
    let mut steps = Steps::open(&target, "boost-recovery", &program, &parameters, 3)?;
    let mut all = vec![Vec::new(); 3];
    for round in 0..rounds {
        let step = steps.get(round, || one_round(session))?;
        for (values, value) in all.iter_mut().zip(&step.values) {
            values.push(*value);
        }
    }
    let [disk, poor, well] = &all[..] else { return Ok(()) };
    let what = "until pages of files are as fast as before 25 hogs";
    let record = &mut session.record;
    let pair = (Series::new("disk alone", disk), Series::new("well filled", well));
    record.add_against(what, "s", pair, Some(Target::AtLeast(ORIGINAL)))?;
    let pair = (Series::new("disk alone", disk), Series::new("new cache", poor));
    record.add_against(what, "s", pair, None)?;
    steps.end(&mut session.record, "rounds", rounds);
    Ok(())
}

fn one_round(session: &mut Session) -> Result<(Vec<f64>, Vec<String>), Error> {
    let disk = seconds(session, "none", ROUNDS_OF_DISK)?;
    let cached = seconds(session, "boost", ROUNDS)?;
    Ok((vec![disk[0], cached[0], cached[ROUNDS - 1]], Vec::new()))
}

fn seconds(session: &mut Session, engine: &str, rounds: usize) -> Result<Vec<f64>, Error> {
    let count = rounds.to_string();
    boot(session, "recovery", &["recover.sh", engine, CACHE, DATA_MIB, SET_MIB, &count], None)?;
    let all = lines(session, "seconds")?;
    if all.len() == rounds { Ok(all) } else { Err(malformed(format!("{all:?}: rounds"))) }
}

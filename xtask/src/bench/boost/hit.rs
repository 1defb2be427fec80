//! How long a hit takes where the cache is in memory, beside the loop device that it is on; and how
//! many bytes of programs a cache holds for each byte of its file.

use std::process::Command;
use std::time::Duration;

use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::report::malformed;
use crate::error::Error;
use crate::process;

const SCRIPT: &str = include_str!("host/hit.sh");
/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(600);

/// Measures both.
///
/// # Errors
/// Without root, loop devices, fio and python3.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let rounds = session.request.alternations;
    let (mut hits, mut loops, mut held) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        eprintln!("hit: {} of {rounds}", round + 1);
        hits.extend(figures(session, "hit", &["hit_us", "loop_us"])?);
        held.extend(figures(session, "capacity", &["held"])?);
    }
    let every_second = |from: usize| hits.iter().skip(from).step_by(2).copied().collect();
    let hit: Vec<f64> = every_second(0);
    loops.extend::<Vec<f64>>(every_second(1));
    let record = &mut session.record;
    let series = Series::new("terrace", &hit);
    let target = Some(Target::AtMost(100.0));
    record.add_alone("a hit of a cache in memory, median", "us", series, target)?;
    let pair = (Series::new("terrace", &hit), Series::new("its loop device", &loops));
    record.add_against("a hit of a cache in memory, median", "us", pair, None)?;
    let series = Series::new("terrace", &held);
    let target = Some(Target::AtLeast(1.8));
    record.add_alone("bytes of programs held for each byte", "", series, target)
}

/// What a run of the script prints under these names.
fn figures(session: &mut Session, what: &str, names: &[&str]) -> Result<Vec<f64>, Error> {
    let mut command = Command::new("bash");
    let directory = session.directory.file("hit");
    command.args(["-c", SCRIPT, "hit.sh"]).arg(&session.terrace.program).arg(&directory).arg(what);
    session.record.command(format!("bash hit.sh terrace DIRECTORY {what}"));
    let printed = process::run(command, LIMIT)?.success()?.stdout;
    let named = |name: &&str| {
        let mut pairs = printed.lines().filter_map(|line| line.split_once(' '));
        pairs.find(|(known, _)| known == name)?.1.parse().ok()
    };
    let all = names.iter().map(|name| named(name).ok_or_else(|| malformed(printed.clone())));
    all.collect()
}

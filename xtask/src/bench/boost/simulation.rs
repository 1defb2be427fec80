//! The engine of the flash cache in simulation: scenarios that are cut at every write and flush,
//! seeds with every kind of fault, and each safety rule left out until a wrong byte is found. The
//! example `simulate` of the crate `cache`, in release mode, runs them.

use std::time::Duration;

use crate::bench::Session;
use crate::bench::peer::Peer;
use crate::bench::record::{Series, Target};
use crate::bench::report::malformed;
use crate::error::Error;
use crate::{process, workspace};

/// Scenarios that are cut at each of their writes and flushes.
const SCENARIOS: &str = "200";

/// Seeds with faults.
const SEEDS: &str = "10000";

/// Seeds among which a broken rule is searched.
const SEARCHED: &str = "20000";

/// All cuts and seeds together take at most so long.
const SECONDS_MAX: f64 = 480.0;

/// A broken rule is found within so long.
const FOUND_SECONDS_MAX: f64 = 60.0;

/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(1200);

/// Runs them.
///
/// # Errors
/// When the program fails, or says something else than numbers.
pub(super) fn simulation(session: &mut Session) -> Result<(), Error> {
    let program = simulate(session)?;
    let mut seconds = 0.0;
    for (what, words) in [("cuts", ["cuts", SCENARIOS]), ("seeds", ["faults", SEEDS])] {
        session.record.command(program.command_line(&words));
        let printed = program.run(&words, LIMIT)?.stdout;
        let mut fields = printed.split_whitespace();
        let [wrong, taken_s] = [fields.next(), fields.next()].map(number);
        let (Some(wrong), Some(taken_s)) = (wrong, taken_s) else {
            return Err(malformed(format!("{what}: two numbers expected, not {printed:?}")));
        };
        seconds += taken_s;
        if wrong > 0.0 {
            session.record.note(format!("{what}: {}", printed.trim()));
        }
        let counted = fields.filter_map(|field| number(Some(field)));
        for (counted_as, value) in ["cuts", "hits", "frames that were warm"].iter().zip(counted) {
            let series = Series::new("simulate", &[value]);
            session.record.add_alone(&format!("{what}: {counted_as}"), "", series, None)?;
        }
        let title = format!("{what}: the first wrong byte or failed request");
        let series = Series::new("simulate", &[wrong]);
        session.record.add_alone(&title, "", series, Some(Target::AtMost(0.0)))?;
    }
    let series = Series::new("simulate", &[seconds]);
    let target = Some(Target::AtMost(SECONDS_MAX));
    session.record.add_alone("cuts and seeds together", "s", series, target)?;
    broken_rules(session, &program)
}

/// How long each broken rule goes unnoticed.
fn broken_rules(session: &mut Session, program: &Peer) -> Result<(), Error> {
    let words = ["broken", SEARCHED];
    session.record.command(program.command_line(&words));
    let printed = program.run(&words, LIMIT)?.stdout;
    for line in printed.lines() {
        let mut fields = line.splitn(3, ' ');
        let [is_found, taken_s] = [fields.next(), fields.next()].map(number);
        let (Some(is_found), Some(taken_s), Some(name)) = (is_found, taken_s, fields.next()) else {
            return Err(malformed(format!(
                "broken: two numbers and a name expected, not {line:?}"
            )));
        };
        let seconds = if is_found > 0.0 { taken_s } else { f64::INFINITY };
        let series = Series::new("simulate", &[seconds]);
        let target = Some(Target::AtMost(FOUND_SECONDS_MAX));
        let what = format!("found by what it does wrong: {name}");
        session.record.add_alone(&what, "s", series, target)?;
    }
    Ok(())
}

fn number(field: Option<&str>) -> Option<f64> {
    field?.parse().ok()
}

/// The program, built in release mode.
fn simulate(session: &mut Session) -> Result<Peer, Error> {
    let mut build = workspace::cargo(&session.root);
    build.args(["build", "--release", "--locked", "--quiet", "-p", "cache"]);
    build.args(["--example", "simulate"]).arg("--target-dir").arg(&session.target);
    process::run(build, Duration::from_secs(600))?.success()?;
    let peer = Peer {
        name: "simulate".to_owned(),
        program: session.target.join("release/examples/simulate"),
        version: None,
        environment: Vec::new(),
    };
    session.record.program(peer.clone());
    Ok(peer)
}

//! `terrace lab run recovery-2012 --flash` on this machine: databases on a modelled hard disk, with
//! a cache on a modelled stick that is new, with one that was filled, and with none; against the
//! figures of 2012. What the lab keeps stays below cargo's target directory.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use testkit::SlowDisk;

use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::report::malformed;
use crate::error::Error;
use crate::process;

const DISK_BYTES: u64 = 1 << 30;
const STICK_BYTES: u64 = 256 << 20;
const APPLICATIONS: [&str; 2] = ["sqlite", "postgresql"];
const KEPT: &str = "terrace-bench-boost-recovery";
/// Of all runs: each takes some minutes.
const LIMIT_OF_ROUND: Duration = Duration::from_secs(1200);
/// What the flash cache of 2012 gave: 155 s without it, 119 s with one that was little filled, 35 s
/// with one that was well filled.
const ORIGINAL: f64 = 155.0 / 35.0;

/// Runs the lab, which compares the ways in turns.
///
/// # Errors
/// Without root, FUSE, loop devices, and `SQLite` or `PostgreSQL`.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let rounds = session.request.alternations;
    let result = run(session, rounds)?;
    for application in APPLICATIONS {
        let of_way = |way: &str| of_way(&result, application, way);
        let [disk, new, filled] = ["nothing", "flash-new", "flash-filled"].map(of_way);
        let (disk, new, filled) = (disk?, new?, filled?);
        let what = format!("recovery-2012, {application}: until as fast as before the hogs");
        let record = &mut session.record;
        let pair = (Series::new("disk alone", &disk), Series::new("well filled", &filled));
        record.add_against(&what, "s", pair, Some(Target::AtLeast(ORIGINAL)))?;
        let pair = (Series::new("disk alone", &disk), Series::new("new cache", &new));
        record.add_against(&what, "s", pair, None)?;
    }
    let trials = result["trials"].as_array().into_iter().flatten();
    let wrong: Vec<f64> = trials.filter_map(|trial| trial["wrong"].as_f64()).collect();
    let none = Some(Target::AtMost(0.0));
    let record = &mut session.record;
    record.add_alone("recovery-2012: wrong rows", "rows", Series::new("lab", &wrong), none)?;
    record
        .notes
        .push(format!("recovery: results and recordings are in {KEPT}, in the target directory"));
    Ok(())
}

/// The lab's result.
fn run(session: &mut Session, rounds: usize) -> Result<Value, Error> {
    let failed = Error::Failed;
    let disk = SlowDisk::hdd(DISK_BYTES).map_err(failed)?;
    let stick = SlowDisk::modelled("usb", STICK_BYTES).map_err(failed)?;
    let (disk, stick) = (disk.as_ext4().map_err(failed)?, stick.as_ext4().map_err(failed)?);
    let kept = session.target.join(KEPT);
    let _ = fs::remove_dir_all(&kept);
    let options = format!(
        "--app {} --way nothing,flash-new,flash-filled --memory 64m --runs {rounds} --json",
        APPLICATIONS.join(",")
    );
    let mut command = Command::new(&session.terrace.program);
    command.args(["lab", "run", "recovery-2012"]).args(options.split(' '));
    command.arg("--disk").arg(disk.path()).arg("--flash").arg(stick.path()).arg("--out").arg(&kept);
    session.record.command(format!(
        "terrace lab run recovery-2012 {options} --disk DISK --flash STICK --out {KEPT}"
    ));
    let limit = LIMIT_OF_ROUND * u32::try_from(rounds).unwrap_or(u32::MAX);
    process::run(command, limit)?.success()?;
    let path = kept.join("result.json");
    let text = fs::read(&path).map_err(Error::io("read", &path))?;
    let printed: Value =
        serde_json::from_slice(&text).map_err(|error| malformed(error.to_string()))?;
    Ok(printed["result"].clone())
}

/// Seconds of each run of a way.
fn of_way(result: &Value, application: &str, way: &str) -> Result<Vec<f64>, Error> {
    let trials = result["trials"].as_array().into_iter().flatten();
    let own = trials.filter(|trial| trial["application"] == application && trial["way"] == way);
    let seconds: Option<Vec<f64>> =
        own.map(|trial| Some(trial["recovered_ns"].as_f64()? / 1e9)).collect();
    match seconds {
        Some(seconds) if !seconds.is_empty() => Ok(seconds),
        _ => Err(malformed(format!("{application}, {way}: not every run has a time"))),
    }
}

//! The hogs of one round: started, put into their group, let go, waited for.
//!
//! Each is owned by a guard that kills it, so that none outlives its round, whatever ends it.

use super::HogPlan;
use super::group::HogGroup;
use super::worker::{HogProgress, HogTask, PressureLimit};
use crate::Result;
use crate::helper::failed;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::Duration;
use sys::helper::{Helper, Received};

const OPERATION: &str = "start a hog";
/// Between two checks whether the hogs have ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// What a round of hogs did.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub finished: u32,
    pub killed: Vec<String>,
    pub touched_bytes: u64,
    pub pressure_reached: bool,
}

/// Runs the hogs of one round to their end, or until Ctrl-C.
///
/// # Errors
/// `Failed` where no process can be started or moved.
pub(super) fn round(
    plan: &HogPlan,
    number: u32,
    group: Option<&HogGroup>,
    pressure_file: Option<&PathBuf>,
) -> Result<Round> {
    let until = plan
        .until_pressure_percent
        .zip(pressure_file)
        .map(|(percent, file)| PressureLimit { percent, file: file.clone() });
    let mut hogs = Vec::new();
    for index in 0..plan.count {
        let work = HogTask {
            bytes: plan.size.0,
            hold: plan.hold,
            content: plan.content,
            touch: plan.touch,
            seed: u64::from(number) << 32 | u64::from(index),
            until: until.clone(),
        };
        hogs.push((Hog::start(plan, group)?, work));
    }
    let mut running = Vec::new();
    for (mut hog, work) in hogs {
        // A hog that cannot receive it has ended; its ending says why.
        let _ = hog.helper.send(&work);
        running.push(hog);
    }
    wait_for_all(&mut running)?;
    let mut round = Round::default();
    for hog in running {
        round.add(hog)?;
    }
    Ok(round)
}

/// A hog's process and its last report.
struct Hog {
    helper: Helper,
    done: HogProgress,
}

impl Hog {
    /// Starts a hog that waits for its work, inside of its group.
    fn start(plan: &HogPlan, group: Option<&HogGroup>) -> Result<Self> {
        let helper = Helper::start(&plan.helper).map_err(failed(OPERATION))?;
        if let Some(group) = group {
            helper.join(group.directory()).map_err(failed("put a hog into its group"))?;
        }
        let done = HogProgress::default();
        Ok(Self { helper, done })
    }

    /// Takes the reports that have arrived.
    fn receive_reports(&mut self) -> Result<()> {
        let mut receive = || self.helper.receive(Duration::ZERO);
        while let Received::Message(done) = receive().map_err(failed("read a hog's report"))? {
            self.done = done;
        }
        Ok(())
    }
}

/// Waits until all have ended; Ctrl-C ends them.
fn wait_for_all(hogs: &mut [Hog]) -> Result<()> {
    loop {
        let mut running = false;
        for hog in hogs.iter_mut() {
            hog.receive_reports()?;
            let ended = hog.helper.has_ended().map_err(failed("wait for a hog"))?;
            running |= !ended;
            if !ended && sys::interrupt::requested() {
                hog.helper.kill();
            }
        }
        if !running {
            return Ok(());
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
}

impl Round {
    /// Adds what a hog that has ended has done.
    fn add(&mut self, mut hog: Hog) -> Result<()> {
        hog.receive_reports()?;
        let ending = hog.helper.wait().map_err(failed("wait for a hog"))?;
        self.touched_bytes += hog.done.touched_bytes;
        self.pressure_reached |= hog.done.pressure_reached;
        let touched = model::Bytes(hog.done.touched_bytes);
        let status = ending.status;
        match status.signal() {
            None if status.success() => self.finished += 1,
            // Ended by Ctrl-C, which the report of the whole says.
            _ if sys::interrupt::requested() => {}
            Some(number) => self.killed.push(format!("ended by signal {number} after {touched}")),
            None => self.killed.push(ending.error_text.unwrap_or_else(|| status.to_string())),
        }
        Ok(())
    }
}

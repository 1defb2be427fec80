//! The hogs of one round: started, put into their group, let go, waited for.
//!
//! Each is owned by a guard that kills it, so that none outlives its round, whatever ends it;
//! that a hog ends with this process even if that is killed is the hog's own part.

use super::Plan;
use super::group::Group;
use super::worker::{Done, Until, Work};
use crate::helper::Helper;
use crate::{Error, ErrorKind, Result};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::Duration;

const OPERATION: &str = "start a hog";
/// Between two looks whether the hogs have ended.
const LOOK: Duration = Duration::from_millis(5);
/// What is read of a hog's words: it says at most 256 lines.
const MOST_WORDS: u64 = 64 << 10;

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
    plan: &Plan,
    number: u32,
    group: Option<&Group>,
    pressure_file: Option<&PathBuf>,
) -> Result<Round> {
    let until = plan.until_pressure_percent.zip(pressure_file);
    let until = until.map(|(percent, file)| Until {
        percent,
        file: file.clone(),
    });
    let mut hogs = Vec::new();
    for index in 0..plan.count {
        let work = Work {
            bytes: plan.size.0,
            hold: plan.hold,
            content: plan.content,
            touch: plan.touch,
            seed: u64::from(number) << 32 | u64::from(index),
            until: until.clone(),
        };
        hogs.push((start(plan, group)?, work));
    }
    let mut running = Vec::new();
    for (mut hog, work) in hogs {
        let_go(&mut hog, &work)?;
        running.push(hog);
    }
    wait_for_all(&mut running)?;
    let mut round = Round::default();
    for hog in running {
        round.add(hog)?;
    }
    Ok(round)
}

/// A hog that waits for its work, inside of its group.
fn start(plan: &Plan, group: Option<&Group>) -> Result<Helper> {
    let hog = Helper::start(&plan.helper, OPERATION)?;
    if let Some(group) = group {
        group.add(hog.0.id())?;
    }
    Ok(hog)
}

/// Tells the hog what to do. One that cannot hear it has ended, and says why at its end.
fn let_go(hog: &mut Helper, work: &Work) -> Result<()> {
    let words = serde_json::to_vec(work)
        .map_err(|error| Error::caused(ErrorKind::Failed, OPERATION, error))?;
    if let Some(mut input) = hog.0.stdin.take() {
        let _ = input.write_all(&words);
    }
    Ok(())
}

/// Until all have ended; Ctrl-C ends them.
fn wait_for_all(hogs: &mut [Helper]) -> Result<()> {
    loop {
        let mut running = false;
        for hog in hogs.iter_mut() {
            let ended = hog
                .0
                .try_wait()
                .map_err(|error| Error::caused(ErrorKind::Failed, "wait for a hog", error))?;
            running |= ended.is_none();
            if ended.is_none() && sys::interrupt::requested() {
                let _ = hog.0.kill();
            }
        }
        if !running {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}

impl Round {
    /// Adds what a hog that has ended has done.
    fn add(&mut self, mut hog: Helper) -> Result<()> {
        let status = hog
            .0
            .wait()
            .map_err(|error| Error::caused(ErrorKind::Failed, "wait for a hog", error))?;
        let last = words_of(hog.0.stdout.take());
        let done: Option<Done> = last.and_then(|line| serde_json::from_str(&line).ok());
        let done = done.unwrap_or_default();
        self.touched_bytes += done.touched_bytes;
        self.pressure_reached |= done.pressure_reached;
        let touched = model::Bytes(done.touched_bytes);
        match status.signal() {
            None if status.success() => self.finished += 1,
            // Ended by Ctrl-C, which is told of the whole.
            _ if sys::interrupt::requested() => {}
            Some(number) => self
                .killed
                .push(format!("ended by signal {number} after {touched}")),
            None => self
                .killed
                .push(words_of(hog.0.stderr.take()).unwrap_or_else(|| status.to_string())),
        }
        Ok(())
    }
}

/// The last whole line of what a hog that has ended said.
fn words_of(source: Option<impl Read>) -> Option<String> {
    let mut text = String::new();
    source?.take(MOST_WORDS).read_to_string(&mut text).ok()?;
    let lines = text.strip_suffix('\n')?;
    lines.lines().next_back().map(str::to_owned)
}

//! `terrace advise`: what more memory would have spared of the waits in recordings, or in the time
//! that is recorded for it. The crate `explain` judges; this file reads and records.

use super::record_options::{self, of_advise};
use crate::args::When;
use crate::args::advise::AdviseArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::progress::Progress;
use crate::output::prose::long_time;
use crate::output::{OutputTarget, Page, advise as shown, json};
use explain::advice::{AdviceRequest, Observation, advise as judge, observe};
use record::capture;
use std::time::Duration;

/// Judges, and delivers the advice.
///
/// # Errors
/// If a recording cannot be read, or none can be made.
pub fn advise(args: &AdviseArgs, color: When) -> Result<Exit> {
    let target = OutputTarget::of(args.output.as_deref())?;
    let page = Page::of(&target, color);
    let observations = match args.record {
        Some(duration) => vec![recorded(duration)?],
        None => read(args)?,
    };
    let request = AdviceRequest { more_bytes: args.ram.clone() };
    let advice = judge(&observations, &request);
    let text = if args.json { json::render(&advice)? } else { shown::page(&advice, page) };
    target.write(&text)?;
    Ok(Exit::Done)
}

/// One at a time: a recording may be a thousand times as large as what is kept of it.
fn read(args: &AdviseArgs) -> Result<Vec<Observation>> {
    let mut observations = Vec::new();
    for file in &args.files {
        observations.push(observe(&super::open_recording(file)?));
    }
    Ok(observations)
}

/// Records this machine, in memory.
fn recorded(duration: Duration) -> Result<Observation> {
    let for_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let progress = Progress::new();
    progress.step(&format!(
        "terrace advise: records this machine for {}, Ctrl-C ends it earlier",
        long_time(for_ns)
    ));
    let target = record_options::machine();
    let captured = capture::watch(&target, Some(for_ns), &of_advise())?;
    drop(progress);
    Ok(observe(&captured.recording))
}

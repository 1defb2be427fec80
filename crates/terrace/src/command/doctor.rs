//! `terrace doctor`: tries every source that commands read, and says which work, which do not and
//! what would allow them.
//!
//! 1. `record` tries what a recording needs, by the code that records; the files below this one try
//!    the rest, one a family.
//! 2. `surroundings` says what this process is, `denials` what security modules refused.
//! 3. `explain::doctor` judges, `output::doctor` writes.
//!
//! No setting is changed and nothing is left.

mod denials;
mod devices;
mod memory;
mod pressure;
mod surroundings;

use crate::args::When;
use crate::args::doctor::DoctorArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::doctor::{DoctorResult, page};
use crate::output::progress::Progress;
use crate::output::{OutputTarget, Page, json};
use machine::Root;
use model::doctor::{KnownObstacle, SourceAttempt, SourceId, SourceRefusal, SourceReport};
use std::collections::BTreeMap;

/// Tries everything, and prints what came of it. The status is `Partial` if something is missing
/// that one of the printed lines would allow.
///
/// # Errors
/// When the report cannot be written.
pub fn doctor(args: &DoctorArgs, color: When) -> Result<Exit> {
    let target = OutputTarget::of(args.output.as_deref())?;
    let progress = Progress::new();
    progress.step("terrace doctor: tries what this machine allows");
    let result = examine(&Root::system());
    drop(progress);
    let text =
        if args.json { json::render(&result)? } else { page(&result, Page::of(&target, color)) };
    target.write(&text)?;
    let is_short = result.sources.iter().any(SourceReport::can_be_allowed);
    Ok(if is_short { Exit::Partial } else { Exit::Done })
}

fn examine(root: &Root) -> DoctorResult {
    let start_unix_s = denials::now_unix_s();
    // The recording comes last: it locks memory for a moment.
    let mut attempts: BTreeMap<SourceId, SourceAttempt> = BTreeMap::new();
    attempts.extend(pressure::examine(root));
    attempts.extend(memory::examine(root));
    attempts.extend(devices::examine(root));
    attempts.extend(record::capture::examine_sources());
    let surroundings = surroundings::read(root);
    let sources = explain::doctor::judge(&attempts, &surroundings);
    let summary = explain::doctor::summary(&sources);
    // After all attempts, whose denials are in it then.
    let (denials, messages) = denials::read(&surroundings, start_unix_s);
    DoctorResult::new(summary, surroundings, sources).with_denials(denials, messages)
}

/// An attempt that succeeded, with what was seen.
fn works(seen: impl Into<String>) -> SourceAttempt {
    SourceAttempt { seen: seen.into(), ..SourceAttempt::default() }
}

/// An attempt that is permitted, with nothing to see.
fn idle(seen: impl Into<String>) -> SourceAttempt {
    SourceAttempt { seen: seen.into(), is_idle: true, ..SourceAttempt::default() }
}

/// A refusal without a number, with what is known to be in the way.
fn closed(why: impl Into<String>, known: KnownObstacle) -> SourceAttempt {
    let refusal = SourceRefusal { why: why.into(), known: Some(known), ..SourceRefusal::default() };
    SourceAttempt { refusals: vec![refusal], ..SourceAttempt::default() }
}

/// A refusal by the kernel.
fn refused(error: &sys::Error) -> SourceAttempt {
    SourceAttempt { refusals: vec![refusal(error)], ..SourceAttempt::default() }
}

fn refusal(error: &sys::Error) -> SourceRefusal {
    let path = error.path.as_ref().map(|path| path.display().to_string());
    SourceRefusal { why: error.to_string(), errno: error.number(), path, known: None }
}

/// What an attempt came to: `seen` if it succeeded.
fn attempt<T>(answer: sys::Result<T>, seen: impl FnOnce(T) -> String) -> SourceAttempt {
    match answer {
        Ok(answer) => works(seen(answer)),
        Err(error) => refused(&error),
    }
}

/// What was seen although a part of it is refused.
fn partly(seen: impl Into<String>, error: &sys::Error) -> SourceAttempt {
    SourceAttempt { refusals: vec![refusal(error)], ..works(seen) }
}

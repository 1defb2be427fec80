//! `terrace record`: watches what runs already, and says in one line what was recorded.
//! It judges nothing: `explain` does, later and as often as one likes. `terrace mark` adds a mark
//! to every running recording of this user; without any it fails, so no mark is lost silently.

mod attempted;

use super::{record_options, recorder_ring};
use crate::args::MarkArgs;
use crate::args::When;
use crate::args::record::RecordArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::clean::escaped;
use crate::output::figure::{self, Digits};
use crate::output::progress::Progress;
use crate::output::prose::{count, long_time, shell_word};
use crate::output::{self, OutputTarget};
use crate::service::Service;
use model::doctor::POINTER;
use model::recording::{Recording, SourceState};
use record::capture::{self, Captured, RecordOptions, WatchEvent};
use record::trace::{ACCESSES_KEPT, Family};
use std::path::Path;
use std::time::Duration;

/// Said at the start where Ctrl-C and SIGINT have no effect.
const SIGINT_IGNORED: &str =
    "SIGINT is ignored here (started in the background of a shell): end it with SIGTERM";

/// Records, and prints what came of it.
///
/// # Errors
/// When the target is not there, or the file cannot be written.
pub fn record(args: &RecordArgs, color: When) -> Result<Exit> {
    if args.attempt {
        return attempted::record(args, color);
    }
    let output = args.output.clone().map_or_else(recorder_ring::to_write, Ok)?;
    let mut watch = RecordOptions {
        keep_ns: args.keep.map(nanoseconds),
        keep_bytes: args.keep_bytes.0,
        ..record_options::of_command(&args.watch, Some(output.clone()))?
    };
    if let Some(bytes) = args.accesses {
        record_options::keep_accesses(&mut watch, bytes)?;
    }
    let target = record_options::target(&args.target);
    let progress = Progress::new();
    let file = output.display();
    progress.step(&format!("terrace record: to {file}, Ctrl-C ends it"));
    let is_sigint_ignored = sys::interrupt::is_sigint_ignored()?;
    let for_ns = args.duration.map(nanoseconds);
    let mut service = args.keep.map(|_| start_service(&output));
    let captured = capture::watch_reporting(&target, for_ns, &watch, |event| {
        match event {
            WatchEvent::Started if is_sigint_ignored => output::announce("record", SIGINT_IGNORED),
            WatchEvent::Text(text) => output::announce("record", text),
            _ => {}
        }
        let Some(service) = &mut service else { return };
        match event {
            WatchEvent::Started => service.ready(&format!("records to {file}")),
            WatchEvent::Alive => service.turn(),
            WatchEvent::Text(text) => service.status(text),
        }
    })?;
    drop(service);
    drop(progress);
    let file = captured.file.as_deref().unwrap_or(&output).to_owned();
    let mut lacks: Vec<String> = lack(&captured.recording).into_iter().collect();
    if args.accesses.is_some() {
        match accesses_kept(&captured.recording) {
            Ok(text) => output::announce("record", &text),
            Err(why) => lacks.push(why),
        }
    }
    OutputTarget::standard().write(&summary(&captured, &file))?;
    match (!lacks.is_empty()).then(|| lacks.join("; ")) {
        Some(text) => Ok(output::complain(&Error::new(Exit::Partial, text).during("record"))),
        None => Ok(Exit::Done),
    }
}

/// Adds the mark.
///
/// # Errors
/// `Impossible` if no recording runs.
pub fn mark(args: &MarkArgs) -> Result<Exit> {
    let recordings = record::capture::mark(&args.text.join(" "))?;
    if recordings == 0 {
        let error = Error::new(Exit::Impossible, "no recording of yours runs now");
        return Err(error.hint("start one: terrace record -o FILE.trec, or terrace run -- CMD"));
    }
    let noun = if recordings == 1 { "recording" } else { "recordings" };
    Ok(output::show(&format!("marked {recordings} {noun}\n")))
}

/// The frame of a flight recorder, which runs for days.
fn start_service(output: &Path) -> Service {
    let (service, fault) = Service::start("record", output.display().to_string());
    if let Some(fault) = fault {
        output::announce("record", &format!("no status socket: {fault}"));
    }
    service
}

/// What became of the accesses, or why none were kept.
pub(super) fn accesses_kept(recording: &Recording) -> std::result::Result<String, String> {
    let sight = recording.facts.sight(Family::Accesses.sight());
    if let SourceState::Closed { why, remedy } = sight {
        let remedy = remedy.as_ref().map(|remedy| format!(" ({remedy})")).unwrap_or_default();
        return Err(format!("no accesses were kept: {why}{remedy}; {POINTER}"));
    }
    let said = recording.spans.iter().rfind(|span| span.kind == ACCESSES_KEPT);
    said.map(|span| span.text.clone()).ok_or_else(|| "no accesses were kept".to_owned())
}

/// What the recording lacks, if it is not all that was asked for.
fn lack(recording: &Recording) -> Option<String> {
    let Some(outcome) = &recording.outcome else {
        let why = recording.damage.first().map_or("its end is missing", |why| why);
        return Some(format!("the recording is not whole: {why}"));
    };
    if let Some(why) = &outcome.stopped_early {
        return Some(format!("the recording ended early: {why}"));
    }
    (outcome.lost_samples > 0).then(|| {
        let samples = count(outcome.lost_samples);
        let time = long_time(outcome.lost_ns);
        format!("{samples} samples in {time} were lost for lack of space")
    })
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// `x.trec: 30 s, 301 samples, 38 KiB, 0.3 % of a core` and what to do with it.
fn summary(captured: &Captured, file: &Path) -> String {
    let recording = &captured.recording;
    let samples = count(recording.ticks.len() as u64);
    let mut parts = vec![long_time(recording.wall_ns()), format!("{samples} samples")];
    parts.extend(size_of(file).map(|bytes| figure::binary_size(bytes, Digits::Two)));
    parts.extend(own_share(recording).map(|share| format!("{} of a core", figure::percent(share))));
    let name = file.display();
    let word = shell_word(&name.to_string());
    format!(
        "{}: {}\nLook at it: terrace explain {word}\n",
        escaped(&name.to_string()),
        parts.join(", ")
    )
}

fn own_share(recording: &Recording) -> Option<f64> {
    let outcome = recording.outcome.as_ref()?;
    let wall_ns = recording.wall_ns();
    (wall_ns > 0).then(|| outcome.own_cpu_ns as f64 / wall_ns as f64)
}

/// The bytes of a file, or of the files in a directory.
fn size_of(path: &Path) -> Option<u64> {
    let what = std::fs::metadata(path).ok()?;
    if !what.is_dir() {
        return Some(what.len());
    }
    let entries = std::fs::read_dir(path).ok()?.flatten();
    Some(entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum())
}

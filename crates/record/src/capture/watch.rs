//! Watching what runs already, until it ends, its time is over, or a signal asks for the end.
//!
//! The subject is not touched: no signal is sent to it, and it cannot notice the recorder.

use super::sampler::{Assignment, Ended, RecordingPurpose};
use super::target::{self, TargetEnd};
use super::{Captured, RecordOptions, Target, destination, process_cpu_ns};
use crate::Result;
use model::recording::Ending;
use std::os::fd::AsFd;

/// How often a request for the end is looked for: a person does not notice it.
const LOOK_NS: u64 = 50_000_000;

/// Watches what runs already until it ends, `for_ns` is over, or a signal asks for the end
/// (where the program has installed [`sys::interrupt`]).
///
/// # Errors
/// [`crate::ErrorKind::Usage`] when the target is not there; others when the recording cannot be
/// made.
pub fn watch(target: &Target, for_ns: Option<u64>, watch: &RecordOptions) -> Result<Captured> {
    watch_reporting(target, for_ns, watch, |_| ())
}

/// What [`watch_reporting`] reports while it records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEvent<'a> {
    /// The first sample is taken.
    Started,
    /// The sampler has gone round its loop since the last event: it does not hang.
    Alive,
    /// A line for a person.
    Text(&'a str),
}

/// As [`watch`]; reports what happens meanwhile. It ends also when nothing more can be recorded.
///
/// # Errors
/// As [`watch`].
pub fn watch_reporting(
    target: &Target,
    for_ns: Option<u64>,
    watch: &RecordOptions,
    mut report: impl FnMut(WatchEvent<'_>),
) -> Result<Captured> {
    let cpu_before_ns = process_cpu_ns();
    super::check(watch)?;
    let found = target::find(target)?;
    let work = super::start_work(watch, false)?;
    let applied = super::apply(watch)?;
    let sampler = destination::start_sampler(Assignment {
        watch: watch.clone(),
        facts: super::facts(watch, found.subject),
        watched: found.watched,
        work,
        purpose: RecordingPurpose::File,
        cpu_before_ns,
    })?;
    let until_ns = for_ns.map(|for_ns| sys::clock::now_ns().saturating_add(for_ns));
    report(WatchEvent::Started);
    let mut turns = sampler.turns();
    wait(&found.end, until_ns, || {
        let is_recording = sampler.hear(|text| report(WatchEvent::Text(text)));
        if sampler.turns() != turns {
            turns = sampler.turns();
            report(WatchEvent::Alive);
        }
        is_recording
    });
    let at_ns = Some(sys::clock::now_ns());
    sampler.take_last_sample();
    let recording = sampler.close(Ended { at_ns, ..Ended::default() })?;
    drop(applied);
    let file = watch.output.clone();
    Ok(Captured { recording, file, ending: Ending::Stopped })
}

/// Waits for the first thing that ends the recording; one is that it is over by itself.
fn wait(end: &TargetEnd, until_ns: Option<u64>, mut is_recording: impl FnMut() -> bool) {
    loop {
        let now_ns = sys::clock::now_ns();
        let left_ns = until_ns.map_or(u64::MAX, |until_ns| until_ns.saturating_sub(now_ns));
        if left_ns == 0 || sys::interrupt::requested() || !is_recording() {
            return;
        }
        let process = match end {
            TargetEnd::Never => None,
            TargetEnd::Process(process) => Some(process.as_fd()),
            TargetEnd::Group(directory) if directory.exists() => None,
            TargetEnd::Group(_) => return,
        };
        if let [true] = sys::poll::readable([process], Some(left_ns.min(LOOK_NS))) {
            return;
        }
    }
}

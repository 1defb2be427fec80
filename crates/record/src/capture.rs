//! Watching: a command that is started for it, a process, a group, or the machine.
//!
//! One thread samples at a steady rate and owns every source; the caller's thread waits for
//! the subject's end and passes signals on. What was recorded goes to a file, to a ring of
//! files, or stays in memory; it is read back by the same reader in all cases.

mod background;
mod burst;
mod command;
mod day_clock;
mod destination;
mod group;
mod live;
mod marks;
mod out_of_memory;
mod own_gauges;
mod pace;
mod progress_notes;
mod recent;
mod sampler;
mod servers;
mod shown_sink;
mod sources;
mod target;
mod watch;

pub use background::BackgroundRecording;
pub use command::command;
pub use day_clock::DayClock;
pub use live::Live;
pub use marks::{MAX_MARK_BYTES, mark};
pub use recent::Keep;
pub use sources::examine_sources;
pub use watch::{WatchEvent, watch, watch_reporting};

use crate::file::KeptBytes;
use crate::run_directory;
use crate::trace::Family;
use crate::work::{WorkCounter, WorkSpec};
use crate::{Error, ErrorKind, Result};
use marks::MarkSocket;
use model::GaugeSet;
use model::machine::MachineFacts;
use model::recording::{
    Ending, Facts, NewMemoryPrice, Recording, RecordingOutcome, SourceState, Subject,
    SurveyedDevice,
};
use sampler::RecordingPurpose;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use undo::AppliedChange;

/// The rates that can be asked for: below one a second nothing is seen in time, above a
/// hundred the recorder itself shows.
pub const RATES_HZ: std::ops::RangeInclusive<u32> = 1..=100;

/// How to watch.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Samples a second, see [`RATES_HZ`].
    pub rate_hz: u32,
    /// Whether pressure may raise the rate for a while.
    pub burst: bool,
    /// Which events to reduce, where the user may.
    pub families: Vec<Family>,
    /// Whether to switch `kernel.task_delayacct` on for the time of the recording.
    pub apply: bool,
    /// The file to write; it must not exist unless `force`. In memory where absent.
    pub output: Option<PathBuf>,
    /// Where the bytes of a recording in memory are put when it is over, with its accesses.
    pub kept_bytes: Option<KeptBytes>,
    /// Whether an existing recording (never another file) may be replaced.
    pub force: bool,
    /// What must be longest ago in a ring of files; `output` is then its directory.
    pub keep_ns: Option<u64>,
    /// The most bytes that a ring may take.
    pub keep_bytes: u64,
    /// The most bytes that single accesses may take, where [`Family::Accesses`] is among the
    /// families. A ring keeps none.
    pub access_bytes: u64,
    /// The machine, as the caller found it; goes into the facts.
    pub machine: Option<MachineFacts>,
    /// What a survey has of memory that was never touched; goes into the facts.
    pub new_memory: Option<NewMemoryPrice>,
    /// What surveys have of devices; goes into the facts.
    pub surveyed_devices: Vec<SurveyedDevice>,
    /// What counts the work of the subject.
    pub work: Option<WorkSpec>,
    /// What this program counts of itself while it works, sampled with all else.
    pub gauges: Option<Arc<dyn GaugeSet>>,
    /// What the recording is dated by.
    pub clock: DayClock,
}

impl Default for RecordOptions {
    /// Ten samples a second, in memory, nothing changed on the machine.
    fn default() -> Self {
        Self {
            rate_hz: 10,
            burst: false,
            families: Vec::new(),
            apply: false,
            output: None,
            kept_bytes: None,
            force: false,
            keep_ns: None,
            keep_bytes: u64::MAX,
            access_bytes: 0,
            machine: None,
            new_memory: None,
            surveyed_devices: Vec::new(),
            work: None,
            gauges: None,
            clock: DayClock::default(),
        }
    }
}

/// A command to start and watch.
#[derive(Clone, Debug)]
pub struct CommandPlan {
    /// Its words, program first; never empty.
    pub argv: Vec<OsString>,
    /// Whether it may get a control group of its own.
    pub own_group: bool,
    /// How to watch it.
    pub watch: RecordOptions,
}

/// Something that runs already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The machine.
    Machine,
    /// A process and its children.
    Process(u32),
    /// A control group, by its path below its hierarchy or its directory.
    Group(PathBuf),
    /// A unit of the service manager.
    Unit(String),
}

/// A recording that is over.
#[derive(Debug)]
pub struct Captured {
    /// What was recorded.
    pub recording: Recording,
    /// The file that holds it.
    pub file: Option<PathBuf>,
    /// How a command ended, by the kernel's own word: never read from the recording.
    pub ending: Ending,
}

/// What recorders of this user that were killed have left beside their settings: the socket on
/// which they received marks, and the control group of their command. With `remove`, it is removed,
/// and what could not be is not named. The next recorder removes these as well; `terrace undo` does
/// not wait for it.
#[must_use]
pub fn leftovers(remove: bool) -> Vec<PathBuf> {
    let directory = run_directory::existing().ok().flatten();
    let mut found = directory.map_or_else(Vec::new, |held| marks::of_the_dead(&held, remove));
    found.extend(group::of_the_dead(remove));
    found
}

/// Refuses what makes no sense, before anything is opened.
fn check(watch: &RecordOptions) -> Result<()> {
    if RATES_HZ.contains(&watch.rate_hz) {
        return Ok(());
    }
    let (least, most) = (RATES_HZ.start(), RATES_HZ.end());
    let why = format!("the rate must be {least} to {most} samples a second");
    Err(Error::new(ErrorKind::Usage, "watch", why))
}

/// Switches on what counts the waits, if that was asked for; what is given goes back with it.
fn apply(watch: &RecordOptions) -> Result<Option<AppliedChange>> {
    let applied = watch.apply.then(AppliedChange::delay_accounting);
    Ok(applied.transpose()?)
}

/// Begins to read the counter of work, if there is one. Before all else: a process that it starts
/// is then known as this program's own.
fn start_work(watch: &RecordOptions, may_appear: bool) -> Result<Option<WorkCounter>> {
    let started = watch.work.as_ref().map(|spec| WorkCounter::start(spec, may_appear));
    started.transpose()
}

/// The facts that no source knows.
fn facts(watch: &RecordOptions, subject: Subject) -> Facts {
    let unix_s = watch.clock.now_ns() / 1_000_000_000;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Facts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        utc_offset_s: sys::local_time::utc_offset_s(unix_s.cast_signed()),
        subject,
        machine: watch.machine.clone(),
        new_memory: watch.new_memory.clone(),
        surveyed_devices: watch.surveyed_devices.clone(),
        processors: u32::try_from(processors).unwrap_or(u32::MAX),
        page_bytes: sys::process::page_bytes() as u64,
        rate_hz: watch.rate_hz,
        root: sys::process::effective_uid() == 0,
        ..Facts::default()
    }
}

/// Opens the socket for marks; the sight says why it could not be opened.
fn listen_for_marks() -> (Option<MarkSocket>, SourceState) {
    match MarkSocket::open() {
        Ok(socket) => (Some(socket), SourceState::Open),
        Err(error) => (None, SourceState::closed(error.to_string(), None)),
    }
}

/// Gives the calling thread real-time priority and locks its memory, if permitted. Not beside a
/// probe, whose figures would change.
fn prioritize_thread(purpose: RecordingPurpose, facts: &mut Facts) {
    let sights = if purpose == RecordingPurpose::Probe {
        let why = "a probe of this process is measured beside it";
        [("realtime", SourceState::closed(why, None)), ("locked", SourceState::closed(why, None))]
    } else {
        let sight = |answer: sys::Result<()>, right| match answer {
            Ok(()) => SourceState::Open,
            Err(error) => SourceState::closed(sys::plain_reason(&error.source), Some(right)),
        };
        let realtime = sys::scheduling::realtime(sys::scheduling::SAMPLER_PRIORITY);
        let locked = sys::scheduling::lock_memory();
        [
            ("realtime", sight(realtime, "sudo, or ulimit -r 10")),
            ("locked", sight(locked, "sudo, or ulimit -l unlimited")),
        ]
    };
    for (name, sight) in sights {
        facts.sights.insert(name.to_owned(), sight);
    }
}

/// A recording of which only the ends are known.
fn without_samples(facts: Facts, outcome: RecordingOutcome, damage: Option<String>) -> Recording {
    Recording {
        damage: damage.into_iter().collect(),
        outcome: Some(outcome),
        facts,
        ..Recording::default()
    }
}

/// CPU time of this process until now.
fn process_cpu_ns() -> u64 {
    let used = sys::usage::process().unwrap_or_default();
    used.cpu_ns()
}

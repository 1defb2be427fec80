//! What a recorder can see here, tried for real: a recording of the machine of a fifth of a second
//! in memory, and rings of samples as well.
//!
//! The same code opens the sources as for `record` and `run`, so that this and they cannot
//! disagree. Where the recorder says that a source is closed, the kernel is asked again for the
//! error number. Nothing is left: what root's first recording of a boot keeps in the run directory
//! is removed, if it was not there before.

use super::sampler::{Assignment, Ended, RecordingPurpose};
use super::{RecordOptions, Target, destination, group, target};
use crate::Result;
use crate::registry::Registry;
use crate::run_directory;
use crate::tasks::DELAY_SWITCH;
use crate::trace::{Family, IN_KERNEL, Tracer, kernel_functions};
use machine::others::processes_of_others;
use machine::{Root, mounts};
use model::doctor::{KnownObstacle, SourceAttempt, SourceId, SourceRefusal};
use model::recording::{Facts, SourceState, Subject};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use sys::perf::{self, Attributes, EventSource};
use sys::taskstats::Connection;
use sys::tracefs::Tracefs;

/// Long enough for a sample after the first one.
const RECORDING_TIME: Duration = Duration::from_millis(200);
/// Between two samples of a processor, where the kernel is asked for one alone.
const PERIOD_NS: u64 = 10_000_000;
/// Processes that are asked for besides process 1.
const OTHERS_MAX: usize = 16;
const TRACING: &str = "/sys/kernel/tracing";

/// What the recording follows.
const FAMILIES: [Family; 8] = [
    Family::Sched,
    Family::Block,
    Family::Vmscan,
    Family::Writeback,
    Family::Cpu,
    Family::Who,
    Family::Faults,
    Family::Hits,
];
/// What comes through rings of samples.
const RING_FAMILIES: [Family; 4] =
    [Family::Sched, Family::Block, Family::Vmscan, Family::Writeback];

/// Tries every source of a recording. What one does not answer is in its refusal.
#[must_use]
pub fn examine_sources() -> BTreeMap<SourceId, SourceAttempt> {
    let kept = KeptFiles::note();
    let sights = match recorded() {
        Ok(facts) => facts.sights,
        Err(error) => closed_by(&error),
    };
    // The sampler locked the memory of this process.
    let _ = sys::scheduling::unlock_memory();
    let (tracer, ring_sights) = Tracer::open_rings(&RING_FAMILIES, None, &mut Registry::new());
    drop(tracer);
    let attempts = BTreeMap::from([
        (SourceId::Ebpf, programs(&sights)),
        (SourceId::Tracepoints, tracepoints(&ring_sights)),
        (
            SourceId::ProcessorSamples,
            of_sight(&sights, Family::Cpu.sight(), "processors were sampled", || {
                open_event(EventSource::ProcessorClock(PERIOD_NS))
            }),
        ),
        (
            SourceId::PageFaults,
            of_sight(&sights, Family::Faults.sight(), "page faults are counted", || {
                open_event(EventSource::PageFaults)
            }),
        ),
        (
            SourceId::PageHits,
            of_sight(&sights, Family::Hits.sight(), "reads of the page cache are seen", || {
                sys::bpf::examine_right()?;
                Tracefs::open()?.tracepoint("filemap", "mm_filemap_get_pages").map(drop)
            }),
        ),
        (SourceId::KernelSymbols, kernel_symbols()),
        (
            SourceId::Taskstats,
            of_sight(&sights, "exits", "the kernel reports threads that end", || {
                Connection::open()?.listen("0")
            }),
        ),
        (SourceId::DelayAccounting, delay_accounting(&sights)),
        (SourceId::OtherProcesses, other_processes(&sights)),
        (
            SourceId::RealTime,
            of_sight(&sights, "realtime", "the sampler got it", || {
                sys::scheduling::realtime(sys::scheduling::SAMPLER_PRIORITY)?;
                sys::scheduling::ordinary()
            }),
        ),
        (
            SourceId::LockedMemory,
            of_sight(&sights, "locked", "the sampler's memory was locked", || {
                sys::scheduling::lock_memory()?;
                sys::scheduling::unlock_memory()
            }),
        ),
        (SourceId::GroupsV2, own_group()),
    ]);
    kept.remove_new();
    attempts
}

/// The facts of a short recording of the machine.
fn recorded() -> Result<Facts> {
    let watch = RecordOptions { families: FAMILIES.to_vec(), ..RecordOptions::default() };
    let found = target::find(&Target::Machine)?;
    let sampler = destination::start_sampler(Assignment {
        facts: super::facts(&watch, Subject::Probe { name: "doctor".to_owned() }),
        watch,
        watched: found.watched,
        work: None,
        // Takes no marks, so it leaves no socket.
        purpose: RecordingPurpose::Viewer,
        cpu_before_ns: 0,
    })?;
    std::thread::sleep(RECORDING_TIME);
    sampler.take_last_sample();
    Ok(sampler.close(Ended::default())?.facts)
}

/// Every sight, closed because there is no recording at all.
fn closed_by(error: &crate::Error) -> BTreeMap<String, SourceState> {
    let names = ["exits", "delay_accounting", "other_users", "realtime", "locked", IN_KERNEL];
    let all = names.into_iter().chain(FAMILIES.map(Family::sight));
    let sight = SourceState::closed(error.to_string(), None);
    all.map(|name| (name.to_owned(), sight.clone())).collect()
}

fn works(seen: impl Into<String>) -> SourceAttempt {
    SourceAttempt { seen: seen.into(), ..SourceAttempt::default() }
}

fn refused(why: &str, errno: Option<i32>, known: Option<KnownObstacle>) -> SourceAttempt {
    let refusal = SourceRefusal { why: why.to_owned(), errno, known, path: None };
    SourceAttempt { refusals: vec![refusal], ..SourceAttempt::default() }
}

/// What a sight says; where it is closed, `ask` finds the error number.
fn of_sight(
    sights: &BTreeMap<String, SourceState>,
    name: &str,
    seen: &str,
    ask: impl FnOnce() -> sys::Result<()> + Send,
) -> SourceAttempt {
    match sights.get(name) {
        Some(SourceState::Open) => works(seen),
        Some(SourceState::Closed { why, .. }) => {
            let answer = asked(ask);
            let errno = answer.as_ref().err().and_then(sys::Error::number);
            let is_absent = answer.is_err_and(|error| error.kind == sys::ErrorKind::NotFound);
            let known = (is_absent && errno.is_none()).then_some(KnownObstacle::NotInKernel);
            refused(why, errno, known)
        }
        Some(SourceState::NotAsked) | None => refused("it was not looked at", None, None),
    }
}

/// Asks in a thread of its own, which takes a priority with it. One that ended without an answer
/// has refused nothing.
fn asked(ask: impl FnOnce() -> sys::Result<()> + Send) -> sys::Result<()> {
    std::thread::scope(|scope| scope.spawn(ask).join().unwrap_or(Ok(())))
}

fn open_event(source: EventSource) -> sys::Result<()> {
    perf::Event::on_processor(&Attributes::new(source), 0).map(drop)
}

/// Programs in the kernel, and which of them are missing.
fn programs(sights: &BTreeMap<String, SourceState>) -> SourceAttempt {
    let attempt = of_sight(sights, IN_KERNEL, "", sys::bpf::examine_right);
    if !attempt.refusals.is_empty() {
        return attempt;
    }
    let open = FAMILIES.into_iter().map(Family::sight);
    let is_open = |name: &&str| sights.get(*name).is_some_and(SourceState::is_open);
    let names: Vec<&str> =
        open.filter(is_open).map(|name| name.trim_start_matches("events.")).collect();
    let prefix = format!("{IN_KERNEL}.");
    let lost: Vec<&str> =
        sights.keys().filter_map(|name| name.strip_prefix(prefix.as_str())).collect();
    let mut attempt = works(format!("they sum up {}", names.join(", ")));
    if !lost.is_empty() {
        let why = format!("this kernel has no event for {}", lost.join(", "));
        attempt.refusals = refused(&why, None, Some(KnownObstacle::NotInKernel)).refusals;
    }
    attempt
}

/// Rings of samples of tracepoints.
fn tracepoints(sights: &BTreeMap<String, SourceState>) -> SourceAttempt {
    let (mut open, mut closed) = (Vec::new(), Vec::new());
    for family in RING_FAMILIES {
        match sights.get(family.sight()) {
            Some(SourceState::Open) => open.push(family.sight().trim_start_matches("events.")),
            Some(SourceState::Closed { why, .. }) => closed.push(why.clone()),
            Some(SourceState::NotAsked) | None => {}
        }
    }
    let mut attempt = SourceAttempt::default();
    if !open.is_empty() {
        attempt.seen = format!("samples of {}", open.join(", "));
    }
    if let Some(why) = closed.first() {
        let answer = Tracefs::open()
            .and_then(|tracefs| tracefs.tracepoint("sched", "sched_switch"))
            .and_then(|point| open_event(EventSource::Tracepoint(point.id)));
        let errno = answer.as_ref().err().and_then(sys::Error::number);
        let is_mounting = answer.is_err_and(|error| error.operation == "mount tracefs");
        let known = (is_mounting && !is_tracefs_there()).then_some(KnownObstacle::NotMounted);
        attempt.refusals = refused(why, errno, known).refusals;
    }
    attempt
}

/// Whether what is at the usual place is tracefs, and no other mount hides it.
fn is_tracefs_there() -> bool {
    let all = mounts::read(&Root::system());
    mounts::behind(&all, Path::new(TRACING)).is_some_and(|mount| mount.fs_type == "tracefs")
}

fn kernel_symbols() -> SourceAttempt {
    if sys::process::effective_uid() != 0 {
        return refused("only a recorder of root reads /proc/kallsyms", None, None);
    }
    match kernel_functions() {
        0 => match Root::system().read_bytes("/proc/kallsyms") {
            Ok(_) => refused("the kernel hides the addresses of its functions", None, None),
            Err(error) => refused(&error.to_string(), error.number(), None),
        },
        many => works(format!("the addresses of {many} functions")),
    }
}

fn delay_accounting(sights: &BTreeMap<String, SourceState>) -> SourceAttempt {
    let name = "delay_accounting";
    let mut attempt = of_sight(sights, name, "waits for devices are charged", || Ok(()));
    let is_off = std::fs::read_to_string(DELAY_SWITCH).is_ok_and(|text| text.trim() == "0");
    let known = if is_off { KnownObstacle::SettingOff } else { KnownObstacle::NotInKernel };
    attempt.refusals.iter_mut().for_each(|refusal| refusal.known = Some(known));
    attempt
}

/// The recorder asks process 1; where that is refused, some others are asked.
fn other_processes(sights: &BTreeMap<String, SourceState>) -> SourceAttempt {
    let root = Root::system();
    let seen = "the I/O of process 1 is read";
    let mut attempt =
        of_sight(sights, "other_users", seen, || Root::system().read("/proc/1/io").map(drop));
    if !attempt.refusals.is_empty() {
        let others = processes_of_others(&root, OTHERS_MAX);
        let is_readable = |pid: &&u32| root.read(format!("/proc/{pid}/io")).is_ok();
        let readable = others.iter().filter(is_readable).count();
        if readable > 0 {
            let all = others.len();
            attempt.seen = format!("the I/O of {readable} of {all} other processes");
        }
    }
    attempt
}

/// The own group of version 2, and whether a command can have one for itself.
fn own_group() -> SourceAttempt {
    let root = Root::system();
    let own = machine::cgroup::own_group(&root, machine::cgroup::Controller::Unified);
    let Some(own) = own.and_then(|place| place.groups().into_iter().next()) else {
        let why = "no hierarchy of version 2 shows the own group";
        return refused(why, None, Some(KnownObstacle::NotMounted));
    };
    let read = root.read(own.directory.join("cgroup.procs"));
    let mut attempt = match read {
        Ok(_) => works(format!("the own group is {}", own.path)),
        Err(error) => return refused(&error.to_string(), error.number(), None),
    };
    if let Err((why, errno)) = group::examine() {
        attempt.refusals = refused(&why, errno, None).refusals;
    }
    attempt
}

/// The files in the run directory before anything was tried; `None` if it was not there.
struct KeptFiles(Option<BTreeSet<OsString>>);

impl KeptFiles {
    fn note() -> Self {
        let directory = run_directory::existing().ok().flatten();
        let names = directory.and_then(|held| held.names().ok());
        Self(names.map(|names| names.into_iter().collect()))
    }

    /// Removes what is kept of the kernel, if this process made it, and the directory if it is then
    /// empty. What other recorders put there stays.
    fn remove_new(self) {
        let Ok(Some(directory)) = run_directory::existing() else { return };
        let before = self.0.as_ref();
        for name in run_directory::KEPT_OF_KERNEL.map(OsString::from) {
            if !before.is_some_and(|names| names.contains(&name)) {
                // Another recorder makes it again when it needs it.
                let _ = directory.remove(&name);
            }
        }
        let path = directory.path().to_owned();
        if let (None, Some(parent), Some(name)) = (before, path.parent(), path.file_name())
            && let Ok(parent) = sys::directory::Directory::open(parent)
        {
            // One that is not empty stays.
            let _ = parent.remove_directory(name);
        }
    }
}

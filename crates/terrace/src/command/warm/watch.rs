//! `terrace warm watch`: samples the kernel's counters once a second, restores when a shortage is
//! over, and prints a line for each. `place` decides when; here are the loop, the service and the
//! processes. Ctrl-C and SIGTERM end it, which is no failure.

use super::restore::{limits, may_move, rights_are_missing};
use crate::args::warm::WarmWatchArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::warm::watch as lines;
use crate::output::{self, OutputTarget, Written};
use crate::service::Service;
use machine::Root;
use model::{Bytes, Control};
use place::workingset::restore::{self, MemoryKind, RestoreReport, RestoreRequest};
use place::workingset::targets::{self, Selection, TargetProcess};
use place::workingset::watch::{
    self, MemorySample, MemorySampler, RestoreEnd, ShortageWatch, SwapPlacement, WatchDecision,
    WatchSettings,
};
use std::time::{Duration, Instant};
use sys::helper::HiddenCommand;

/// The command, for complaints and its service.
pub const COMMAND: &str = "warm watch";

/// The time from one sample to the next.
const INTERVAL: Duration = Duration::from_secs(1);

/// Watches until a signal comes, its reader has gone or all processes that were named have ended.
///
/// # Errors
/// What makes no sense, what this user may not do, what is not there; later none.
pub fn watch(args: &WarmWatchArgs) -> Result<Exit> {
    if args.only.iter().all(|kind| *kind == MemoryKind::File) {
        let text = "--only files: the kernel does not count which files were evicted, so this watches swap: add anonymous or shared";
        return Err(Error::usage(text));
    }
    if !may_move(args.how.method) {
        return Err(rights_are_missing(COMMAND));
    }
    let root = Root::system();
    let processes = WatchedProcesses::find(args, &root)?;
    let mut watching = Watching::start(args, &root, processes)?;
    let first = lines::started(
        &watching.processes.words,
        &args.only,
        args.quiet,
        watching.swap,
        watching.processes.absent.as_deref(),
    );
    watching.service.ready(first.trim_end());
    let mut written = output_line(&first)?;
    while written == Written::Whole && watching.wait_for_next() {
        written = match watching.second()? {
            Some(written) => written,
            None => return Ok(Exit::Done),
        };
    }
    watching.service.stopping("ends");
    Ok(Exit::Done)
}

/// The processes whose memory is restored.
#[derive(Debug)]
struct WatchedProcesses {
    selection: Selection,
    /// Those that were named by number, whose numbers may be of other processes later.
    named: Vec<TargetProcess>,
    /// For a person.
    words: String,
    /// Why none is there yet, if so.
    absent: Option<String>,
}

impl WatchedProcesses {
    fn find(args: &WarmWatchArgs, root: &Root) -> Result<Self> {
        let selection = super::selection(&args.whose).unwrap_or(Selection::All);
        let (mut named, mut absent) = (Vec::new(), None);
        match &selection {
            Selection::Processes(_) => named = targets::find(root, &selection)?,
            // They may come later.
            Selection::Group(_) | Selection::Application(_) => {
                match targets::find(root, &selection) {
                    Err(error) if error.kind == place::ErrorKind::Usage => {
                        absent = Some(error.source.to_string());
                    }
                    found => drop(found?),
                }
            }
            Selection::All => {}
        }
        let words = lines::processes(&selection);
        Ok(Self { selection, named, words, absent })
    }

    /// Those that live; `None` if all have ended that were named by number.
    fn living(&self) -> Option<Selection> {
        if !matches!(self.selection, Selection::Processes(_)) {
            return Some(self.selection.clone());
        }
        let living = self.named.iter().filter(|process| process.lives());
        let pids: Vec<u32> = living.map(|process| process.pid).collect();
        (!pids.is_empty()).then_some(Selection::Processes(pids))
    }
}

/// The watch while it runs.
struct Watching<'a> {
    root: &'a Root,
    processes: WatchedProcesses,
    request: RestoreRequest,
    sampler: MemorySampler,
    watch: ShortageWatch,
    service: Service,
    started: Instant,
    next_sample: Instant,
    swap: SwapPlacement,
}

impl<'a> Watching<'a> {
    fn start(args: &WarmWatchArgs, root: &'a Root, processes: WatchedProcesses) -> Result<Self> {
        let limits = limits(&args.how, root);
        let settings = WatchSettings { quiet: args.quiet, floor: limits.floor, most: limits.bytes };
        let wants = |kind| args.only.contains(&kind);
        let request = RestoreRequest {
            anonymous: wants(MemoryKind::Anonymous),
            shared: wants(MemoryKind::Shared),
            files: wants(MemoryKind::File),
            method: args.how.method,
            helper: Some(HiddenCommand::new([super::READER])),
            ..RestoreRequest::new(processes.selection.clone(), limits)
        };
        let started = Instant::now();
        let mut sampler = MemorySampler::open(root)?;
        let first = sampler.sample(Duration::ZERO).ok_or_else(|| {
            let text = "/proc/vmstat and /proc/meminfo do not say what goes to swap";
            Error::new(Exit::Impossible, text)
        })?;
        let (service, fault) = Service::start(COMMAND, processes.words.clone());
        if let Some(error) = fault {
            output::announce(COMMAND, &format!("it has no status socket: {}", error.text));
        }
        Ok(Self {
            root,
            processes,
            request,
            swap: sampler.swap(),
            sampler,
            watch: ShortageWatch::start(settings, first),
            service,
            started,
            next_sample: started + INTERVAL,
        })
    }

    /// Waits for the time of the next sample; false if a signal came before.
    fn wait_for_next(&mut self) -> bool {
        loop {
            if sys::interrupt::requested() {
                return false;
            }
            let left = self.next_sample.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // Seconds that a restore or a stopped machine took are not made up for.
                self.next_sample = Instant::now() + INTERVAL;
                return true;
            }
            // A signal ends the wait.
            let _ = sys::poll::readable([None], Some(left.as_nanos() as u64));
        }
    }

    /// What is done once a second; `None` if there is nothing left to watch.
    fn second(&mut self) -> Result<Option<Written>> {
        self.service.turn();
        let Some(living) = self.processes.living() else {
            self.service.stopping("all processes that were named have ended");
            output_line(&lines::processes_ended())?;
            return Ok(None);
        };
        let Some(sample) = self.sample() else {
            return Ok(Some(Written::Whole));
        };
        if let Some(written) = self.report_swap()? {
            return Ok(Some(written));
        }
        match self.watch.next(sample) {
            WatchDecision::Wait => Ok(Some(Written::Whole)),
            WatchDecision::ShortageBegan(signs) => self.say(&lines::shortage(&signs)).map(Some),
            WatchDecision::LittleInSwap => {
                self.service.status(lines::LITTLE_IN_SWAP);
                Ok(Some(Written::Whole))
            }
            WatchDecision::NoRoom { needed, available } => {
                self.say(&lines::no_room(needed, available)).map(Some)
            }
            WatchDecision::Restore(_) => self.restore(living, sample).map(Some),
        }
    }

    fn sample(&mut self) -> Option<MemorySample> {
        self.sampler.sample(self.started.elapsed())
    }

    /// Says that swap has come or gone.
    fn report_swap(&mut self) -> Result<Option<Written>> {
        let swap = self.sampler.swap();
        if swap == self.swap {
            return Ok(None);
        }
        self.swap = swap;
        self.say(&lines::swap_changed(swap)).map(Some)
    }

    /// Restores once, and says what came of it.
    fn restore(&mut self, living: Selection, before: MemorySample) -> Result<Written> {
        self.service.status("restores");
        let restored = self.carry_out(living);
        // If the kernel does not say what is there now, what was there is the best guess.
        let after =
            self.sample().unwrap_or(MemorySample { time: self.started.elapsed(), ..before });
        let (end, line) = match restored {
            Ok((planned, report)) => {
                let line = lines::restored(&report, after.in_swap);
                (RestoreEnd::of(planned, &report), line)
            }
            Err(error) => (RestoreEnd::failed(), lines::not_restored(&error.to_string())),
        };
        self.watch.restored(end, after);
        self.say(&line)
    }

    fn carry_out(&mut self, living: Selection) -> place::Result<(Bytes, RestoreReport)> {
        let request = RestoreRequest { selection: living, ..self.request.clone() };
        let plan = restore::plan(self.root, &request)?;
        let planned = watch::planned_in_swap(&plan);
        let service = &mut self.service;
        let report = restore::carry_out(self.root, &request, plan, &mut |_| {
            service.turn();
            Control::Continue
        })?;
        Ok((planned, report))
    }

    /// Prints a line, which is the service's status too.
    fn say(&mut self, line: &str) -> Result<Written> {
        self.service.status(line.trim_end());
        output_line(line)
    }
}

/// Writes a line at once, so that a journal has it.
fn output_line(line: &str) -> Result<Written> {
    OutputTarget::standard().write(line)
}

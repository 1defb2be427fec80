//! What is recorded: the open sources of one recording, the row that they fill, and the sink that
//! takes it. The sampler's thread decides when.
//!
//! Events are read last, so that their sums reach to the end of the sample. A recording that cannot
//! be written any more stops; the command never notices.

use super::joiners::Joiners;
use super::whole_microseconds::WholeMicroseconds;
use super::{Assignment, News, RecordingPurpose, Watched};
use crate::capture::burst::Burst;
use crate::capture::own_gauges::OwnGauges;
use crate::capture::{out_of_memory, prioritize_thread, without_samples};
use crate::collect::Collectors;
use crate::registry::{Registry, Row};
use crate::sink::RecordSink;
use crate::tasks::{Listener, TaskReport};
use crate::trace::{ACCESSES_KEPT, Tracer};
use crate::work::WorkCounter;
use crate::{Error, ErrorKind, Result};
use machine::Root;
use model::recording::{Facts, Recording, RecordingOutcome, SourceState, Span, Subject, Tick};
use std::sync::mpsc::Sender;

/// Between two looks whether the file is still there.
const FILE_LOOK_NS: u64 = 1_000_000_000;

/// What is known only at the end.
#[derive(Debug, Default)]
pub(super) struct FinalCounts {
    pub report: TaskReport,
    pub processes: u64,
    pub lost_events: u64,
}

/// The sources and the sink of one recording.
#[derive(Debug)]
pub(super) struct Recorder<S> {
    registry: Registry,
    row: Row,
    /// Of a recording of the machine, whose sums are those of hundreds of threads.
    whole: Option<WholeMicroseconds>,
    collectors: Collectors,
    tracer: Option<Tracer>,
    listener: Option<Listener>,
    /// Of a group: who joins it.
    joiners: Option<Joiners>,
    /// Holds samples back and raises the rate, where that is wanted.
    pub burst: Option<Burst>,
    /// What this program counts of itself.
    gauges: Option<OwnGauges>,
    /// What the subject has done, and the number of its series.
    work: Option<(WorkCounter, u32)>,
    sink: S,
    pub facts: Facts,
    /// When the recording began, by the steady clock; 0 before that.
    started_ns: u64,
    /// The most bytes that single accesses may take.
    access_bytes: u64,
    /// Why nothing more is recorded.
    stopped_early: Option<String>,
    report: Sender<News>,
    /// When the file is looked for again, since the start; `None` if that is not needed.
    file_look_ns: Option<u64>,
}

impl<S: RecordSink> Recorder<S> {
    /// Opens the sources that there are, and the sink; the facts say what could be opened.
    pub fn open(
        assignment: &Assignment,
        work: Option<WorkCounter>,
        (mut facts, open): (Facts, impl FnOnce(&Facts) -> Result<S>),
        report: Sender<News>,
    ) -> Result<Self> {
        let Assignment { watch, watched, purpose, .. } = assignment;
        let root = Root::system();
        let mut registry = Registry::new();
        let (loaded, mut collectors) = std::thread::scope(|scope| {
            // The command waits for both, and loading is the longer one.
            let processes = watched.traced.as_deref();
            let loading = scope.spawn(move || Tracer::load(&watch.families, processes));
            let collectors = Collectors::open(&root, &watched.scope, &mut registry, &mut facts);
            (loading.join(), collectors)
        });
        // A thread that panicked has opened nothing.
        let mut tracer = loaded.ok().and_then(|loaded| {
            let (tracer, sights) = loaded.register(&mut registry);
            facts.sights.extend(sights);
            tracer
        });
        if tracer.as_ref().is_some_and(|tracer| tracer.totals().is_some()) {
            collectors.leave_tree_to_kernel();
        }
        if let Some(tracer) = &mut tracer {
            tracer.name_groups_by(collectors.limited_paths());
        }
        let listener = open_listener(watched, &mut facts);
        if facts.sight("own_group").is_open()
            && let Some(own) = facts.groups.first_mut()
        {
            own.made = true;
        }
        let work = work.and_then(|work| work.register(&mut registry).map(|id| (work, id)));
        prioritize_thread(*purpose, &mut facts);
        let processes = &watched.scope.processes;
        let burst = watch.burst.then(|| Burst::new(&root, processes, &mut registry));
        let joiners = match (&watched.scope.group, &watched.traced) {
            (Some(directory), Some(known)) => Some(Joiners::new(directory.clone(), known)),
            _ => None,
        };
        facts.started_unix_ns = watch.clock.now_ns();
        Ok(Self {
            sink: open(&facts)?,
            registry,
            row: Row::default(),
            whole: (facts.subject == Subject::Machine).then(WholeMicroseconds::default),
            collectors,
            tracer,
            listener,
            joiners,
            burst,
            gauges: watch.gauges.clone().map(OwnGauges::new),
            work,
            facts,
            started_ns: 0,
            access_bytes: watch.access_bytes,
            stopped_early: None,
            report,
            file_look_ns: (*purpose == RecordingPurpose::File).then_some(0),
        })
    }

    /// Reads everything for the first time and begins to keep tasks; the instant from which on
    /// all counts, by the steady clock. What is summed most exactly is read last.
    pub fn begin(&mut self, watched: &Watched) -> u64 {
        self.collectors.read(0, true, &mut self.registry, &mut self.row);
        if let (Some(listener), Some(tree)) = (&mut self.listener, &watched.tree) {
            listener.watch(tree);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.read(0, true, &mut self.registry, &mut self.row);
            tracer.restart_who();
        }
        self.take_tree();
        self.read_work(true);
        self.read_gauges();
        self.started_ns = sys::clock::now_ns();
        if let Some(accesses) = self.tracer.as_mut().and_then(Tracer::accesses) {
            accesses.begin(self.started_ns, self.access_bytes);
        }
        self.started_ns
    }

    /// Notes when it began, by the clock of the day.
    pub fn note_start(&mut self, unix_ns: u64) {
        self.facts.started_unix_ns = unix_ns;
        self.sink.started(&self.facts);
    }

    /// Notes what the subject has done; with `is_fresh` until now, if that is known in a moment.
    fn read_work(&mut self, is_fresh: bool) {
        if let Some((work, id)) = &self.work {
            work.sample(is_fresh, *id, &mut self.row);
        }
    }

    /// Notes what this program counts of itself.
    fn read_gauges(&mut self) {
        if let Some(gauges) = &mut self.gauges {
            gauges.read(&mut self.registry, &mut self.row);
        }
    }

    /// Takes over what programs in the kernel summed up of all processes.
    fn take_tree(&mut self) {
        if let Some(totals) = self.tracer.as_ref().and_then(Tracer::totals) {
            self.collectors.take_tree(totals, &mut self.registry, &mut self.row);
        }
    }

    /// Takes a sample: reads all that is due, or everything, and hands the row on.
    pub fn sample(&mut self, tick: Tick, all: bool) {
        self.watch_joiners();
        self.read_gauges();
        self.collectors.read(tick.at_ns, all, &mut self.registry, &mut self.row);
        if let Some(listener) = &mut self.listener {
            listener.read();
        }
        let now_ns = sys::clock::now_ns().saturating_sub(self.started_ns);
        let mut spans = self.collectors.notes();
        self.take_accesses(all);
        if let Some(tracer) = &mut self.tracer {
            tracer.read(now_ns, all, &mut self.registry, &mut self.row);
            spans.extend(tracer.spans());
            if let Some(who) = tracer.who().filter(|who| !who.is_empty())
                && self.stopped_early.is_none()
            {
                let written = self.sink.who(&who);
                self.check(written);
            }
        }
        self.take_tree();
        self.read_work(all);
        for span in spans {
            self.span(&span);
        }
        self.write(tick);
    }

    /// Keeps single accesses; with `all` what waited as well.
    fn take_accesses(&mut self, all: bool) {
        let Some(accesses) = self.tracer.as_mut().and_then(Tracer::accesses) else {
            return;
        };
        for batch in accesses.take(all) {
            if self.stopped_early.is_some() {
                return;
            }
            match self.sink.accesses(&batch) {
                Ok(bytes) => accesses.written(&batch, bytes),
                Err(error) => {
                    self.stopped_early = Some(error.to_string());
                    let _ = self.report.send(News::Stopped);
                }
            }
        }
    }

    /// Watches the processes that have joined the group. What members have begun is followed
    /// already, but has to stay so when its parents end.
    fn watch_joiners(&mut self) {
        let new = self.joiners.as_mut().map(Joiners::new_members).unwrap_or_default();
        if let Some(tracer) = &mut self.tracer {
            tracer.adopt(&new.joined);
            if new.is_after_joining {
                tracer.adopt(&new.born);
            }
        }
        if let Some(listener) = &mut self.listener {
            listener.join(&new.joined);
            listener.adopt(&new.born);
        }
    }

    /// Hands the row on; a recording that cannot be written ends here.
    pub fn write(&mut self, tick: Tick) {
        let (schemas, sink) = (self.registry.schemas(), &mut self.sink);
        if let Some(whole) = &mut self.whole {
            whole.round(schemas, &mut self.row);
        }
        let written = match &mut self.burst {
            None => sink.sample(tick, schemas, &self.row),
            Some(burst) => {
                burst.hold(tick, &self.row);
                burst.release(tick.at_ns, |tick, row| sink.sample(tick, schemas, row))
            }
        };
        self.check(written);
        self.check_file(tick.at_ns);
        if let Some(text) = self.sink.news() {
            // A caller that is gone needs no news.
            let _ = self.report.send(News::Text(text));
        }
    }

    /// Adds an instant or interval.
    pub fn note(&mut self, kind: &str, text: String, start_ns: u64, end_ns: u64) {
        self.span(&Span { kind: kind.to_owned(), text, start_ns, end_ns });
    }

    fn span(&mut self, span: &Span) {
        if self.stopped_early.is_none() {
            let written = self.sink.span(span);
            self.check(written);
        }
    }

    /// Counts a sample that begins late.
    pub fn note_late(&mut self) {
        self.collectors.late();
    }

    /// Whether nothing more is recorded.
    pub fn has_stopped(&self) -> bool {
        self.stopped_early.is_some()
    }

    /// Ends the sampling at the first failure.
    pub fn check(&mut self, written: Result<()>) {
        if let Err(error) = written
            && self.stopped_early.is_none()
        {
            self.stopped_early = Some(error.to_string());
            let _ = self.report.send(News::Stopped);
        }
    }

    /// Stops if the file was removed: the recording could not be found.
    fn check_file(&mut self, at_ns: u64) {
        if self.file_look_ns.is_none_or(|look_ns| at_ns < look_ns) {
            return;
        }
        self.file_look_ns = Some(at_ns.saturating_add(FILE_LOOK_NS));
        if let Some(why) = self.sink.loss() {
            self.check(Err(Error::new(ErrorKind::Failed, "record", why)));
        }
    }

    /// Writes the samples that are held back.
    pub fn flush_burst(&mut self) {
        let (schemas, sink) = (self.registry.schemas(), &mut self.sink);
        if let Some(burst) = &mut self.burst
            && self.stopped_early.is_none()
        {
            let written = burst.finish(|tick, row| sink.sample(tick, schemas, row));
            self.check(written);
        }
    }

    /// What killed the command, where it had joined other groups than `said` knows of.
    pub fn limit_met_later(&self, said: Option<String>) -> Option<String> {
        let columns = (self.registry.schemas(), &self.row);
        match self.collectors.other_groups() {
            Some(groups) => out_of_memory::in_later_groups(said, groups, columns),
            None => said,
        }
    }

    /// Reads what is known at the end only, and writes the tasks; `now_ns` by the steady clock.
    pub fn end_sources(&mut self, now_ns: u64) -> FinalCounts {
        if let Some(groups) = self.collectors.other_groups() {
            self.facts.groups = groups.to_vec();
        }
        let listener = self.listener.take();
        let report = listener.map_or_else(TaskReport::default, |listener| listener.finish(now_ns));
        let kept =
            self.tracer.as_mut().and_then(Tracer::accesses).map(|accesses| accesses.summary());
        if let Some(text) = kept {
            let ended_ns = now_ns.saturating_sub(self.started_ns);
            self.note(ACCESSES_KEPT, text, ended_ns, ended_ns);
        }
        // Last, because a child of this process closes the events.
        let tracer = self.tracer.take();
        let lost_events = tracer.as_ref().map_or(0, Tracer::lost);
        self.facts.sights.extend(tracer.iter().flat_map(Tracer::sights));
        drop(tracer);
        if let Some((work, _)) = self.work.take() {
            let sight =
                work.fault().map_or(SourceState::Open, |why| SourceState::closed(why, None));
            self.facts.sights.insert("work".to_owned(), sight);
        }
        let written = self.sink.tasks(&report.tasks);
        self.check(written);
        FinalCounts {
            // Ends that were lost were seen alive, perhaps; short lives only by their ends.
            processes: report.processes.max(self.collectors.processes()),
            lost_events,
            report,
        }
    }

    /// Ends the recording with this outcome and reads it back.
    pub fn finish(self, mut outcome: RecordingOutcome) -> Recording {
        outcome.stopped_early = self.stopped_early;
        let finished = self.sink.finish(&self.facts, &outcome);
        // The command's exit status must not depend on a disk.
        finished
            .unwrap_or_else(|error| without_samples(self.facts, outcome, Some(error.to_string())))
    }

    /// Removes the file of a recording of nothing.
    pub fn discard(self) {
        self.sink.discard();
    }
}

fn open_listener(watched: &Watched, facts: &mut Facts) -> Option<Listener> {
    // A live view does not need the delays of a whole recording.
    watched.tree.as_ref()?;
    let (listener, sights) = Listener::open(sys::clock::now_ns());
    facts.sights.extend(sights);
    listener
}

//! The sampler's thread: it owns every source and the sink, takes samples at fixed deadlines, and
//! handles requests between two samples.
//!
//! A recording that cannot be written any more stops the sampling; the command never
//! notices.

use super::{Assignment, Ended, Inbox, News, Purpose, Request};
use crate::capture::burst::{self, Burst};
use crate::capture::day_clock::DayClock;
use crate::capture::marks::MarkSocket;
use crate::capture::pace::Pace;
use crate::capture::sources::{Sources, Watched};
use crate::capture::{listen_for_marks, prioritize_thread, process_cpu_ns, without_samples};
use crate::sink::RecordSink;
use crate::{Error, Kind, Result};
use model::duration::SECOND_NS;
use model::recording::{
    ClockSet, Ending, Facts, Recording, RecordingOutcome, SourceState, Span, Tick,
};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, SyncSender};

/// The clock of the day was set if it moved against the steady one by more than this; what
/// keeps it right moves it by less.
const CLOCK_JUMP_NS: i128 = 1_000_000_000;

/// A thread that slept for so much longer than asked for could not run: it was stopped, frozen with
/// its group or its virtual machine, or got no processor.
const STOPPED_NS: u64 = 1_000_000_000;

/// Between two looks whether the file is still there.
const FILE_LOOK_NS: u64 = 1_000_000_000;

/// The words for a rate that was raised for a while.
const RAISED: &str = "pressure rose: more samples";

/// The thread's own state.
#[derive(Debug)]
pub(super) struct SamplerThread<S> {
    sources: Sources,
    sink: S,
    facts: Facts,
    pace: Pace,
    normal_period_ns: u64,
    burst: Option<Burst>,
    marks: Option<MarkSocket>,
    started_ns: u64,
    clock: DayClock,
    /// The clock of the day less the steady one, when last looked at.
    day_offset_ns: i128,
    stopped_early: Option<String>,
    report: Sender<News>,
    /// When the file is looked for again, since the start; `None` if that is not needed.
    file_look_ns: Option<u64>,
    last_taken: bool,
    purpose: Purpose,
    cpu_before_ns: u64,
    setup_ns: u64,
    last_sample_cpu_ns: u64,
}

impl<S: RecordSink> SamplerThread<S> {
    /// Opens everything and takes the first sample.
    pub fn prepare(
        assignment: Assignment,
        open: impl FnOnce(&Facts) -> Result<S>,
        report: Sender<News>,
    ) -> Result<Self> {
        let Assignment { watch, mut facts, watched, purpose, cpu_before_ns } = assignment;
        let (marks, sight) = match purpose {
            Purpose::Viewer => (None, SourceState::NotAsked),
            _ => listen_for_marks(),
        };
        facts.sights.insert("marks".to_owned(), sight);
        let mut sources = Sources::open(&watched, &watch.families, &mut facts);
        if facts.sight("own_group").is_open()
            && let Some(own) = facts.groups.first_mut()
        {
            own.made = true;
        }
        prioritize_thread(purpose, &mut facts);
        let period_ns = SECOND_NS / u64::from(watch.rate_hz.max(1));
        let burst = sources.burst(watch.burst, &watched);
        let now_ns = sys::clock::now_ns();
        facts.started_unix_ns = watch.clock.now_ns();
        let mut thread = Self {
            sink: open(&facts)?,
            sources,
            facts,
            pace: Pace::new(period_ns, now_ns),
            normal_period_ns: period_ns,
            burst,
            marks,
            started_ns: now_ns,
            day_offset_ns: watch.clock.offset_ns(),
            clock: watch.clock,
            stopped_early: None,
            report,
            file_look_ns: (purpose == Purpose::File).then_some(0),
            last_taken: false,
            purpose,
            cpu_before_ns,
            setup_ns: 0,
            last_sample_cpu_ns: 0,
        };
        thread.first_sample(&watched);
        Ok(thread)
    }

    /// The recording begins when its first sample has been read, so that what the command
    /// does comes after it and the time that reading took does not count.
    fn first_sample(&mut self, watched: &Watched) {
        self.started_ns = self.sources.begin(watched);
        self.facts.started_unix_ns = self.clock.now_ns();
        self.day_offset_ns = self.clock.offset_ns();
        self.pace = Pace::new(self.normal_period_ns, self.started_ns);
        self.write(Tick::default());
        self.setup_ns = self.cpu_ns().saturating_sub(self.cpu_before_ns);
    }

    /// Samples until a request closes the recording.
    pub fn run(mut self, inbox: &Inbox, turns: &AtomicU64, give: &SyncSender<Recording>) {
        loop {
            turns.fetch_add(1, Ordering::Relaxed);
            self.wait(inbox);
            self.check_limits();
            inbox.clear();
            while let Some(request) = inbox.next() {
                match request {
                    Request::Mark(text) => self.mark(text),
                    Request::LastSample(taken) => {
                        self.last_sample();
                        // A caller that is gone does not wait for it.
                        let _ = taken.send(());
                    }
                    Request::Close(ended) => return self.close(*ended, give),
                    Request::Discard => return self.sink.discard(),
                }
            }
            self.drain_marks();
            self.sample_if_due();
        }
    }

    /// Waits for the next deadline, a request or a mark.
    fn wait(&mut self, inbox: &Inbox) {
        let now_ns = sys::clock::now_ns();
        let idle = self.last_taken || self.stopped_early.is_some();
        let limit_ns = (!idle).then(|| match &self.burst {
            Some(_) => self.pace.wait_ns(now_ns).min(burst::LOOK_NS),
            None => self.pace.wait_ns(now_ns),
        });
        let marks = self.marks.as_ref().map(MarkSocket::as_fd);
        // Both are read afterwards, so it does not matter which of them it was.
        let _ = sys::poll::readable([Some(inbox.woken.as_fd()), marks], limit_ns);
        if let Some(limit_ns) = limit_ns {
            self.note_stop(now_ns, limit_ns);
        }
    }

    /// Notes that this thread did not run when it should have: it went to sleep at `slept_ns` for
    /// `limit_ns` at most. What happened meanwhile is known from its sums only.
    fn note_stop(&mut self, slept_ns: u64, limit_ns: u64) {
        let now_ns = sys::clock::now_ns();
        let late_ns = now_ns.saturating_sub(slept_ns).saturating_sub(limit_ns);
        if late_ns < STOPPED_NS {
            return;
        }
        let seconds = late_ns as f64 / 1e9;
        let text = format!(
            "the recorder did not run for {seconds:.1} s: it or its machine was stopped, and when \
             things happened meanwhile is not known"
        );
        let (start_ns, end_ns) = (self.since_start(slept_ns), self.since_start(now_ns));
        self.note("gap", text, start_ns, end_ns);
    }

    /// Stops where this process would be killed if it went on.
    fn check_limits(&mut self) {
        if sys::signals::is_cpu_used_up() {
            let why = "the limit of processor time is reached (RLIMIT_CPU)";
            self.check(Err(Error::new(Kind::Failed, "record", why)));
        }
    }

    /// Stops if the file was removed: the recording could not be found.
    fn check_file(&mut self, at_ns: u64) {
        if self.file_look_ns.is_none_or(|look_ns| at_ns < look_ns) {
            return;
        }
        self.file_look_ns = Some(at_ns.saturating_add(FILE_LOOK_NS));
        if let Some(why) = self.sink.loss() {
            self.check(Err(Error::new(Kind::Failed, "record", why)));
        }
    }

    /// Takes the sample that is due, and reads the pressure totals if that was asked for.
    fn sample_if_due(&mut self) {
        if self.last_taken || self.stopped_early.is_some() {
            return;
        }
        let now_ns = sys::clock::now_ns();
        self.look(now_ns);
        if now_ns < self.pace.due_ns() {
            return;
        }
        self.check_clock(now_ns);
        if self.pace.is_late(now_ns) {
            self.sources.note_late();
        }
        self.sample(now_ns, self.pace.due_ns(), false);
        self.pace.taken(sys::clock::now_ns());
    }

    fn sample(&mut self, at_ns: u64, due_ns: u64, all: bool) {
        self.sources.read(self.since_start(at_ns), all);
        for span in self.sources.spans() {
            self.span(&span);
        }
        self.write(Tick { due_ns: self.since_start(due_ns), at_ns: self.since_start(at_ns) });
    }

    fn last_sample(&mut self) {
        if !self.last_taken && self.stopped_early.is_none() {
            let now_ns = sys::clock::now_ns();
            self.pace.end(now_ns);
            self.sample(now_ns, now_ns, true);
        }
        self.last_taken = true;
        self.last_sample_cpu_ns = self.cpu_ns();
    }

    /// Looks at the pressure totals and raises or lowers the rate.
    fn look(&mut self, now_ns: u64) {
        let since_ns = self.since_start(now_ns);
        let Some(burst) = &mut self.burst else {
            return;
        };
        if burst.look(since_ns) && burst.raise(since_ns) {
            self.pace.change(burst::LOOK_NS.min(self.normal_period_ns), now_ns);
        }
        let lowered = burst.lower(since_ns);
        if lowered.is_some() {
            self.pace.change(self.normal_period_ns, now_ns);
        }
        if let Some(start_ns) = lowered {
            self.note("rate", RAISED.to_owned(), start_ns, since_ns);
        }
    }

    /// Notes a rate that is still up at the end.
    fn note_raised_rate(&mut self) {
        let lowered = self.burst.as_mut().and_then(|burst| burst.lower(u64::MAX));
        if let Some(start_ns) = lowered {
            let now_ns = self.since_start(sys::clock::now_ns());
            self.note("rate", RAISED.to_owned(), start_ns, now_ns);
        }
    }

    /// Hands the row on; a recording that cannot be written ends here.
    fn write(&mut self, tick: Tick) {
        let (schemas, row) = self.sources.columns();
        let sink = &mut self.sink;
        let written = match &mut self.burst {
            None => sink.sample(tick, schemas, row),
            Some(burst) => {
                burst.hold(tick, row);
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

    fn span(&mut self, span: &Span) {
        if self.stopped_early.is_none() {
            let written = self.sink.span(span);
            self.check(written);
        }
    }

    fn check(&mut self, written: Result<()>) {
        if let Err(error) = written
            && self.stopped_early.is_none()
        {
            self.stopped_early = Some(error.to_string());
            let _ = self.report.send(News::Stopped);
            self.last_sample_cpu_ns = self.cpu_ns();
        }
    }

    fn note(&mut self, kind: &str, text: String, start_ns: u64, end_ns: u64) {
        self.span(&Span { kind: kind.to_owned(), text, start_ns, end_ns });
    }

    fn mark(&mut self, text: String) {
        let now_ns = self.since_start(sys::clock::now_ns());
        self.note("mark", text, now_ns, now_ns);
    }

    fn drain_marks(&mut self) {
        let mut texts = Vec::new();
        if let Some(marks) = &mut self.marks {
            marks.take(|text| texts.push(text));
        }
        for text in texts {
            self.mark(text);
        }
    }

    /// Notes that the clock of the day was set.
    fn check_clock(&mut self, now_ns: u64) {
        let offset_ns = self.clock.offset_ns();
        let moved_ns = offset_ns - self.day_offset_ns;
        self.day_offset_ns = offset_ns;
        if moved_ns.abs() > CLOCK_JUMP_NS {
            let at_ns = self.since_start(now_ns);
            let set = ClockSet::by(moved_ns);
            self.note(ClockSet::KIND, set.to_string(), at_ns, at_ns);
        }
    }

    /// Writes what is still to come and gives everything.
    fn close(mut self, ended: Ended, give: &SyncSender<Recording>) {
        self.last_sample();
        // The rest of the work is not urgent.
        let _ = sys::scheduling::ordinary();
        self.drain_marks();
        self.note_raised_rate();
        // A mark that is sent from now on is refused, so its sender learns that it did not arrive.
        self.marks = None;
        self.flush_burst();
        let now_ns = sys::clock::now_ns();
        let noticed_ns = self.since_start(ended.at_ns.unwrap_or(now_ns));
        let ending = match ended.ending {
            Ending::Killed { signal, out_of_memory } => Ending::Killed {
                signal,
                out_of_memory: self.sources.limit_met_later(out_of_memory),
            },
            other => other,
        };
        let last = self.sources.finish(now_ns, &mut self.facts);
        let reported_ns = ended.process.and_then(|(pid, began_ns)| {
            let lived_ns = last.report.lives_ns.get(&pid)?;
            Some(self.since_start(began_ns.saturating_add(*lived_ns)))
        });
        // The kernel's figure counts if this process was stopped when the command ended.
        let ended_ns = match reported_ns {
            Some(reported_ns) if noticed_ns.saturating_sub(reported_ns) > STOPPED_NS => reported_ns,
            _ => noticed_ns,
        };
        let written = self.sink.tasks(&last.report.tasks);
        self.check(written);
        let cpu_ns = self.cpu_ns();
        let outcome = RecordingOutcome {
            ending,
            ended_ns,
            usage: ended.usage,
            processes: last.processes,
            lost_exits: last.report.lost,
            lost_events: last.lost_events,
            missed_samples: self.pace.missed(),
            // A ring knows what it lost.
            lost_samples: 0,
            lost_ns: 0,
            own_cpu_ns: cpu_ns.saturating_sub(self.cpu_before_ns),
            own_setup_ns: self.setup_ns + cpu_ns.saturating_sub(self.last_sample_cpu_ns),
            stopped_early: self.stopped_early,
        };
        if self.facts.sight("locked").is_open() {
            // Cannot fail on Linux; the process goes on without a recorder.
            let _ = sys::scheduling::unlock_memory();
        }
        let finished = self.sink.finish(&self.facts, &outcome);
        // The command's exit status must not depend on a disk.
        let recording = finished
            .unwrap_or_else(|error| without_samples(self.facts, outcome, Some(error.to_string())));
        sys::perf::wait_until_left();
        // A caller that is gone wants only that the file is whole.
        let _ = give.send(recording);
    }

    fn flush_burst(&mut self) {
        let (schemas, _) = self.sources.columns();
        let sink = &mut self.sink;
        if let Some(burst) = &mut self.burst
            && self.stopped_early.is_none()
        {
            let written = burst.finish(|tick, row| sink.sample(tick, schemas, row));
            self.check(written);
        }
    }

    fn since_start(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.started_ns)
    }

    /// CPU time of the recorder: of the process, or beside a probe of this thread alone.
    fn cpu_ns(&self) -> u64 {
        if self.purpose == Purpose::Probe {
            return sys::scheduling::thread_cpu_ns();
        }
        process_cpu_ns()
    }
}

//! The sampler's thread: it takes samples at fixed deadlines, and handles requests between two
//! samples. What a sample reads, and where it goes, is the `Recorder`'s.

use super::recorder::Recorder;
use super::{Assignment, Ended, Inbox, News, RecordingPurpose, SamplerRequest, Watched};
use crate::capture::burst;
use crate::capture::day_clock::DayClock;
use crate::capture::marks::MarkSocket;
use crate::capture::pace::Pace;
use crate::capture::progress_notes::ProgressNotes;
use crate::capture::{listen_for_marks, process_cpu_ns};
use crate::sink::RecordSink;
use crate::{Error, ErrorKind, Result};
use model::duration::SECOND_NS;
use model::recording::{ClockSet, Ending, Facts, Recording, RecordingOutcome, SourceState, Tick};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

/// The clock of the day was set if it moved against the steady one by more than this; what
/// keeps it right moves it by less.
const CLOCK_JUMP_NS: i128 = 1_000_000_000;

/// A thread that slept for so much longer than asked for could not run: it was stopped, frozen with
/// its group or its virtual machine, or got no processor.
const STOPPED_NS: u64 = 1_000_000_000;

/// The words for a rate that was raised for a while.
const RAISED: &str = "pressure rose: more samples";

/// The thread's own state.
#[derive(Debug)]
pub(super) struct SamplerThread<S> {
    recorder: Recorder<S>,
    pace: Pace,
    normal_period_ns: u64,
    marks: Option<MarkSocket>,
    started_ns: u64,
    clock: DayClock,
    /// The clock of the day less the steady one, when last looked at.
    day_offset_ns: i128,
    suspended_ns: u64,
    last_taken: bool,
    progress: ProgressNotes,
    purpose: RecordingPurpose,
    cpu_before_ns: u64,
    setup_ns: u64,
    last_sample_cpu_ns: u64,
}

impl<S: RecordSink> SamplerThread<S> {
    /// Opens everything and takes the first sample.
    pub fn prepare(
        mut assignment: Assignment,
        open: impl FnOnce(&Facts) -> Result<S>,
        report: Sender<News>,
    ) -> Result<Self> {
        let mut facts = std::mem::take(&mut assignment.facts);
        let (marks, sight) = match assignment.purpose {
            RecordingPurpose::Viewer => (None, SourceState::NotAsked),
            _ => listen_for_marks(),
        };
        facts.sights.insert("marks".to_owned(), sight);
        let work = assignment.work.take();
        let recorder = Recorder::open(&assignment, work, (facts, open), report)?;
        let Assignment { watch, watched, purpose, cpu_before_ns, .. } = assignment;
        let normal_period_ns = SECOND_NS / u64::from(watch.rate_hz.max(1));
        let now_ns = sys::clock::now_ns();
        let mut thread = Self {
            recorder,
            pace: Pace::new(normal_period_ns, now_ns),
            normal_period_ns,
            marks,
            started_ns: now_ns,
            day_offset_ns: watch.clock.offset_ns(),
            suspended_ns: watch.clock.suspended_ns(),
            clock: watch.clock,
            last_taken: false,
            progress: ProgressNotes::default(),
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
        self.started_ns = self.recorder.begin(watched);
        self.recorder.note_start(self.clock.now_ns());
        self.day_offset_ns = self.clock.offset_ns();
        self.suspended_ns = self.clock.suspended_ns();
        self.pace = Pace::new(self.normal_period_ns, self.started_ns);
        self.recorder.write(Tick::default());
        self.setup_ns = self.cpu_ns().saturating_sub(self.cpu_before_ns);
    }

    /// Samples until a request closes the recording; gives what was recorded, unless it is
    /// discarded.
    pub fn run(mut self, inbox: &Inbox, turns: &AtomicU64) -> Option<Recording> {
        loop {
            turns.fetch_add(1, Ordering::Relaxed);
            self.wait(inbox);
            self.check_limits();
            inbox.clear();
            while let Some(request) = inbox.next() {
                match request {
                    SamplerRequest::Mark(text) => self.mark(text),
                    SamplerRequest::Progress(text) => self.note_progress(text),
                    SamplerRequest::Servers(servers) => self.recorder.facts.servers = servers,
                    SamplerRequest::LastSample(taken) => {
                        self.last_sample();
                        // A caller that is gone does not wait for it.
                        let _ = taken.send(());
                    }
                    SamplerRequest::Close(ended) => return Some(self.close(*ended)),
                    SamplerRequest::Discard => {
                        self.recorder.discard();
                        return None;
                    }
                }
            }
            self.drain_marks();
            self.sample_if_due();
        }
    }

    /// Waits for the next deadline, a request or a mark.
    fn wait(&mut self, inbox: &Inbox) {
        let now_ns = sys::clock::now_ns();
        let idle = self.last_taken || self.recorder.has_stopped();
        let limit_ns = (!idle).then(|| match &self.recorder.burst {
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
        self.recorder.note("gap", text, start_ns, end_ns);
    }

    /// Stops where this process would be killed if it went on.
    fn check_limits(&mut self) {
        if sys::signals::is_cpu_used_up() {
            let why = "the limit of processor time is reached (RLIMIT_CPU)";
            self.recorder.check(Err(Error::new(ErrorKind::Failed, "record", why)));
        }
    }

    /// Takes the sample that is due, and reads the pressure totals if that was asked for.
    fn sample_if_due(&mut self) {
        if self.last_taken || self.recorder.has_stopped() {
            return;
        }
        let now_ns = sys::clock::now_ns();
        self.look(now_ns);
        if now_ns < self.pace.due_ns() {
            return;
        }
        self.check_clock(now_ns);
        if self.pace.is_late(now_ns) {
            self.recorder.note_late();
        }
        self.sample(now_ns, self.pace.due_ns(), false);
        self.pace.taken(sys::clock::now_ns());
    }

    fn sample(&mut self, at_ns: u64, due_ns: u64, all: bool) {
        let tick = Tick { due_ns: self.since_start(due_ns), at_ns: self.since_start(at_ns) };
        self.recorder.sample(tick, all);
    }

    fn last_sample(&mut self) {
        if !self.last_taken && !self.recorder.has_stopped() {
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
        let Some(burst) = &mut self.recorder.burst else {
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
            self.recorder.note("rate", RAISED.to_owned(), start_ns, since_ns);
        }
    }

    /// Notes a rate that is still up at the end.
    fn note_raised_rate(&mut self) {
        let lowered = self.recorder.burst.as_mut().and_then(|burst| burst.lower(u64::MAX));
        if let Some(start_ns) = lowered {
            let now_ns = self.since_start(sys::clock::now_ns());
            self.recorder.note("rate", RAISED.to_owned(), start_ns, now_ns);
        }
    }

    fn mark(&mut self, text: String) {
        let now_ns = self.since_start(sys::clock::now_ns());
        self.recorder.note("mark", text, now_ns, now_ns);
    }

    fn note_progress(&mut self, text: String) {
        let at_ns = self.since_start(sys::clock::now_ns());
        if let Some(text) = self.progress.take_due(text, at_ns) {
            self.recorder.note(ProgressNotes::KIND, text, at_ns, at_ns);
        }
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

    /// Notes that the clock of the day was set, or that the machine was suspended, which moves it
    /// against the steady one. Each takes only what is more than clocks drift.
    fn check_clock(&mut self, now_ns: u64) {
        let (offset_ns, suspended_ns) = (self.clock.offset_ns(), self.clock.suspended_ns());
        let slept_ns = suspended_ns.saturating_sub(self.suspended_ns);
        let was_suspended = i128::from(slept_ns) > CLOCK_JUMP_NS;
        let asleep_ns = if was_suspended { slept_ns } else { 0 };
        let set_ns = offset_ns - self.day_offset_ns - i128::from(asleep_ns);
        (self.day_offset_ns, self.suspended_ns) = (offset_ns, suspended_ns);
        let suspended = was_suspended.then(|| ClockSet::suspended(slept_ns));
        let set = (set_ns.abs() > CLOCK_JUMP_NS).then(|| ClockSet::by(set_ns));
        let at_ns = self.since_start(now_ns);
        for moved in suspended.into_iter().chain(set) {
            self.recorder.note(ClockSet::KIND, moved.to_string(), at_ns, at_ns);
        }
    }

    /// Writes what is still to come and gives everything.
    fn close(mut self, ended: Ended) -> Recording {
        self.last_sample();
        // The rest of the work is not urgent.
        let _ = sys::scheduling::ordinary();
        self.drain_marks();
        if let Some((text, at_ns)) = self.progress.take_rest() {
            self.recorder.note(ProgressNotes::KIND, text, at_ns, at_ns);
        }
        self.note_raised_rate();
        // A mark that is sent from now on is refused, so its sender learns that it did not arrive.
        self.marks = None;
        self.recorder.flush_burst();
        let now_ns = sys::clock::now_ns();
        let noticed_ns = self.since_start(ended.at_ns.unwrap_or(now_ns));
        let ending = match ended.ending {
            Ending::Killed { signal, out_of_memory } => Ending::Killed {
                signal,
                out_of_memory: self.recorder.limit_met_later(out_of_memory),
            },
            other => other,
        };
        let last = self.recorder.end_sources(now_ns);
        let reported_ns = ended.process.and_then(|(pid, began_ns)| {
            let lived_ns = last.report.lives_ns.get(&pid)?;
            Some(self.since_start(began_ns.saturating_add(*lived_ns)))
        });
        // The kernel's figure counts if this process was stopped when the command ended.
        let ended_ns = match reported_ns {
            Some(reported_ns) if noticed_ns.saturating_sub(reported_ns) > STOPPED_NS => reported_ns,
            _ => noticed_ns,
        };
        let cpu_ns = self.cpu_ns();
        let outcome = RecordingOutcome {
            ending,
            ended_ns,
            usage: ended.usage,
            processes: last.processes,
            lost_exits: last.report.lost,
            lost_events: last.lost_events,
            missed_samples: self.pace.missed(),
            own_cpu_ns: cpu_ns.saturating_sub(self.cpu_before_ns),
            own_setup_ns: self.setup_ns + cpu_ns.saturating_sub(self.last_sample_cpu_ns),
            // What was lost, and why it stopped, is known where it is written.
            ..RecordingOutcome::default()
        };
        if self.recorder.facts.sight("locked").is_open() {
            // Cannot fail on Linux; the process goes on without a recorder.
            let _ = sys::scheduling::unlock_memory();
        }
        let recording = self.recorder.finish(outcome);
        sys::perf::wait_until_left();
        recording
    }

    fn since_start(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.started_ns)
    }

    /// CPU time of the recorder: of the process, or beside a probe of this thread alone.
    fn cpu_ns(&self) -> u64 {
        if self.purpose == RecordingPurpose::Probe {
            return sys::scheduling::thread_cpu_ns();
        }
        process_cpu_ns()
    }
}

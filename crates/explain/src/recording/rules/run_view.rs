//! Quantities that several rules share: how much time matters, how long a part of the
//! bars is, how much a counter grew, what the subject read and wrote.
//!
//! All of it is arithmetic on what is there; an absent counter stays `None`.

use super::small_calls::SYNCS;
use super::{LEAST_ASLEEP_SHARE, LEAST_ESTIMATED_SHARE, LEAST_NS, LEAST_SHARE};
use crate::recording::View;
use crate::recording::accounting::Accounts;
use crate::recording::accounting::processor_samples::{
    CALL, CLASSES, FILE_FAULT, ORIGINS, ProcessorSamples, SampledTime, WITHIN,
};
use crate::recording::witness::watching_command;
use crate::verdict::{NoFinding, Verdict, clear_count};
use model::explanation::{OverlappingPart, TimePart, TimeSlice};
use model::recording::{CallPurpose, CallShare, Series, Subject, Task, Usage};
use model::{Evidence, Finding, Grade};
use std::ops::Deref;

/// What a rule looks at: a recording's view, and the time of it that was accounted for.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    /// The recording.
    pub view: &'a View<'a>,
    /// Its time.
    pub accounts: &'a Accounts,
}

impl<'a> Deref for RunView<'a> {
    type Target = View<'a>;

    fn deref(&self) -> &Self::Target {
        self.view
    }
}

/// The series of events that tell of a part.
const EVENTS: [(TimePart, &[&str]); 18] = [
    (TimePart::BlockRead, &["trace.block_io.read_ns"]),
    (TimePart::BlockWrite, &["trace.block_io.write_ns"]),
    (TimePart::DirectIo, &["trace.block_io.direct_ns"]),
    (TimePart::SwapIn, &["trace.block_io.swap_in_ns"]),
    (TimePart::DirtyThrottle, &["trace.block_io.dirty_ns"]),
    (TimePart::Flush, &["trace.block_io.flush_ns", "trace.sleep.flush_ns"]),
    (TimePart::BlockMetadata, &["trace.block_io.metadata_ns"]),
    (TimePart::BlockJournal, &["trace.block_io.journal_ns"]),
    (TimePart::WritebackWait, &["trace.block_io.writeback_ns"]),
    (TimePart::LowerDevice, &["trace.block_io.lower_ns"]),
    (TimePart::DirectReclaim, &["trace.vmscan.direct_reclaim_ns"]),
    (TimePart::ReclaimThrottle, &["trace.vmscan.throttled_ns"]),
    (TimePart::Compaction, &["trace.vmscan.compaction_ns"]),
    (TimePart::Timer, &["trace.sleep.timer_ns"]),
    (TimePart::Lock, &["trace.sleep.lock_ns"]),
    (TimePart::Pipe, &["trace.sleep.pipe_ns"]),
    (TimePart::Socket, &["trace.sleep.socket_ns"]),
    (TimePart::Poll, &["trace.sleep.poll_ns"]),
];

/// The page size of nearly all machines, for a recording that does not tell it.
const USUAL_PAGE_BYTES: u64 = 4096;

impl RunView<'_> {
    /// The time that shares are taken of: what the threads did other than sleep and wait
    /// for children, but at least the wall time and at most all thread time. So a
    /// pool of idle threads does not dilute a share, and a command that mostly sleeps
    /// does not blow one up.
    pub(super) fn reference_ns(&self) -> u64 {
        let accounts = self.accounts;
        let sum = |a: u64, b: u64| a.saturating_add(b);
        let busy = [
            TimeSlice::Run,
            TimeSlice::User,
            TimeSlice::Kernel,
            TimeSlice::Queue,
            TimeSlice::BlockIo,
            TimeSlice::Steal,
        ]
        .iter()
        .map(|name| accounts.thread(*name))
        .fold(0, sum);
        busy.max(self.wall_ns()).min(accounts.thread_ns.max(self.wall_ns()))
    }

    /// `ns` as a share of [`RunView::reference_ns`], 0 where that is 0.
    pub(super) fn share(&self, ns: u64) -> f64 {
        ratio(ns as f64, self.reference_ns() as f64)
    }

    /// Whether so much thread time matters.
    pub(in crate::recording) fn hurts(&self, ns: u64) -> bool {
        ns >= LEAST_NS && self.share(ns) >= LEAST_SHARE
    }

    /// Whether an estimate of time on processors matters. Waits for a processor do not
    /// count: a busy neighbour makes no fault cheaper.
    pub(super) fn hurts_by_estimate(&self, ns: u64) -> bool {
        let queue = self.accounts.thread(TimeSlice::Queue);
        let whole = self.reference_ns().saturating_sub(queue);
        ns >= LEAST_NS && ratio(ns as f64, whole as f64) >= LEAST_ESTIMATED_SHARE
    }

    /// Whether so much wall time, with all threads asleep, matters.
    pub(super) fn hurts_asleep(&self, ns: u64) -> bool {
        let wall = self.wall_ns() as f64;
        ns >= LEAST_NS && ratio(ns as f64, wall) >= LEAST_ASLEEP_SHARE
    }

    /// How long the part of this name is, by its best source. The bars list no part that is
    /// empty, so a part that events would have told is 0 where its series are there.
    pub(super) fn part_ns(&self, name: TimePart) -> Option<u64> {
        let listed = self.parts(name).map(|part| part.ns).max();
        listed.or_else(|| {
            let series = EVENTS.iter().find(|(part, _)| *part == name)?.1;
            self.growth_of_all(series)
        })
    }

    /// How the part of this name is known; `Inferred` if it is absent.
    pub(super) fn part_grade(&self, name: TimePart) -> Grade {
        self.parts(name).next().map_or(Grade::Inferred, |part| part.grade)
    }

    /// A part's length as evidence.
    pub(super) fn part_evidence(&self, name: TimePart) -> Option<Evidence> {
        let ns = self.part_ns(name)?;
        let named = self.parts(name).find_map(|part| part.evidence.first());
        let source = named.map_or("accounting", |evidence| evidence.source.as_str());
        let evidence = Evidence::new(name.id().replace('_', " "), ns as f64, "ns", source);
        Some(evidence.seen_in(self.part_series(name)))
    }

    /// A claim that rests on a part's length, known as the part is.
    pub(super) fn part_finding(&self, name: TimePart, claim: impl Into<String>) -> Finding {
        Finding::new(self.part_grade(name), claim, self.part_evidence(name))
    }

    /// The verdict where something was counted and its time is not known: unseen if it can be in
    /// time that nobody explains, else cleared by the count (`refaults`).
    pub(super) fn without_time<F>(
        &self,
        counted: Option<Evidence>,
        of: &str,
        why: &str,
    ) -> Verdict<F> {
        let is_counted = counted.as_ref().is_some_and(|number| number.value > 0.0);
        if is_counted && self.hurts(self.accounts.thread(TimeSlice::Unexplained)) {
            return needs_events(self, why);
        }
        clear_count(counted, of)
    }

    /// The series that a part was computed from; those of the events where there is no part.
    pub(super) fn part_series(&self, name: TimePart) -> Vec<String> {
        let mut named = series_of(self.parts(name).flat_map(|part| &part.evidence));
        named.retain(|series| self.growth(series).is_some());
        let events = EVENTS.iter().find(|(part, _)| *part == name);
        match (named.is_empty(), events) {
            (true, Some((_, series))) => series.iter().map(ToString::to_string).collect(),
            _ => named,
        }
    }

    /// The series that a slice of the thread bar was computed from.
    pub(super) fn slice_series(&self, name: TimeSlice) -> Vec<String> {
        let slices = self.accounts.bars.thread.iter().filter(|slice| slice.name == name);
        series_of(slices.flat_map(|slice| &slice.evidence))
    }

    fn parts(&self, name: TimePart) -> impl Iterator<Item = &OverlappingPart> {
        let all = self.accounts.of_which.iter();
        all.filter(move |part| part.name == name)
    }

    /// Whether the kernel's stacks say what threads waited in block I/O for.
    pub(super) fn has_wait_classes(&self) -> bool {
        let mut parts = self.accounts.of_which.iter();
        let is_classed = |part: &OverlappingPart| {
            part.within == TimeSlice::BlockIo && part.grade == Grade::Measured
        };
        self.starting_with("trace.block_io.").next().is_some() || parts.any(is_classed)
    }

    /// How a slice of the thread bar is known.
    pub(super) fn slice_grade(&self, name: TimeSlice) -> Grade {
        let slice = self.accounts.bars.thread.iter().find(|s| s.name == name);
        slice.map_or(Grade::Inferred, |slice| slice.grade)
    }

    /// Time on processors, as one number or as the sum of its two halves.
    pub(in crate::recording) fn run_ns(&self) -> u64 {
        let halves = self
            .accounts
            .thread(TimeSlice::User)
            .saturating_add(self.accounts.thread(TimeSlice::Kernel));
        self.accounts.thread(TimeSlice::Run).max(halves)
    }

    /// The samples of the processors, if they are enough.
    pub(in crate::recording) fn processor_samples(&self) -> Option<ProcessorSamples<'_>> {
        ProcessorSamples::of(self.view)
    }

    /// The processor time of a part by samples; `None` where they do not tell it.
    pub(in crate::recording) fn sampled(&self, part: TimePart) -> Option<SampledTime> {
        let mut known = ORIGINS.iter().chain(&CLASSES);
        let (_, series) = known.find(|(known, _)| *known == part)?;
        Some(self.processor_samples()?.time([*series], self.run_ns()))
    }

    /// The processor time inside of these system calls by samples.
    pub(in crate::recording) fn sampled_calls(&self, calls: &[&str]) -> Option<SampledTime> {
        let series: Vec<String> = calls.iter().map(|call| format!("{CALL}{call}")).collect();
        let names = series.iter().map(String::as_str);
        Some(self.processor_samples()?.time(names, self.run_ns()))
    }

    /// The processor time of calls to read or to write, without what [`CallShare`] names.
    pub(super) fn sampled_transfers(&self, calls: &[&str]) -> Option<SampledTime> {
        let shares = CallShare::ALL.map(|(_, name)| name);
        let within = within(calls, &shares);
        let series: Vec<String> = calls.iter().map(|call| format!("{CALL}{call}")).collect();
        let [all, apart] = [&series, &within].map(|names| names.iter().map(String::as_str));
        Some(self.processor_samples()?.time_without(all, apart, self.run_ns()))
    }

    /// The processor time that calls to read and faults on files spent on getting data from a
    /// device: filling the page cache, and handing requests to the device and its driver.
    pub(super) fn sampled_device_reads(&self) -> Option<SampledTime> {
        let asking = ["block", "cache_fill"];
        let mut series = within(CallPurpose::Read.calls(), &asking);
        series.extend(within(&[FILE_FAULT], &asking));
        let names = series.iter().map(String::as_str);
        Some(self.processor_samples()?.time(names, self.run_ns()))
    }

    /// The processor time of calls that make what was written safe, and that calls to write spent
    /// on handing requests to a device and its driver.
    pub(super) fn sampled_device_writes(&self) -> Option<SampledTime> {
        let mut series = within(CallPurpose::Write.calls(), &["block"]);
        series.extend(SYNCS.iter().map(|call| format!("{CALL}{call}")));
        let names = series.iter().map(String::as_str);
        Some(self.processor_samples()?.time(names, self.run_ns()))
    }

    /// Of that, in the kernel.
    pub(in crate::recording) fn kernel_ns(&self) -> Option<u64> {
        let slice = self.accounts.thread(TimeSlice::Kernel);
        let part = self
            .part_ns(TimePart::Kernel)
            .filter(|_| self.accounts.part(TimePart::Kernel).is_some_and(of_run));
        part.or((slice > 0).then_some(slice)).map(|ns| ns.min(self.run_ns()))
    }

    /// Of that, in user mode.
    pub(in crate::recording) fn user_ns(&self) -> Option<u64> {
        let slice = self.accounts.thread(TimeSlice::User);
        let ns = self.part_ns(TimePart::User).or((slice > 0).then_some(slice));
        ns.map(|ns| ns.min(self.run_ns()))
    }

    /// Whether the recording is of everything rather than of one subject.
    pub(in crate::recording) fn is_machine(&self) -> bool {
        self.facts().subject == Subject::Machine
    }

    /// The most that all devices can have kept the subject waiting: what their requests took,
    /// once for each thread, as all of them may wait for the same ones. `None` where that is not
    /// known, or where a group's limit may hold requests back before they reach a device.
    pub(in crate::recording) fn most_device_wait_ns(&self) -> Option<u64> {
        let is_limit = |series: &Series| series.schema.name.contains(".max.");
        if self.starting_with("group").any(is_limit) {
            return None;
        }
        let took = ["read_ns", "write_ns", "flush_ns"]
            .map(|end| self.growth_between("disk.", &format!(".{end}")).unwrap_or(0))
            .into_iter()
            .fold(0, u64::saturating_add);
        // Nothing at all: these counters were not recorded.
        let threads = u64::try_from(self.max("tree.threads")?).ok()?.max(1);
        (took > 0).then(|| took.saturating_mul(threads).saturating_add(LEAST_NS))
    }

    /// Bytes in a base page.
    pub(super) fn page_bytes(&self) -> u64 {
        match self.facts().page_bytes {
            0 => USUAL_PAGE_BYTES,
            bytes => bytes,
        }
    }

    /// Processors, at least one.
    pub(super) fn processors(&self) -> u64 {
        u64::from(self.facts().processors.max(1))
    }

    /// Bytes that the subject read from devices. The sources miss different things (short
    /// processes, children that nobody waited for), so the largest one is taken.
    pub(super) fn read_bytes(&self) -> Option<u64> {
        self.largest("tree.read_bytes", |task| task.read_bytes, |u| u.read_bytes)
    }

    /// Bytes that the subject wrote to devices, or left to be written.
    pub(super) fn write_bytes(&self) -> Option<u64> {
        self.largest("tree.write_bytes", |task| task.write_bytes, |u| u.write_bytes)
    }

    /// Bytes that the subject asked for by read calls, from whatever served them.
    pub(super) fn read_chars(&self) -> Option<u64> {
        self.largest("tree.read_chars", |task| task.read_chars, |_| 0)
    }

    /// Bytes that the subject gave to write calls.
    pub(super) fn write_chars(&self) -> Option<u64> {
        self.largest("tree.write_chars", |task| task.write_chars, |_| 0)
    }

    /// How many read calls the subject made.
    pub(super) fn read_calls(&self) -> Option<u64> {
        self.largest("tree.read_calls", |task| task.read_calls, |_| 0)
    }

    /// How many write calls.
    pub(super) fn write_calls(&self) -> Option<u64> {
        self.largest("tree.write_calls", |task| task.write_calls, |_| 0)
    }

    /// The subject's page faults that needed no I/O.
    pub(super) fn minor_faults(&self) -> Option<u64> {
        self.largest("tree.minor_faults", |t| t.minor_faults, |u| u.minor_faults)
    }

    /// The subject's page faults that waited for I/O.
    pub(super) fn major_faults(&self) -> Option<u64> {
        self.largest("tree.major_faults", |t| t.major_faults, |u| u.major_faults)
    }

    fn largest(
        &self,
        series: &str,
        of_task: fn(&Task) -> u64,
        of_usage: fn(&Usage) -> u64,
    ) -> Option<u64> {
        let sampled = self.growth(series);
        let tasks = self.tasks();
        let rows = (!tasks.is_empty()).then(|| {
            let each = tasks.iter().map(of_task);
            each.fold(0u64, u64::saturating_add)
        });
        let usage = self.usage().map(of_usage);
        // 0 from `of_usage` may mean that the kernel does not tell it there.
        [sampled, rows, usage.filter(|value| *value > 0)].into_iter().flatten().max()
    }
}

/// The series of these pieces of evidence; a piece that names none is named like its own.
pub(super) fn series_of<'e>(evidence: impl IntoIterator<Item = &'e Evidence>) -> Vec<String> {
    let evidence = evidence.into_iter();
    let series = evidence.flat_map(|number| match number.series.as_slice() {
        [] => std::slice::from_ref(&number.name),
        series => series,
    });
    series.cloned().collect()
}

/// The series of these shares of calls.
fn within(calls: &[&str], shares: &[&str]) -> Vec<String> {
    let mut series = Vec::new();
    for call in calls {
        series.extend(shares.iter().map(|share| format!("{WITHIN}{call}.{share}")));
    }
    series
}

fn of_run(part: &OverlappingPart) -> bool {
    part.within == TimeSlice::Run || part.within == TimeSlice::Kernel
}

/// `a / b`, 0 where `b` is 0.
pub(super) fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

/// A share (0 to 1, whatever it is handed) of a length.
pub(super) fn part_of(ns: u64, share: f64) -> u64 {
    // Large lengths round up on their way through a float.
    ((ns as f64 * share.clamp(0.0, 1.0)) as u64).min(ns)
}

/// Events would tell.
pub(super) fn needs_events<F>(run: &RunView, why: &str) -> Verdict<F> {
    let remedy = watching_command(run.facts(), Some("sched"), false);
    Err(NoFinding::Unseen { why: why.to_owned(), remedy: Some(remedy) })
}

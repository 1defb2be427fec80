//! The part of a recording that is explained, and the questions that accounting and rules
//! ask of it.

use super::who::sums::{ProcessSum, SharedSum, process_sums, request_sums};
use model::Evidence;
use model::explanation::Interval;
use model::recording::{
    DeviceKind, Facts, LIMITED, ProcessFigure, Recording, Series, Span, Subject, Task, Usage,
};
use std::collections::HashMap;

/// The names of all series that a copy counts of itself start so.
pub(super) const COPY: &str = "copy.";

/// Whether a counter of this name counts from 0 when it first appears: sums of events, counts of
/// limited groups, and what a copy counts of itself.
pub(super) fn begins_at_zero(name: &str) -> bool {
    name.starts_with("trace.") || name.starts_with(COPY) || name.starts_with(LIMITED)
}

/// A part of a recording, in nanoseconds since its start; `None` is its own end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The first instant.
    pub from_ns: Option<u64>,
    /// The last instant.
    pub to_ns: Option<u64>,
}

/// A recording seen through a window.
#[derive(Debug)]
pub struct View<'a> {
    recording: &'a Recording,
    by_name: HashMap<&'a str, &'a Series>,
    from_ns: u64,
    to_ns: u64,
    first: u32,
    last: u32,
    whole: bool,
    rows: (u64, u64),
    processes: Vec<ProcessSum<'a>>,
}

/// What each process used, and what devices read and wrote for it where the requests say that.
fn sums_of(recording: &Recording, rows: (u64, u64)) -> Vec<ProcessSum<'_>> {
    let mut sums = process_sums(&recording.who, rows.0, rows.1);
    let requests = request_sums(&recording.who, rows.0, rows.1);
    if requests.is_empty() {
        return sums;
    }
    let of_process: HashMap<u32, usize> =
        sums.iter().enumerate().map(|(at, sum)| (sum.process.id, at)).collect();
    sums.iter_mut().for_each(|sum| sum.device_bytes = [SharedSum::default(); 2]);
    for one in requests.iter().filter(|one| is_disk(recording, one.device)) {
        if let Some(sum) = of_process.get(&one.process).and_then(|at| sums.get_mut(*at)) {
            let bytes = &mut sum.device_bytes[usize::from(one.is_write)];
            *bytes = bytes.plus(one.bytes);
        }
    }
    sums
}

/// Whether a device is made of no others: what goes through two of them counts once.
fn is_disk(recording: &Recording, (major, minor): (u32, u32)) -> bool {
    let number = format!("{major}:{minor}");
    let known = recording.facts.devices.iter().find(|device| device.number == number);
    known.is_none_or(|device| device.kind == DeviceKind::Disk)
}

impl<'a> View<'a> {
    /// The part of `recording` in `window`: from the last sample at or before its start to
    /// the first at or after its end. Counters are known at samples only, so a window is as
    /// wide as its samples are apart, and the instants that it is asked for move with it.
    #[must_use]
    pub fn new(recording: &'a Recording, window: Window) -> Self {
        let series = recording.series.iter();
        let by_name = series.map(|series| (series.schema.name.as_str(), series)).collect();
        Self::over(recording, by_name, window)
    }

    /// The same recording in a part of this one.
    #[must_use]
    pub fn during(&self, part: Interval) -> Self {
        let window = Window { from_ns: Some(part.from_ns), to_ns: Some(part.to_ns) };
        Self::over(self.recording, self.by_name.clone(), window)
    }

    fn over(
        recording: &'a Recording,
        by_name: HashMap<&'a str, &'a Series>,
        window: Window,
    ) -> Self {
        let wall = recording.wall_ns();
        let from_ns = window.from_ns.unwrap_or(0).min(wall);
        let to_ns = window.to_ns.unwrap_or(wall).clamp(from_ns, wall);
        let ticks = &recording.ticks;
        let count = ticks.len();
        let first = ticks.partition_point(|tick| tick.at_ns <= from_ns).saturating_sub(1);
        let whole = from_ns == 0 && to_ns == wall;
        let until = if whole { count } else { ticks.partition_point(|tick| tick.at_ns < to_ns) };
        let last = until.min(count.saturating_sub(1)).max(first);
        let (from_ns, to_ns) = match (whole, ticks.get(first), ticks.get(last)) {
            (false, Some(start), Some(end)) => {
                let start = start.at_ns.min(wall);
                (start, end.at_ns.clamp(start, wall))
            }
            _ => (from_ns, to_ns),
        };
        // A whole recording has all rows of processes, also one that ends a moment after it.
        let rows = if whole { (0, u64::MAX) } else { (from_ns, to_ns) };
        let view = Self {
            recording,
            by_name,
            from_ns,
            to_ns,
            first: u32::try_from(first).unwrap_or(u32::MAX),
            last: u32::try_from(last).unwrap_or(u32::MAX),
            whole,
            processes: sums_of(recording, rows),
            rows,
        };
        view.with_unseen_refaults()
    }

    /// Shares out what the kernel counts as read again and no process was seen to: what had been
    /// evicted before the recorder ran, or was forgotten since. Each process gets more in
    /// proportion to what it was seen to read again, at most all that it read.
    fn with_unseen_refaults(mut self) -> Self {
        let seen = |sum: &ProcessSum| sum.get(ProcessFigure::Refaulted).value;
        let all_seen = self.processes.iter().map(seen).fold(0, u64::saturating_add);
        let pages = self.growth("vmstat.workingset_refault_file").unwrap_or(0);
        let counted = pages.saturating_mul(self.facts().page_bytes);
        if all_seen == 0 || counted <= all_seen || self.facts().subject != Subject::Machine {
            return self;
        }
        let times = counted as f64 / all_seen as f64;
        for sum in &mut self.processes {
            let read = sum.get(ProcessFigure::ReadBytes).value;
            let again = &mut sum.figures[ProcessFigure::Refaulted as usize];
            let most = read.max(again.value);
            again.value = ((again.value as f64 * times) as u64).min(most);
            again.shared = ((again.shared as f64 * times) as u64).min(again.value);
        }
        self
    }

    /// What each process used in it; empty where processes were not watched.
    pub(crate) fn process_sums(&self) -> &[ProcessSum<'a>] {
        &self.processes
    }

    /// The instants between which rows of processes and files belong to it.
    pub(super) fn row_bounds(&self) -> (u64, u64) {
        self.rows
    }

    /// What was watched, where, and with what sight.
    #[must_use]
    pub fn facts(&self) -> &'a Facts {
        &self.recording.facts
    }

    /// The recording itself.
    #[must_use]
    pub fn recording(&self) -> &'a Recording {
        self.recording
    }

    /// The rows of delay accounting; they cover the whole recording, so none in a window.
    #[must_use]
    pub fn tasks(&self) -> &'a [Task] {
        if self.whole { &self.recording.tasks } else { &[] }
    }

    /// Whether the subject is a command, which is known from its start to its end.
    #[must_use]
    pub fn is_command(&self) -> bool {
        matches!(self.facts().subject, Subject::Command { .. })
    }

    /// What `wait4` said of a whole recording's subject.
    #[must_use]
    pub fn usage(&self) -> Option<&'a Usage> {
        self.recording.outcome.as_ref().filter(|_| self.whole)?.usage.as_ref()
    }

    /// When a sample was taken.
    #[must_use]
    pub fn at_ns(&self, sample: u32) -> Option<u64> {
        self.recording.ticks.get(sample as usize).map(|tick| tick.at_ns)
    }

    /// Whether all of the recording is looked at.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// The first instant.
    #[must_use]
    pub fn from_ns(&self) -> u64 {
        self.from_ns
    }

    /// The last instant.
    #[must_use]
    pub fn to_ns(&self) -> u64 {
        self.to_ns
    }

    /// The wall time.
    #[must_use]
    pub fn wall_ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }

    /// When events were not followed in it: stopped from then on, or paused for a while.
    pub(super) fn events_gap(&self) -> Option<&'a Span> {
        self.recording.spans.iter().find(|span| match span.kind.as_str() {
            "events_stopped" => span.start_ns < self.to_ns,
            "events_paused" => span.start_ns < self.to_ns && span.end_ns > self.from_ns,
            _ => false,
        })
    }

    /// Whether events were stopped at some time, and not only paused.
    pub(super) fn events_were_stopped(&self) -> bool {
        self.recording.spans.iter().any(|span| span.kind == "events_stopped")
    }

    /// The series of this name.
    #[must_use]
    pub fn series(&self, name: &str) -> Option<&'a Series> {
        self.by_name.get(name).copied()
    }

    /// Names and series that start with `prefix`, in no order.
    pub fn starting_with<'s>(&'s self, prefix: &'s str) -> impl Iterator<Item = &'a Series> + 's {
        let all = self.recording.series.iter();
        all.filter(move |series| series.schema.name.starts_with(prefix))
    }

    /// How much a counter grew; `None` where it was not recorded.
    #[must_use]
    pub fn growth(&self, name: &str) -> Option<u64> {
        if name.starts_with(LIMITED) || name.starts_with(COPY) {
            return self.sum(name);
        }
        self.series(name)?.growth(self.first, self.last)
    }

    /// How much a sum grew that the recorder itself keeps, from 0 on (`begins_at_zero`): what it
    /// has when it first appears is growth too. `None` where it was not recorded.
    #[must_use]
    pub fn sum(&self, name: &str) -> Option<u64> {
        let series = self.series(name)?;
        let growth = series.growth(self.first, self.last)?;
        let known = series.steps.iter().find(|step| step.value.is_some());
        let appeared =
            known.filter(|step| step.sample > self.first).and_then(|step| step.value).unwrap_or(0);
        Some(growth.saturating_add(u64::try_from(appeared).unwrap_or(0)))
    }

    /// The kernel file that a series comes from; empty where it was not recorded.
    #[must_use]
    pub fn source(&self, name: &str) -> &'a str {
        self.series(name).map_or("", |series| series.schema.source.as_str())
    }

    /// The sum of what counters of these names grew; `None` where none of them is there.
    pub(super) fn growth_of_all(&self, names: &[&str]) -> Option<u64> {
        names.iter().filter_map(|name| self.growth(name)).reduce(u64::saturating_add)
    }

    /// All series between a prefix and a suffix.
    pub(super) fn between<'s>(
        &'s self,
        prefix: &'s str,
        suffix: &'s str,
    ) -> impl Iterator<Item = &'a Series> + 's {
        self.starting_with(prefix).filter(move |series| series.schema.name.ends_with(suffix))
    }

    /// Their names.
    pub(super) fn names_between(&self, prefix: &str, suffix: &str) -> Vec<&'a str> {
        self.between(prefix, suffix).map(|series| series.schema.name.as_str()).collect()
    }

    /// The sum of what they grew; `None` where none of them is there.
    pub(crate) fn growth_between(&self, prefix: &str, suffix: &str) -> Option<u64> {
        let names = self.names_between(prefix, suffix).into_iter();
        names.filter_map(|name| self.growth(name)).reduce(u64::saturating_add)
    }

    /// A counter's growth as evidence.
    pub(super) fn grown(&self, name: &str) -> Option<Evidence> {
        self.growth(name).map(|grown| self.evidence(name, grown as f64))
    }

    /// The growths of those counters that are there and moved, as evidence.
    pub(super) fn all_grown(&self, names: &[&str]) -> Vec<Evidence> {
        let grown = names.iter().filter_map(|name| self.grown(name));
        grown.filter(|evidence| evidence.value > 0.0).collect()
    }

    /// A number of a series as evidence: with its unit and source.
    pub(super) fn evidence(&self, name: &str, value: f64) -> Evidence {
        let schema = self.series(name).map(|series| &series.schema);
        let or =
            |text: Option<&'a str>, absent| text.filter(|text| !text.is_empty()).unwrap_or(absent);
        let unit = or(schema.map(|schema| schema.unit.as_str()), "count");
        let source = or(schema.map(|schema| schema.source.as_str()), "the recording");
        Evidence::new(name, value, unit, source).seen_in([name])
    }

    /// The value at the start.
    #[must_use]
    pub fn at_start(&self, name: &str) -> Option<i64> {
        self.series(name)?.at(self.first)
    }

    /// The value at the end.
    #[must_use]
    pub fn at_end(&self, name: &str) -> Option<i64> {
        self.series(name)?.at(self.last)
    }

    /// The last value that was known until the end: of a setting, also of what is gone by then.
    #[must_use]
    pub fn latest(&self, name: &str) -> Option<i64> {
        let changes = self.series(name)?.within(self.first, self.last);
        changes.filter_map(|step| step.value).last().or_else(|| self.at_start(name))
    }

    /// The largest value.
    #[must_use]
    pub fn max(&self, name: &str) -> Option<i64> {
        self.series(name)?.max(self.first, self.last)
    }

    /// The smallest value that is not below 0.
    #[must_use]
    pub fn lowest(&self, name: &str) -> Option<u64> {
        let changes = self.series(name)?.within(self.first, self.last);
        let values = changes.filter_map(|step| step.value).chain(self.at_start(name));
        values.filter_map(|value| u64::try_from(value).ok()).min()
    }

    /// The samples that are looked at, first and last.
    #[must_use]
    pub fn samples(&self) -> (u32, u32) {
        (self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::recording::{Process, ProcessRow, Schema, Steps, Tick};

    const PAGE: u64 = 4096;

    /// What two processes read again, pages: of so many that the kernel counts, the first was seen
    /// to read 400 again of its 900, the second none of its 500.
    fn read_again(counted_pages: i64, subject: Subject) -> [u64; 2] {
        let mut recording = Recording::default();
        recording.facts.subject = subject;
        recording.facts.page_bytes = PAGE;
        recording.ticks = [0, 10].map(|at_ns| Tick { due_ns: at_ns, at_ns }).to_vec();
        let name = "vmstat.workingset_refault_file".to_owned();
        let schema = Schema { name, ..Schema::default() };
        let mut series = Series { schema, steps: Steps::new() };
        series.push(0, Some(7));
        series.push(1, Some(7 + counted_pages));
        recording.series = vec![series];
        for (id, (read, again)) in (0..).zip([(900, 400), (500, 0)]) {
            recording.who.processes.push(Process { id, ..Process::default() });
            let mut row =
                ProcessRow { process: id, to_ns: 10, processes: 1, ..ProcessRow::default() };
            row.figures[ProcessFigure::ReadBytes as usize] = read * PAGE;
            row.figures[ProcessFigure::Refaulted as usize] = again * PAGE;
            recording.who.rows.push(row);
        }
        let view = View::new(&recording, Window::default());
        let pages = |at: usize| view.process_sums()[at].get(ProcessFigure::Refaulted).value / PAGE;
        [pages(0), pages(1)]
    }

    /// The mark of a page that was evicted before the recorder ran is not there.
    #[test]
    fn what_was_evicted_before_the_recorder_ran_is_read_again_too() {
        assert_eq!(read_again(400, Subject::Machine), [400, 0]);
        assert_eq!(read_again(800, Subject::Machine), [800, 0]);
        assert_eq!(read_again(5_000, Subject::Machine), [900, 0], "all that it read");
        assert_eq!(read_again(100, Subject::Machine), [400, 0], "what was seen was seen");
        let one = Subject::Group { path: "/a".to_owned(), unit: None };
        assert_eq!(read_again(800, one), [400, 0], "others read it");
    }
}

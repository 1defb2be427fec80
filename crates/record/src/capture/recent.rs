//! The last minutes of a recording, in memory, for a viewer that shows them while they are made.
//!
//! Bounded by time and by bytes: what is older is forgotten, a sixteenth of the time at once,
//! so that forgetting is rare. Samples are numbered from the oldest one that is left, processes
//! and files from the first one that has a row: their ids change when something is forgotten.

use crate::Result;
use crate::file::bytes_of_who;
use crate::known_identities::{KnownIdentities, PartIds};
use crate::registry::{ABSENT, Row};
use crate::sink::RecordSink;
use model::recording::{Facts, Recording, RecordingOutcome, Schema, Series, Span, Task, Tick, Who};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// What is older is forgotten.
    pub time_ns: u64,
    /// The most bytes of values; vectors that grow may hold as much again.
    pub bytes: usize,
}

/// Too old by this part of the time before it is forgotten.
const SLACK: u64 = 16;

/// Of a recording that takes too many bytes this part is forgotten at once.
const TOO_MANY: usize = 8;

/// A sink that keeps the last minutes, shared by the sampler and its viewer.
#[derive(Clone, Debug)]
pub(super) struct RecentSink(Arc<Mutex<Recent>>);

impl RecentSink {
    pub fn new(keep: Keep) -> Self {
        Self(Arc::new(Mutex::new(Recent::new(keep))))
    }

    pub fn lock(&self) -> MutexGuard<'_, Recent> {
        // Each change leaves a whole recording, also one that did not end.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordSink for RecentSink {
    fn started(&mut self, facts: &Facts) {
        self.lock().recording.facts = facts.clone();
    }

    fn sample(&mut self, tick: Tick, schemas: &[Schema], row: &Row) -> Result<()> {
        self.lock().sample(tick, schemas, row);
        Ok(())
    }

    fn span(&mut self, span: &Span) -> Result<()> {
        self.lock().recording.spans.push(span.clone());
        Ok(())
    }

    /// Delay accounting is that of a whole recording, so it is not kept.
    fn tasks(&mut self, _: &[Task]) -> Result<()> {
        Ok(())
    }

    fn who(&mut self, news: &Who) -> Result<()> {
        self.lock().who(news);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// The samples stay with the viewer.
    fn finish(self, facts: &Facts, outcome: &RecordingOutcome) -> Result<Recording> {
        Ok(super::without_samples(facts.clone(), outcome.clone(), None))
    }
}

/// The last minutes.
#[derive(Debug)]
pub(super) struct Recent {
    recording: Recording,
    keep: Keep,
    /// All that may have rows again.
    identities: KnownIdentities,
    /// The ids of those that have rows now.
    ids: PartIds,
}

impl Recent {
    fn new(keep: Keep) -> Self {
        Self {
            recording: Recording::default(),
            keep,
            identities: KnownIdentities::default(),
            ids: PartIds::default(),
        }
    }

    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    fn sample(&mut self, tick: Tick, schemas: &[Schema], row: &Row) {
        let Recording { ticks, series, .. } = &mut self.recording;
        let sample = u32::try_from(ticks.len()).unwrap_or(u32::MAX);
        ticks.push(tick);
        let new = schemas.iter().skip(series.len()).cloned();
        series.extend(new.map(|schema| Series { schema, steps: model::recording::Steps::new() }));
        for (series, value) in series.iter_mut().zip(row.values()) {
            series.push(sample, Some(*value).filter(|value| *value != ABSENT));
        }
        self.forget();
    }

    fn who(&mut self, news: &Who) {
        self.identities.learn(news);
        let new = self.identities.renumber(news, &mut self.ids, 0);
        let who = &mut self.recording.who;
        who.processes.extend(new.processes);
        who.rows.extend(new.rows);
        who.files.extend(new.files);
        who.file_rows.extend(new.file_rows);
        who.samples.extend(new.samples);
        who.requests.extend(new.requests);
    }

    fn bytes(&self) -> usize {
        let steps = |series: &Series| series.steps.bytes();
        let spans = |span: &Span| size_of::<Span>() + span.text.len();
        self.recording.series.iter().map(steps).sum::<usize>()
            + self.recording.spans.iter().map(spans).sum::<usize>()
            + self.recording.ticks.len() * size_of::<Tick>()
            + bytes_of_who(&self.recording.who)
    }

    /// Forgets what is too old or too much; the last sample always stays.
    fn forget(&mut self) {
        let ticks = &self.recording.ticks;
        let (Some(first), Some(last)) = (ticks.first(), ticks.last()) else {
            return;
        };
        let oldest_ns = last.at_ns.saturating_sub(self.keep.time_ns);
        let mut count = 0;
        if oldest_ns > first.at_ns.saturating_add(self.keep.time_ns / SLACK) {
            count = ticks.partition_point(|tick| tick.at_ns < oldest_ns);
        }
        if self.bytes() > self.keep.bytes {
            count = count.max(ticks.len().div_ceil(TOO_MANY));
        }
        count = count.min(ticks.len() - 1);
        if count > 0 {
            self.forget_samples(count);
        }
    }

    fn forget_samples(&mut self, count: usize) {
        let Recording { ticks, series, spans, who, .. } = &mut self.recording;
        ticks.drain(..count);
        let cut = u32::try_from(count).unwrap_or(u32::MAX);
        for series in series {
            // The last of those before it holds on.
            series.renumber(|sample| sample.saturating_sub(cut));
        }
        let first_ns = ticks.first().map_or(0, |tick| tick.at_ns);
        spans.retain(|span| span.end_ns >= first_ns);
        who.rows.retain(|row| row.to_ns > first_ns);
        who.file_rows.retain(|row| row.to_ns > first_ns);
        who.samples.retain(|row| row.to_ns > first_ns);
        who.requests.retain(|row| row.to_ns > first_ns);
        self.identities.end_part();
        self.ids.remove_unused(who);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;
    use model::recording::{Process, ProcessRow, SeriesKind};

    /// A recording with a sample every second: one series that counts, one that stands still,
    /// one that appears at 50.
    fn after(samples: u64, keep: Keep) -> Recording {
        let mut sink = RecentSink::new(keep);
        let mut registry = Registry::new();
        let mut row = Row::default();
        let mut made = testkit::MadeWho::new(6);
        for number in 0..samples {
            let at_ns = number * 1_000_000_000;
            let named = |registry: &mut Registry, name: &str| {
                registry.id(name, "count", SeriesKind::Counter, "x").unwrap()
            };
            row.count(named(&mut registry, "counts"), number * 3);
            row.count(named(&mut registry, "stands"), 7);
            if number >= 50 {
                row.count(named(&mut registry, "appears"), number);
            }
            let tick = Tick { due_ns: at_ns, at_ns };
            sink.who(&made.sample(at_ns)).unwrap();
            sink.sample(tick, registry.schemas(), &row).unwrap();
            let mark = Span {
                kind: "mark".to_owned(),
                text: number.to_string(),
                start_ns: at_ns,
                end_ns: at_ns,
            };
            sink.span(&mark).unwrap();
        }
        sink.lock().recording().clone()
    }

    const HOUR: Keep = Keep { time_ns: 3_600_000_000_000, bytes: usize::MAX };

    #[test]
    fn what_is_left_is_what_a_whole_recording_tells_of_that_time() {
        let whole = after(1_000, HOUR);
        let keep = Keep { time_ns: 100_000_000_000, ..HOUR };
        let recent = after(1_000, keep);
        let kept = recent.ticks.len();
        assert!((100..=108).contains(&kept), "{kept}");
        let gone = whole.ticks.len() - kept;
        assert_eq!(recent.ticks, whole.ticks[gone..]);
        assert_eq!(recent.spans, whole.spans[gone..]);
        for (recent, whole) in recent.series.iter().zip(&whole.series) {
            assert_eq!(recent.schema, whole.schema);
            for sample in 0..kept as u32 {
                assert_eq!(recent.at(sample), whole.at(sample + gone as u32));
            }
            assert!(recent.steps.len() <= kept);
        }
        let since_ns = recent.ticks[0].at_ns;
        let of_that_time = whole.who.rows.iter().filter(|row| row.to_ns > since_ns);
        let named = |who: &Who, row: &ProcessRow| {
            let process = who.processes[row.process as usize].clone();
            (Process { id: 0, ..process }, ProcessRow { process: 0, ..*row })
        };
        let of_whole: Vec<_> = of_that_time.map(|row| named(&whole.who, row)).collect();
        let of_recent: Vec<_> = recent.who.rows.iter().map(|row| named(&recent.who, row)).collect();
        assert_eq!(of_recent, of_whole);
        assert!(recent.who.processes.len() < whole.who.processes.len());
        // Of one that stands still no more than its value is kept.
        assert_eq!(recent.series[1].steps.len(), 1);
    }

    #[test]
    fn bytes_are_bounded_whatever_the_time() {
        let keep = Keep { bytes: 100 << 10, ..HOUR };
        for samples in [1, 2, 10, 1_000] {
            let recent = after(samples, keep);
            let shared = Recent { recording: recent, ..Recent::new(keep) };
            // The last span came after the last look.
            assert!(shared.bytes() <= keep.bytes + 200, "{}", shared.bytes());
            assert!(!shared.recording.ticks.is_empty());
        }
    }
}

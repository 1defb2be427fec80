//! Recordings built in code: ticks every 100 ms, series by their values, rows by theirs.
//! Times are given in milliseconds, as a person reads them.

use explain::recording::{Window, explain};
use model::explanation::{Explanation, OverlappingPart, Slice};
use model::recording::{
    Delay, Ending, Recording, RecordingOutcome, Schema, Series, SourceState, Span, Subject, Task,
    Tick,
};

pub const MS: u64 = 1_000_000;

/// A recording that grows.
#[derive(Clone, Debug)]
pub struct Built(pub Recording);

/// A command of this length that was sampled at 10 Hz and ended well.
pub fn command(wall_ms: u64) -> Built {
    let mut recording = Recording::default();
    recording.facts.subject = Subject::Command { argv: vec!["work".to_owned()] };
    recording.facts.processors = 2;
    recording.facts.page_bytes = 4096;
    recording.facts.root = true;
    let ends = wall_ms * MS;
    let mut at_ns = 0;
    while at_ns < ends {
        recording.ticks.push(Tick { due_ns: at_ns, at_ns });
        at_ns += 100 * MS;
    }
    recording.ticks.push(Tick { due_ns: ends, at_ns: ends });
    recording.outcome = Some(RecordingOutcome {
        ending: Ending::Exited { code: 0 },
        ended_ns: ends,
        ..RecordingOutcome::default()
    });
    Built(recording)
}

/// The same machine without a command.
pub fn machine(wall_ms: u64) -> Built {
    let mut built = command(wall_ms);
    built.0.facts.subject = Subject::Machine;
    built.0.outcome.as_mut().unwrap().ending = Ending::Stopped;
    built
}

impl Built {
    /// A series by its values at the samples; it keeps the last one.
    pub fn values(mut self, name: &str, values: &[Option<i64>]) -> Self {
        let mut series = Series {
            schema: Schema {
                id: self.0.series.len() as u32,
                name: name.to_owned(),
                source: format!("source of {name}"),
                ..Schema::default()
            },
            ..Series::default()
        };
        for (sample, value) in values.iter().enumerate() {
            series.push(sample as u32, *value);
        }
        self.0.series.push(series);
        self
    }

    /// A time that grows evenly from 0 to so many milliseconds.
    pub fn grows_ms(self, name: &str, total_ms: u64) -> Self {
        self.grows(name, total_ms * MS)
    }

    /// A counter that grows evenly from 0.
    pub fn grows(self, name: &str, total: u64) -> Self {
        let last = self.0.ticks.len() as u64 - 1;
        let values: Vec<Option<i64>> =
            (0..=last).map(|sample| Some((total * sample / last) as i64)).collect();
        self.values(name, &values)
    }

    /// A level that stands still.
    pub fn stands(self, name: &str, value: i64) -> Self {
        self.values(name, &[Some(value)])
    }

    /// A row of delay accounting.
    pub fn row(mut self, task: Task) -> Self {
        self.0.tasks.push(task);
        self
    }

    /// A sight that was open all the time.
    pub fn open(mut self, sight: &str) -> Self {
        self.0.facts.sights.insert(sight.to_owned(), SourceState::Open);
        self
    }

    /// A sight that was closed.
    pub fn closed(mut self, sight: &str, why: &str) -> Self {
        let closed = SourceState::closed(why, Some("sudo"));
        self.0.facts.sights.insert(sight.to_owned(), closed);
        self
    }

    /// Something that happened.
    pub fn span(mut self, kind: &str, text: &str, at_ms: u64) -> Self {
        self.0.spans.push(Span {
            kind: kind.to_owned(),
            text: text.to_owned(),
            start_ns: at_ms * MS,
            end_ns: at_ms * MS,
        });
        self
    }

    /// Anything else about how it ended.
    pub fn ended(mut self, change: impl FnOnce(&mut RecordingOutcome)) -> Self {
        change(self.0.outcome.as_mut().unwrap());
        self
    }

    /// Switch events that tell these times of all threads, and the clock's.
    pub fn events(self, threads_ms: [u64; 5], wall_ms: [u64; 4]) -> Self {
        let states = ["run", "queue", "block_io", "children", "sleep"];
        let clocks = ["run", "queue", "block_io", "asleep"];
        let mut built = self.open("events.sched");
        for (state, ms) in states.into_iter().zip(threads_ms) {
            built = built.grows_ms(&format!("trace.sched.{state}_ns"), ms);
        }
        for (state, ms) in clocks.into_iter().zip(wall_ms) {
            built = built.grows_ms(&format!("trace.wall.{state}_ns"), ms);
        }
        built
    }

    /// What is explained of all of it.
    pub fn explained(&self) -> Explanation {
        explain(&self.0, Window::default())
    }

    /// What is explained of a part.
    pub fn between(&self, from_ms: u64, to_ms: u64) -> Explanation {
        let window = Window { from_ns: Some(from_ms * MS), to_ns: Some(to_ms * MS) };
        explain(&self.0, window)
    }
}

/// A row by its times in milliseconds.
pub fn row(alive_ms: u64, run_ms: u64, queue_ms: u64, block_io: Option<Delay>) -> Task {
    Task {
        pid: 12,
        tid: 12,
        comm: "work".to_owned(),
        threads: 1,
        alive_ns: alive_ms * MS,
        run_ns: run_ms * MS,
        queue: delay(9, queue_ms, None),
        block_io,
        ..Task::default()
    }
}

/// A category of delay in milliseconds.
pub fn delay(count: u64, total_ms: u64, max_ms: Option<u64>) -> Delay {
    Delay { count, total_ns: total_ms * MS, max_ns: max_ms.map(|ms| ms * MS) }
}

/// The length of a slice in milliseconds; `None` if absent.
pub fn slice_ms(bar: &[Slice], name: &str) -> Option<u64> {
    let slice = bar.iter().find(|slice| slice.name == name);
    slice.map(|slice| slice.ns / MS)
}

/// A part by its name.
pub fn part<'a>(explanation: &'a Explanation, name: &str) -> Option<&'a OverlappingPart> {
    explanation.of_which.iter().find(|part| part.name == name)
}

/// Both bars add up to their wholes, and no part is longer than what holds it.
pub fn adds_up(explanation: &Explanation) {
    let sum = |bar: &[Slice]| bar.iter().map(|slice| u128::from(slice.ns)).sum::<u128>();
    assert_eq!(sum(&explanation.bars.thread), u128::from(explanation.thread_ns), "thread bar");
    assert_eq!(sum(&explanation.bars.wall), u128::from(explanation.wall_ns), "wall bar");
}

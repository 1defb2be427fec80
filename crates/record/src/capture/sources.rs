//! All sources of one recording: collectors, kernel events, delay accounting, and the row that they
//! fill. Events are read last, so that their sums reach to the end of the sample.

use super::burst::Burst;
use super::out_of_memory;
use crate::collect::{Collectors, Scope};
use crate::registry::{Registry, Row};
use crate::tasks::{Listener, TaskReport, Tree};
use crate::trace::{Family, Tracer};
use machine::Root;
use model::recording::{Facts, Schema, SourceState, Span};

/// Whose counters, events and tasks are kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched {
    /// For the collectors.
    pub scope: Scope,
    /// For delay accounting; `None` if it is not wanted, or if the subject has no process.
    pub tree: Option<Tree>,
    /// For events: the processes at the top, empty for all; `None` as above.
    pub traced: Option<Vec<u32>>,
}

/// What is known only at the end.
#[derive(Debug, Default)]
pub(super) struct Last {
    pub report: TaskReport,
    pub processes: u64,
    pub lost_events: u64,
}

/// The open sources.
#[derive(Debug)]
pub(super) struct Sources {
    root: Root,
    registry: Registry,
    row: Row,
    collectors: Collectors,
    tracer: Option<Tracer>,
    listener: Option<Listener>,
    /// When the recording began, by the steady clock; 0 before that.
    started_ns: u64,
}

impl Sources {
    /// Opens what there is; `facts` says what could be.
    pub fn open(watched: &Watched, families: &[Family], facts: &mut Facts) -> Self {
        let root = Root::system();
        let mut registry = Registry::new();
        let collectors = Collectors::open(&root, &watched.scope, &mut registry, facts);
        let no_process =
            || SourceState::closed("the group had no process when the recording began", None);
        let tracer = match &watched.traced {
            Some(processes) => {
                let (tracer, sights) = Tracer::open(families, processes, &mut registry);
                facts.sights.extend(sights);
                tracer
            }
            None => {
                let name = |family: &Family| format!("events.{}", family.name());
                let closed = families.iter().map(|family| (name(family), no_process()));
                facts.sights.extend(closed);
                None
            }
        };
        let (listener, sights) = match &watched.tree {
            Some(_) => Listener::open(sys::clock::now_ns()),
            // A live view does not need the delays of a whole recording.
            None if watched.traced.is_some() => (None, Vec::new()),
            None => (None, vec![("exits".to_owned(), no_process())]),
        };
        facts.sights.extend(sights);
        Self { root, registry, row: Row::default(), collectors, tracer, listener, started_ns: 0 }
    }

    /// The columns for looks at the pressure, where they are wanted.
    pub fn burst(&mut self, wanted: bool, watched: &Watched) -> Option<Burst> {
        let processes = &watched.scope.processes;
        wanted.then(|| Burst::new(&self.root, processes, &mut self.registry))
    }

    /// Reads everything for the first time and begins to keep tasks; the instant from which on
    /// all counts, by the steady clock. What is summed most exactly is read last.
    pub fn begin(&mut self, watched: &Watched) -> u64 {
        self.collectors.read(0, true, &mut self.registry, &mut self.row);
        if let (Some(listener), Some(tree)) = (&mut self.listener, &watched.tree) {
            listener.watch(tree);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.read(0, &mut self.registry, &mut self.row);
        }
        self.started_ns = sys::clock::now_ns();
        self.started_ns
    }

    /// Reads all that is due `at_ns` into the recording, or everything.
    pub fn read(&mut self, at_ns: u64, all: bool) {
        self.collectors.read(at_ns, all, &mut self.registry, &mut self.row);
        if let Some(listener) = &mut self.listener {
            listener.read();
        }
        let now_ns = sys::clock::now_ns().saturating_sub(self.started_ns);
        if let Some(tracer) = &mut self.tracer {
            tracer.read(now_ns, &mut self.registry, &mut self.row);
        }
    }

    /// Counts a sample that begins late.
    pub fn note_late(&mut self) {
        self.collectors.late();
    }

    /// What the sources have noticed since they were last asked.
    pub fn spans(&mut self) -> Vec<Span> {
        let mut spans = self.collectors.notes();
        spans.extend(self.tracer.iter_mut().flat_map(Tracer::spans));
        spans
    }

    /// The columns and their values now.
    pub fn columns(&self) -> (&[Schema], &Row) {
        (self.registry.schemas(), &self.row)
    }

    /// What killed the command, where it had joined other groups than `said` knows of.
    pub fn limit_met_later(&self, said: Option<String>) -> Option<String> {
        match self.collectors.other_groups() {
            Some(groups) => out_of_memory::in_later_groups(said, groups, self.columns()),
            None => said,
        }
    }

    /// Reads what is known at the end only; `now_ns` by the steady clock.
    pub fn finish(&mut self, now_ns: u64, facts: &mut Facts) -> Last {
        if let Some(groups) = self.collectors.other_groups() {
            facts.groups = groups.to_vec();
        }
        let listener = self.listener.take();
        let report = listener.map_or_else(TaskReport::default, |listener| listener.finish(now_ns));
        // Last, because a child of this process closes the events.
        let tracer = self.tracer.take();
        let lost_events = tracer.as_ref().map_or(0, Tracer::lost);
        facts.sights.extend(tracer.iter().flat_map(Tracer::sights));
        drop(tracer);
        Last {
            // Ends that were lost were seen alive, perhaps; short lives only by their ends.
            processes: report.processes.max(self.collectors.processes()),
            lost_events,
            report,
        }
    }
}

//! Kernel events, reduced to series while they happen: which threads ran, waited and slept, what
//! the sleepers waited for, and how long reclaim, write-back and requests took.
//!
//! 1. Events are started one after another, then all threads are looked up in /proc. Only from then
//!    on ([`Tracer::opened_ns`]) does anything count, so no event is half seen.
//! 2. Each read drains the rings of all processors, sorts the records, and passes those on that are
//!    older than the begin of the drain; the rest waits.
//! 3. Which thread runs, and why a thread left, is taken from the tracepoint of switches, whose
//!    stamp is from before its stack was read. If it is silent, as seen in idle processors, the
//!    notices of switches are used, which come a few us later.
//! 4. Each event goes to every `Reducer` of the chain `Reducers`; its buffers are used again.

mod block;
mod block_series;
mod columns;
mod decode;
mod event;
mod reclaim;
mod reducer;
mod scan;
mod sources;
mod stack;
mod thread_series;
mod threads;
mod totals;

use crate::registry::{Registry, Row};
use block_series::BlockSeries;
use event::{Event, EventKind};
use model::recording::{SourceState, Span};
use reclaim::Reclaim;
use reducer::{Reducer, TraceSums};
use sources::EventSources;
use stack::FunctionTable;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use sys::clock::now_ns;
use thread_series::ThreadSeries;
use threads::Threads;
use totals::{EventTotals, FaultTotal};

/// Events a second of the whole machine that are too many: a switch makes four, so it is
/// 50,000 switches a second, of which this would then take a large share of a processor.
const EVENTS_PER_S_MAX: u64 = 200_000;
/// For so long they must come too fast: a burst is what one wants to see.
const PATIENCE_NS: u64 = 3_000_000_000;

/// All reducers, in the order of their columns: one more is one more link of this chain.
type Reducers = (EventTotals, (ThreadSeries, (BlockSeries, (Reclaim, FaultTotal))));

/// A family of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Switches and wake-ups: thread states, exactly.
    Sched,
    /// Requests to block devices.
    Block,
    /// Direct reclaim, its throttling, compaction.
    Vmscan,
    /// Waits of writers for write-back.
    Writeback,
    /// Page faults of user code; every one, so it is not cheap. Counted by the kernel for the
    /// threads that are there when they are named, and all their later children.
    Faults,
}

impl Family {
    /// The name in `events.<name>`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Family::Sched => "sched",
            Family::Block => "block",
            Family::Vmscan => "vmscan",
            Family::Writeback => "writeback",
            Family::Faults => "faults",
        }
    }
}

/// How many events are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Events a second, of the whole machine.
    pub events_per_s: u64,
    /// For so long they must come faster before they are stopped.
    pub patience_ns: u64,
}

impl Default for Limit {
    fn default() -> Self {
        Self { events_per_s: EVENTS_PER_S_MAX, patience_ns: PATIENCE_NS }
    }
}

/// Open events. Dropping it takes no time: a thread closes them, and a child process holds them a
/// moment longer and waits until the kernel has let go of them. So drop this only when children of
/// the subject are no longer looked up.
#[derive(Debug)]
pub struct Tracer {
    /// Empty once they were handed to the thread that closes them.
    sources: Option<EventSources>,
    sights: BTreeMap<Family, SourceState>,
    reducers: Reducers,
    table: &'static FunctionTable,
    threads: Threads,
    /// What was reported and has not been applied yet, in order.
    pending: Vec<Event>,
    /// Processes whose threads are looked up at the next read.
    expected: HashSet<u32>,
    /// Whether all threads are looked up at the next read.
    resync: bool,
    opened_ns: u64,
    horizon_ns: u64,
    /// The clock's time less the caller's.
    offset_ns: u64,
    limit: Limit,
    too_fast_ns: u64,
    events: u64,
    lost: u64,
    stopped: bool,
    spans: Vec<Span>,
}

impl Tracer {
    /// Opens the families for the subject `processes` (with their present and later children;
    /// empty: every process) and says what could be opened under `events.<family>`. `None`
    /// where nothing could.
    pub fn open(
        families: &[Family],
        processes: &[u32],
        registry: &mut Registry,
    ) -> (Option<Self>, BTreeMap<String, SourceState>) {
        let subject = (!processes.is_empty()).then_some(processes);
        Self::open_for(families, subject, registry)
    }

    /// As [`Tracer::open`] for a subject that is named later, by [`Tracer::add_process`].
    pub fn open_awaiting(
        families: &[Family],
        registry: &mut Registry,
    ) -> (Option<Self>, BTreeMap<String, SourceState>) {
        Self::open_for(families, Some(&[]), registry)
    }

    fn open_for(
        families: &[Family],
        subject: Option<&[u32]>,
        registry: &mut Registry,
    ) -> (Option<Self>, BTreeMap<String, SourceState>) {
        let families: BTreeSet<Family> = families.iter().copied().collect();
        let table = if families.contains(&Family::Sched) && is_root() {
            FunctionTable::of_kernel()
        } else {
            FunctionTable::none()
        };
        let (sources, sights) = open_sources(&families);
        let mut tracer = Self::new(sources, sights, table, subject.is_none());
        tracer.begin(subject);
        let seen = tracer.sights();
        let is_open = |family: &Family| tracer.sights.get(family).is_some_and(SourceState::is_open);
        let open: BTreeSet<Family> = families.iter().copied().filter(is_open).collect();
        if open.is_empty() {
            return (None, seen);
        }
        tracer.reducers.open(&open, registry);
        (Some(tracer), seen)
    }

    fn new(
        sources: EventSources,
        sights: BTreeMap<Family, SourceState>,
        table: &'static FunctionTable,
        everyone: bool,
    ) -> Self {
        Self {
            sources: Some(sources),
            sights,
            reducers: Reducers::default(),
            table,
            threads: Threads::new(everyone),
            pending: Vec::new(),
            expected: HashSet::new(),
            resync: false,
            opened_ns: 0,
            horizon_ns: 0,
            offset_ns: 0,
            limit: Limit::default(),
            too_fast_ns: 0,
            events: 0,
            lost: 0,
            stopped: false,
            spans: Vec::new(),
        }
    }

    /// Looks the subject's threads up and notes the instant from which on all counts.
    fn begin(&mut self, subject: Option<&[u32]>) {
        let named = subject.map(|processes| match processes {
            [] => HashSet::new(),
            some => scan::with_children(some),
        });
        for process in named.iter().flatten() {
            self.threads.expect(*process);
        }
        if self.sights.values().any(SourceState::is_open) {
            scan::threads(named.as_ref(), self.table, &mut self.pending);
            self.count_faults(named.as_ref());
        }
        self.opened_ns = now_ns();
        self.horizon_ns = self.opened_ns;
        self.start_at(self.opened_ns);
    }

    fn start_at(&mut self, time_ns: u64) {
        let what = EventKind::Start;
        self.pending.push(Event { time_ns, what });
    }

    /// Counts the faults of all threads of these processes.
    fn count_faults(&mut self, processes: Option<&HashSet<u32>>) {
        let sight = self.sights.get_mut(&Family::Faults);
        let (Some(sight), Some(sources)) = (sight, &mut self.sources) else {
            return;
        };
        let threads = processes.map(|processes| {
            let seen = self.pending.iter().filter_map(|event| match event.what {
                EventKind::Seen { process, thread, .. } if processes.contains(&process) => {
                    Some(thread)
                }
                _ => None,
            });
            seen.collect::<HashSet<u32>>()
        });
        if threads.as_ref().is_some_and(HashSet::is_empty) {
            return;
        }
        if let Err(error) = sources.count_faults(threads.as_ref()) {
            *sight = sources::closed(&error);
        }
    }

    /// Adds a process with its later children: a command that was started at `start_ns`, on
    /// the clock of [`sys::clock`], after this was opened. The wall's time of the first one
    /// begins at that instant.
    pub fn add_process(&mut self, process: u32, start_ns: u64) {
        if self.threads.is_everyone() || self.stopped {
            return;
        }
        let is_first = self.threads.processes().next().is_none();
        let named = scan::with_children(&[process]);
        for process in &named {
            self.threads.expect(*process);
        }
        if is_first {
            // What has been counted already stays in the past.
            self.opened_ns = start_ns.max(self.opened_ns).max(self.horizon_ns);
            self.start_at(self.opened_ns);
        }
        if self.sights.contains_key(&Family::Faults) {
            scan::threads(Some(&named), self.table, &mut self.pending);
            self.count_faults(Some(&named));
        }
        self.expected.extend(named);
    }

    /// Takes what the kernel has reported until now and writes the sums to `row`; at the end too.
    /// `now_ns` is the caller's clock, which [`Tracer::spans`] uses.
    pub fn read(&mut self, now_ns: u64, registry: &mut Registry, row: &mut Row) {
        if !self.stopped {
            self.offset_ns = sys::clock::now_ns().saturating_sub(now_ns);
            self.advance(now_ns);
        }
        let sums = TraceSums {
            threads: &self.threads,
            events: self.events,
            lost: self.lost,
            stopped: self.stopped,
            faults: self.sources.as_ref().map_or(0, EventSources::faults),
        };
        self.reducers.fill(&sums, registry, row);
    }

    /// Applies everything that was reported until now.
    fn advance(&mut self, caller_ns: u64) {
        self.look_up();
        let Some(sources) = &mut self.sources else {
            return;
        };
        let horizon_ns = now_ns();
        let drained = sources.drain(self.table, &mut self.pending);
        self.events += drained.records;
        self.lost += drained.lost;
        self.resync |= drained.lost > 0;
        // Stable: events of one processor and one instant stay in their order.
        self.pending.sort_by_key(|event| event.time_ns);
        threads::settle_seen(&mut self.pending);
        let ready = self.pending.partition_point(|event| event.time_ns <= horizon_ns);
        let mut pending = std::mem::take(&mut self.pending);
        for event in pending.drain(..ready) {
            self.threads.apply(&event);
            if event.time_ns >= self.opened_ns {
                self.reducers.take(&event, &self.threads);
            }
        }
        self.pending = pending;
        self.threads.settle(horizon_ns);
        let passed_ns = horizon_ns.saturating_sub(self.horizon_ns);
        self.horizon_ns = horizon_ns;
        self.guard(drained.records, passed_ns, caller_ns);
    }

    /// Looks up new processes in /proc, and all of them after a loss.
    fn look_up(&mut self) {
        if self.resync {
            self.resync = false;
            let known: HashSet<u32> = self.threads.processes().collect();
            let named = (!self.threads.is_everyone()).then_some(&known);
            let first = self.pending.len();
            scan::threads(named, self.table, &mut self.pending);
            let thread = |event: &Event| match event.what {
                EventKind::Seen { thread, .. } => Some(thread),
                _ => None,
            };
            let seen: HashSet<u32> = self.pending[first..].iter().filter_map(thread).collect();
            let time_ns = now_ns();
            let gone = self.threads.known().filter(|thread| !seen.contains(thread));
            self.pending
                .extend(gone.map(|thread| Event { time_ns, what: EventKind::Exit { thread } }));
        }
        if !self.expected.is_empty() {
            let expected = std::mem::take(&mut self.expected);
            scan::threads(Some(&expected), self.table, &mut self.pending);
        }
    }

    /// Stops the events if they have come too fast for too long.
    fn guard(&mut self, records: u64, passed_ns: u64, caller_ns: u64) {
        let most = u128::from(self.limit.events_per_s) * u128::from(passed_ns);
        if u128::from(records) * 1_000_000_000 <= most {
            self.too_fast_ns = 0;
            return;
        }
        self.too_fast_ns += passed_ns;
        if self.too_fast_ns < self.limit.patience_ns {
            return;
        }
        self.stopped = true;
        if let Some(sources) = &self.sources {
            sources.stop();
        }
        for sight in self.sights.values_mut().filter(|sight| sight.is_open()) {
            *sight = SourceState::closed("events came too fast and were stopped", None);
        }
        self.spans.push(Span {
            kind: "events_stopped".to_owned(),
            text: format!("kernel events came faster than {} a second", self.limit.events_per_s),
            start_ns: caller_ns,
            end_ns: caller_ns,
        });
    }

    /// Sets how many events are too many.
    pub fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    /// From when on everything counts, on the clock of [`sys::clock`].
    #[must_use]
    pub fn opened_ns(&self) -> u64 {
        self.opened_ns
    }

    /// Up to when everything has been counted: the wall's sums are exactly this less
    /// [`Tracer::opened_ns`].
    #[must_use]
    pub fn horizon_ns(&self) -> u64 {
        self.horizon_ns
    }

    /// Events that the kernel had to drop.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// What could be seen of each family that was asked for, as of now.
    #[must_use]
    pub fn sights(&self) -> BTreeMap<String, SourceState> {
        self.sights
            .iter()
            .map(|(family, sight)| (format!("events.{}", family.name()), sight.clone()))
            .collect()
    }

    /// What happened to the events since the last call: that they were stopped because they
    /// came too fast.
    pub fn spans(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.spans)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let Some(sources) = self.sources.take() else {
            return;
        };
        sources.stop();
        // Without the holder this process itself waits when it ends.
        let holder = sources.hold().ok();
        let closing = (sources, holder);
        let closer = std::thread::Builder::new().name("close-events".to_owned());
        // Without a thread the closure, and the events with it, is dropped here.
        let _ = closer.spawn(move || drop(closing));
    }
}

fn is_root() -> bool {
    sys::process::effective_uid() == 0
}

fn open_sources(families: &BTreeSet<Family>) -> (EventSources, BTreeMap<Family, SourceState>) {
    let closed = |sight: &SourceState| {
        let all = families.iter().map(|family| (*family, sight.clone()));
        (EventSources::default(), all.collect())
    };
    if !is_root() {
        return closed(&sources::only_root());
    }
    if !is_first_namespace() {
        let why = "kernel events name processes by the numbers of the host, not of this container";
        return closed(&SourceState::closed(why, None));
    }
    EventSources::open(families)
}

/// Whether this process sees the numbers that the kernel itself uses.
fn is_first_namespace() -> bool {
    /// `PROC_PID_INIT_INO` of linux/proc_ns.h.
    const FIRST: &str = "pid:[4026531836]";
    let own = std::fs::read_link("/proc/self/ns/pid");
    own.is_ok_and(|own| own.as_os_str() == FIRST)
}

//! Kernel events by rings of samples, for kernels that run no program of ours: reduced to the same
//! sums here, after they were copied. What happens in idle processors, or too fast, can be lost.
//!
//! 1. Events are started one after another, then all threads are looked up in /proc. Only from then
//!    on ([`RingTracer::opened_ns`]) does anything count, so no event is half seen.
//! 2. Each read drains the rings of all processors, sorts the records, and passes those on that are
//!    older than the begin of the drain; the rest waits.
//! 3. Which thread runs, and why a thread left, is taken from the tracepoint of switches, whose
//!    stamp is from before its stack was read. If it is silent, as seen in idle processors, the
//!    notices of switches are used, which come a few us later.

use super::block::{RequestTotals, Requests};
use super::block_series::block_bytes;
use super::cpu::{self, CpuSums, sample_period_ns};
use super::event::{Event, EventKind};
use super::reclaim::{ReclaimEvents, ReclaimSums};
use super::sources::{self, EventSources};
use super::stack::FunctionTable;
use super::threads::{self, ThreadSums, Threads};
use super::{Family, scan};
use model::recording::{SourceState, Span};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use sys::clock::now_ns;

/// Events a second of the whole machine that are too many: a switch makes four, so it is
/// 50,000 switches a second, of which this would then take a large share of a processor.
const EVENTS_PER_S_MAX: u64 = 200_000;
/// For so long they must come too fast: a burst is what one wants to see.
const PATIENCE_NS: u64 = 3_000_000_000;
/// For so long they are then not followed: three of twelve seconds are, and cost a quarter.
const PAUSE_NS: u64 = 9_000_000_000;

/// How many events are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Events a second, of the whole machine.
    pub events_per_s: u64,
    /// For so long they must come faster before they are paused.
    pub patience_ns: u64,
    /// For so long they are then not followed.
    pub pause_ns: u64,
}

impl Default for Limit {
    fn default() -> Self {
        Self { events_per_s: EVENTS_PER_S_MAX, patience_ns: PATIENCE_NS, pause_ns: PAUSE_NS }
    }
}

/// Open events. Dropping it takes no time: a thread closes them, and a child process holds them a
/// moment longer and waits until the kernel has let go of them. So drop this only when children of
/// the subject are no longer looked up.
#[derive(Debug)]
pub struct RingTracer {
    /// Empty once they were handed to the thread that closes them.
    sources: Option<EventSources>,
    /// What could be seen of each family.
    pub sights: BTreeMap<Family, SourceState>,
    table: &'static FunctionTable,
    threads: Threads,
    requests: Requests,
    reclaim: ReclaimEvents,
    cpu: CpuSums,
    /// What was reported and has not been applied yet, in order.
    pending: Vec<Event>,
    /// Whether all threads are looked up at the next read.
    resync: bool,
    /// From when on everything counts, on the clock of [`sys::clock`].
    pub opened_ns: u64,
    /// Up to when everything has been counted.
    pub horizon_ns: u64,
    /// How many events are too many.
    pub limit: Limit,
    too_fast_ns: u64,
    /// Events that were read.
    pub events: u64,
    /// Events that the kernel had to drop.
    pub lost: u64,
    /// Until when they are not followed, because they came too fast.
    paused_until_ns: Option<u64>,
    /// What happened to the events: when they were not followed.
    pub spans: Vec<Span>,
}

impl RingTracer {
    /// Opens the families for the subject: everyone, or these processes with their children.
    pub fn open(
        families: &BTreeSet<Family>,
        subject: Option<&HashSet<u32>>,
        table: &'static FunctionTable,
    ) -> Self {
        if families.contains(&Family::Cpu) && super::is_root() {
            // The first samples come before the subject begins, which would wait meanwhile.
            cpu::prepare();
        }
        let period_ns = sample_period_ns(subject.is_none(), sources::online().len());
        let (sources, sights) = open_sources(families, period_ns);
        let mut tracer = Self {
            sources: Some(sources),
            sights,
            table,
            threads: Threads::new(subject.is_none()),
            requests: Requests::new(block_bytes),
            reclaim: ReclaimEvents::default(),
            cpu: CpuSums::new(period_ns),
            pending: Vec::new(),
            resync: false,
            opened_ns: 0,
            horizon_ns: 0,
            limit: Limit::default(),
            too_fast_ns: 0,
            events: 0,
            lost: 0,
            paused_until_ns: None,
            spans: Vec::new(),
        };
        tracer.begin(subject);
        tracer
    }

    /// Looks the subject's threads up and notes the instant from which on all counts.
    fn begin(&mut self, subject: Option<&HashSet<u32>>) {
        for process in subject.into_iter().flatten() {
            self.threads.expect(*process);
        }
        if self.sights.values().any(SourceState::is_open) {
            scan::threads(subject, self.table, &mut self.pending);
        }
        self.opened_ns = now_ns();
        self.horizon_ns = self.opened_ns;
        self.pending.push(Event { time_ns: self.opened_ns, what: EventKind::Start });
    }

    /// Adds processes to the subject: their threads are looked up now.
    pub fn adopt(&mut self, processes: &[u32]) {
        let processes: HashSet<u32> = processes.iter().copied().collect();
        for process in &processes {
            self.threads.expect(*process);
        }
        scan::threads(Some(&processes), self.table, &mut self.pending);
    }

    /// The sums of the subject's threads.
    pub fn threads(&self) -> ThreadSums {
        self.threads.sums()
    }

    /// What all devices did.
    pub fn requests(&self) -> &RequestTotals {
        self.requests.totals()
    }

    /// Reclaim and write-back.
    pub fn reclaim(&self) -> ReclaimSums {
        self.reclaim.sums()
    }

    /// Samples of the processors while they ran the subject.
    pub fn cpu(&self) -> &CpuSums {
        &self.cpu
    }

    /// Applies everything that was reported until now.
    pub fn advance(&mut self, caller_ns: u64) {
        match self.paused_until_ns {
            Some(until_ns) if now_ns() < until_ns => return,
            Some(_) => self.resume(),
            None => self.look_up(),
        }
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
                self.requests.take(&event);
                self.reclaim.take(&event, &self.threads);
                if let EventKind::Sampled { process, seen } = event.what
                    && self.threads.includes(process)
                {
                    self.cpu.take(seen);
                }
            }
        }
        self.pending = pending;
        self.threads.settle(horizon_ns);
        let passed_ns = horizon_ns.saturating_sub(self.horizon_ns);
        self.horizon_ns = horizon_ns;
        self.guard(drained.records, passed_ns, caller_ns);
    }

    /// Looks up all threads in /proc after a loss.
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
    }

    /// Whether events are not followed for now, because they came too fast.
    pub fn is_paused(&self) -> bool {
        self.paused_until_ns.is_some()
    }

    /// Follows events again. The time of the pause is in no sum; what began before it is forgotten.
    fn resume(&mut self) {
        self.paused_until_ns = None;
        let Some(sources) = &mut self.sources else {
            return;
        };
        // What was left in the rings is from before the pause.
        let left = sources.drain(self.table, &mut self.pending);
        self.lost += left.lost;
        self.pending.clear();
        sources.resume();
        self.requests.forget_begun();
        self.reclaim.forget_begun();
        self.horizon_ns = now_ns();
        self.threads.skip_until(self.horizon_ns);
        self.resync = true;
        self.look_up();
    }

    /// Pauses the events if they have come too fast for too long.
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
        self.too_fast_ns = 0;
        let pause_ns = self.limit.pause_ns;
        self.paused_until_ns = Some(self.horizon_ns.saturating_add(pause_ns));
        if let Some(sources) = &self.sources {
            sources.stop();
        }
        self.spans.push(Span {
            kind: "events_paused".to_owned(),
            text: format!("kernel events came faster than {} a second", self.limit.events_per_s),
            start_ns: caller_ns,
            end_ns: caller_ns.saturating_add(pause_ns),
        });
    }
}

impl Drop for RingTracer {
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

fn open_sources(
    families: &BTreeSet<Family>,
    period_ns: u64,
) -> (EventSources, BTreeMap<Family, SourceState>) {
    let closed = |sight: &SourceState| {
        let all = families.iter().map(|family| (*family, sight.clone()));
        (EventSources::default(), all.collect())
    };
    if !super::is_root() {
        return closed(&sources::only_root());
    }
    if !super::is_first_namespace() {
        return closed(&super::other_numbers());
    }
    EventSources::open(families, period_ns)
}

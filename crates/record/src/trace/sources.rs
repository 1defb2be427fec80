//! The kernel's events, open: one ring for each processor, the events that write to it, and
//! counts that need no ring.
//!
//! A family whose tracepoints are not all there is left out and says why; the others go on.

use super::Family;
use super::decode::{Decoder, Point};
use super::event::{Event, EventKind};
use super::stack::FunctionTable;
use model::recording::SourceState;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::CStr;
use sys::perf::{self, Attributes, EventSource, Holder, Record, Ring};
use sys::tracefs::Tracefs;

/// The most memory for the ring of one processor: at ten drains a second and 500 bytes for a
/// switch with its stack and wake-up it holds 80,000 switches a second.
const RING_BYTES_MAX: usize = 4 << 20;
/// The most memory for all rings of a machine with many processors.
const RINGS_BYTES_MAX: usize = 256 << 20;
/// Less than this would lose records at a moderate rate.
const RING_BYTES_MIN: usize = 64 << 10;
/// Frames of a stack: the purpose of a write is within 24 frames of its wait; a few to spare.
const STACK_FRAMES: u16 = 32;

/// One tracepoint of a family: system, name, use, and whether a family is blind without it.
type Wanted = (&'static str, &'static str, Point, bool);

const SCHED: &[Wanted] = &[
    ("sched", "sched_switch", Point::Switch, true),
    ("sched", "sched_wakeup", Point::Wakeup, true),
    // Reported by the waker at once; the wake-up itself is reported by the processor that it was
    // sent to.
    ("sched", "sched_waking", Point::Wakeup, false),
];
const BLOCK: &[Wanted] = &[
    ("block", "block_rq_issue", Point::Issue, true),
    ("block", "block_rq_complete", Point::Complete, true),
    ("block", "block_rq_requeue", Point::Requeue, false),
];
const BEGINS: Point = Point::Reclaim { begins: true };
const ENDS: Point = Point::Reclaim { begins: false };
const VMSCAN: &[Wanted] = &[
    ("vmscan", "mm_vmscan_direct_reclaim_begin", BEGINS, true),
    ("vmscan", "mm_vmscan_direct_reclaim_end", ENDS, true),
    ("vmscan", "mm_vmscan_memcg_reclaim_begin", BEGINS, false),
    ("vmscan", "mm_vmscan_memcg_reclaim_end", ENDS, false),
    ("vmscan", "mm_vmscan_throttled", Point::Throttled, false),
    ("compaction", "mm_compaction_begin", Point::Compaction { begins: true }, false),
    ("compaction", "mm_compaction_end", Point::Compaction { begins: false }, false),
];
const WRITEBACK: &[Wanted] = &[("writeback", "balance_dirty_pages", Point::DirtyPages, true)];

fn wanted(family: Family) -> &'static [Wanted] {
    match family {
        Family::Sched => SCHED,
        Family::Block => BLOCK,
        Family::Vmscan => VMSCAN,
        Family::Writeback => WRITEBACK,
        // Counted by the kernel itself, by its clock, or only there.
        Family::Faults | Family::Cpu | Family::Who | Family::Hits | Family::Accesses => &[],
    }
}

/// Everything that is open.
#[derive(Debug, Default)]
pub struct EventSources {
    rings: Vec<Ring>,
    events: Vec<perf::Event>,
    decoders: HashMap<u64, Decoder>,
    /// Whether switches are reported. The last switch then ends a thread: the notice of its end
    /// comes before it has given back its memory, for which it still runs.
    switches: bool,
}

/// What a drain found beside events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drained {
    /// Records of any kind.
    pub records: u64,
    /// Records that the kernel had to drop.
    pub lost: u64,
}

/// A kind of samples that can be opened.
struct Described {
    source: EventSource,
    decoder: Decoder,
}

impl EventSources {
    /// Opens and starts the families; which of them are open, and what is to be said of each. A
    /// processor is looked at each `period_ns`.
    pub fn open(
        families: &BTreeSet<Family>,
        period_ns: u64,
    ) -> (Self, BTreeMap<Family, SourceState>) {
        let mut sources = Self::default();
        let mut sights = BTreeMap::new();
        let mut described = Vec::new();
        for family in families {
            match describe(*family, period_ns) {
                Ok(points) => {
                    described.extend(points);
                    sights.insert(*family, SourceState::Open);
                }
                Err(error) => {
                    sights.insert(*family, closed(&error));
                }
            }
        }
        if sights.values().any(SourceState::is_open) {
            let switches = sights.get(&Family::Sched).is_some_and(SourceState::is_open);
            if let Err(error) = sources.start(&described, switches) {
                for sight in sights.values_mut().filter(|sight| sight.is_open()) {
                    *sight = closed(&error);
                }
                sources = Self::default();
            }
        }
        (sources, sights)
    }

    /// Opens all tracepoints on all processors, and starts them when all are open.
    fn start(&mut self, points: &[Described], switches: bool) -> sys::Result<()> {
        self.switches = switches;
        let processors = online();
        let pages = ring_pages(processors.len());
        for processor in processors {
            let mut notices = Attributes::new(EventSource::Notices);
            notices.switches = switches;
            notices.tasks = true;
            let leader = perf::Event::on_processor(&notices, processor)?;
            self.rings.push(map(&leader, pages)?);
            let leader_index = self.events.len();
            self.events.push(leader);
            for point in points {
                for (condition, stack_frames) in variants(&point.decoder) {
                    let mut attributes = Attributes::new(point.source);
                    attributes.stack_frames = *stack_frames;
                    let event = perf::Event::on_processor(&attributes, processor)?;
                    if let Some(condition) = condition {
                        event.filter(condition)?;
                    }
                    event.share_ring_of(&self.events[leader_index])?;
                    self.decoders.insert(event.id()?, point.decoder.clone());
                    self.events.push(event);
                }
            }
        }
        self.events.iter().try_for_each(perf::Event::enable)
    }

    /// Appends what the kernel reported until now, each processor's in its order.
    pub fn drain(&mut self, table: &FunctionTable, into: &mut Vec<Event>) -> Drained {
        let mut drained = Drained::default();
        let (decoders, switches) = (&self.decoders, self.switches);
        for ring in &mut self.rings {
            ring.drain(|record| {
                drained.records += 1;
                if let Record::Lost { count } = record {
                    drained.lost += count;
                    drained.records += count;
                }
                if !(switches && matches!(record, Record::Exit(_))) {
                    into.extend(event(&record, decoders, table));
                }
            });
        }
        drained
    }

    /// Stops everything; what was reported can still be drained.
    pub fn stop(&self) {
        for event in &self.events {
            // An event that cannot be stopped ends when it is closed.
            let _ = event.disable();
        }
    }

    /// Reports again after [`EventSources::stop`].
    pub fn resume(&self) {
        for event in &self.events {
            // One that cannot be resumed is silent, as one that has nothing to report.
            let _ = event.enable();
        }
    }

    /// Starts a process that closes everything after this one has; see [`Holder`].
    ///
    /// # Errors
    /// As [`Holder::start`].
    pub fn hold(&self) -> sys::Result<Holder> {
        Holder::start(self.events.iter())
    }
}

/// The perf events of one tracepoint: for each which passings, and frames of the stack.
fn variants(decoder: &Decoder) -> &'static [(Option<&'static CStr>, u16)] {
    // Only a thread that will sleep has a stack that says something, and looking at it is most
    // of what a switch costs.
    const SWITCH: &[(Option<&CStr>, u16)] =
        &[(Some(c"prev_state & 255"), STACK_FRAMES), (Some(c"!(prev_state & 255)"), 0)];
    match decoder {
        Decoder::Switch { .. } => SWITCH,
        Decoder::Clock => &[(None, STACK_FRAMES)],
        _ => &[(None, 0)],
    }
}

fn event(
    record: &Record<'_>,
    decoders: &HashMap<u64, Decoder>,
    table: &FunctionTable,
) -> Option<Event> {
    let (time_ns, what) = match record {
        Record::Sample(sample) => {
            return decoders.get(&sample.id)?.decode(sample, table);
        }
        Record::Switch(switch) => {
            let thread = switch.thread;
            let what = if switch.is_out {
                EventKind::Out { thread, is_preempted: switch.is_preempted }
            } else {
                EventKind::In { thread }
            };
            // The idle task belongs to no process.
            if thread == 0 {
                return None;
            }
            (switch.time_ns, what)
        }
        Record::Fork(task) => {
            let what =
                EventKind::Fork { process: task.process, thread: task.thread, parent: task.parent };
            (task.time_ns, what)
        }
        Record::Exit(task) => {
            let thread = task.thread;
            (task.time_ns, EventKind::Exit { thread })
        }
        Record::Exec(task) => {
            let what = EventKind::Exec { process: task.process, thread: task.thread };
            (task.time_ns, what)
        }
        Record::Lost { .. } | Record::Other => return None,
    };
    Some(Event { time_ns, what })
}

/// Finds the tracepoints of a family, or the clock.
fn describe(family: Family, period_ns: u64) -> sys::Result<Vec<Described>> {
    let mut found = Vec::new();
    if family == Family::Cpu {
        let source = EventSource::ProcessorClock(period_ns);
        found.push(Described { source, decoder: Decoder::Clock });
    }
    if wanted(family).is_empty() {
        return Ok(found);
    }
    let tracefs = Tracefs::open()?;
    for (system, name, point, is_needed) in wanted(family) {
        let described = tracefs.tracepoint(system, name).and_then(|tracepoint| {
            let decoder = Decoder::of(*point, &tracepoint).ok_or_else(|| {
                let changed = std::io::Error::new(
                    std::io::ErrorKind::Unsupported,
                    "this kernel describes it in another way",
                );
                sys::Error::new("make use of the tracepoint", changed).at(name)
            })?;
            let source = EventSource::Tracepoint(tracepoint.id);
            Ok(Described { source, decoder })
        });
        match described {
            Ok(described) => found.push(described),
            Err(error) if *is_needed => return Err(error),
            Err(_) => {}
        }
    }
    Ok(found)
}

/// Why a family is closed.
pub fn closed(error: &sys::Error) -> SourceState {
    if error.kind == sys::ErrorKind::Denied && sys::process::effective_uid() != 0 {
        return only_root();
    }
    SourceState::closed(error.to_string(), None)
}

/// The sight of a user who is not root.
pub fn only_root() -> SourceState {
    SourceState::closed("only root may watch kernel events", Some("sudo"))
}

/// A ring of at most `pages`, smaller where less memory may be locked.
fn map(leader: &perf::Event, mut pages: usize) -> sys::Result<Ring> {
    let least = RING_BYTES_MIN / sys::process::page_bytes();
    loop {
        match Ring::map(leader, pages.max(1)) {
            Err(error)
                if pages > least
                    && matches!(error.kind, sys::ErrorKind::Denied | sys::ErrorKind::NoMemory) =>
            {
                pages /= 2;
            }
            other => return other,
        }
    }
}

fn ring_pages(processors: usize) -> usize {
    let share = RINGS_BYTES_MAX / processors.max(1);
    let bytes = share.clamp(RING_BYTES_MIN, RING_BYTES_MAX);
    let pages = (bytes / sys::process::page_bytes()).max(1);
    1 << pages.ilog2()
}

/// The processors that are on.
pub fn online() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let found = parse_list(text.trim());
    if found.is_empty() { vec![0] } else { found }
}

/// Reads `0-3,8`.
fn parse_list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_listed_in_ranges() {
        assert_eq!(parse_list("0-2,5,7-8"), [0, 1, 2, 5, 7, 8]);
        assert_eq!(parse_list("0"), [0]);
        assert!(parse_list("").is_empty());
    }

    #[test]
    fn rings_are_powers_of_two_and_bounded() {
        for processors in [1, 2, 3, 100, 4096] {
            let bytes = ring_pages(processors) * sys::process::page_bytes();
            assert!(bytes.is_power_of_two());
            assert!((RING_BYTES_MIN..=RING_BYTES_MAX).contains(&bytes));
        }
    }
}

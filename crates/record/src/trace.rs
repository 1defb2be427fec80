//! Kernel events, reduced to series while they happen: which threads ran, waited and slept, what
//! the sleepers waited for, how long reclaim, write-back and requests took, where processors spent
//! their time, and which processes and files it was.
//!
//! Programs inside of the kernel keep the sums (`in_kernel`); where it runs none of ours, events
//! are copied out and summed here (`ring`). Both fill `TraceSums`, from which every
//! `Reducer` of the chain `Reducers` writes its series, so a recording looks the same.

mod accesses;
mod block;
mod block_series;
mod columns;
mod cpu;
mod decode;
mod event;
mod faults;
mod hits;
mod in_kernel;
mod reclaim;
mod reducer;
mod returns;
mod ring;
mod scan;
mod sources;
mod stack;
mod thread_series;
mod threads;
mod totals;

use crate::collect::LimitedPaths;
use crate::collect::TreeTotals;
use crate::registry::{Registry, Row};
use accesses::AccessRecorder;
use block_series::BlockSeries;
use cpu::CpuSeries;
use event::EventKind;
use faults::FaultCounter;
use hits::HitSeries;
use in_kernel::InKernel;
use model::recording::{SourceState, Span, Who};
use reclaim::ReclaimSeries;
use reducer::{Reducer, TraceSums};
use returns::ReturnSeries;
use ring::RingTracer;
use stack::FunctionTable;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use thread_series::ThreadSeries;
use totals::{EventTotals, FaultTotal};

pub use ring::Limit;

/// All reducers, in the order of their columns: one more is one more link of this chain.
type Reducers = (
    EventTotals,
    (
        ThreadSeries,
        (BlockSeries, (ReclaimSeries, (CpuSeries, (FaultTotal, (ReturnSeries, HitSeries))))),
    ),
);

/// What says whether programs in the kernel reduce the events.
pub const IN_KERNEL: &str = "events.in_kernel";

/// The kind of the span that says at the end how many accesses were kept.
pub const ACCESSES_KEPT: &str = "accesses_kept";

/// A family of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Single accesses, which a recording keeps: requests to block devices, where those are
    /// followed, and pages of files. First, because its programs run before those that forget a
    /// request.
    Accesses,
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
    /// Samples of what the processors do.
    Cpu,
    /// What single processes use, and which files.
    Who,
    /// Pages of files that are used again while they are in memory: a program at each read that the
    /// page cache serves, so it is not cheap.
    Hits,
}

impl Family {
    /// The name of its sight.
    #[must_use]
    pub fn sight(self) -> &'static str {
        match self {
            Family::Accesses => "events.accesses",
            Family::Sched => "events.sched",
            Family::Block => "events.block",
            Family::Vmscan => "events.vmscan",
            Family::Writeback => "events.writeback",
            Family::Faults => "events.faults",
            Family::Cpu => "events.cpu",
            Family::Who => "who",
            Family::Hits => "events.hits",
        }
    }
}

/// How many functions of the kernel are known by their addresses: what stacks are understood by.
pub(crate) fn kernel_functions() -> usize {
    FunctionTable::of_kernel().count()
}

/// Loads programs into the kernel, or says why it cannot.
type OpenInKernel = fn(
    &BTreeSet<Family>,
    Option<&HashSet<u32>>,
    &'static FunctionTable,
) -> std::result::Result<InKernel, SourceState>;

/// Who reduces the events.
#[derive(Debug)]
enum Source {
    /// Programs in the kernel.
    InKernel(Box<InKernel>),
    /// This process.
    Ring(Box<RingTracer>),
}

/// Open events. Dropping it takes no time; see `RingTracer`.
#[derive(Debug)]
pub struct Tracer {
    source: Source,
    /// Why there are no programs in the kernel, if so.
    in_kernel: SourceState,
    faults: FaultCounter,
    faults_sight: Option<SourceState>,
    reducers: Reducers,
}

/// A tracer that has no columns yet.
#[derive(Debug)]
pub struct Loaded {
    tracer: Option<Tracer>,
    open: BTreeSet<Family>,
    sights: BTreeMap<String, SourceState>,
}

impl Loaded {
    /// Adds its columns; what could be opened, by the names of the sights.
    pub fn register(
        self,
        registry: &mut Registry,
    ) -> (Option<Tracer>, BTreeMap<String, SourceState>) {
        let Self { mut tracer, open, sights } = self;
        if let Some(tracer) = &mut tracer {
            tracer.reducers.open(&open, registry);
        }
        (tracer, sights)
    }
}

impl Tracer {
    /// Opens the families for the subject `processes` (with their present and later children;
    /// `None`: every process) and says what could be opened, by the names of the sights. There is
    /// no tracer where nothing could. Without processes it waits for those that are adopted.
    pub fn open(
        families: &[Family],
        processes: Option<&[u32]>,
        registry: &mut Registry,
    ) -> (Option<Self>, BTreeMap<String, SourceState>) {
        Self::load(families, processes).register(registry)
    }

    /// As [`Tracer::open`] up to the columns: loading programs takes longer than all other sources,
    /// which can be opened meanwhile.
    #[must_use]
    pub fn load(families: &[Family], processes: Option<&[u32]>) -> Loaded {
        Self::load_by(families, processes, InKernel::open)
    }

    /// As [`Tracer::open`], without programs in the kernel: as on kernels that run none.
    pub fn open_rings(
        families: &[Family],
        processes: Option<&[u32]>,
        registry: &mut Registry,
    ) -> (Option<Self>, BTreeMap<String, SourceState>) {
        let refuse: OpenInKernel =
            |_, _, _| Err(SourceState::closed("programs in the kernel were not wanted", None));
        Self::load_by(families, processes, refuse).register(registry)
    }

    fn load_by(families: &[Family], processes: Option<&[u32]>, open: OpenInKernel) -> Loaded {
        let families: BTreeSet<Family> = families.iter().copied().collect();
        if families.is_empty() {
            return Loaded { tracer: None, open: BTreeSet::new(), sights: BTreeMap::new() };
        }
        let subject = processes.map(scan::with_children);
        let table = if families.contains(&Family::Sched) && is_root() {
            FunctionTable::of_kernel()
        } else {
            FunctionTable::none()
        };
        let (source, in_kernel) = match open(&families, subject.as_ref(), table) {
            Ok(programs) => (Source::InKernel(Box::new(programs)), SourceState::Open),
            Err(why) => {
                let rings = RingTracer::open(&families, subject.as_ref(), table);
                (Source::Ring(Box::new(rings)), why)
            }
        };
        let mut tracer = Self {
            source,
            in_kernel,
            faults: FaultCounter::default(),
            faults_sight: None,
            reducers: Reducers::default(),
        };
        if families.contains(&Family::Faults) {
            tracer.count_faults(subject.as_ref());
        }
        let sights = tracer.sights();
        let is_open =
            |family: &Family| sights.get(family.sight()).is_some_and(SourceState::is_open);
        let open: BTreeSet<Family> = families.into_iter().filter(is_open).collect();
        Loaded { tracer: Some(tracer).filter(|_| !open.is_empty()), open, sights }
    }

    /// Counts the faults of all threads of these processes.
    fn count_faults(&mut self, processes: Option<&HashSet<u32>>) {
        let threads = processes.map(|processes| {
            let mut seen = Vec::new();
            scan::threads(Some(processes), FunctionTable::none(), &mut seen);
            let thread = |event: event::Event| match event.what {
                EventKind::Seen { thread, .. } => Some(thread),
                _ => None,
            };
            seen.into_iter().filter_map(thread).collect::<HashSet<u32>>()
        });
        let sight = match FaultCounter::open(threads.as_ref()) {
            _ if !is_root() => sources::only_root(),
            Ok(counter) => {
                self.faults = counter;
                SourceState::Open
            }
            Err(error) => sources::closed(&error),
        };
        self.faults_sight = Some(sight);
    }

    /// Takes what the kernel has reported until now and writes the sums to `row`; at the end too.
    /// `now_ns` is the caller's clock, which spans and rows of processes use. With `all` nothing
    /// waits for the end of its second: the first and the last sample.
    pub fn read(&mut self, now_ns: u64, all: bool, registry: &mut Registry, row: &mut Row) {
        let faults = self.faults.sum();
        let sums = match &mut self.source {
            Source::InKernel(programs) => {
                programs.advance(now_ns, all);
                programs.sums(faults)
            }
            Source::Ring(rings) => {
                rings.advance(now_ns);
                TraceSums {
                    threads: rings.threads(),
                    requests: rings.requests(),
                    reclaim: rings.reclaim(),
                    cpu: rings.cpu(),
                    events: rings.events,
                    lost: rings.lost,
                    stopped: rings.is_paused(),
                    faults,
                    returns: None,
                    hits: None,
                }
            }
        };
        self.reducers.fill(&sums, registry, row);
    }

    /// What single processes used since the last call, and which files; `None` where that is not
    /// watched.
    pub fn who(&mut self) -> Option<Who> {
        match &mut self.source {
            Source::InKernel(programs) => programs.who(),
            Source::Ring(_) => None,
        }
    }

    /// What keeps single accesses; `None` where they are not watched.
    pub(crate) fn accesses(&mut self) -> Option<&mut AccessRecorder> {
        match &mut self.source {
            Source::InKernel(programs) => programs.accesses_mut(),
            Source::Ring(_) => None,
        }
    }

    /// What all processes of the machine used, where programs in the kernel sum it up.
    pub(crate) fn totals(&self) -> Option<&TreeTotals> {
        match &self.source {
            Source::InKernel(programs) => programs.totals(),
            Source::Ring(_) => None,
        }
    }

    /// Forgets what single processes used until now: rows begin here.
    pub fn restart_who(&mut self) {
        if let Source::InKernel(programs) = &mut self.source {
            programs.restart_who();
        }
    }

    /// Names the group of a process by the one that has a limit, where it is in several.
    pub(crate) fn name_groups_by(&mut self, limited: LimitedPaths) {
        if let Source::InKernel(programs) = &mut self.source {
            programs.name_groups_by(limited);
        }
    }

    /// Watches these processes too, from now on. Their later children follow them.
    pub fn adopt(&mut self, processes: &[u32]) {
        match &mut self.source {
            Source::InKernel(programs) => programs.adopt(processes),
            Source::Ring(rings) => rings.adopt(processes),
        }
    }

    /// Sets how many events are too many, where they are copied out of the kernel.
    pub fn set_limit(&mut self, limit: Limit) {
        if let Source::Ring(rings) = &mut self.source {
            rings.limit = limit;
        }
    }

    /// From when on everything counts, on the clock of [`sys::clock`].
    #[must_use]
    pub fn opened_ns(&self) -> u64 {
        match &self.source {
            Source::InKernel(programs) => programs.opened_ns(),
            Source::Ring(rings) => rings.opened_ns,
        }
    }

    /// Up to when everything has been counted: the wall's sums are exactly this less
    /// [`Tracer::opened_ns`].
    #[must_use]
    pub fn horizon_ns(&self) -> u64 {
        match &self.source {
            Source::InKernel(programs) => programs.horizon_ns(),
            Source::Ring(rings) => rings.horizon_ns,
        }
    }

    /// Events that the kernel had to drop.
    #[must_use]
    pub fn lost(&self) -> u64 {
        match &self.source {
            Source::InKernel(programs) => programs.lost(),
            Source::Ring(rings) => rings.lost,
        }
    }

    /// What could be seen of each family that was asked for, as of now, and whether programs in
    /// the kernel see it.
    #[must_use]
    pub fn sights(&self) -> BTreeMap<String, SourceState> {
        let families = match &self.source {
            Source::InKernel(programs) => programs.sights(),
            Source::Ring(rings) => &rings.sights,
        };
        let named =
            |(family, sight): (&Family, &SourceState)| (family.sight().to_owned(), sight.clone());
        let mut sights: BTreeMap<String, SourceState> = families.iter().map(named).collect();
        if let Some(sight) = &self.faults_sight {
            sights.insert(Family::Faults.sight().to_owned(), sight.clone());
        }
        if let (SourceState::Closed { .. }, Source::Ring(_)) = (&self.in_kernel, &self.source) {
            // Rings name no process and keep no event.
            for family in [Family::Who, Family::Hits, Family::Accesses] {
                if let Some(sight) = sights.get_mut(family.sight()) {
                    sight.clone_from(&self.in_kernel);
                }
            }
        }
        sights.insert(IN_KERNEL.to_owned(), self.in_kernel.clone());
        if let Source::InKernel(programs) = &self.source {
            let lost = programs.lost_programs();
            sights.extend(lost.map(|(name, why)| (format!("{IN_KERNEL}.{name}"), why.clone())));
        }
        sights
    }

    /// What happened to the events since the last call: that they are not followed for a while,
    /// because they came too fast, or that fewer of them are kept.
    pub fn spans(&mut self) -> Vec<Span> {
        match &mut self.source {
            Source::InKernel(programs) => {
                programs.accesses_mut().map(AccessRecorder::spans).unwrap_or_default()
            }
            Source::Ring(rings) => std::mem::take(&mut rings.spans),
        }
    }
}

fn is_root() -> bool {
    sys::process::effective_uid() == 0
}

/// Whether this process sees the numbers of processes that the kernel itself uses.
fn is_first_namespace() -> bool {
    /// `PROC_PID_INIT_INO` of linux/proc_ns.h.
    const FIRST: &str = "pid:[4026531836]";
    let own = std::fs::read_link("/proc/self/ns/pid");
    own.is_ok_and(|own| own.as_os_str() == FIRST)
}

/// Why nothing is seen from within a container.
fn other_numbers() -> SourceState {
    let why = "kernel events name processes by the numbers of the host, not of this container";
    SourceState::closed(why, None)
}

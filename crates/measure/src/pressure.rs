//! Memory pressure, on purpose and bounded: hogs that allocate, touch every page and free, as
//! in the recovery experiment of 2012, and which processes and files they evicted.
//!
//! A hog is a process of its own (this program again), first in line for the out-of-memory
//! killer, that ends with its parent. What would endanger others is refused before it starts.

mod check;
mod group;
mod launch;
mod losses;
mod worker;

pub use group::HogGroup;
pub use worker::run_hog;
pub(crate) use worker::write;

use crate::Result;
use losses::Losses;
use machine::{Root, vmstat};
use model::Bytes;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use sys::helper::HiddenCommand;

/// The pressure of the whole machine.
const PRESSURE_FILE: &str = "/proc/pressure/memory";

/// What is asked for, checked by [`HogPlan::check`] against the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct HogPlan {
    /// Memory of each hog.
    pub size: Bytes,
    /// Hogs at the same time.
    pub count: u32,
    /// How often they are launched.
    pub repeat: u32,
    /// How long each holds what it has touched.
    pub hold: Duration,
    /// What is written to the pages.
    pub content: PageContent,
    /// Once, or again and again while it holds.
    pub touch: HogTouch,
    /// Put the hogs into a group of their own with this limit.
    pub group_limit: Option<Bytes>,
    /// Stop allocating once tasks wait for memory for this share of the time, in percent.
    pub until_pressure_percent: Option<u32>,
    /// Start even if other processes may be killed for it.
    pub force: bool,
    /// The hidden command that calls [`run_hog`].
    pub helper: HiddenCommand,
}

impl HogPlan {
    /// One hog that writes `size` bytes that do not compress, once, and ends. `helper` is the
    /// hidden command that calls [`run_hog`].
    #[must_use]
    pub fn new(size: Bytes, helper: HiddenCommand) -> Self {
        Self {
            size,
            count: 1,
            repeat: 1,
            hold: Duration::ZERO,
            content: PageContent::Random,
            touch: HogTouch::Once,
            group_limit: None,
            until_pressure_percent: None,
            force: false,
            helper,
        }
    }
}

/// What the pages hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageContent {
    /// Bytes that do not compress.
    Random,
    /// Words, that compress about 2:1 to 4:1.
    Text,
    /// Zeros: the kernel may swap them without I/O.
    Zero,
}

/// How often the pages are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HogTouch {
    /// Once.
    Once,
    /// Again and again while the hog holds them.
    Loop,
}

/// What the hogs did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HogReport {
    /// Rounds of hogs that were begun.
    pub rounds: u32,
    /// Hogs that ran to their end.
    pub finished: u32,
    /// Hogs that were killed, with the reason in words.
    pub killed: Vec<String>,
    /// Bytes that were touched, summed.
    pub touched_bytes: u64,
    /// From the first to the last, ns.
    pub elapsed_ns: u64,
    /// Whether the requested pressure was reached; `None` if none was requested.
    pub pressure_reached: Option<bool>,
    /// The file of that pressure; `None` if none was requested.
    pub pressure_of: Option<PathBuf>,
    /// Bytes that the whole machine wrote to swap during the run, the hogs' own pages included;
    /// `None` where the kernel does not count it.
    pub machine_swapped_out_bytes: Option<u64>,
    /// Whether Ctrl-C ended it before its plan was done.
    pub interrupted: bool,
    /// The processes and files that lost memory, most first.
    pub pushed_out: Vec<MemoryLoss>,
    /// What the counters do not show, each in a line.
    pub notes: Vec<String>,
}

/// The largest loss of one process or file after any round; it may have been read back since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLoss {
    /// The process (`pid` and name) or the file.
    pub whose: String,
    /// The process's number; `None` for a file.
    pub pid: Option<u32>,
    /// Anonymous bytes that went to swap.
    pub to_swap_bytes: u64,
    /// Bytes of a file that left the page cache.
    pub from_cache_bytes: u64,
}

/// Launches the hogs, round after round, and reports what they evicted. Ctrl-C ends them; the
/// report then covers what was done.
///
/// # Errors
/// `Usage` for a plan that makes no sense; `Impossible` for one that would bring the
/// out-of-memory killer on others, unless forced, and for a group that cannot be made;
/// `Failed` where no process can be started.
pub fn hog(root: &Root, plan: &HogPlan, progress: &mut dyn FnMut(&str)) -> Result<HogReport> {
    plan.check(root)?;
    let limit = plan.group_limit;
    let group = limit.map(|limit| HogGroup::make(root, limit)).transpose()?;
    let pressure_of = plan.until_pressure_percent.map(|_| {
        let own = group.as_ref().and_then(HogGroup::pressure_file);
        own.unwrap_or_else(|| PathBuf::from(PRESSURE_FILE))
    });
    progress("looking at who has what");
    let mut losses = Losses::start(root);
    let counters = MachineCounters::read(root);
    let start = Instant::now();
    let mut report = HogReport {
        pressure_reached: pressure_of.as_ref().map(|_| false),
        pressure_of,
        ..HogReport::default()
    };
    while report.rounds < plan.repeat && !sys::interrupt::requested() {
        progress(&format!("round {} of {}", report.rounds + 1, plan.repeat));
        let round =
            launch::round(plan, report.rounds, group.as_ref(), report.pressure_of.as_ref())?;
        report.add(round);
        report.elapsed_ns = start.elapsed().as_nanos() as u64;
        losses.update(root);
    }
    report.interrupted = sys::interrupt::requested();
    (report.pushed_out, report.notes) = losses.report();
    counters.add_growth(&MachineCounters::read(root), &mut report);
    Ok(report)
}

impl HogReport {
    fn add(&mut self, round: launch::Round) {
        self.rounds += 1;
        self.finished += round.finished;
        self.killed.extend(round.killed);
        self.touched_bytes += round.touched_bytes;
        self.pressure_reached =
            self.pressure_reached.map(|reached| reached || round.pressure_reached);
    }
}

/// Counters of the machine, before and after.
struct MachineCounters {
    swapped_out_pages: Option<u64>,
    killings: Option<u64>,
}

impl MachineCounters {
    fn read(root: &Root) -> Self {
        Self {
            swapped_out_pages: vmstat::counter(root, "pswpout"),
            killings: vmstat::counter(root, "oom_kill"),
        }
    }

    /// Puts the growth until `later` into the report.
    fn add_growth(&self, later: &Self, report: &mut HogReport) {
        let grown = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        report.machine_swapped_out_bytes = grown(self.swapped_out_pages, later.swapped_out_pages)
            .map(|pages| pages * sys::process::page_bytes() as u64);
        match grown(self.killings, later.killings) {
            Some(0) | None => {}
            Some(count) => report.notes.push(format!(
                "the kernel killed {count} for want of memory meanwhile, on the whole machine"
            )),
        }
    }
}

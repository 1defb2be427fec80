//! Bringing it back: a plan that can be printed, the reading under a guard, the receipt.
//!
//! Anonymous pages come in the order of their slots: from a rotating or network disk by one
//! thread that reads one byte of each page in the other process (synchronous, so progress and
//! back-pressure are exact), with advice ahead of it where the runs are long; from flash by whichever of slot-ordered advice and several
//! readers a short trial on the first pages shows faster. Compressed RAM is skipped: nothing
//! is to be gained there. A batch is as many pages as took 50 ms last time; between two
//! the processors are left to others for as long as is their due (`share`).

mod anonymous;
mod files;
mod planning;
mod share;
mod swap_ins;
mod trial;
mod verify;

use super::snapshot::Snapshot;
use super::speed::Speed;
use super::targets::Selection;
use crate::guard::{Guard, Limits, Stop};
use crate::{Error, Kind, Result};
use machine::Root;
use model::{Bytes, Control, Progress, ProgressSink};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use sys::background::Background;
use sys::clock::now_ns;
use sys::helper::HiddenCommand;

pub use planning::{Work, plan};
use share::Share;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// Whose.
    pub selection: Selection,
    /// These of them before all others.
    pub first: Vec<u32>,
    /// Anonymous memory.
    pub anonymous: bool,
    /// Shared memory.
    pub shared: bool,
    /// Files that live processes use; with a snapshot, the files that it names.
    pub files: bool,
    /// What was in memory once, if that is to be brought back.
    pub snapshot: Option<Snapshot>,
    /// Trees whose directories and inodes are wanted.
    pub metadata: Vec<PathBuf>,
    /// Whether the plan is to say how long it takes: disks are then tried longer.
    pub estimate: bool,
    /// Whether it goes on while others want the processors.
    pub hurry: bool,
    /// The way to read, if the person chose one.
    pub method: Option<Method>,
    /// What may be used.
    pub limits: Limits,
    /// The hidden command that reads inside of a group; absent, this process reads everything.
    pub helper: Option<HiddenCommand>,
}

/// A way to make the kernel bring pages of another process back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// One thread reads a byte of each page, in slot order.
    RemoteRead,
    /// As many threads, each with its own part of the slots.
    RemoteReaders(u8),
    /// `process_madvise(MADV_WILLNEED)` in slot order, and a byte of each page read behind it.
    WillNeed,
    /// The advice alone, where no process may be read: the pages come into the swap cache, and
    /// the first touch of each maps it without the device.
    AdviceOnly,
}

/// What would be read from one source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What it is.
    pub kind: PartKind,
    /// The swap area's path or the disk's name.
    pub source: String,
    /// Bytes to read.
    pub bytes: u64,
    /// In how many runs that lie apart on the device.
    pub runs: u64,
    /// How long in this order, ns, by the device's own figures.
    pub estimated_ns: Option<u64>,
    /// How long if each page was asked for by itself in a random order, ns.
    pub by_demand_ns: Option<u64>,
    /// Why it is left out, if it is.
    pub skipped: Option<String>,
}

/// The kinds of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// Anonymous pages in swap.
    Anonymous,
    /// Shared pages in swap.
    Shared,
    /// Pages of files.
    File,
}

/// What will be done; printable, and nothing has been read yet.
#[derive(Debug)]
pub struct Plan {
    /// One for each source.
    pub parts: Vec<Part>,
    /// What the devices showed.
    pub speeds: Vec<Speed>,
    /// What cannot be seen or done, each in a line.
    pub notes: Vec<String>,
    /// What the parts were counted from, for [`carry_out`].
    pub work: Work,
}

/// The receipt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Why it ended.
    pub stop: Stop,
    /// One for each source, in the order of work.
    pub parts: Vec<Done>,
    /// From the first read to the last, ns.
    pub elapsed_ns: u64,
    /// Of these, pauses in which the processors were left to others.
    pub paused_ns: u64,
    /// Lines for the person.
    pub notes: Vec<String>,
}

/// What was done of one part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// What it is.
    pub kind: PartKind,
    /// The swap area's path or the disk's name.
    pub source: String,
    /// The way that was used.
    pub method: Option<Method>,
    /// Bytes asked for.
    pub bytes: u64,
    /// Of the pages asked for, present afterwards.
    pub present_pages: u64,
    /// Pages asked for.
    pub pages: u64,
    /// Pages whose process or mapping was gone.
    pub gone_pages: u64,
    /// How long, ns.
    pub elapsed_ns: u64,
    /// The most faults with a read from the device that nobody has to take now: of the pages present
    /// those that came from there. Pages that were in memory still spare nothing.
    pub avoided_faults: u64,
    /// What these would have cost, ns: each the device's own time for one page.
    pub avoided_ns: Option<u64>,
}

/// Does `plan`, and reports to `progress` after each batch. Ends early when the guard or
/// `progress` says so: that is not an error, the report gives the reason.
///
/// # Errors
/// `Impossible` where the first read is refused.
pub fn carry_out(
    root: &Root,
    request: &Request,
    plan: Plan,
    progress: &mut ProgressSink<'_>,
) -> Result<Report> {
    if let Some(reason) = plan.work.refused() {
        let operation = "bring anonymous memory back";
        return Err(Error::new(Kind::Impossible, operation, reason));
    }
    let mut guard = Guard::start(root, request.limits.clone())?;
    guard.watch(plan.work.targets());
    let planned = plan.parts.iter().filter(|part| part.skipped.is_none());
    let mut course = Course {
        root,
        request,
        guard,
        progress,
        control: Control::Continue,
        planned_bytes: planned.map(|part| part.bytes).sum(),
        moved_bytes: 0,
        started_ns: now_ns(),
        share: (!request.hurry).then(|| Share::start(root)),
        paused_ns: 0,
        group_left_out: false,
        notes: Vec::new(),
        background: Background::take().ok(),
    };
    let mut parts = Vec::new();
    let stop = course.all(&plan.work, &plan.speeds, &mut parts)?;
    let stop = match stop {
        None if course.group_left_out => Stop::GroupLimit,
        other => other.unwrap_or(Stop::Done),
    };
    Ok(Report {
        stop,
        parts,
        elapsed_ns: now_ns() - course.started_ns,
        paused_ns: course.paused_ns,
        notes: course.notes,
    })
}

/// A reason to stop is seen so soon in a pause.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// A restore on its way: what all kinds of memory share.
struct Course<'a> {
    root: &'a Root,
    request: &'a Request,
    guard: Guard,
    progress: &'a mut ProgressSink<'a>,
    /// What `progress` answered last.
    control: Control,
    planned_bytes: u64,
    moved_bytes: u64,
    started_ns: u64,
    /// `None` if it pauses for nobody.
    share: Option<Share>,
    paused_ns: u64,
    /// Whether pages of some group at its limit were left where they are.
    group_left_out: bool,
    notes: Vec<String>,
    /// What is brought back is needed later, what others do is needed now. That it may be refused or
    /// have no effect is no reason to give up.
    background: Option<Background>,
}

impl Course<'_> {
    /// Everything in its order, until something says stop.
    fn all(
        &mut self,
        work: &Work,
        speeds: &[Speed],
        parts: &mut Vec<Done>,
    ) -> Result<Option<Stop>> {
        if let Some(stop) = anonymous::bring_back(self, work, speeds, parts)? {
            return Ok(Some(stop));
        }
        if let Some(stop) = files::bring_shared_back(self, work, speeds, parts) {
            return Ok(Some(stop));
        }
        if let Some(stop) = files::bring_files_back(self, work, speeds, parts)? {
            return Ok(Some(stop));
        }
        files::warm_metadata(self)
    }

    /// So many bytes more were read.
    fn advance(&mut self, bytes: u64) {
        self.moved_bytes += bytes;
        let total = Some(self.planned_bytes);
        self.control = (self.progress)(Progress::bytes("restoring", self.moved_bytes, total));
    }

    /// A line for the person, unless it stands there already.
    fn note_once(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Whether to stop; to be asked while nothing is being read. Leaves the processors to others for
    /// as long as is their due.
    fn check(&mut self) -> Option<Stop> {
        loop {
            let stop = self
                .cancelled()
                .or_else(|| self.guard.check(Bytes(self.moved_bytes)));
            if stop.is_some() {
                return self.hurry_after(stop);
            }
            let pause = self.share.as_mut().map_or(Duration::ZERO, Share::pause);
            if pause.is_zero() {
                return None;
            }
            let before_ns = now_ns();
            std::thread::sleep(pause.min(LONGEST_SLEEP));
            self.paused_ns += now_ns() - before_ns;
        }
    }

    /// Whether `progress` asked for the end.
    fn cancelled(&self) -> Option<Stop> {
        self.control.is_stop().then_some(Stop::Cancelled)
    }

    /// Nothing more will be read after a stop: the rest of the work, a look at what came, is soon
    /// done, and an end was promised.
    fn hurry_after(&mut self, stop: Option<Stop>) -> Option<Stop> {
        if stop.is_some() {
            self.background = None;
        }
        stop
    }
}

//! The request and the plan of a restore: what would be read from where, printable before anything
//! is read, and the pages, objects and files behind it.

use crate::background::Limits;
use crate::read_plan::ReadPlan;
use crate::workingset::anonymous::{self, SwappedPage};
use crate::workingset::areas::{SwapMedium, SwapSource};
use crate::workingset::remote::RestoreMethod;
use crate::workingset::shared::SharedObject;
use crate::workingset::snapshot::Snapshot;
use crate::workingset::speed::{self, DiskSpeed, TrialPurpose};
use crate::workingset::targets::{Selection, TargetProcess};
use machine::{Root, swap};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use sys::helper::HiddenCommand;

/// Random reads this fast need no head to move, no platter to turn and no network: half a turn at
/// 15,000 turns a minute takes 2 ms.
const NO_SEEK_NS: u64 = 500_000;

/// If fewer than half of the pages stay, as many are evicted again as are restored.
const YIELD_PERCENT: u32 = 50;

/// What to restore, and what that may take.
#[derive(Clone, Debug)]
pub struct RestoreRequest {
    /// Whose memory.
    pub selection: Selection,
    /// These processes before all others.
    pub first: Vec<u32>,
    /// Anonymous memory.
    pub anonymous: bool,
    /// Shared memory.
    pub shared: bool,
    /// Files that live processes use; with a snapshot, the files that it names.
    pub files: bool,
    /// What was in memory once, if that is to be restored.
    pub snapshot: Option<Snapshot>,
    /// Trees whose directories and inodes are wanted.
    pub metadata: Vec<PathBuf>,
    /// Whether the plan is to say how long it takes: disks are then tried longer.
    pub estimate: bool,
    /// How to read from swap, if the person chose a method.
    pub method: Option<RestoreMethod>,
    /// What may be used.
    pub limits: Limits,
    /// The smallest share, in percent, of the pages read that must be in memory afterwards.
    pub yield_percent: u32,
    /// The hidden command that reads inside of a group; absent, this process reads everything.
    pub helper: Option<HiddenCommand>,
}

impl RestoreRequest {
    /// A request for everything that `selection` had, within `limits`.
    #[must_use]
    pub fn new(selection: Selection, limits: Limits) -> Self {
        Self {
            selection,
            first: Vec::new(),
            anonymous: true,
            shared: true,
            files: true,
            snapshot: None,
            metadata: Vec::new(),
            estimate: false,
            method: None,
            limits,
            yield_percent: YIELD_PERCENT,
            helper: None,
        }
    }
}

/// What will be done. Nothing has been read yet.
#[derive(Debug, Default)]
pub struct RestorePlan {
    /// One for each source.
    pub parts: Vec<PlannedSource>,
    /// What the devices achieved in a trial.
    pub speeds: Vec<DiskSpeed>,
    /// What cannot be seen or done, each in a line.
    pub notes: Vec<String>,
    /// What the parts were counted from.
    pub work: PlannedWork,
}

impl RestorePlan {
    /// The index of the speed of the device that a swap area is on.
    pub(super) fn try_area(
        &mut self,
        root: &Root,
        area: &swap::Area,
        purpose: TrialPurpose,
    ) -> Option<usize> {
        let device = area.device?;
        let file = (area.kind == "file").then_some(area.path.as_path());
        self.try_device(root, device, file, purpose)
    }

    /// The index of the speed of the device with this number, which is tried the first time, by
    /// reads of `file` on it if that is given. A refused trial is a note.
    pub(super) fn try_device(
        &mut self,
        root: &Root,
        (major, minor): (u32, u32),
        file: Option<&Path>,
        purpose: TrialPurpose,
    ) -> Option<usize> {
        let name = machine::block::name_of_device(root, major, minor)?;
        let known = self.speeds.iter().position(|speed| speed.device == name);
        if known.is_some() {
            return known;
        }
        let tried = match file {
            Some(file) => speed::of_file(root, (major, minor), file, purpose),
            None => speed::of_device(root, (major, minor), purpose),
        };
        match tried {
            Ok(speed) => {
                self.speeds.push(speed);
                Some(self.speeds.len() - 1)
            }
            Err(error) => {
                let note = format!("how long it takes is not known: {error}");
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
                None
            }
        }
    }
}

/// What would be read from one source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedSource {
    /// The kind of memory.
    pub kind: MemoryKind,
    /// The swap area's path or the disk's name.
    pub source: String,
    /// Bytes to read.
    pub bytes: u64,
    /// In how many runs that are apart on the device.
    pub runs: u64,
    /// How long in this order, ns, by the device's own figures.
    pub estimated_ns: Option<u64>,
    /// How long if each page is read by itself in a random order, ns.
    pub by_demand_ns: Option<u64>,
    /// Why it is left out, if it is.
    pub skipped: Option<String>,
}

impl PlannedSource {
    /// Reads of `bytes` in `runs`, with the times that the figures of their device give.
    pub(super) fn new(
        kind: MemoryKind,
        source: String,
        (bytes, runs): (u64, u64),
        speed: Option<&DiskSpeed>,
    ) -> Self {
        let pages = bytes.div_ceil(sys::process::page_bytes() as u64);
        let by_demand_ns = |speed: &DiskSpeed| Some(speed.random_read_ns?.saturating_mul(pages));
        Self {
            kind,
            source,
            bytes,
            runs,
            estimated_ns: speed.and_then(|speed| in_order_ns(speed, runs, bytes)),
            by_demand_ns: speed.and_then(by_demand_ns),
            skipped: None,
        }
    }
}

/// The kinds of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Anonymous pages in swap.
    Anonymous,
    /// Shared pages in swap.
    Shared,
    /// Pages of files.
    File,
}

/// The open processes, their pages in order, and the files.
#[derive(Debug, Default)]
pub struct PlannedWork {
    pub(super) targets: Vec<TargetProcess>,
    /// Anonymous pages in the order of work.
    pub(super) segments: Vec<Segment>,
    /// Why anonymous memory cannot be restored, if so.
    pub(super) refused: Option<&'static str>,
    pub(super) shared: Vec<SharedObject>,
    /// The device of shared memory: an index into the speeds.
    pub(super) shared_speed: Option<usize>,
    pub(super) files: Vec<FileRead>,
}

impl PlannedWork {
    /// Why nothing can be done, if so.
    pub(super) fn refused(&self) -> Option<&'static str> {
        let nothing_else = self.shared.is_empty() && self.files.is_empty();
        self.refused.filter(|_| nothing_else)
    }
}

/// Files of one disk that one control group uses.
#[derive(Debug)]
pub(super) struct FileRead {
    /// The disk's name.
    pub(super) source: String,
    /// `None` for files of a snapshot, which no process may use.
    pub(super) group: Option<FileGroup>,
    pub(super) plan: ReadPlan,
    /// The disk: an index into the speeds.
    pub(super) speed: Option<usize>,
}

/// A control group that uses files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileGroup {
    pub(super) directory: PathBuf,
    /// The index of a target in it: all of them have the same group.
    pub(super) target: u32,
    /// Whether this process is in it as well, so that what it reads is charged there.
    pub(super) is_own: bool,
}

/// Anonymous pages in one swap area that are read together.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) source: SwapSource,
    /// By slot.
    pub(super) pages: Vec<SwappedPage>,
    /// The area's device: an index into the speeds.
    pub(super) speed: Option<usize>,
    pub(super) page_bytes: u64,
}

impl Segment {
    /// The area's path.
    pub(super) fn name(&self) -> String {
        self.source.area.path.display().to_string()
    }

    /// How it wants to be read. A measurement counts for more than what the disk reports: disks of
    /// virtual machines claim to rotate.
    pub(super) fn medium(&self, speeds: &[DiskSpeed]) -> SwapMedium {
        let measured_ns = self.speed.and_then(|index| speeds[index].random_read_ns);
        match self.source.medium {
            SwapMedium::SeeksCost if measured_ns.is_some_and(|ns| ns < NO_SEEK_NS) => {
                SwapMedium::Flash
            }
            reported => reported,
        }
    }

    /// Whether the area is still in use.
    pub(super) fn is_listed(&self, root: &Root) -> bool {
        let text = root.read_bytes("/proc/swaps").unwrap_or_default();
        let area = |area: &swap::Area| area.path == self.source.area.path;
        swap::parse(&text).iter().any(area)
    }

    /// What of the plan a person sees.
    pub(super) fn part(&self, speeds: &[DiskSpeed]) -> PlannedSource {
        let bytes = self.pages.len() as u64 * self.page_bytes;
        let size = (bytes, anonymous::count_runs(&self.pages));
        let speed = self.speed.map(|index| &speeds[index]);
        let is_skipped = self.source.medium == SwapMedium::CompressedRam;
        let reason = "compressed in memory: a fault is as fast as a restore";
        PlannedSource {
            skipped: is_skipped.then(|| reason.to_owned()),
            ..PlannedSource::new(MemoryKind::Anonymous, self.name(), size, speed)
        }
    }
}

/// A seek for each run, and the disk's own rate.
fn in_order_ns(speed: &DiskSpeed, runs: u64, bytes: u64) -> Option<u64> {
    let transfer_ns = u128::from(bytes) * 1_000_000_000
        / u128::from(speed.sequential_bytes_per_s.filter(|rate| *rate > 0)?);
    let seeks_ns = u128::from(runs) * u128::from(speed.random_read_ns?);
    u64::try_from(transfer_ns + seeks_ns).ok()
}

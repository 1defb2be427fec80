//! The plan: whose pages lie where, in which order they would be read, and how long it takes by
//! the device's own figures. Reads pagemaps and tries the disks; brings nothing back.

use super::files::{self, Reading};
use super::{Part, PartKind, Plan, Request};
use crate::workingset::anonymous::{self, SwappedPage};
use crate::workingset::areas::{self, Medium, Source};
use crate::workingset::order;
use crate::workingset::shared::SharedObject;
use crate::workingset::snapshot::Snapshot;
use crate::workingset::speed::{self, Purpose, Speed};
use crate::workingset::targets::{self, Selection, Target};
use crate::{Error, Kind, Result};
use machine::{Root, damon, swap};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Why pages that are seen in swap cannot be put into an order.
const HIDDEN: &str = "the kernel shows the slots of swap to holders of the capability \
                      SYS_ADMIN only, and without them the order is lost: run it as root";

/// No head moves, no platter turns and no network answers so soon: half a turn at 15,000 turns
/// a minute takes 2 ms.
const NO_SEEK_NS: u64 = 500_000;

/// What a plan was counted from: the processes held, the pages in order, the files.
#[derive(Debug, Default)]
pub struct Work {
    targets: Vec<Target>,
    segments: Vec<Segment>,
    refused: Option<&'static str>,
    pub(super) shared: Vec<SharedObject>,
    pub(super) files: Vec<Reading>,
    /// The device that shared memory lies on: an index into the speeds.
    pub(super) shared_speed: Option<usize>,
}

impl Work {
    /// The processes, held.
    pub(super) fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Anonymous pages in the order of work.
    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Why nothing can be done, if there is nothing that can.
    pub(super) fn refused(&self) -> Option<&'static str> {
        let nothing_else = self.shared.is_empty() && self.files.is_empty();
        self.refused.filter(|_| nothing_else)
    }
}

/// Pages that lie in one area and are read together.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) source: Source,
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

    /// How it wants to be read. What was measured counts for more than what the disk says of
    /// itself: disks of virtual machines claim to rotate.
    pub(super) fn medium(&self, speeds: &[Speed]) -> Medium {
        let measured_ns = self.speed.and_then(|index| speeds[index].random_read_ns);
        match self.source.medium {
            Medium::SeeksCost if measured_ns.is_some_and(|ns| ns < NO_SEEK_NS) => Medium::Flash,
            told => told,
        }
    }

    /// Whether the area is still in use.
    pub(super) fn is_listed(&self, root: &Root) -> bool {
        let text = root.read_bytes("/proc/swaps").unwrap_or_default();
        let area = |area: &swap::Area| area.path == self.source.area.path;
        swap::parse(&text).iter().any(area)
    }

    fn part(&self, speeds: &[Speed]) -> Part {
        let pages = self.pages.len() as u64;
        let runs = order::runs(&self.pages);
        let bytes = pages * self.page_bytes;
        let speed = self.speed.map(|index| &speeds[index]);
        let skipped = self.source.medium == Medium::CompressedRam;
        Part {
            kind: PartKind::Anonymous,
            source: self.name(),
            bytes,
            runs,
            estimated_ns: speed.and_then(|speed| in_order_ns(speed, runs, bytes)),
            by_demand_ns: speed.and_then(|speed| Some(speed.random_read_ns? * pages)),
            skipped: skipped
                .then(|| "compressed in memory: a fault is as fast as a restore".to_owned()),
        }
    }
}

/// A jump for each run, and then the disk's own pace.
pub(super) fn in_order_ns(speed: &Speed, runs: u64, bytes: u64) -> Option<u64> {
    let transfer_ns = u128::from(bytes) * 1_000_000_000
        / u128::from(speed.sequential_bytes_per_s.filter(|rate| *rate > 0)?);
    let jumps_ns = u128::from(runs) * u128::from(speed.random_read_ns?);
    u64::try_from(transfer_ns + jumps_ns).ok()
}

/// Looks where everything lies and says what would be done.
///
/// # Errors
/// Those of [`crate::workingset::targets::find`]; `Usage` for a process that is to come first and is not
/// among those chosen; `Impossible` where nothing that was asked for can be seen.
pub fn plan(root: &Root, request: &Request) -> Result<Plan> {
    let mut plan = Plan {
        parts: Vec::new(),
        speeds: Vec::new(),
        notes: Vec::new(),
        work: Work {
            targets: targets::find(root, &request.selection)?,
            ..Work::default()
        },
    };
    let first = first_targets(&plan.work.targets, &request.first)?;
    if request.anonymous {
        plan_anonymous(root, request, &first, &mut plan)?;
    }
    if request.shared {
        files::plan_shared(root, request, &mut plan);
    }
    if request.files {
        files::plan_files(root, request, &mut plan)?;
    }
    let unused = damon::pages_out_after(root).filter(|_| !plan.parts.is_empty());
    plan.notes.extend(unused.map(|unused| {
        let after = model::duration::show_ns(unused.as_nanos() as f64);
        format!(
            "DAMON pushes out regions of memory that lay unused for {after}: what is brought back \
             and not used goes again"
        )
    }));
    Ok(plan)
}

fn first_targets(targets: &[Target], first: &[u32]) -> Result<Vec<u32>> {
    let index_of = |pid: &u32| {
        let found = targets.iter().position(|target| target.pid == *pid);
        found.map(|index| index as u32).ok_or_else(|| {
            let reason = format!("it is not among the {} chosen", targets.len());
            Error::new(Kind::Usage, format!("put process {pid} first"), reason)
        })
    };
    first.iter().map(index_of).collect()
}

fn plan_anonymous(root: &Root, request: &Request, first: &[u32], plan: &mut Plan) -> Result<()> {
    if swap::areas(root).is_empty() {
        plan.notes
            .push("nothing lies in swap: no swap is in use".to_owned());
        return Ok(());
    }
    let mut pages = scan_all(root, &request.selection, plan)?;
    if let Some(snapshot) = &request.snapshot {
        pages.retain(was_present(root, snapshot, &plan.work.targets));
    }
    if pages.is_empty() {
        plan.notes.push("none of it lies in swap".to_owned());
        return Ok(());
    }
    let page_bytes = sys::process::page_bytes() as u64;
    // No page lies in slot 0: it stands for one that is hidden.
    if pages.iter().any(|page| page.slot == 0) {
        plan.parts.push(hidden(pages.len() as u64 * page_bytes));
        plan.work.refused = Some(HIDDEN);
        return Ok(());
    }
    order::by_slot(&mut pages, first);
    let is_first = |page: &SwappedPage| first.contains(&page.target);
    let together = |before: &SwappedPage, after: &SwappedPage| {
        (is_first(before), before.area) == (is_first(after), after.area)
    };
    let sources = areas::of_pages(root, &pages);
    for run in pages.chunk_by(together) {
        // What no area has is on its way within memory.
        let Some(source) = sources.get(&run[0].area) else {
            continue;
        };
        let speed = match source.medium {
            Medium::CompressedRam => None,
            _ => {
                let purpose = Purpose {
                    bytes: pages.len() as u64 * page_bytes,
                    start: Some(run[0].slot * page_bytes),
                    in_order: request.estimate,
                };
                try_area(root, &source.area, purpose, plan)
            }
        };
        plan.work.segments.push(Segment {
            source: source.clone(),
            pages: run.to_vec(),
            speed,
            page_bytes,
        });
    }
    let later = |segment: &Segment| !segment.pages.iter().take(1).any(is_first);
    let priority = |segment: &Segment| Reverse(segment.source.area.priority);
    plan.work
        .segments
        .sort_by_key(|segment| (later(segment), priority(segment)));
    let parts = plan
        .work
        .segments
        .iter()
        .map(|segment| segment.part(&plan.speeds));
    plan.parts.extend(parts);
    Ok(())
}

/// So much lies in swap, nobody may know where.
fn hidden(bytes: u64) -> Part {
    Part {
        kind: PartKind::Anonymous,
        source: "swap".to_owned(),
        bytes,
        runs: 0,
        estimated_ns: None,
        by_demand_ns: None,
        skipped: Some(HIDDEN.to_owned()),
    }
}

/// The pages in swap of all targets. A process that has ended has none.
fn scan_all(root: &Root, selection: &Selection, plan: &mut Plan) -> Result<Vec<SwappedPage>> {
    let mut pages = Vec::new();
    let mut refused = None;
    let mut refusals = 0;
    for (index, target) in (0..).zip(&plan.work.targets) {
        if sys::interrupt::requested() {
            break;
        }
        match anonymous::scan(root, target, index) {
            Ok(mut scan) => pages.append(&mut scan.swapped),
            Err(error) if error.kind == Kind::Impossible => {
                refusals += 1;
                refused = refused.or(Some(error));
            }
            Err(_) => {}
        }
    }
    match refused {
        // All that may be looked into can be none; of those that were named it is a refusal.
        Some(error) if refusals == plan.work.targets.len() && *selection != Selection::All => {
            Err(error)
        }
        Some(error) => {
            plan.notes
                .push(format!("{refusals} processes are left out: {error}"));
            Ok(pages)
        }
        None => Ok(pages),
    }
}

/// Whether a page was in memory when the snapshot was taken, of the process that it was then.
fn was_present(
    root: &Root,
    snapshot: &Snapshot,
    targets: &[Target],
) -> impl FnMut(&SwappedPage) -> bool {
    // A snapshot may name millions.
    let mut by_start = HashMap::new();
    for process in &snapshot.processes {
        by_start
            .entry((process.pid, process.start_ticks))
            .or_insert(process);
    }
    let held = targets.iter().map(|target| {
        let same = by_start.get(&(target.pid, target.start_ticks));
        let process = same.filter(|process| process.is(root, target));
        process
            .map(|process| process.present.clone())
            .unwrap_or_default()
    });
    let held: Vec<_> = held.collect();
    move |page| {
        let ranges = &held[page.target as usize];
        let at = ranges.partition_point(|range| range.end <= page.address);
        ranges
            .get(at)
            .is_some_and(|range| range.contains(&page.address))
    }
}

/// The index of the figures of the device that an area lies on.
pub(super) fn try_area(
    root: &Root,
    area: &swap::Area,
    purpose: Purpose,
    plan: &mut Plan,
) -> Option<usize> {
    let device = area.device?;
    match area.kind.as_str() {
        "file" => try_once(root, device, plan, || {
            speed::of_file(root, device, &area.path, purpose)
        }),
        _ => try_device(root, device, purpose, plan),
    }
}

/// The index of the figures of the device with this number.
pub(super) fn try_device(
    root: &Root,
    device: (u32, u32),
    purpose: Purpose,
    plan: &mut Plan,
) -> Option<usize> {
    try_once(root, device, plan, || {
        speed::of_device(root, device, purpose)
    })
}

/// The index of a device's figures, which are taken the first time that it is met.
fn try_once(
    root: &Root,
    (major, minor): (u32, u32),
    plan: &mut Plan,
    try_it: impl FnOnce() -> Result<Speed>,
) -> Option<usize> {
    let name = machine::block::name_of_device(root, major, minor)?;
    let known = plan.speeds.iter().position(|speed| speed.device == name);
    if known.is_some() {
        return known;
    }
    match try_it() {
        Ok(speed) => {
            plan.speeds.push(speed);
            Some(plan.speeds.len() - 1)
        }
        Err(error) => {
            let note = format!("how long it takes is not known: {error}");
            if !plan.notes.contains(&note) {
                plan.notes.push(note);
            }
            None
        }
    }
}

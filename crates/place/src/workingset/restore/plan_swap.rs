//! Plans anonymous memory: which pages are in swap, and in which order they would be read.
//! Reads pagemaps and tries the disks; restores nothing.

use super::plan::{MemoryKind, PlannedSource, RestorePlan, RestoreRequest, Segment};
use crate::Result;
use crate::workingset::anonymous::{self, SwappedPage};
use crate::workingset::areas::{self, SwapMedium};
use crate::workingset::snapshot::Snapshot;
use crate::workingset::speed::TrialPurpose;
use crate::workingset::targets::{Selection, TargetProcess};
use machine::{Root, swap};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Why pages in swap cannot be put into an order.
const HIDDEN: &str = "the kernel shows the slots of swap to holders of the capability \
                      SYS_ADMIN only, and without them the order is lost: run it as root";

/// Finds the anonymous pages in swap and puts them into the order of their slots. `first` are the
/// indices of the targets that come before all others.
pub(super) fn plan_anonymous(
    root: &Root,
    request: &RestoreRequest,
    first: &[u32],
    plan: &mut RestorePlan,
) -> Result<()> {
    if swap::areas(root).is_empty() {
        plan.notes.push("nothing is in swap: no swap is in use".to_owned());
        return Ok(());
    }
    let mut pages = Vec::new();
    let refusals = anonymous::scan_all(root, &plan.work.targets, |_, mut found| {
        pages.append(&mut found.swapped);
    });
    // `All` means all that this user may read, which can be none; a process by name is refused.
    let is_all = refusals.count == plan.work.targets.len();
    plan.notes.extend(refusals.note(is_all && request.selection != Selection::All)?);
    if let Some(snapshot) = &request.snapshot {
        pages.retain(was_present(root, snapshot, &plan.work.targets));
    }
    if pages.is_empty() {
        plan.notes.push("none of it is in swap".to_owned());
        return Ok(());
    }
    let page_bytes = sys::process::page_bytes() as u64;
    // Slot 0 is never used: the kernel reports it for slots that it hides.
    if pages.iter().any(|page| page.slot == 0) {
        let size = (pages.len() as u64 * page_bytes, 0);
        plan.parts.push(PlannedSource {
            skipped: Some(HIDDEN.to_owned()),
            ..PlannedSource::new(MemoryKind::Anonymous, "swap".to_owned(), size, None)
        });
        plan.work.refused = Some(HIDDEN);
        return Ok(());
    }
    anonymous::sort_by_slot(&mut pages, first);
    let is_first = |page: &SwappedPage| first.contains(&page.target);
    let together = |before: &SwappedPage, after: &SwappedPage| {
        (is_first(before), before.area) == (is_first(after), after.area)
    };
    let sources = areas::of_pages(root, &pages);
    for run in pages.chunk_by(together) {
        // A page that no area has is being moved within memory.
        let Some(source) = sources.get(&run[0].area) else {
            continue;
        };
        let purpose = TrialPurpose {
            bytes: pages.len() as u64 * page_bytes,
            start: Some(run[0].slot * page_bytes),
            in_order: request.estimate,
        };
        let speed = match source.medium {
            SwapMedium::CompressedRam => None,
            _ => plan.try_area(root, &source.area, purpose),
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
    plan.work.segments.sort_by_key(|segment| (later(segment), priority(segment)));
    let parts = plan.work.segments.iter().map(|segment| segment.part(&plan.speeds));
    plan.parts.extend(parts);
    Ok(())
}

/// Whether a page was in memory when the snapshot was taken, of the process that it was then.
fn was_present(
    root: &Root,
    snapshot: &Snapshot,
    targets: &[TargetProcess],
) -> impl FnMut(&SwappedPage) -> bool {
    // A snapshot may name millions.
    let mut by_start = HashMap::new();
    for process in &snapshot.processes {
        by_start.entry((process.pid, process.start_ticks)).or_insert(process);
    }
    let held = targets.iter().map(|target| {
        let same = by_start.get(&(target.pid, target.start_ticks));
        let process = same.filter(|process| process.is_process(root, target));
        process.map(|process| process.present.clone()).unwrap_or_default()
    });
    let held: Vec<_> = held.collect();
    move |page| {
        let ranges = &held[page.target as usize];
        let at = ranges.partition_point(|range| range.end <= page.address);
        ranges.get(at).is_some_and(|range| range.contains(&page.address))
    }
}

//! Restores anonymous memory from swap: the segments of a plan, batch by batch.
//!
//! After each batch of 50 ms it checks whether to stop, whether the area is still in use, which
//! control groups are full, and whether what was read stayed. At the end it looks up every page.

use super::method_trial::ReaderChoice;
use super::plan::{MemoryKind, PlannedWork, Segment};
use super::run::{RestoreRun, RestoredSource};
use super::swap_ins::SwapIns;
use super::verify::{self, Yield};
use crate::background::StopReason;
use crate::background::batch::BATCH_TIME;
use crate::workingset::anonymous::SwappedPage;
use crate::workingset::areas::SwapMedium;
use crate::workingset::remote::{PageBatch, RestoreMethod};
use crate::workingset::targets::TargetProcess;
use crate::{Error, ErrorKind, Result};
use machine::Root;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Instant;
use sys::clock::now_ns;

/// A batch of this many pages of which none could be read is no chance.
const DEAD_BATCH_PAGES: usize = 32;
/// How far Yama restricts which process may read another; with 3 none may, until the next boot.
const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// Restores the segments of `work` in their order.
///
/// # Errors
/// `Impossible` if the first read is refused.
pub(super) fn restore_swapped(
    run: &mut RestoreRun<'_>,
    work: &PlannedWork,
) -> Result<Option<StopReason>> {
    let before = SwapIns::read(run.root);
    let (mut stop, mut asked_pages) = (None, 0);
    for segment in &work.segments {
        if segment.source.medium == SwapMedium::CompressedRam || segment.pages.is_empty() {
            continue;
        }
        let (done, reason) = restore_segment(run, &work.targets, segment)?;
        asked_pages += done.pages - done.gone_pages;
        run.report.parts.push(done);
        stop = reason;
        if stop.is_some() {
            break;
        }
    }
    let notes = SwapIns::read(run.root).notes_since(before, asked_pages);
    run.report.notes.extend(notes);
    Ok(stop)
}

fn restore_segment(
    run: &mut RestoreRun<'_>,
    targets: &[TargetProcess],
    segment: &Segment,
) -> Result<(RestoredSource, Option<StopReason>)> {
    let (started, before) = (Instant::now(), SwapIns::read(run.root));
    let (method, medium) = (run.request.method, segment.medium(run.speeds));
    let mut readers = ReaderChoice::new(run.root, targets, method, medium, &segment.pages);
    let mut segment_run = SegmentRun {
        targets,
        segment,
        pages: segment.pages.clone(),
        front: 0,
        reached: 0,
        full: BTreeSet::new(),
        seen: Yield::default(),
        advice_only: false,
    };
    let mut stop = segment_run.run(run, &mut readers)?;
    if stop.is_some() {
        run.allowance.end();
    }
    let elapsed = started.elapsed();
    let asked = &segment_run.pages[..segment_run.front];
    let found = verify::locate(run.root, targets, asked);
    let counted = SwapIns::read(run.root);
    let advised = match readers.method() {
        Some(RestoreMethod::AdviceOnly) => counted.came_since(before, found.swapped),
        _ => 0,
    };
    let present_pages = found.present + advised;
    let avoided_faults = counted.read_since(before, present_pages);
    // An interrupt ends the lookup early: what was not looked up is not gone.
    if stop.is_none() && sys::interrupt::requested() {
        stop = Some(StopReason::Cancelled);
    }
    // A process that executed another program has some pages at the addresses of former ones.
    if stop.is_none() && 2 * found.gone > asked.len() as u64 {
        stop = Some(StopReason::SourceGone);
    }
    let fault_ns = run.random_read_ns(segment.speed);
    let done = RestoredSource {
        kind: MemoryKind::Anonymous,
        source: segment.name(),
        method: readers.method(),
        bytes: asked.len() as u64 * segment.page_bytes,
        present_pages,
        pages: asked.len() as u64,
        gone_pages: found.gone,
        elapsed_ns: elapsed.as_nanos() as u64,
        avoided_faults,
        avoided_ns: fault_ns.map(|ns| ns.saturating_mul(avoided_faults)),
    };
    Ok((done, stop))
}

/// A segment while it is restored.
struct SegmentRun<'a> {
    targets: &'a [TargetProcess],
    segment: &'a Segment,
    /// Those before `front` were asked for.
    pages: Vec<SwappedPage>,
    front: usize,
    reached: usize,
    /// Targets whose group is full.
    full: BTreeSet<u32>,
    seen: Yield,
    /// Whether reading is forbidden, so that the kernel is only advised.
    advice_only: bool,
}

impl<'a> SegmentRun<'a> {
    fn run(
        &mut self,
        run: &mut RestoreRun<'_>,
        readers: &mut ReaderChoice<'a>,
    ) -> Result<Option<StopReason>> {
        while self.front < self.pages.len() {
            if let Some(stop) = run.check() {
                return Ok(Some(stop));
            }
            if !self.segment.is_listed(run.root) {
                return Ok(Some(StopReason::SourceGone));
            }
            if self.leave_full_groups_out(run) {
                readers.forget_advice();
                continue;
            }
            let pages = self.permitted_pages(run);
            if pages == 0 {
                return Ok(Some(StopReason::Floor));
            }
            let end = self.pages.len().min(self.front.saturating_add(pages));
            let until_ns = now_ns() + BATCH_TIME.as_nanos() as u64;
            let batch = readers.batch(&self.pages[self.front..end], until_ns);
            if self.is_denied(&batch) && readers.fall_back(self.targets) {
                self.advice_only = true;
                run.note_once(advice_only_note(run.root));
                continue;
            }
            let taken = self.front..self.front + batch.taken;
            self.front = taken.end;
            self.reached += batch.reached;
            run.advance(batch.taken as u64 * self.segment.page_bytes);
            if let Some(stop) = self.judge(run, batch, taken)? {
                return Ok(Some(stop));
            }
        }
        Ok(None)
    }

    /// Whether nothing could be read so far, because a right is missing.
    fn is_denied(&self, batch: &PageBatch) -> bool {
        let denied = |error: &sys::Error| error.kind == sys::ErrorKind::Denied;
        self.reached + batch.reached == 0 && batch.refused.as_ref().is_some_and(denied)
    }

    /// Whether a batch is a reason to stop.
    fn judge(
        &mut self,
        run: &RestoreRun<'_>,
        batch: PageBatch,
        taken: Range<usize>,
    ) -> Result<Option<StopReason>> {
        let pages = &self.pages[taken];
        match batch.refused {
            Some(error) if self.reached == 0 => {
                return Err(refusal(run.root, self.targets, pages, &error));
            }
            // One process may refuse and others not; a method is refused for all of them.
            Some(error) if batch.taken == 0 => return Err(error.into()),
            _ => {}
        }
        let found = self.seen.sample(run.root, self.targets, pages);
        if batch.reached == 0 && pages.len() >= DEAD_BATCH_PAGES && found.swapped > 0 {
            return Ok(Some(StopReason::SourceGone));
        }
        // Pages that advice brought into the swap cache are still swapped according to pagemap.
        let too_few = !self.advice_only && self.seen.is_below(run.request.yield_percent);
        Ok(too_few.then_some(StopReason::Yield))
    }

    /// Drops what is left of targets whose group got full; whether there were any.
    fn leave_full_groups_out(&mut self, run: &mut RestoreRun<'_>) -> bool {
        let before = self.full.len();
        let targets = 0..self.targets.len() as u32;
        self.full.extend(targets.filter(|target| run.allowance.is_group_full(*target)));
        if self.full.len() == before {
            return false;
        }
        let mut rest = self.pages.split_off(self.front);
        let all = rest.len();
        rest.retain(|page| !self.full.contains(&page.target));
        run.group_left_out |= rest.len() < all;
        self.pages.append(&mut rest);
        true
    }

    /// How many pages the next batch may have.
    fn permitted_pages(&self, run: &RestoreRun<'_>) -> usize {
        let targets = 0..self.targets.len() as u32;
        let groups = targets.filter(|target| !self.full.contains(target));
        let room = run.allowance.batch_room(groups).0;
        usize::try_from(room / self.segment.page_bytes).unwrap_or(usize::MAX)
    }
}

/// The refusal with the right that is missing.
fn refusal(
    root: &Root,
    targets: &[TargetProcess],
    pages: &[SwappedPage],
    error: &sys::Error,
) -> Error {
    let reason = sys::plain_reason(&error.source);
    let operation = match pages.first() {
        Some(page) => format!("{} of {}", error.operation, targets[page.target as usize].pid),
        None => error.operation.to_string(),
    };
    let hint = if is_forbidden_by_yama(root) {
        "kernel.yama.ptrace_scope is 3, which forbids it until the next boot; to advise the kernel \
         instead needs the capability SYS_NICE"
    } else {
        "needs the capabilities SYS_PTRACE and, for advice, SYS_NICE"
    };
    Error::new(ErrorKind::Impossible, operation, format!("{reason} ({hint})"))
}

/// Whether no process at all may be read.
fn is_forbidden_by_yama(root: &Root) -> bool {
    root.read(YAMA).is_ok_and(|scope| scope.trim() == "3")
}

/// The note about what was done instead of reading.
fn advice_only_note(root: &Root) -> String {
    let why = if is_forbidden_by_yama(root) { " (kernel.yama.ptrace_scope is 3)" } else { "" };
    format!(
        "reading another process was refused{why}, so the kernel was only advised: the pages wait in the swap \
         cache, where the first touch of each finds them without the disk"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    /// The error and the note of a machine with this setting of Yama.
    fn refused(scope: &str) -> (String, String) {
        let tree = FakeRoot::bare().file(YAMA, scope);
        let root = Root::at(tree.path());
        let error = sys::process_memory::touch(u32::MAX, &[0]).unwrap_err();
        (refusal(&root, &[], &[], &error).to_string(), advice_only_note(&root))
    }

    #[test]
    fn a_refusal_names_yama_only_where_it_forbids_all() {
        let (line, note) = refused("3\n");
        assert!(line.contains("kernel.yama.ptrace_scope is 3"), "{line}");
        assert!(note.contains("kernel.yama.ptrace_scope is 3"), "{note}");
        let (line, note) = refused("2\n");
        assert!(line.contains("SYS_PTRACE") && !line.contains("yama"), "{line}");
        assert!(!note.contains("yama"), "{note}");
    }
}

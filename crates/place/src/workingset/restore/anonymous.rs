//! Anonymous memory from swap: the segments of a plan, batch by batch.
//!
//! After each batch of 50 ms it is asked whether to stop, whether the area is still there, which
//! groups are full, and whether what was read stayed. At the end every page asked for is looked up.

use super::planning::{Segment, Work};
use super::swap_ins::SwapIns;
use super::trial::Readers;
use super::verify::{self, Yield};
use super::{Course, Done, Method, PartKind};
use crate::guard::Stop;
use crate::workingset::anonymous::SwappedPage;
use crate::workingset::areas::Medium;
use crate::workingset::remote::Batch;
use crate::workingset::speed::Speed;
use crate::workingset::targets::Target;
use crate::{Error, Kind, Result};
use machine::Root;
use std::collections::BTreeSet;
use std::ops::Range;
use sys::clock::now_ns;

/// How long a batch is to take.
const BATCH_NS: u64 = 50_000_000;
/// A group with less room than this counts as full: the kernel charges in portions of 64
/// pages for each processor.
pub(super) const GROUP_MARGIN_BYTES: u64 = 2 << 20;
/// A batch of this many pages of which none could be read is no chance.
const DEAD_BATCH_PAGES: usize = 32;
/// How far Yama restricts who may read whom; with 3 nobody may, and that until the next boot.
const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// Brings the segments back in their order.
pub(super) fn bring_back(
    course: &mut Course<'_>,
    work: &Work,
    speeds: &[Speed],
    parts: &mut Vec<Done>,
) -> Result<Option<Stop>> {
    let before = SwapIns::read(course.root);
    let (mut stop, mut asked_pages) = (None, 0);
    for segment in work.segments() {
        if segment.source.medium == Medium::CompressedRam || segment.pages.is_empty() {
            continue;
        }
        let (started_ns, counted) = (now_ns(), SwapIns::read(course.root));
        let mut mover = Mover {
            targets: work.targets(),
            segment,
            pages: segment.pages.clone(),
            front: 0,
            reached: 0,
            full: BTreeSet::new(),
            seen: Yield::default(),
            advice_only: false,
        };
        let method = course.request.method;
        let medium = segment.medium(speeds);
        let mut readers = Readers::new(course.root, mover.targets, method, medium, &mover.pages);
        stop = mover.run(course, &mut readers)?;
        course.hurry_after(stop);
        let elapsed_ns = now_ns() - started_ns;
        let asked = &mover.pages[..mover.front];
        let found = verify::whereabouts(course.root, mover.targets, asked);
        let came = SwapIns::read(course.root);
        let present_pages = found.present
            + match readers.method() {
                Some(Method::AdviceOnly) => came.came_since(counted, found.swapped),
                _ => 0,
            };
        let avoided_faults = came.read_since(counted, present_pages);
        // Who became another program has some pages at the addresses of former ones.
        if stop.is_none() && 2 * found.gone > asked.len() as u64 {
            stop = Some(Stop::SourceGone);
        }
        let fault_ns = segment.speed.and_then(|index| speeds[index].random_read_ns);
        parts.push(Done {
            kind: PartKind::Anonymous,
            source: segment.name(),
            method: readers.method(),
            bytes: asked.len() as u64 * segment.page_bytes,
            present_pages,
            pages: asked.len() as u64,
            gone_pages: found.gone,
            elapsed_ns,
            avoided_faults,
            avoided_ns: fault_ns.map(|ns| ns.saturating_mul(avoided_faults)),
        });
        asked_pages += asked.len() as u64 - found.gone;
        if stop.is_some() {
            break;
        }
    }
    let now = SwapIns::read(course.root);
    course.notes.extend(now.notes_since(before, asked_pages));
    Ok(stop)
}

/// One segment on its way.
struct Mover<'a> {
    targets: &'a [Target],
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

impl<'a> Mover<'a> {
    fn run(&mut self, course: &mut Course<'_>, readers: &mut Readers<'a>) -> Result<Option<Stop>> {
        while self.front < self.pages.len() {
            if let Some(stop) = course.check() {
                return Ok(Some(stop));
            }
            if !self.segment.is_listed(course.root) {
                return Ok(Some(Stop::SourceGone));
            }
            if self.leave_full_groups_out(course) {
                readers.forget_advice();
                continue;
            }
            let pages = self.permitted(course);
            if pages == 0 {
                return Ok(Some(Stop::Floor));
            }
            let end = self.pages.len().min(self.front + pages);
            let batch = readers.batch(&self.pages[self.front..end], now_ns() + BATCH_NS);
            if self.is_closed(&batch) && readers.fall_back(self.targets) {
                self.advice_only = true;
                course.note_once(only_advised(course.root));
                continue;
            }
            let taken = self.front..self.front + batch.taken;
            self.front = taken.end;
            self.reached += batch.reached;
            course.advance(batch.taken as u64 * self.segment.page_bytes);
            if let Some(stop) = self.judge(course, batch, taken)? {
                return Ok(Some(stop));
            }
        }
        Ok(None)
    }

    /// Whether nothing at all could be read so far, for want of a right.
    fn is_closed(&self, batch: &Batch) -> bool {
        let denied = |error: &sys::Error| error.kind == sys::Kind::Denied;
        self.reached + batch.reached == 0 && batch.refused.as_ref().is_some_and(denied)
    }

    /// What a batch says about going on.
    fn judge(
        &mut self,
        course: &Course<'_>,
        batch: Batch,
        taken: Range<usize>,
    ) -> Result<Option<Stop>> {
        let pages = &self.pages[taken];
        match batch.refused {
            Some(error) if self.reached == 0 => {
                return Err(refusal(course.root, self.targets, pages, &error));
            }
            // Some process may be closed to us and others not; a way of reading is closed for all.
            Some(error) if batch.taken == 0 => return Err(error.into()),
            _ => {}
        }
        let found = self.seen.sample(course.root, self.targets, pages);
        if batch.reached == 0 && pages.len() >= DEAD_BATCH_PAGES && found.swapped > 0 {
            return Ok(Some(Stop::SourceGone));
        }
        // What advice brought into the swap cache pagemap shows as swapped still.
        let too_few = !self.advice_only && self.seen.is_below(course.request.limits.yield_percent);
        Ok(too_few.then_some(Stop::Yield))
    }

    /// Drops what is left of processes whose group got full; whether there were any.
    fn leave_full_groups_out(&mut self, course: &mut Course<'_>) -> bool {
        let before = self.full.len();
        for target in 0..self.targets.len() as u32 {
            let room = course.guard.group_room(target);
            if room.is_some_and(|room| room.0 < GROUP_MARGIN_BYTES) {
                self.full.insert(target);
            }
        }
        if self.full.len() == before {
            return false;
        }
        let mut rest = self.pages.split_off(self.front);
        let all = rest.len();
        rest.retain(|page| !self.full.contains(&page.target));
        course.group_left_out |= rest.len() < all;
        self.pages.append(&mut rest);
        true
    }

    /// How many pages the next batch may have: what fits above the floor, and half of what fits
    /// into any group, since its room is read only now and then.
    fn permitted(&self, course: &Course<'_>) -> usize {
        let groups = (0..self.targets.len() as u32)
            .filter(|target| !self.full.contains(target))
            .filter_map(|target| Some(course.guard.group_room(target)?.0 / 2));
        let room = groups.fold(course.guard.room().0, u64::min);
        usize::try_from(room / self.segment.page_bytes).unwrap_or(usize::MAX)
    }
}

/// The right that is missing, in words.
fn refusal(root: &Root, targets: &[Target], pages: &[SwappedPage], error: &sys::Error) -> Error {
    let reason = sys::plain_reason(&error.source);
    let whom = pages.first().map(|page| &targets[page.target as usize]);
    let whom = whom.map_or_else(String::new, |target| format!(" of {}", target.pid));
    let operation = format!("{}{whom}", error.operation);
    let reason = match forbidden_by_yama(root) {
        true => format!(
            "{reason} (to nobody as kernel.yama.ptrace_scope is 3, which stays until the next boot; \
             to advise the kernel instead needs the capability SYS_NICE)"
        ),
        false => {
            format!("{reason} (needs the capabilities SYS_PTRACE and, for advice, SYS_NICE)")
        }
    };
    Error::new(Kind::Impossible, operation, reason)
}

/// Whether no process at all may be read.
fn forbidden_by_yama(root: &Root) -> bool {
    root.read(YAMA).is_ok_and(|scope| scope.trim() == "3")
}

/// The line about what was done instead of reading.
fn only_advised(root: &Root) -> String {
    let why = match forbidden_by_yama(root) {
        true => " (kernel.yama.ptrace_scope is 3)",
        false => "",
    };
    format!(
        "reading another process was refused{why}, so the kernel was only advised: the pages wait in the swap \
         cache, where the first touch of each finds them without the disk"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    /// The line and the note of a machine with this setting of Yama.
    fn told(scope: &str) -> (String, String) {
        let tree = FakeRoot::bare().file(YAMA, scope);
        let root = Root::at(tree.path());
        let error = sys::process_memory::touch(u32::MAX, &[0]).unwrap_err();
        (
            refusal(&root, &[], &[], &error).to_string(),
            only_advised(&root),
        )
    }

    #[test]
    fn a_refusal_names_yama_only_where_it_forbids_all() {
        let (line, note) = told("3\n");
        assert!(line.contains("kernel.yama.ptrace_scope is 3"), "{line}");
        assert!(note.contains("kernel.yama.ptrace_scope is 3"), "{note}");
        let (line, note) = told("2\n");
        assert!(
            line.contains("SYS_PTRACE") && !line.contains("yama"),
            "{line}"
        );
        assert!(!note.contains("yama"), "{note}");
    }
}

//! Whether the pages that were read are in memory, by pagemap: a sample after each batch, and every
//! page at the end.

use crate::workingset::anonymous::SwappedPage;
use crate::workingset::targets::TargetProcess;
use machine::Root;
use machine::pagemap::{Page, Pagemap};
use std::collections::VecDeque;

/// Pages closer than this are read with the pages between them: the kernel takes as long to fill in
/// so many entries as for a call.
const JOINED_PAGES: u64 = 32;
/// Pages that are looked at after each batch.
const SAMPLE_PAGES: usize = 32;
/// Batches that are judged together.
const WINDOW: usize = 8;
/// With fewer than this a share means nothing.
const ENOUGH_PAGES: u64 = 64;

/// How many of some pages are in memory, in swap, and gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PageLocations {
    /// In memory.
    pub present: u64,
    /// Still, or again, in swap.
    pub swapped: u64,
    /// Nowhere: the process or the mapping is gone.
    pub gone: u64,
}

impl PageLocations {
    fn count(&mut self, page: Page) {
        match page {
            Page::Present { .. } => self.present += 1,
            Page::Swapped { .. } => self.swapped += 1,
            Page::Absent => self.gone += 1,
        }
    }

    fn add(&mut self, other: Self) {
        self.present += other.present;
        self.swapped += other.swapped;
        self.gone += other.gone;
    }
}

/// Looks each of `pages` up.
pub(super) fn locate(
    root: &Root,
    targets: &[TargetProcess],
    pages: &[SwappedPage],
) -> PageLocations {
    let page_bytes = sys::process::page_bytes() as u64;
    let mut by_address: Vec<(u32, u64)> =
        pages.iter().map(|page| (page.target, page.address)).collect();
    by_address.sort_unstable();
    let mut sum = PageLocations::default();
    for same in by_address.chunk_by(|before, after| before.0 == after.0) {
        let Some(mut pagemap) = open(root, &targets[same[0].0 as usize]) else {
            sum.gone += same.len() as u64;
            continue;
        };
        let near = |before: &(u32, u64), after: &(u32, u64)| {
            after.1 - before.1 <= JOINED_PAGES * page_bytes
        };
        for run in same.chunk_by(near) {
            let mut found = PageLocations::default();
            let mut wanted = run.iter().map(|(_, address)| *address).peekable();
            let range = run[0].1..run[run.len() - 1].1 + page_bytes;
            // A process that ends here gives no entries more.
            let _ = pagemap.read(range, |address, page| {
                if wanted.next_if_eq(&address).is_some() {
                    found.count(page);
                }
            });
            found.gone += wanted.count() as u64;
            sum.add(found);
        }
    }
    sum
}

/// The pagemap of a process that lives; `None` where it does not or is closed.
fn open(root: &Root, target: &TargetProcess) -> Option<Pagemap> {
    let pagemap = Pagemap::open(root, target.pid).ok()?;
    // Its number is not another's as long as it lives.
    target.lives().then_some(pagemap)
}

/// What came of the last batches.
#[derive(Debug, Default)]
pub(super) struct Yield {
    window: VecDeque<PageLocations>,
}

impl Yield {
    /// Looks at some of the pages of a batch, spread evenly.
    pub(super) fn sample(
        &mut self,
        root: &Root,
        targets: &[TargetProcess],
        pages: &[SwappedPage],
    ) -> PageLocations {
        let step = pages.len().div_ceil(SAMPLE_PAGES).max(1);
        let some: Vec<SwappedPage> = pages.iter().copied().step_by(step).collect();
        let found = locate(root, targets, &some);
        self.window.push_back(found);
        if self.window.len() > WINDOW {
            self.window.pop_front();
        }
        found
    }

    /// Whether of the pages of the last batches that still exist fewer than `percent` are in
    /// memory.
    pub(super) fn is_below(&self, percent: u32) -> bool {
        let mut sum = PageLocations::default();
        self.window.iter().for_each(|one| sum.add(*one));
        let existing = sum.present + sum.swapped;
        existing >= ENOUGH_PAGES && sum.present * 100 < existing * u64::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_few_pages_and_gone_ones_mean_nothing() {
        let of = |present, swapped, gone| {
            let one = PageLocations { present, swapped, gone };
            Yield { window: VecDeque::from([one]) }
        };
        assert!(of(10, 90, 0).is_below(50));
        assert!(!of(50, 50, 0).is_below(50));
        assert!(!of(0, 63, 1000).is_below(50));
        assert!(!of(100, 0, 1000).is_below(100));
    }

    #[test]
    fn pages_of_this_process_are_found_where_they_are() {
        let root = Root::system();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        // Its parent goes on at the start of the exec; the stack has its name at the end of it.
        let arguments = || std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap();
        while !arguments().starts_with(b"sleep\0") {
            std::thread::yield_now();
        }
        let selection = crate::workingset::targets::Selection::Processes(vec![child.id()]);
        let targets = crate::workingset::targets::find(&root, &selection).unwrap();
        let maps = machine::maps::read(&root, child.id()).unwrap();
        let stack = maps.iter().find(|mapping| mapping.path.as_deref() == Some("[stack]".as_ref()));
        let top = stack.unwrap().range.end - sys::process::page_bytes() as u64;
        let page = |address| SwappedPage { target: 0, area: 0, slot: 1, address };
        let pages = [page(top), page(0), page(1 << 20)];
        let before = locate(&root, &targets, &pages);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((before.present, before.swapped, before.gone), (1, 0, 2));
        assert_eq!(locate(&root, &targets, &pages).gone, 3);
    }
}

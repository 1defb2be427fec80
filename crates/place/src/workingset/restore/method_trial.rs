//! Chooses the method: what the person asked for, what the medium demands, or what is faster here.
//!
//! Where seeks cost, one reader gets what the kernel reads around a fault: 8 neighbouring slots,
//! then both the disk and the reader wait for each other. Where neighbouring slots are neighbouring
//! addresses as well, advice gets them in requests of 128 KiB while the reader maps those before.
//! Slots of scattered addresses must not be advised: each would be a request of its own.
//!
//! On flash neither advice nor several readers is always the faster. The first pages are read by
//! each in turns, forth and back so that drift meets all alike, and the rest by the winner. On busy
//! processors it is advice: several readers would be faster there, by taking several shares of
//! them.

use crate::workingset::anonymous::SwappedPage;
use crate::workingset::areas::SwapMedium;
use crate::workingset::remote::{self, PageBatch, PageReader, RestoreMethod};
use crate::workingset::targets::TargetProcess;
use machine::Root;
use machine::demand::{Demand, DemandReader};
use std::os::fd::AsFd;
use sys::clock::now_ns;
use sys::process::{Capability, has_capability};
use sys::process_memory::{self, MemoryAdvice};

/// What is tried.
const CANDIDATES: [RestoreMethod; 3] =
    [RestoreMethod::WillNeed, RestoreMethod::RemoteReaders(4), RestoreMethod::RemoteReaders(8)];
/// Each candidate's two turns.
const TURNS: [usize; 6] = [0, 1, 2, 2, 1, 0];
/// Pages of one turn: 1 MiB takes milliseconds on the slowest flash.
const TURN_PAGES: usize = 256;
/// So many neighbours on average are worth advice on a disk that seeks: twice what one fault reads.
const LONG_RUN_PAGES: usize = 16;
/// A trial must not be most of the work.
const WORTH_A_TRIAL: usize = 2 * TURNS.len() * TURN_PAGES;

/// The reader, or those that are being tried.
#[derive(Debug)]
pub(super) struct ReaderChoice<'a> {
    /// One, once it is decided.
    readers: Vec<PageReader<'a>>,
    /// Time and pages of each, while they are tried.
    costs: Vec<(u64, u64)>,
    turn: usize,
}

impl<'a> ReaderChoice<'a> {
    /// For `pages` pages on `medium`.
    pub(super) fn new(
        root: &Root,
        targets: &'a [TargetProcess],
        wanted: Option<RestoreMethod>,
        medium: SwapMedium,
        pages: &[SwappedPage],
    ) -> Self {
        let may_advise = may_advise();
        let has_long_runs = || pages.len() >= LONG_RUN_PAGES * remote::ranges(pages).count();
        let methods = match (wanted, medium) {
            (Some(method), _) => vec![method],
            (None, SwapMedium::SeeksCost) if may_advise && has_long_runs() => {
                vec![RestoreMethod::WillNeed]
            }
            (None, SwapMedium::SeeksCost | SwapMedium::CompressedRam) => {
                vec![RestoreMethod::RemoteRead]
            }
            (None, SwapMedium::Flash) if !may_advise => vec![RestoreMethod::RemoteReaders(4)],
            (None, SwapMedium::Flash)
                if pages.len() < WORTH_A_TRIAL || demand(root) == Demand::Full =>
            {
                vec![RestoreMethod::WillNeed]
            }
            (None, SwapMedium::Flash) => CANDIDATES.to_vec(),
        };
        Self {
            costs: vec![(0, 0); methods.len()],
            readers: methods.into_iter().map(|method| PageReader::new(targets, method)).collect(),
            turn: 0,
        }
    }

    /// The way that is used, once it is decided.
    pub(super) fn method(&self) -> Option<RestoreMethod> {
        match self.readers.as_slice() {
            [one] => Some(one.method()),
            _ => None,
        }
    }

    /// Reading was refused: from now on the kernel is only advised, if it takes advice from
    /// this process. Whether it does, and had not been so before.
    pub(super) fn fall_back(&mut self, targets: &'a [TargetProcess]) -> bool {
        let changes = self.method() != Some(RestoreMethod::AdviceOnly) && may_advise();
        if changes {
            self.readers = vec![PageReader::new(targets, RestoreMethod::AdviceOnly)];
        }
        changes
    }

    /// The pages behind the front were changed.
    pub(super) fn forget_advice(&mut self) {
        self.readers.iter_mut().for_each(PageReader::forget_advice);
    }

    /// As [`PageReader::batch`].
    pub(super) fn batch(&mut self, pages: &[SwappedPage], until_ns: u64) -> PageBatch {
        if let [one] = self.readers.as_mut_slice() {
            return one.batch(pages, until_ns);
        }
        let candidate = TURNS[self.turn];
        let reader = &mut self.readers[candidate];
        let started_ns = now_ns();
        let batch = reader.batch(&pages[..pages.len().min(TURN_PAGES)], until_ns);
        reader.forget_advice();
        let cost = &mut self.costs[candidate];
        cost.0 += now_ns() - started_ns;
        cost.1 += batch.taken as u64;
        self.turn += 1;
        if self.turn == TURNS.len() {
            let winner = cheapest(&self.costs);
            self.readers = vec![self.readers.swap_remove(winner)];
        }
        batch
    }
}

/// Whether other tasks want the processors; assumed not if the kernel does not report it.
fn demand(root: &Root) -> Demand {
    let reader = DemandReader::open(root);
    let now = reader.ok().and_then(|mut reader| reader.now());
    now.unwrap_or(Demand::None)
}

/// Whether this kernel takes advice for other processes, and from this one.
fn may_advise() -> bool {
    let own = sys::pidfd::open(std::process::id());
    let taken =
        own.and_then(|own| process_memory::advise(own.as_fd(), &[], MemoryAdvice::WillNeed));
    taken.is_ok() && has_capability(Capability::SysNice)
}

/// The index of the least time for a page; one that took no page never wins.
fn cheapest(costs: &[(u64, u64)]) -> usize {
    let for_a_page = |(ns, pages): (u64, u64)| ns.checked_div(pages).unwrap_or(u64::MAX);
    (0..costs.len()).min_by_key(|index| for_a_page(costs[*index])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_time_for_a_page_wins() {
        assert_eq!(cheapest(&[(100, 10), (50, 10), (90, 10)]), 1);
        assert_eq!(cheapest(&[(0, 0), (50, 10)]), 1);
    }

    /// So many pages, each `step` pages behind the one in the slot before.
    fn pages(count: u64, step: u64) -> Vec<SwappedPage> {
        let page_bytes = sys::process::page_bytes() as u64;
        let page =
            |slot| SwappedPage { target: 0, area: 0, slot, address: slot * step * page_bytes };
        (1..=count).map(page).collect()
    }

    #[test]
    fn seeks_are_never_tried_and_a_chosen_method_is_used() {
        let root = Root::system();
        let method = |wanted, medium| {
            let scattered = pages(1 << 14, 3);
            ReaderChoice::new(&root, &[], wanted, medium, &scattered).method()
        };
        assert_eq!(method(None, SwapMedium::SeeksCost), Some(RestoreMethod::RemoteRead));
        let chosen = Some(RestoreMethod::RemoteReaders(3));
        assert_eq!(method(chosen, SwapMedium::SeeksCost), chosen);
        let few = ReaderChoice::new(&root, &[], None, SwapMedium::Flash, &pages(10, 1)).method();
        assert!(few.is_some_and(|method| method != RestoreMethod::RemoteRead));
    }

    #[test]
    fn on_busy_processors_nothing_is_tried() {
        if !may_advise() {
            return testkit::skip("CAP_SYS_NICE");
        }
        let method = |running| {
            let tree = testkit::FakeRoot::bare()
                .file("/proc/loadavg", format!("1.0 1.0 1.0 {running}/99 999\n"))
                .file("/sys/devices/system/cpu/online", "0\n");
            let root = Root::at(tree.path());
            ReaderChoice::new(&root, &[], None, SwapMedium::Flash, &pages(1 << 14, 3)).method()
        };
        assert_eq!((method(1), method(2)), (None, Some(RestoreMethod::WillNeed)));
    }

    #[test]
    fn a_disk_that_seeks_is_advised_only_of_long_runs() {
        if !may_advise() {
            return testkit::skip("CAP_SYS_NICE");
        }
        let method = |pages: &[SwappedPage]| {
            let readers =
                ReaderChoice::new(&Root::system(), &[], None, SwapMedium::SeeksCost, pages);
            readers.method()
        };
        let long = pages(64, 1);
        assert_eq!(method(&long), Some(RestoreMethod::WillNeed));
        let singles = [long, pages(4, 2)].concat();
        assert_eq!(method(&singles), Some(RestoreMethod::RemoteRead));
    }
}

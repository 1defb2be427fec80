//! One bar while it is filled: a whole, and slices that never add up to more or less.
//!
//! Slices come in the order in which they are believed: one that does not fit in what is
//! left is cut to it, and the cut is told as a repair unless rounding explains it. What is
//! left at the end is `unexplained`; nothing gives the rest another name.

use crate::recording::View;
use model::duration::show_ns;
use model::explanation::{Repair, Slice, TimeSlice};
use model::{Evidence, Grade};

/// The part of a time that rounding and the few instants between two readings explain: 1 %.
const ROUNDING_SHARE: u64 = 100;

/// And one tick of the kernel's slowest usual clock (250 Hz), by which two of its clocks
/// may differ whatever the length.
const ROUNDING_NS: u64 = 4_000_000;

/// By how much a time may miss `whole_ns` without being wrong.
pub(super) fn tolerance_ns(whole_ns: u64) -> u64 {
    whole_ns / ROUNDING_SHARE + ROUNDING_NS
}

/// A bar that is being filled.
#[derive(Debug)]
pub(super) struct Bar {
    whole_ns: u64,
    left_ns: u64,
    /// What it is a bar of, for the words of a repair: `the lives of all threads`.
    of: &'static str,
    slices: Vec<Slice>,
    repairs: Vec<Repair>,
}

impl Bar {
    /// An empty bar of this length.
    pub(super) fn new(of: &'static str, whole_ns: u64) -> Self {
        Self { whole_ns, left_ns: whole_ns, of, slices: Vec::new(), repairs: Vec::new() }
    }

    /// The same bar of numbers that were repaired before.
    pub(super) fn repaired(self, repairs: impl IntoIterator<Item = Repair>) -> Self {
        Self { repairs: repairs.into_iter().collect(), ..self }
    }

    /// Adds a slice, as long as it fits.
    pub(super) fn add(&mut self, name: TimeSlice, ns: u64, grade: Grade, evidence: Vec<Evidence>) {
        let fits = ns.min(self.left_ns);
        if ns - fits > tolerance_ns(self.whole_ns) {
            self.repairs.push(Repair {
                text: format!(
                    "{}: {} do not fit in {}, {}; {} were left and are taken instead",
                    name.id(),
                    show_ns(ns as f64),
                    self.of,
                    show_ns(self.whole_ns as f64),
                    show_ns(fits as f64),
                ),
                before_ns: ns,
                after_ns: fits,
            });
        }
        self.left_ns -= fits;
        self.slices.push(Slice { name: name.into(), ns: fits, grade, evidence });
    }

    /// What no slice has taken yet.
    pub(super) fn left_ns(&self) -> u64 {
        self.left_ns
    }

    /// The bar with `unexplained` as its last slice. `whole` says where its length comes from.
    pub(super) fn close(mut self, whole: Evidence) -> FilledBar {
        self.slices.push(Slice {
            name: TimeSlice::Unexplained.into(),
            ns: self.left_ns,
            grade: Grade::Unseen,
            evidence: vec![whole],
        });
        FilledBar { whole_ns: self.whole_ns, slices: self.slices, repairs: self.repairs }
    }
}

/// A bar that is full.
#[derive(Debug)]
pub(super) struct FilledBar {
    pub whole_ns: u64,
    pub slices: Vec<Slice>,
    /// What was impossible before it was filled, then what had to be cut.
    pub repairs: Vec<Repair>,
}

impl FilledBar {
    /// The length of a slice; `None` where the bar has none.
    pub(super) fn slice_ns(&self, name: TimeSlice) -> Option<u64> {
        self.slices.iter().find(|slice| slice.name == name).map(|slice| slice.ns)
    }
}

/// How much those of the counters of time grew that are there.
pub(super) fn times_grown(view: &View, counters: &[&str]) -> Vec<Evidence> {
    let grown = counters.iter().filter_map(|name| {
        let ns = view.growth(name)?;
        Some(Evidence::time(*name, ns, view.source(name)))
    });
    grown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(slices: &[Slice]) -> u64 {
        slices.iter().map(|slice| slice.ns).sum()
    }

    #[test]
    fn what_is_left_is_unexplained() {
        let mut bar = Bar::new("the lives of all threads", 10_000_000_000);
        bar.add(TimeSlice::Run, 4_000_000_000, Grade::Measured, Vec::new());
        let FilledBar { slices, repairs, .. } = bar.close(Evidence::time("life", 10, "x"));
        assert_eq!(slices[1].name, TimeSlice::Unexplained);
        assert_eq!(slices[1].ns, 6_000_000_000);
        assert!(repairs.is_empty());
    }

    #[test]
    fn what_does_not_fit_is_cut_and_reported() {
        let mut bar = Bar::new("the lives of all threads", 10_000_000_000);
        bar.add(TimeSlice::Run, 9_000_000_000, Grade::Measured, Vec::new());
        bar.add(TimeSlice::Queue, u64::MAX, Grade::Measured, Vec::new());
        let FilledBar { slices, repairs, .. } = bar.close(Evidence::time("life", 10, "x"));
        assert_eq!(length(&slices), 10_000_000_000);
        assert_eq!(repairs.len(), 1);
        assert_eq!(repairs[0].before_ns, u64::MAX);
        assert_eq!(repairs[0].after_ns, 1_000_000_000);
    }

    #[test]
    fn rounding_is_cut_in_silence() {
        let mut bar = Bar::new("the lives of all threads", 10_000_000_000);
        bar.add(TimeSlice::Run, 10_090_000_000, Grade::Measured, Vec::new());
        let FilledBar { slices, repairs, .. } = bar.close(Evidence::time("life", 10, "x"));
        assert_eq!(length(&slices), 10_000_000_000);
        assert!(repairs.is_empty());
    }
}

//! The two bars, what is inside of them, and the repairs. docs/accounting.md defines them.
//!
//! [`account`] chooses who is believed, fills the thread bar, then the wall bar, then the
//! parts. Each bar adds up to its whole exactly, whatever numbers a recording holds; what
//! nobody measured is `unexplained`. This judges nothing: that is for the rules.

mod bar;
mod check;
mod late;
mod machine;
mod parts;
pub(super) mod processor_samples;
mod queued;
mod rows;
mod sampled;
mod source;
mod threads;
mod wall;

use super::View;
pub(super) use check::{Difference, RUN_AND_QUEUE};
pub(super) use machine::RUN as PROCESSORS_RUN;
pub(super) use machine::too_much_run_ns as ran_by_events;
use model::explanation::{Bars, OverlappingPart, Repair};
use model::explanation::{TimePart, TimeSlice};
pub use parts::ELAPSED;

/// The time of a recording, accounted for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accounts {
    /// The lives of all threads; for the whole machine the time of all processors.
    pub thread_ns: u64,
    /// The bars.
    pub bars: Bars,
    /// What is inside of them, longest first.
    pub of_which: Vec<OverlappingPart>,
    /// Impossible values.
    pub repairs: Vec<Repair>,
    /// Where two sources that know the same thing differ by more than noise.
    pub differences: Vec<Difference>,
}

impl Accounts {
    /// The length of a slice of the thread bar; 0 if absent.
    #[must_use]
    pub fn thread(&self, name: TimeSlice) -> u64 {
        let slice = self.bars.thread.iter().find(|slice| slice.name == name);
        slice.map_or(0, |slice| slice.ns)
    }

    /// The length of a slice of the wall bar; 0 if absent.
    #[must_use]
    pub fn wall(&self, name: TimeSlice) -> u64 {
        let slice = self.bars.wall.iter().find(|slice| slice.name == name);
        slice.map_or(0, |slice| slice.ns)
    }

    /// An of-which part by name; `None` where it is absent or nothing.
    #[must_use]
    pub fn part(&self, name: TimePart) -> Option<&OverlappingPart> {
        self.of_which.iter().find(|part| part.name == name)
    }
}

/// Accounts for the time of a view.
#[must_use]
pub fn account(view: &View) -> Accounts {
    let sources = source::Sources::of(view);
    let (threads, wall, of_which) = if source::is_machine(view) {
        let bar = machine::processors_bar(view);
        let wall = machine::wall_bar(view, &sources);
        let parts = parts::of_machine(view, &sources, &bar);
        (bar, wall, parts)
    } else {
        let bar = threads::bar(view, &sources);
        let wall = wall::bar(view, &sources, &bar);
        let parts = parts::of_threads(view, &sources, &bar);
        (bar, wall, parts)
    };
    let mut repairs = threads.repairs;
    repairs.extend(wall.repairs);
    Accounts {
        thread_ns: threads.whole_ns,
        bars: Bars { thread: threads.slices, wall: wall.slices },
        of_which,
        repairs,
        differences: check::differences(view, &sources),
    }
}

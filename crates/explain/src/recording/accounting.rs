//! The two bars, what is inside of them, and the repairs. docs/accounting.md defines them.

use super::View;
use model::explanation::{Bars, OfWhich, Repair};

/// The time of a recording, accounted for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accounts {
    /// The lives of all threads.
    pub thread_ns: u64,
    /// The bars.
    pub bars: Bars,
    /// What is inside of them.
    pub of_which: Vec<OfWhich>,
    /// Impossible values.
    pub repairs: Vec<Repair>,
}

impl Accounts {
    /// The length of a slice of the thread bar; 0 where there is none.
    #[must_use]
    pub fn thread(&self, name: &str) -> u64 {
        let slice = self.bars.thread.iter().find(|slice| slice.name == name);
        slice.map_or(0, |slice| slice.ns)
    }

    /// The length of a slice of the wall bar; 0 where there is none.
    #[must_use]
    pub fn wall(&self, name: &str) -> u64 {
        let slice = self.bars.wall.iter().find(|slice| slice.name == name);
        slice.map_or(0, |slice| slice.ns)
    }

    /// An of-which part by name.
    #[must_use]
    pub fn part(&self, name: &str) -> Option<&OfWhich> {
        self.of_which.iter().find(|part| part.name == name)
    }
}

/// Accounts for the time of a view.
#[must_use]
pub fn account(view: &View) -> Accounts {
    let _ = view;
    Accounts::default()
}

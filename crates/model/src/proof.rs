//! The card of a claim: which counters moved between two recordings, and by how much, or
//! that none did. It shows what moved; one pair of runs proves nothing.

use serde::{Deserialize, Serialize};

/// One recording, as a card names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its file.
    pub file: String,
    /// What was recorded, in words.
    pub subject: String,
    /// How long it took.
    pub wall_ns: u64,
}

/// One counter in both recordings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterChange {
    /// The series: `vmstat.workingset_refault_file`; docs/counters.md explains it.
    pub series: String,
    /// Its unit.
    pub unit: String,
    /// The kernel file that it comes from.
    pub source: String,
    /// By how much it grew in the first; `None` where it was not recorded.
    pub first: Option<f64>,
    /// And in the second.
    pub second: Option<f64>,
    /// Whether it moved: by a tenth of the larger, and more than a few.
    pub moved: bool,
    /// Why it is on the card: `asked for`, `the claim says "swap"`, `the time of refaults differs`.
    pub why: String,
}

/// The card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProofCard {
    /// What is claimed, word for word.
    pub claim: String,
    /// The first recording.
    pub first: Run,
    /// The second.
    pub second: Run,
    /// What moved, in a sentence.
    pub verdict: String,
    /// The counters that belong to the claim, those that moved most first.
    pub counters: Vec<CounterChange>,
}

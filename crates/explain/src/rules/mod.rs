//! The rules, one file each, and what they have in common.
//!
//! A rule looks at an [`Observed`] and answers with an [`Outcome`]. Its file holds
//! its thresholds as named constants with their reasons, the struct of its
//! numbers, and how they are told. `docs/findings.md` lists them for the reader.

pub mod cache_size_differs;
mod depth;
pub mod device_flag_at_odds;
pub mod device_read_ahead_at_odds;
pub mod device_scheduler_at_odds;
pub mod device_served_by_host_cache;
mod devices;
pub mod libc_copy_slow;
pub mod memory_backed_lazily;
pub mod memory_goes_cold_again;
pub mod no_swap;
pub mod processor_crowded;
pub mod processor_stolen;
pub mod processor_throttled;
pub mod ram_disk_no_faster;
pub mod result_noisy;
pub mod swap_on_slow_device;
pub mod thp_not_granted;
pub mod thp_off;
pub mod translation_costly;
pub mod volume_limit_bandwidth;
pub mod volume_limit_requests;

use crate::finding::Finding;
use crate::observed::Observed;

/// What one rule says of one survey.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is odd; never empty.
    Found(Vec<Finding>),
    /// It was checked and nothing is odd, or not by more than the error bars.
    Fine,
    /// It could not be checked; what was missing.
    Unchecked(String),
}

/// A rule by its name.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The id of its findings.
    pub id: &'static str,
    /// Judges one survey.
    pub check: fn(&Observed) -> Outcome,
}

macro_rules! rules {
    ($($name:ident),* $(,)?) => {
        [$(Rule { id: $name::ID, check: $name::check }),*]
    };
}

/// Every rule. The order is that of the tiers: processor and memory first.
pub const RULES: [Rule; 20] = rules![
    processor_stolen,
    processor_throttled,
    processor_crowded,
    libc_copy_slow,
    memory_backed_lazily,
    memory_goes_cold_again,
    cache_size_differs,
    translation_costly,
    thp_off,
    thp_not_granted,
    ram_disk_no_faster,
    swap_on_slow_device,
    no_swap,
    volume_limit_bandwidth,
    volume_limit_requests,
    device_served_by_host_cache,
    device_flag_at_odds,
    device_scheduler_at_odds,
    device_read_ahead_at_odds,
    result_noisy,
];

impl Outcome {
    /// One finding.
    pub(crate) fn found(finding: Finding) -> Self {
        Outcome::Found(vec![finding])
    }

    /// Not checked, for this reason.
    pub(crate) fn unchecked(reason: impl Into<String>) -> Self {
        Outcome::Unchecked(reason.into())
    }

    /// What the outcomes of several devices (caches, areas) say together: all
    /// that was found; else fine if any could be checked; else the first reason,
    /// or `none` where there was nothing to check.
    pub(crate) fn of_each(outcomes: impl Iterator<Item = Outcome>, none: &str) -> Self {
        outcomes
            .reduce(|all, one| match (all, one) {
                (Outcome::Found(mut all), Outcome::Found(one)) => {
                    all.extend(one);
                    Outcome::Found(all)
                }
                (Outcome::Found(found), _) | (_, Outcome::Found(found)) => Outcome::Found(found),
                (Outcome::Fine, _) | (_, Outcome::Fine) => Outcome::Fine,
                (unchecked, _) => unchecked,
            })
            .unwrap_or_else(|| Outcome::unchecked(none))
    }
}

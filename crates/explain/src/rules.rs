//! The rules of a survey, one file each, and their table.
//!
//! A rule reads an [`Observed`] and returns its findings. Its file holds its
//! thresholds as named constants with their reasons, and its text.
//! `docs/findings.md` lists the rules for users.

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
mod processor;
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

use crate::finding::RankedFinding;
use crate::observed::Observed;

/// What a rule concludes from one survey: its findings, none if nothing is odd by
/// more than the error bars; or the input that it lacks.
pub type Outcome = Result<Vec<RankedFinding>, String>;

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

/// The findings of all `items` (devices, caches, areas). If none could be checked: the
/// reason of the first, or `if_empty` without any item.
fn check_each<T>(items: &[T], check: impl Fn(&T) -> Outcome, if_empty: &str) -> Outcome {
    let mut found = None;
    let mut unchecked = None;
    for item in items {
        match check(item) {
            Ok(findings) => found.get_or_insert_with(Vec::new).extend(findings),
            Err(reason) => _ = unchecked.get_or_insert(reason),
        }
    }
    found.ok_or_else(|| unchecked.unwrap_or_else(|| if_empty.to_owned()))
}

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
use crate::verdict::{NoFinding, Verdict, Verdicts};

/// What a rule concludes from one survey. It found something only if that is odd by more than the
/// error bars.
pub type SurveyVerdict = Verdict<Vec<RankedFinding>>;

/// A rule by its name.
#[derive(Clone, Copy, Debug)]
pub struct SurveyRule {
    /// The id of its findings.
    pub id: &'static str,
    check: fn(&Observed) -> SurveyVerdict,
}

impl SurveyRule {
    /// Judges one survey; its findings bear the rule's id.
    pub fn judge(&self, observed: &Observed) -> SurveyVerdict {
        let mut found = (self.check)(observed)?;
        for ranked in &mut found {
            self.id.clone_into(&mut ranked.finding.id);
        }
        Ok(found)
    }
}

/// Each rule has the name of its file.
macro_rules! rules {
    ($($name:ident),* $(,)?) => {
        [$(SurveyRule { id: stringify!($name), check: $name::check }),*]
    };
}

/// Every rule. The order is that of the tiers: processor and memory first.
pub const RULES: [SurveyRule; 20] = rules![
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
fn check_each<T>(
    items: &[T],
    check: impl Fn(&T) -> SurveyVerdict,
    if_empty: &str,
) -> SurveyVerdict {
    let verdicts: Verdicts<(), _> = items.iter().map(|item| ((), check(item))).collect();
    let found: Vec<RankedFinding> =
        verdicts.found.into_iter().flat_map(|(_, found)| found).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let is_checked = !verdicts.cleared.is_empty() || !verdicts.nothing.is_empty();
    let unseen = verdicts.unseen.into_iter().next().filter(|_| !is_checked);
    match unseen {
        Some((_, why, remedy)) => Err(NoFinding::Unseen { why, remedy }),
        None if is_checked => Err(NoFinding::Nothing),
        None => Err(if_empty.into()),
    }
}

//! The rules of a survey, one file each, and their table.
//!
//! A rule reads an [`Observed`] and returns its findings. Its file holds its
//! thresholds as named constants with their reasons, and its text.
//! `docs/findings.md` lists the rules for users.

mod cache_size_differs;
mod depth;
mod device_flag_at_odds;
mod device_read_ahead_at_odds;
mod device_scheduler_at_odds;
mod device_served_by_host_cache;
mod devices;
mod libc_copy_slow;
mod memory_backed_lazily;
mod memory_goes_cold_again;
mod no_swap;
mod processor;
mod processor_crowded;
mod processor_stolen;
mod processor_throttled;
mod ram_disk_no_faster;
pub mod result_noisy;
mod swap_on_slow_device;
mod thp_not_granted;
mod thp_off;
mod translation_costly;
mod volume_limit_bandwidth;
mod volume_limit_requests;

use crate::finding::RankedFinding;
use crate::observed::Observed;
use crate::verdict::{NoFinding, Verdict, Verdicts};
use model::probe::DeviceReport;

/// What a rule concludes from one survey. It found something only if that is odd by more than the
/// error bars.
pub type SurveyVerdict = Verdict<Vec<RankedFinding>>;

/// A rule by its name.
#[derive(Clone, Copy, Debug)]
pub struct SurveyRule {
    /// The id of its findings.
    pub id: &'static str,
    check: SurveyCheck,
}

/// What a rule judges.
#[derive(Clone, Copy, Debug)]
enum SurveyCheck {
    Survey(fn(&Observed) -> SurveyVerdict),
    EachDevice(fn(&DeviceReport) -> SurveyVerdict),
}

impl SurveyRule {
    /// Judges one survey; its findings bear the rule's id.
    pub fn judge(&self, observed: &Observed) -> SurveyVerdict {
        let mut found = match self.check {
            SurveyCheck::Survey(check) => check(observed),
            SurveyCheck::EachDevice(check) => {
                check_each(&observed.devices, check, "no device was measured")
            }
        }?;
        for ranked in &mut found {
            self.id.clone_into(&mut ranked.finding.id);
        }
        Ok(found)
    }
}

/// A rule by the name of its file.
macro_rules! rule {
    ($name:ident) => {
        SurveyRule { id: stringify!($name), check: SurveyCheck::Survey($name::check) }
    };
    ($name:ident, each device) => {
        SurveyRule { id: stringify!($name), check: SurveyCheck::EachDevice($name::check) }
    };
}

/// Every rule. The order is that of the tiers: processor and memory first.
pub const RULES: [SurveyRule; 20] = [
    rule!(processor_stolen),
    rule!(processor_throttled),
    rule!(processor_crowded),
    rule!(libc_copy_slow),
    rule!(memory_backed_lazily),
    rule!(memory_goes_cold_again),
    rule!(cache_size_differs),
    rule!(translation_costly),
    rule!(thp_off),
    rule!(thp_not_granted),
    rule!(ram_disk_no_faster),
    rule!(swap_on_slow_device),
    rule!(no_swap),
    rule!(volume_limit_bandwidth, each device),
    rule!(volume_limit_requests, each device),
    rule!(device_served_by_host_cache, each device),
    rule!(device_flag_at_odds, each device),
    rule!(device_scheduler_at_odds, each device),
    rule!(device_read_ahead_at_odds, each device),
    rule!(result_noisy),
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

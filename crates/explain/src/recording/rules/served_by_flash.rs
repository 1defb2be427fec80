//! Proof card: swapped pages were served from a flash device.
//!
//! What moved are the kernel's counts of swapped pages, while the only swap areas are on
//! devices without a head, as far as the kernel knows.

use super::cause::CauseBuilder;
use super::proof::{LEAST_PAGES, before_and_after, has_swapped};
use super::swapped::swapped;
use super::{Rank, Rule, RunView, Verdict};
use crate::wording::{count, list};
use model::Grade;
use model::recording::{DeviceFacts, DeviceKind};

/// The rule.
pub(super) const RULE: Rule = Rule {
    id: "served_by_flash",
    suspect: "flash behind swap",
    within: &["swapping", "memory_limit"],
    rank: Rank::Timed,
    check,
};

fn check(run: &RunView) -> Verdict {
    let facts = run.view.facts();
    let behind = |area: &String| facts.devices.iter().find(|device| holds(device, area));
    let areas: Vec<_> = facts.swaps.iter().map(behind).collect();
    let is_flash =
        |device: &&DeviceFacts| device.kind == DeviceKind::Disk && device.rotational == Some(false);
    if areas.is_empty() || !areas.iter().all(|d| d.as_ref().is_some_and(is_flash)) {
        return Verdict::Silent;
    }
    let Some(swap) = swapped(run) else {
        return Verdict::Silent;
    };
    // Zswap answers before the device does, and is counted among these.
    let before_it = run.grew("vmstat.zswpin").unwrap_or(0);
    let ins = swap.ins.saturating_sub(before_it);
    if ins < LEAST_PAGES || !has_swapped(run) {
        return super::run_view::clear_count(run.grown("vmstat.pswpin"), "pages in");
    }
    let mut evidence = before_and_after(run, "vmstat.pswpin");
    evidence.extend(swap.evidence);
    let claim = format!(
        "Flash ({}) served {} swapped pages and took {}",
        list(&facts.swaps),
        count(ins),
        count(swap.outs),
    );
    // That a device without a head is flash is what the kernel believes.
    CauseBuilder::new(RULE.id, None, Grade::Inferred, claim, evidence).found()
}

/// Whether the area, `/dev/vda2` or `vda2`, is this device or a partition of it.
fn holds(device: &DeviceFacts, area: &str) -> bool {
    let name = area.strip_prefix("/dev/").unwrap_or(area);
    !device.name.is_empty() && super::device::is_part(name, &device.name)
}

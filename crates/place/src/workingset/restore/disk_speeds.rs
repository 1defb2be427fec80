//! The speed of each disk of a plan, measured once by a short trial.
//! A refused trial is a note, and the plan goes without a time.

use super::plan::RestorePlan;
use crate::Result;
use crate::workingset::speed::{self, DiskSpeed, TrialPurpose};
use machine::{Root, swap};

/// The index of the speed of the device that a swap area is on.
pub(super) fn try_area(
    root: &Root,
    area: &swap::Area,
    purpose: TrialPurpose,
    plan: &mut RestorePlan,
) -> Option<usize> {
    let device = area.device?;
    match area.kind.as_str() {
        "file" => {
            try_once(root, device, plan, || speed::of_file(root, device, &area.path, purpose))
        }
        _ => try_device(root, device, purpose, plan),
    }
}

/// The index of the speed of the device with this number.
pub(super) fn try_device(
    root: &Root,
    device: (u32, u32),
    purpose: TrialPurpose,
    plan: &mut RestorePlan,
) -> Option<usize> {
    try_once(root, device, plan, || speed::of_device(root, device, purpose))
}

/// The index of a device's speed, which is measured the first time.
fn try_once(
    root: &Root,
    (major, minor): (u32, u32),
    plan: &mut RestorePlan,
    try_it: impl FnOnce() -> Result<DiskSpeed>,
) -> Option<usize> {
    let name = machine::block::name_of_device(root, major, minor)?;
    let known = plan.speeds.iter().position(|speed| speed.device == name);
    if known.is_some() {
        return known;
    }
    match try_it() {
        Ok(speed) => {
            plan.speeds.push(speed);
            Some(plan.speeds.len() - 1)
        }
        Err(error) => {
            let note = format!("how long it takes is not known: {error}");
            if !plan.notes.contains(&note) {
                plan.notes.push(note);
            }
            None
        }
    }
}

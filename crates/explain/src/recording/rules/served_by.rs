//! Proof cards: swapped pages were kept in and served from compressed RAM, from zswap before the
//! swap device, or from flash. What moved is a counter, with its value before and after.
//!
//! A card blames nobody and has no time of its own.

use super::run_view::RunView;
use super::swapped::swapped;
use super::{RunVerdict, device};
use crate::verdict::{NoFinding, clear_count};
use crate::wording::{count, list};
use model::explanation::Cause;
use model::recording::{DeviceFacts, DeviceKind};
use model::{Evidence, Finding, Grade};

/// Fewer pages are not worth a card. Picked: 4 MiB.
pub(super) const LEAST_PAGES: u64 = 1024;

/// The least faults that waited, for a subject that swapped so many. Picked: what swap reads
/// ahead at a time, eight pages.
const LEAST_WAITS: u64 = LEAST_PAGES / 8;

/// Compressed RAM: what moved are the counters of the zram device itself.
pub(super) fn zram(run: &RunView) -> RunVerdict {
    let of_kind = run.facts().devices.iter().filter(|device| device.kind == DeviceKind::Zram);
    let names = of_kind.map(|device| &device.name);
    // The counter that grew most, among the two places that may have one.
    let counter = |what: &str| {
        let both =
            names.clone().flat_map(|name| ["zram", "disk"].map(|at| format!("{at}.{name}.{what}")));
        both.filter_map(|name| Some((run.growth(&name)?, name))).max_by_key(|(grown, _)| *grown)
    };
    let (Some(reads), Some(writes)) = (counter("reads"), counter("writes")) else {
        return Err(NoFinding::Nothing);
    };
    card(run, "Compressed RAM (zram)", (&reads.1, reads.0), (&writes.1, writes.0))
}

/// Zswap, compressed before the swap device.
pub(super) fn zswap(run: &RunView) -> RunVerdict {
    let (ins, outs) = ("vmstat.zswpin", "vmstat.zswpout");
    let read = run.growth(ins).ok_or(NoFinding::Nothing)?;
    let written = run.growth(outs).unwrap_or(0);
    card(run, "Compressed memory (zswap)", (ins, read), (outs, written))
}

/// A card for so many pages in and out, or the number that says that there were few.
fn card(run: &RunView, server: &str, ins: (&str, u64), outs: (&str, u64)) -> RunVerdict {
    if ins.1.max(outs.1) < LEAST_PAGES || !has_swapped(run) {
        return clear_count(run.grown(ins.0).or_else(|| run.grown(outs.0)), "pages");
    }
    let mut evidence = before_and_after(run, ins.0);
    evidence.extend(before_and_after(run, outs.0));
    if evidence.is_empty() {
        return Err(NoFinding::Nothing);
    }
    let claim = format!("{server} served {} pages and took {}", count(ins.1), count(outs.1));
    Ok(Cause::new(None, Finding::new(Grade::Measured, claim, evidence)))
}

/// Flash: what moved are the kernel's counts of swapped pages, while the only swap areas are on
/// devices without a head, as far as the kernel knows.
pub(super) fn flash(run: &RunView) -> RunVerdict {
    let facts = run.facts();
    let is_on_flash = |area: &String| {
        let behind = facts.devices.iter().find(|device| holds(device, area));
        behind.is_some_and(|device| {
            device.kind == DeviceKind::Disk && device.rotational == Some(false)
        })
    };
    if facts.swaps.is_empty() || !facts.swaps.iter().all(is_on_flash) {
        return Err(NoFinding::Nothing);
    }
    let swap = swapped(run).ok_or(NoFinding::Nothing)?;
    // Zswap answers before the device does, and is counted among these.
    let ins = swap.ins.saturating_sub(run.growth("vmstat.zswpin").unwrap_or(0));
    if ins < LEAST_PAGES || !has_swapped(run) {
        return clear_count(run.grown("vmstat.pswpin"), "pages in");
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
    Ok(Cause::new(None, Finding::new(Grade::Inferred, claim, evidence)))
}

/// The values of a counter before and after.
fn before_and_after(run: &RunView, series: &str) -> Vec<Evidence> {
    let both = [("before", run.at_start(series)), ("after", run.at_end(series))];
    both.into_iter()
        .filter_map(|(when, value)| {
            let name = format!("{series} {when}");
            Some(Evidence { name, ..run.evidence(series, value? as f64) })
        })
        .collect()
}

/// Whether the subject can have had a part in what the whole machine swapped: a task
/// waits for each page that it gets back.
fn has_swapped(run: &RunView) -> bool {
    run.is_machine() || run.major_faults().is_none_or(|faults| faults >= LEAST_WAITS)
}

/// Whether the area, `/dev/vda2` or `vda2`, is this device or a partition of it.
fn holds(device: &DeviceFacts, area: &str) -> bool {
    let name = area.strip_prefix("/dev/").unwrap_or(area);
    !device.name.is_empty() && device::is_part(name, &device.name)
}

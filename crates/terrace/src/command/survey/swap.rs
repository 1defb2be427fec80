//! Swap areas as tiers: what they are, and how fast one page of them can be read.
//!
//! The kernel lets nobody time a swap-in without causing memory pressure, so root
//! reads random pages of the area itself, read-only and past the page cache: the
//! same request to the same device. Others, and areas that hold nothing that
//! could be read, stay unseen with the reason: a file that is only reserved
//! (`fallocate`) answers with zeros and asks no disk.

use machine::Root;
use machine::swap::Area;
use measure::Budget;
use measure::storage::{self, Access, IolatPlan};
use model::Latency;
use model::bytes::Bytes;
use model::probe::SwapArea;
use std::time::Duration;

/// Requests made of one area.
const REQUESTS: u64 = 400;

/// Time for one area.
const TIME: Duration = Duration::from_millis(600);

/// All active swap areas.
pub fn areas(root: &Root, stop: &Budget) -> Vec<SwapArea> {
    machine::swap::areas(root).iter().map(|area| measure(area, root, stop)).collect()
}

fn measure(area: &Area, root: &Root, stop: &Budget) -> SwapArea {
    let path = area.path.display().to_string();
    let disk = area.device.and_then(|(major, minor)| machine::block::of_device(root, major, minor));
    let compressed = path.starts_with("/dev/zram");
    let mut report = SwapArea {
        rotational: disk.as_ref().and_then(|disk| disk.rotational),
        device: disk.map(|disk| disk.name),
        path,
        size_bytes: area.size.0,
        used_bytes: area.used.0,
        compressed,
        ..SwapArea::default()
    };
    if sys::process::effective_uid() != 0 {
        report.reason = Some("only root may read the swap area".to_owned());
    } else if compressed {
        report.reason = Some(
            "a read of compressed RAM costs its decompression, and unused slots cost nothing: not timed"
                .to_owned(),
        );
    } else if sys::file::open_read(std::path::Path::new(&area.path), false)
        .is_ok_and(|file| sys::fiemap::has_unwritten(&file))
    {
        report.reason = Some(
            "the file is only reserved (fallocate): its file system answers reads without the disk"
                .to_owned(),
        );
    } else {
        match random_reads(area, root, stop) {
            Ok(latency) => {
                report.random_read_ns = latency.as_ref().map(|latency| latency.median);
                report.latency_ns = latency;
            }
            Err(error) => report.reason = Some(model::error_chain(&error)),
        }
    }
    report
}

fn random_reads(
    area: &Area,
    root: &Root,
    stop: &Budget,
) -> Result<Option<Latency>, measure::Error> {
    let plan = IolatPlan {
        count: Some(REQUESTS),
        interval: Duration::ZERO,
        request: Bytes(4096),
        access: Access::Direct,
        write: false,
        ..IolatPlan::default()
    };
    let report = storage::iolat(&area.path, &plan, &stop.part(TIME), root)?;
    Ok(report.requests.latency.latency())
}

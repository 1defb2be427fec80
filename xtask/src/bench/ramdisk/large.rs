//! 1 GiB in large files: the rate of a save and of a restore, beside those of `measure seqio` on
//! the same disk.

use std::time::Instant;

use super::{LARGE_BYTES, LARGE_FILES, LIMIT, Scene, make_large};
use crate::bench::Session;
use crate::bench::copy::shell;
use crate::bench::record::{Series, Target};
use crate::bench::report;
use crate::error::Error;

/// Measures the part.
///
/// # Errors
/// When a program is missing or fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let scene = Scene::new(session)?;
    let tree = scene.in_memory("large");
    make_large(&tree, LARGE_FILES)?;
    let bytes = (LARGE_FILES * LARGE_BYTES) as f64;
    let restored = scene.in_memory("restored");
    let mut ours: [Vec<f64>; 2] = Default::default();
    let mut device: [Vec<f64>; 2] = Default::default();
    for round in 0..session.request.alternations {
        eprintln!("1 GiB in large files: {} of {}", round + 1, session.request.alternations);
        shell(&format!("rm -rf '{}' '{restored}'", scene.on_disk("store")))?;
        ours[0].push(bytes / scene.save(&tree)?.0);
        scene.disk.remount()?;
        let store = scene.on_disk("store");
        let line = ["ramdisk", "restore", &restored, "--persist", &store];
        let started = Instant::now();
        report::run(&scene.terrace, &line, LIMIT)?;
        ours[1].push(bytes / started.elapsed().as_secs_f64());
        let line = ["measure", "seqio", &scene.disk.point, "--over", "0", "--budget", "2m"];
        let probed = report::run(&scene.terrace, &line, LIMIT)?;
        device[0].push(report::number(&probed, "/result/durable_bytes_per_s")?);
        let phases = report::list(&probed, "/result/phases")?;
        let read = phases.iter().find(|phase| phase["name"] == "cold_read");
        let cold = read.ok_or_else(|| report::malformed("no phase `cold_read`".to_owned()))?;
        device[1].push(report::number(cold, "/bytes_per_s")?);
    }
    for (at, what) in ["saved", "restored"].into_iter().enumerate() {
        let pair = (Series::new("terrace", &ours[at]), Series::new("measure seqio", &device[at]));
        let row = format!("1 GiB in large files {what}: rate");
        session.record.add_against(&row, "B/s", pair, Some(Target::AtLeast(0.9)))?;
    }
    Ok(())
}

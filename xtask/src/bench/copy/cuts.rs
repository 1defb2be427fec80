//! 200 power cuts during a copy, at moments and with caches drawn by seed: what each leaves is
//! mounted and judged (`xtask::copy_cuts`). The disk is one that this program serves, so a cut
//! takes no machine: the writes of one copy give as many cuts as wanted.

use std::time::{Duration, Instant};

use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::copy_cuts::{CutCopy, CutReport, CutTarget};
use crate::error::Error;

/// All cuts; the targets share them.
const CUTS: usize = 200;
/// Large enough for an offset that is recorded midway, which a cut may tear too.
const LARGE_BYTES: u64 = 8 << 20;
const MOST_NAMED: usize = 20;
const TARGETS: [(&str, CutTarget, u64); 4] = [
    ("a new tree", CutTarget::NewTree, 0),
    ("into a directory that exists", CutTarget::Existing, 0),
    ("a new tree with a large file", CutTarget::NewTree, LARGE_BYTES),
    ("into a directory that exists, with a large file", CutTarget::Existing, LARGE_BYTES),
];

/// Measures the part.
///
/// # Errors
/// Where the disk cannot be made, or the copy fails without a cut.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let failed = |what: String| Error::Failed(format!("power cuts: {what}"));
    let cuts = CUTS / TARGETS.len();
    session.record.program(session.terrace.clone());
    session.record.command("terrace copy --now SOURCE TARGET".to_owned());
    for (seed, (what, target, large_bytes)) in (1..).zip(TARGETS) {
        let started = Instant::now();
        let copy = CutCopy::new(&session.terrace.program, target, large_bytes)
            .map_err(|error| failed(error.to_string()))?;
        let report = copy.run(cuts, seed, false).map_err(failed)?;
        note(session, what, seed, &report, started.elapsed());
        let row = format!("{cuts} power cuts, {what}: faults");
        let faults = [report.faults.len() as f64];
        let target = Some(Target::AtMost(0.0));
        session.record.add_alone(&row, "", Series::new("terrace", &faults), target)?;
    }
    Ok(())
}

/// Says what the cuts met: a run in which none came midway proves nothing.
fn note(session: &mut Session, what: &str, seed: u64, report: &CutReport, took: Duration) {
    let CutReport { cuts, with_cached, with_none, with_some, with_all, resumed, faults } = report;
    session.record.note(format!(
        "{what}, seed {seed}: {cuts} cuts in {:.0} s; {with_cached} with something in the disk's \
         cache; {with_none} left no file with its name, {with_some} some, {with_all} all; the same \
         command used files of the first run {resumed} times",
        took.as_secs_f64()
    ));
    for fault in faults.iter().take(MOST_NAMED) {
        session.record.note(format!("{what}: {fault}"));
    }
}

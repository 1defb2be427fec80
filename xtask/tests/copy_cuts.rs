//! The power fails at 20 moments of `terrace copy`, each with another part of what the disk had in
//! its cache: what has a name is whole, and the same command ends with all of it.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use support::program;
use xtask::copy_cuts::{CutCopy, CutReport, CutTarget};

fn report(target: CutTarget, cuts: usize, seed: u64, ignores_flushes: bool) -> Option<CutReport> {
    let copy = CutCopy::new(&program(), target, 0).unwrap();
    copy.run(cuts, seed, ignores_flushes).map_err(testkit::skip).ok()
}

#[test]
fn after_a_power_cut_at_any_moment_a_new_tree_is_whole_or_absent() {
    let Some(report) = report(CutTarget::NewTree, 10, 1, false) else { return };
    assert!(report.faults.is_empty(), "{report:#?}");
    assert!(report.with_none > 0 && report.with_all > 0 && report.with_some == 0, "{report:?}");
    assert!(report.with_cached > 0, "{report:?}");
}

#[test]
fn after_a_power_cut_at_any_moment_each_file_of_a_directory_is_whole_or_absent() {
    let Some(report) = report(CutTarget::Existing, 10, 2, false) else { return };
    assert!(report.faults.is_empty(), "{report:#?}");
    assert!(report.with_none > 0 && report.with_all > 0, "{report:?}");
}

/// The judge notices a disk that does not do what it says.
#[test]
fn on_a_disk_that_ignores_flushes_done_means_nothing() {
    let Some(report) = report(CutTarget::NewTree, 3, 3, true) else { return };
    assert!(!report.faults.is_empty(), "{report:?}");
}

//! The power fails at 20 moments while SQLite and PostgreSQL on a RAM disk are saved under load:
//! both open what is restored, and lose nothing that was acknowledged before the last save began.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::path::Path;
use support::program;
use xtask::database_cuts::{DatabaseCuts, DatabaseReport};

fn report(cuts: &DatabaseCuts<'_>) -> Option<DatabaseReport> {
    let report = cuts.run().map_err(testkit::skip).ok()?;
    if report.databases.len() < 2 {
        testkit::skip("PostgreSQL for its half");
    }
    Some(report)
}

fn cuts(program: &Path, saves: usize, cuts: usize) -> DatabaseCuts<'_> {
    DatabaseCuts { program, saves, cuts, seed: 1, ignores_flushes: false, freezes: true }
}

#[test]
fn after_a_power_cut_databases_open_with_all_that_was_acknowledged_before_the_last_save() {
    let program = program();
    let Some(report) = report(&cuts(&program, 8, 20)) else { return };
    assert!(report.faults.is_empty(), "{report:#?}");
    assert!(report.with_cached > 0 && report.within_a_save > 0, "{report:?}");
    assert!(report.restored.len() > 3, "{report:?}");
}

/// The judge notices a disk that does not do what it says.
#[test]
fn on_a_disk_that_ignores_flushes_commits_are_missing() {
    let program = program();
    let on_that = DatabaseCuts { ignores_flushes: true, ..cuts(&program, 2, 4) };
    let Some(report) = report(&on_that) else { return };
    assert!(!report.faults.is_empty(), "{report:?}");
}

//! The journal with real processes: holders that are killed, and the real switch of delay
//! accounting, which needs root.
//!
//! Whatever the processes wait for they wait for as long as it takes.
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testkit::{TempDir, is_root, skip};
use undo::{AppliedChange, Journal, JournalEntry, UndoOutcome, list_in, undo_all_in};

/// Where the workload finds journal and setting.
const PLACE: &str = "TERRACE_TEST_UNDO";

fn journal(place: &Path) -> Journal {
    Journal::at(place.join("journal"), vec![place.join("settings")])
}

fn setting(place: &Path) -> PathBuf {
    place.join("settings/switch")
}

fn value(place: &Path) -> String {
    fs::read_to_string(setting(place)).unwrap().trim().to_owned()
}

/// A directory with a setting that is "0".
fn place() -> TempDir {
    let directory = TempDir::new();
    fs::create_dir(directory.path().join("settings")).unwrap();
    fs::write(setting(directory.path()), "0\n").unwrap();
    directory
}

/// A process that holds the setting until it is killed.
struct Holder(Child);

impl Holder {
    fn start(place: &Path) -> Self {
        let ready = place.join("ready");
        let _ = fs::remove_file(&ready);
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "hold_until_killed", "--ignored"])
            .env(PLACE, place)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut holder = Self(child);
        while !ready.exists() {
            let ended = holder.0.try_wait().unwrap();
            assert!(ended.is_none(), "it ended early: {ended:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        holder
    }

    /// SIGKILL, after which nothing of it runs.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The values before and now of the only entry, and its holders.
fn only_entry(place: &Path) -> (String, String, Vec<u32>) {
    match list_in(&journal(place)).unwrap().as_slice() {
        [JournalEntry::Known { change, now, holders }] => {
            (change.before().to_owned(), now.clone().unwrap(), holders.clone())
        }
        entries => panic!("{entries:?}"),
    }
}

#[test]
#[ignore = "a workload of the other tests"]
fn hold_until_killed() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    let _applied = AppliedChange::setting(&journal(&place), &setting(&place), "1").unwrap();
    fs::write(place.join("ready"), "").unwrap();
    // Longer than any test; a parent that dies leaves it to this.
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn what_a_killed_run_left_is_put_back() {
    let directory = place();
    let place = directory.path();
    let holder = Holder::start(place);
    let pid = holder.0.id();
    assert_eq!(value(place), "1");
    assert_eq!(only_entry(place).2, [pid]);
    assert!(
        matches!(&undo_all_in(&journal(place)).unwrap()[0].outcome, UndoOutcome::InUse { by } if *by == [pid])
    );
    holder.kill();
    assert_eq!(only_entry(place), ("0".to_owned(), "1".to_owned(), vec![]));
    let undone = undo_all_in(&journal(place)).unwrap();
    assert!(matches!(undone[0].outcome, UndoOutcome::Restored), "{undone:?}");
    assert_eq!(value(place), "0");
    assert!(undo_all_in(&journal(place)).unwrap().is_empty());
    // Only the lock is left.
    assert_eq!(fs::read_dir(place.join("journal")).unwrap().count(), 1);
}

#[test]
fn the_next_run_adopts_what_a_killed_one_left() {
    let directory = place();
    let place = directory.path();
    Holder::start(place).kill();
    let applied = AppliedChange::setting(&journal(place), &setting(place), "1").unwrap();
    assert!(applied.is_ours());
    let undone = applied.release().unwrap();
    assert!(matches!(undone.outcome, UndoOutcome::Restored), "{undone:?}");
    assert_eq!(value(place), "0");
}

#[test]
fn two_runs_at_once_of_which_one_is_killed() {
    let directory = place();
    let place = directory.path();
    let holder = Holder::start(place);
    let applied = AppliedChange::setting(&journal(place), &setting(place), "1").unwrap();
    let other = Holder::start(place);
    holder.kill();
    let undone = applied.release().unwrap();
    assert!(matches!(&undone.outcome, UndoOutcome::InUse { by } if *by == [other.0.id()]));
    assert_eq!(value(place), "1");
    other.kill();
    undo_all_in(&journal(place)).unwrap();
    assert_eq!(value(place), "0");
}

#[test]
fn a_change_by_another_program_after_a_crash_is_left_alone() {
    let directory = place();
    let place = directory.path();
    Holder::start(place).kill();
    fs::write(setting(place), "2\n").unwrap();
    let undone = undo_all_in(&journal(place)).unwrap();
    assert!(matches!(&undone[0].outcome, UndoOutcome::ChangedSince { now } if now == "2"));
    assert_eq!(value(place), "2");
    assert!(list_in(&journal(place)).unwrap().is_empty());
}

#[test]
fn the_switch_of_delay_accounting() {
    if !is_root() {
        return skip("root");
    }
    let switch = "/proc/sys/kernel/task_delayacct";
    if !Path::new(switch).exists() {
        return skip("kernel.task_delayacct");
    }
    let applied = match AppliedChange::delay_accounting() {
        Ok(applied) => applied,
        // A container may have it read-only.
        Err(error) => return skip(error),
    };
    assert_eq!(fs::read_to_string(switch).unwrap().trim(), "1");
    // Others on this machine may rely on it too, so only what became of our part is judged.
    if let Some(undone) = applied.release() {
        let known = matches!(undone.outcome, UndoOutcome::Restored | UndoOutcome::InUse { .. });
        assert!(known, "{undone:?}");
    }
}

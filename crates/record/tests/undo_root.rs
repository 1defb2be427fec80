//! The journal with real processes: holders that are killed, and the real switch of delay
//! accounting, which needs root.
//!
//! Whatever the processes wait for they wait for as long as it takes.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod captured;

use captured::Killed;
use record::undo::{Applied, Journal, Outcome, all_in, list_in};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testkit::{TempDir, is_root, skip};

/// Where the workload finds journal and setting.
const PLACE: &str = "TERRACE_TEST_UNDO";

fn journal(place: &Path) -> Journal {
    Journal::at(place.join("journal"), vec![place.join("settings")])
}

fn setting(place: &Path) -> PathBuf {
    place.join("settings/switch")
}

fn value(place: &Path) -> String {
    fs::read_to_string(setting(place))
        .unwrap()
        .trim()
        .to_owned()
}

/// A directory with a setting that is "0".
fn place() -> TempDir {
    let directory = TempDir::new();
    fs::create_dir(directory.path().join("settings")).unwrap();
    fs::write(setting(directory.path()), "0\n").unwrap();
    directory
}

/// A process that holds the setting until it is killed.
fn held(place: &Path) -> Killed {
    let ready = place.join("ready");
    let _ = fs::remove_file(&ready);
    let mut holder = Killed::start(captured::again("hold_until_killed").env(PLACE, place));
    holder.until(|| ready.exists());
    holder
}

#[test]
#[ignore = "a workload of the other tests"]
fn hold_until_killed() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    let _applied = Applied::setting(&journal(&place), &setting(&place), "1").unwrap();
    fs::write(place.join("ready"), "").unwrap();
    // Longer than any test; a parent that dies leaves it to this.
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn what_a_killed_run_left_is_put_back() {
    let place = place();
    let place = place.path();
    let holder = held(place);
    let pid = holder.id();
    assert_eq!(value(place), "1");
    let entries = list_in(&journal(place)).unwrap();
    assert_eq!(entries[0].holders, [pid]);
    assert!(
        matches!(&all_in(&journal(place)).unwrap()[0].outcome, Outcome::Held { by } if *by == [pid])
    );
    holder.kill();
    let entries = list_in(&journal(place)).unwrap();
    assert_eq!(entries[0].holders, [] as [u32; 0]);
    assert_eq!(
        (entries[0].setting.before.as_str(), value(place).as_str()),
        ("0", "1")
    );
    let undone = all_in(&journal(place)).unwrap();
    assert!(matches!(undone[0].outcome, Outcome::Restored), "{undone:?}");
    assert_eq!(value(place), "0");
    assert!(all_in(&journal(place)).unwrap().is_empty());
    // Only the lock is left.
    assert_eq!(fs::read_dir(place.join("journal")).unwrap().count(), 1);
}

#[test]
fn the_next_run_adopts_what_a_killed_one_left() {
    let place = place();
    let place = place.path();
    held(place).kill();
    let applied = Applied::setting(&journal(place), &setting(place), "1").unwrap();
    assert!(applied.is_ours());
    let undone = applied.release().unwrap();
    assert!(matches!(undone.outcome, Outcome::Restored), "{undone:?}");
    assert_eq!(value(place), "0");
}

#[test]
fn two_runs_at_once_of_which_one_is_killed() {
    let place = place();
    let place = place.path();
    let holder = held(place);
    let applied = Applied::setting(&journal(place), &setting(place), "1").unwrap();
    let other = held(place);
    holder.kill();
    let undone = applied.release().unwrap();
    assert!(matches!(&undone.outcome, Outcome::Held { by } if *by == [other.id()]));
    assert_eq!(value(place), "1");
    other.kill();
    all_in(&journal(place)).unwrap();
    assert_eq!(value(place), "0");
}

#[test]
fn a_change_after_a_crash_is_somebody_elses() {
    let place = place();
    let place = place.path();
    held(place).kill();
    fs::write(setting(place), "2\n").unwrap();
    let undone = all_in(&journal(place)).unwrap();
    assert!(matches!(&undone[0].outcome, Outcome::Foreign { now } if now == "2"));
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
    let applied = match Applied::delay_accounting() {
        Ok(applied) => applied,
        // A container may have it read-only.
        Err(error) => return skip(error),
    };
    assert_eq!(fs::read_to_string(switch).unwrap().trim(), "1");
    // Others on this machine may rely on it too, so only what became of our part is judged.
    if let Some(undone) = applied.release() {
        let known = matches!(undone.outcome, Outcome::Restored | Outcome::Held { .. });
        assert!(known, "{undone:?}");
    }
}

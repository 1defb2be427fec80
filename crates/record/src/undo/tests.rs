//! The journal over a file that plays a setting: holders, foreign changes, damage. Runs that
//! are killed are in the tests of the crate.

use super::*;
use std::fs;
use testkit::TempDir;

struct Fake {
    _directory: TempDir,
    journal: Journal,
    setting: PathBuf,
    entry: PathBuf,
}

/// A setting that is "0" and an empty journal.
fn fake() -> Fake {
    let directory = TempDir::new();
    let root = directory.path().join("settings");
    fs::create_dir(&root).unwrap();
    let setting = root.join("switch");
    fs::write(&setting, "0\n").unwrap();
    let journal = Journal::at(directory.path().join("journal"), vec![root]);
    let name = setting.to_str().unwrap()[1..].replace('/', "%2f");
    let entry = directory.path().join(format!("journal/setting-{name}"));
    Fake {
        _directory: directory,
        journal,
        setting,
        entry,
    }
}

impl Fake {
    fn apply(&self) -> Applied {
        Applied::setting(&self.journal, &self.setting, "1").unwrap()
    }

    fn value(&self) -> String {
        read_value(&self.setting).unwrap()
    }
}

#[test]
fn a_change_lasts_as_long_as_it_is_held() {
    let fake = fake();
    assert!(list_in(&fake.journal).unwrap().is_empty());
    let applied = fake.apply();
    assert!(applied.is_ours());
    assert_eq!(fake.value(), "1");
    let entries = list_in(&fake.journal).unwrap();
    assert_eq!(entries[0].setting.before, "0");
    assert_eq!(entries[0].holders, [std::process::id()]);
    let undone = applied.release().unwrap();
    assert!(matches!(undone.outcome, Outcome::Restored), "{undone:?}");
    assert_eq!(fake.value(), "0");
    assert!(list_in(&fake.journal).unwrap().is_empty());
}

#[test]
fn the_last_of_two_holders_puts_it_back() {
    let fake = fake();
    let (first, second) = (fake.apply(), fake.apply());
    let held = first.release().unwrap();
    assert!(matches!(held.outcome, Outcome::Held { .. }), "{held:?}");
    assert_eq!(fake.value(), "1");
    let all = all_in(&fake.journal).unwrap();
    assert!(matches!(all[0].outcome, Outcome::Held { .. }), "{all:?}");
    drop(second);
    assert_eq!(fake.value(), "0");
}

#[test]
fn what_is_set_already_is_nobodys_to_undo() {
    let fake = fake();
    fs::write(&fake.setting, "1\n").unwrap();
    let applied = fake.apply();
    assert!(!applied.is_ours());
    assert!(applied.release().is_none());
    assert_eq!(fake.value(), "1");
}

#[test]
fn a_change_of_somebody_else_is_left_alone() {
    let fake = fake();
    let applied = fake.apply();
    fs::write(&fake.setting, "2\n").unwrap();
    let undone = applied.release().unwrap();
    assert!(
        matches!(&undone.outcome, Outcome::Foreign { now } if now == "2"),
        "{undone:?}"
    );
    assert_eq!(fake.value(), "2");
    assert!(list_in(&fake.journal).unwrap().is_empty());

    // One that puts it back by hand has done our work.
    let applied = Applied::setting(&fake.journal, &fake.setting, "1").unwrap();
    fs::write(&fake.setting, "2\n").unwrap();
    let undone = applied.release().unwrap();
    assert!(matches!(undone.outcome, Outcome::WasBack), "{undone:?}");
}

#[test]
fn a_damaged_entry_is_one_clear_error_and_nothing_is_lost() {
    let fake = fake();
    let applied = fake.apply();
    let good = fs::read(&fake.entry).unwrap();
    for bad in [
        &b""[..],
        b"{",
        b"{\"version\":9}",
        &good[..good.len() - 2],
        b"\xff",
    ] {
        fs::write(&fake.entry, bad).unwrap();
        let error = list_in(&fake.journal).unwrap_err().to_string();
        assert!(
            error.contains("damaged") && error.contains("setting-"),
            "{error}"
        );
        let refused = Applied::setting(&fake.journal, &fake.setting, "1");
        assert_eq!(refused.unwrap_err().to_string(), error);
        let all = all_in(&fake.journal).unwrap();
        assert!(matches!(all[0].outcome, Outcome::Failed(_)), "{all:?}");
        assert_eq!(fs::read(&fake.entry).unwrap(), bad);
        assert_eq!(fake.value(), "1");
    }
    // Repaired, it is undone as ever.
    fs::write(&fake.entry, good).unwrap();
    drop(applied);
    assert_eq!(fake.value(), "0");
}

#[test]
fn only_settings_are_written_to() {
    let fake = fake();
    let outside = fake.setting.parent().unwrap().with_file_name("outside");
    fs::write(&outside, "0").unwrap();
    let climbing = fake.setting.parent().unwrap().join("../outside");
    for path in [&outside, &climbing] {
        let error = Applied::setting(&fake.journal, path, "1").unwrap_err();
        assert_eq!(error.kind, Kind::Usage);
        assert_eq!(fs::read_to_string(&outside).unwrap(), "0");
    }
}

#[test]
fn a_setting_that_refuses_leaves_no_entry() {
    let fake = fake();
    let absent = fake.setting.with_file_name("absent");
    let error = Applied::setting(&fake.journal, &absent, "1").unwrap_err();
    assert_eq!(error.kind, Kind::Impossible);
    assert!(!absent.exists());
    assert!(list_in(&fake.journal).unwrap().is_empty());
}

#[test]
fn a_journal_that_others_may_write_to_is_not_trusted() {
    use std::os::unix::fs::PermissionsExt;
    let fake = fake();
    drop(fake.apply());
    let directory = fake.entry.parent().unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).unwrap();
    let error = Applied::setting(&fake.journal, &fake.setting, "1").unwrap_err();
    assert!(error.to_string().contains("trust"), "{error}");
    assert_eq!(fake.value(), "0");
}

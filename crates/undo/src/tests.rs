//! The journal over a file in place of a setting: holders, changes by others, damage, entries of
//! other versions. Runs that are killed are in the tests of the crate.

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
    Fake { _directory: directory, journal, setting, entry }
}

impl Fake {
    fn apply(&self) -> AppliedChange {
        AppliedChange::setting(&self.journal, &self.setting, "1").unwrap()
    }

    fn value(&self) -> String {
        change::read_setting(&self.setting).unwrap()
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
    let JournalEntry::Known { change, holders, .. } = &entries[0] else {
        panic!("{entries:?}");
    };
    assert_eq!((change.before(), change.after()), ("0", "1"));
    assert_eq!(*holders, [std::process::id()]);
    let undone = applied.release().unwrap();
    assert!(matches!(undone.outcome, UndoOutcome::Restored), "{undone:?}");
    assert_eq!(fake.value(), "0");
    assert!(list_in(&fake.journal).unwrap().is_empty());
}

#[test]
fn the_last_of_two_holders_puts_it_back() {
    let fake = fake();
    let (first, second) = (fake.apply(), fake.apply());
    let held = first.release().unwrap();
    assert!(matches!(held.outcome, UndoOutcome::InUse { .. }), "{held:?}");
    assert_eq!(fake.value(), "1");
    let all = undo_all_in(&fake.journal).unwrap();
    assert!(matches!(all[0].outcome, UndoOutcome::InUse { .. }), "{all:?}");
    drop(second);
    assert_eq!(fake.value(), "0");
}

#[test]
fn a_value_that_was_there_before_is_not_put_back() {
    let fake = fake();
    fs::write(&fake.setting, "1\n").unwrap();
    let applied = fake.apply();
    assert!(!applied.is_ours());
    assert!(applied.release().is_none());
    assert_eq!(fake.value(), "1");
}

#[test]
fn a_change_by_another_program_is_left_alone() {
    let fake = fake();
    let applied = fake.apply();
    fs::write(&fake.setting, "2\n").unwrap();
    let undone = applied.release().unwrap();
    assert!(
        matches!(&undone.outcome, UndoOutcome::ChangedSince { now } if now == "2"),
        "{undone:?}"
    );
    assert_eq!(fake.value(), "2");
    assert!(list_in(&fake.journal).unwrap().is_empty());

    // Or the old value was set by hand.
    let applied = AppliedChange::setting(&fake.journal, &fake.setting, "1").unwrap();
    fs::write(&fake.setting, "2\n").unwrap();
    let undone = applied.release().unwrap();
    assert!(matches!(undone.outcome, UndoOutcome::AlreadyRestored), "{undone:?}");
}

#[test]
fn a_damaged_entry_is_one_clear_error_and_nothing_is_lost() {
    let fake = fake();
    let applied = fake.apply();
    let good = fs::read(&fake.entry).unwrap();
    for bad in
        [&b""[..], b"{", b"{\"version\":0}", b"{\"version\":1}", &good[..good.len() - 2], b"\xff"]
    {
        fs::write(&fake.entry, bad).unwrap();
        let error = list_in(&fake.journal).unwrap_err().to_string();
        assert!(error.contains("damaged") && error.contains("setting-"), "{error}");
        let refused = AppliedChange::setting(&fake.journal, &fake.setting, "1");
        assert_eq!(refused.unwrap_err().to_string(), error);
        let all = undo_all_in(&fake.journal).unwrap();
        assert!(matches!(all[0].outcome, UndoOutcome::Failed(_)), "{all:?}");
        assert_eq!(fs::read(&fake.entry).unwrap(), bad);
        assert_eq!(fake.value(), "1");
    }
    // Repaired, it is put back as usual.
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
        let error = AppliedChange::setting(&fake.journal, path, "1").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
        assert_eq!(fs::read_to_string(&outside).unwrap(), "0");
    }
}

#[test]
fn a_setting_that_refuses_leaves_no_entry() {
    let fake = fake();
    let absent = fake.setting.with_file_name("absent");
    let error = AppliedChange::setting(&fake.journal, &absent, "1").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
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
    let error = AppliedChange::setting(&fake.journal, &fake.setting, "1").unwrap_err();
    assert!(error.to_string().contains("trust"), "{error}");
    assert_eq!(fake.value(), "0");
}

#[test]
fn an_entry_that_version_0_1_wrote_is_put_back() {
    let fake = fake();
    drop(fake.apply());
    fs::write(&fake.setting, "1\n").unwrap();
    let path = fake.setting.display();
    let entry = format!(r#"{{"version":1,"path":"{path}","before":"0","after":"1"}}"#);
    fs::write(&fake.entry, &entry).unwrap();
    let reports = undo_all_in(&fake.journal).unwrap();
    assert!(matches!(reports[0].outcome, UndoOutcome::Restored), "{reports:?}");
    assert_eq!(fake.value(), "0");
    // What is written now is what 0.1 reads.
    let _applied = fake.apply();
    assert_eq!(fs::read_to_string(&fake.entry).unwrap(), entry);
}

#[test]
fn an_entry_of_a_newer_version_is_kept_and_reported() {
    let fake = fake();
    drop(fake.apply());
    let mount = fake.entry.with_file_name("mount-mnt%2fram");
    fs::write(&mount, b"\x00 any bytes").unwrap();
    fs::write(&fake.entry, br#"{"version":2,"path":["/"],"more":1}"#).unwrap();
    fs::write(fake.entry.with_file_name("README"), "").unwrap();
    let listed = list_in(&fake.journal).unwrap();
    let newer = |path: &PathBuf| JournalEntry::Newer { path: path.clone() };
    assert_eq!(listed, [newer(&mount), newer(&fake.entry)]);
    let reports = undo_all_in(&fake.journal).unwrap();
    let is_newer = |report: &UndoReport| matches!(report.outcome, UndoOutcome::Newer);
    assert!(reports.len() == 2 && reports.iter().all(is_newer), "{reports:?}");
    assert!(mount.exists() && fake.entry.exists());
    let error = AppliedChange::setting(&fake.journal, &fake.setting, "1").unwrap_err();
    assert!(error.to_string().contains("newer version"), "{error}");
    assert_eq!(fake.value(), "0");
}

/// A run crashed with "1" in place; a run that wants "2" must not take "1" for the old state.
#[test]
fn the_first_state_is_put_back_after_two_values() {
    let fake = fake();
    let first = fake.apply();
    let refused = AppliedChange::setting(&fake.journal, &fake.setting, "2").unwrap_err();
    assert!(refused.to_string().contains("in use by process"), "{refused}");
    assert_eq!(fake.value(), "1");
    let entry = fs::read(&fake.entry).unwrap();
    drop(first);
    fs::write(&fake.entry, entry).unwrap();
    fs::write(&fake.setting, "1\n").unwrap();
    let second = AppliedChange::setting(&fake.journal, &fake.setting, "2").unwrap();
    assert_eq!(fake.value(), "2");
    drop(second);
    assert_eq!(fake.value(), "0");
}

#[test]
fn what_is_gone_is_forgotten() {
    let fake = fake();
    let applied = fake.apply();
    // A control group that is removed, or a device that is pulled out.
    fs::remove_dir_all(fake.setting.parent().unwrap()).unwrap();
    let undone = applied.release().unwrap();
    assert!(matches!(undone.outcome, UndoOutcome::Gone), "{undone:?}");
    assert!(!fake.entry.exists());
    assert!(undo_all_in(&fake.journal).unwrap().is_empty());
}

#[test]
fn a_setting_that_cannot_be_read_for_a_while_is_kept() {
    let fake = fake();
    let applied = fake.apply();
    fs::remove_file(&fake.setting).unwrap();
    let undone = applied.release().unwrap();
    assert!(matches!(undone.outcome, UndoOutcome::Failed(_)), "{undone:?}");
    assert!(fake.entry.exists());
    fs::write(&fake.setting, "1\n").unwrap();
    assert!(matches!(undo_all_in(&fake.journal).unwrap()[0].outcome, UndoOutcome::Restored));
    assert_eq!(fake.value(), "0");
}

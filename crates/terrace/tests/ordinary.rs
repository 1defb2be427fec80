//! An ordinary user watches, marks, explains and exports: everything works with what may be
//! seen, the rest is named, and the bars add up. As root it becomes nobody (`setpriv`).
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use support::{Ran, as_ordinary_user, run, valid_explanation};
use testkit::TempDir;

/// The user and group that tests of root become.
const OTHER_UID: u32 = 65_534;

/// How often a test looks whether something has begun; it ends long before, or never.
const LOOKS: u32 = 3_000;

/// An ordinary user with a directory to work in.
struct User {
    directory: TempDir,
}

impl User {
    /// `None` (with the reason printed) if this process cannot become another user.
    fn new() -> Option<User> {
        as_ordinary_user("--version")?;
        let directory = TempDir::new();
        if testkit::is_root() {
            std::os::unix::fs::chown(directory.path(), Some(OTHER_UID), Some(OTHER_UID)).unwrap();
        }
        Some(User { directory })
    }

    /// `terrace` with these words, in the directory, not started.
    fn command(&self, line: &str) -> Command {
        let mut command = as_ordinary_user(line).unwrap();
        command.current_dir(self.directory.path());
        // Marks go through a socket there, which is then this test's alone.
        command.env("XDG_RUNTIME_DIR", self.directory.path());
        command
    }

    fn terrace(&self, line: &str) -> Ran {
        run(self.command(line))
    }

    /// The JSON of a recording; the bars of a valid one add up to the nanosecond.
    fn explained(&self, file: &str) -> Value {
        valid_explanation(&self.terrace(&format!("explain --json {file}")).done())
    }

    /// A recording in the background, which has begun to write.
    fn recording(&self, line: &str, file: &str) -> Child {
        let mut command = self.command(line);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let begun = (0..LOOKS).any(|_| {
            sleep(Duration::from_millis(20));
            let file = self.directory.join(file).metadata();
            file.is_ok_and(|what| what.len() > 0)
        });
        if !begun {
            child.kill().unwrap();
            panic!("{line}: {:?}", child.wait_with_output());
        }
        child
    }
}

/// What could not be seen, with a reason for each.
fn blind_spots(value: &Value) -> Vec<&str> {
    let unseen = value["unseen"].as_array().unwrap().iter();
    unseen
        .map(|one| {
            assert_ne!(one["why"].as_str().unwrap(), "", "{one}");
            one["what"].as_str().unwrap()
        })
        .collect()
}

#[test]
fn a_command_is_watched_and_what_only_root_sees_is_named() {
    let Some(user) = User::new() else { return };
    let ran = user.terrace("run -o x.trec --json x.json -- sleep 0.3");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.err.starts_with("-- terrace "), "{ran:?}");
    let said = std::fs::read_to_string(user.directory.join("x.json")).unwrap();
    let explained = valid_explanation(&said);
    let blind = blind_spots(&explained);
    for what in ["exits", "own_group", "other_users"] {
        assert!(blind.contains(&what), "{what}: {blind:?}");
    }
    let page = user.terrace("explain --details x.trec").done();
    assert!(page.contains(" Could not be seen (why: `terrace doctor`)\n"), "{page}");
    assert!(page.contains("to see it: sudo"), "{page}");
}

#[test]
fn the_machine_is_recorded_explained_and_exported() {
    let Some(user) = User::new() else { return };
    let said = user.terrace("record --for 1s -o x.trec").done();
    assert!(said.ends_with("Look at it: terrace explain x.trec\n"), "{said}");
    let value = user.explained("x.trec");
    // By construction: it was told to record for so long.
    assert!(value["wall_ns"].as_u64().unwrap() >= 1_000_000_000, "{value}");
    assert!(blind_spots(&value).contains(&"exits"), "{value}");
    let csv = user.terrace("export x.trec --to csv").done();
    assert!(csv.starts_with("time_s,late_ms,") && csv.lines().count() > 2, "{csv}");
    let json = user.terrace("export x.trec --to json").done();
    assert!(serde_json::from_str::<Value>(&json).unwrap()["samples"].is_array());
    assert_eq!(user.terrace("export x.trec --to trec -o y.trec").done(), "");
    let copied = user.explained("y.trec");
    for what in ["bars", "findings", "wall_ns", "watching"] {
        assert_eq!(copied[what], value[what], "{what}");
    }
}

/// Processes of root, of which it may see less; without root the first is its own.
#[test]
fn a_process_is_recorded_whosever_it_is() {
    let Some(user) = User::new() else { return };
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    for (file, pid) in [("any.trec", sleeper.id()), ("init.trec", 1)] {
        let ran = user.terrace(&format!("record --pid {pid} --for 500ms -o {file}"));
        assert!(ran.done().contains("Look at it: "), "{file}");
        let value = user.explained(file);
        assert!(blind_spots(&value).contains(&"other_users"), "{value}");
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn a_mark_reaches_its_own_recording_and_there_must_be_one() {
    let Some(user) = User::new() else { return };
    user.terrace("mark nobody listens").refused(3, "mark");
    let child = user.recording("record --for 60s -o x.trec", "x.trec");
    let said = user.terrace("mark import starts here").done();
    assert!(said.starts_with("marked "), "{said}");
    let ran = support::terminate(child);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let json = user.terrace("export x.trec --to json --no-redact").done();
    assert!(json.contains("import starts here"));
}

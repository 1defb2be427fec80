//! Recorders and other commands killed, ended, stopped and continued at random moments.
//!
//! The command that is watched is never cut short by the recorder's death; after `terrace undo` no
//! process, group, socket, setting or temporary file is left.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use testkit::Random;

use super::judge::{DOCUMENTED, Form};
use super::mutate::pick;
use super::recording::plain;
use super::stage::{
    AttackStage, Held, PATIENCE, ensure, names, need_admin, no_part_left, observe, shown, text,
    wait_until, words,
};
use super::{snapshot, trec};
use crate::process::{Running, signal};

/// The setting that `--apply` switches.
const DELAY_ACCOUNTING: &str = "/proc/sys/kernel/task_delayacct";
/// The latest moment of a signal: a recorder has begun by then, in a debug build.
const MOMENT_MS: u64 = 400;
/// Where control groups are, of either version.
const GROUPS: &str = "/sys/fs/cgroup";

fn setting() -> String {
    std::fs::read_to_string(DELAY_ACCOUNTING).unwrap_or_default()
}

/// A script that says when it began and when it ended.
fn script(mark: &Path) -> String {
    format!("echo begun >{0}; sleep 0.5; echo ended >>{0}", text(mark))
}

/// The processes that run the binary of the stage.
fn alive(stage: &AttackStage) -> Vec<String> {
    let Ok(binary) = std::fs::metadata(&stage.binary) else {
        return Vec::new();
    };
    let runs_it = |pid: &String| {
        let facts = std::fs::metadata(format!("/proc/{pid}/exe"));
        facts.is_ok_and(|facts| (facts.dev(), facts.ino()) == (binary.dev(), binary.ino()))
    };
    names(Path::new("/proc")).into_iter().filter(runs_it).collect()
}

/// The control groups that one of these recorders made.
fn groups(pids: &[u32]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![PathBuf::from(GROUPS)];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            if pids.iter().any(|pid| name.starts_with(&format!("terrace-{pid}-"))) {
                found.push(entry.path());
            }
            directories.push(entry.path());
        }
    }
    found
}

/// After `undo`: no process, group, setting or temporary file is left.
fn nothing_left(stage: &AttackStage, directory: &Path, pids: &[u32], before: &str) -> Held {
    let is_gone = wait_until(PATIENCE, || alive(stage).is_empty());
    ensure(is_gone, || format!("processes left: {:?}", alive(stage)))?;
    observe(stage.terrace(&["undo"]))?;
    // Somebody else may have a recorder that needs the setting for a moment.
    let is_back = wait_until(Duration::from_secs(10), || setting() == before);
    ensure(is_back, || format!("task_delayacct is {:?}, was {before:?}", setting()))?;
    let groups = groups(pids);
    ensure(groups.is_empty(), || format!("groups left: {groups:?}"))?;
    no_part_left(directory)
}

/// `run`, `run --apply`, `record` and `record --keep`, killed at random moments.
pub(super) fn recorders(stage: &AttackStage) -> Held {
    let directory = stage.scratch("kill")?;
    let mut random = Random(stage.seed);
    let before = setting();
    let mut pids = Vec::new();
    let mut begun = 0;
    for round in 0..stage.rounds {
        let [out, mark] =
            [format!("out{round}"), format!("mark{round}")].map(|name| directory.join(name));
        let script = script(&mark);
        let arguments = match round % 4 {
            0 => words(["run", "-q", "-o", text(&out), "--", "sh", "-c", &script]),
            1 | 2 => words(["run", "-q", "--apply", "--", "sh", "-c", &script]),
            _ if random.below(2) == 0 => words(["record", "--apply", "-o", text(&out)]),
            _ => words(["record", "--keep", "20s", "-o", text(&out)]),
        };
        let mut running = Running::silent(stage.terrace(&arguments))?;
        pids.push(running.pid());
        let moment = Duration::from_millis(random.below(MOMENT_MS));
        thread::sleep(moment);
        if random.below(4) == 0 {
            signal(running.pid(), "STOP")?;
            thread::sleep(Duration::from_millis(random.below(200)));
            signal(running.pid(), "CONT")?;
        }
        signal(running.pid(), "KILL")?;
        wait_until(PATIENCE, || !running.is_alive());
        if mark.exists() {
            begun += 1;
            let is_whole =
                || std::fs::read_to_string(&mark).is_ok_and(|text| text == "begun\nended\n");
            ensure(wait_until(PATIENCE, is_whole), || {
                format!("the command was cut short by a kill after {moment:?}")
            })?;
        }
        if out.exists() {
            stage.attack(&words(["explain", text(&out)]), Form::Text)?;
        }
    }
    ensure(begun > 0 || stage.rounds < 4, || {
        "no command had begun: the case tests nothing".to_owned()
    })?;
    nothing_left(stage, &directory, &pids, &before)
}

/// `warm restore --dry-run`, `hog`, `view` and `record`, ended in every way at random moments.
pub(super) fn others(stage: &AttackStage) -> Held {
    let directory = stage.scratch("kill-others")?;
    let recording_path = plain(stage, &directory, "hog_beside")?;
    let recording = text(&recording_path);
    let file = directory.join("file");
    std::fs::write(&file, vec![1; 1 << 20])?;
    let lines = [
        serde_json::json!({"machine": {"at_ns": 1, "cached_bytes": 1, "found_bytes": 1}}),
        snapshot::file(text(&file), &[0, 256])?,
    ];
    let snapshot = directory.join("kill.snap");
    std::fs::write(&snapshot, trec::snapshot(&trec::json_lines(&lines)))?;
    let (out, page) = (directory.join("out.trec"), directory.join("page.html"));
    let mut random = Random(stage.seed);
    let before = setting();
    let mut pids = Vec::new();
    for round in 0..stage.rounds {
        let arguments = match round % 5 {
            0 => words(["warm", "restore", "--dry-run", text(&snapshot)]),
            1 => words(["hog", "--size", "16m", "--count", "2", "--repeat", "50"]),
            2 => words(["view", "--no-browser", recording]),
            3 => words(["record", "--force", "--apply", "--for", "20s", "-o", text(&out)]),
            _ => words(["view", "--html", text(&page), recording]),
        };
        let mut running = Running::silent(stage.terrace(&arguments))?;
        pids.push(running.pid());
        thread::sleep(Duration::from_millis(random.below(MOMENT_MS)));
        let name = *pick(&mut random, &["TERM", "INT", "HUP", "KILL"]);
        signal(running.pid(), "STOP")?;
        signal(running.pid(), "CONT")?;
        signal(running.pid(), name)?;
        let what = shown(&arguments);
        let has_ended = wait_until(PATIENCE, || !running.is_alive());
        ensure(has_ended, || format!("SIG{name} does not end {what}"))?;
        // Before its handlers are there, the signal ends the program as any other.
        let status = running.child.wait()?.code();
        ensure(status.is_none_or(|status| DOCUMENTED.contains(&status)), || {
            format!("SIG{name}: status {status:?}: {what}")
        })?;
    }
    // A page is written beside its place; only a kill leaves that, as everywhere.
    for name in names(&directory).into_iter().filter(|name| name.ends_with(".part")) {
        std::fs::remove_file(directory.join(name))?;
    }
    nothing_left(stage, &directory, &pids, &before)
}

/// L12 e: `undo` removes what a killed recorder left, without another run.
pub(super) fn undo(stage: &AttackStage) -> Held {
    need_admin()?;
    let directory = stage.scratch("undo")?;
    let mark = directory.join("mark");
    let before = setting();
    let arguments = words(["run", "-q", "--apply", "--", "sh", "-c", &script(&mark)]);
    let mut running = Running::silent(stage.terrace(&arguments))?;
    let pid = running.pid();
    ensure(wait_until(PATIENCE, || mark.exists()), || "the command did not begin".to_owned())?;
    signal(pid, "KILL")?;
    wait_until(PATIENCE, || !running.is_alive());
    let is_whole = || std::fs::read_to_string(&mark).is_ok_and(|text| text == "begun\nended\n");
    ensure(wait_until(PATIENCE, is_whole), || "the command was cut short".to_owned())?;
    nothing_left(stage, &directory, &[pid], &before)?;
    let left: Vec<String> = names(Path::new("/run/terrace"))
        .into_iter()
        .filter(|name| name.contains(&pid.to_string()))
        .collect();
    ensure(left.is_empty(), || format!("left in /run/terrace: {left:?}"))
}

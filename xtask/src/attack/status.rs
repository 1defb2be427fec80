//! Attacks on the recorder while a command runs: its status and its verdict must be the command's.
//!
//! The recording is forged or cut, the disk fills up, a limit is reached, signals arrive. The
//! command is never cut short, its status is never another one, and a recorder that can record no
//! more says so.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use testkit::Tmpfs;

use super::judge::within;
use super::recording::plain;
use super::stage::{
    AttackStage, Held, PATIENCE, Stop, ensure, has_status, names, need, need_admin, no_part_left,
    observe, text, wait_until,
};
use crate::process::{Running, signal};

/// The status of every command here: neither Terrace nor a shell gives it by itself.
const STATUS: i32 = 9;

/// M2: a recording of another run is put in the place of the one that is written.
pub(super) fn forged(stage: &AttackStage) -> Held {
    let directory = stage.scratch("forged")?;
    let other = plain(stage, &directory, "fsync_storm")?;
    let out = directory.join("out.trec");
    let script = format!("sleep 0.3; mv {} {}; exit {STATUS}", text(&other), text(&out));
    has_status(&observe(stage.recorded(&[], &out, &script))?, STATUS)
}

/// M2: the recording is cut while it is written.
pub(super) fn cut(stage: &AttackStage) -> Held {
    let directory = stage.scratch("cut")?;
    let out = directory.join("out.trec");
    let script = format!("sleep 0.3; truncate -s 20 {}; sleep 0.3; exit {STATUS}", text(&out));
    has_status(&observe(stage.recorded(&[], &out, &script))?, STATUS)
}

/// M3: SIGXFSZ ended the recorder and left its command, a setting and a group behind.
pub(super) fn file_size_limit(stage: &AttackStage) -> Held {
    need(&["prlimit"])?;
    let directory = stage.scratch("fsize")?;
    let [out, mark, page] = ["out.trec", "mark", "page.html"].map(|name| directory.join(name));
    let wrapper = ["prlimit", "--fsize=8192", "--"];
    let script = format!("sleep 2; echo done >{}; exit {STATUS}", text(&mark));
    let observed = observe(stage.recorded(&wrapper, &out, &script))?;
    has_status(&observed, STATUS)?;
    ensure(mark.exists(), || "the command was cut short".to_owned())?;
    let recording = plain(stage, &directory, "hog_beside")?;
    let observed =
        observe(stage.terrace_under(&wrapper, &["view", "--html", text(&page), text(&recording)]))?;
    ensure(observed.signal().is_none(), || format!("signal {:?} ended view", observed.signal()))?;
    no_part_left(&directory)
}

/// A file system of a few hundred KiB; the guard and its directory.
fn small_disk() -> Result<Tmpfs, Stop> {
    need_admin()?;
    Tmpfs::mount(400 << 10).map_err(Stop::Needs)
}

/// Takes all room that is left.
fn fill(path: &Path) -> io::Result<()> {
    let filled = std::fs::write(path, vec![1; 1 << 20]);
    match filled {
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(()),
        Err(error) => Err(error),
        Ok(()) => Err(io::Error::other("the small disk took all")),
    }
}

/// Starts the binary, of which only the complaints are kept.
fn recorder(stage: &AttackStage, arguments: &[&str]) -> io::Result<Running> {
    let mut command = stage.terrace(arguments);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    Running::start(command)
}

/// M4: `record` on a disk that is full ends at once, with a status that a supervisor sees.
pub(super) fn record_full(stage: &AttackStage) -> Held {
    let disk = small_disk()?;
    let out = disk.path().join("out.trec");
    let arguments = ["record", "--for", "10min", "--rate", "100", "-o", text(&out)];
    let mut running = recorder(stage, &arguments)?;
    ensure(wait_until(PATIENCE, || out.exists()), || "no recording was begun".to_owned())?;
    thread::sleep(Duration::from_millis(500));
    fill(&disk.path().join("fill"))?;
    let observed = running.finish(within(PATIENCE))?;
    ensure(!observed.is_late, || "it lives on, and records nothing any more".to_owned())?;
    has_status(&observed, 1)
}

/// M4: a ring goes on when there is room again.
pub(super) fn ring_full(stage: &AttackStage) -> Held {
    let disk = small_disk()?;
    let (ring, filler) = (disk.path().join("ring"), disk.path().join("fill"));
    let arguments =
        ["record", "--keep", "24s", "--keep-bytes", "256k", "--rate", "100", "-o", text(&ring)];
    let mut running = Running::silent(stage.terrace(&arguments))?;
    ensure(wait_until(PATIENCE, || !names(&ring).is_empty()), || "no ring was begun".to_owned())?;
    thread::sleep(Duration::from_secs(2));
    fill(&filler)?;
    thread::sleep(Duration::from_secs(3));
    std::fs::remove_file(&filler)?;
    // What it has by now, it may have written before the room was freed.
    thread::sleep(Duration::from_secs(1));
    let written = || -> Vec<(String, u64)> {
        let bytes =
            |name: &String| std::fs::metadata(ring.join(name)).map_or(0, |facts| facts.len());
        names(&ring).into_iter().map(|name| (name.clone(), bytes(&name))).collect()
    };
    let before = written();
    let goes_on =
        wait_until(Duration::from_secs(30), || written() != before || !running.is_alive());
    ensure(goes_on, || "it lives on and writes nothing, although there is room again".to_owned())
}

/// L7: a recorder that was stopped did not see; it must not state what it did not see.
pub(super) fn stopped(stage: &AttackStage) -> Held {
    let directory = stage.scratch("stopped")?;
    let (verdict, begun) = (directory.join("verdict.json"), directory.join("begun"));
    let script = format!("touch {}; sleep 1; exit {STATUS}", text(&begun));
    let arguments = ["run", "--json", text(&verdict), "--details", "--", "sh", "-c", &script];
    let mut running = recorder(stage, &arguments)?;
    wait_until(PATIENCE, || begun.exists());
    signal(running.pid(), "STOP")?;
    thread::sleep(Duration::from_secs(4));
    signal(running.pid(), "CONT")?;
    let observed = running.finish(within(PATIENCE))?;
    has_status(&observed, STATUS)?;
    let page = observed.text();
    let says_so = ["stopped", "suspended", "did not run", "not sampled", "gap"]
        .iter()
        .any(|word| page.contains(word));
    let verdict: Value = serde_json::from_slice(&std::fs::read(&verdict)?).unwrap_or_default();
    let wall_ns = largest(&verdict, "wall_ns");
    ensure(says_so || wall_ns.is_some_and(|ns| ns < 3_000_000_000), || {
        let first = page.lines().find(|line| !line.trim().is_empty());
        format!("a command of 1 s, a recorder stopped for 4 s, and nothing said: {first:?}")
    })
}

/// The largest number under this name at any depth.
fn largest(value: &Value, name: &str) -> Option<u64> {
    match value {
        Value::Object(fields) => {
            let own = fields.get(name).and_then(Value::as_u64);
            fields.values().filter_map(|field| largest(field, name)).chain(own).max()
        }
        Value::Array(items) => items.iter().filter_map(|item| largest(item, name)).max(),
        _ => None,
    }
}

/// L12 f: signals that end a process by default neither end the recorder nor change the status.
pub(super) fn signals(stage: &AttackStage) -> Held {
    let directory = stage.scratch("signals")?;
    for name in ["ALRM", "VTALRM", "PROF", "IO", "PIPE", "XCPU", "XFSZ", "URG", "WINCH", "RTMIN"] {
        let begun = directory.join(name);
        let body = format!("touch {}; sleep 0.5; exit {STATUS}", text(&begun));
        // A command that the signal was passed on to may end by it.
        let script = format!("trap : ALRM VTALRM PROF IO PIPE XCPU XFSZ URG WINCH RTMIN; {body}");
        let mut running = recorder(stage, &["run", "-q", "--", "bash", "-c", &script])?;
        wait_until(PATIENCE, || begun.exists());
        signal(running.pid(), name)?;
        let observed = running.finish(within(PATIENCE))?;
        has_status(&observed, STATUS).map_err(|stop| Stop::Failed(format!("SIG{name}: {stop}")))?;
    }
    Ok(())
}

/// L12 g: each control character takes six bytes in JSON: the facts were longer than a chunk may
/// be.
pub(super) fn long_arguments(stage: &AttackStage) -> Held {
    need(&["prlimit"])?;
    // A quarter of the stack is what a command line may take; no word of it more than 128 KiB.
    let script = format!(
        "w=$(head -c 128000 /dev/zero | tr '\\0' '\\001'); i=0; set --; \
         while [ $i -lt 24 ]; do set -- \"$@\" \"$w\"; i=$((i+1)); done; \
         exec {} run -q -- sh -c 'exit {STATUS}' sh \"$@\"",
        text(&stage.binary)
    );
    let mut command = Command::new("prlimit");
    command.args(["--stack=67108864", "--", "sh", "-c", &script]);
    has_status(&observe(command)?, STATUS)
}

//! What naming costs: recorders of the whole machine beside a crowd of processes that this suite
//! makes, at the rates that they offer.
//!
//! Of 300 processes 30 are busy: each works and reads for a moment, fifty times a second. Then many
//! forks, and many threads. `groups`: many control groups with limits.

use std::process::Command;
use std::time::{Duration, Instant};

use super::contender::{self, Contender};
use super::exported;
use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::error::Error;
use crate::process::Running;
use testkit::Cgroup;

const SETTLE: Duration = Duration::from_secs(3);
const WINDOW: Duration = Duration::from_secs(15);
/// A busy one works for so long, and so often.
const WORK: Duration = Duration::from_micros(300);
const PAUSE: Duration = Duration::from_millis(20);

const PEERS: &[&str] = &["atop", "pmlogger", "below"];

/// A crowd: its words, and what a recorder of ours may cost beside it.
const CROWDS: &[(&str, &[&str], f64)] = &[
    ("300 processes, 30 of them busy", &["300", "30", "0", "0"], 0.7),
    ("forks as fast as two processes make them", &["1", "0", "2", "0"], 3.0),
    ("20,000 threads", &["20", "0", "0", "1000"], 3.0),
];

/// Control groups with limits, half of memory and half of processor time; so many of the latter
/// have a process that is stopped by it all the time.
const GROUPS: usize = 1_000;
const STOPPED_GROUPS: usize = 20;
/// Their quota in each period of 100 ms: all of them together leave most of a processor idle.
const QUOTA_US: u64 = 2_000;

/// Measures our recorder and the peers beside each crowd.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    for (label, words, most) in CROWDS {
        beside(session, label, words, *most)?;
    }
    Ok(())
}

/// The same beside groups with limits, where this machine lets us make them, and what the recording
/// has of them.
pub(super) fn measure_groups(session: &mut Session) -> Result<(), Error> {
    let label = "1,000 groups with limits, 20 of them stopped";
    let groups = match groups() {
        Ok(groups) => groups,
        Err(need) => {
            session.record.notes.push(format!("{label}: needs {need}"));
            return Ok(());
        }
    };
    let own = std::env::current_exe().map_err(|error| Error::Failed(error.to_string()))?;
    let member = |group: &Cgroup| {
        let mut command = group.command(&own);
        command.args(["crowd-member", "works", "0"]);
        Running::silent(command).map_err(|error| Error::Failed(error.to_string()))
    };
    let stopped = groups.iter().take(STOPPED_GROUPS);
    let members = stopped.map(member).collect::<Result<Vec<Running>, Error>>()?;
    let file = beside(session, label, &["1", "0", "0", "0"], 3.0)?;
    drop(members);
    let recording = exported::read(&session.terrace, &file)?;
    let last = |name: &str| {
        let missing = || exported::malformed(format!("has no {name}"));
        exported::last(&recording, name).ok_or_else(missing)
    };
    let is_stopped = |name: &&str| {
        let is_of_one = name.starts_with("limited") && !name.starts_with("limited.");
        let grew = || exported::growth(&recording, name).is_some_and(|periods| periods > 0.0);
        is_of_one && name.ends_with(".cpu.throttled_periods") && grew()
    };
    let named = exported::names(&recording).filter(is_stopped).count();
    let lost = last("limited.unwatched")? + last("limited.unreadable")? + last("trace.lost")?;
    let rows = [
        (
            "groups with limits that the recording counts",
            last("limited.groups")?,
            Target::AtLeast(GROUPS as f64),
        ),
        (
            "stopped ones with series of their own",
            named as f64,
            Target::AtLeast(STOPPED_GROUPS as f64),
        ),
        ("groups not looked at or not readable, and events lost", lost, Target::AtMost(0.0)),
    ];
    for (what, value, target) in rows {
        session.record.add_alone(what, "", Series::new("terrace", &[value]), Some(target))?;
    }
    Ok(())
}

fn groups() -> Result<Vec<Cgroup>, String> {
    let make = |number: usize| {
        if number < GROUPS / 2 {
            Cgroup::v1_cpu(QUOTA_US, 100_000)
        } else {
            Cgroup::v1_memory(64 << 20)
        }
    };
    (0..GROUPS).map(make).collect()
}

/// Measures beside one crowd; the file of our last recording.
fn beside(session: &mut Session, label: &str, words: &[&str], most: f64) -> Result<String, Error> {
    let own = std::env::current_exe().map_err(|error| Error::Failed(error.to_string()))?;
    let mut command = Command::new(own);
    command.arg("crowd").args(words);
    let crowd = Running::silent(command).map_err(|error| Error::Failed(error.to_string()))?;
    std::thread::sleep(SETTLE);
    let file = session.directory.file("crowd.trec");
    let words = ["record", "--for", "60s", "--force", "-o", &file];
    let label_of_ours = "terrace record, 10 Hz";
    let mut contenders = vec![Contender::ours(&session.terrace, label_of_ours, &words, Some(most))];
    contenders.extend(contender::peers(session, PEERS)?);
    let what = |name: &str| format!("{name}, beside {label}");
    contender::compare(session, label, &contenders, (SETTLE, WINDOW), what)?;
    let bytes = std::fs::metadata(&file).map_or(0, |file| file.len());
    session.record.notes.push(format!("beside {label}: the last recording has {bytes} bytes"));
    drop(crowd);
    Ok(file)
}

/// What the crowd does: `processes`, of which `busy` work, `forkers` start a program again and
/// again, and each process has `threads` that sleep. Ends when it is killed, and all with it.
pub(crate) fn crowd(processes: u64, busy: u64, forkers: u64, threads: u64) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::Failed(format!("crowd: {error}"));
    let own = std::env::current_exe().map_err(failed)?;
    let mut children = Vec::new();
    let kinds = (1..processes).map(|number| if number <= busy { "busy" } else { "idle" });
    for kind in kinds.chain((0..forkers).map(|_| "forks")) {
        let mut command = Command::new(&own);
        command.args(["crowd-member", kind, &threads.to_string()]);
        children.push(Running::silent(command).map_err(failed)?);
    }
    std::thread::sleep(Duration::from_secs(3600));
    drop(children);
    Ok(())
}

/// Makes this process end when its parent does.
pub(super) fn end_with_parent() -> Result<(), Error> {
    let signal = rustix::process::Signal::KILL;
    let failed = |error: rustix::io::Errno| Error::Failed(format!("crowd: {error}"));
    rustix::process::set_parent_process_death_signal(Some(signal)).map_err(failed)
}

/// One process of a crowd; ends with its parent.
pub(crate) fn member(kind: &str, threads: u64) -> Result<(), Error> {
    end_with_parent()?;
    for _ in 0..threads {
        let builder = std::thread::Builder::new().stack_size(16 << 10);
        let nap = || std::thread::sleep(Duration::from_secs(3600));
        builder.spawn(nap).map_err(|error| Error::Failed(format!("crowd: {error}")))?;
    }
    if kind == "forks" {
        loop {
            // What it starts does nothing; that it starts and ends is the work.
            let _ = Command::new("/bin/true").status();
        }
    }
    if kind == "works" {
        loop {
            std::hint::spin_loop();
        }
    }
    if kind != "busy" {
        std::thread::sleep(Duration::from_secs(3600));
        return Ok(());
    }
    loop {
        let until = Instant::now() + WORK;
        while Instant::now() < until {
            // What is read does not matter; that it is read does.
            let _ = std::fs::read("/proc/self/stat");
        }
        std::thread::sleep(PAUSE);
    }
}

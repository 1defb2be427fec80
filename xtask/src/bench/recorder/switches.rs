//! What watching costs a program that is watched: each of its switches, and its start.
//!
//! The program is this one again: two threads that pass a byte through two pipes, pinned to one
//! processor, so that each pass is two switches; it times itself. Its start is the instant at which
//! it runs its first line, less the instant at which the recorder was started.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{LIMIT, running};
use crate::bench::Session;
use crate::bench::peer::{Peer, Version};
use crate::bench::record::{Series, Target};
use crate::bench::turns::{self, Turn};
use crate::error::Error;
use crate::process::{self, Running};

/// The recorder that does not start the program; it needs a moment to load and to end.
const BESIDE: &str = "offcputime";
const LOADING: Duration = Duration::from_secs(3);
const GRACE: Duration = Duration::from_secs(10);

/// Passes there and back: 200,000 switches.
const PASSES: u64 = 100_000;
/// A start is so short that a turn is the best of a few.
const STARTS: usize = 5;

/// A recorder in front of the program.
struct Watcher {
    label: &'static str,
    program: Option<Peer>,
    args: Vec<String>,
    /// Whether it watches everything from beside, instead of starting the program.
    is_beside: bool,
    /// The most that it may add to a switch, and to a start.
    target: Option<f64>,
}

/// Measures what each recorder adds to a switch.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let watchers = watchers(session)?;
    let own = own_program()?;
    let time = |watcher: &Watcher| -> Result<Vec<f64>, Error> {
        let printed = run(watcher, &own, &["ping-pong", &PASSES.to_string()])?;
        Ok(vec![number(&printed)? / (2 * PASSES) as f64])
    };
    let mut all: Vec<Turn<'_>> =
        watchers.iter().map(|watcher| -> Turn<'_> { Box::new(|| time(watcher)) }).collect();
    let rounds = session.request.alternations;
    let values = turns::rotate("cost of a switch", rounds, &mut all)?;
    drop(all);
    let figures = |index: usize| values[index].first().map_or(&[][..], Vec::as_slice);
    let plain = figures(0);
    for (index, watcher) in watchers.iter().enumerate().skip(1) {
        let added: Vec<f64> =
            figures(index).iter().zip(plain).map(|(with, without)| with - without).collect();
        let name = watcher.program.as_ref().map_or("plain", |peer| peer.name.as_str());
        let what = format!("a switch, added by {}", watcher.label);
        let target = watcher.target.map(Target::AtMost);
        session.record.add_alone(&what, "ns", Series::new(name, &added), target)?;
    }
    starts(session, &watchers[1], &own)
}

/// Measures how long a command waits for its first instruction.
fn starts(session: &mut Session, watcher: &Watcher, own: &str) -> Result<(), Error> {
    let mut values = Vec::new();
    for _ in 0..session.request.alternations {
        let mut best = f64::MAX;
        for _ in 0..STARTS {
            let before_ns = now_ns();
            let printed = run(watcher, own, &["ping-pong", "0"])?;
            best = best.min((number(&printed)? - before_ns) / 1e6);
        }
        values.push(best);
    }
    let series = Series::new("terrace", &values);
    let what = "run, start to first instruction, best of 5";
    session.record.add_alone(what, "ms", series, Some(Target::AtMost(60.0)))
}

fn watchers(session: &mut Session) -> Result<Vec<Watcher>, Error> {
    let Session { request, terrace, directory, record, .. } = session;
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let own = |label, args: &[&str], target| Watcher {
        label,
        program: Some(terrace.clone()),
        args: words(args),
        is_beside: false,
        target,
    };
    let mut all = vec![
        Watcher {
            label: "nothing",
            program: None,
            args: Vec::new(),
            is_beside: false,
            target: None,
        },
        own("run, all events", &["run", "--quiet", "--"], Some(700.0)),
        own("run, no events", &["run", "--quiet", "--trace", "none", "--"], None),
    ];
    let data = directory.file("perf.data");
    let peers: [(&str, &'static str, Vec<&str>); 4] = [
        ("perf", "perf sched record", vec!["sched", "record", "-q", "-o", &data, "--"]),
        ("perf", "perf trace -s", vec!["trace", "-s", "-o", "/dev/null", "--"]),
        ("strace", "strace -f -c", vec!["-f", "-c", "-o", "/dev/null", "--"]),
        (BESIDE, "offcputime, all processes", vec!["60"]),
    ];
    for (name, label, args) in peers {
        let version = if name == BESIDE { Version::Unsaid } else { Version::Option("--version") };
        let Some(peer) = Peer::find_if_any(request, name, version)? else {
            record.note(format!("{name} is not here: left out"));
            continue;
        };
        let is_beside = name == BESIDE;
        let args = words(&args);
        let watcher = Watcher { label, program: Some(peer.clone()), args, is_beside, target: None };
        if let Err(error) = Beside::start(&watcher) {
            record.note(format!("{name}: {error}: left out"));
            continue;
        }
        record.program(peer);
        record.command(if is_beside { label.to_owned() } else { format!("{label} -- ping-pong") });
        all.push(watcher);
    }
    record.command("terrace run --quiet -- ping-pong".to_owned());
    Ok(all)
}

/// A recorder that watches from beside; ends when it is dropped.
struct Beside(Option<Running>);

impl Beside {
    /// Starts it, if it is one, and waits until it watches.
    fn start(watcher: &Watcher) -> Result<Self, Error> {
        let Some(peer) = watcher.program.as_ref().filter(|_| watcher.is_beside) else {
            return Ok(Self(None));
        };
        let mut command = Command::new(&peer.program);
        command.args(&watcher.args);
        let mut running = running::start(&peer.name, command)?;
        std::thread::sleep(LOADING);
        if running.is_alive() {
            return Ok(Self(Some(running)));
        }
        Err(Error::Program { program: peer.name.clone(), what: "ended at once".to_owned() })
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(running) = self.0.take() {
            // How it ends is no part of what it cost.
            let _ = running.end(GRACE);
        }
    }
}

/// Runs this program below or beside the recorder; what it printed.
fn run(watcher: &Watcher, own: &str, words: &[&str]) -> Result<String, Error> {
    let _beside = Beside::start(watcher)?;
    let mut command = match watcher.program.as_ref().filter(|_| !watcher.is_beside) {
        Some(peer) => {
            let mut command = Command::new(&peer.program);
            command.args(&watcher.args).arg(own);
            command
        }
        None => Command::new(own),
    };
    command.args(words).stderr(Stdio::null());
    Ok(process::run(command, LIMIT)?.success()?.stdout)
}

fn own_program() -> Result<String, Error> {
    let path = std::env::current_exe().map_err(|error| Error::Failed(error.to_string()))?;
    Ok(path.display().to_string())
}

fn number(printed: &str) -> Result<f64, Error> {
    let line = printed.lines().find_map(|line| line.strip_prefix("ping-pong: "));
    line.and_then(|number| number.trim().parse().ok())
        .ok_or(Error::Malformed { what: "the time of a ping-pong", why: format!("{printed:?}") })
}

/// The steady clock, in ns: the same for all processes.
fn now_ns() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// What the watched program does: prints the ns that its passes took; without passes, when it
/// began.
pub(crate) fn ping_pong(passes: u64) -> Result<(), Error> {
    let began_ns = now_ns();
    let failed = |error: std::io::Error| Error::Failed(format!("ping-pong: {error}"));
    if passes == 0 {
        println!("ping-pong: {began_ns}");
        return Ok(());
    }
    let mut processors = rustix::thread::CpuSet::new();
    processors.set(0);
    rustix::thread::sched_setaffinity(None, &processors).map_err(|error| failed(error.into()))?;
    let (mut ours, mut there) = std::io::pipe().map_err(failed)?;
    let (mut theirs, mut back) = std::io::pipe().map_err(failed)?;
    let other = std::thread::spawn(move || -> std::io::Result<()> {
        let mut byte = [0];
        for _ in 0..passes {
            ours.read_exact(&mut byte)?;
            back.write_all(&byte)?;
        }
        Ok(())
    });
    let started = Instant::now();
    let mut byte = [0];
    for _ in 0..passes {
        there.write_all(&byte).and_then(|()| theirs.read_exact(&mut byte)).map_err(failed)?;
    }
    let took: Duration = started.elapsed();
    let joined =
        other.join().map_err(|_| Error::Failed("ping-pong: a thread panicked".to_owned()))?;
    joined.map_err(failed)?;
    println!("ping-pong: {}", took.as_nanos());
    Ok(())
}

//! What watching costs a program that is watched: each of its switches, and its start.
//!
//! The program is this one again: two threads that pass a byte through two pipes, pinned to one
//! processor, so that each pass is two switches; it times itself. Its start is the instant at which
//! it runs its first line, less the instant at which the recorder was started.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::LIMIT;
use crate::bench::Session;
use crate::bench::peer::{Peer, Version};
use crate::bench::record::{Series, Target};
use crate::bench::turns::{self, Turn};
use crate::error::Error;
use crate::process;

/// Passes there and back: 200,000 switches.
const PASSES: u64 = 100_000;
/// A start is so short that a turn is the best of a few.
const STARTS: usize = 5;

/// A recorder in front of the program.
struct Watcher {
    label: &'static str,
    program: Option<Peer>,
    args: Vec<String>,
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
        target,
    };
    let mut all = vec![
        Watcher { label: "nothing", program: None, args: Vec::new(), target: None },
        own("run, all events", &["run", "--quiet", "--"], Some(700.0)),
        own("run, no events", &["run", "--quiet", "--trace", "none", "--"], None),
    ];
    let data = directory.file("perf.data");
    let peers: [(&str, &'static str, Vec<&str>); 3] = [
        ("perf", "perf sched record", vec!["sched", "record", "-q", "-o", &data, "--"]),
        ("perf", "perf trace -s", vec!["trace", "-s", "-o", "/dev/null", "--"]),
        ("strace", "strace -f -c", vec!["-f", "-c", "-o", "/dev/null", "--"]),
    ];
    for (name, label, args) in peers {
        match Peer::find_if_any(request, name, Version::Option("--version"))? {
            Some(peer) => {
                if record.programs.iter().all(|known| known.name != peer.name) {
                    record.programs.push(peer.clone());
                }
                record.command(format!("{label} -- ping-pong"));
                all.push(Watcher { label, program: Some(peer), args: words(&args), target: None });
            }
            None => record.notes.push(format!("{name} is not here: left out")),
        }
    }
    record.command("terrace run --quiet -- ping-pong".to_owned());
    Ok(all)
}

/// Runs this program below the recorder; what it printed.
fn run(watcher: &Watcher, own: &str, words: &[&str]) -> Result<String, Error> {
    let mut command = match &watcher.program {
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

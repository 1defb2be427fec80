//! `terrace copy` against `cp -a` and `rsync -a`, until everything is durable.
//!
//! - `large`: 69 files, 2.6 GB, in a group of 2.5 GiB of memory that holds a hot file of 1.5 GiB.
//!   Judged are time, processor time of the machine, what stays of the hot file in the cache, and
//!   what the copy leaves there.
//! - `small`: 100,000 files of 4 KiB to a new file system each time, source cold and cached.
//!
//! The programs take turns. "Durable" is the command and `sync -f` after it; for Terrace, which
//! ends when all is durable, that call too.

mod large;
mod small;

use std::process::Command;
use std::time::{Duration, Instant};

use super::peer::{Peer, Version};
use super::{Measure, Session};
use crate::error::Error;
use crate::process::{self, Limits};

/// A copy that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// The parts, in their order.
pub(super) const PARTS: &[(&str, Measure)] =
    &[("large", large::measure), ("small", small::measure)];

/// The programs, with the words before source and target.
fn copiers(session: &Session) -> Result<Vec<(Peer, &'static [&'static str])>, Error> {
    let mut all: Vec<(Peer, &'static [&'static str])> = vec![(session.terrace.clone(), &["copy"])];
    let version = || Version::Option("--version");
    all.push((Peer::find(&session.request, "cp", version())?, &["-a"]));
    for (name, words) in [("rsync", ["-a", "--whole-file"].as_slice()), ("xcp", &["-r"])] {
        if let Some(peer) = Peer::find_if_any(&session.request, name, version())? {
            all.push((peer, words));
        }
    }
    Ok(all)
}

/// The source as a copier wants it, so that the target becomes its copy: rsync takes the entries of
/// a directory by a slash behind it.
fn source_for(peer: &Peer, source: &str) -> String {
    let slash = if peer.name == "rsync" { "/" } else { "" };
    format!("{source}{slash}")
}

/// Runs a command to its end.
fn run(command: Command) -> Result<(), Error> {
    let name = format!("{command:?}");
    let ended = process::observe(command, Limits { time: LIMIT, memory_bytes: None })
        .map_err(|error| Error::Failed(format!("{name}: {error}")))?;
    if ended.status() == Some(0) {
        return Ok(());
    }
    Err(Error::Failed(format!("{name}: {}", ended.text())))
}

/// Runs a line of the shell.
fn shell(line: &str) -> Result<(), Error> {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    run(command)
}

/// What a line of the shell prints, as a number.
fn number(line: &str) -> Result<f64, Error> {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    let ended = process::observe(command, Limits { time: LIMIT, memory_bytes: None })
        .map_err(|error| Error::Failed(format!("{line}: {error}")))?;
    let text = ended.text();
    let last = text.trim().parse().map_err(|_| Error::Failed(format!("{line}: {text}")))?;
    Ok(last)
}

/// Seconds of a command and of the sync of the file system that holds `target`.
fn durable_seconds(mut command: Command, target: &str) -> Result<f64, Error> {
    command.env("LC_ALL", "C");
    let started = Instant::now();
    run(command)?;
    let mut sync = Command::new("sync");
    sync.args(["-f", target]);
    run(sync)?;
    Ok(started.elapsed().as_secs_f64())
}

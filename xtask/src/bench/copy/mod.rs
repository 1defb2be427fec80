//! `terrace copy` against `cp -a`, `rsync -a` and faster copiers, until everything is durable.
//!
//! - `large`, `cached`: 69 files, 2.6 GB, in a group of 2.5 GiB of memory that holds a hot file of
//!   1.5 GiB, the source cold or cached. Judged are time, also beside a bare loop of requests and
//!   with a log, processor time of the machine, what stays of the hot file in the cache, what the
//!   copy leaves there, and how long the disk waits.
//! - `small-cold`, `small-cached`: 100,000 files of 4 KiB to a new file system each time.
//! - `limited`, `quiet`: a disk of 100 MiB/s: how soon at that rate, how soon quiet, what is shown.
//! - `beside`, `background`: syncs on another disk, reads on the same; `cuts`: after power cuts.
//! - `hdd-*`, `usb-*`, `lab-2008`: modelled disks of a guest, against cp and rsync, as in 2008.
//!
//! Rounds on the host are kept: a part goes on where it was interrupted. "Durable": with `sync -f`.

mod background;
mod beside;
mod cuts;
mod disk;
mod guest;
pub(super) mod image;
mod lab_2008;
mod large;
mod limited;
mod quiet;
mod small;

use std::process::Command;
use std::time::{Duration, Instant};

use super::peer::{Peer, Version};
use super::steps::Steps;
use super::turns::{self, Turn};
use super::{Measure, Session};
use crate::error::Error;
use crate::process::{self, Limits};
use crate::workspace;

/// A copy that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// The parts, in their order.
pub(super) const PARTS: &[(&str, Measure)] = &[
    ("large", large::cold),
    ("cached", large::cached),
    ("small-cold", small::cold),
    ("small-cached", small::cached),
    ("limited", limited::measure),
    ("quiet", quiet::measure),
    ("beside", beside::measure),
    ("background", background::measure),
    ("cuts", cuts::measure),
    ("hdd-across", guest::across),
    ("hdd-within", guest::within),
    ("hdd-scattered", guest::scattered),
    ("usb-vfat", guest::usb_vfat),
    ("usb-exfat", guest::usb_exfat),
    ("usb-ext4", guest::usb_ext4),
    ("lab-2008", lab_2008::measure),
];

/// Depth and KiB of a request of the bare loop: those of Terrace's ring.
const BARE_LOOP: [&str; 2] = ["32", "1024"];

/// A program that copies, and how it is called.
struct Copier {
    peer: Peer,
    /// What its rows are called.
    name: String,
    /// The words before source and target.
    words: Vec<String>,
    /// The words after them.
    after: Vec<String>,
}

impl Copier {
    /// All words. The target becomes the copy of the source: rsync takes the entries of a directory
    /// by a slash behind it.
    fn arguments(&self, source: &str, target: &str) -> Vec<String> {
        let slash = if self.name == "rsync" { "/" } else { "" };
        let both = [format!("{source}{slash}"), target.to_owned()];
        self.words.iter().cloned().chain(both).chain(self.after.iter().cloned()).collect()
    }

    /// Names it in the record.
    fn note(&self, session: &mut Session) {
        session.record.program(self.peer.clone());
        let all = self.arguments("SOURCE", "TARGET");
        let words: Vec<&str> = all.iter().map(String::as_str).collect();
        let shown = session.directory.anonymous(&words);
        session.record.command(self.peer.command_line(&shown));
    }
}

/// Gives each of the programs of a part a turn per round; `figures` are how many a turn gives. What
/// was interrupted goes on with the next round.
fn take_turns(
    session: &mut Session,
    part: &str,
    (what, figures): (&str, usize),
    mut programs: Vec<Turn<'_>>,
) -> Result<Vec<Vec<Vec<f64>>>, Error> {
    let versions: Vec<String> = session.record.programs.iter().map(version_of).collect();
    let parameters = format!("{what}: {}", versions.join(", "));
    let (program, rounds) = (&session.terrace.program, session.request.alternations);
    let name = format!("copy-{part}");
    let figures = figures * programs.len();
    let mut steps = Steps::open(&session.target, &name, program, &parameters, figures)?;
    let all = turns::rotate_kept(what, rounds, &mut programs, &mut steps)?;
    steps.end(&mut session.record, "rounds", rounds);
    Ok(all)
}

fn version_of(peer: &Peer) -> String {
    format!("{} {}", peer.name, peer.version.as_deref().unwrap_or("of no version"))
}

/// Terrace, cp, and those of the others that are here.
fn copiers(session: &mut Session) -> Result<Vec<Copier>, Error> {
    let copier = |peer: Peer, words: &[&str]| Copier {
        name: peer.name.clone(),
        peer,
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        after: Vec::new(),
    };
    let version = || Version::Option("--version");
    let cp = Peer::find(&session.request, "cp", version())?;
    let mut all = vec![copier(session.terrace.clone(), &["copy"]), copier(cp, &["-a"])];
    let others: [(&str, &[&str]); 4] =
        [("rsync", &["-a", "--whole-file"]), ("xcp", &["-r"]), ("fcp", &[]), ("cpz", &[])];
    for (name, words) in others {
        match Peer::find_if_any(&session.request, name, version())? {
            Some(peer) => all.push(copier(peer, words)),
            None => session.record.note(format!("{name}: not installed")),
        }
    }
    Ok(all)
}

/// The barest program that copies by the same requests, built in release mode.
fn bare_loop(session: &Session) -> Result<Copier, Error> {
    let mut build = workspace::cargo(&session.root);
    build.args(["build", "--release", "--locked", "--quiet", "-p", "transfer"]);
    build.args(["--example", "bare_copy"]).arg("--target-dir").arg(&session.target);
    process::run(build, Duration::from_secs(600))?.success()?;
    let peer = Peer {
        name: "bare_copy".to_owned(),
        program: session.target.join("release/examples/bare_copy"),
        version: None,
        environment: Vec::new(),
    };
    let after = BARE_LOOP.map(str::to_owned).to_vec();
    Ok(Copier { peer, name: "bare loop".to_owned(), words: Vec::new(), after })
}

/// Runs a command to its end.
pub(super) fn run(command: Command) -> Result<(), Error> {
    let name = format!("{command:?}");
    let ended = process::observe(command, Limits { time: LIMIT, memory_bytes: None })
        .map_err(|error| Error::Failed(format!("{name}: {error}")))?;
    if ended.status() == Some(0) {
        return Ok(());
    }
    Err(Error::Failed(format!("{name}: {}", ended.text())))
}

/// Runs a line of the shell.
pub(super) fn shell(line: &str) -> Result<(), Error> {
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
pub(super) fn durable_seconds(mut command: Command, target: &str) -> Result<f64, Error> {
    command.env("LC_ALL", "C");
    let started = Instant::now();
    run(command)?;
    let mut sync = Command::new("sync");
    sync.args(["-f", target]);
    run(sync)?;
    Ok(started.elapsed().as_secs_f64())
}

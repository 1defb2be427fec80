//! What recorders cost at rest: ours at 10 and 100 samples a second, those there are at
//! the fastest rate that they offer.

use std::process::Command;
use std::time::Duration;

use super::pcp::{self, Pmcd};
use super::running;
use crate::bench::Session;
use crate::bench::directory::WorkDirectory;
use crate::bench::peer::{Peer, Version};
use crate::bench::record::{Series, Target};
use crate::bench::turns::{self, Turn};
use crate::error::Error;

/// Opening every source is over.
const SETTLE: Duration = Duration::from_secs(3);

/// Long enough that a window holds 200 samples at 10 Hz.
const WINDOW: Duration = Duration::from_secs(20);

/// A command that costs nothing and outlives the window.
const IDLE: &[&str] = &["sleep", "60"];

/// One recorder and how it is started.
struct Contender {
    label: &'static str,
    peer: Peer,
    args: Vec<String>,
    /// Processes that work for it.
    daemons: &'static [&'static str],
    /// The one of them that was started for it, and ends with it.
    _daemon: Option<Pmcd>,
    target: Option<Target>,
}

/// Measures the cost of every recorder there is.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let Session { request, terrace, directory, record, .. } = session;
    let mut contenders = ours(terrace, directory);
    for (name, label, daemons, version) in PEERS {
        match Peer::find_if_any(request, name, *version)? {
            Some(peer) => match daemon(name, directory) {
                Ok(daemon) => {
                    record.programs.push(peer.clone());
                    contenders.push(Contender {
                        label,
                        args: peer_args(name, directory),
                        peer,
                        daemons,
                        _daemon: daemon,
                        target: None,
                    });
                }
                Err(error) => record.notes.push(format!("{name}: {error}: left out")),
            },
            None => record.notes.push(format!("{name} is not here: left out")),
        }
    }
    let mut all: Vec<Turn<'_>> = contenders
        .iter()
        .map(|contender| -> Turn<'_> { Box::new(|| Ok(vec![cost(contender)?])) })
        .collect();
    let values = turns::rotate("cost of recorders", request.alternations, &mut all)?;
    drop(all);
    for (contender, values) in contenders.iter().zip(&values) {
        let args: Vec<&str> = contender.args.iter().map(String::as_str).collect();
        let line = contender.peer.command_line(&args);
        record.commands.push(line.replace(&directory.file(""), ""));
        let values = values.first().map_or(&[][..], Vec::as_slice);
        let series = Series::new(&contender.peer.name, values);
        let what = format!("cost: {}", contender.label);
        record.add_alone(&what, "% of a core", series, contender.target)?;
    }
    Ok(())
}

fn ours(terrace: &Peer, directory: &WorkDirectory) -> Vec<Contender> {
    let row = |label, words: &[&str], most: Option<f64>| Contender {
        label,
        peer: terrace.clone(),
        args: words.iter().map(|word| (*word).to_owned()).collect(),
        daemons: &[],
        _daemon: None,
        target: most.map(Target::AtMost),
    };
    let file = directory.file("cost.trec");
    let run = |rate, trace| {
        let mut words = vec!["run", "--force", "--rate", rate, "--trace", trace, "-o", &file, "--"];
        words.extend(IDLE);
        words
    };
    let sched = "sched,block,vmscan,writeback";
    vec![
        row("run, 10 Hz, no events", &run("10", "none"), Some(0.5)),
        row("run, 10 Hz, events", &run("10", sched), Some(0.5)),
        row("run, 100 Hz, no events", &run("100", "none"), Some(2.5)),
        row(
            "record, whole machine, 10 Hz, no events",
            &["record", "--for", "60s", "--force", "--trace", "none", "-o", &file],
            None,
        ),
    ]
}

/// Name, label, helpers, where its version is said.
type PeerRow = (&'static str, &'static str, &'static [&'static str], Version);

const PEERS: &[PeerRow] = &[
    ("sadc", "sadc -S ALL, 1 Hz", &[], Version::Package("sysstat")),
    ("atop", "atop -w, 1 Hz", &[], Version::Option("-V")),
    ("dool", "dool, 1 Hz", &[], Version::Option("--version")),
    ("pmlogger", "pmlogger with pmcd, 10 Hz", &["pmcd", "pmdalinux"], Version::Package("pcp")),
    ("below", "below record, 1 Hz", &[], Version::Option("--version")),
];

fn daemon(name: &str, directory: &WorkDirectory) -> Result<Option<Pmcd>, Error> {
    match name {
        "pmlogger" => Pmcd::start(directory).map(Some),
        _ => Ok(None),
    }
}

fn peer_args(name: &str, directory: &WorkDirectory) -> Vec<String> {
    let file = directory.file(name);
    let words: Vec<&str> = match name {
        "sadc" => vec!["-S", "ALL", "1", "60", &file],
        "atop" => vec!["-w", &file, "1", "60"],
        "dool" => vec!["--output", &file, "1", "60"],
        "pmlogger" => return pcp::pmlogger_args(directory),
        _ => vec!["record", "--interval-s", "1"],
    };
    words.into_iter().map(str::to_owned).collect()
}

fn cost(contender: &Contender) -> Result<f64, Error> {
    let mut command = Command::new(&contender.peer.program);
    command.args(&contender.args);
    let times = (SETTLE, WINDOW);
    let share = running::core_percent(contender.label, command, contender.daemons, times)?;
    // Zero would be no measurement to a ratio, and is none: the clock has nanoseconds.
    Ok(share.max(1e-6))
}

//! Recorders of the whole machine: how each is started, and what it costs. A peer that is not here,
//! or does not work here, is named in the notes of the record and left out.

use std::fs;
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

/// Name, label, helpers, where its version is said.
type PeerRow = (&'static str, &'static str, &'static [&'static str], Version);

const PEERS: &[PeerRow] = &[
    ("sadc", "sadc -S ALL, 1 Hz", &[], Version::Package("sysstat")),
    ("atop", "atop -w, 1 Hz", &[], Version::Option("-V")),
    ("dool", "dool, 1 Hz", &[], Version::Option("--version")),
    (
        "pmlogger",
        "pmlogger with pmcd, 10 Hz, no processes",
        &["pmcd", "pmdalinux"],
        Version::Package("pcp"),
    ),
    ("below", "below record, 1 Hz", &[], Version::Unsaid),
];

/// One recorder and how it is started.
pub(super) struct Contender {
    label: String,
    peer: Peer,
    args: Vec<String>,
    /// Processes that work for it.
    daemons: &'static [&'static str],
    /// The one of them that was started for it, and ends with it.
    _daemon: Option<Pmcd>,
    target: Option<Target>,
}

impl Contender {
    /// Our own, which may cost so much of a core, in percent.
    pub(super) fn ours(terrace: &Peer, label: &str, words: &[&str], most: Option<f64>) -> Self {
        Self {
            label: label.to_owned(),
            peer: terrace.clone(),
            args: words.iter().map(|word| (*word).to_owned()).collect(),
            daemons: &[],
            _daemon: None,
            target: most.map(Target::AtMost),
        }
    }

    fn cost(&self, times: (Duration, Duration)) -> Result<f64, Error> {
        let mut command = Command::new(&self.peer.program);
        command.args(&self.args);
        let share = running::core_percent(&self.label, command, self.daemons, times)?;
        // Zero would be no measurement to a ratio, and is none: the clock has nanoseconds.
        Ok(share.max(1e-6))
    }
}

/// Those of the peers `wanted` that are here.
pub(super) fn peers(session: &mut Session, wanted: &[&str]) -> Result<Vec<Contender>, Error> {
    let Session { request, directory, record, .. } = session;
    let mut found = Vec::new();
    for (name, label, daemons, version) in PEERS.iter().filter(|row| wanted.contains(&row.0)) {
        let Some(peer) = Peer::find_if_any(request, name, *version)? else {
            record.note(format!("{name} is not here: left out"));
            continue;
        };
        match daemon(name, directory).and_then(|daemon| Ok((daemon, args(name, directory)?))) {
            Ok((daemon, args)) => {
                record.program(peer.clone());
                found.push(Contender {
                    label: (*label).to_owned(),
                    peer,
                    args,
                    daemons,
                    _daemon: daemon,
                    target: None,
                });
            }
            Err(error) => record.note(format!("{name}: {error}: left out")),
        }
    }
    Ok(found)
}

/// What each costs, by turns: a row of the record for each, called `what` with its label.
pub(super) fn compare(
    session: &mut Session,
    title: &str,
    contenders: &[Contender],
    times: (Duration, Duration),
    what: impl Fn(&str) -> String,
) -> Result<(), Error> {
    let mut all: Vec<Turn<'_>> = contenders
        .iter()
        .map(|contender| -> Turn<'_> { Box::new(|| Ok(vec![contender.cost(times)?])) })
        .collect();
    let values = turns::rotate(title, session.request.alternations, &mut all)?;
    drop(all);
    let Session { directory, record, .. } = session;
    for (contender, values) in contenders.iter().zip(&values) {
        let args: Vec<&str> = contender.args.iter().map(String::as_str).collect();
        let line = contender.peer.command_line(&args);
        record.command(line.replace(&directory.file(""), ""));
        let values = values.first().map_or(&[][..], Vec::as_slice);
        let series = Series::new(&contender.peer.name, values);
        record.add_alone(&what(&contender.label), "% of a core", series, contender.target)?;
    }
    Ok(())
}

fn daemon(name: &str, directory: &WorkDirectory) -> Result<Option<Pmcd>, Error> {
    match name {
        "pmlogger" => Pmcd::start(directory).map(Some),
        _ => Ok(None),
    }
}

fn args(name: &str, directory: &WorkDirectory) -> Result<Vec<String>, Error> {
    let file = directory.file(name);
    let words: Vec<&str> = match name {
        "sadc" => vec!["-S", "ALL", "1", "60", &file],
        "atop" => vec!["-w", &file, "1", "60"],
        "dool" => vec!["--output", &file, "1", "60"],
        "pmlogger" => return Ok(pcp::pmlogger_args(directory)),
        _ => {
            let config = below_config(directory)?;
            return Ok(["--config", &config, "record", "--interval-s", "1"]
                .map(str::to_owned)
                .to_vec());
        }
    };
    Ok(words.into_iter().map(str::to_owned).collect())
}

/// A configuration of `below` that writes into the suite's directory; it needs cgroup2.
fn below_config(directory: &WorkDirectory) -> Result<String, Error> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mut groups = fields.filter(|fields| fields.get(2) == Some(&"cgroup2"));
    let Some(root) = groups.find_map(|fields| fields.get(1).copied().map(str::to_owned)) else {
        return Err(Error::Failed("cgroup2 is not mounted".to_owned()));
    };
    let [logs, store] = ["below-log", "below-store"].map(|name| directory.file(name));
    fs::create_dir_all(&logs).map_err(|error| Error::Failed(format!("{logs}: {error}")))?;
    let text = format!("log_dir = '{logs}'\nstore_dir = '{store}'\ncgroup_root = '{root}'\n");
    directory.write("below.conf", text)
}

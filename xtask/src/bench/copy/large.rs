//! 69 files of 2.6 GB in all, cold, in a group of 2.5 GiB that holds a hot file of 1.5 GiB: what
//! a copy costs, and what it costs the others.

use std::fs;
use std::path::Path;

use testkit::{Cgroup, Random};

use super::{copiers, durable_seconds, number, run, shell, source_for};
use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::turns::{self, Turn};
use crate::error::Error;

const FILES: u64 = 69;
const ALL_BYTES: u64 = 2_600_000_000;
const GROUP_BYTES: u64 = 2560 << 20;
const HOT_BYTES: u64 = 1536 << 20;
/// Reads of the hot file, so that all of it is on the active list.
const READS: usize = 3;
/// What one turn gives.
const FIGURES: [&str; 4] = ["durable", "processor time", "hot file kept", "copy left in the cache"];

/// Measures the part.
///
/// # Errors
/// When a program is missing or fails, or the group cannot be made.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let copiers = copiers(session)?;
    let directory = session.directory.name().to_owned();
    let (source, target) = (format!("{directory}/source"), format!("{directory}/target"));
    let hot = format!("{directory}/hot");
    make_source(&source, &hot)?;
    for (peer, words) in &copiers {
        session.record.program(peer.clone());
        let shown: Vec<&str> = words.iter().copied().chain(["SOURCE", "TARGET"]).collect();
        session.record.command(peer.command_line(&shown));
    }
    let terrace = session.terrace.clone();
    let mut programs: Vec<Turn<'_>> = Vec::new();
    for (peer, words) in &copiers {
        let (source, target, hot, terrace) = (&source, &target, &hot, &terrace);
        programs.push(Box::new(move || {
            shell(&format!("rm -rf '{target}'; sync"))?;
            for path in [source, hot] {
                terrace.run(&["warm", "evict", path], super::LIMIT)?;
            }
            let group = Cgroup::v1_memory(GROUP_BYTES).map_err(Error::Failed)?;
            for _ in 0..READS {
                let mut read = group.command("cat");
                read.arg(hot).stdout(std::process::Stdio::null());
                let status = group.spawn(&mut read).and_then(|mut child| child.wait());
                status.map_err(|error| Error::Failed(format!("cat {hot}: {error}")))?;
            }
            let mut command = group.command(&peer.program);
            command.args(*words).args([&source_for(peer, source), target]);
            let busy = busy_seconds()?;
            let seconds = durable_seconds(command, &directory_of(target))?;
            let busy = busy_seconds()? - busy;
            let kept = 100.0 * cached_bytes(hot)? / HOT_BYTES as f64;
            let left = 100.0 * cached_bytes(target)? / ALL_BYTES as f64;
            run_diff(source, target)?;
            Ok(vec![seconds, busy, kept.max(1e-6), left.max(1e-6)])
        }));
    }
    let what = "69 files, 2.6 GB, source cold";
    let all = turns::rotate(what, session.request.alternations, &mut programs)?;
    drop(programs);
    let names: Vec<&str> = copiers.iter().map(|(peer, _)| peer.name.as_str()).collect();
    let Some((ours, theirs)) = all.split_first() else { return Ok(()) };
    for (place, other) in theirs.iter().enumerate() {
        let name = names[place + 1];
        let target = match name {
            "cp" => Some(Target::AtMost(0.55)),
            "rsync" => Some(Target::AtMost(0.5)),
            "xcp" => Some(Target::AtMost(0.85)),
            _ => None,
        };
        let pair = |at: usize| (Series::new("terrace", &ours[at]), Series::new(name, &other[at]));
        let row = |figure: &str| format!("{what}: {figure}, beside {name}");
        session.record.add_against(&row(FIGURES[0]), "s", pair(0), target)?;
        let processor = (name == "cp").then_some(Target::AtMost(0.3));
        session.record.add_against(&row(FIGURES[1]), "s", pair(1), processor)?;
        for at in [2, 3] {
            let what = format!("{what}: {}, {name}", FIGURES[at]);
            session.record.add_alone(&what, "%", Series::new(name, &other[at]), None)?;
        }
    }
    let worst = |values: &[f64], pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick);
    let kept = worst(&ours[2], f64::min).unwrap_or(0.0);
    let left = worst(&ours[3], f64::max).unwrap_or(100.0);
    let row = |figure: &str| format!("{what}: {figure}, worst run");
    let series = |value: f64| Series::new("terrace", &[value]);
    session.record.add_alone(&row(FIGURES[2]), "%", series(kept), Some(Target::AtLeast(99.0)))?;
    session.record.add_alone(&row(FIGURES[3]), "%", series(left), Some(Target::AtMost(1.0)))
}

/// The files, of sizes between a half and one and a half of the mean, and the hot file.
fn make_source(source: &str, hot: &str) -> Result<(), Error> {
    fs::create_dir(source).map_err(Error::io("create", Path::new(source)))?;
    let mut random = Random(2008);
    let mean = ALL_BYTES / FILES;
    let mut left = ALL_BYTES;
    for file in 0..FILES {
        let wanted = if file + 1 == FILES { left } else { mean / 2 + random.below(mean) };
        let bytes = wanted.min(left);
        left -= bytes;
        shell(&format!("head -c {bytes} /dev/urandom > '{source}/file{file}'"))?;
    }
    shell(&format!("head -c {HOT_BYTES} /dev/urandom > '{hot}'; sync"))
}

fn directory_of(path: &str) -> String {
    let parent = Path::new(path).parent().unwrap_or(Path::new("/"));
    parent.display().to_string()
}

/// Seconds that processors of this machine were busy since it started.
fn busy_seconds() -> Result<f64, Error> {
    number("awk '/^cpu /{print ($2+$3+$4+$7+$8)/100}' /proc/stat")
}

/// Bytes of a file, or of all files below a directory, that are in the page cache.
fn cached_bytes(path: &str) -> Result<f64, Error> {
    let list = format!("find '{path}' -type f -exec fincore -b -n -o RES {{}} +");
    number(&format!("{list} | awk '{{sum+=$1}} END {{print sum+0}}'"))
}

/// The copy is compared, so that no program is praised for what it left out.
fn run_diff(source: &str, target: &str) -> Result<(), Error> {
    let mut diff = std::process::Command::new("diff");
    diff.args(["-rq", source, target]);
    run(diff)
}

//! 69 files of 2.6 GB in all in a group of 2.5 GiB that holds a hot file of 1.5 GiB: what a copy
//! costs, and what it costs the others. The source is cold, or cached outside the group.

use std::fs;
use std::path::Path;

use testkit::{Cgroup, Random};

use super::disk::{DiskWatch, WINDOW, idle_windows};
use super::{Copier, bare_loop, copiers, durable_seconds, number, run, shell, take_turns};
use crate::bench::Session;
use crate::bench::peer::Peer;
use crate::bench::record::{Series, Target};
use crate::bench::turns::Turn;
use crate::error::Error;

const FILES: u64 = 69;
const ALL_BYTES: u64 = 2_600_000_000;
const GROUP_BYTES: u64 = 2560 << 20;
const HOT_BYTES: u64 = 1536 << 20;
/// Reads of the hot file, so that all of it is on the active list.
const READS: usize = 3;
/// What one turn gives.
const FIGURES: [&str; 5] = [
    "durable",
    "processor time",
    "hot file kept",
    "copy left in the cache",
    "windows of 100 ms without a write",
];
/// Rows of the cold source that are only this program's.
const WITH_LOG: &str = "terrace with a log";

/// The files of a part, and whether the source is cold.
struct LargeFiles {
    source: String,
    target: String,
    hot: String,
    is_cold: bool,
    terrace: Peer,
}

/// Measures the part with a cold source.
///
/// # Errors
/// When a program is missing or fails, or the group cannot be made.
pub(super) fn cold(session: &mut Session) -> Result<(), Error> {
    let mut copiers = copiers(session)?;
    let log = session.directory.file("log.trec");
    copiers.push(Copier {
        peer: session.terrace.clone(),
        name: WITH_LOG.to_owned(),
        words: vec!["copy".to_owned(), "--log".to_owned(), log],
        after: Vec::new(),
    });
    copiers.push(bare_loop(session)?);
    measure(session, copiers, true)
}

/// Measures the part with a source that is cached outside the group.
///
/// # Errors
/// As [`cold`].
pub(super) fn cached(session: &mut Session) -> Result<(), Error> {
    let copiers = copiers(session)?;
    measure(session, copiers, false)
}

fn measure(session: &mut Session, copiers: Vec<Copier>, is_cold: bool) -> Result<(), Error> {
    let files = LargeFiles {
        source: session.directory.file("source"),
        target: session.directory.file("target"),
        hot: session.directory.file("hot"),
        is_cold,
        terrace: session.terrace.clone(),
    };
    if !Path::new(&files.source).exists() {
        make_source(&files.source, &files.hot)?;
    }
    let mut programs: Vec<Turn<'_>> = Vec::new();
    for copier in &copiers {
        copier.note(session);
        let files = &files;
        programs.push(Box::new(move || files.turn(copier)));
    }
    let what = format!("69 files, 2.6 GB, source {}", if is_cold { "cold" } else { "cached" });
    let part = if is_cold { "large" } else { "cached" };
    let all = take_turns(session, part, (&what, FIGURES.len()), programs)?;
    let Some((ours, theirs)) = all.split_first() else { return Ok(()) };
    for (copier, other) in copiers.iter().skip(1).zip(theirs) {
        add_rows(session, &what, (ours, other), &copier.name, is_cold)?;
    }
    if is_cold { add_own(session, &what, ours) } else { Ok(()) }
}

/// The rows beside another program.
fn add_rows(
    session: &mut Session,
    what: &str,
    (ours, other): (&[Vec<f64>], &[Vec<f64>]),
    name: &str,
    is_cold: bool,
) -> Result<(), Error> {
    let pair = |at: usize| (Series::new("terrace", &ours[at]), Series::new(name, &other[at]));
    let row = |figure: &str| format!("{what}: {figure}, beside {name}");
    if name == WITH_LOG {
        let both = (Series::new(name, &other[0]), Series::new("terrace", &ours[0]));
        let row = format!("{what}: durable with a log at 10 Hz, beside without");
        return session.record.add_against(&row, "s", both, Some(Target::AtMost(1.01)));
    }
    let durable = match (name, is_cold) {
        ("cp", true) => Some(Target::AtMost(0.55)),
        ("rsync", true) => Some(Target::AtMost(0.5)),
        ("xcp", true) => Some(Target::AtMost(0.85)),
        ("bare loop", true) => Some(Target::AtMost(1.1)),
        ("cp", false) => Some(Target::AtMost(1.0)),
        _ => None,
    };
    session.record.add_against(&row(FIGURES[0]), "s", pair(0), durable)?;
    if !is_cold || name == "bare loop" {
        return Ok(());
    }
    let processor = (name == "cp").then_some(Target::AtMost(0.3));
    session.record.add_against(&row(FIGURES[1]), "s", pair(1), processor)?;
    for at in [2, 3, 4] {
        let what = format!("{what}: {}, {name}", FIGURES[at]);
        session.record.add_alone(&what, "%", Series::new(name, &other[at]), None)?;
    }
    Ok(())
}

/// The rows of Terrace alone.
fn add_own(session: &mut Session, what: &str, ours: &[Vec<f64>]) -> Result<(), Error> {
    let worst = |values: &[f64], pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick);
    let kept = worst(&ours[2], f64::min).unwrap_or(0.0);
    let left = worst(&ours[3], f64::max).unwrap_or(100.0);
    let row = |figure: &str| format!("{what}: {figure}, worst run");
    let series = |value: f64| Series::new("terrace", &[value]);
    let record = &mut session.record;
    record.add_alone(&row(FIGURES[2]), "%", series(kept), Some(Target::AtLeast(99.0)))?;
    record.add_alone(&row(FIGURES[3]), "%", series(left), Some(Target::AtMost(1.0)))?;
    let idle = Series::new("terrace", &ours[4]);
    let row = format!("{what}: {}, terrace", FIGURES[4]);
    record.add_alone(&row, "%", idle, Some(Target::AtMost(5.0)))
}

impl LargeFiles {
    /// One copy by one program, from a state that is made anew.
    fn turn(&self, copier: &Copier) -> Result<Vec<f64>, Error> {
        let Self { source, target, hot, .. } = self;
        shell(&format!("rm -rf '{target}'; rm -f '{}'/*.trec; sync", directory_of(target)))?;
        let evicted = if self.is_cold { vec![source, hot] } else { vec![hot] };
        for path in evicted {
            self.terrace.run(&["warm", "evict", path], super::LIMIT)?;
        }
        if !self.is_cold {
            shell(&format!("cat '{source}'/* > /dev/null"))?;
        }
        let group = Cgroup::v1_memory(GROUP_BYTES).map_err(Error::Failed)?;
        for _ in 0..READS {
            let mut read = group.command("cat");
            read.arg(hot).stdout(std::process::Stdio::null());
            let status = group.spawn(&mut read).and_then(|mut child| child.wait());
            status.map_err(|error| Error::Failed(format!("cat {hot}: {error}")))?;
        }
        let mut command = group.command(&copier.peer.program);
        command.args(copier.arguments(source, target));
        let busy = busy_seconds()?;
        let watch = DiskWatch::start(&directory_of(target), WINDOW)?;
        let seconds = durable_seconds(command, &directory_of(target))?;
        let idle = idle_windows(&watch.end());
        let busy = busy_seconds()? - busy;
        let kept = 100.0 * cached_bytes(hot)? / HOT_BYTES as f64;
        let left = 100.0 * cached_bytes(target)? / ALL_BYTES as f64;
        run_diff(source, target)?;
        // A value of 0 has no ratio.
        Ok([seconds, busy, kept, left, idle].map(|value| value.max(1e-6)).to_vec())
    }
}

/// The files, of sizes between a half and one and a half of the mean, and the hot file.
pub(super) fn make_source(source: &str, hot: &str) -> Result<(), Error> {
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
    number("awk '/^cpu /{printf \"%.2f\", ($2+$3+$4+$7+$8)/100}' /proc/stat")
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

//! What the cache brings on this machine: the skewed requests of `warm`, before a modelled hard
//! disk and a modelled stick, whose times are added to those of real processors.

use std::fs;
use std::process::Command;
use std::time::Duration;

use testkit::SlowDisk;

use crate::bench::record::{Series, Target};
use crate::bench::{Session, guest};
use crate::error::Error;
use crate::process;

use super::guest::SCRIPTS;
use super::warm::{FIGURES, FILLED_BLOCKS, WarmRun, script};

const SCRIPT: &str = include_str!("host/gain.sh");
const DISK_BYTES: u64 = 512 << 20;
const STICK_BYTES: u64 = 64 << 20;
/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(600);

/// What is compared: its name, what is before the disk, and how many blocks a fill brings.
const WAYS: [(&str, &str, Option<&str>); 3] = [
    ("terrace", "boost", None),
    ("disk alone", "none", None),
    ("terrace, filled", "boost", Some(FILLED_BLOCKS)),
];
/// Places among them.
const OURS: usize = 0;
const DISK: usize = 1;
const FILLED: usize = 2;

/// Compares the ways, in turns.
///
/// # Errors
/// Without root, FUSE, loop devices and python3.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let rounds = session.request.alternations;
    let mut all = vec![vec![Vec::new(); FIGURES.len()]; WAYS.len()];
    for round in 0..rounds {
        eprintln!("gain: {} of {rounds}", round + 1);
        let mut runs = Vec::new();
        for turn in 0..WAYS.len() {
            let way = (turn + round) % WAYS.len();
            runs.push((way, of_way(session, WAYS[way], round)?));
        }
        runs.sort_by_key(|(way, _)| *way);
        let by_demand = runs[OURS].1.share_of_hits();
        for (way, run) in runs {
            let warm = if way == FILLED { by_demand } else { run.share_of_hits() };
            let figures = run.figures(warm);
            all[way].iter_mut().zip(figures).for_each(|(values, value)| values.push(value));
        }
    }
    compare(session, &all)
}

fn of_way(
    session: &mut Session,
    (_, engine, filled): (&str, &str, Option<&str>),
    round: usize,
) -> Result<WarmRun, Error> {
    let disk = SlowDisk::hdd(DISK_BYTES).map_err(Error::Failed)?;
    let stick = SlowDisk::modelled("usb", STICK_BYTES).map_err(Error::Failed)?;
    // What a run leaves is where a guest leaves it.
    let out = guest::out(session);
    let directory = session.directory.path().to_owned();
    for folder in ["out", "bin", "points"] {
        let _ = fs::remove_dir_all(directory.join(folder));
    }
    fs::create_dir_all(&out).map_err(Error::io("make", &out))?;
    for (name, text) in SCRIPTS {
        let path = directory.join(name);
        fs::write(&path, text).map_err(Error::io("write", &path))?;
    }
    let words = script(engine, filled, round);
    let mut command = Command::new("bash");
    command.args(["-c", SCRIPT, "gain.sh"]).arg(&session.terrace.program).arg(&directory);
    command.args([disk.path(), stick.path()]).args(&words);
    session
        .record
        .command(format!("bash gain.sh terrace DIRECTORY DISK STICK {}", words.join(" ")));
    process::run(command, LIMIT)?.success()?;
    WarmRun::read(session)
}

fn compare(session: &mut Session, all: &[Vec<Vec<f64>>]) -> Result<(), Error> {
    let series = |way: usize, figure: usize| Series::new(WAYS[way].0, &all[way][figure]);
    let what = |figure: usize| format!("{}, on this machine", FIGURES[figure]);
    let record = &mut session.record;
    let fewest = (series(OURS, 0), Series::new("fewest possible", &all[OURS][1]));
    record.add_against(&what(0), "", fewest, Some(Target::AtMost(1.15)))?;
    let predicted = |way: usize| Series::new("predicted", &all[way][3]);
    let target = Some(Target::AtLeast(0.95));
    record.add_against(&what(2), "/s", (series(OURS, 2), predicted(OURS)), target)?;
    record.add_against(&what(2), "/s", (series(DISK, 2), predicted(DISK)), None)?;
    record.add_against(&what(2), "/s", (series(OURS, 2), series(DISK, 2)), None)?;
    let filled = (series(FILLED, 4), series(OURS, 4));
    record.add_against(&what(4), "s", filled, Some(Target::AtMost(0.2)))?;
    record.add_against(&what(7), "", (series(FILLED, 7), series(OURS, 7)), None)?;
    for way in [OURS, FILLED] {
        record.add_alone(&what(6), "", series(way, 6), Some(Target::AtMost(0.0)))?;
    }
    Ok(())
}

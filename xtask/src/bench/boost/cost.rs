//! What the cache costs where it has nothing, on this machine: before a modelled hard disk, whose
//! times are added to those of real processors, as an emulated guest's are not.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use testkit::SlowDisk;

use crate::bench::Session;
use crate::bench::record::Series;
use crate::bench::report::malformed;
use crate::error::Error;
use crate::process;

use super::disk::FIGURES;
use super::guest::quantile;

const SCRIPT: &str = include_str!("host/cost.sh");
const USE: &str = include_str!("guest/use.py");
const DISK_BYTES: u64 = 384 << 20;
/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(300);

/// Compares the cache with the disk alone, in turns.
///
/// # Errors
/// Without root, FUSE, loop devices and python3.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    const WAYS: [&str; 2] = ["cached", "alone"];
    let rounds = session.request.alternations;
    let mut all = [vec![Vec::new(); FIGURES.len()], vec![Vec::new(); FIGURES.len()]];
    for round in 0..rounds {
        eprintln!("cost: {} of {rounds}", round + 1);
        for turn in 0..WAYS.len() {
            let way = (turn + round) % WAYS.len();
            let figures = of_way(session, WAYS[way])?;
            all[way].iter_mut().zip(figures).for_each(|(values, value)| values.push(value));
        }
    }
    for (at, (what, unit, target)) in FIGURES.iter().enumerate() {
        let series = |way: usize, name| Series::new(name, &all[way][at]);
        let pair = (series(0, "terrace"), series(1, "the disk alone"));
        let what = format!("{what}, on this machine");
        session.record.add_against(&what, unit, pair, Some(*target))?;
    }
    Ok(())
}

fn of_way(session: &mut Session, way: &str) -> Result<[f64; FIGURES.len()], Error> {
    let disk = SlowDisk::hdd(DISK_BYTES).map_err(Error::Failed)?;
    let directory = PathBuf::from(session.directory.file("cost"));
    let made = fs::create_dir_all(&directory);
    made.map_err(Error::io("make", &directory))?;
    let script = directory.join("use.py");
    fs::write(&script, USE).map_err(Error::io("write", &script))?;
    let mut command = Command::new("bash");
    command.args(["-c", SCRIPT, "cost.sh"]).arg(&session.terrace.program);
    command.arg(&directory).arg(disk.path()).arg(way);
    session.record.command(format!("bash cost.sh terrace DIRECTORY DISK {way}"));
    process::run(command, LIMIT)?.success()?;
    let numbers = |name: &str| {
        let path = directory.join(name);
        let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let mut numbers: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
        numbers.sort_by(f64::total_cmp);
        if numbers.is_empty() { Err(malformed(text)) } else { Ok(numbers) }
    };
    let (rate, reads, writes) = (numbers("rate_s")?, numbers("read_us")?, numbers("write_us")?);
    fs::remove_dir_all(&directory).map_err(Error::io("remove", &directory))?;
    Ok([rate[0], quantile(&reads, 0.5), quantile(&writes, 0.5), quantile(&writes, 0.99)])
}

//! What a read costs that the page cache serves, beside a recorder that follows such reads.
//!
//! A file that stays cached is read in pieces of 4 KiB at random: beside no recorder, a usual one,
//! and one with `--hits` or `--accesses`, in turn. Each turn compares its times with that of its
//! own reads beside none.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use testkit::Random;

use crate::bench::Session;
use crate::bench::record::Series;
use crate::bench::recorder::running;
use crate::error::Error;

const PAGE: usize = 4096;
const FILE_BYTES: u64 = 512 << 20;
/// Reads of one window: about a second.
const READS: u64 = 1_000_000;
const SETTLE: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_secs(10);

/// Whose options the recorder gets.
const RECORDERS: [(&str, &[&str]); 3] =
    [("a usual recorder", &[]), ("--hits", &["--hits"]), ("--accesses", &["--accesses"])];

/// Measures one window of each a turn.
///
/// # Errors
/// When a program fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let path = session.directory.write("cached", vec![7; FILE_BYTES as usize])?;
    let file = File::open(&path).map_err(Error::io("open", Path::new(&path)))?;
    file.sync_all().map_err(Error::io("sync", Path::new(&path)))?;
    read_ns(&file, &path)?;
    let all = session.request.alternations;
    let mut none = Vec::new();
    let mut beside: [Vec<f64>; RECORDERS.len()] = Default::default();
    for turn in 0..all {
        eprintln!("hits: {} of {all}", turn + 1);
        none.push(read_ns(&file, &path)?);
        for (times, (_, options)) in beside.iter_mut().zip(RECORDERS) {
            times.push(beside_a_recorder(session, options, &file, &path)?);
        }
    }
    for ((name, options), times) in RECORDERS.iter().zip(&beside) {
        let words = [&["record"], *options, &["-o", "hits.trec"]].concat();
        session.record.command(session.terrace.command_line(&words));
        let pair = (Series::new(name, times), Series::new("no recorder", &none));
        let what = format!("hits: a read of 4 KiB that the page cache serves, beside {name}");
        session.record.add_against(&what, "ns", pair, None)?;
    }
    Ok(())
}

fn beside_a_recorder(
    session: &Session,
    options: &[&str],
    file: &File,
    path: &str,
) -> Result<f64, Error> {
    let mut command = Command::new(&session.terrace.program);
    let to = session.directory.file("hits.trec");
    command.arg("record").args(options).args(["--force", "-o", &to]);
    let recorder = running::start("terrace", command)?;
    sleep(SETTLE);
    let time = read_ns(file, path);
    recorder.end(GRACE).map_err(|error| Error::Failed(error.to_string()))?;
    time
}

/// The time of one read at random.
fn read_ns(file: &File, path: &str) -> Result<f64, Error> {
    let mut page = [0; PAGE];
    let mut random = Random(5);
    let started = Instant::now();
    for _ in 0..READS {
        let place = random.below(FILE_BYTES / PAGE as u64) * PAGE as u64;
        file.read_exact_at(&mut page, place).map_err(Error::io("read", Path::new(path)))?;
    }
    Ok(started.elapsed().as_nanos() as f64 / READS as f64)
}

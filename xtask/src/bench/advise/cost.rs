//! What the recorder costs while 20,000 pages a second come into memory and leave it again.
//!
//! A program of this suite reads pages of a file that is 16 times as large as its group's memory,
//! at a rate, so nearly each page that it reads makes another one leave. The programs in the kernel
//! run in its thread: what they cost is the difference of its processor time with and without the
//! recorder, in turn. The time of the recorder's own threads comes to that.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::{Cgroup, Random};

use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::recorder::running;
use crate::bench::report::malformed;
use crate::error::Error;
use crate::process;

const PAGE: usize = 4096;
const LIMIT_BYTES: u64 = 64 << 20;
const FILE_BYTES: u64 = 1 << 30;

/// Pages a second: nearly 15 of 16 are read from the disk and push out another, two events each.
const READS_PER_S: u64 = 10_700;
const PERIOD: Duration = Duration::from_millis(10);
const WINDOW_S: u64 = 10;
const SETTLE: Duration = Duration::from_secs(3);
const GRACE: Duration = Duration::from_secs(10);
const RUN_LIMIT: Duration = Duration::from_secs(60);

const CORE_PERCENT_MAX: f64 = 2.0;
const EVENT_BYTES_MAX: f64 = 6.0;

/// One window of reading.
struct Window {
    /// The reader's processor time, of a core.
    reader_percent: f64,
    /// Pages that came in and pages that left, a second.
    events_per_s: f64,
}

/// Measures with and without the recorder in turn.
///
/// # Errors
/// When a program fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    if let Err(need) = Cgroup::v1_memory(LIMIT_BYTES) {
        session.record.note(format!("cost: needs {need}"));
        return Ok(());
    }
    let set = session.directory.write("pages", vec![7; FILE_BYTES as usize])?;
    let file = session.directory.file("pages.trec");
    File::open(&set).and_then(|set| set.sync_all()).map_err(Error::io("sync", Path::new(&set)))?;
    let words = ["record", "--force", "-o", &file];
    session.record.command("terrace record -o pages.trec".to_owned());
    let (mut cost, mut own, mut bytes, mut rate) = (vec![], vec![], vec![], vec![]);
    let (mut seen, mut lost) = (vec![], vec![]);
    for turn in 0..session.request.alternations {
        eprintln!("cost: {} of {}", turn + 1, session.request.alternations);
        let plain = window(&set)?;
        let mut command = Command::new(&session.terrace.program);
        command.args(words);
        let recorder = running::start("terrace", command)?;
        sleep(SETTLE);
        let size = || fs::metadata(&file).map_or(0, |file| file.len());
        let own_time = || running::cpu_ns(recorder.pid()).unwrap_or(0);
        let before = (own_time(), size(), Instant::now());
        let watched = window(&set)?;
        let elapsed = before.2.elapsed();
        let own_percent = 100.0 * (own_time() - before.0) as f64 / elapsed.as_nanos() as f64;
        let events = watched.events_per_s * WINDOW_S as f64;
        bytes.push((size() - before.1) as f64 / events);
        recorder.end(GRACE).map_err(|error| Error::Failed(error.to_string()))?;
        own.push(own_percent);
        cost.push(own_percent + watched.reader_percent - plain.reader_percent);
        rate.push(watched.events_per_s);
        let counted = counted(session, &file)?;
        seen.push(counted[0] / (events / 2.0));
        lost.push(counted[1]);
    }
    let rows = [
        ("pages in and out a second", "/s", rate, None),
        ("recorder and its programs in the kernel", "% of a core", cost, Some(CORE_PERCENT_MAX)),
        ("of that its own threads", "% of a core", own, None),
        ("the recording, for each event", "B", bytes, Some(EVENT_BYTES_MAX)),
        ("events lost", "", lost, Some(0.0)),
        ("pages that left, of those that the group's counter has", "", seen, None),
    ];
    for (what, unit, values, most) in rows {
        let series = Series::new("terrace", &values);
        let what = format!("cost: {what}");
        session.record.add_alone(&what, unit, series, most.map(Target::AtMost))?;
    }
    Ok(())
}

/// Pages of files that the recording saw leave, and events that it lost.
fn counted(session: &Session, file: &str) -> Result<[f64; 2], Error> {
    let printed = session.terrace.run(&["export", file, "--to", "json"], RUN_LIMIT)?.stdout;
    let all: Value =
        serde_json::from_str(&printed).map_err(|error| malformed(error.to_string()))?;
    let series = all["series"].as_array().map_or(&[][..], Vec::as_slice);
    let growth = |name: &str| {
        let steps = series.iter().find(|one| one["name"] == name)?["steps"].as_array()?;
        Some(steps.last()?[1].as_f64()? - steps.first()?[1].as_f64()?)
    };
    let left = growth("trace.returns.file.left_bytes")
        .ok_or_else(|| malformed("a recording without returns".to_owned()))?;
    Ok([left / PAGE as f64, growth("trace.lost").unwrap_or(0.0)])
}

/// Reads for one window in a group of its own.
fn window(set: &str) -> Result<Window, Error> {
    let group = Cgroup::v1_memory(LIMIT_BYTES).map_err(Error::Failed)?;
    let own = std::env::current_exe().map_err(|error| Error::Failed(error.to_string()))?;
    let mut command = group.command(own);
    command.args(["read-pages", set, &WINDOW_S.to_string()]);
    let printed = process::run(command, RUN_LIMIT)?.success()?.stdout;
    let path = group.path().join("memory.stat");
    let stat = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
    let counter = |name: &str| {
        stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok())
    };
    // The pages that the file has in the group at the end came in and have not left.
    let pages = counter("pgpgin ").zip(counter("pgpgout ")).map(|(all, out)| all + out);
    let share = printed.trim().parse().ok();
    let (events, share) =
        pages.zip(share).ok_or_else(|| malformed(format!("reader: {printed:?}, {stat}")))?;
    Ok(Window { reader_percent: share, events_per_s: events / WINDOW_S as f64 })
}

/// What the bench watches: reads pages at random, at a rate, for so long; prints the share of a
/// core that it used, in percent.
pub(crate) fn read_pages(path: &Path, seconds: u64) -> Result<(), Error> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    let failed = |error: std::io::Error| Error::io("read", path)(error);
    for advice in [rustix::fs::Advice::DontNeed, rustix::fs::Advice::Random] {
        rustix::fs::fadvise(&file, 0, None, advice).map_err(|error| failed(error.into()))?;
    }
    let pages = file.metadata().map_err(failed)?.len() / PAGE as u64;
    let mut random = Random(3);
    let mut page = [0; PAGE];
    let started = Instant::now();
    let length = Duration::from_secs(seconds);
    let mut reads = 0;
    while started.elapsed() < length {
        let due = (started.elapsed().as_secs_f64() * READS_PER_S as f64) as u64;
        while reads < due {
            let place = random.below(pages) * PAGE as u64;
            file.read_exact_at(&mut page, place).map_err(failed)?;
            reads += 1;
        }
        sleep(PERIOD);
    }
    let elapsed = started.elapsed().as_nanos() as f64;
    let used = running::cpu_ns(std::process::id()).unwrap_or(0);
    println!("{:.4}", 100.0 * used as f64 / elapsed);
    Ok(())
}

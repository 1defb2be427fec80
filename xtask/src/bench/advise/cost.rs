//! What the recorder costs while 20,000 pages a second come into memory and leave it again.
//!
//! A program of this suite reads pages of a file that is 16 times as large as its group's memory,
//! at a rate, so nearly each page that it reads makes another one leave. The programs in the kernel
//! run in its thread: the kernel counts their time itself (`kernel.bpf_stats_enabled`), and shows
//! it with the descriptors of the recorder. The time of the recorder's own threads comes to that.

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

/// Pages a second: most are read from the disk and push out another, two events each.
const PAGES_PER_S: u64 = 11_500;

/// How pages are read and recorded.
struct Case {
    label: &'static str,
    /// Pages that are read at once.
    pages: u64,
    /// The recorder's options.
    options: &'static [&'static str],
    /// Whether the cost is.
    is_judged: bool,
}

/// A request for each page has four more events of the recorder's than the page. With accesses each
/// request, page and read is kept.
const CASES: [Case; 4] = [
    Case { label: "in pieces of 64 KiB", pages: 16, options: &[], is_judged: true },
    Case { label: "a request for each", pages: 1, options: &[], is_judged: false },
    Case { label: "with --accesses", pages: 16, options: &["--accesses"], is_judged: true },
    Case { label: "with --hits", pages: 16, options: &["--hits"], is_judged: true },
];
const PERIOD: Duration = Duration::from_millis(10);
const WINDOW_S: u64 = 10;
const SETTLE: Duration = Duration::from_secs(3);
const GRACE: Duration = Duration::from_secs(10);
const RUN_LIMIT: Duration = Duration::from_secs(60);

const CORE_PERCENT_MAX: f64 = 2.0;
const EVENT_BYTES_MAX: f64 = 6.0;

/// The switch of the kernel's own counting of the time of programs in it.
const STATS: &str = "kernel.bpf_stats_enabled";

/// That switch, on; as it was before when dropped.
struct Stats(String);

/// What happened in a window of reading.
struct Window {
    /// Of a core: the recorder's threads, and its programs in the kernel.
    own_percent: f64,
    in_kernel_percent: f64,
    /// Pages that came in, and pages that left.
    came: f64,
    left: f64,
    /// How the recording grew.
    bytes: f64,
}

/// Measures one window a turn.
///
/// # Errors
/// When a program fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    if let Err(need) = Cgroup::v1_memory(LIMIT_BYTES) {
        session.record.note(format!("cost: needs {need}"));
        return Ok(());
    }
    let set = session.directory.write("pages", vec![7; FILE_BYTES as usize])?;
    File::open(&set).and_then(|set| set.sync_all()).map_err(Error::io("sync", Path::new(&set)))?;
    let file = session.directory.file("pages.trec");
    let _stats = Stats::switch_on()?;
    for case in CASES {
        let words = [&["record"], case.options, &["-o", "pages.trec"]].concat();
        session.record.command(session.terrace.command_line(&words));
        let mut turns = Vec::new();
        for turn in 0..session.request.alternations {
            eprintln!("cost, {}: {} of {}", case.label, turn + 1, session.request.alternations);
            let window = recorded(session, &set, &case, &file)?;
            turns.push((window, counted(session, &file)?));
        }
        add_rows(session, &case, &turns)?;
    }
    Ok(())
}

fn add_rows(
    session: &mut Session,
    &Case { label, is_judged, .. }: &Case,
    turns: &[(Window, [f64; 2])],
) -> Result<(), Error> {
    let rows: [(&str, &'static str, Figure, Option<f64>); 6] = [
        (RATE, "/s", |(it, _)| (it.came + it.left) / WINDOW_S as f64, None),
        (
            "the recorder and its programs in the kernel",
            "% of a core",
            |(it, _)| it.own_percent + it.in_kernel_percent,
            Some(CORE_PERCENT_MAX),
        ),
        ("of that the programs in the kernel", "% of a core", |(it, _)| it.in_kernel_percent, None),
        (
            "the recording, for each page",
            "B",
            |(it, _)| it.bytes / (it.came + it.left),
            Some(EVENT_BYTES_MAX),
        ),
        ("events lost", "", |(_, counted)| counted[1], Some(0.0)),
        (LEFT, "", |(it, of)| of[0] / it.left, None),
    ];
    for (what, unit, figure, most) in rows {
        let values: Vec<f64> = turns.iter().map(figure).collect();
        let series = Series::new("terrace", &values);
        let all_seen = (what == LEFT).then_some(Target::AtLeast(0.99));
        let fast = (what == RATE && is_judged).then_some(Target::AtLeast(RATE_MIN));
        let target = most.map(Target::AtMost).filter(|_| is_judged).or(all_seen).or(fast);
        session.record.add_alone(&format!("cost, {label}: {what}"), unit, series, target)?;
    }
    Ok(())
}

/// Slower, the cost is not that of the pages which the README names.
const RATE: &str = "pages in and out a second";
const RATE_MIN: f64 = 20_000.0;

/// What others drop meanwhile is in it, so it may be above 1.
const LEFT: &str = "pages that left, of those of the group's counter";

/// A figure of a window and of what the recording counted.
type Figure = fn(&(Window, [f64; 2])) -> f64;

/// One window beside a recorder of the machine.
fn recorded(session: &Session, set: &str, case: &Case, file: &str) -> Result<Window, Error> {
    let mut command = Command::new(&session.terrace.program);
    command.arg("record").args(case.options).args(["--force", "-o", file]);
    let recorder = running::start("terrace", command)?;
    sleep(SETTLE);
    let pid = recorder.pid();
    let used = || (running::cpu_ns(pid).unwrap_or(0), in_kernel_ns(pid));
    let size = || fs::metadata(file).map_or(0, |file| file.len());
    let (before, size_before, started) = (used(), size(), Instant::now());
    let [came, left] = read_in_a_group(set, case.pages)?;
    let (after, elapsed_ns) = (used(), started.elapsed().as_nanos() as f64);
    // The last chunk is written at the end.
    recorder.end(GRACE).map_err(|error| Error::Failed(error.to_string()))?;
    if after.1 <= before.1 {
        return Err(malformed("the recorder has no programs in the kernel".to_owned()));
    }
    let percent = |before: u64, after: u64| 100.0 * (after - before) as f64 / elapsed_ns;
    Ok(Window {
        own_percent: percent(before.0, after.0),
        in_kernel_percent: percent(before.1, after.1),
        came,
        left,
        bytes: (size() - size_before) as f64,
    })
}

/// The time that the programs of a process in the kernel ran, by its descriptors.
fn in_kernel_ns(pid: u32) -> u64 {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten();
    let time = |text: String| {
        let value = text.lines().find_map(|line| line.strip_prefix("run_time_ns:"))?;
        value.trim().parse::<u64>().ok()
    };
    descriptors.filter_map(|entry| time(fs::read_to_string(entry.ok()?.path()).ok()?)).sum()
}

impl Stats {
    fn switch_on() -> Result<Self, Error> {
        let mut read = Command::new("sysctl");
        read.args(["-n", STATS]);
        let before = process::run(read, RUN_LIMIT)?.success()?.stdout.trim().to_owned();
        set_stats("1")?;
        Ok(Self(before))
    }
}

impl Drop for Stats {
    fn drop(&mut self) {
        let _ = set_stats(&self.0);
    }
}

fn set_stats(value: &str) -> Result<(), Error> {
    let mut command = Command::new("sysctl");
    command.args(["-q", "-w", &format!("{STATS}={value}")]);
    process::run(command, RUN_LIMIT)?.success().map(drop)
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

/// Reads for one window in a group of its own: pages that came in, and pages that left.
fn read_in_a_group(set: &str, pages: u64) -> Result<[f64; 2], Error> {
    let group = Cgroup::v1_memory(LIMIT_BYTES).map_err(Error::Failed)?;
    let own = std::env::current_exe().map_err(|error| Error::Failed(error.to_string()))?;
    let mut command = group.command(own);
    command.args(["read-pages", set, &WINDOW_S.to_string(), &pages.to_string()]);
    process::run(command, RUN_LIMIT)?.success()?;
    let path = group.path().join("memory.stat");
    let stat = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
    let counter = |name: &str| {
        stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok())
    };
    let pages = counter("pgpgin ").zip(counter("pgpgout "));
    pages.map(|(came, left)| [came, left]).ok_or_else(|| malformed(stat.clone()))
}

/// What the bench watches: reads so many pages at once, at random, at a rate, for so long.
pub(crate) fn read_pages(path: &Path, seconds: u64, at_once: u64) -> Result<(), Error> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    let failed = |error: std::io::Error| Error::io("read", path)(error);
    for advice in [rustix::fs::Advice::DontNeed, rustix::fs::Advice::Random] {
        rustix::fs::fadvise(&file, 0, None, advice).map_err(|error| failed(error.into()))?;
    }
    let mut piece = vec![0; PAGE * at_once as usize];
    let pieces = file.metadata().map_err(failed)?.len() / piece.len() as u64;
    let mut random = Random(3);
    let started = Instant::now();
    let length = Duration::from_secs(seconds);
    let mut reads = 0;
    while started.elapsed() < length {
        let due = (started.elapsed().as_secs_f64() * PAGES_PER_S as f64) as u64;
        while reads < due {
            let place = random.below(pieces) * piece.len() as u64;
            file.read_exact_at(&mut piece, place).map_err(failed)?;
            reads += at_once;
        }
        sleep(PERIOD);
    }
    Ok(())
}

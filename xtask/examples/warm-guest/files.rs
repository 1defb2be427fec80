//! Files: one that is read at random, and the page cache as a snapshot. The disk of files is the
//! modelled one; programs lie on another and are read before the clock runs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::system::{self, DATA, Running, failed, make_file_system, run};
use crate::{Outcome, write_result};

pub(crate) const FOLDER: &str = "/mnt";

/// Files of the page cache that is noted: as many as a person's programs have large ones.
const FILES: u64 = 64;

/// A file that is read through a mapping, every page once, at random: each way once.
pub(crate) fn mapped(mib: &str, ways: &[&str]) -> Outcome<()> {
    let disk = Mounted::new()?;
    let (path, small) = (format!("{FOLDER}/mapped"), format!("{FOLDER}/small"));
    for (path, mib) in [(&path, mib), (&small, "1")] {
        let (output, count) = (format!("of={path}"), format!("count={mib}"));
        run(&["dd", "if=/dev/urandom", &output, "bs=1M", &count])?;
    }
    disk.settle()?;
    for way in ways {
        drop_caches()?;
        rehearse(&small)?;
        let user = User::of(&path)?;
        let started = Instant::now();
        let report = match *way {
            "cat" => run(&["dd", &format!("if={path}"), "of=/dev/null", "bs=128k"])
                .map(|_| Value::Null)?,
            way => system::bring_back(way, &[user.pid()], &["--only", "files"])?.1,
        };
        let moving_s = started.elapsed().as_secs_f64();
        let touch_s = read_at_random(&path, mib)?;
        write_result(&json!({
            "way": way,
            "total_s": moving_s + touch_s,
            "moving_s": moving_s,
            "touch_s": touch_s,
            "report": report,
        }))?;
    }
    Ok(())
}

/// The same with a small file. Programs are not what is measured: neither their reading nor that
/// the emulator translates them when they run for the first time.
fn rehearse(path: &str) -> Outcome<()> {
    let user = User::of(path)?;
    system::bring_back("restore", &[user.pid()], &["--only", "files"])?;
    run(&["dd", &format!("if={path}"), "of=/dev/null", "bs=128k"])?;
    read_at_random(path, "1").map(drop)
}

/// Notes a page cache of whole files, drops it and brings it back; beside it the disk's own pace.
pub(crate) fn snapshot(mib: &str) -> Outcome<()> {
    let total_mib = mib.parse::<u64>().map_err(failed(mib))?;
    let count = format!("count={}", total_mib / FILES);
    let _disk = Mounted::new()?;
    for file in 0..FILES {
        let target = format!("of={FOLDER}/{file}");
        run(&["dd", "if=/dev/urandom", &target, "bs=1M", &count, "conv=fsync"])?;
    }
    let noted = "/run/noted";
    run(&["terrace", "warm", "snapshot", noted, "--tree", FOLDER])?;
    let noted_bytes = fs::metadata(noted).map_err(failed(noted))?.len();
    drop_caches()?;
    run(&["terrace", "--version"])?;
    let before = cached_bytes()?;
    let started = Instant::now();
    let text = run(&["terrace", "warm", "restore", noted, "--json"])?;
    let moving_s = started.elapsed().as_secs_f64();
    let brought_mib = (cached_bytes()?.saturating_sub(before)) as f64 / f64::from(1 << 20);
    drop_caches()?;
    let started = Instant::now();
    let device = format!("if={DATA}");
    let all = format!("count={total_mib}");
    run(&["dd", &device, "of=/dev/null", "bs=1M", "iflag=direct", &all])?;
    let sequential_s = started.elapsed().as_secs_f64();
    let report: Value = serde_json::from_str(&text).map_err(failed("the report"))?;
    write_result(&json!({
        "way": "restore",
        "brought_mib_per_s": brought_mib / moving_s,
        "brought_mib": brought_mib,
        "moving_s": moving_s,
        "sequential_mib_per_s": total_mib as f64 / sequential_s,
        "noted_bytes": noted_bytes,
        "report": report,
    }))
}

/// Seconds that fio took to read every page of a mapped file once, at random.
fn read_at_random(path: &str, mib: &str) -> Outcome<f64> {
    let (name, size) = (format!("--filename={path}"), format!("--size={mib}m"));
    // Its cache is neither dropped nor advised about: the kernel's own reading ahead is on.
    let text = run(&[
        "fio",
        "--name=touch",
        "--ioengine=mmap",
        "--rw=randread",
        "--bs=4k",
        &name,
        &size,
        "--invalidate=0",
        "--fadvise_hint=0",
        "--output-format=json",
        "--thread",
    ])?;
    let report: Value = serde_json::from_str(&text).map_err(failed("fio"))?;
    let runtime_ms = report["jobs"][0]["read"]["runtime"].as_f64();
    Ok(runtime_ms.ok_or("fio told no time")? / 1e3)
}

pub(crate) fn drop_caches() -> Outcome<()> {
    run(&["sync"])?;
    system::write("/proc/sys/vm/drop_caches", "3")
}

fn cached_bytes() -> Outcome<u64> {
    system::meminfo_bytes("Cached:")
}

/// The disk of files with an ext4 on it; no longer mounted on drop.
pub(crate) struct Mounted;

impl Mounted {
    pub(crate) fn new() -> Outcome<Self> {
        make_file_system(DATA)?;
        Self::mount()?;
        Ok(Self)
    }

    fn mount() -> Outcome<()> {
        run(&["mount", "-o", "noatime", DATA, FOLDER]).map(drop)
    }

    /// Lets the journal write all that it has to, so that it is not in the way of the first who
    /// reads.
    pub(crate) fn settle(&self) -> Outcome<()> {
        run(&["umount", FOLDER])?;
        Self::mount()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = run(&["umount", FOLDER]);
    }
}

/// A process that has a file open and does nothing.
pub(crate) struct User(Running);

impl User {
    fn of(path: &str) -> Outcome<Self> {
        Self::start(Command::new("sleep"), path)
    }

    /// `sleep` is a command that begins with the words to start it.
    pub(crate) fn start(mut sleep: Command, path: &str) -> Outcome<Self> {
        let file = fs::File::open(Path::new(path)).map_err(failed(path))?;
        Running::start(sleep.arg("infinity").stdin(Stdio::from(file))).map(Self)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.0.id()
    }
}

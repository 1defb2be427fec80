//! `terrace boost qualify` against fio on one modelled stick, in turn, and its verdict on twenty
//! sticks that are drawn by a seed: sound and quicker than the disk, sound and slower, fakes, and
//! such whose rate falls after a burst.
//!
//! Each turn and each stick is kept when it is done, so that the part goes on if it was stopped.
//! The stick and the disk are servers of this program, so nothing else may run beside it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use testkit::{Beyond, FileSystem, Mount, Random, SlowDisk, TempDir, TrueSize};

use crate::bench::Session;
use crate::bench::peer::{Peer, Version};
use crate::bench::record::{Series, Target};
use crate::bench::report::malformed;
use crate::bench::steps::Steps;
use crate::error::Error;

const MIB: u64 = 1 << 20;
const STICK: &str = "usb";
const STICK_BYTES: u64 = 256 * MIB;
/// What the rates of both may differ by.
const WITHIN: f64 = 0.05;
const STICKS: usize = 20;
const LIMIT: Duration = Duration::from_secs(120);

/// One request of 1 MiB after another, as the model takes them: 1 ms, and the bytes at 7 MB/s.
const MODEL_WRITE: f64 = MIB as f64 / (0.001 + MIB as f64 / 7e6);

/// The words of `boost qualify` in a turn against fio.
const TURN: &str = "--size=64m --budget=40s";

/// What every job of fio has.
const FIO: [&str; 6] = [
    "--name=job",
    "--direct=1",
    "--size=64m",
    "--refill_buffers",
    "--output-format=json",
    "--fallocate=native",
];

/// The rates that are compared: their field, and the job of fio.
const JOBS: [(&str, &str, &[&str]); 4] = [
    ("random_read", "read", &["--rw=randread", "--bs=4k", "--runtime=5", "--time_based"]),
    ("random_write", "write", &["--rw=randwrite", "--bs=512k", "--runtime=5", "--time_based"]),
    ("sequential_read", "read", &["--rw=read", "--bs=1m", "--iodepth=4", "--ioengine=io_uring"]),
    ("sequential_write", "write", &["--rw=write", "--bs=1m", "--end_fsync=1"]),
];
/// The figures of a turn: those of Terrace, those of fio, and the rate that lasts.
const FIGURES: usize = 2 * JOBS.len() + 1;

/// Measures, then judges.
///
/// # Errors
/// When a program fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    // The disk that the sticks would help.
    let disk = match SlowDisk::hdd(64 * MIB) {
        Ok(disk) => disk,
        Err(need) => {
            session.record.note(format!("qualify: needs {need}"));
            return Ok(());
        }
    };
    let fio = Peer::find(&session.request, "fio", Version::Option("--version"))?;
    session.record.program(fio.clone());
    let terrace = session.terrace.clone();
    let (target, program) = (&session.target, &terrace.program);
    let mut turns = Steps::open(target, "qualify-turns", program, TURN, FIGURES)?;
    let mut sticks = Steps::open(target, "qualify-sticks", program, STICK, 1)?;
    rates(session, [&terrace, &fio], &disk, &mut turns)?;
    verdicts(session, &terrace, &disk, &mut sticks)?;
    turns.end(&mut session.record, "turns", session.request.alternations);
    sticks.end(&mut session.record, "sticks", STICKS);
    Ok(())
}

/// The rates of both, in turn on one stick.
fn rates(
    session: &mut Session,
    [terrace, fio]: [&Peer; 2],
    disk: &SlowDisk,
    steps: &mut Steps,
) -> Result<(), Error> {
    session.record.command(format!("terrace boost qualify STICK --for DISK {TURN} --json"));
    for (_, _, words) in JOBS {
        session.record.command(fio.command_line(&[&FIO, words].concat()));
    }
    let all = session.request.alternations;
    let mut rows: [Vec<f64>; FIGURES] = Default::default();
    for turn in 0..all {
        eprintln!("qualify: turn {} of {all}", turn + 1);
        let step = steps.get(turn, || Ok((one_turn(terrace, fio, disk)?, Vec::new())))?;
        for (row, value) in rows.iter_mut().zip(&step.values) {
            row.push(*value);
        }
    }
    let [ours, theirs] = [&rows[..JOBS.len()], &rows[JOBS.len()..2 * JOBS.len()]];
    for (((name, ..), ours), theirs) in JOBS.iter().zip(ours).zip(theirs) {
        let pair = (Series::new("terrace", ours), Series::new("fio", theirs));
        let what = format!("qualify: {name}");
        session.record.add_against(&what, "B/s", pair, Some(Target::Within(WITHIN)))?;
    }
    let over_model: Vec<f64> = rows[FIGURES - 1].iter().map(|rate| rate / MODEL_WRITE).collect();
    let what = "qualify: the rate of writing that lasts, over that of the model";
    let series = Series::new("terrace", &over_model);
    session.record.add_alone(what, "", series, Some(Target::Within(WITHIN)))
}

/// The figures of one turn, on a stick of its own.
fn one_turn(terrace: &Peer, fio: &Peer, disk: &SlowDisk) -> Result<Vec<f64>, Error> {
    let stick = SlowDisk::modelled(STICK, STICK_BYTES).map_err(Error::Failed)?;
    let mount = stick.as_ext4().map_err(Error::Failed)?;
    let found = qualify(terrace, mount.path(), disk.path(), TURN)?;
    let mut values = Vec::with_capacity(FIGURES);
    for (name, ..) in JOBS {
        let rate = found[name]["bytes_per_s"]["median"].as_f64();
        values.push(rate.ok_or_else(|| malformed(format!("{name} was not measured")))?);
    }
    for (_, direction, words) in JOBS {
        values.push(fio_rate(fio, mount.path(), direction, words)?);
    }
    let lasting = found["sustained_write"]["median"].as_f64();
    values.push(lasting.ok_or_else(|| malformed("no rate of writing that lasts".to_owned()))?);
    Ok(values)
}

/// One run; its result.
fn qualify(terrace: &Peer, path: &Path, disk: &Path, words: &str) -> Result<Value, Error> {
    let (path, disk) = (path.to_string_lossy(), disk.to_string_lossy());
    let mut all = vec!["boost", "qualify", &*path, "--for", &*disk, "--json"];
    all.extend(words.split(' '));
    let printed = terrace.run(&all, LIMIT)?.stdout;
    let value: Value =
        serde_json::from_str(&printed).map_err(|error| malformed(error.to_string()))?;
    Ok(value["result"].clone())
}

/// The rate of one job on a file of its own.
fn fio_rate(fio: &Peer, path: &Path, direction: &str, words: &[&str]) -> Result<f64, Error> {
    let file = path.join("fio");
    let name = format!("--filename={}", file.display());
    let mut all = [&FIO, words].concat();
    all.push(&name);
    let printed = fio.run(&all, LIMIT)?.stdout;
    let _ = std::fs::remove_file(&file);
    let begin = printed.find('{').unwrap_or(0);
    let value: Value =
        serde_json::from_str(&printed[begin..]).map_err(|error| malformed(error.to_string()))?;
    let rate = value["jobs"][0][direction]["bw_bytes"].as_f64();
    rate.ok_or_else(|| malformed("fio printed no rate".to_owned()))
}

/// How many verdicts on sticks that are drawn are right.
fn verdicts(
    session: &mut Session,
    terrace: &Peer,
    disk: &SlowDisk,
    steps: &mut Steps,
) -> Result<(), Error> {
    session.record.command("terrace boost qualify STICK --for DISK --size=32m --json".to_owned());
    let mut right = 0.0;
    for number in 0..STICKS {
        eprintln!("qualify: stick {} of {STICKS}", number + 1);
        let step = steps.get(number, || {
            let Judged { expected, found, sentence } = judge(terrace, disk, number)?;
            let is_right = found == expected;
            let note =
                (!is_right).then(|| format!("stick {number}: {found}, not {expected}: {sentence}"));
            Ok((vec![f64::from(u8::from(is_right))], note.into_iter().collect()))
        })?;
        step.note_in(&mut session.record);
        right += step.values[0];
    }
    let series = Series::new("terrace", &[right]);
    let target = Some(Target::AtLeast(STICKS as f64));
    session.record.add_alone("qualify: verdicts that are right, of 20", "", series, target)
}

/// What is right for one stick, and what was said of it.
struct Judged {
    expected: &'static str,
    found: String,
    sentence: String,
}

fn judge(terrace: &Peer, disk: &SlowDisk, number: usize) -> Result<Judged, Error> {
    let mut random = Random(22 + number as u64);
    let kind = number % 4;
    // A rate of 1 MB/s needs its time for an interval: it gets that of a user who says nothing.
    let words = if kind == 3 { "--size=32m" } else { "--size=32m --budget=10s" };
    let read_ms = 0.3 + random.below(8) as f64 / 10.0;
    let write_bps = (10 + random.below(30)) * 1_000_000;
    let timing = match kind {
        // Slower than any disk: 20 ms and more for a read.
        1 => format!("usb,read_ms={},write_bps={write_bps}", 20.0 + read_ms * 10.0),
        3 => {
            let burst = 8 + random.below(8);
            format!("usb,read_ms={read_ms},write_bps=1000000,burst_bytes={burst}M,burst_bps=4e7")
        }
        _ => format!("usb,read_ms={read_ms},write_bps={write_bps}"),
    };
    if kind == 2 {
        let beyond = if random.below(2) == 0 { Beyond::Wraps } else { Beyond::Dropped };
        let size = TrueSize { bytes: 64 * MIB, beyond };
        let made = SlowDisk::fake("usb,write_bps=1e9,write_ms=0", 1024 * MIB, size);
        let fake = made.map_err(Error::Failed)?;
        let directory = TempDir::new();
        let mount = fill(&fake, &directory)?;
        let found = qualify(terrace, mount.path(), disk.path(), words)?;
        let outcome = found["capacity"]["outcome"].as_str().unwrap_or_default();
        let said = format!("{} {outcome}", verdict(&found, "answer"));
        return Ok(Judged {
            expected: "no refused",
            found: said,
            sentence: verdict(&found, "sentence"),
        });
    }
    let stick = SlowDisk::modelled(&timing, STICK_BYTES).map_err(Error::Failed)?;
    let mount = stick.as_ext4().map_err(Error::Failed)?;
    let found = qualify(terrace, mount.path(), disk.path(), words)?;
    let expected = if kind == 0 { "yes" } else { "no" };
    let [found, sentence] = ["answer", "sentence"].map(|word| verdict(&found, word));
    Ok(Judged { expected, found, sentence })
}

fn verdict(found: &Value, word: &str) -> String {
    found["verdict"][word].as_str().unwrap_or_default().to_owned()
}

/// ext4 without a journal, whose next file begins far behind what the fake has.
fn fill<'d>(fake: &'d SlowDisk, directory: &TempDir) -> Result<Mount<'d>, Error> {
    let failed = |what: &str| Error::Failed(format!("qualify: {what}"));
    let disk = File::options().write(true).open(fake.path());
    disk.and_then(|disk| disk.write_all_at(&vec![7; 64 << 20], 0))
        .map_err(|error| failed(&error.to_string()))?;
    let made = Command::new("mkfs.ext4")
        .args(["-q", "-b", "4096", "-O", "^has_journal,^resize_inode,sparse_super2"])
        .args(["-E", "num_backup_sb=0,nodiscard"])
        .arg(fake.path())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return Err(failed("mkfs.ext4 failed"));
    }
    let mount = Mount::existing(FileSystem::Ext4, fake.path(), directory.path().join("mount"))
        .map_err(Error::Failed)?;
    let reserved = mount.path().join("reserved");
    let made = Command::new("fallocate").args(["-l", "600m"]).arg(reserved).status();
    if !made.is_ok_and(|status| status.success()) {
        return Err(failed("fallocate failed"));
    }
    Ok(mount)
}

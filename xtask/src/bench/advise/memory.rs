//! What `terrace advise` says more memory would spare, from a recording of a guest with little of
//! it, against the same work in guests that have it.
//!
//! Each workload uses sets of 0.5 to 1.2 GiB in an order from a seed (`guest/`). Every guest
//! records itself, so that all bear the recorder alike; only the recording of the smallest one is
//! judged. What came back is counted by its kernel, and how long nothing could run as all waited
//! for disks (`full` of /proc/pressure/io): that is what the tool predicts. The guest is emulated:
//! pages that come back are figures, and of times those that a modelled disk bounds.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::report::malformed;
use crate::bench::steps::Steps;
use crate::error::Error;

use super::guest::{Counts, ScriptRun, boot, counted};

/// The guest that is recorded, those that show what more memory does, and the one that builds.
const RECORDED: &str = "512M";
const LARGER: [&str; 2] = ["1G", "2G"];
const BUILDER: &str = "1G";

/// What is compared, and how far off it may be, in percent of what the recorded guest had.
const ROWS: [(&str, f64); 2] = [("pages that come back", 10.0), ("seconds waited", 20.0)];

/// Figures of a workload.
const FIGURES: usize = ROWS.len() * LARGER.len();

const ADVISE_LIMIT: Duration = Duration::from_secs(60);
const PAGE_BYTES: f64 = 4096.0;

/// The model of both disks, and their sizes.
const MODEL: &str = "model=hdd";
const SWAP_DISK: &str = "swap:3G,model=hdd";
const DATA_BYTES: u64 = 3 << 30;

/// The kernel's counters of pages that came back.
const RETURNS: [&str; 2] = ["workingset_refault_file", "workingset_refault_anon"];

/// What is done in each guest.
struct Workload {
    /// In words.
    what: &'static str,
    /// For the scripts: which sets, their MiB, how often a piece is used, and the skew.
    words: [&'static str; 4],
    packages: &'static [&'static str],
}

const WORKLOADS: [Workload; 5] = [
    Workload { what: "file set", words: ["file", "1200", "3000", "2.5"], packages: &[] },
    Workload { what: "anonymous set", words: ["anonymous", "1100", "2500", "4"], packages: &[] },
    Workload { what: "both at once", words: ["both", "500", "2000", "3"], packages: &[] },
    Workload { what: "SQLite", words: ["sqlite", "1000", "2500", "2.5"], packages: &[] },
    Workload {
        what: "PostgreSQL",
        words: ["postgres", "900", "2500", "2.5"],
        packages: &["postgresql-15"],
    },
];

/// What the tool says of one size.
struct Gain {
    /// Pages that would not have come back: by those still out, and by all that left.
    kept: [f64; 2],
    /// Seconds spared, with their interval.
    spared_s: [f64; 3],
}

/// Runs all workloads.
///
/// # Errors
/// When a guest fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let (target, program) = (session.target.clone(), session.terrace.program.clone());
    let words: Vec<_> = WORKLOADS.iter().map(|workload| workload.words).collect();
    let parameters = format!("{RECORDED} to {LARGER:?}: {words:?}");
    let mut steps = Steps::open(&target, "memory", &program, &parameters, FIGURES)?;
    session.record.command("terrace advise base.trec --ram +MORE --json".to_owned());
    for (number, workload) in WORKLOADS.iter().enumerate() {
        let step = steps.get(number, || predict(session, workload))?;
        step.note_in(&mut session.record);
        let rows = LARGER.iter().flat_map(|memory| ROWS.map(|row| (memory, row)));
        for ((memory, (row, most)), error) in rows.zip(&step.values) {
            let row = format!("{}, {RECORDED} to {memory}: error of {row}", workload.what);
            let series = Series::new("terrace", &[*error]);
            session.record.add_alone(&row, "%", series, Some(Target::AtMost(most)))?;
        }
    }
    steps.end(&mut session.record, "workloads", WORKLOADS.len());
    Ok(())
}

/// The errors for both larger guests, in the order of [`ROWS`], and notes with what was seen.
fn predict(session: &mut Session, workload: &Workload) -> Result<(Vec<f64>, Vec<String>), Error> {
    build(session, workload)?;
    let small = run_with(session, workload, RECORDED)?;
    let recording = session.directory.file("base.trec");
    let made = session.directory.file("out/set.trec");
    fs::rename(&made, &recording).map_err(Error::io("rename", Path::new(&made)))?;
    let mut notes = vec![format!(
        "{}: recorded with {RECORDED}: {} pages came back, all waited for disks for {:.1} s, some \
         for {:.1} s",
        workload.what,
        returns(&small)?,
        small.get("io_us")? / 1e6,
        small.get("some_io_us")? / 1e6,
    )];
    let mut errors = Vec::new();
    for memory in LARGER {
        let large = run_with(session, workload, memory)?;
        let more_kib = large.get("memory_kib")? - small.get("memory_kib")?;
        let gain = Gain::advised(session, &recording, more_kib)?;
        let (of_size, note) = judge((workload.what, memory), &gain, (&small, &large))?;
        errors.extend(of_size);
        notes.push(note);
    }
    let image = session.directory.file("set.img");
    fs::remove_file(&image).map_err(Error::io("remove", Path::new(&image)))?;
    Ok((errors, notes))
}

/// The errors of what was predicted, and a note with what was seen.
fn judge(
    (what, memory): (&str, &str),
    gain: &Gain,
    (small, large): (&Counts, &Counts),
) -> Result<([f64; 2], String), Error> {
    let (base, seen) = (returns(small)?, returns(large)?);
    let [predicted, most] = gain.kept.map(|kept| base - kept);
    let (base_s, seen_s) = (small.get("io_us")? / 1e6, large.get("io_us")? / 1e6);
    let [spared_s, least_s, most_s] = gain.spared_s;
    let note = format!(
        "{what}, {memory}: {predicted:.0} pages predicted to come back (to {most:.0}), {seen} seen; \
         {spared_s:.1} s spared ({least_s:.1} to {most_s:.1}) predicted, {:.1} seen",
        base_s - seen_s
    );
    let errors = [(predicted - seen) / base, (base_s - seen_s - spared_s) / base_s];
    Ok((errors.map(|error| 100.0 * error.abs()), note))
}

/// Pages that came back, by the kernel's counters.
fn returns(counts: &Counts) -> Result<f64, Error> {
    RETURNS.iter().map(|counter| counts.get(counter)).sum()
}

impl Workload {
    fn run_in<'a>(
        &'a self,
        memory: &'a str,
        disks: &'a [&'a str],
        command: &'a [&'a str],
    ) -> ScriptRun<'a> {
        let (what, packages) = (self.what, self.packages);
        ScriptRun { what, memory, disks, packages, modules: &[], command }
    }
}

impl Gain {
    fn advised(session: &mut Session, recording: &str, more_kib: f64) -> Result<Self, Error> {
        let more = format!("+{:.0}m", more_kib / 1024.0);
        let words = ["advise", recording, "--ram", &more, "--json"];
        let text = session.terrace.run(&words, ADVISE_LIMIT)?.stdout;
        let all: Value =
            serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        Self::of(&all).ok_or_else(|| malformed(format!("advice: {text}")))
    }

    fn of(advice: &Value) -> Option<Self> {
        let size = advice["memory"]["sizes"].get(0)?;
        let pages = |name: &str| Some(size[name].as_f64()? / PAGE_BYTES);
        let seconds = |name: &str| Some(size["spared"][name].as_f64()? / 1e9);
        Some(Self {
            kept: [pages("kept_bytes")?, pages("kept_low_bytes")?],
            spared_s: [seconds("ns")?, seconds("low_ns")?, seconds("high_ns")?],
        })
    }
}

/// Makes the disk of the workload, once for all guests.
fn build(session: &mut Session, workload: &Workload) -> Result<(), Error> {
    let image = session.directory.file("set.img");
    let made = fs::File::create(&image).and_then(|file| file.set_len(DATA_BYTES));
    made.map_err(Error::io("make", Path::new(&image)))?;
    let disk = format!("data:file={image}");
    let words = [&["build.sh"], &workload.words[..2]].concat();
    boot(session, &workload.run_in(BUILDER, &[&disk], &words))
}

/// Runs the workload in a guest with so much memory; its recording is `out/set.trec` then.
fn run_with(session: &mut Session, workload: &Workload, memory: &str) -> Result<Counts, Error> {
    let data = format!("data:file={},{MODEL}", session.directory.file("set.img"));
    let words = [&["memory.sh"], &workload.words[..]].concat();
    counted(session, &workload.run_in(memory, &[&data, SWAP_DISK], &words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_has_pages_and_seconds() {
        let spared = serde_json::json!({ "ns": 2_000_000_000_u64, "low_ns": 0, "high_ns": 3e9 });
        let size =
            serde_json::json!({ "kept_bytes": 8192, "kept_low_bytes": 4096, "spared": spared });
        let advice = serde_json::json!({ "memory": { "sizes": [size] } });
        let gain = Gain::of(&advice).unwrap();
        assert_eq!((gain.kept, gain.spared_s), ([2.0, 1.0], [2.0, 0.0, 3.0]));
        let unproven = serde_json::json!({ "memory": { "sizes": [{ "kept_bytes": null }] } });
        assert!(Gain::of(&unproven).is_none());
    }
}

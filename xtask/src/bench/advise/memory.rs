//! What more memory would spare, said from a recording of a guest with little of it, against the
//! same work in guests that have it.
//!
//! Each workload uses sets of 0.6 to 1.5 GiB in an order from a seed (`guest/`). Every guest
//! records itself, so that all bear the recorder alike; the recording of the smallest one is read
//! for what more memory would keep. What came back is counted by each guest's kernel. The guest is
//! emulated: pages that come back are figures, and of times those that a modelled disk bounds.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::report::malformed;
use crate::error::Error;
use crate::vm;

/// The guest that is recorded, and those that show what more memory does.
const RECORDED: &str = "512M";
const LARGER: [&str; 2] = ["1G", "2G"];

/// The difference of returns may be so much of what the recorded guest had.
const ERROR_MAX_PERCENT: f64 = 10.0;

const TIMEOUT_S: &str = "900";
const EXPORT_LIMIT: Duration = Duration::from_secs(60);
const PAGE_BYTES: f64 = 4096.0;

const SCRIPTS: [(&str, &str); 2] =
    [("memory.sh", include_str!("guest/memory.sh")), ("set.py", include_str!("guest/set.py"))];
const DISKS: [&str; 2] = ["data:3G,model=hdd", "swap:3G,model=hdd"];

/// Kinds of pages: the word of the recording's series, and the kernel's counter of returns.
const KINDS: [(&str, &str); 2] =
    [("file", "workingset_refault_file"), ("swap", "workingset_refault_anon")];

/// What is done in each guest.
struct Workload {
    /// In words.
    what: &'static str,
    /// For the script: which sets, their MiB, how often a piece is used, and the skew.
    words: [&'static str; 4],
}

const WORKLOADS: [Workload; 1] =
    [Workload { what: "file set", words: ["file", "700", "3000", "2.5"] }];

/// What one guest's kernel counted, by name.
struct Counts(BTreeMap<String, f64>);

/// Pages that came back, by kind: all of them, and of those the ones that more memory keeps.
struct Recorded(BTreeMap<String, f64>);

/// Runs all workloads.
///
/// # Errors
/// When a guest fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    WORKLOADS.iter().try_for_each(|workload| predict(session, workload))
}

fn predict(session: &mut Session, workload: &Workload) -> Result<(), Error> {
    let small = play(session, workload, RECORDED)?;
    let recording = session.directory.file("out/set.trec");
    let recorded = Recorded::read(session, &recording)?;
    session.record.note(format!(
        "{}: {RECORDED} recorded for {:.0} s, {:.1} s of waiting for disks; {}",
        workload.what,
        small.get("up_us")? / 1e6,
        small.get("io_us")? / 1e6,
        small.returned()?
    ));
    for memory in LARGER {
        let large = play(session, workload, memory)?;
        let more_bytes = (large.get("memory_kib")? - small.get("memory_kib")?) * 1024.0;
        judge(session, (workload.what, memory), &recorded.without(more_bytes), (&small, &large))?;
    }
    Ok(())
}

/// The error of what was predicted by the pages still out, and a note with all counts.
fn judge(
    session: &mut Session,
    (what, memory): (&str, &str),
    predicted: &BTreeMap<&str, [f64; 2]>,
    (small, large): (&Counts, &Counts),
) -> Result<(), Error> {
    let (mut all, mut seen, mut base) = ([0.0; 2], 0.0, 0.0);
    for (kind, counter) in KINDS {
        let pages = predicted[kind];
        let (now, before) = (large.get(counter)?, small.get(counter)?);
        all = [all[0] + pages[0], all[1] + pages[1]];
        (seen, base) = (seen + now, base + before);
        if before > 0.0 {
            session.record.note(format!(
                "{what}, {memory}: {kind}: of {before} pages that came back {:.0} are predicted by \
                 the pages still out, {:.0} by all that left; {now} seen",
                pages[0], pages[1]
            ));
        }
    }
    session.record.note(format!(
        "{what}, {memory}: {:.1} s of waiting for disks, {:.0} s in all",
        large.get("io_us")? / 1e6,
        large.get("up_us")? / 1e6
    ));
    let error = 100.0 * (all[0] - seen).abs() / base;
    let row = format!("{what}, {RECORDED} to {memory}: error of pages that come back");
    let series = Series::new("terrace", &[error]);
    session.record.add_alone(&row, "%", series, Some(Target::AtMost(ERROR_MAX_PERCENT)))
}

impl Counts {
    fn read(text: &str) -> Result<Self, Error> {
        let pair = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        let all = text.lines().map(|line| pair(line).ok_or_else(|| malformed(line.to_owned())));
        all.collect::<Result<_, _>>().map(Self)
    }

    fn get(&self, name: &str) -> Result<f64, Error> {
        self.0.get(name).copied().ok_or_else(|| malformed(format!("no {name} of the guest")))
    }

    fn returned(&self) -> Result<String, Error> {
        let of = |(kind, counter): (&str, &str)| Ok(format!("{kind} {}", self.get(counter)?));
        let kinds = KINDS.into_iter().map(of).collect::<Result<Vec<_>, Error>>()?;
        Ok(format!("pages that came back: {}", kinds.join(", ")))
    }
}

impl Recorded {
    /// The growth of the series of returns.
    fn read(session: &Session, recording: &str) -> Result<Self, Error> {
        let words = ["export", recording, "--to", "json", "--no-redact"];
        let text = session.terrace.run(&words, EXPORT_LIMIT)?.stdout;
        let all = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        Self::of(&all).ok_or_else(|| malformed("a recording without series".to_owned()))
    }

    fn of(export: &Value) -> Option<Self> {
        let series = export["series"].as_array()?.iter();
        let growth = |series: &Value| {
            let name = series["name"].as_str()?.strip_prefix("trace.returns.")?;
            let steps = series["steps"].as_array()?;
            Some((name.to_owned(), steps.last()?[1].as_f64()?))
        };
        Some(Self(series.filter_map(growth).collect()))
    }

    /// By kind the pages that would still come back with so much more memory: by the pages that
    /// were still out, and by all that left.
    fn without(&self, more_bytes: f64) -> BTreeMap<&'static str, [f64; 2]> {
        let of = |kind: &str, order: &str| {
            let prefix = format!("{kind}.{order}_lt_");
            let class = |(name, bytes): (&String, &f64)| {
                let kib = name.strip_prefix(&prefix)?.strip_suffix("kib")?.parse::<f64>().ok()?;
                (kib * 1024.0 <= more_bytes).then_some(*bytes)
            };
            let kept: f64 = self.0.iter().filter_map(class).sum();
            let all = self.0.get(&format!("{kind}.came_back_bytes")).copied().unwrap_or(0.0);
            (all - kept) / PAGE_BYTES
        };
        KINDS.map(|(kind, _)| (kind, [of(kind, "still_out"), of(kind, "left")])).into()
    }
}

/// Runs the workload in a guest with so much memory; its recording is `out/set.trec` then.
fn play(session: &mut Session, workload: &Workload, memory: &str) -> Result<Counts, Error> {
    let (scripts, out) = (session.directory.file("scripts"), session.directory.file("out"));
    for folder in [&scripts, &out] {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(Error::io("make", Path::new(folder)))?;
    }
    for (name, text) in SCRIPTS {
        let path = format!("{scripts}/{name}");
        fs::write(&path, text).map_err(Error::io("write", Path::new(&path)))?;
    }
    let mut words = Vec::new();
    let mut add = |option: &str, value: &str| words.extend([option.to_owned(), value.to_owned()]);
    DISKS.iter().for_each(|disk| add("--disk", disk));
    add("--mem", memory);
    add("--timeout", TIMEOUT_S);
    add("--bin", &session.terrace.program.to_string_lossy());
    add("--dir", &scripts);
    add("--out", &out);
    words.extend(["--", "bash", "memory.sh"].map(str::to_owned));
    words.extend(workload.words.map(str::to_owned));
    let shown: Vec<&str> =
        words.iter().map(String::as_str).filter(|it| !it.contains('/')).collect();
    session.record.command(format!("cargo xtask vm {}", shown.join(" ")));
    eprintln!("{}: {memory}", workload.what);
    let status = vm::run(&words);
    if status != 0 {
        return Err(Error::Failed(format!("the guest ended with {status}")));
    }
    let results = Path::new(&out).join("results");
    Counts::read(&fs::read_to_string(&results).map_err(Error::io("read", &results))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_guest_are_counts() {
        let counts = Counts::read("pswpin 3\nup_us 2.5\n").unwrap();
        assert_eq!(counts.get("up_us").unwrap(), 2.5);
        assert!(counts.get("x").is_err());
        assert!(Counts::read("pswpin\n").is_err());
    }

    #[test]
    fn classes_up_to_the_memory_that_is_added_are_kept() {
        let series = |name: &str, pages: u64| {
            serde_json::json!({ "name": format!("trace.returns.{name}"),
                                "steps": [[0, 0], [9, pages * 4096]] })
        };
        let export = serde_json::json!({ "series": [
            series("file.came_back_bytes", 100),
            series("file.still_out_lt_1024kib", 30),
            series("file.still_out_lt_2048kib", 50),
            series("file.left_lt_2048kib", 40),
        ] });
        let recorded = Recorded::of(&export).unwrap();
        assert_eq!(recorded.without(2e6)["file"], [70.0, 100.0]);
        assert_eq!(recorded.without(2048.0 * 1024.0)["file"], [20.0, 60.0]);
        assert_eq!(recorded.without(2e9)["swap"], [0.0, 0.0]);
    }
}

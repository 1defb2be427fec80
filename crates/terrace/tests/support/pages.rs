//! Recordings that are made for a page, and `terrace view` while it serves one: asked to end as by
//! Ctrl-C, or killed with the test that failed.

use super::{Ran, TERRACE, terminate};
use model::recording::{Facts, RecordingOutcome, Schema, SeriesKind, Span, Subject, Tick, Who};
use record::file::Writer;
use record::{Registry, Row};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A recording of real causes that the verdict suite made.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/recordings")
        .join(format!("{name}.trec"))
}

/// Writes a recording at 100 Hz with `series` counters that grow by noise in every sample.
pub fn made(path: &Path, series: u32, samples: u64) {
    let mut registry = Registry::new();
    let ids: Vec<u32> = (0..series)
        .map(|number| {
            let name = format!("disk.made{number}.read_bytes");
            registry.id(&name, "bytes", SeriesKind::Counter, "/proc/diskstats")
        })
        .map(Option::unwrap)
        .collect();
    let mut random = testkit::Random(7);
    let mut counts = vec![0u64; ids.len()];
    let rows = (0..samples).map(|sample| {
        let mut row = Row::default();
        for (id, count) in ids.iter().zip(&mut counts) {
            *count += random.below(4096);
            row.count(*id, *count);
        }
        let due_ns = sample * 10_000_000;
        let at_ns = due_ns + random.below(100_000);
        (Tick { due_ns, at_ns }, row)
    });
    written(path, registry.schemas(), rows);
}

/// Writes a recording at 10 Hz of a command that read so many bytes between each two samples.
pub fn reading(path: &Path, growths: &[u64]) {
    let mut registry = Registry::new();
    let id = registry.id("tree.read_chars", "bytes", SeriesKind::Counter, "/proc/*/io");
    let (id, mut all) = (id.unwrap(), 0);
    let rows = (0..).zip([0].iter().chain(growths)).map(|(sample, grown)| {
        all += grown;
        let mut row = Row::default();
        row.count(id, all);
        let at_ns = sample * 100_000_000;
        (Tick { due_ns: at_ns, at_ns }, row)
    });
    written(path, registry.schemas(), rows);
}

/// Writes a recording of three minutes of a machine that is quiet, but for twelve seconds.
pub fn standing_out(path: &Path) {
    let mut registry = Registry::new();
    let mut id = |name: &str| registry.id(name, "ns", SeriesKind::Counter, "/proc/stat").unwrap();
    let (user, idle) = (id("stat.cpu.user_ns"), id("stat.cpu.idle_ns"));
    let mut random = testkit::Random(11);
    let mut used = 0;
    let second_by_second = (0..=180u64).map(|second| {
        let at_ns = second * 1_000_000_000;
        let mut row = Row::default();
        row.count(user, used);
        row.count(idle, (at_ns * 2).saturating_sub(used));
        let is_busy = (100..112).contains(&second);
        used += if is_busy { 1_990_000_000 } else { 20_000_000 + random.below(20_000_000) };
        (Tick { due_ns: at_ns, at_ns }, row)
    });
    let rows: Vec<(Tick, Row)> = second_by_second.collect();
    let facts = Facts {
        processors: 2,
        started_unix_ns: 1_700_000_000_000_000_000,
        subject: Subject::Machine,
        ..Facts::default()
    };
    written_with(path, &facts, registry.schemas(), rows.into_iter());
}

/// Writes a recording of `count` series whose names would be markup and end with `name`, with
/// values that no number of JavaScript holds, at times that no clock shows.
pub fn hostile(path: &Path, count: u32, name: &str) {
    let schemas: Vec<Schema> = (0..count)
        .map(|id| Schema {
            id,
            name: format!("</script><img src=x onerror=alert({id})>{name}"),
            unit: "<b>".to_owned(),
            kind: if id % 2 == 0 { SeriesKind::Gauge } else { SeriesKind::Counter },
            source: "<!--".to_owned(),
            refresh_ns: Some(u64::MAX),
        })
        .collect();
    let values = [i64::MAX, i64::MIN + 1, 0, -1];
    let rows = values.into_iter().map(|value| {
        let mut row = Row::default();
        (0..count.min(100)).for_each(|id| row.set(id, value));
        let tick = Tick { due_ns: u64::MAX / 2, at_ns: u64::MAX - 9 };
        (tick, row)
    });
    written(path, &schemas, rows);
}

/// Writes a recording that says who did it, a browser beside a backup, as the recorder writes one:
/// what is known of a sample comes before it.
pub fn with_who(path: &Path) {
    with_who_in_two(path, || ());
}

/// The same; when it has written 5 s of it, so that a reader sees them, it calls `wait`.
pub fn with_who_in_two(path: &Path, wait: impl FnOnce()) {
    let mut wait = Some(wait);
    let whole = testkit::who_recording();
    let mut writer = Writer::new(File::create(path).unwrap(), &whole.facts).unwrap();
    let schemas: Vec<Schema> =
        (0..).zip(&whole.series).map(|(id, it)| Schema { id, ..it.schema.clone() }).collect();
    let Who { processes, files, .. } = whole.who.clone();
    let mut news = Who { processes, files, ..Who::default() };
    for (sample, tick) in (0..).zip(&whole.ticks) {
        let is_of_it = |to_ns: u64| to_ns == tick.at_ns;
        news.rows.extend(whole.who.rows.iter().filter(|row| is_of_it(row.to_ns)));
        news.file_rows.extend(whole.who.file_rows.iter().filter(|row| is_of_it(row.to_ns)));
        writer.who(&std::mem::take(&mut news)).unwrap();
        let mut row = Row::default();
        for (schema, series) in schemas.iter().zip(&whole.series) {
            row.set(schema.id, series.at(sample).unwrap());
        }
        writer.sample(*tick, &schemas, &row).unwrap();
        if sample == 25 {
            writer.flush().unwrap();
            wait.take().unwrap()();
        }
    }
    writer.finish(&whole.facts, &whole.outcome.unwrap()).unwrap();
}

/// Writes a recording of a copy at 10 Hz: the disk wrote so many megabytes between each two
/// samples, after `late` samples in which it only read. A mark `copy begins` is at `late`.
pub fn copied(path: &Path, late: u64, megabytes: &[u64]) {
    use SeriesKind::{Counter, Gauge};
    const MEGABYTE: u64 = 1_000_000;
    let mut registry = Registry::new();
    let mut id = |name: &str, kind| registry.id(name, "bytes", kind, "made").unwrap();
    let read = ["copy.read_bytes", "disk.vda.read_bytes"].map(|name| id(name, Counter));
    let written = ["copy.written_bytes", "copy.durable_bytes", "disk.vda.write_bytes"]
        .map(|name| id(name, Counter));
    let levels = [
        ("meminfo.MemTotal", 2_000),
        ("meminfo.Active_file", 700),
        ("meminfo.Inactive_file", 400),
        ("meminfo.Writeback", 0),
    ]
    .map(|(name, megabytes)| (id(name, Gauge), megabytes));
    let (dirty, free) = (id("meminfo.Dirty", Gauge), id("meminfo.MemFree", Gauge));
    let facts = Facts::default();
    let mut writer = Writer::new(File::create(path).unwrap(), &facts).unwrap();
    let mut all = 0;
    let growths = std::iter::repeat_n(&0, late as usize + 1).chain(megabytes);
    for (sample, grown) in (0u64..).zip(growths) {
        all += grown * MEGABYTE;
        let mut row = Row::default();
        read.iter().for_each(|id| row.count(*id, sample * 10 * MEGABYTE));
        written.iter().for_each(|id| row.count(*id, all));
        levels.iter().for_each(|(id, level)| row.count(*id, level * MEGABYTE));
        row.count(dirty, (sample * 10 * MEGABYTE).saturating_sub(all).min(300 * MEGABYTE));
        row.count(free, 200 * MEGABYTE);
        let at_ns = sample * 100_000_000;
        writer.sample(Tick { due_ns: at_ns, at_ns }, registry.schemas(), &row).unwrap();
    }
    let start_ns = late * 100_000_000;
    let text = "copy begins".to_owned();
    writer.span(&Span { kind: "mark".to_owned(), text, start_ns, end_ns: start_ns }).unwrap();
    let ended_ns = (late + megabytes.len() as u64) * 100_000_000;
    let outcome = RecordingOutcome { ended_ns, ..RecordingOutcome::default() };
    writer.finish(&facts, &outcome).unwrap();
}

/// Writes a recording of these series and rows.
fn written(path: &Path, schemas: &[Schema], rows: impl Iterator<Item = (Tick, Row)>) {
    written_with(path, &Facts::default(), schemas, rows);
}

fn written_with(
    path: &Path,
    facts: &Facts,
    schemas: &[Schema],
    rows: impl Iterator<Item = (Tick, Row)>,
) {
    let mut writer = Writer::new(File::create(path).unwrap(), facts).unwrap();
    let mut ended_ns = 0;
    for (tick, row) in rows {
        ended_ns = tick.at_ns;
        writer.sample(tick, schemas, &row).unwrap();
    }
    let outcome = RecordingOutcome { ended_ns, ..RecordingOutcome::default() };
    writer.finish(facts, &outcome).unwrap();
}

/// `terrace view`, serving.
pub struct Served {
    child: Option<Child>,
    pub address: String,
}

impl Served {
    /// Starts it without a browser and waits for its address.
    pub fn start(words: &[&str]) -> Self {
        let mut command = Command::new(TERRACE);
        command.args(["view", "--no-browser"]).args(words);
        Self::of(command)
    }

    /// Starts `command`, which is one.
    pub fn of(mut command: Command) -> Self {
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut address = String::new();
        let out = child.stdout.as_mut().unwrap();
        BufReader::new(out).read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        if !address.starts_with("http://127.0.0.1:") {
            panic!("{address}: {:?}", child.wait_with_output());
        }
        Self { child: Some(child), address }
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Ends it as Ctrl-C does.
    pub fn end(mut self) -> Ran {
        terminate(self.child.take().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Only where a test failed before its end.
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

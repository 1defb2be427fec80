//! Figures of the file format on this machine: bytes a sample while something runs, and how long an
//! hour and a day take to read, all or a minute of them. They are printed, not judged, so all are
//! `#[ignore]`d.
//!
//! `cargo test --release -p record --test file_figures -- --ignored --nocapture`, with a
//! compile beside it. docs/recording.md keeps what was seen.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test program")]

use model::recording::{Facts, ProcessFigure, Recording, RecordingOutcome, SeriesKind, Tick};
use record::{Registry, Row, file};
use std::io::Cursor;
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(100);

/// The clock tick of /proc/stat, as nearly everywhere.
const TICK_NS: u64 = 10_000_000;

/// How long the kernel's counters are sampled, at 10 Hz.
const SECONDS: u64 = 30;

#[test]
#[ignore = "a measurement of 30 s"]
fn bytes_of_a_sample() {
    let mut registry = Registry::new();
    let mut row = Row::default();
    let mut writer = file::Writer::new(Vec::new(), &Facts::default()).unwrap();
    let start = Instant::now();
    let mut with_schema = 0;
    for number in 0..SECONDS * 10 {
        let due = PERIOD * number as u32;
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        let tick = Tick { due_ns: due.as_nanos() as u64, at_ns: start.elapsed().as_nanos() as u64 };
        sources(&mut registry, &mut row);
        writer.sample(tick, registry.schemas(), &row).unwrap();
        if number == 0 {
            writer.flush().unwrap();
            with_schema = writer.bytes();
        }
    }
    writer.flush().unwrap();
    let rows = SECONDS * 10 - 1;
    println!("{} values in each of {rows} samples", registry.schemas().len());
    println!("the names and the first sample: {with_schema} bytes");
    let rest = writer.bytes() - with_schema;
    println!("each other sample: {:.1} bytes", rest as f64 / rows as f64);
}

/// Ten minutes of a made desktop: ten rows a sample, of all once a second, programs that start;
/// times to the nanosecond, and in whole microseconds whose rest is in the next row.
#[test]
#[ignore = "a measurement"]
fn bytes_of_who_did_it() {
    const SAMPLES: u64 = 6_000;
    for unit_ns in [1, 1_000] {
        let mut made = testkit::MadeWho::new(1);
        let mut writer = file::Writer::new(Vec::new(), &Facts::default()).unwrap();
        let (mut random, mut rests) = (testkit::Random(1), std::collections::HashMap::new());
        let (mut rows, mut figures) = (0, 0);
        for number in 0..SAMPLES {
            let due_ns = number * PERIOD.as_nanos() as u64;
            let tick = Tick { due_ns, at_ns: due_ns + random.below(200_000) };
            let mut news = made.sample(tick.at_ns);
            for row in &mut news.rows {
                for figure in ProcessFigure::ALL.iter().filter(|figure| figure.unit() == "ns") {
                    let rest: &mut u64 = rests.entry((row.process, *figure)).or_default();
                    let used_ns = row.get(*figure) + *rest;
                    *rest = used_ns % unit_ns;
                    row.figures[*figure as usize] = used_ns - *rest;
                }
            }
            rows += news.rows.len();
            let all = news.rows.iter().flat_map(|row| row.figures);
            figures += all.filter(|figure| *figure != 0).count();
            writer.who(&news).unwrap();
            writer.sample(tick, &[], &Row::default()).unwrap();
        }
        let bytes = writer.finish(&Facts::default(), &RecordingOutcome::default()).unwrap();
        let of_sample = |count: usize| count as f64 / SAMPLES as f64;
        println!("{:.1} rows a sample, {:.1} figures", of_sample(rows), of_sample(figures));
        println!("in {unit_ns} ns: {:.1} bytes a sample", of_sample(bytes.len()));
        let start = Instant::now();
        let read = file::read(&bytes[..]).unwrap();
        println!("{} rows read in {:?}", read.who.rows.len(), start.elapsed());
    }
}

/// Reads what the recorder reads, with the names it uses or nearly so.
fn sources(registry: &mut Registry, row: &mut Row) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let mut set = |name: &str, unit: &str, value: u64| {
        if let Some(id) = registry.id(name, unit, SeriesKind::Counter, "/proc") {
            row.count(id, value);
        }
    };
    for line in read("/proc/vmstat").lines() {
        if let Some((name, value)) = line.split_once(' ') {
            set(&format!("vmstat.{name}"), "count", value.parse().unwrap_or(0));
        }
    }
    for line in read("/proc/meminfo").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let value: u64 = words[1].parse().unwrap_or(0);
        set(&format!("meminfo.{}", words[0]), "bytes", value * 1024);
    }
    for line in read("/proc/stat").lines() {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let name = words.next().unwrap_or_default();
        let unit_ns = if name.starts_with("cpu") { TICK_NS } else { 1 };
        for (field, value) in words.take(10).enumerate() {
            let value: u64 = value.parse().unwrap_or(0);
            set(&format!("stat.{name}.{field}"), "ns", value * unit_ns);
        }
    }
    for line in read("/proc/diskstats").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        for (field, value) in words.iter().enumerate().skip(3) {
            let scale = match field {
                5 | 9 | 16 => 512,
                6 | 10 | 12 | 13 | 17 | 19 => 1_000_000,
                _ => 1,
            };
            let value: u64 = value.parse().unwrap_or(0);
            set(&format!("disk.{}.{field}", words[2]), "count", value * scale);
        }
    }
    for name in ["cpu", "memory", "io"] {
        for line in read(&format!("/proc/pressure/{name}")).lines() {
            let total = line.rsplit_once("total=").map_or("0", |(_, total)| total);
            let name = format!("pressure.{name}.{}", line.split(' ').next().unwrap_or_default());
            set(&name, "ns", total.parse().unwrap_or(0) * 1000);
        }
    }
    processes(&read, &mut set);
    // Columns that hardly move fill the row up to the size that the target names.
    for zone in 0..60 {
        for order in 0..11 {
            set(&format!("buddy.{zone}.{order}"), "count", zone * order);
        }
    }
}

/// Sums over all processes, as the tree of a whole machine has.
fn processes(read: &impl Fn(&str) -> String, set: &mut impl FnMut(&str, &str, u64)) {
    let mut sums = [0u64; 16];
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let text = read(&format!("/proc/{pid}/schedstat")) + &read(&format!("/proc/{pid}/io"));
        let numbers = text.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
        for (sum, number) in sums.iter_mut().zip(numbers) {
            *sum += number;
        }
    }
    for (index, sum) in sums.iter().enumerate() {
        set(&format!("tree.{index}"), "count", *sum);
    }
}

#[test]
#[ignore = "a measurement"]
fn an_hour_and_a_day_are_read() {
    for hours in [1, 24] {
        let bytes = made(hours);
        println!("{hours} h: {} bytes", bytes.len());
        for _ in 0..3 {
            let start = Instant::now();
            let all = file::read(&bytes[..]).unwrap();
            let taken = start.elapsed();
            println!("{} of all: {taken:?} {:?}", size_of(&all), all.damage);
        }
        let end_ns = hours * 36_000 * PERIOD.as_nanos() as u64;
        for from_ns in [end_ns / 10, end_ns - end_ns / 10] {
            let start = Instant::now();
            let outline = file::Outline::read(Cursor::new(&bytes)).unwrap();
            let walked = start.elapsed();
            let part = outline.part(from_ns, from_ns + 60_000_000_000).unwrap();
            let taken = start.elapsed();
            println!("{} for a minute: {taken:?}, of it the walk {walked:?}", size_of(&part));
        }
    }
}

fn size_of(recording: &Recording) -> String {
    let steps = recording.series.iter().map(|series| series.steps.len());
    format!("{} samples, {} steps", recording.ticks.len(), steps.sum::<usize>())
}

/// Where [`a_busy_day_is_written`] puts it, to be explained by the program itself.
const BUSY_DAY: &str = "TERRACE_BUSY_DAY";

/// A day at 10 Hz of 800 values, of which 120 change with each sample: times to the nanosecond
/// and in clock ticks, pages, sectors, levels.
#[test]
#[ignore = "writes 300 MB for a measurement"]
fn a_busy_day_is_written() {
    let Some(path) = std::env::var_os(BUSY_DAY) else {
        println!("{BUSY_DAY} names no file");
        return;
    };
    let mut registry = Registry::new();
    let mut row = Row::default();
    let names = (0..800).map(|number| match number {
        0 => "tree.run_ns".to_owned(),
        1 => "stat.cpu.user_ns".to_owned(),
        2 => "tree.threads".to_owned(),
        _ => format!("vmstat.s{number}"),
    });
    let kind = |number| match number % 6 {
        2 => SeriesKind::Gauge,
        _ => SeriesKind::Counter,
    };
    let ids: Vec<u32> = (0..)
        .zip(names)
        .filter_map(|(number, name)| registry.id(&name, "count", kind(number), "x"))
        .collect();
    let file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let facts = Facts { processors: 2, ..Facts::default() };
    let mut writer = file::Writer::new(file, &facts).unwrap();
    let (mut state, mut values) = (1u64, vec![1i64; ids.len()]);
    for number in 0..24 * 36_000u64 {
        for (index, value) in values.iter_mut().take(120).enumerate() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let random = (state >> 40) as i64;
            match index % 6 {
                0 => *value += random % 90_000_000 + 1,
                1 => *value += (random % 9 + 1) * 10_000_000,
                2 => *value = random % 60,
                3 => *value += random % 5_000 + 1,
                4 => *value += (random % 20_000 + 1) * 512,
                _ => *value += (random % 300 + 1) * 4096,
            }
        }
        for (id, value) in ids.iter().zip(&values) {
            row.set(*id, *value);
        }
        let due_ns = number * PERIOD.as_nanos() as u64;
        let at_ns = due_ns + (state >> 48);
        let tick = Tick { due_ns, at_ns };
        writer.sample(tick, registry.schemas(), &row).unwrap();
    }
    let outcome = RecordingOutcome { ended_ns: 86_400_000_000_000, ..RecordingOutcome::default() };
    writer.finish(&facts, &outcome).unwrap();
}

/// So many hours of 800 values at 10 Hz: 100 of them change with each sample, 100 now and
/// then, as during a compile.
fn made(hours: u64) -> Vec<u8> {
    let mut registry = Registry::new();
    let mut row = Row::default();
    let ids: Vec<u32> = (0..800)
        .filter_map(|number| registry.id(&format!("s.{number}"), "count", SeriesKind::Counter, "x"))
        .collect();
    let mut writer = file::Writer::new(Vec::new(), &Facts::default()).unwrap();
    let (mut state, mut values) = (1u64, vec![0i64; ids.len()]);
    for number in 0..hours * 36_000 {
        for index in 0..200 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if index < 100 || number.is_multiple_of(16) {
                values[index * 4] += (state >> 54) as i64 * 4096;
            }
        }
        for (id, value) in ids.iter().zip(&values) {
            row.set(*id, *value);
        }
        let due_ns = number * PERIOD.as_nanos() as u64;
        let tick = Tick { due_ns, at_ns: due_ns + (state >> 48) };
        writer.sample(tick, registry.schemas(), &row).unwrap();
    }
    writer.finish(&Facts::default(), &RecordingOutcome::default()).unwrap()
}

//! fio: the JSON of a whole run, and the logs that it writes while it runs.
//!
//! The JSON has sums and percentiles of each job and no course in time, so it becomes two
//! samples, begin and end. A log has one line for each interval and direction.

use super::bounded::{EACH, each};
use super::timeline::FigureKind::{Growth, Level, Share};
use super::timeline::{Figure, Timeline};
use model::recording::Recording;
use serde_json::Value;

const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// Percentiles that are kept.
const PERCENTILES: [Figure; 3] = [
    (&["50.000000"], "p50_ns", Level("ns", 1.0)),
    (&["99.000000"], "p99_ns", Level("ns", 1.0)),
    (&["99.900000"], "p999_ns", Level("ns", 1.0)),
];

/// Figures of a disk, over the whole run.
const DISK: [Figure; 8] = [
    (&["read_ios"], "reads", Growth("count", 1.0)),
    (&["write_ios"], "writes", Growth("count", 1.0)),
    (&["read_merges"], "reads_merged", Growth("count", 1.0)),
    (&["write_merges"], "writes_merged", Growth("count", 1.0)),
    (&["read_ticks"], "read_ns", Growth("ns", 1e6)),
    (&["write_ticks"], "write_ns", Growth("ns", 1e6)),
    (&["in_queue"], "weighted_ns", Growth("ns", 1e6)),
    (&["util"], "io_ns", Share(100.0)),
];

/// The most lines of a log, 150 MB in memory: 70 minutes of one line a millisecond.
const MAX_LOG_LINES: usize = 4 << 20;

/// Reads the JSON of `fio --output-format=json`.
pub fn read(text: &str) -> Result<Recording, String> {
    let runtime_ms = |job: &Value| {
        let each = DIRECTIONS.iter().filter_map(|way| job[*way]["runtime"].as_u64());
        each.max().unwrap_or(0)
    };
    let (mut longest_ms, mut ended_ms) = (0, 0);
    each(text, &["jobs", EACH], |job| {
        longest_ms = runtime_ms(&job).max(longest_ms);
    })?;
    each(text, &["timestamp_ms"], |ended| {
        ended_ms = ended.as_u64().unwrap_or(0);
    })?;
    let mut timeline = Timeline::new("fio");
    timeline.facts().started_unix_ns =
        ended_ms.saturating_sub(longest_ms).saturating_mul(1_000_000);
    if timeline.report(longest_ms.saturating_mul(1_000_000)) {
        each(text, &["jobs", EACH], |job| take(&mut timeline, &job))?;
        each(text, &["disk_util", EACH], |disk| {
            take_disk(&mut timeline, &disk);
        })?;
    }
    timeline.finish()
}

fn take(timeline: &mut Timeline, job: &Value) {
    let name = word(job["jobname"].as_str().unwrap_or("job"));
    for way in DIRECTIONS {
        let part = &job[way];
        let requests = part["total_ios"].as_f64().unwrap_or(0.0);
        if requests == 0.0 {
            continue;
        }
        let series = |what: &str| format!("fio.{name}.{way}_{what}");
        timeline.grew(&series("requests"), "count", requests);
        timeline.grew(&series("bytes"), "bytes", part["io_bytes"].as_f64().unwrap_or(0.0));
        if let Some(mean) = part["lat_ns"]["mean"].as_f64() {
            timeline.stood_at(&series("mean_ns"), "ns", mean);
        }
        let percentiles = &part["clat_ns"]["percentile"];
        timeline.take(&series(""), &PERCENTILES, |theirs| percentiles[theirs].as_f64());
    }
}

fn take_disk(timeline: &mut Timeline, disk: &Value) {
    if let Some(device) = disk["name"].as_str() {
        timeline.take(&format!("disk.{device}."), &DISK, |theirs| disk[theirs].as_f64());
    }
}

/// Reads a log: `time_ms, value, direction, block size, ...`. What the values are stands in
/// the file's name: `x_bw.1.log` KiB/s, `x_iops.1.log` requests a second, `x_lat.1.log`,
/// `x_clat.1.log` and `x_slat.1.log` nanoseconds.
pub fn read_log(text: &str, file: &str) -> Result<Recording, String> {
    let kind = ["bw", "iops", "clat", "slat", "lat"]
        .into_iter()
        .find(|kind| file.contains(&format!("_{kind}.")))
        .ok_or("the name of a fio log says what it holds (NAME_bw.1.log), and this one does not")?;
    let path = file.split_once(&format!("_{kind}.")).map_or("job", |(path, _)| path);
    let name = word(path.rsplit('/').next().unwrap_or(path));
    let all = text.lines().filter_map(numbers);
    let mut lines: Vec<[u64; 3]> = all.take(MAX_LOG_LINES + 1).collect();
    if lines.len() > MAX_LOG_LINES {
        return Err(format!(
            "it has more than {MAX_LOG_LINES} lines; log_avg_msec of fio makes fewer"
        ));
    }
    // Directions are told one after another for each interval.
    lines.sort_by_key(|line| line[0]);
    let mut timeline = Timeline::new("fio");
    for at_once in lines.chunk_by(|one, other| one[0] == other[0]) {
        if !timeline.report(at_once[0][0].saturating_mul(1_000_000)) {
            continue;
        }
        for [_, value, direction] in at_once {
            let Some(way) = DIRECTIONS.get(*direction as usize) else {
                continue;
            };
            let series = |what: &str| format!("fio.{name}.{way}_{what}");
            let value = *value as f64;
            match kind {
                "bw" => timeline.ran_at(&series("bytes"), "bytes", value * 1024.0),
                "iops" => timeline.ran_at(&series("requests"), "count", value),
                _ => timeline.stood_at(&series(&format!("{kind}_ns")), "ns", value),
            }
        }
    }
    timeline.finish()
}

/// The first three numbers of a line of a log.
pub fn numbers(line: &str) -> Option<[u64; 3]> {
    let mut words = line.split(',').map(|word| word.trim().parse().ok());
    Some([words.next()??, words.next()??, words.next()??])
}

/// A job's name as a part of a series' name.
fn word(name: &str) -> String {
    let plain = |sign: char| match sign {
        sign if sign.is_alphanumeric() || sign == '-' => sign,
        _ => '_',
    };
    name.chars().take(64).map(plain).collect()
}

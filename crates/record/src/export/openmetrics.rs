//! A recording as OpenMetrics text, with its time stamps: the form that Prometheus
//! imports as history (`promtool tsdb create-blocks-from openmetrics`).
//!
//! Names follow their customs: base units (seconds, bytes), `_total` for counters, and what
//! there are several of (disks, areas, groups, processors) as a label.

use super::{Cursor, Exporter, decimal, finish};
use crate::Result;
use model::recording::{Recording, Schema, SeriesKind, limited_group, path_in_source};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Families whose second word is a name of this machine, with the label that it becomes.
const LABELLED: [(&str, &str); 6] = [
    ("disk", "device"),
    ("zram", "device"),
    ("swap", "area"),
    ("numa", "node"),
    ("zone", "node"),
    ("buddy", "node"),
];

/// What one series is called there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    family: String,
    label: Option<(&'static str, String)>,
}

/// A family for each series or kind of device, a line for each value that changed.
#[derive(Clone, Copy, Debug)]
pub struct OpenMetrics;

impl Exporter for OpenMetrics {
    fn export(&self, recording: &Recording, sink: &mut dyn Write) -> Result<()> {
        finish(write(recording, sink), sink)
    }
}

fn write(recording: &Recording, sink: &mut dyn Write) -> io::Result<()> {
    let mut families: BTreeMap<String, Vec<(Name, usize)>> = BTreeMap::new();
    for (index, series) in recording.series.iter().enumerate() {
        let name = named(&series.schema);
        families.entry(name.family.clone()).or_default().push((name, index));
    }
    let mut text = String::new();
    for (family, mut members) in families {
        members.sort();
        members.dedup_by(|one, other| one.0 == other.0);
        text.clear();
        let schema = &recording.series[members[0].1].schema;
        describe(&mut text, &family, schema);
        for (name, index) in &members {
            values(&mut text, name, *index, recording);
        }
        sink.write_all(text.as_bytes())?;
    }
    sink.write_all(b"# EOF\n")
}

fn describe(text: &mut String, family: &str, schema: &Schema) {
    let kind = match schema.kind {
        SeriesKind::Counter => "counter",
        SeriesKind::Gauge => "gauge",
    };
    let _ = writeln!(text, "# TYPE {family} {kind}");
    if let Some(unit) = unit(schema) {
        let _ = writeln!(text, "# UNIT {family} {unit}");
    }
    let _ = writeln!(text, "# HELP {family} {}", escaped(&schema.source));
}

/// The lines of one series: the value at each sample at which it was there.
fn values(text: &mut String, name: &Name, index: usize, recording: &Recording) {
    let series = &recording.series[index];
    let suffix = match series.schema.kind {
        SeriesKind::Counter => "_total",
        SeriesKind::Gauge => "",
    };
    let labels = name
        .label
        .as_ref()
        .map_or(String::new(), |(key, value)| format!("{{{key}=\"{}\"}}", escaped(value)));
    let started_ns = recording.facts.started_unix_ns;
    let mut cursor = Cursor::new(series);
    let mut last = None;
    for (sample, tick) in (0..).zip(&recording.ticks) {
        let value = cursor.value(sample);
        // Most readers of the format take two samples within a millisecond for one.
        let at_ms = (started_ns + tick.at_ns) / 1_000_000;
        let (Some(value), true) = (value, last != Some(at_ms)) else {
            continue;
        };
        // A counter below 0 is against the format; none of ours should be.
        if series.schema.kind == SeriesKind::Counter && value < 0 {
            continue;
        }
        last = Some(at_ms);
        let value = in_base_unit(value, &series.schema.unit);
        let family = &name.family;
        let _ = writeln!(text, "{family}{suffix}{labels} {value} {}", decimal(at_ms, 3));
    }
}

/// `disk.vda.read_bytes` is `terrace_disk_read_bytes` of the device `vda`.
fn named(schema: &Schema) -> Name {
    let words: Vec<&str> = schema.name.split('.').collect();
    let labelled = LABELLED.iter().find(|(word, _)| words[0] == *word);
    let level = words[0].strip_prefix("group").filter(|level| is_number(level));
    let processor = words.get(1).and_then(|word| word.strip_prefix("cpu"));
    let (words, label) = match (labelled, level, processor) {
        // A device's name may hold dots itself: the last word is the series.
        (Some((word, label)), ..) if words.len() > 2 => {
            let middle = words[1..words.len() - 1].join(".");
            (vec![*word, words[words.len() - 1]], Some((*label, middle)))
        }
        (_, Some(level), _) => {
            let rest = [&["group"], &words[1..]].concat();
            (rest, Some(("level", level.to_owned())))
        }
        _ if let Some((number, _)) = limited_group(&schema.name) => {
            let path = path_in_source(&schema.source);
            let group = path.map_or_else(|| number.to_string(), str::to_owned);
            ([&["limited_group"], &words[1..]].concat(), Some(("group", group)))
        }
        (_, _, Some(number)) if words[0] == "stat" && is_number(number) => {
            let rest = [&["stat", "each_cpu"], &words[2..]].concat();
            (rest, Some(("cpu", number.to_owned())))
        }
        _ => (words, None),
    };
    let mut family = String::from("terrace");
    for word in words {
        family.push('_');
        family.extend(word.chars().map(|sign| match sign {
            sign if sign.is_ascii_alphanumeric() => sign.to_ascii_lowercase(),
            _ => '_',
        }));
    }
    let base = family.strip_suffix("_total").unwrap_or(&family);
    let family = match unit(schema) {
        Some("seconds") => format!("{}_seconds", base.strip_suffix("_ns").unwrap_or(base)),
        Some(unit) if !base.ends_with(&format!("_{unit}")) => format!("{base}_{unit}"),
        _ => base.to_owned(),
    };
    Name { family, label }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn unit(schema: &Schema) -> Option<&'static str> {
    match schema.unit.as_str() {
        "ns" => Some("seconds"),
        "bytes" => Some("bytes"),
        "pages" => Some("pages"),
        _ => None,
    }
}

fn in_base_unit(value: i64, unit: &str) -> String {
    if unit != "ns" {
        return value.to_string();
    }
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", decimal(value.unsigned_abs(), 9))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::recording::{Series, Tick};

    fn series(name: &str, unit: &str, kind: SeriesKind, values: &[Option<i64>]) -> Series {
        let mut series = Series {
            schema: Schema {
                name: name.to_owned(),
                unit: unit.to_owned(),
                kind,
                source: "/proc/x".to_owned(),
                ..Schema::default()
            },
            ..Series::default()
        };
        for (sample, value) in (0..).zip(values) {
            series.push(sample, *value);
        }
        series
    }

    #[test]
    fn families_have_base_units_labels_and_an_end() {
        let mut recording = Recording {
            ticks: [0, 1_000_000_000].map(|at_ns| Tick { due_ns: at_ns, at_ns }).to_vec(),
            series: vec![
                series(
                    "disk.vda.read_ns",
                    "ns",
                    SeriesKind::Counter,
                    &[Some(1), Some(1_500_000_000)],
                ),
                series("disk.a.b.read_ns", "ns", SeriesKind::Counter, &[None, Some(2)]),
                series("stat.cpu3.user_ns", "ns", SeriesKind::Counter, &[Some(5)]),
                series("meminfo.MemFree", "bytes", SeriesKind::Gauge, &[Some(-4)]),
                series("group0.memory.failcnt", "count", SeriesKind::Counter, &[Some(9)]),
            ],
            ..Recording::default()
        };
        recording.facts.started_unix_ns = 1_700_000_000_000_000_000;
        let mut text = Vec::new();
        OpenMetrics.export(&recording, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let disks = "# TYPE terrace_disk_read_seconds counter\n\
                     # UNIT terrace_disk_read_seconds seconds\n\
                     # HELP terrace_disk_read_seconds /proc/x\n\
                     terrace_disk_read_seconds_total{device=\"a.b\"} 0.000000002 1700000001.000\n\
                     terrace_disk_read_seconds_total{device=\"vda\"} 0.000000001 1700000000.000\n\
                     terrace_disk_read_seconds_total{device=\"vda\"} 1.500000000 1700000001.000\n";
        assert!(text.contains(disks), "{text}");
        for line in [
            "terrace_stat_each_cpu_user_seconds_total{cpu=\"3\"} 0.000000005 1700000000.000",
            "terrace_meminfo_memfree_bytes -4 1700000000.000",
            "terrace_group_memory_failcnt_total{level=\"0\"} 9 1700000000.000",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} in {text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}

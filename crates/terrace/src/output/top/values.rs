//! One lane: a series (or a level less others) as one value for each column of time, its unit, and
//! the words of a value. The units are those that a page draws.

use crate::output::figure::{self, Digits};
use crate::output::prose::count;
use model::recording::{Recording, Schema, Series, SeriesKind};

/// TimeColumns of equal time, each known by the samples at its two ends.
#[derive(Clone, Debug)]
pub struct TimeColumns {
    /// The last sample at or before each edge, one more than there are columns; `None` before the
    /// first sample.
    samples: Vec<Option<u32>>,
}

impl TimeColumns {
    /// So many columns of `column_ns`, the last of which ends at `edge_ns`.
    pub fn new(recording: &Recording, column_ns: u64, edge_ns: u64, columns: usize) -> Self {
        let ticks = &recording.ticks;
        let sample = |back: usize| {
            let back_ns = column_ns.saturating_mul(back as u64);
            let at_ns = edge_ns.checked_sub(back_ns)?;
            let after = ticks.partition_point(|tick| tick.at_ns <= at_ns);
            after.checked_sub(1).and_then(|sample| u32::try_from(sample).ok())
        };
        Self { samples: (0..=columns).rev().map(sample).collect() }
    }

    /// The first sample and the last one of each column; `None` where none was taken in it.
    fn pairs(&self) -> impl Iterator<Item = Option<(u32, u32)>> + '_ {
        self.samples.windows(2).map(|pair| match pair {
            [Some(from), Some(to)] if from < to => Some((*from, *to)),
            // What a recording begins with has nothing before it.
            [None, Some(to)] => Some((0, *to)),
            _ => None,
        })
    }
}

/// What is drawn in a lane.
#[derive(Clone, Debug)]
pub struct Lane<'a> {
    /// Its words: `read vda`.
    pub label: String,
    pub series: &'a Series,
    /// The levels that are taken out of it.
    pub less: Vec<&'a Series>,
    /// The unit that it is drawn in: `bytes_per_s`.
    pub unit: String,
    /// What fills a cell at least; in the unit.
    pub floor: f64,
}

/// Rates below this fill no cell: a trickle is not to look like a flood.
const FLOOR_BYTES_PER_S: f64 = 1e6;
const FLOOR_PER_S: f64 = 100.0;

impl<'a> Lane<'a> {
    /// The lane of one series; `unit` where its own does not say what is drawn.
    pub fn new(label: String, series: &'a Series, unit: Option<&str>) -> Self {
        let unit = unit.map_or_else(|| drawn_unit(&series.schema), str::to_owned);
        let floor = match unit.as_str() {
            "bytes" => 1.0,
            "bytes_per_s" => FLOOR_BYTES_PER_S,
            "share" => 1.0,
            unit if unit.starts_with("mean ") => 1.0,
            _ => FLOOR_PER_S,
        };
        Self { label, series, less: Vec::new(), unit, floor }
    }

    /// The value of each column; `None` if it was not recorded.
    pub fn values(&self, recording: &Recording, columns: &TimeColumns) -> Vec<Option<f64>> {
        let mut before = None;
        let value = |pair: Option<(u32, u32)>| {
            let (from, to) = pair?;
            before = match self.series.schema.kind {
                SeriesKind::Gauge => self.level(to),
                SeriesKind::Counter => self.rate(recording, from, to, before),
            };
            before
        };
        columns.pairs().map(value).collect()
    }

    fn level(&self, sample: u32) -> Option<f64> {
        let level = self.series.at(sample)? as f64;
        let less = self.less.iter().filter_map(|series| series.at(sample));
        Some(less.fold(level, |left, part| (left - part as f64).max(0.0)))
    }

    /// What it grew by in a second, or for times in a nanosecond. One that is read more rarely than
    /// sampled grew from one reading to the next; where no reading lies between, as `before`.
    fn rate(&self, recording: &Recording, from: u32, to: u32, before: Option<f64>) -> Option<f64> {
        let at_ns = |sample: u32| recording.ticks.get(sample as usize).map(|tick| tick.at_ns);
        let (mut start, mut end) = (from, to);
        if let Some(refresh_ns) = refresh_ns(&self.series.schema) {
            let reading = |sample: u32| {
                let changed = self.series.steps.split(sample).0?.sample;
                let age_ns = at_ns(sample)?.saturating_sub(at_ns(changed)?);
                (age_ns <= refresh_ns + refresh_ns / 2).then_some(changed)
            };
            end = reading(to).unwrap_or(to);
            start = reading(from).unwrap_or(from);
            if end <= start {
                return before;
            }
        }
        let grown = self.series.growth(start, end)? as f64;
        let time_ns = at_ns(end)?.checked_sub(at_ns(start)?).filter(|ns| *ns > 0)?;
        let per_ns = grown / time_ns as f64;
        Some(match self.series.schema.unit.as_str() {
            "ns" => per_ns,
            _ => per_ns * 1e9,
        })
    }

    pub fn shown(&self, value: f64) -> String {
        match self.unit.as_str() {
            "share" => figure::percent(value),
            "bytes" => figure::binary_size(value as u64, Digits::Two),
            "bytes_per_s" if value < 1.0 => "0 B/s".to_owned(),
            "bytes_per_s" => figure::rate(value, Digits::Two),
            // What is counted stands in the label.
            unit if unit.ends_with("per_s") => format!("{} /s", short(value)),
            _ => short(value),
        }
    }
}

/// Processes are read so rarely where there are many.
const TREE_REFRESH_NS: u64 = 1_000_000_000;

/// How often a series is read, where that may be rarer than samples are taken.
fn refresh_ns(schema: &Schema) -> Option<u64> {
    let is_of_processes = ["tree.", "leader."].iter().any(|start| schema.name.starts_with(start));
    let own_ns = schema.refresh_ns.filter(|ns| *ns >= TREE_REFRESH_NS);
    own_ns.or_else(|| is_of_processes.then_some(TREE_REFRESH_NS))
}

/// The unit in which a series is drawn: a counter grows by so much a second.
fn drawn_unit(schema: &Schema) -> String {
    let unit = schema.unit.as_str();
    match (schema.kind, unit) {
        (SeriesKind::Gauge, "") => "count".to_owned(),
        (SeriesKind::Gauge, unit) => unit.to_owned(),
        (SeriesKind::Counter, "ns") => "share".to_owned(),
        (SeriesKind::Counter, "count" | "") => "per_s".to_owned(),
        (SeriesKind::Counter, unit) => format!("{unit}_per_s"),
    }
}

/// Whether a series has anything to say: it changed, or is a level above 0.
pub fn speaks(series: &Series) -> bool {
    let mut known = series.steps.iter().filter_map(|step| step.value);
    let Some(first) = known.next() else {
        return false;
    };
    (series.schema.kind == SeriesKind::Gauge && first != 0) || known.any(|value| value != first)
}

/// A count in a few letters: `7`, `1,234`, `48k`, `1.2M`.
pub fn short(value: f64) -> String {
    match value {
        1e6.. => format!("{}M", figure::number(value / 1e6, Digits::Two)),
        1e4.. => format!("{}k", figure::number(value / 1e3, Digits::Two)),
        100.0.. => count(value.round() as u64),
        _ => figure::number(value, Digits::Two),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::recording::Tick;

    /// Two samples a second for ten seconds, without those of the fifth.
    fn recording() -> Recording {
        let named = |name: &str, unit: &str, kind| Series {
            schema: Schema {
                name: name.to_owned(),
                unit: unit.to_owned(),
                kind,
                ..Schema::default()
            },
            steps: model::recording::Steps::new(),
        };
        let mut series = vec![
            named("bytes", "bytes", SeriesKind::Counter),
            named("busy", "ns", SeriesKind::Counter),
            named("level", "bytes", SeriesKind::Gauge),
            named("part", "bytes", SeriesKind::Gauge),
            named("still", "count", SeriesKind::Counter),
        ];
        let mut ticks = Vec::new();
        for half in (0..=20u64).filter(|half| !(9..=10).contains(half)) {
            let sample = ticks.len() as u32;
            let at_ns = half * 500_000_000;
            ticks.push(Tick { due_ns: at_ns, at_ns });
            let values = [half * 1_000_000, at_ns / 4, 100 * half, 30 * half, 7];
            for (series, value) in series.iter_mut().zip(values) {
                series.push(sample, Some(value.cast_signed()));
            }
        }
        Recording { ticks, series, ..Recording::default() }
    }

    fn values(name: &str, edge_s: u64, columns: usize) -> Vec<Option<f64>> {
        let recording = recording();
        let lane = Lane::new(String::new(), recording.series(name).unwrap(), None);
        let columns = TimeColumns::new(&recording, 1_000_000_000, edge_s * 1_000_000_000, columns);
        lane.values(&recording, &columns)
    }

    #[test]
    fn a_counter_is_a_rate_and_a_time_a_share() {
        assert_eq!(values("bytes", 3, 2), [Some(2e6); 2]);
        assert_eq!(values("busy", 3, 2), [Some(0.25); 2]);
    }

    #[test]
    fn what_was_not_sampled_is_absent_and_not_zero() {
        // Nothing in the fifth second; the sixth has its growth and the fifth's.
        let values = values("bytes", 7, 4);
        assert_eq!(values, [Some(2e6), None, Some(2e6), Some(2e6)]);
        assert_eq!(self::values("bytes", 2, 4)[0], None);
        assert_eq!(self::values("bytes", 12, 2), [None, None]);
    }

    /// Read at 0, 0.9, 2.1, 2.9 and 4.1 s, the counter of a program that never rests, and from then
    /// on of one that does.
    #[test]
    fn what_is_read_rarely_has_no_holes_and_no_peaks() {
        let mut recording = recording();
        recording.ticks.clear();
        let series = &mut recording.series[0];
        series.schema.name = "tree.run_ns".to_owned();
        series.schema.unit = "ns".to_owned();
        series.steps = model::recording::Steps::new();
        for sample in 0..80u32 {
            let at_ns = u64::from(sample) * 100_000_000;
            recording.ticks.push(Tick { due_ns: at_ns, at_ns });
            if [0, 9, 21, 29, 41].contains(&sample) {
                series.push(sample, Some(at_ns.cast_signed()));
            }
        }
        let lane = Lane::new(String::new(), &recording.series[0], None);
        let columns = TimeColumns::new(&recording, 1_000_000_000, 7_000_000_000, 7);
        let values = lane.values(&recording, &columns);
        assert_eq!(values[..5], [Some(1.0); 5]);
        assert_eq!(values[6], Some(0.0));
    }

    #[test]
    fn a_level_is_what_is_left_of_it() {
        let recording = recording();
        let mut lane = Lane::new(String::new(), recording.series("level").unwrap(), None);
        lane.less.push(recording.series("part").unwrap());
        let columns = TimeColumns::new(&recording, 1_000_000_000, 2_000_000_000, 1);
        assert_eq!(lane.values(&recording, &columns), [Some(280.0)]);
    }

    #[test]
    fn what_never_moved_has_nothing_to_say() {
        let recording = recording();
        let speaks = |name: &str| speaks(recording.series(name).unwrap());
        assert!(speaks("bytes") && speaks("level") && !speaks("still"));
    }

    #[test]
    fn values_have_few_letters_and_a_unit() {
        let recording = recording();
        let lane = |name: &str, unit: Option<&str>| {
            Lane::new(String::new(), recording.series(name).unwrap(), unit)
        };
        assert_eq!(lane("busy", None).shown(0.123), "12 %");
        assert_eq!(lane("bytes", None).shown(1.25e6), "1.2 MB/s");
        assert_eq!(lane("bytes", None).shown(0.0), "0 B/s");
        assert_eq!(lane("level", None).shown(2048.0), "2 KiB");
        assert_eq!(lane("still", None).shown(48_300.0), "48k /s");
        assert_eq!(lane("busy", Some("mean threads")).shown(1.25), "1.2");
        assert_eq!(lane("still", Some("pages_per_s")).shown(1_234.0), "1,234 /s");
    }
}

//! What a page of three or four recordings holds of each: the series that it draws, thinned to what
//! a screen shows, without single processes. So the page stays below a megabyte, however long the
//! recordings are.

use crate::questions::{Chart, matched, questions};
use model::recording::{Recording, Who};

/// Samples that are left of one recording: twice what a wide chart has pixels.
pub const SAMPLES_MAX: usize = 2_000;

/// What the charts over each other draw beside the questions.
const OVER_EACH_OTHER: [&str; 8] = [
    "disk.*.read_bytes",
    "disk.*.write_bytes",
    "meminfo.Dirty",
    "meminfo.Writeback",
    "meminfo.Active_file",
    "meminfo.Inactive_file",
    "vmstat.pgsteal_file",
    "copy.*",
];

/// Reduces `recording` to what is drawn of it. Of several samples that become one, counters keep
/// their growth and levels their last value; marks stay where they are.
pub fn reduce(recording: &mut Recording) {
    let charts: Vec<Chart> =
        questions().unwrap_or_default().into_iter().flat_map(|question| question.charts).collect();
    recording.series.retain(|series| is_drawn(&series.schema.name, &charts));
    recording.who = Who::default();
    thin(recording);
}

fn is_drawn(name: &str, charts: &[Chart]) -> bool {
    let matches = |pattern: &str| matched(pattern, name).is_some();
    let in_chart = |chart: &Chart| {
        let layers = chart.layers.iter();
        chart.series.iter().flat_map(|wanted| &wanted.patterns).any(|pattern| matches(pattern))
            || layers
                .flat_map(|layer| layer.less.iter().chain([&layer.pattern]))
                .any(|it| matches(it))
    };
    OVER_EACH_OTHER.iter().any(|pattern| matches(pattern)) || charts.iter().any(in_chart)
}

/// Leaves every n-th sample and the last one.
fn thin(recording: &mut Recording) {
    let count = recording.ticks.len();
    let step = count.div_ceil(SAMPLES_MAX);
    if step < 2 {
        return;
    }
    let last = (count - 1).div_ceil(step);
    recording.ticks =
        (0..=last).map(|sample| recording.ticks[(sample * step).min(count - 1)]).collect();
    let step = u32::try_from(step).unwrap_or(u32::MAX);
    for series in &mut recording.series {
        series.renumber(|sample| sample.div_ceil(step));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::recording::{Schema, Series, SeriesKind, Tick};

    fn recorded(samples: u32, names: &[&str]) -> Recording {
        let tick = |sample: u32| Tick { due_ns: 0, at_ns: u64::from(sample) * 10 };
        let series = names.iter().map(|name| {
            let schema =
                Schema { name: (*name).to_owned(), kind: SeriesKind::Counter, ..Schema::default() };
            let mut series = Series { schema, ..Series::default() };
            (0..samples).for_each(|sample| series.push(sample, Some(i64::from(sample) * 3)));
            series
        });
        Recording {
            ticks: (0..samples).map(tick).collect(),
            series: series.collect(),
            ..Recording::default()
        }
    }

    #[test]
    fn only_what_is_drawn_is_kept() {
        let drawn = ["disk.vda.read_bytes", "copy.dirty_bytes", "meminfo.MemTotal", "tree.run_ns"];
        let others = ["own.rss_bytes", "buddy.node0.Normal.order3", "trace.cpu.call.read"];
        let mut recording = recorded(10, &[&drawn[..], &others].concat());
        reduce(&mut recording);
        let names: Vec<&str> =
            recording.series.iter().map(|series| series.schema.name.as_str()).collect();
        assert_eq!(names, drawn);
        assert_eq!(recording.ticks.len(), 10);
    }

    #[test]
    fn a_long_recording_keeps_its_ends_and_its_growth() {
        for samples in [SAMPLES_MAX as u32, SAMPLES_MAX as u32 + 1, 10_007] {
            let mut recording = recorded(samples, &["copy.read_bytes"]);
            let whole = recorded(samples, &["copy.read_bytes"]);
            reduce(&mut recording);
            let count = recording.ticks.len();
            assert!(count <= SAMPLES_MAX + 1 && count > SAMPLES_MAX / 2, "{samples}: {count}");
            assert_eq!(recording.ticks.first(), whole.ticks.first());
            assert_eq!(recording.ticks.last(), whole.ticks.last());
            for (sample, tick) in (0..).zip(&recording.ticks) {
                let growth = recording.series[0].growth(0, sample);
                let expected = whole.ticks.iter().position(|known| known == tick).unwrap();
                assert_eq!(growth, whole.series[0].growth(0, expected as u32), "{sample}");
            }
        }
    }
}

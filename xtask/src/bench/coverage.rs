//! Whether intervals hold what they say: each probe is repeated, and the share of its 95 %
//! intervals that hold the median of all repetitions is counted.
//!
//! The probes take turns, so that a drift of the machine meets all of them alike. The budgets are
//! shorter than the default ones, so that 20 repetitions of all take minutes. The median of all is
//! taken for the truth: it is the best guess there is, and part of it is each interval's own.

use std::time::Duration;

use serde_json::Value;

use super::record::{Series, Target};
use super::turns::{self, Turn};
use super::{Session, ratio, report};
use crate::error::Error;

/// What 95 % intervals must hold at least, in percent: of 20 repetitions 18. Where the truth is 95,
/// 18 or more are seen in 92 of 100 benches.
const TARGET: f64 = 90.0;

/// A probe that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// A probe, with what is read of its result.
struct Probe {
    /// The part's name.
    name: &'static str,
    /// Its words, without those of where; `DIR` is the directory.
    words: &'static str,
    /// Each figure: its name, and where its estimate is (RFC 6901).
    figures: &'static [(&'static str, &'static str)],
}

/// The names of the parts.
pub(super) const PARTS: &[&str] =
    &["memcpy", "memlat", "compute", "faults", "iolat", "depth", "seqio"];

const PROBES: [Probe; 7] = [
    Probe {
        name: "memcpy",
        words: "measure memcpy memcpy --size 128m --budget 10s",
        figures: &[("memcpy at 128 MiB", "/result/rows/0/bytes_per_s")],
    },
    Probe {
        name: "memlat",
        words: "measure memlat --size 16k,64m --pages thp --pattern random --budget 5s",
        figures: &[
            ("a load from 16 KiB", "/result/rows/0/load_ns"),
            ("a load from 64 MiB", "/result/rows/1/load_ns"),
        ],
    },
    Probe {
        name: "compute",
        words: "measure compute --budget 2s",
        figures: &[("a step of the control", "/result/step_ns")],
    },
    Probe {
        name: "faults",
        words: "measure faults --limit 96m --wait 0 --budget 5s",
        figures: &[
            ("first touch of 4 KiB", "/result/series/0/touch_ns"),
            ("first touch of 2 MiB", "/result/series/1/touch_ns"),
        ],
    },
    Probe {
        name: "iolat",
        words: "measure iolat DIR -D -S 16m --budget 4s",
        figures: &[
            ("a request back to back", "/result/paces/0/latency"),
            ("a request each 10 ms", "/result/paces/1/latency"),
        ],
    },
    Probe {
        name: "depth",
        words: "measure iolat DIR -D --iodepth 8 -S 16m --budget 2s",
        figures: &[("requests, 8 in flight", "/result/random/requests_per_s")],
    },
    Probe {
        name: "seqio",
        words: "measure seqio DIR --size 64m --budget 10s",
        figures: &[("write", "write"), ("cold read", "cold_read")],
    },
];

/// An estimate as the bench reads it.
#[derive(Clone, Copy)]
struct Interval {
    median: f64,
    low: f64,
    high: f64,
}

/// Repeats all probes that are asked for, and counts.
///
/// # Errors
/// When a probe fails or has no interval.
pub(super) fn run(session: &mut Session) -> Result<(), Error> {
    let Session { request, terrace, directory, record, .. } = session;
    let path = directory.name().to_owned();
    let chosen: Vec<&Probe> = PROBES.iter().filter(|probe| request.includes(probe.name)).collect();
    for probe in &chosen {
        record.command(terrace.command_line(&words(probe, "DIR")));
    }
    let terrace = &*terrace;
    let path = path.as_str();
    let mut programs: Vec<Turn<'_>> = Vec::new();
    for probe in &chosen {
        programs.push(Box::new(move || {
            let output = report::run(terrace, &words(probe, path), LIMIT)?;
            let intervals =
                probe.figures.iter().map(|(_, pointer)| interval(&output, pointer)).collect();
            flat(intervals)
        }));
    }
    let all = turns::rotate("repetitions of all probes", request.alternations, &mut programs)?;
    drop(programs);
    for (probe, figures) in chosen.iter().zip(&all) {
        for ((name, _), values) in probe.figures.iter().zip(figures.chunks(3)) {
            let what = format!("{}: {name}", probe.name);
            let [medians, lows, highs] = values else {
                return Err(report::malformed(format!("{what}: a figure is missing")));
            };
            let share = share(medians, lows, highs);
            let series = |name: &str, values: &[f64]| Series::new(name, values);
            record.add_alone(
                &format!("{what}: intervals that hold the median of all"),
                "%",
                series("share", &[share]),
                Some(Target::AtLeast(TARGET)),
            )?;
            let width = widths(medians, lows, highs);
            record.add_alone(
                &format!("{what}: half the interval"),
                "%",
                series("+-", &width),
                None,
            )?;
            for (end, values) in [("median", medians), ("low", lows), ("high", highs)] {
                record.add_alone(&format!("{what}: {end}"), "", series(end, values), None)?;
            }
        }
    }
    Ok(())
}

fn words<'a>(probe: &'a Probe, path: &'a str) -> Vec<&'a str> {
    probe.words.split(' ').map(|word| if word == "DIR" { path } else { word }).collect()
}

/// The estimate at `pointer`: of a rate or a time, of requests by their median, or of a phase by
/// its name.
fn interval(output: &Value, pointer: &str) -> Result<Interval, Error> {
    let phase =
        || report::list(output, "/result/phases").ok()?.iter().find(|p| p["name"] == pointer);
    let (value, ends) = match output.pointer(pointer) {
        Some(latency) if latency.get("p50_ns").is_some() => {
            (latency, ["/p50_ns", "/p50_low_ns", "/p50_high_ns"])
        }
        Some(estimate) => (estimate, ["/median", "/low", "/high"]),
        None => match phase() {
            Some(phase) => (&phase["rate"], ["/median", "/low", "/high"]),
            None => return Err(report::malformed(format!("no estimate at {pointer}"))),
        },
    };
    if value["covers"] != "between_runs" {
        return Err(report::malformed(format!("{pointer} is not between runs")));
    }
    let [median, low, high] = ends.map(|end| report::number(value, end));
    Ok(Interval { median: median?, low: low?, high: high? })
}

/// The numbers of all intervals, three for each.
fn flat(intervals: Vec<Result<Interval, Error>>) -> Result<Vec<f64>, Error> {
    let mut all = Vec::new();
    for interval in intervals {
        let Interval { median, low, high } = interval?;
        all.extend([median, low, high]);
    }
    Ok(all)
}

/// How many percent of the intervals hold the median of all medians.
fn share(medians: &[f64], lows: &[f64], highs: &[f64]) -> f64 {
    let truth = ratio::summary(medians).map_or(f64::NAN, |summary| summary.median);
    let held = lows.iter().zip(highs).filter(|(low, high)| (**low..=**high).contains(&truth));
    100.0 * held.count() as f64 / medians.len().max(1) as f64
}

fn widths(medians: &[f64], lows: &[f64], highs: &[f64]) -> Vec<f64> {
    let ends = lows.iter().zip(highs).zip(medians);
    // A range of nothing is no measurement for a record, which takes positive numbers.
    ends.map(|((low, high), median)| (50.0 * (high - low) / median).max(1e-6)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_hold_the_median_are_counted() {
        let medians = [10.0, 11.0, 12.0, 13.0];
        let share = |low: f64, high: f64| share(&medians, &[low; 4], &[high; 4]);
        assert_eq!((share(11.0, 12.0), share(12.0, 13.0)), (100.0, 0.0));
        let halves = super::share(&medians, &[9.0, 10.0, 11.0, 12.0], &[11.0, 12.0, 13.0, 14.0]);
        assert_eq!(halves, 50.0);
        assert_eq!(widths(&[10.0], &[9.0], &[11.0]), [10.0]);
    }

    #[test]
    fn estimates_of_each_shape_are_read() {
        let output: Value = serde_json::from_str(
            r#"{"result": {"step_ns": {"median": 2, "low": 1, "high": 3, "covers": "between_runs"},
            "latency": {"p50_ns": 5, "p50_low_ns": 4, "p50_high_ns": 6, "covers": "between_runs"},
            "quick": {"median": 2, "low": 1, "high": 3, "covers": "within_run"},
            "phases": [{"name": "write", "rate":
                {"median": 8, "low": 7, "high": 9, "covers": "between_runs"}}]}}"#,
        )
        .unwrap();
        let of = |pointer| interval(&output, pointer).map(|it| (it.low, it.median, it.high)).ok();
        assert_eq!(of("/result/step_ns"), Some((1.0, 2.0, 3.0)));
        assert_eq!(of("/result/latency"), Some((4.0, 5.0, 6.0)));
        assert_eq!(of("write"), Some((7.0, 8.0, 9.0)));
        assert_eq!((of("/result/quick"), of("sync")), (None, None));
    }
}

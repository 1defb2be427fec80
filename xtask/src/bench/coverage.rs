//! Whether intervals hold what they say: each probe is repeated, and the share of its 95 %
//! intervals that hold the median of all repetitions is counted.
//!
//! A command spreads its runs over a minute and mostly waits, so several repetitions are under way
//! at the same time, each in [`Slots`] of its own: no two runs are to meet. The budgets are shorter
//! than the default ones, so that runs fit into their slots. The median of all is taken for the
//! truth: it is the best guess there is, and part of it is each interval's own.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::peer::Peer;
use super::record::{Record, Series, Target};
use super::{Session, ratio, report};
use crate::error::Error;

/// What 95 % intervals must hold at least, in percent: of 20 repetitions 18. Where the truth is 95,
/// 18 or more are seen in 92 of 100 benches.
const TARGET: f64 = 90.0;

/// A probe that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(180);

/// From the first to the last start of the runs of a command, as the words of the probes say it,
/// and how many they are by default.
const OVER: Duration = Duration::from_secs(60);
const RUNS: u32 = 9;

/// A probe, with what is read of its result.
struct Probe {
    /// The part's name.
    name: &'static str,
    /// The part that it belongs to, whose runs fit beside each other.
    group: &'static str,
    /// Its words, without those of how long; `DIR` is the directory.
    words: &'static str,
    /// What one run takes at most, in milliseconds, with the start of its process.
    run_ms: u32,
    /// Each figure: its name, and where its estimate is (RFC 6901).
    figures: &'static [(&'static str, &'static str)],
}

/// The names of the parts.
pub(super) const PARTS: &[&str] =
    &["times", "storage", "memcpy", "memlat", "compute", "faults", "iolat", "depth", "seqio"];

const PROBES: [Probe; 7] = [
    Probe {
        name: "memcpy",
        group: "memcpy",
        words: "measure memcpy memcpy --size 128m --budget 9s --over 1min",
        run_ms: 1150,
        figures: &[("memcpy at 128 MiB", "/result/rows/0/bytes_per_s")],
    },
    Probe {
        name: "memlat",
        group: "times",
        words: "measure memlat --size 16k,64m --pages thp --pattern random --budget 4s --over 1min",
        run_ms: 490,
        figures: &[
            ("a load from 16 KiB", "/result/rows/0/load_ns"),
            ("a load from 64 MiB", "/result/rows/1/load_ns"),
        ],
    },
    Probe {
        name: "compute",
        group: "times",
        words: "measure compute --budget 2s --over 1min",
        run_ms: 230,
        figures: &[("a step of the control", "/result/step_ns")],
    },
    Probe {
        name: "faults",
        group: "times",
        words: "measure faults --limit 96m --wait 0 --budget 4s --over 1min",
        run_ms: 490,
        figures: &[
            ("first touch of 4 KiB", "/result/series/0/touch_ns"),
            ("first touch of 2 MiB", "/result/series/1/touch_ns"),
        ],
    },
    Probe {
        name: "iolat",
        group: "storage",
        words: "measure iolat DIR -D -S 16m --budget 4s --over 1min",
        run_ms: 470,
        figures: &[
            ("a request back to back", "/result/paces/0/latency"),
            ("a request each 10 ms", "/result/paces/1/latency"),
        ],
    },
    Probe {
        name: "depth",
        group: "storage",
        words: "measure iolat DIR -D --iodepth 8 -S 16m --budget 2s --over 1min",
        run_ms: 250,
        figures: &[("requests, 8 in flight", "/result/random/requests_per_s")],
    },
    Probe {
        name: "seqio",
        group: "storage",
        words: "measure seqio DIR --size 64m --budget 10s --over 1min",
        run_ms: 400,
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

/// When the repetitions of several probes start, so that no two of their runs meet.
struct Slots {
    /// From the start of one run of a command to that of the next.
    spacing: Duration,
    /// What one repetition needs of it: a run of each probe.
    width: Duration,
    /// Repetitions that are under way at the same time.
    at_once: u32,
}

impl Slots {
    fn new(width: Duration) -> Self {
        let spacing = OVER / (RUNS - 1);
        let at_once = spacing.as_nanos() / width.as_nanos().max(1);
        Self { spacing, width, at_once: u32::try_from(at_once).unwrap_or(1).clamp(1, RUNS) }
    }

    /// The start of a repetition, after that of the first: behind the others of its group by a
    /// slot, and by spacings that make them even.
    fn start(&self, repetition: u32) -> Duration {
        let (group, place) = (repetition / self.at_once, repetition % self.at_once);
        let whole = self.spacing * RUNS;
        let behind = RUNS / self.at_once * place;
        whole * group + self.spacing * behind + self.width * place
    }
}

/// Repeats all probes that are asked for, and counts.
///
/// # Errors
/// When a probe fails or has no interval.
pub(super) fn run(session: &mut Session) -> Result<(), Error> {
    let Session { request, terrace, directory, record, .. } = session;
    let path = directory.name().to_owned();
    let is_chosen = |probe: &&Probe| request.includes(probe.name) || request.includes(probe.group);
    let chosen: Vec<&Probe> = PROBES.iter().filter(is_chosen).collect();
    for probe in &chosen {
        record.command(terrace.command_line(&words(probe, "DIR")));
    }
    let count = u32::try_from(request.alternations).unwrap_or(u32::MAX);
    let all = repetitions(terrace, &chosen, path.as_str(), count)?;
    for (place, probe) in chosen.iter().enumerate() {
        for (figure, (name, _)) in probe.figures.iter().enumerate() {
            let intervals: Vec<Interval> =
                all.iter().filter_map(|one| one.get(place)?.get(figure).copied()).collect();
            count_held(record, &format!("{}: {name}", probe.name), &intervals)?;
        }
    }
    Ok(())
}

/// The intervals of each repetition, of each probe, of each of its figures.
fn repetitions(
    terrace: &Peer,
    chosen: &[&Probe],
    path: &str,
    count: u32,
) -> Result<Vec<Vec<Vec<Interval>>>, Error> {
    let widths = chosen.iter().map(|probe| Duration::from_millis(probe.run_ms.into()));
    let slots = Slots::new(widths.sum());
    let first_start = Instant::now();
    std::thread::scope(|scope| {
        let mut under_way = Vec::new();
        for repetition in 0..count {
            let mut start = first_start + slots.start(repetition);
            let mut probes = Vec::new();
            for &probe in chosen {
                probes.push(scope.spawn(move || {
                    std::thread::sleep(start.saturating_duration_since(Instant::now()));
                    let output = report::run(terrace, &words(probe, path), LIMIT)?;
                    let figures = probe.figures.iter();
                    figures.map(|(_, pointer)| interval(&output, pointer)).collect()
                }));
                start += Duration::from_millis(probe.run_ms.into());
            }
            under_way.push(probes);
        }
        let mut all = Vec::new();
        for (done, probes) in under_way.into_iter().enumerate() {
            let ended = probes.into_iter().map(|probe| probe.join().map_err(|_| panicked())?);
            all.push(ended.collect::<Result<_, Error>>()?);
            eprintln!("repetitions of all probes: {} of {count}", done + 1);
        }
        Ok(all)
    })
}

fn panicked() -> Error {
    report::malformed("the thread of a probe panicked".to_owned())
}

/// Records how many of the intervals of the figure `what` hold the median of all, and all of them.
fn count_held(record: &mut Record, what: &str, intervals: &[Interval]) -> Result<(), Error> {
    let of = |end: fn(&Interval) -> f64| intervals.iter().map(end).collect::<Vec<f64>>();
    let (medians, lows, highs) = (of(|it| it.median), of(|it| it.low), of(|it| it.high));
    let share = share(&medians, &lows, &highs);
    record.add_alone(
        &format!("{what}: intervals that hold the median of all"),
        "%",
        Series::new("share", &[share]),
        Some(Target::AtLeast(TARGET)),
    )?;
    let width = widths(&medians, &lows, &highs);
    let half = Series::new("+-", &width);
    record.add_alone(&format!("{what}: half the interval"), "%", half, None)?;
    for (end, values) in [("median", &medians), ("low", &lows), ("high", &highs)] {
        record.add_alone(&format!("{what}: {end}"), "", Series::new(end, values), None)?;
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
    fn each_group_fits_six_times_and_all_once() {
        let slots = |group: &str| {
            let of = PROBES.iter().filter(|probe| group.is_empty() || probe.group == group);
            Slots::new(of.map(|probe| Duration::from_millis(probe.run_ms.into())).sum())
        };
        assert_eq!(
            ["memcpy", "times", "storage", ""].map(|group| slots(group).at_once),
            [6, 6, 6, 2]
        );
    }

    #[test]
    fn no_two_runs_meet() {
        for width in [400, 1150, 1250, 4000, 9000].map(Duration::from_millis) {
            let slots = Slots::new(width);
            let starts = (0..20).flat_map(|repetition| {
                let runs = move |slots: &Slots| {
                    (0..RUNS).map(|run| slots.start(repetition) + slots.spacing * run).collect()
                };
                let starts: Vec<Duration> = runs(&slots);
                starts
            });
            let mut all: Vec<Duration> = starts.collect();
            all.sort();
            let least = width.min(slots.spacing);
            assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= least), "{width:?}: {all:?}");
        }
        // Six at a time: 20 repetitions last less than five minutes.
        let last = Slots::new(Duration::from_millis(1200)).start(19) + OVER;
        assert!(last < Duration::from_secs(280), "{last:?}");
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

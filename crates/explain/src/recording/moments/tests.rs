//! Made machines, on which something happens at a known time: it must be found there, and nothing
//! else.

use super::*;
use model::recording::{
    Process, ProcessFigure, ProcessRow, Recording, Schema, Series, SeriesKind, Span, Steps, Tick,
};
use model::{Finding, Grade};
use std::ops::Range;

const SECOND_NS: u64 = 1_000_000_000;

/// A machine of four processors, watched once a second. Rates of its counters are those of a
/// quiet server, with noise, a job each hour, and what happens to it.
struct Made {
    seconds: u64,
    seed: u64,
    /// When, and by how much a counter grows more in a second then.
    events: Vec<(Range<u64>, &'static str, u64)>,
}

const COUNTERS: [(&str, u64); 8] = [
    ("stat.cpu.user_ns", 400_000_000),
    ("stat.cpu.system_ns", 100_000_000),
    ("pressure.cpu.some_ns", 10_000_000),
    ("pressure.io.some_ns", 5_000_000),
    ("disk.vda.read_bytes", 200_000),
    ("disk.vda.reads", 20),
    ("disk.vda.read_ns", 4_000_000),
    ("vmstat.pswpin", 0),
];

impl Made {
    fn of(seconds: u64, seed: u64) -> Self {
        Self { seconds, seed, events: Vec::new() }
    }

    fn happens(mut self, when: Range<u64>, counter: &'static str, more: u64) -> Self {
        self.events.push((when, counter, more));
        self
    }

    fn recording(&self) -> Recording {
        let mut recording = Recording::default();
        recording.facts.processors = 4;
        let tick = |s| Tick { due_ns: s * SECOND_NS, at_ns: s * SECOND_NS };
        recording.ticks = (0..=self.seconds).map(tick).collect();
        let mut random = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for (id, (name, rate)) in (0..).zip(COUNTERS) {
            let schema = Schema {
                id,
                name: name.to_owned(),
                kind: SeriesKind::Counter,
                ..Schema::default()
            };
            let mut series = Series { schema, steps: Steps::new() };
            let mut value = 1_000;
            for second in 0..=self.seconds {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                // Half to one and a half, with a job each hour for ten seconds.
                let noisy = rate / 2 + random % (rate + 1);
                let hourly = if (1800..1810).contains(&(second % 3600)) { rate * 4 } else { 0 };
                let events = self.events.iter();
                let more: u64 = events
                    .filter(|(when, of, _)| *of == name && when.contains(&second))
                    .map(|(_, _, more)| more)
                    .sum();
                series.push(second as u32, Some(value as i64));
                value += noisy + hourly + more;
            }
            recording.series.push(series);
        }
        recording
    }

    fn moments(&self) -> Vec<StandingOut> {
        find(&self.recording())
    }
}

/// Whether a moment is at this time, and no longer than it by more than 10 s on either side.
fn is_at(moment: &StandingOut, when: &Range<u64>) -> bool {
    let (from, to) = (moment.from_ns / SECOND_NS, moment.to_ns / SECOND_NS);
    from + 10 >= when.start && from < when.end && to > when.start && to <= when.end + 10
}

#[test]
fn three_minutes_of_a_day_are_found_and_nothing_else() {
    for seed in 1..=6 {
        let at = |hour: u64, minute: u64| (hour * 60 + minute + seed) * 60;
        let incidents = [at(3, 10), at(11, 40), at(19, 5)].map(|start| start..start + 60);
        let [busy, reading, swapping] = incidents.clone();
        let moments = Made::of(86_400, seed)
            .happens(busy.clone(), "stat.cpu.user_ns", 3_300_000_000)
            .happens(busy, "pressure.cpu.some_ns", 700_000_000)
            .happens(reading.clone(), "disk.vda.read_bytes", 150 << 20)
            .happens(reading.clone(), "disk.vda.reads", 1_200)
            .happens(reading, "pressure.io.some_ns", 300_000_000)
            .happens(swapping, "vmstat.pswpin", 3_000)
            .moments();
        for incident in &incidents {
            let found = moments.iter().filter(|moment| is_at(moment, incident)).count();
            assert_eq!(found, 1, "seed {seed}, {incident:?}: {moments:#?}");
        }
        assert_eq!(moments.len(), 3, "seed {seed}: {moments:#?}");
        assert_eq!(moments[0].figures[0].id, "cpu_pressure");
        assert_eq!(moments[2].figures[0].id, "swapped_in");
    }
}

#[test]
fn a_day_without_incidents_has_no_moments() {
    for seed in 1..=4 {
        assert_eq!(Made::of(86_400, seed).moments(), []);
    }
}

/// As the recorder of a newcomer had it: half a minute of incidents in two.
#[test]
fn short_incidents_of_a_short_recording_are_found() {
    let made = Made::of(137, 1)
        .happens(26..38, "pressure.cpu.some_ns", 950_000_000)
        .happens(52..55, "disk.vda.read_bytes", 400 << 20)
        .happens(69..83, "vmstat.pswpin", 1_500);
    let moments = made.moments();
    let ids: Vec<&str> = moments.iter().map(|moment| moment.figures[0].id.as_str()).collect();
    assert_eq!(ids, ["cpu_pressure", "read", "swapped_in"], "{moments:#?}");
    assert_eq!(moments[0].at, "00:00:26..00:00:38");
    assert_eq!(moments[1].at, "00:00:54", "ten seconds around it");
}

#[test]
fn at_most_ten_are_listed_and_the_heaviest() {
    let mut made = Made::of(20_000, 1);
    for number in 1..=30_u64 {
        let (start, counter) = (number * 600 + 300, COUNTERS[number as usize % 8].0);
        let more = if counter.ends_with("_ns") { 3_000_000_000 } else { 64 << 20 };
        made = made.happens(start..start + 10 + number, counter, more);
    }
    let moments = made.moments();
    assert!((1..=MOST_MOMENTS).contains(&moments.len()), "{}", moments.len());
    assert!(moments.is_sorted_by_key(|moment| moment.from_ns));
}

#[test]
fn commands_and_short_recordings_have_none() {
    let busy = |seconds| Made::of(seconds, 1).happens(10..20, "pressure.cpu.some_ns", 900_000_000);
    assert_eq!(busy(40).moments(), []);
    let mut recording = busy(100).recording();
    assert_eq!(find(&recording).len(), 1);
    recording.facts.subject = Subject::Command { argv: vec!["make".to_owned()] };
    assert_eq!(find(&recording), []);
    assert_eq!(find(&Recording::default()), []);
}

/// While no recorder ran nothing grew, and what grew meanwhile is no peak after it.
#[test]
fn a_pause_is_no_moment() {
    let mut recording = Made::of(400, 1).recording();
    for tick in &mut recording.ticks[200..] {
        tick.at_ns += 3_600 * SECOND_NS;
    }
    for series in &mut recording.series {
        let steps: Vec<_> = series.steps.iter().collect();
        series.steps = Steps::new();
        for step in steps {
            let later = if step.sample >= 200 { 1 << 44 } else { 0 };
            series.push(step.sample, step.value.map(|value| value + later));
        }
    }
    assert_eq!(find(&recording), []);
}

/// A program that takes a processor from the others, where the sum stays as it is.
#[test]
fn a_program_that_used_a_processor_has_its_name() {
    let mut recording = Made::of(300, 1).recording();
    let process = |id, name: &str| Process { id, name: name.to_owned(), ..Process::default() };
    recording.who.processes = vec![process(0, "postgres"), process(1, "python3 report.py")];
    for second in 0..300_u64 {
        let is_report = (100..130).contains(&second);
        let mut row = ProcessRow {
            process: u32::from(is_report),
            from_ns: second * SECOND_NS,
            to_ns: (second + 1) * SECOND_NS,
            ..ProcessRow::default()
        };
        row.figures[ProcessFigure::Cpu as usize] = 2 * SECOND_NS;
        recording.who.rows.push(row);
    }
    let moments = find(&recording);
    assert_eq!(moments.len(), 1, "{moments:#?}");
    assert_eq!(moments[0].figures[0].title, "processors that ran python3 report.py");
    assert_eq!(moments[0].at, "00:01:40..00:02:10");
}

#[test]
fn a_time_of_day_that_is_shown_again_later_is_named_since_the_start() {
    let early = 600 * SECOND_NS..620 * SECOND_NS;
    let mut recording = Made::of(10, 1).recording();
    let clock = |wall_s: u64, recording: &mut Recording| {
        recording.ticks = vec![Tick::default(), Tick { due_ns: 0, at_ns: wall_s * SECOND_NS }];
        WallClock::of(recording)
    };
    let named = at(&clock(2_000, &mut recording), early.start, early.end);
    assert_eq!(named, "00:10:00..00:10:20");
    let named = at(&clock(200_000, &mut recording), early.start, early.end);
    assert_eq!(named, "600s..620s");
}

#[test]
fn the_part_before_a_moment_ends_at_the_moment_before() {
    let moment = |from_s: u64, to_s: u64| StandingOut {
        from_ns: from_s * SECOND_NS,
        to_ns: to_s * SECOND_NS,
        ..StandingOut::default()
    };
    let moments = [moment(2, 10), moment(20, 30), moment(31, 60), moment(500, 600)];
    let seconds = |window: &Option<Window>| {
        window.map(|it| (it.from_ns.unwrap() / SECOND_NS, it.to_ns.unwrap() / SECOND_NS))
    };
    let before: Vec<_> = windows_before(&moments).iter().map(seconds).collect();
    assert_eq!(before, [None, Some((10, 20)), None, Some((470, 500))]);
}

#[test]
fn marks_are_those_of_the_part() {
    let mut recording = Made::of(10, 1).recording();
    for (second, text) in [(1, "deploy v42"), (8, "rollback")] {
        let (kind, start_ns) = ("mark".to_owned(), second * SECOND_NS);
        recording.spans.push(Span { kind, text: text.to_owned(), start_ns, end_ns: start_ns });
    }
    let shown = |from: u64, to: u64| -> Vec<String> {
        let marks = marks(&recording, from * SECOND_NS, to * SECOND_NS);
        marks.into_iter().map(|mark| format!("{} {}", mark.time, mark.text)).collect()
    };
    assert_eq!(shown(0, 10), ["00:00:01 deploy v42", "00:00:08 rollback"]);
    assert_eq!(shown(5, 10), ["00:00:08 rollback"]);
}

/// On a machine whose processors are always full, threads wait for them in any bad moment.
#[test]
fn a_moment_is_about_what_stood_out_in_it() {
    let finding = |id: &str, ns| {
        let finding = Finding::new(Grade::Measured, format!("claim of {id}"), None);
        Cause::new(Some(ns), Finding { id: id.to_owned(), ..finding })
    };
    let verdict = |findings| Explanation { wall_ns: 10_000, findings, ..Explanation::default() };
    let now = verdict(vec![finding("cpu_contention", 8_000), finding("memory_limit", 4_000)]);
    let before = verdict(vec![finding("cpu_contention", 2_000)]);
    let about = |figure: &str, now: &Explanation| {
        let figure = UnusualFigure { id: figure.to_owned(), ..UnusualFigure::default() };
        let mut moment = StandingOut { figures: vec![figure], ..StandingOut::default() };
        describe(&mut moment, now, &before);
        moment.finding.unwrap()
    };
    assert_eq!(about("refaulted", &now), "memory_limit");
    assert_eq!(about("cpu_pressure", &now), "cpu_contention");
    assert_eq!(about("steal", &now), "cpu_contention", "the first that is heavier");
    let as_usual = verdict(vec![finding("memory_limit", 4_000), finding("cpu_contention", 2_000)]);
    assert_eq!(about("cpu_pressure", &as_usual), "memory_limit", "no more than before");
}

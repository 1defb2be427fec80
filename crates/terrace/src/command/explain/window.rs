//! The requested part of a recording: typed moments become nanoseconds since its start.
//!
//! A time of day is by the clock of the recorded machine at that moment, which may have been set
//! during the recording. A recording of several days, or one whose clock was set back, has it
//! several times; the last one counts, because a flight recorder is asked about recent events.

use crate::args::recordings::ExplainArgs;
use crate::args::value::{Moment, NamedPart};
use crate::error::{Error, Result};
use crate::output::clean::spaced;
use crate::output::prose::shell_word;
use explain::recording::Window;
use model::recording::wall_clock::DAY_NS;
use model::recording::{Recording, Span, WallClock};
use std::time::Duration;

const SECOND_NS: i128 = 1_000_000_000;
const MINUTE_NS: i128 = 60 * SECOND_NS;

/// `--at` a second is about what happened around it: half of it before, half after.
const AROUND_NS: i128 = 10 * SECOND_NS;

/// So many marks are named where none is the one that was asked for: the newest.
const MOST_NAMED: usize = 8;

/// The window that the options name; all of the recording without any.
///
/// # Errors
/// If it is outside of the recording, or ends before it starts.
pub fn of(args: &ExplainArgs, recording: &Recording) -> Result<Window> {
    let frame = Frame::of(recording);
    match &args.at {
        None => frame.between(args.from, args.to),
        Some(NamedPart::Between(from, to)) => frame.between(Some(*from), Some(*to)),
        Some(NamedPart::Around(moment)) => {
            let (from, length) = frame.around(*moment);
            frame.window(Some(from), Some(from + length))
        }
        Some(NamedPart::Mark(text)) => {
            let at_ns = i128::from(mark(recording, text, &frame.clock)?);
            frame.window(Some(at_ns - AROUND_NS / 2), Some(at_ns + AROUND_NS / 2))
        }
    }
}

/// When the mark of this text was set; of several the last one. A part of the text is enough if no
/// other mark has it.
fn mark(recording: &Recording, text: &str, clock: &WallClock) -> Result<u64> {
    let marks: Vec<&Span> = recording.spans.iter().filter(|span| span.kind == "mark").collect();
    if let Some(mark) = marks.iter().rev().find(|mark| mark.text == text) {
        return Ok(mark.start_ns);
    }
    let similar: Vec<&&Span> = marks.iter().filter(|mark| mark.text.contains(text)).collect();
    if let [only] = similar[..] {
        return Ok(only.start_ns);
    }
    let shown = if similar.is_empty() { marks.iter().collect() } else { similar };
    let newest = &shown[shown.len().saturating_sub(MOST_NAMED)..];
    let label = |mark: &&&Span| {
        let time = clock.time_of_day(mark.start_ns.into());
        format!("{time} {}", shell_word(&spaced(&mark.text)))
    };
    let named: Vec<String> = newest.iter().map(label).collect();
    let error = Error::usage(format!("no moment and no mark is called {}", shell_word(text)));
    Err(error.hint(match named.len() {
        0 => "the recording has no marks; a moment is 14:32, 14:32:05, 12.5s or 14:30..14:35"
            .to_owned(),
        _ => format!("its marks: {}", named.join(", ")),
    }))
}

impl Frame {
    /// From one moment to another one; a time of day is the first after the start of the part.
    fn between(&self, from: Option<Moment>, to: Option<Moment>) -> Result<Window> {
        let from = from.map(|moment| self.last(moment, 0));
        let to = to.map(|moment| match (moment, from) {
            // The first such time of day after the start of the window.
            (Moment::Minute(_) | Moment::Second(_), Some(from)) => {
                let last = self.last(moment, 0);
                last - (last - from).div_euclid(DAY_NS) * DAY_NS
            }
            _ => self.last(moment, 0),
        });
        self.window(from, to)
    }
}

/// A recording's place in time.
struct Frame {
    clock: WallClock,
    wall_ns: i128,
}

impl Frame {
    fn of(recording: &Recording) -> Self {
        Self { clock: WallClock::of(recording), wall_ns: i128::from(recording.wall_ns()) }
    }

    /// Where `--at` starts, and how long it lasts.
    fn around(&self, moment: Moment) -> (i128, i128) {
        match moment {
            Moment::Minute(_) => (self.last(moment, MINUTE_NS), MINUTE_NS),
            _ => (self.last(moment, AROUND_NS / 2) - AROUND_NS / 2, AROUND_NS),
        }
    }

    /// The moment since the start; of a time of day the last one at which something that
    /// lasts `length_ns` would still reach into the recording.
    fn last(&self, moment: Moment, length_ns: i128) -> i128 {
        let of_day = match moment {
            Moment::Since(since) => return nanoseconds(since),
            Moment::Minute(ns) | Moment::Second(ns) => i128::from(ns),
        };
        let found = self.clock.last(of_day, length_ns);
        // Not there at all: after the end, by the clock of the start.
        found.unwrap_or_else(|| self.clock.first_after_start(of_day).max(self.wall_ns))
    }

    fn window(&self, from: Option<i128>, to: Option<i128>) -> Result<Window> {
        let (start, end) = (from.unwrap_or(0), to.unwrap_or(self.wall_ns));
        if end <= start && from.is_some() && to.is_some() {
            return Err(Error::usage("--to is not after --from"));
        }
        // All of a recording that was cut before its second sample is nothing, and explained.
        let asked = from.is_some() || to.is_some();
        if asked && (start >= self.wall_ns || end <= 0) {
            let whole = Duration::from_nanos(u64::try_from(self.wall_ns).unwrap_or(u64::MAX));
            let (first, last) = (self.clock.time_of_day(0), self.clock.time_of_day(self.wall_ns));
            let text = format!(
                "the recording has nothing there: it lasts {:.1} s, from {first} to {last}",
                whole.as_secs_f64()
            );
            return Err(Error::usage(text));
        }
        let within = |ns: i128| u64::try_from(ns.clamp(0, self.wall_ns)).unwrap_or(0);
        Ok(Window { from_ns: from.map(within), to_ns: to.map(within) })
    }
}

fn nanoseconds(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::value;
    use model::recording::{ClockSet, Facts, RecordingOutcome};
    use record::capture::{self, CommandPlan, DayClock, RecordOptions};
    use std::result::Result;

    /// Local time since 1970 at the start.
    fn starts(facts: &Facts) -> i128 {
        i128::from(facts.started_unix_ns) + i128::from(facts.utc_offset_s) * SECOND_NS
    }

    /// A recording that starts at 14:30:10 in a zone two hours east.
    fn recording(wall_s: u64) -> Recording {
        let mut recording = Recording::default();
        recording.facts.utc_offset_s = 7200;
        recording.facts.started_unix_ns =
            (20_000 * 86_400 + 12 * 3600 + 30 * 60 + 10) * 1_000_000_000;
        recording.outcome = Some(RecordingOutcome {
            ended_ns: wall_s * 1_000_000_000,
            ..RecordingOutcome::default()
        });
        recording
    }

    fn all() -> ExplainArgs {
        ExplainArgs {
            file: Some("x".into()),
            from: None,
            to: None,
            at: None,
            details: false,
            json: false,
            output: None,
        }
    }

    fn window(wall_s: u64, from: &str, to: &str, at: &str) -> Result<(f64, f64), String> {
        window_of(&recording(wall_s), from, to, at)
    }

    fn window_of(
        recording: &Recording,
        from: &str,
        to: &str,
        at: &str,
    ) -> Result<(f64, f64), String> {
        let moment = |text: &str| (!text.is_empty()).then(|| value::moment(text).unwrap());
        let at = (!at.is_empty()).then(|| value::part(at).unwrap());
        let args = ExplainArgs { from: moment(from), to: moment(to), at, ..all() };
        let window = of(&args, recording).map_err(|error| error.to_string())?;
        let seconds = |ns: Option<u64>| ns.map_or(-1.0, |ns| ns as f64 / 1e9);
        Ok((seconds(window.from_ns), seconds(window.to_ns)))
    }

    #[test]
    fn without_options_it_is_all() {
        assert_eq!(window(300, "", "", ""), Ok((-1.0, -1.0)));
    }

    #[test]
    fn times_since_the_start_and_times_of_day() {
        assert_eq!(window(300, "12.5s", "1min", ""), Ok((12.5, 60.0)));
        assert_eq!(window(300, "14:31", "14:32:05", ""), Ok((50.0, 115.0)));
        assert_eq!(window(300, "", "1h", ""), Ok((-1.0, 300.0)));
        assert_eq!(window(300, "14:31", "", ""), Ok((50.0, -1.0)));
    }

    #[test]
    fn at_a_minute_and_around_a_second() {
        assert_eq!(window(300, "", "", "14:31"), Ok((50.0, 110.0)));
        assert_eq!(window(300, "", "", "14:31:30"), Ok((75.0, 85.0)));
        assert_eq!(window(300, "", "", "100s"), Ok((95.0, 105.0)));
        assert_eq!(window(300, "", "", "2s"), Ok((0.0, 7.0)));
    }

    /// The minute in which the recording starts began before it.
    #[test]
    fn the_first_minute_counts() {
        assert_eq!(window(300, "", "", "14:30"), Ok((0.0, 50.0)));
        assert_eq!(window(300, "", "", "14:30:08"), Ok((0.0, 3.0)));
    }

    #[test]
    fn a_range_is_from_one_moment_to_another() {
        assert_eq!(window(300, "", "", "14:31..14:32:05"), Ok((50.0, 115.0)));
        assert_eq!(window(300, "", "", "12.5s..1min"), Ok((12.5, 60.0)));
        assert_eq!(window(90_000, "", "", "23:00..01:00"), Ok((30_590.0, 37_790.0)));
        let said = window(300, "", "", "60s..50s").unwrap_err();
        assert!(said.contains("not after"), "{said}");
    }

    #[test]
    fn around_a_mark() {
        let mut recording = recording(300);
        for (at_s, text) in
            [(20, "deploy v41"), (100, "deploy v42"), (200, "lunch"), (250, "lunch")]
        {
            let start_ns = at_s * 1_000_000_000;
            let (kind, text) = ("mark".to_owned(), text.to_owned());
            recording.spans.push(Span { kind, text, start_ns, end_ns: start_ns });
        }
        let at = |at| window_of(&recording, "", "", at);
        assert_eq!(at("deploy v42"), Ok((95.0, 105.0)));
        assert_eq!(at("v41"), Ok((15.0, 25.0)), "a part that one alone has");
        assert_eq!(at("lunch"), Ok((245.0, 255.0)), "the last one");
        let said = at("deploy").unwrap_err();
        assert!(said.contains("no mark is called deploy"), "{said}");
    }

    #[test]
    fn of_several_days_the_last_counts() {
        let day = 86_400.0;
        assert_eq!(window(90_000, "", "", "14:31"), Ok((day + 50.0, day + 110.0)));
        assert_eq!(window(90_000, "23:00", "01:00", ""), Ok((30_590.0, 37_790.0)));
        assert_eq!(window(90_000, "14:31", "14:32", ""), Ok((day + 50.0, day + 110.0)));
    }

    #[test]
    fn what_lies_outside_says_what_there_is() {
        for (from, to, at) in
            [("6min", "", ""), ("", "", "15:00"), ("", "", "14:29"), ("", "0s", "")]
        {
            let said = window(300, from, to, at).unwrap_err();
            assert!(said.contains("from 14:30:10 to 14:35:10"), "{from} {to} {at}: {said}");
        }
        let said = window(300, "60s", "50s", "").unwrap_err();
        assert!(said.contains("--to is not after --from"), "{said}");
    }

    /// The clock was set at the moment `at_s`.
    fn set(recording: &mut Recording, at_s: u64, moved_s: i128) {
        recording.spans.push(Span {
            kind: ClockSet::KIND.to_owned(),
            text: ClockSet::by(moved_s * SECOND_NS).to_string(),
            start_ns: at_s * 1_000_000_000,
            end_ns: at_s * 1_000_000_000,
        });
    }

    /// From 14:30:10 on; forward an hour at 14:31:50, back two at 15:33:30.
    #[test]
    fn a_time_of_day_is_by_the_clock_as_it_stood() {
        let mut recording = recording(300);
        set(&mut recording, 100, 3600);
        set(&mut recording, 200, -7200);
        let at = |at| window_of(&recording, "", "", at);
        assert_eq!(at("14:31"), Ok((50.0, 110.0)));
        assert_eq!(at("14:31:30"), Ok((75.0, 85.0)));
        assert_eq!(at("15:32:30"), Ok((135.0, 145.0)));
        assert_eq!(at("13:34:00"), Ok((225.0, 235.0)));
        // Both clocks showed it not.
        let said = at("15:00").unwrap_err();
        assert!(said.contains("from 14:30:10 to 13:35:10"), "{said}");
        // What was shown twice counts where it was last.
        let mut twice = super::tests::recording(300);
        set(&mut twice, 100, -60);
        let at = |at| window_of(&twice, "", "", at);
        assert_eq!(at("14:31:20"), Ok((125.0, 135.0)));
        assert_eq!(at("14:30:40"), Ok((25.0, 35.0)));
    }

    /// A command during which something happens to the clock; what the recorder made of it.
    fn recorded(happens: impl FnOnce(&DayClock)) -> Recording {
        let directory = testkit::TempDir::new();
        let (begun, set) = (directory.join("begun"), directory.join("set"));
        let script = r#"touch "$0"; until [ -e "$1" ]; do sleep 0.05; done; sleep 0.5"#;
        let words = ["sh", "-c", script].map(Into::into);
        let clock = DayClock::default();
        let plan = CommandPlan {
            argv: words.into_iter().chain([begun.clone().into(), set.clone().into()]).collect(),
            own_group: false,
            watch: RecordOptions { rate_hz: 50, clock: clock.clone(), ..RecordOptions::default() },
        };
        std::thread::scope(|scope| {
            let running = scope.spawn(|| capture::command(&plan).unwrap().recording);
            while !begun.exists() {
                assert!(!running.is_finished(), "it never began");
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(Duration::from_millis(500));
            happens(&clock);
            std::fs::write(&set, "").unwrap();
            running.join().unwrap()
        })
    }

    /// The steady clock stands still meanwhile: nothing waited.
    #[test]
    fn a_suspended_machine_is_said_and_counts_as_no_time() {
        const NIGHT_NS: u64 = 8 * 3_600_000_000_000;
        let recording = recorded(|clock| clock.suspend_for(NIGHT_NS));
        let wall_ns = recording.wall_ns();
        assert!((1_000_000_000..NIGHT_NS).contains(&wall_ns));
        let whole = explain::recording::explain(&recording, Window::default());
        let said = "the machine was suspended for 28800.0 s";
        let about = |doubt: &&String| doubt.contains("clock") || doubt.contains("suspended");
        assert_eq!(whole.doubts.iter().filter(about).collect::<Vec<_>>(), [said]);
        // The time of day after it is found after it.
        let end_ns = i128::from(wall_ns);
        let of_day = (starts(&recording.facts) + end_ns + i128::from(NIGHT_NS)).rem_euclid(DAY_NS);
        let moment = Moment::Second(u64::try_from(of_day).unwrap());
        assert_eq!(Frame::of(&recording).last(moment, 0), end_ns);
    }

    #[test]
    fn a_clock_that_is_set_while_recording_changes_no_duration_and_is_reported_once() {
        const HOUR_NS: i64 = 3_600_000_000_000;
        for moved_ns in [HOUR_NS, -HOUR_NS] {
            let recording = recorded(|clock| clock.set_by(moved_ns));
            let wall_ns = recording.wall_ns();
            assert!((1_000_000_000..HOUR_NS.unsigned_abs()).contains(&wall_ns));
            let ticks = &recording.ticks;
            assert!(ticks.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
            let whole = explain::recording::explain(&recording, Window::default());
            assert_eq!(whole.wall_ns, wall_ns);
            let doubts = whole.doubts.iter().filter(|doubt| doubt.contains("clock"));
            assert_eq!(doubts.collect::<Vec<_>>(), [&ClockSet::by(moved_ns.into()).to_string()]);
            let spans = recording.spans.iter();
            let mut sets = spans.filter(|span| span.kind == ClockSet::KIND);
            let set_ns = i128::from(sets.next().unwrap().start_ns);
            assert!(sets.next().is_none());
            // What the clock showed at the start, and at the end, is found there.
            let end_ns = i128::from(wall_ns);
            for (at_ns, moved_ns) in [(set_ns / 2, 0), ((set_ns + end_ns) / 2, moved_ns.into())] {
                let of_day = (starts(&recording.facts) + at_ns + moved_ns).rem_euclid(DAY_NS);
                let moment = Moment::Second(u64::try_from(of_day).unwrap());
                assert_eq!(Frame::of(&recording).last(moment, 0), at_ns);
            }
        }
    }
}

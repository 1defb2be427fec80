//! The requested part of a recording: typed moments become nanoseconds since its start.
//!
//! A time of day is by the clock of the recorded machine at that moment, which may have been set
//! during the recording. A recording of several days, or one whose clock was set back, has it
//! several times; the last one counts, because a flight recorder is asked about recent events.

use crate::args::recordings::ExplainArgs;
use crate::args::value::Moment;
use crate::error::{Error, Result};
use explain::recording::Window;
use model::recording::{ClockSet, Facts, Recording};
use std::time::Duration;

const SECOND_NS: i128 = 1_000_000_000;
const MINUTE_NS: i128 = 60 * SECOND_NS;
const DAY_NS: i128 = 24 * 60 * MINUTE_NS;

/// `--at` a second is about what happened around it: half of it before, half after.
const AROUND_NS: i128 = 10 * SECOND_NS;

/// The window that the options name; all of the recording without any.
///
/// # Errors
/// If it is outside of the recording, or ends before it starts.
pub fn of(args: &ExplainArgs, recording: &Recording) -> Result<Window> {
    let frame = Frame::of(recording);
    if let Some(moment) = args.at {
        let (from, length) = frame.around(moment);
        return frame.window(Some(from), Some(from + length));
    }
    let from = args.from.map(|moment| frame.last(moment, 0));
    let to = args.to.map(|moment| match (moment, from) {
        // The first such time of day after the start of the window.
        (Moment::Minute(_) | Moment::Second(_), Some(from)) => {
            let last = frame.last(moment, 0);
            last - (last - from).div_euclid(DAY_NS) * DAY_NS
        }
        _ => frame.last(moment, 0),
    });
    frame.window(from, to)
}

/// A recording's place in time.
struct Frame {
    /// The pieces between which the clock was set, in order; at least one.
    pieces: Vec<Piece>,
    wall_ns: i128,
}

/// A part of a recording in which the clock was not set.
struct Piece {
    from_ns: i128,
    to_ns: i128,
    /// The time of day at the start of the recording, by the clock as it stands here.
    starts_ns: i128,
}

impl Frame {
    fn of(recording: &Recording) -> Self {
        let wall_ns = i128::from(recording.wall_ns());
        let piece = |from_ns, starts_ns| Piece { from_ns, to_ns: wall_ns, starts_ns };
        let mut last = piece(0, starts(&recording.facts));
        let mut pieces = Vec::new();
        for span in &recording.spans {
            let is_set = span.kind == ClockSet::KIND;
            let Some(set) = is_set.then(|| span.text.parse::<ClockSet>().ok()).flatten() else {
                continue;
            };
            let at_ns = i128::from(span.start_ns).min(wall_ns);
            let next = piece(at_ns, last.starts_ns + set.moved_ns());
            last.to_ns = at_ns;
            pieces.push(std::mem::replace(&mut last, next));
        }
        pieces.push(last);
        Self { pieces, wall_ns }
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
        let found = self.pieces.iter().rev().find_map(|piece| piece.last(of_day, length_ns));
        // Not there at all: after the end, by the clock of the start.
        found.unwrap_or_else(|| {
            let starts_ns = self.pieces[0].starts_ns;
            (of_day - starts_ns).rem_euclid(DAY_NS).max(self.wall_ns)
        })
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
            let (first, last) = (self.clock(0), self.clock(self.wall_ns));
            let text = format!(
                "the recording has nothing there: it lasts {:.1} s, from {first} to {last}",
                whole.as_secs_f64()
            );
            return Err(Error::usage(text));
        }
        let within = |ns: i128| u64::try_from(ns.clamp(0, self.wall_ns)).unwrap_or(0);
        Ok(Window { from_ns: from.map(within), to_ns: to.map(within) })
    }

    /// The time of day, `14:32:05`, so long after the start.
    fn clock(&self, since_ns: i128) -> String {
        let piece = self.pieces.iter().rev().find(|piece| piece.from_ns <= since_ns);
        let starts_ns = piece.map_or(0, |piece| piece.starts_ns);
        let seconds = (starts_ns + since_ns).rem_euclid(DAY_NS) / SECOND_NS;
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)
    }
}

impl Piece {
    /// The last moment in it at which the clock showed `of_day`, or that was before it and
    /// lasts into it; since the start of the recording.
    fn last(&self, of_day: i128, length_ns: i128) -> Option<i128> {
        let after_ns = (of_day - self.starts_ns - self.from_ns).rem_euclid(DAY_NS);
        let first = self.from_ns + after_ns;
        if first <= self.to_ns {
            return Some(first + (self.to_ns - first).div_euclid(DAY_NS) * DAY_NS);
        }
        let earlier = first - DAY_NS;
        (earlier + length_ns > self.from_ns).then_some(earlier)
    }
}

fn starts(facts: &Facts) -> i128 {
    let local = i128::from(facts.started_unix_ns) + i128::from(facts.utc_offset_s) * SECOND_NS;
    local.rem_euclid(DAY_NS)
}

fn nanoseconds(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::value;
    use model::recording::{RecordingOutcome, Span};
    use record::capture::{self, CommandPlan, DayClock, RecordOptions};
    use std::result::Result;

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
            file: "x".into(),
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
        let args = ExplainArgs { from: moment(from), to: moment(to), at: moment(at), ..all() };
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

//! `terrace record --try`: what runs on is recorded once for its verdict; then as it is and with
//! the first remedy that can be tried, in turn. How much work it did in a second says what the
//! remedy brings.
//!
//! After each change half of the time passes uncounted: caches fill and empty. The change is there
//! only while a recording with it lasts. Memory that is restored stays, so all recordings without
//! it come first.

use crate::args::When;
use crate::args::record::RecordArgs;
use crate::command::attempt::{self, Attempt, SIDES, USUAL_ROUNDS};
use crate::command::record_options;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::progress::Progress;
use crate::output::survey::Detail;
use crate::output::verdict::{self, VerdictSetting};
use crate::output::{self, OutputTarget, Page};
use explain::comparison::{self, SteadyRun};
use explain::recording::{Window, explain};
use model::explanation::Explanation;
use model::recording::Recording;
use record::capture::{self, RecordOptions, Target};
use std::time::{Duration, Instant};

/// How often a wait looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// What is recorded again and again.
struct Subject {
    target: Target,
    options: RecordOptions,
    lasts: Duration,
}

/// Tries the first remedy, and prints what it brought.
///
/// # Errors
/// If the target is not there, the work is not counted, or the change cannot be made or put back;
/// `Partial` after Ctrl-C, when it has been put back.
pub fn record(args: &RecordArgs, color: When) -> Result<Exit> {
    let Some(lasts) = args.duration else {
        return Err(Error::usage("--try needs --for: how long each recording lasts"));
    };
    if args.watch.work.is_none() {
        let error = Error::usage("--try needs --work: else nothing says how much was done");
        return Err(error.hint("for instance --work pg:xact_commit"));
    }
    let target = record_options::target(&args.target);
    let subject = Subject { target, options: attempt::options(&args.watch)?, lasts };
    let page = Page::of(&OutputTarget::standard(), color);
    let progress = Progress::new();
    progress.step("terrace record: for the verdict");
    let first = explain(&subject.recorded()?, Window::default());
    let mut attempt = match Attempt::of("record", &first) {
        Ok(attempt) => attempt,
        Err(why) => {
            drop(progress);
            output::show(&verdict::page(&first, &setting(), Detail::Brief, page));
            return Err(Error::new(Exit::Impossible, format!("nothing was tried: {why}")));
        }
    };
    attempt.announce();
    let mut sides: [(Vec<Explanation>, Vec<SteadyRun>); 2] = Default::default();
    for (number, side) in order(attempt.is_in_turn()) {
        if !attempt.is_in_turn() && (number, side) == (1, 1) {
            progress.step("terrace record: restores what was evicted");
            attempt.restore()?;
        }
        let name = SIDES[side];
        progress.step(&format!("terrace record: {number} of {USUAL_ROUNDS}, {name} side"));
        let recording = subject.side(&attempt, side)?;
        sides[side].0.push(explain(&recording, Window::default()));
        sides[side].1.extend(comparison::steady_run(&recording));
    }
    drop(progress);
    let [(explained, steady), (explained_second, steady_second)] = &sides;
    let compared = comparison::rates((explained, steady), (explained_second, steady_second));
    let comparison = attempt.concluded(compared, args.keep_change)?;
    Ok(output::show(&attempt.page(&comparison, false, page)))
}

/// Which round and side is next: in turn in an order that rotates, or the first side before the
/// second.
fn order(in_turn: bool) -> Vec<(u32, usize)> {
    let rounds = 1..=USUAL_ROUNDS;
    if in_turn {
        let both = |number: u32| [0, 1].map(|turn| (number, (turn + number as usize + 1) % 2));
        return rounds.flat_map(both).collect();
    }
    let of_side = |side| (1..=USUAL_ROUNDS).map(move |number| (number, side));
    [0, 1].into_iter().flat_map(of_side).collect()
}

fn setting() -> VerdictSetting {
    VerdictSetting {
        title: "terrace record --try".to_owned(),
        root: sys::process::effective_uid() == 0,
        ..VerdictSetting::default()
    }
}

impl Subject {
    /// One recording of a side: the second has the change.
    fn side(&self, attempt: &Attempt, side: usize) -> Result<Recording> {
        let is_changed = side == 1 && attempt.is_in_turn();
        let applied = is_changed.then(|| attempt.apply()).transpose()?;
        let recorded = self.settled().and_then(|()| self.recorded());
        applied.map_or(Ok(()), |applied| attempt.put_back(applied))?;
        recorded
    }

    /// Lets half of the time pass.
    fn settled(&self) -> Result<()> {
        let until = Instant::now() + self.lasts / 2;
        while Instant::now() < until {
            if sys::interrupt::requested() {
                return Err(interrupted());
            }
            std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    fn recorded(&self) -> Result<Recording> {
        let for_ns = u64::try_from(self.lasts.as_nanos()).unwrap_or(u64::MAX);
        let captured = capture::watch(&self.target, Some(for_ns), &self.options)?;
        if sys::interrupt::requested() {
            return Err(interrupted());
        }
        Ok(captured.recording)
    }
}

fn interrupted() -> Error {
    Error::new(Exit::Partial, "interrupted; nothing stays changed")
}

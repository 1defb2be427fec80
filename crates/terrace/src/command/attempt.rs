//! A remedy that is tried: its change is made by the crate `undo`, in turn with how it was, and put
//! back. What it brings is then measured, not expected.
//!
//! Only what one file of the kernel holds, takes effect at once and can be put back is tried: the
//! limit of a group, read-ahead, huge pages. A killed trial is put back by `terrace undo`.
//!
//! What an earlier pressure left in swap is restored once, between the two sides. That changes
//! no setting and is not undone, so the sides do not take turns, and the page says so.

use super::record_options;
use super::warm::READER;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::prose::long_time;
use crate::output::{self, Page, compare};
use machine::Root;
use model::Bytes;
use model::compared::{Comparison, TriedChange};
use model::comparison::DifferenceVerdict;
use model::explanation::{EvictedMemory, Explanation, Remedy};
use model::progress::Control;
use place::background::Limits;
use place::workingset::restore::{self, RestoreRequest};
use place::workingset::targets::Selection;
use std::path::Path;
use std::time::Instant;
use sys::helper::HiddenCommand;
use undo::{AppliedChange, Journal, UndoOutcome};

/// How often each side is measured if no number was given: the least that can prove anything.
pub const USUAL_ROUNDS: u32 = 4;

/// The sides of a trial, in the files of their recordings too.
pub const SIDES: [&str; 2] = ["first", "second"];

/// A change that is tried.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The command that tries it, for its messages.
    command: &'static str,
    remedy: Remedy,
    tried: TriedChange,
    /// Whose memory is restored, instead of a setting that is changed.
    restores: Option<Selection>,
}

/// The trial of a command: a process that is started anew has nothing to restore.
const OF_COMMANDS: &str = "run";

impl Attempt {
    /// The first remedy of an explanation whose change can be made here and put back. It is made
    /// and put back once, to know that.
    ///
    /// # Errors
    /// In words, why none can.
    pub fn of(
        command: &'static str,
        explanation: &Explanation,
    ) -> std::result::Result<Self, String> {
        let mut fault = None;
        for remedy in &explanation.remedies {
            if let Some(evicted) = remedy.restores.as_ref().filter(|_| command != OF_COMMANDS) {
                return Ok(Self::of_restore(command, remedy, evicted));
            }
            let Some(change) = &remedy.change else { continue };
            let before = std::fs::read_to_string(&change.path).unwrap_or_default();
            // It may be another group's, or have been set since.
            if undo::chosen(&before) != change.from {
                let now = undo::chosen(&before);
                let why = format!("{} is {now}, the recording had {}", change.path, change.from);
                fault = fault.or(Some(why));
                continue;
            }
            let tried = TriedChange {
                finding: remedy.finding.clone(),
                words: change.words.clone(),
                path: change.path.clone(),
                before: undo::chosen(&before).to_owned(),
                after: change.to.clone(),
                kept: false,
            };
            let attempt = Self { command, remedy: remedy.clone(), tried, restores: None };
            match attempt.apply().and_then(|applied| attempt.put_back(applied)) {
                Ok(()) => return Ok(attempt),
                Err(error) => fault = fault.or(Some(error.text)),
            }
        }
        Err(fault.unwrap_or_else(|| {
            "no remedy is a setting that can be changed here and put back".to_owned()
        }))
    }

    fn of_restore(command: &'static str, remedy: &Remedy, evicted: &EvictedMemory) -> Self {
        let selection = match (evicted.pid, &evicted.group) {
            (Some(pid), _) => Selection::Processes(vec![pid]),
            (None, group) => Selection::Group(group.as_deref().unwrap_or("/").into()),
        };
        let tried = TriedChange {
            finding: remedy.finding.clone(),
            words: "what was evicted restored".to_owned(),
            path: evicted.command.clone(),
            before: "in swap".to_owned(),
            after: String::new(),
            kept: true,
        };
        Self { command, remedy: remedy.clone(), tried, restores: Some(selection) }
    }

    /// Whether the change can be put back, so that both sides take turns.
    pub const fn is_in_turn(&self) -> bool {
        self.restores.is_none()
    }

    /// Restores the memory, by the code of `terrace warm restore` and within its limits.
    ///
    /// # Errors
    /// If it may not, or nothing of it is evicted any more.
    pub fn restore(&mut self) -> Result<()> {
        let Some(selection) = self.restores.clone() else { return Ok(()) };
        let root = Root::system();
        let request = RestoreRequest {
            helper: Some(HiddenCommand::new([READER])),
            ..RestoreRequest::new(selection, Limits::usual(&root))
        };
        let begun = Instant::now();
        let plan = restore::plan(&root, &request)?;
        let report = restore::carry_out(&root, &request, plan, &mut |_| {
            if sys::interrupt::requested() { Control::Stop } else { Control::Continue }
        })?;
        let bytes = report.parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.bytes));
        if bytes == 0 {
            let text = "nothing was tried: nothing of it is evicted any more";
            return Err(Error::new(Exit::Impossible, text));
        }
        let took = long_time(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        self.tried.after = format!("{} read back in {took}", Bytes(bytes));
        Ok(())
    }

    /// Says what will be changed, before it is.
    pub fn announce(&self) {
        let words = &self.tried.words;
        let text = if self.is_in_turn() {
            format!("tries {words}, in turn with how it is, and puts it back")
        } else {
            format!("measures it as it is, then tries {words} (`{}`)", self.tried.path)
        };
        output::announce(self.command, &text);
    }

    /// Makes the change, until it is put back.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn apply(&self) -> Result<AppliedChange> {
        let journal = Journal::of_user()?;
        Ok(AppliedChange::setting(&journal, Path::new(&self.tried.path), &self.tried.after)?)
    }

    /// Puts it back.
    ///
    /// # Errors
    /// If that cannot be done: what is measured next would be the changed state.
    pub fn put_back(&self, applied: AppliedChange) -> Result<()> {
        let outcome = applied.release().map(|report| report.outcome);
        let why = match outcome {
            None
            | Some(UndoOutcome::Restored | UndoOutcome::AlreadyRestored | UndoOutcome::Gone) => {
                return Ok(());
            }
            Some(UndoOutcome::InUse { .. }) => "another run relies on it".to_owned(),
            Some(UndoOutcome::ChangedSince { now }) => format!("another program set it to {now}"),
            Some(UndoOutcome::Newer) => "a newer version changed it".to_owned(),
            Some(UndoOutcome::Failed(error)) => error.to_string(),
        };
        let text = format!("{} was not put back: {why}", self.tried.path);
        Err(Error::new(Exit::Partial, text).hint("`terrace undo` tries again"))
    }

    /// Keeps the change if the comparison proves that it helps and that was asked for. The journal
    /// forgets it then, so nothing puts it back.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn concluded(&self, comparison: Comparison, keep: bool) -> Result<Comparison> {
        let kept = !self.is_in_turn() || (keep && helps(&comparison));
        if kept && self.is_in_turn() {
            self.apply()?.keep()?;
        }
        let mut comparison = comparison;
        comparison.first.name.push_str(", as it is");
        comparison.second.name.push_str(&format!(", with {}", self.tried.words));
        comparison.tried = Some(TriedChange { kept, ..self.tried.clone() });
        Ok(comparison)
    }

    /// The page of a trial: the comparison, what was expected, and what became of the change.
    pub fn page(&self, comparison: &Comparison, details: bool, page: Page) -> String {
        let text = if details {
            compare::details(comparison, page)
        } else {
            compare::page(comparison, page)
        };
        let tried = comparison.tried.as_ref().unwrap_or(&self.tried);
        format!("{text}\n{}", compare::tried(tried, self.remedy.gain.as_ref(), page))
    }
}

/// Whether the second side is proven better: less wall time, or more work in a second.
pub fn helps(comparison: &Comparison) -> bool {
    let decisive = comparison.items.iter().find(|item| matches!(item.of.as_str(), "wall" | "rate"));
    decisive.is_some_and(|item| {
        item.better.is_some()
            && item.verdict != DifferenceVerdict::Unproven
            && item.worse_by().is_none()
    })
}

/// The options of a part of a trial, which is kept in memory only.
///
/// # Errors
/// As those of the command.
pub fn options(args: &crate::args::shared::WatchArgs) -> Result<record::capture::RecordOptions> {
    record_options::of_command(args, None)
}

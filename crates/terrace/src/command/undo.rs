//! `terrace undo`: puts back or lists settings that a crash left changed, and removes sockets and
//! control groups of recorders that were killed.
//!
//! What other processes still need, or another program has changed since, is left alone and
//! reported.

use crate::args::UndoArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output;
use crate::service;
use record::capture;
use std::path::PathBuf;
use undo::{JournalEntry, UndoOutcome, UndoReport};

/// Puts back, or lists.
///
/// # Errors
/// When the journal cannot be read.
pub fn undo(args: &UndoArgs) -> Result<Exit> {
    if args.list {
        let mut lines: Vec<String> = undo::list()?.iter().map(entry_line).collect();
        let left = leftovers(false);
        lines.extend(left.map(|path| format!("{}: its recorder is gone\n", path.display())));
        return Ok(output::show(&or_nothing(&lines)));
    }
    let reports = undo::undo_all()?;
    let mut lines: Vec<String> = reports.iter().map(report_line).collect();
    let removed = leftovers(true);
    lines.extend(removed.map(|path| format!("{}: removed\n", path.display())));
    let shown = output::show(&or_nothing(&lines));
    let failed = reports.iter().filter(|report| is_failure(report)).count();
    if failed > 0 {
        let text = format!("{failed} of {} could not be put back", reports.len());
        return Ok(output::complain(&Error::new(Exit::Partial, text).during("undo")));
    }
    Ok(shown)
}

/// What killed recorders have left; with `remove`, what was removed of it.
fn leftovers(remove: bool) -> impl Iterator<Item = PathBuf> {
    let sockets = service::leftovers(remove);
    capture::leftovers(remove).into_iter().chain(sockets)
}

/// `/proc/sys/x: 0 -> 1, process 12 relies on it`.
fn entry_line(entry: &JournalEntry) -> String {
    let (change, now, holders) = match entry {
        JournalEntry::Known { change, now, holders } => (change, now, holders),
        JournalEntry::Newer { path } => {
            return format!("{}: a newer version of Terrace wrote it\n", path.display());
        }
    };
    let now = match now {
        Some(now) if now != change.after() => format!(", now {now}"),
        Some(_) => String::new(),
        None => ", cannot be read now".to_owned(),
    };
    let users =
        if holders.is_empty() { "no process relies on it".to_owned() } else { reliance(holders) };
    let path = change.path().display();
    let (before, after) = (change.before(), change.after());
    format!("{path}: {before} -> {after}{now}, {users}\n")
}

/// What became of one entry, in a line.
fn report_line(report: &UndoReport) -> String {
    let outcome = match &report.outcome {
        UndoOutcome::Restored => "put back".to_owned(),
        UndoOutcome::AlreadyRestored => "had been put back already".to_owned(),
        UndoOutcome::Gone => "it does not exist any more; nothing is to be put back".to_owned(),
        UndoOutcome::InUse { by } => format!("left alone: {}", reliance(by)),
        UndoOutcome::ChangedSince { now } => {
            format!("left alone: another program has set it to {now}")
        }
        UndoOutcome::Newer => "not put back: a newer version of Terrace wrote it, and only that \
                               version can put it back"
            .to_owned(),
        UndoOutcome::Failed(error) => format!("not put back: {error}"),
    };
    format!("{}: {outcome}\n", report.path.display())
}

fn is_failure(report: &UndoReport) -> bool {
    matches!(report.outcome, UndoOutcome::Failed(_) | UndoOutcome::Newer)
}

/// `process 12 relies on it`, `processes 12, 13 rely on it`.
fn reliance(pids: &[u32]) -> String {
    let names: Vec<String> = pids.iter().map(u32::to_string).collect();
    let (noun, verb) = match pids.len() {
        1 => ("process", "relies"),
        _ => ("processes", "rely"),
    };
    format!("{noun} {} {verb} on it", names.join(", "))
}

fn or_nothing(lines: &[String]) -> String {
    match lines {
        [] => "nothing to undo\n".to_owned(),
        lines => lines.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use undo::{Change, Setting};

    fn entry(now: &str, holders: Vec<u32>) -> JournalEntry {
        JournalEntry::Known {
            change: Change::Setting(Setting {
                path: "/proc/sys/kernel/task_delayacct".into(),
                before: "0".to_owned(),
                after: "1".to_owned(),
            }),
            now: Some(now.to_owned()),
            holders,
        }
    }

    #[test]
    fn an_entry_says_what_changed_and_what_relies_on_it() {
        let start = "/proc/sys/kernel/task_delayacct: 0 -> 1";
        assert_eq!(
            entry_line(&entry("1", vec![12])),
            format!("{start}, process 12 relies on it\n")
        );
        assert_eq!(
            entry_line(&entry("2", vec![])),
            format!("{start}, now 2, no process relies on it\n")
        );
    }

    #[test]
    fn what_was_left_alone_is_not_a_failure() {
        let report = |outcome| UndoReport { path: "/sys/x".into(), outcome };
        let in_use = report(UndoOutcome::InUse { by: vec![1, 2] });
        assert_eq!(report_line(&in_use), "/sys/x: left alone: processes 1, 2 rely on it\n");
        let error = sys::Error::new("read the journal", std::io::Error::other("damaged"));
        let damaged = report(UndoOutcome::Failed(error));
        let newer = report(UndoOutcome::Newer);
        assert!(is_failure(&damaged) && is_failure(&newer) && !is_failure(&in_use));
        assert_eq!(
            report_line(&damaged),
            "/sys/x: not put back: cannot read the journal: damaged\n"
        );
    }
}

//! `terrace undo`: settings that a crash left changed are put back, or only listed; so are
//! sockets and control groups of recorders that were killed.
//! What others still need, or have changed since, is left alone, and that is said.

use crate::args::undo::UndoArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output;
use record::capture::leftovers;
use record::undo::{self, Entry, Outcome, Undone};

/// Puts back, or lists.
///
/// # Errors
/// When the journal cannot be read.
pub fn undo(args: &UndoArgs) -> Result<Exit> {
    if args.list {
        let mut entries: Vec<String> = undo::list()?.iter().map(listed).collect();
        let left = leftovers(false).into_iter();
        entries.extend(left.map(|path| format!("{}: its recorder is gone\n", path.display())));
        return Ok(output::show(&or_nothing(&entries)));
    }
    let undone = undo::all()?;
    let mut lines: Vec<String> = undone.iter().map(told).collect();
    let removed = leftovers(true).into_iter();
    lines.extend(removed.map(|path| format!("{}: removed\n", path.display())));
    let shown = output::show(&or_nothing(&lines));
    let failed = undone.iter().filter(|undone| failed(undone)).count();
    if failed > 0 {
        let text = format!("{failed} of {} could not be put back", undone.len());
        return Ok(output::complain(
            &Error::new(Exit::Partial, text).during("undo"),
        ));
    }
    Ok(shown)
}

/// `/proc/sys/x: 0 -> 1, process 12 relies on it`.
fn listed(entry: &Entry) -> String {
    let setting = &entry.setting;
    let change = format!(
        "{}: {} -> {}",
        setting.path.display(),
        setting.before,
        setting.after
    );
    let now = match &entry.now {
        Some(now) if *now != setting.after => format!(", now {now}"),
        Some(_) => String::new(),
        None => ", cannot be read now".to_owned(),
    };
    let holders = match entry.holders.is_empty() {
        true => ", nobody relies on it".to_owned(),
        false => format!(", {}", relies(&entry.holders)),
    };
    format!("{change}{now}{holders}\n")
}

/// What became of one entry, in a line.
fn told(undone: &Undone) -> String {
    let outcome = match &undone.outcome {
        Outcome::Restored => "put back".to_owned(),
        Outcome::WasBack => "had been put back already".to_owned(),
        Outcome::Held { by } => format!("left alone: {}", relies(by)),
        Outcome::Foreign { now } => format!("left alone: somebody else has set it to {now}"),
        Outcome::Failed(error) => format!("not put back: {error}"),
    };
    format!("{}: {outcome}\n", undone.path.display())
}

fn failed(undone: &Undone) -> bool {
    matches!(undone.outcome, Outcome::Failed(_))
}

/// `process 12 relies on it`, `processes 12, 13 rely on it`.
fn relies(pids: &[u32]) -> String {
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
    use record::undo::Setting;

    #[test]
    fn an_entry_says_what_changed_and_who_needs_it() {
        let mut entry = Entry {
            setting: Setting {
                path: "/proc/sys/kernel/task_delayacct".into(),
                before: "0".to_owned(),
                after: "1".to_owned(),
            },
            now: Some("1".to_owned()),
            holders: vec![12],
        };
        let start = "/proc/sys/kernel/task_delayacct: 0 -> 1";
        assert_eq!(
            listed(&entry),
            format!("{start}, process 12 relies on it\n")
        );
        entry.holders.clear();
        entry.now = Some("2".to_owned());
        assert_eq!(
            listed(&entry),
            format!("{start}, now 2, nobody relies on it\n")
        );
    }

    #[test]
    fn what_was_left_alone_is_no_failure() {
        let undone = |outcome| Undone {
            path: "/sys/x".into(),
            outcome,
        };
        let held = undone(Outcome::Held { by: vec![1, 2] });
        assert_eq!(
            told(&held),
            "/sys/x: left alone: processes 1, 2 rely on it\n"
        );
        let broken = record::Error::new(record::Kind::Failed, "read the journal", "damaged");
        let broken = undone(Outcome::Failed(broken));
        assert!(failed(&broken) && !failed(&held));
        assert_eq!(
            told(&broken),
            "/sys/x: not put back: cannot read the journal: damaged\n"
        );
    }
}

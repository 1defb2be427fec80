//! The command that would have watched what was not seen, as it was typed: of the same subject,
//! with what it lacked.

use crate::wording::shell_word;
use model::recording::{Facts, Subject};

/// `sudo terrace record --cgroup app --trace sched`: with the events of `family`, and with root's
/// rights if `as_root` or events ask for them and the recorder had none.
#[must_use]
pub fn watching_command(facts: &Facts, family: Option<&str>, as_root: bool) -> String {
    let sudo = if !facts.root && (as_root || family.is_some()) { "sudo " } else { "" };
    let trace = family.map(|family| format!(" --trace {family}")).unwrap_or_default();
    match &facts.subject {
        Subject::Command { .. } => format!("{sudo}terrace run{trace} -- CMD"),
        Subject::Process { pid, .. } => format!("{sudo}terrace record --pid {pid}{trace}"),
        Subject::Group { unit: Some(unit), .. } => {
            format!("{sudo}terrace record --unit {}{trace}", shell_word(unit))
        }
        Subject::Group { path, .. } => {
            format!("{sudo}terrace record --cgroup {}{trace}", shell_word(path))
        }
        Subject::Machine | Subject::Probe { .. } => format!("{sudo}terrace record{trace}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_the_typed_one_with_what_it_lacked() {
        let of = |subject, root| Facts { subject, root, ..Facts::default() };
        let group = Subject::Group { path: "/my app".to_owned(), unit: None };
        let unit = Subject::Group { path: "/a".to_owned(), unit: Some("pg.service".to_owned()) };
        let command = Subject::Command { argv: Vec::new() };
        let process = Subject::Process { pid: 7, argv: Vec::new() };
        for (subject, root, family, text) in [
            (group, true, Some("sched"), "terrace record --cgroup '/my app' --trace sched"),
            (unit, false, Some("vmscan"), "sudo terrace record --unit pg.service --trace vmscan"),
            (command, false, Some("sched"), "sudo terrace run --trace sched -- CMD"),
            (process, false, None, "sudo terrace record --pid 7"),
            (Subject::Machine, true, None, "terrace record"),
        ] {
            assert_eq!(watching_command(&of(subject, root), family, true), text);
        }
    }
}

//! What was explained and how it ended, in words.
//! The output code of each command lays them out.

use crate::wording::shell_word;
use model::recording::{Ending, Recording, Subject, WallClock};

/// The subject: the command line, or who else was watched.
pub(crate) fn subject(recording: &Recording) -> String {
    match &recording.facts.subject {
        Subject::Machine => "the whole machine".to_owned(),
        Subject::Command { argv } => command_line(argv),
        Subject::Process { pid, argv } if argv.is_empty() => format!("process {pid}"),
        Subject::Process { pid, argv } => format!("process {pid}: {}", command_line(argv)),
        Subject::Group { path, unit } => match unit {
            Some(unit) => format!("unit {unit}"),
            None => format!("group {path}"),
        },
        Subject::Probe { name } => format!("the whole machine during terrace {name}"),
    }
}

fn command_line(argv: &[String]) -> String {
    let words: Vec<String> = argv.iter().map(|word| shell_word(word)).collect();
    words.join(" ")
}

/// The end: `exit 0`, `killed by SIGKILL: out of memory, ...`, `stopped`, `cut`.
pub(super) fn ending(recording: &Recording) -> String {
    let Some(outcome) = &recording.outcome else {
        if !recording.is_growing {
            return "cut".to_owned();
        }
        let since = WallClock::of(recording).time_of_day(0);
        return format!("still recording, since {since}");
    };
    match &outcome.ending {
        Ending::Stopped => "stopped".to_owned(),
        Ending::Exited { code } => format!("exit {code}"),
        Ending::Killed { signal, out_of_memory } => {
            let killed = format!("killed by {}", signal_name(*signal));
            match out_of_memory {
                Some(limit) => format!("{killed}: out of memory, {limit}"),
                None => killed,
            }
        }
    }
}

/// Signals that end a process, with the numbers they have on every architecture that this
/// program runs on; others are told by number.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::recording::RecordingOutcome;

    fn ended(ending: Ending) -> String {
        super::ending(&Recording {
            outcome: Some(RecordingOutcome { ending, ..RecordingOutcome::default() }),
            ..Recording::default()
        })
    }

    #[test]
    fn endings() {
        assert_eq!(ended(Ending::Exited { code: 7 }), "exit 7");
        assert_eq!(super::ending(&Recording::default()), "cut");
        let growing = Recording { is_growing: true, ..Recording::default() };
        assert_eq!(super::ending(&growing), "still recording, since 00:00:00");
        assert_eq!(
            ended(Ending::Killed {
                signal: 9,
                out_of_memory: Some("limit 64 MiB of group /x".to_owned()),
            }),
            "killed by SIGKILL: out of memory, limit 64 MiB of group /x"
        );
        let other = Ending::Killed { signal: 42, out_of_memory: None };
        assert_eq!(ended(other), "killed by signal 42");
    }

    #[test]
    fn a_command_line_can_be_typed_again() {
        let mut recording = Recording::default();
        assert_eq!(subject(&recording), "the whole machine");
        recording.facts.subject =
            Subject::Command { argv: vec!["cat".to_owned(), "my file".to_owned()] };
        assert_eq!(subject(&recording), "cat 'my file'");
    }
}

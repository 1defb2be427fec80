//! A command from its start to its end.
//!
//! 1. The child is forked and waits at a gate: it inherits nothing of the recorder.
//! 2. It gets its group; the sources are opened for it; the first sample is taken.
//! 3. The gate opens. This thread waits, passes signals on, and reaps orphans that have ended.
//! 4. When the command has ended, the last sample is taken while /proc still shows it. Then it is
//!    reaped, which gives its exit status, and its group is removed.
//!
//! From the gate on no fault is returned as an error: what failed is missing from the recording.

use super::group;
use super::out_of_memory::KillCheck;
use super::sampler::{Assignment, Ended, RecordingPurpose, Watched};
use super::servers::Servers;
use super::{Captured, CommandPlan, destination, process_cpu_ns, without_samples};
use crate::collect::Scope;
use crate::tasks::TaskScope;
use crate::{Error, ErrorKind, Result};
use machine::Root;
use model::recording::{Ending, RecordingOutcome, SourceState, Subject};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use sys::spawn::Gated;
use sys::wait::ChildExit;

/// The signal of the kernel's out-of-memory killer.
const SIGKILL: i32 = 9;
/// The most of a command line that is recorded; a shell that expands `*` may make 2 MiB of one.
const ARGV_BYTES_MAX: usize = 4 << 20;
/// How often orphans that have ended are forgotten: each keeps a process number until then.
const REAP_PERIOD_NS: u64 = 500_000_000;

/// Starts `plan.argv` and watches it until it ends, see [`Captured::ending`]. Signals that ask this
/// process to end are passed on to the command.
///
/// # Errors
/// [`ErrorKind::CommandNotFound`] and [`ErrorKind::CommandNotExecutable`] for a command that cannot
/// be started; others before it was started. Once it runs, a fault of the recorder ends the
/// recording and never the command.
pub fn command(plan: &CommandPlan) -> Result<Captured> {
    let cpu_before_ns = process_cpu_ns();
    super::check(&plan.watch)?;
    find(&plan.argv)?;
    let work = super::start_work(&plan.watch, true)?;
    let applied = super::apply(&plan.watch)?;
    let mut child = Gated::spawn(&plan.argv)?;
    let (pid, began_ns) = (child.pid(), sys::clock::now_ns());
    let reaper = sys::parent::Reaper::start().ok();
    let (group, own_group) =
        if plan.own_group { group::make(pid) } else { (None, SourceState::NotAsked) };
    let kill_check = KillCheck::new(Root::system(), pid);
    let mut facts = super::facts(&plan.watch, subject(&plan.argv));
    facts.sights.insert("own_group".to_owned(), own_group);
    let sampler = destination::start_sampler(Assignment {
        watch: plan.watch.clone(),
        facts: facts.clone(),
        watched: watched(pid, reaper.is_some()),
        work,
        purpose: RecordingPurpose::Command,
        cpu_before_ns,
    })?;
    let passing = sys::signals::PassOn::start(pid).ok();
    if let Err(error) = open_gate(&mut child, &plan.argv) {
        sampler.discard();
        return Err(error);
    }
    let mut servers = Servers::new(pid, sys::clock::now_ns());
    wait_for_end(pid, &mut servers);
    let ended_ns = sys::clock::now_ns();
    // /proc and the groups show the command only until it is reaped.
    sampler.take_last_sample();
    sampler.note_servers(servers.into_found());
    let exit = sys::wait::wait(pid).ok();
    drop(passing);
    let ended = Ended {
        ending: ending(exit.as_ref(), &kill_check),
        at_ns: Some(ended_ns),
        process: Some((pid, began_ns)),
        usage: exit.map(|exit| exit.usage),
    };
    let ending = ended.ending.clone();
    let recording = sampler.close(ended.clone()).unwrap_or_else(|error| {
        let outcome = RecordingOutcome {
            ending: ended.ending,
            usage: ended.usage,
            stopped_early: Some(error.to_string()),
            ..RecordingOutcome::default()
        };
        without_samples(facts, outcome, Some(error.to_string()))
    });
    forget_orphans(None);
    drop(group);
    drop(applied);
    let file = plan.watch.output.clone();
    Ok(Captured { recording, file, ending })
}

fn subject(argv: &[OsString]) -> Subject {
    Subject::Command { argv: words(argv, ARGV_BYTES_MAX) }
}

/// The words of a command line, or as many as `max_bytes` of JSON hold; the last one then says
/// how many bytes are missing.
fn words(argv: &[OsString], max_bytes: usize) -> Vec<String> {
    let mut words = Vec::new();
    let mut left = max_bytes;
    for (index, word) in argv.iter().enumerate() {
        let word = word.to_string_lossy();
        let mut end = 0;
        for letter in word.chars() {
            // A control character is written as six.
            let bytes = if letter.is_control() { 6 } else { letter.len_utf8() + 1 };
            if bytes > left {
                break;
            }
            left -= bytes;
            end += letter.len_utf8();
        }
        if end < word.len() {
            let rest = argv[index + 1..].iter().map(|word| word.len() + 1);
            let missing = word.len() - end + rest.sum::<usize>();
            words.push(format!("{}... ({missing} more bytes)", &word[..end]));
            return words;
        }
        words.push(word.into_owned());
    }
    words
}

fn watched(pid: u32, is_reaper: bool) -> Watched {
    Watched {
        scope: Scope { processes: vec![pid], ..Scope::default() },
        tree: Some(TaskScope {
            processes: Some(vec![pid]),
            reaper: is_reaper.then(std::process::id),
        }),
        traced: Some(vec![pid]),
    }
}

/// Refuses a program that is nowhere, before a file is made or replaced for it. What the
/// kernel then says of one that is there counts.
fn find(argv: &[OsString]) -> Result<()> {
    let Some(program) = argv.first() else {
        let why = "it has no words";
        return Err(Error::new(ErrorKind::Usage, "start the command", why));
    };
    let there = if program.as_bytes().contains(&b'/') {
        Path::new(program).exists()
    } else {
        // Without PATH the C library has its own; it is asked then.
        std::env::var_os("PATH").is_none_or(|path| {
            std::env::split_paths(&path).any(|directory| directory.join(program).exists())
        })
    };
    if there {
        return Ok(());
    }
    let why = "no such file or directory";
    Err(Error::new(ErrorKind::CommandNotFound, "run", why).at(program))
}

/// Lets the command run, unless a signal has asked for the end in the meantime. From now on such
/// signals are passed on to the command.
fn open_gate(child: &mut Gated, argv: &[OsString]) -> Result<()> {
    if sys::interrupt::requested() {
        let why = "a signal asked for the end before it began";
        return Err(Error::new(ErrorKind::Failed, "start the command", why));
    }
    child.open_gate().map_err(|error| not_started(argv, &error))
}

fn not_started(argv: &[OsString], error: &sys::Error) -> Error {
    let kind = if sys::spawn::is_not_found(error) {
        ErrorKind::CommandNotFound
    } else {
        ErrorKind::CommandNotExecutable
    };
    let error = Error::new(kind, "run", sys::plain_reason(&error.source));
    error.at(argv.first().map_or(OsStr::new(""), OsString::as_os_str))
}

/// Returns when the command has ended; it is not reaped yet. Meanwhile orphans that have ended are
/// reaped, and the servers of the command are looked for. Returns at once if its end cannot be
/// known, because this process was made to ignore its children.
fn wait_for_end(pid: u32, servers: &mut Servers) {
    let Ok(command) = sys::pidfd::open(pid) else {
        let _ = sys::wait::ended(pid);
        return;
    };
    // A signal ends a wait early, which does no harm here.
    let started_ns = sys::clock::now_ns();
    let mut reaped_ns = started_ns;
    loop {
        let now_ns = sys::clock::now_ns();
        let reap_ns = (reaped_ns + REAP_PERIOD_NS).saturating_sub(now_ns);
        let limit_ns = reap_ns.min(servers.wait_ns(now_ns));
        let [has_ended] = sys::poll::readable([Some(command.as_fd())], Some(limit_ns));
        if has_ended {
            return;
        }
        let now_ns = sys::clock::now_ns();
        servers.look_if_due(started_ns, now_ns);
        if now_ns >= reaped_ns + REAP_PERIOD_NS {
            forget_orphans(Some(pid));
            reaped_ns = now_ns;
        }
    }
}

/// Forgets the orphans that were given to this process and have ended; those that live go to
/// the next reaper when this process ends.
fn forget_orphans(command: Option<u32>) {
    // They are given to the first thread; children that other threads of this process made
    // for themselves are not in its list.
    let own = std::process::id();
    let path = format!("/proc/self/task/{own}/children");
    let children = std::fs::read_to_string(path).unwrap_or_default();
    let numbers = children.split_whitespace().filter_map(|word| word.parse().ok());
    for pid in numbers.filter(|pid| Some(*pid) != command) {
        let _ = sys::wait::try_wait(pid);
    }
}

fn ending(exit: Option<&ChildExit>, kill_check: &KillCheck) -> Ending {
    match exit.map(|exit| exit.ended) {
        None => Ending::Stopped,
        Some(sys::wait::ChildEnding::Exited { code }) => Ending::Exited { code },
        Some(sys::wait::ChildEnding::Killed { signal }) => Ending::Killed {
            signal,
            out_of_memory: (signal == SIGKILL).then(|| kill_check.limit_that_killed()).flatten(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_command_line_of_any_length_fits_and_says_what_is_missing() {
        assert_eq!(super::words(&words(&["a", "b c"]), 100), ["a", "b c"]);
        let long = words(&["x", &"\u{1}".repeat(50), "tail"]);
        let cut = super::words(&long, 32);
        // Two bytes for the first word, five control characters of six bytes each.
        assert_eq!(cut, ["x", "\u{1}\u{1}\u{1}\u{1}\u{1}... (50 more bytes)"]);
        assert_eq!(super::words(&words(&["äö"]), 3), ["ä... (2 more bytes)"]);
    }

    #[test]
    fn a_program_that_is_nowhere_is_refused_before_anything_is_made() {
        for program in ["terrace-has-no-such-program", "/nowhere/at/all"] {
            let error = find(&words(&[program])).unwrap_err();
            assert_eq!(error.kind, ErrorKind::CommandNotFound);
            let text = error.to_string();
            assert_eq!(text, format!("cannot run {program}: no such file or directory"));
        }
        assert!(find(&words(&["sh", "-c", "true"])).is_ok());
        assert_eq!(find(&[]).unwrap_err().kind, ErrorKind::Usage);
    }
}

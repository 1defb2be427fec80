//! Keeps a server running: holds its open files, and starts a successor when it ends otherwise than
//! by success. Where servers fail again and again, as one that panics over what it finds, the next
//! is started in a simpler way; where that fails too, there is no other.
//!
//! A supervisor does nothing else, so that little can end it: with it would go the open files, and
//! all users of the volume would get errors. The server finds the holder's socket as its
//! standard input.

use crate::holder::Holder;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};
use sys::descriptors::socket_pair;
use sys::{Error, Result};

/// A server that lives for less has failed to start.
const SHORT_LIFE: Duration = Duration::from_secs(1);
/// So many that failed to start, one after the other, are replaced at once.
const SHORT_LIVES: u32 = 20;
/// Then each is replaced after this time: what is wrong may pass.
const PAUSE: Duration = Duration::from_secs(2);
/// A successor that cannot be started is tried again after this time: short, because requests wait.
const RETRY: Duration = Duration::from_millis(250);

/// So many that failed within [`FAILURES_WITHIN`] are not replaced by another one of their kind.
const FAILURES: usize = 5;
const FAILURES_WITHIN: Duration = Duration::from_secs(60);
/// Who sends these wants the server to end, and says nothing about it: SIGKILL, SIGTERM, SIGINT.
const SENT: [i32; 3] = [9, 15, 2];

/// What a server is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// All that it is for.
    Full,
    /// Serve in the simplest way: others failed again and again.
    Simple,
}

/// How a supervision ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supervised {
    /// The status of the last server.
    pub status: ExitStatus,
    /// It was given up although it was wanted: also simple ones failed again and again.
    pub is_given_up: bool,
}

/// The failures of late.
#[derive(Debug)]
struct Failures {
    recent: VecDeque<Instant>,
    kind: ServerKind,
}

impl Failures {
    /// Takes note of the end of a server at `now`; whether there is to be another one.
    fn note(&mut self, status: ExitStatus, now: Instant) -> bool {
        if status.signal().is_some_and(|signal| SENT.contains(&signal)) {
            return true;
        }
        self.recent.push_back(now);
        let is_old = |since: &Instant| now.duration_since(*since) > FAILURES_WITHIN;
        while self.recent.front().is_some_and(is_old) {
            self.recent.pop_front();
        }
        if self.recent.len() < FAILURES {
            return true;
        }
        self.recent.clear();
        std::mem::replace(&mut self.kind, ServerKind::Simple) == ServerKind::Full
    }
}

/// Starts a server by `start`, which gives it the socket as its standard input, and a successor
/// whenever one ends, until one ends with success or `goes_on`, which gets the status of the last,
/// says no. Of five that fail by themselves within a minute, the next one is simple; after five of
/// these none follows.
///
/// While open files are held a successor that cannot be started (no process is to be had, the
/// program is being replaced) is tried again and again.
///
/// # Errors
/// When a server cannot be started or waited for, and no open file is held or `goes_on` says no.
pub fn supervise(
    mut start: impl FnMut(OwnedFd, ServerKind) -> io::Result<Child>,
    mut goes_on: impl FnMut(ExitStatus) -> bool,
) -> Result<Supervised> {
    let mut holder = Holder::default();
    let mut failures = Failures { recent: VecDeque::new(), kind: ServerKind::Full };
    let mut short_lives = 0;
    let mut last = None;
    loop {
        let started = Instant::now();
        let mut start_one = |socket| start(socket, failures.kind);
        let status = match serve_once(&mut start_one, &mut holder) {
            Ok(status) => status,
            Err(error) => {
                if holder.is_empty() || last.is_some_and(|status| !goes_on(status)) {
                    return Err(error);
                }
                std::thread::sleep(RETRY);
                continue;
            }
        };
        if status.success() || !goes_on(status) {
            return Ok(Supervised { status, is_given_up: false });
        }
        if !failures.note(status, Instant::now()) {
            return Ok(Supervised { status, is_given_up: true });
        }
        last = Some(status);
        short_lives = if started.elapsed() < SHORT_LIFE { short_lives + 1 } else { 0 };
        if short_lives > SHORT_LIVES {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Starts a server, answers it, and waits for its end.
fn serve_once(
    start: &mut impl FnMut(OwnedFd) -> io::Result<Child>,
    holder: &mut Holder,
) -> Result<ExitStatus> {
    let (inner, outer) = socket_pair()?;
    let mut server = start(inner).map_err(|error| Error::new("start a server", error))?;
    // Ends when the server closes its end, and so at the latest when it ends. An error is no reason
    // to leave the server: it gets one too if it asks for more, and decides by itself.
    let _ = holder.answer(outer.as_fd());
    drop(outer);
    server.wait().map_err(|error| Error::new("wait for a server", error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holder::HolderClient;
    use std::process::{Command, Stdio};
    use sys::descriptors::send;

    /// Runs `script` with the socket as its standard input.
    fn shell(script: &str, socket: OwnedFd) -> io::Result<Child> {
        Command::new("sh").args(["-c", script]).stdin(Stdio::from(socket)).spawn()
    }

    #[test]
    fn a_server_has_successors_until_one_succeeds() {
        let mut starts = 0;
        let start = |socket, kind| {
            assert_eq!(kind, ServerKind::Full);
            starts += 1;
            shell(["kill -9 $$", "exit 3", "exit 0"][starts - 1], socket)
        };
        let ended = supervise(start, |_| true).unwrap();
        assert!(ended.status.success() && !ended.is_given_up);
        assert_eq!(starts, 3);
    }

    #[test]
    fn a_caller_may_end_it() {
        let ended = supervise(|socket, _| shell("exit 3", socket), |_| false).unwrap();
        assert_eq!((ended.status.code(), ended.is_given_up), (Some(3), false));
        assert!(supervise(|socket, _| absent(socket), |_| true).is_err());
    }

    /// The kinds that are started where each server ends by `script`.
    fn kinds(script: &str, most: usize) -> (Vec<ServerKind>, Supervised) {
        let mut kinds = Vec::new();
        let start = |socket, kind| {
            kinds.push(kind);
            shell(if kinds.len() > most { "exit 0" } else { script }, socket)
        };
        let ended = supervise(start, |_| true).unwrap();
        (kinds, ended)
    }

    #[test]
    fn servers_that_fail_again_and_again_have_a_simple_successor_and_then_none() {
        use ServerKind::{Full, Simple};
        for script in ["kill -ABRT $$", "exit 101", "exit 1"] {
            let (found, ended) = kinds(script, 100);
            assert_eq!(found, [[Full; FAILURES], [Simple; FAILURES]].concat(), "{script}");
            assert!(ended.is_given_up && !ended.status.success());
        }
        let (found, ended) = kinds("exit 1", FAILURES);
        assert_eq!(found[FAILURES..], [Simple]);
        assert!(ended.status.success() && !ended.is_given_up);
        // Who kills them says nothing about them.
        let (found, ended) = kinds("kill -KILL $$", 2 * FAILURES + 1);
        assert_eq!(found, [Full; 2 * FAILURES + 2]);
        assert!(ended.status.success());
    }

    #[test]
    fn failures_that_are_far_apart_are_forgotten() {
        let mut failures = Failures { recent: VecDeque::new(), kind: ServerKind::Full };
        let status = Command::new("false").status().unwrap();
        let start = Instant::now();
        for number in 0..10 * FAILURES as u32 {
            assert!(failures.note(status, start + number * (FAILURES_WITHIN / 3)));
        }
        assert_eq!(failures.kind, ServerKind::Full);
    }

    fn absent(socket: OwnedFd) -> io::Result<Child> {
        drop(socket);
        Command::new("/no/such/program").spawn()
    }

    /// A server that fails, and before has a file kept, without reading the answer.
    fn keeping(socket: OwnedFd) -> io::Result<Child> {
        let file = sys::shared_memory::file().unwrap();
        send(socket.as_fd(), b"keep a", Some(file.as_fd())).unwrap();
        shell("exit 3", socket)
    }

    #[test]
    fn what_is_held_stays_while_no_successor_can_be_started() {
        let (mut starts, mut kept) = (0, None);
        let start = |socket: OwnedFd, _| {
            starts += 1;
            match starts {
                1 => keeping(socket),
                2 | 3 => absent(socket),
                _ => {
                    let client = socket.try_clone()?;
                    kept = Some(std::thread::spawn(move || {
                        HolderClient::new(client.as_fd()).take_all().unwrap().len()
                    }));
                    shell("exit 0", socket)
                }
            }
        };
        assert!(supervise(start, |_| true).unwrap().status.success());
        assert_eq!(kept.unwrap().join().unwrap(), 1);
    }

    #[test]
    fn a_caller_may_end_the_tries_to_start_a_successor() {
        let (mut starts, mut asked) = (0, 0);
        let start = |socket, _| {
            starts += 1;
            if starts == 1 { keeping(socket) } else { absent(socket) }
        };
        let goes_on = |status: ExitStatus| {
            asked += 1;
            assert_eq!(status.code(), Some(3));
            asked < 3
        };
        assert!(supervise(start, goes_on).is_err());
        assert_eq!((starts, asked), (3, 3));
    }
}
